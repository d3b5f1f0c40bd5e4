/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * acl - access control lists: extended attributes in Linux's format.
 *
 * The library keeps the mode in step with the access ACL, and gives new files
 * the default ACL of their directory.
 */
#include "modules/ceph/ceph.h"

#include <errno.h>

#include "vfs/acl_xattr.h"

int cfs_getacl(struct vfs_op *op)
{
	struct cfs_call c;
	int err = cfs_begin(&c, op);

	if (err < 0)
		return err;
	for (int kind = 0; kind < VFS_ACL_KINDS && err >= 0; kind++) {
		if (!op->acls->wanted[kind])
			continue;
		err = cfs_acl_read(&c, kind, op->acls->entry[kind]);
		if (err >= 0)
			op->acls->n[kind] = (uint32_t)err;
	}
	return cfs_end(&c, MIN(err, 0));
}

static int write_list(struct cfs_call *c, enum vfs_acl_kind kind,
		      const struct vfs_acls *acls)
{
	uint32_t n = acls->n[kind];
	struct acl_xattr l;
	size_t size;
	int err;

	if (n > 0) {
		size = acl_xattr_encode(acls->entry[kind], n, &l);
		return ceph_ll_setxattr(c->cm, c->in, acl_xattr_names[kind],
					&l, size, 0, c->root);
	}
	err = ceph_ll_removexattr(c->cm, c->in, acl_xattr_names[kind], c->root);
	return err == -ENODATA ? 0 : err;
}

static int check_lists(const struct cfs_call *c, const struct vfs_op *op,
		       const struct ceph_statx *sx)
{
	const struct vfs_acls *acls = op->acls;

	if (cfs_is_fixed(c->node))
		return -EROFS;
	if (op->cred->uid != 0 && op->cred->uid != sx->stx_uid)
		return -EPERM;
	if (S_ISLNK(sx->stx_mode))
		return -EOPNOTSUPP;
	if (acls->wanted[VFS_ACL_DEFAULT] && acls->n[VFS_ACL_DEFAULT] > 0 &&
	    !S_ISDIR(sx->stx_mode))
		return -EACCES;
	return 0;
}

/* As with a mode, a list from a caller outside the file's group clears the
 * set-gid bit: others could else run the program with that group. */
static int drop_set_gid(struct cfs_call *c, const struct vfs_op *op)
{
	const struct vfs_acls *acls = op->acls;
	struct ceph_statx sx, to = { 0 };
	int err;

	if (!acls->wanted[VFS_ACL_ACCESS] || acls->n[VFS_ACL_ACCESS] == 0 ||
	    op->cred->uid == 0)
		return 0;
	err = cfs_turn_take(c->node);
	if (err < 0)
		return err;
	/* A SETATTR might have changed the mode meanwhile. */
	err = cfs_stat(c, &sx);
	if (err == 0 && sx.stx_mode & 02000 &&
	    !cfs_in_group(op->cred, sx.stx_gid)) {
		to.stx_mode = sx.stx_mode & 05777;
		err = ceph_ll_setattr(c->cm, c->in, &to, CEPH_SETATTR_MODE,
				      c->root);
	}
	cfs_turn_give(c->node);
	return err;
}

int cfs_setacl(struct vfs_op *op)
{
	struct ceph_statx sx;
	struct cfs_call c;
	int err = cfs_begin_stat(&c, op, &sx);

	if (err < 0)
		return err;
	err = check_lists(&c, op, &sx);
	if (err == 0)
		err = drop_set_gid(&c, op);
	for (int kind = 0; kind < VFS_ACL_KINDS && err == 0; kind++)
		if (op->acls->wanted[kind])
			err = write_list(&c, kind, op->acls);
	if (err == 0)
		err = cfs_sync_change(&c, c.in);
	return cfs_end(&c, cfs_after(&c, NULL, err));
}
