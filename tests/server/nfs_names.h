/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nfs_names - the procedures of names as functions: each makes the call and
 * returns its status, after it has seen that the attributes are there.
 */
#pragma once

#include "tests/server/nfs_client.h"

/* The last change brought whole wcc data, and the attributes of the object that
 * it made or linked. */
extern bool nfs_wcc;

int try_lookup(nfs_fh3 at, const char *name, nfs_fh3 *fh);
int try_create(struct nfs_client *c, nfs_fh3 at, const char *name,
	       createmode3 mode, const char *verf);
int try_mkdir(struct nfs_client *c, nfs_fh3 at, const char *name);
int try_symlink(nfs_fh3 at, const char *name, const char *target);
int try_mknod(nfs_fh3 at, const char *name, ftype3 type);
int try_remove(struct nfs_client *c, nfs_fh3 at, const char *name);
int try_rmdir(nfs_fh3 at, const char *name);
int try_rename(nfs_fh3 from, const char *old, nfs_fh3 to,
	       const char *new);
int try_link(nfs_fh3 fh, nfs_fh3 at, const char *name);
