/* SPDX-License-Identifier: BSD-2-Clause */
/* backends - the kinds of file systems that an exports file can name. */
#ifndef GANNET_VFS_BACKENDS_H
#define GANNET_VFS_BACKENDS_H

#include "vfs/vfs.h"

/* A directory of this system.  vfs/posix/. */
extern const struct vfs_ops posix_vfs_ops;
/* Memory, empty at first and gone at exit.  vfs/mem/. */
extern const struct vfs_ops mem_vfs_ops;

/* The backend whose name is the @len bytes at @name, or NULL. */
const struct vfs_ops *backend_find(const char *name, size_t len);
/* "posix, mem": for messages. */
void backend_names(char *buf, size_t size);

/*
 * Parses @text ("a,b=1" or NULL) by the rows of @ops.  *@out is a new block of
 * ops->options_size bytes, to be freed by the caller; NULL if that is 0.  0;
 * -ENOMEM; or -EINVAL and *@err (malloced, NULL without memory) is the reason.
 */
int backend_options(const struct vfs_ops *ops, const char *text, void **out,
		    char **err);
/* True if both are one backend with equal blocks of options. */
bool backend_same(const struct vfs_ops *a, const void *a_options,
		  const struct vfs_ops *b, const void *b_options);

#endif
