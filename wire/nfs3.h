/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nfs3 - NFS version 3 (RFC 1813) on the wire: its numbers, under their names
 * in the RFC, and the arguments and results of its procedures, both ways.
 * Pure; any thread.
 *
 * In memory, attributes and the arguments of new files are structs of the
 * backends' interface, so a server copies none of them.
 */
#pragma once

#include <gannet/vfs_types.h>

#include "lib/xdr.h"
#include "wire/fh.h"

#define NFS3_PROGRAM		100003
#define NFS3_VERSION		3

#define NFS3_COOKIEVERFSIZE	8
#define NFS3_CREATEVERFSIZE	8
#define NFS3_WRITEVERFSIZE	8

enum nfs3_procnum {
	NFSPROC3_NULL		= 0,
	NFSPROC3_GETATTR	= 1,
	NFSPROC3_SETATTR	= 2,
	NFSPROC3_LOOKUP		= 3,
	NFSPROC3_ACCESS		= 4,
	NFSPROC3_READLINK	= 5,
	NFSPROC3_READ		= 6,
	NFSPROC3_WRITE		= 7,
	NFSPROC3_CREATE		= 8,
	NFSPROC3_MKDIR		= 9,
	NFSPROC3_SYMLINK	= 10,
	NFSPROC3_MKNOD		= 11,
	NFSPROC3_REMOVE		= 12,
	NFSPROC3_RMDIR		= 13,
	NFSPROC3_RENAME		= 14,
	NFSPROC3_LINK		= 15,
	NFSPROC3_READDIR	= 16,
	NFSPROC3_READDIRPLUS	= 17,
	NFSPROC3_FSSTAT		= 18,
	NFSPROC3_FSINFO		= 19,
	NFSPROC3_PATHCONF	= 20,
	NFSPROC3_COMMIT		= 21,
	NFS3_NPROC		= 22,
};

/*
 * NFSACL, which goes with NFS version 3 on the same port.  It has no RFC: It
 * comes from Solaris; the numbers are from its nfs_acl.x.
 */
#define NFSACL_PROGRAM		100227
#define NFSACL_VERSION		3

enum nfsacl_procnum {
	NFSACLPROC3_NULL	= 0,
	NFSACLPROC3_GETACL	= 1,
	NFSACLPROC3_SETACL	= 2,
	NFSACL_NPROC		= 3,
};

/* The mask of NFSACL: a list's entries, or only their number. */
#define NFSACL_ACL		0x1
#define NFSACL_ACLCNT		0x2
#define NFSACL_DFACL		0x4
#define NFSACL_DFACLCNT		0x8
#define NFSACL_ALL		0xf

#define NFSACL_MAX_ENTRIES	1024
#define NFSACL_ENTRY_SIZE	12
/* In the type of a default ACL's entries. */
#define NFSACL_TYPE_DEFAULT	0x1000

/* Section 2.6. */
enum nfsstat3 {
	NFS3_OK			= 0,
	NFS3ERR_PERM		= 1,
	NFS3ERR_NOENT		= 2,
	NFS3ERR_IO		= 5,
	NFS3ERR_NXIO		= 6,
	NFS3ERR_ACCES		= 13,
	NFS3ERR_EXIST		= 17,
	NFS3ERR_XDEV		= 18,
	NFS3ERR_NODEV		= 19,
	NFS3ERR_NOTDIR		= 20,
	NFS3ERR_ISDIR		= 21,
	NFS3ERR_INVAL		= 22,
	NFS3ERR_FBIG		= 27,
	NFS3ERR_NOSPC		= 28,
	NFS3ERR_ROFS		= 30,
	NFS3ERR_MLINK		= 31,
	NFS3ERR_NAMETOOLONG	= 63,
	NFS3ERR_NOTEMPTY	= 66,
	NFS3ERR_DQUOT		= 69,
	NFS3ERR_STALE		= 70,
	NFS3ERR_REMOTE		= 71,
	NFS3ERR_BADHANDLE	= 10001,
	NFS3ERR_NOT_SYNC	= 10002,
	NFS3ERR_BAD_COOKIE	= 10003,
	NFS3ERR_NOTSUPP		= 10004,
	NFS3ERR_TOOSMALL	= 10005,
	NFS3ERR_SERVERFAULT	= 10006,
	NFS3ERR_BADTYPE		= 10007,
	NFS3ERR_JUKEBOX		= 10008,
};

