/* SPDX-License-Identifier: BSD-2-Clause */
/* statx - the library's attributes as NFS has them.  Pure. */
#include "modules/ceph/ceph.h"

#include <sys/sysmacros.h>

vinodeno_t cfs_vino(const struct ceph_statx *sx)
{
	return (vinodeno_t){ .ino.val = sx->stx_ino,
			     .snapid.val = sx->stx_dev };
}

/* A file in a snapshot has the number of the live file, but must be another
 * file to clients. */
uint64_t cfs_fileid(vinodeno_t vino)
{
	return vino.snapid.val == CFS_HEAD ? vino.ino.val :
	       hash_mix(vino.ino.val, vino.snapid.val);
}

enum vfs_type cfs_type(const struct ceph_statx *sx)
{
	switch (sx->stx_mode & S_IFMT) {
	case S_IFDIR:	return VFS_DIR;
	case S_IFBLK:	return VFS_BLK;
	case S_IFCHR:	return VFS_CHR;
	case S_IFLNK:	return VFS_LNK;
	case S_IFSOCK:	return VFS_SOCK;
	case S_IFIFO:	return VFS_FIFO;
	default:	return VFS_REG;
	}
}

void cfs_attr(const struct ceph_statx *sx, struct vfs_attr *attr)
{
	enum vfs_type type = cfs_type(sx);
	/* That of a regular file can be a verifier: make.c. */
	bool is_dev = type == VFS_BLK || type == VFS_CHR;

	*attr = (struct vfs_attr){
		.type = type,
		.mode = sx->stx_mode & 07777,
		.nlink = sx->stx_nlink,
		.uid = sx->stx_uid,
		.gid = sx->stx_gid,
		.size = sx->stx_size,
		.used = sx->stx_blocks * 512,
		.rdev_major = is_dev ? major(sx->stx_rdev) : 0,
		.rdev_minor = is_dev ? minor(sx->stx_rdev) : 0,
		.fileid = cfs_fileid(cfs_vino(sx)),
		.atime = sx->stx_atime,
		.mtime = sx->stx_mtime,
		.ctime = sx->stx_ctime,
	};
}
