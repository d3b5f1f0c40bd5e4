/* SPDX-License-Identifier: BSD-2-Clause */
/* NFSACL version 3: arguments, results, and the lists on the wire. */
#pragma once

#include "nfs3/proc.h"

_Static_assert(VFS_ACL_MAX == NFSACL_MAX_ENTRIES, "backends take what comes");

struct nfs3_getacl_args {
	struct xdr_view	 fh;
	uint32_t	 mask;		/* NFSACL_* */
};

struct nfs3_setacl_args {
	struct xdr_view	 fh;
	uint32_t	 mask;
	struct {
		uint32_t	 n;		/* as the client says */
		struct xdr_view	 entries;	/* as on the wire */
	} acl[VFS_ACL_KINDS];
};

struct nfs3_acl_res {			/* GETACL SETACL */
	enum nfsstat3	 status;
	struct nfs3_attr attr;		/* as nfs3_attr_res has it */
	uint32_t	 mask;		/* GETACL's; its lists are the body */
	struct vfs_acls	*acls;		/* owned until the procedure's end */
};

/* acl_codec.c: pure. */

bool nfs3_get_getacl(struct xdr_in *x, void *args);
bool nfs3_get_setacl(struct xdr_in *x, void *args);
void nfs3_put_getacl(struct xdr_out *x, const void *res);
void nfs3_put_setacl(struct xdr_out *x, const void *res);

/*
 * The entries of a list off the wire, in the order of struct vfs_acls and
 * without the mask entry that every list on the wire has, where that says
 * nothing: @out has room for NFSACL_MAX_ENTRIES.  Returns their number, or
 * -EINVAL: it is not a valid list.
 */
int nfs3_acl_from_wire(struct xdr_view wire, struct vfs_acl_entry *out);
/* The list of a file that has none. */
void nfs3_acl_from_mode(uint32_t mode, struct vfs_acl_entry out[3]);

/* The size of nfs3_put_acls(). */
size_t nfs3_acls_size(const struct vfs_acls *acls, uint32_t mask);
/* The two lists of GETACL's results.  Lists of three entries get a mask. */
void nfs3_put_acls(struct xdr_out *x, const struct vfs_acls *acls,
		   uint32_t mask, const struct vfs_attr *owner);

/* The bits of @kind in a mask. */
static inline uint32_t nfs3_acl_bit(enum vfs_acl_kind kind, uint32_t of_access)
{
	return of_access << (kind == VFS_ACL_DEFAULT ? 2 : 0);
}
