/* SPDX-License-Identifier: BSD-2-Clause */
/* handle - the bytes that name a file. */
#pragma once

#include "vfs/posix/posix.h"

/* The handle of the file that @fd is open on, whose stat is @st. */
int  posix_handle_make(const struct posix_fs *fs, int fd,
		       const struct stat *st, struct vfs_handle *h);
/* The handle of @name in @dir_fd, whose stat is @st; with kernel_ids only. */
int  posix_handle_of_name(const struct posix_fs *fs, int dir_fd,
			  const char *name, const struct stat *st,
			  struct vfs_handle *h);
/* The handle of @name in @dir_fd, to compare with; its ino can be missing. */
int  posix_handle_peek(struct posix_fs *fs, int dir_fd,
		       const char *name, struct vfs_handle *h);
/* An O_PATH descriptor in the mount that @mount_fd, not O_PATH, is in; or
 * -errno. */
int  posix_handle_open(int mount_fd, const struct vfs_handle *h);
bool posix_handle_valid(const struct vfs_handle *h);
/* The inode number in it; 0 for the root's. */
uint64_t posix_handle_ino(const struct vfs_handle *h);
void posix_handle_root(struct vfs_handle *h);

/* False: the file system at @fd has no handles that can be opened again. */
bool posix_handle_can_be(int fd);
/* Sets kernel_ids and by_handle. */
void posix_handle_probe(struct posix_fs *fs, bool may_open);
