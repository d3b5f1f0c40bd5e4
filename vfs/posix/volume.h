/* SPDX-License-Identifier: BSD-2-Clause */
/* volume - names of file systems. */
#ifndef GANNET_VFS_POSIX_VOLUME_H
#define GANNET_VFS_POSIX_VOLUME_H

#include "vfs/posix/posix.h"

/* Names the file system, across restarts, whose directory @fd (inode @ino, at
 * @path) is a root: struct vfs_fs. */
uint64_t posix_volume(int fd, ino_t ino, const char *path);
/* Gets the type, inode and mount of what is mounted at @name, or of @dir_fd
 * with an empty name, without asking its file system. */
int  posix_stat_mount(int dir_fd, const char *name, struct statx *sx);
static inline uint64_t posix_mount_id(const struct statx *sx)
{
	return sx->stx_mask & STATX_MNT_ID ? sx->stx_mnt_id : 0;
}
/* From posix_stat_mount(): struct vfs_fs. */
uint64_t posix_mark(const struct statx *sx);

#endif