/* time_how, section 2.5. */
enum {
	DONT_CHANGE		= 0,
	SET_TO_SERVER_TIME	= 1,
	SET_TO_CLIENT_TIME	= 2,
};

/* createmode3, section 3.3.8. */
enum { UNCHECKED = 0, GUARDED = 1, EXCLUSIVE = 2 };

/* FSINFO properties, section 3.3.19. */
#define FSF3_LINK		0x0001
#define FSF3_SYMLINK		0x0002
#define FSF3_HOMOGENEOUS	0x0008
#define FSF3_CANSETTIME		0x0010

/* Only the message limits names and paths: a long one has to get NAMETOOLONG
 * instead of GARBAGE_ARGS. */
#define NFS3_STRING_MAX		((1u << 20) + (64u << 10))
/* Data of one WRITE, and the pieces that it can come in. */
#define NFS3_DATA_MAX		((4u << 20) + (64u << 10))
#define NFS3_MAX_PIECES		9
/* post_op_attr and fattr3 at their longest, section 2.5. */
#define NFS3_FATTR_SIZE		84
#define NFS3_POST_ATTR_SIZE	(4 + NFS3_FATTR_SIZE)

/*
 * Arguments.  Views lie in the call and are valid while it lives.  Each struct
 * begins with the filehandle that names the export.
 */

struct nfs3_fh_args {			/* GETATTR READLINK FSSTAT FSINFO
					 * PATHCONF */
	struct xdr_view	 fh;
};

struct nfs3_dirop_args {		/* LOOKUP REMOVE RMDIR; diropargs3 */
	struct xdr_view	 fh;
	struct xdr_view	 name;
};

struct nfs3_setattr_args {
	struct xdr_view	 fh;
	struct vfs_setattr attr;
};

struct nfs3_access_args {
	struct xdr_view	 fh;
	uint32_t	 access;
};

struct nfs3_read_args {
	struct xdr_view	 fh;
	uint64_t	 offset;
	uint32_t	 count;		/* cut to the bytes that can be read */
};

struct nfs3_write_args {
	struct xdr_view	 fh;
	/* Cut to wtmax, then to the part that is not written yet: */
	uint64_t	 offset;
	uint32_t	 len;
	int		 niov;
	struct iovec	 iov[NFS3_MAX_PIECES];
	uint32_t	 count;		/* as the client gave it */
	enum vfs_stable	 stable;
};

struct nfs3_create_args {
	struct nfs3_dirop_args where;
	struct vfs_create how;
};

struct nfs3_make_args {			/* MKDIR SYMLINK MKNOD */
	struct nfs3_dirop_args where;
	uint32_t	 type;		/* ftype3; 0: MKNOD can't make it */
	struct vfs_make	 what;
};

struct nfs3_rename_args {
	struct nfs3_dirop_args from;
	struct nfs3_dirop_args to;
};

struct nfs3_link_args {
	struct xdr_view	 fh;
	struct nfs3_dirop_args link;
};

struct nfs3_readdir_args {		/* READDIR READDIRPLUS */
	struct xdr_view	 fh;
	uint64_t	 cookie;
	uint64_t	 verf;
	uint32_t	 dircount;	/* READDIR: none, UINT32_MAX */
	uint32_t	 maxcount;
};

struct nfs3_commit_args {
	struct xdr_view	 fh;
	uint64_t	 offset;
	uint32_t	 count;
};

/* Results.  Each begins with its status; then, where the reply has any, the
 * attributes of the call's own node: an nfs3_attr or an nfs3_wcc. */

