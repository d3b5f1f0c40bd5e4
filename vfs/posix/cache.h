/* SPDX-License-Identifier: BSD-2-Clause */
/* cache - the nodes in use, by handle; and names that were looked up. */
#pragma once

#include "vfs/posix/posix.h"

/*
 * cache.c
 */
/* The node of @h, counted, if it is in use or the root; else NULL. */
struct posix_node *posix_cache_find(struct posix_fs *fs,
				    const struct vfs_handle *h);
/* Enters @n, unless another thread has entered a node of the file: returns the
 * node to use, counted.  Takes @n.  Makes no room: the opening of @n's
 * descriptor did that (posix_cache_room()). */
struct posix_node *posix_cache_enter(struct posix_cache *c,
				     struct posix_node *n);
/* The file is gone or has changed its properties: no later look-up finds @n. */
void posix_cache_forget(struct posix_cache *c, struct posix_node *n);
/*
 * Call before opening a file, with any credentials.  Closes unused files if too
 * many are open.  0, or -ETIMEDOUT if the export has used its share of
 * descriptors.  In that case a worker first waits for others to be closed, for
 * posix_room_ms at most, unless no file was closed since another worker waited.
 */
int  posix_cache_room(struct posix_cache *c);
/* In ms, 1,000; tests set it. */
extern _Atomic unsigned posix_room_ms;
/* Makes the sweep free a node, for a thread that must not wait, or must not
 * become the server to sync it. */
void posix_cache_bury(struct posix_cache *c, struct posix_node *n);
/* This thread closes unrelated files, in the midst of an operation with a
 * caller's credentials. */
extern _Thread_local bool posix_makes_room;
/* This thread sweeps: nothing else makes room for it. */
extern _Thread_local bool posix_sweeps;
bool posix_cache_full(struct posix_cache *c);
/* An open failed for lack of descriptors: true if some were closed. */
bool posix_cache_squeeze(struct posix_cache *c);
#define POSIX_PASS	64
/* A look at some nodes. */
struct posix_pass {
	/* Close files unused for so many ticks, and dirty ones unused for so
	 * many (UINT32_MAX: none). */
	uint32_t age, dirty_age;
	bool	 idle;			/* not to make room for others */
	long	 closed;		/* so far */
	/* Dirty files to sync and then close; counted. */
	struct posix_node *dirty[POSIX_PASS];
	long	 ndirty;
};
/* Looks at up to @max nodes, from the oldest, and closes those not used for
 * long, except dirty ones.  Returns how many it looked at. */
long posix_cache_pass(struct posix_cache *c, long max, struct posix_pass *p);
/* Closes a dirty file that was just synced, unless it was used meanwhile.  Puts
 * the caller's reference. */
bool posix_cache_drop(struct posix_cache *c, struct posix_node *n,
		      struct posix_pass *p);
/* Files were closed: wakes the calls that wait for room. */
void posix_cache_tell_room(struct posix_cache *c);

/*
 * sweep.c
 */
int  posix_cache_init(struct posix_cache *c, const struct posix_options *o);
/* Puts all nodes.  No operation is running. */
void posix_cache_fini(struct posix_cache *c);

/*
 * dentry.c: names that were looked up.  @dir_st is the directory's stat, read
 * before the look-up, and was posix_settled(); the ctime has not changed since.
 */
int  posix_dentries_create(struct posix_dentries **out);
void posix_dentries_destroy(struct posix_dentries *d);
bool posix_dentry_find(const struct posix_fs *fs, const struct posix_node *dir,
		       const struct stat *dir_st, const char *name,
		       struct vfs_handle *file);
void posix_dentry_keep(struct posix_fs *fs, const struct posix_node *dir,
		       const struct stat *dir_st, const char *name,
		       const struct vfs_handle *file);
