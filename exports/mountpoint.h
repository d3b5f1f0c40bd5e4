/* SPDX-License-Identifier: BSD-2-Clause */
/* mountpoint - holds the mount at a path. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <gannet/vfs.h>

struct mountpoint {
	int	 fd;
	uint64_t mount;		/* its number */
};

/*
 * Holds the mount at @path: until it is released, only a lazy unmount works.
 * Can block, and triggers a mount on demand.  0; -ENOENT or -ENOTDIR: nothing
 * is mounted there; or another -errno.
 */
int  mountpoint_hold(const char *path, struct mountpoint *out);
/* True if @path leads to this mount.  Can block. */
bool mountpoint_is_there(const struct mountpoint *m, const char *path);
/*
 * False: @path, the root of @fs, lies at or below @top, the path that was held,
 * and yet leads elsewhere.  The mount was moved away for a moment, or a
 * symbolic link leads out of it.  Can block.
 */
bool mountpoint_has_root(const struct mountpoint *m, const char *top,
			 struct vfs_fs *fs, const char *path);
void mountpoint_release(struct mountpoint *m);

/* Where work on an export at @path can hang, for its jobs (lib/crew.h): in the
 * file system of the path, or in what its backend's exports have in common. */
uint64_t mount_place(const struct vfs_ops *backend, const char *path);

/* Why the directory @path can't be mounted: the error @err of a backend. */
const char *mount_reason(const char *path, int err);
