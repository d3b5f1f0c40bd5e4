/* SPDX-License-Identifier: BSD-2-Clause */
/* mounts - the kernel's list of mounts (/proc/self/mountinfo), and numbers that
 * name file systems. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct posix_mounted {
	uint64_t id;
	dev_t	 dev;
	char	 type[64];	/* "ext4", "fuse.sshfs" */
	bool	 read_only;	/* the file system, in all of its mounts */
	/* FUSE: who mounted it. */
	bool	 has_user;
	uid_t	 user;
	gid_t	 group;
	bool	 others;	/* it also serves other users */
};

/* Reads a line of the list.  False: malformed.  Pure. */
bool posix_mounted_parse(const char *line, struct posix_mounted *out);
/* Finds the mount @id, or a mount of the file system @dev.  False: not in the
 * list, which has only reachable mounts; @out is then undefined.  Can block. */
bool posix_mounted_by_id(uint64_t id, struct posix_mounted *out);
bool posix_mounted_by_dev(dev_t dev, struct posix_mounted *out);
/* False if the list can be read, and has no mount @id. */
bool posix_mounted_is_there(uint64_t id);

/*
 * volume.c
 */
/* Names the file system, across restarts, whose directory @fd (inode @ino, at
 * @path) is a root: struct vfs_fs. */
uint64_t posix_volume(int fd, ino_t ino, const char *path);
/* Gets the type, inode and mount of the mount at @name, or of @dir_fd with an
 * empty name, without asking its file system. */
int  posix_stat_mount(int dir_fd, const char *name, struct statx *sx);
static inline uint64_t posix_mount_id(const struct statx *sx)
{
	return sx->stx_mask & STATX_MNT_ID ? sx->stx_mnt_id : 0;
}
/* From posix_stat_mount(): struct vfs_fs. */
uint64_t posix_mark(const struct statx *sx);
