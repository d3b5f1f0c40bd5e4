/* SPDX-License-Identifier: BSD-2-Clause */
/* covered - directories that something is mounted on. */
#pragma once

#include "vfs/posix/posix.h"

/* The operations of nodes in fs->covered, the empty directories. */
extern const struct vfs_ops posix_covered_ops;

/* LOOKUP's results for the directory below the mount point @name in op->node;
 * @dir_st was read before the look-up.  Can block.  -EACCES: not a
 * directory. */
int  posix_covered_lookup(struct vfs_op *op, const char *name,
			  const struct stat *dir_st);
/* Opens @dir in a copy of the tree without mounts, where nothing covers its
 * "..": an O_PATH descriptor, or -errno. */
int  posix_covered_bare(struct posix_fs *fs, struct posix_node *dir);
/* True if a retry of the call that failed with @err can succeed. */
bool posix_covered_passes(int err);
/* Opens the directory @fd, of there, in the tree.  Takes @fd. */
int  posix_covered_back(struct posix_fs *fs, int fd);
/* True if @h is the handle of an empty directory in a mount point's place. */
bool posix_covered_is(const struct vfs_handle *h);
/* Opens it, as open_handle does; -ESTALE: the mount is gone. */
int  posix_covered_open(struct vfs_op *op);