struct nfs3_attr {			/* post_op_attr */
	bool		 has;
	struct vfs_attr	 attr;
	uint64_t	 fsid;
};

struct nfs3_wcc {			/* wcc_data */
	struct vfs_wcc	 wcc;
	uint64_t	 fsid;
};

struct nfs3_attr_res {			/* GETATTR, and replies of its form */
	enum nfsstat3	 status;
	struct nfs3_attr attr;
};

struct nfs3_wcc_res {			/* SETATTR REMOVE RMDIR */
	enum nfsstat3	 status;
	struct nfs3_wcc	 wcc;
};

struct nfs3_lookup_res {
	enum nfsstat3	 status;
	struct nfs3_attr dir_attr;
	struct nfs3_fh fh;
	struct nfs3_attr attr;
};

struct nfs3_access_res {
	enum nfsstat3	 status;
	struct nfs3_attr attr;
	uint32_t	 access;
};

struct nfs3_readlink_res {		/* the path is the body */
	enum nfsstat3	 status;
	struct nfs3_attr attr;
	uint32_t	 len;
};

struct nfs3_read_res {			/* the data is the body */
	enum nfsstat3	 status;
	struct nfs3_attr attr;
	uint32_t	 count;
	bool		 eof;
};

struct nfs3_write_res {
	enum nfsstat3	 status;
	struct nfs3_wcc	 wcc;
	uint32_t	 count;
	enum vfs_stable	 committed;
	uint64_t	 verf;
};

struct nfs3_create_res {		/* CREATE MKDIR SYMLINK MKNOD */
	enum nfsstat3	 status;
	struct nfs3_wcc	 dir_wcc;
	struct nfs3_fh fh;
	struct nfs3_attr attr;
};

struct nfs3_rename_res {
	enum nfsstat3	 status;
	struct nfs3_wcc	 from_wcc;
	struct nfs3_wcc	 to_wcc;
};

struct nfs3_link_res {
	enum nfsstat3	 status;
	struct nfs3_attr attr;
	struct nfs3_wcc	 dir_wcc;
};

struct nfs3_readdir_res {		/* the entries are the body */
	enum nfsstat3	 status;
	struct nfs3_attr dir_attr;
	uint64_t	 verf;
};

struct nfs3_fsstat_res {
	enum nfsstat3	 status;
	struct nfs3_attr attr;
	struct vfs_statfs st;
};

struct nfs3_fsinfo_res {
	enum nfsstat3	 status;
	struct nfs3_attr attr;
	uint32_t	 rtmax, rtpref;
	uint32_t	 wtmax, wtpref;
	uint32_t	 dtpref;
	struct vfs_limits limits;
};

struct nfs3_pathconf_res {
	enum nfsstat3	 status;
	struct nfs3_attr attr;
	struct vfs_limits limits;
};

struct nfs3_commit_res {
	enum nfsstat3	 status;
	struct nfs3_wcc	 wcc;
	uint64_t	 verf;
};

struct nfs3_entry {			/* entry3, entryplus3 */
	uint64_t	 fileid;
	struct xdr_view	 name;
	uint64_t	 cookie;
	/* READDIRPLUS. */
	struct nfs3_attr attr;
	struct nfs3_fh	 fh;		/* len 0: none came */
};

/* Of any procedure. */
union nfs3_args {
	struct xdr_view		 fh;
	struct nfs3_dirop_args	 dirop;
	struct nfs3_setattr_args setattr;
	struct nfs3_access_args	 access;
	struct nfs3_read_args	 read;
	struct nfs3_write_args	 write;
	struct nfs3_create_args	 create;
	struct nfs3_make_args	 make;
	struct nfs3_rename_args	 rename;
	struct nfs3_link_args	 link;
	struct nfs3_readdir_args readdir;
	struct nfs3_commit_args	 commit;
};

