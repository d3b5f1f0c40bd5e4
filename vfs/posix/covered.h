/* SPDX-License-Identifier: BSD-2-Clause */
/* covered - directories that something is mounted on. */
#ifndef GANNET_VFS_POSIX_COVERED_H
#define GANNET_VFS_POSIX_COVERED_H

#include "vfs/posix/posix.h"

/* Those of fs->covered, whose nodes these directories are. */
extern const struct vfs_ops posix_covered_ops;

/* LOOKUP's results when @name in op->node is a mount point, in place of what is
 * mounted there.  May block.  -EACCES: that is no directory. */
int  posix_covered_lookup(struct vfs_op *op, const char *name);
/* True if @h is the handle of such a directory. */
bool posix_covered_is(const struct vfs_handle *h);
/* Opens it, as open_handle does; -ESTALE: the mount is gone. */
int  posix_covered_open(struct vfs_op *op);

#endif
