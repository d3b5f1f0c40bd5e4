/* SPDX-License-Identifier: BSD-2-Clause */
/* ops - the operations. */
#pragma once

#include "vfs/posix/attr.h"
#include "vfs/posix/cred.h"

/*
 * setattr.c
 */
vfs_op_fn posix_setattr;
/* Sets the attributes of a new file that its creation, as the caller, could
 * not; *@changed: some were set. */
int  posix_setattr_new(const struct vfs_op *op, struct posix_node *n,
		       const struct vfs_setattr *set, struct stat *st,
		       bool *changed);

/*
 * acl.c
 */
vfs_op_fn posix_getacl, posix_setacl;

/*
 * verf.c: verifiers of EXCLUSIVE CREATEs.
 */
/* The times of a new file, which say that it was made with @verf. */
void posix_verf_times(uint64_t verf, struct vfs_setattr *set);
bool posix_verf_is(const struct stat *st, uint64_t verf);
/* And in memory. */
void posix_verf_keep(struct posix_fs *fs, const struct vfs_handle *h,
		     uint64_t verf);
bool posix_verf_known(struct posix_fs *fs, const struct vfs_handle *h,
		      uint64_t verf);

/*
 * lookup.c, create.c, names.c, file.c, readdir.c, lock.c: the operations.
 */
int  posix_root(struct vfs_fs *fs, struct vfs_node **out);
/* path.c: as vfs_ops.path. */
int posix_path(struct vfs_node *node, char *out, size_t size);
vfs_op_fn posix_open_handle, posix_lookup, posix_create, posix_make,
	  posix_remove, posix_rename, posix_link, posix_readlink, posix_read,
	  posix_read_pipe, posix_write, posix_commit, posix_readdir, posix_lock;