union nfs3_res {
	enum nfsstat3		 status;
	struct nfs3_attr_res	 getattr;
	struct nfs3_wcc_res	 wcc;
	struct nfs3_lookup_res	 lookup;
	struct nfs3_access_res	 access;
	struct nfs3_readlink_res readlink;
	struct nfs3_read_res	 read;
	struct nfs3_write_res	 write;
	struct nfs3_create_res	 create;
	struct nfs3_rename_res	 rename;
	struct nfs3_link_res	 link;
	struct nfs3_readdir_res	 readdir;
	struct nfs3_fsstat_res	 fsstat;
	struct nfs3_fsinfo_res	 fsinfo;
	struct nfs3_pathconf_res pathconf;
	struct nfs3_commit_res	 commit;
};

/* Arguments.  False: they do not decode. */

bool nfs3_get_void(struct xdr_in *x, void *args);
bool nfs3_get_fh(struct xdr_in *x, void *args);
bool nfs3_get_dirop(struct xdr_in *x, void *args);
bool nfs3_get_setattr(struct xdr_in *x, void *args);
bool nfs3_get_access(struct xdr_in *x, void *args);
bool nfs3_get_read(struct xdr_in *x, void *args);
bool nfs3_get_write(struct xdr_in *x, void *args);
bool nfs3_get_create(struct xdr_in *x, void *args);
bool nfs3_get_mkdir(struct xdr_in *x, void *args);
bool nfs3_get_symlink(struct xdr_in *x, void *args);
bool nfs3_get_mknod(struct xdr_in *x, void *args);
bool nfs3_get_rename(struct xdr_in *x, void *args);
bool nfs3_get_link(struct xdr_in *x, void *args);
bool nfs3_get_readdir(struct xdr_in *x, void *args);
bool nfs3_get_readdirplus(struct xdr_in *x, void *args);
bool nfs3_get_commit(struct xdr_in *x, void *args);

/* The arguments of @proc, of its struct above; for WRITE up to the length of
 * the data. */
void nfs3_put_args(struct xdr_out *x, enum nfs3_procnum proc,
		   const void *args);

/*
 * Results.  Where a reply has a body (READ, READLINK, READDIR, READDIRPLUS),
 * they end right before it: with the length word of the opaque, or with the
 * cookie verifier.
 */

void nfs3_put_getattr(struct xdr_out *x, const void *res);
void nfs3_put_wcc(struct xdr_out *x, const void *res);
void nfs3_put_lookup(struct xdr_out *x, const void *res);
void nfs3_put_access(struct xdr_out *x, const void *res);
void nfs3_put_readlink(struct xdr_out *x, const void *res);
void nfs3_put_read(struct xdr_out *x, const void *res);
void nfs3_put_write(struct xdr_out *x, const void *res);
void nfs3_put_create(struct xdr_out *x, const void *res);
void nfs3_put_rename(struct xdr_out *x, const void *res);
void nfs3_put_link(struct xdr_out *x, const void *res);
void nfs3_put_readdir(struct xdr_out *x, const void *res);
void nfs3_put_fsstat(struct xdr_out *x, const void *res);
void nfs3_put_fsinfo(struct xdr_out *x, const void *res);
void nfs3_put_pathconf(struct xdr_out *x, const void *res);
void nfs3_put_commit(struct xdr_out *x, const void *res);

void nfs3_put_fattr(struct xdr_out *x, const struct vfs_attr *a,
		    uint64_t fsid);
void nfs3_put_post_attr(struct xdr_out *x, const struct nfs3_attr *a);

/* The results of @proc, except NULL, whatever their status, into its struct
 * above.  False: they do not decode. */
bool nfs3_get_res(struct xdr_in *x, enum nfs3_procnum proc, void *res);
/* The next entry of a listing.  False: no entry is left, or it does not
 * decode; eof follows. */
bool nfs3_get_entry(struct xdr_in *x, bool plus, struct nfs3_entry *e);

XDR_BOTH void nfs3_time(struct xdr_both b, struct timespec *t)
{
	both_u32(b, t->tv_sec);
	both_u32(b, t->tv_nsec);
}
