/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * volume - which file system a directory is the root of.
 *
 * A volume's number is the same after a restart of the machine, wherever it is
 * mounted: it comes from the UUID of ext4 and XFS, on btrfs from that and the
 * subvolume.  Other file systems have no lasting number, so theirs comes from
 * the path.  All include the inode of the root, since a bind mount can show any
 * directory.
 */
#include "vfs/posix/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/hash.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC	0x58465342
#endif

/* XFS_IOC_FSGEOMETRY_V1: of xfs/xfs_fs.h, which few machines have. */
#define XFS_UUID_AT	64
struct xfs_geometry {
	uint8_t bytes[112];
};
#define XFS_GEOMETRY	_IOR('X', 100, struct xfs_geometry)

static bool get_xfs_uuid(int fd, uint64_t uuid[2])
{
	struct xfs_geometry g;
	int rd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool got;

	if (rd < 0)
		return false;
	got = ioctl(rd, XFS_GEOMETRY, &g) == 0;
	close(rd);
	if (got)
		memcpy(uuid, g.bytes + XFS_UUID_AT, 16);
	return got;
}

uint64_t posix_volume(int fd, ino_t ino, const char *path)
{
	uint64_t id[2] = { 0, 0 };
	struct statfs sf;
	bool known;

	known = fstatfs(fd, &sf) == 0;
	if (known && ((unsigned long)sf.f_type == EXT4_SUPER_MAGIC ||
		      (unsigned long)sf.f_type == BTRFS_SUPER_MAGIC))
		memcpy(id, &sf.f_fsid, sizeof(sf.f_fsid));
	else
		known = known && sf.f_type == XFS_SUPER_MAGIC &&
			get_xfs_uuid(fd, id);
	if (!known)
		id[0] = hash_bytes(path, strlen(path));
	return hash_mix(hash_mix(id[0], id[1]), ino) | 1;
}

uint64_t posix_mark(const struct statx *sx)
{
	/* Mounts that are made one after the other have numbers that differ in
	 * the same bits: an XOR of them would not tell them apart. */
	const uint64_t of[] = {
		posix_mount_id(sx), sx->stx_ino,
		(uint64_t)sx->stx_dev_major << 32 | sx->stx_dev_minor,
	};

	return hash_bytes(of, sizeof(of));
}

int posix_stat_mount(int dir_fd, const char *name, struct statx *sx)
{
	int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT |
		    AT_STATX_DONT_SYNC | (*name ? 0 : AT_EMPTY_PATH);

	if (statx(dir_fd, name, flags, STATX_TYPE | STATX_INO | STATX_MNT_ID,
		  sx) == 0)
		return 0;
	/* FUSE shows its root to the user who mounted it, and only its device
	 * to other users. */
	if (errno != EACCES || statx(dir_fd, name, flags, 0, sx) < 0)
		return -errno;
	sx->stx_mode = S_IFDIR;
	return 0;
}
