/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * children - file systems below an export that clients come to by LOOKUP.
 *
 * Each is an export with an id, a tree and a share of workers of its own, but
 * without an entry in the table: it has the rules of the export above, its
 * *top*.  It is opened when a client comes to it, and closed when nobody has
 * used it for a while, so that it can be unmounted.
 *
 * Its id is made from its top's id and path, its own path and the number that
 * the backend gives the file system, struct vfs_fs's volume: so its handles
 * hold over restarts, and are no other's when copies of a file system, which
 * have the same number, are mounted side by side.  The state directory has its
 * path.
 *
 * An entry that is exported only while something is mounted (mountpoint) is
 * opened and closed in the same way.  It has its entry's id and path, and is
 * its own top.
 */
#pragma once

#include "exports/export_priv.h"

struct child {
	uint32_t	 id;
	uint32_t	 top;
	/* Counted; NULL: closed.  Written under the lock of all children, read
	 * under RCU. */
	struct export_tree *_Atomic tree;
	_Atomic uint32_t used;		/* the second of the last call */
	atomic_bool	 is_part;	/* a subvolume, of no other mount than
					 * the export */
	/* Under the lock: */
	char		*path;
	uint32_t	 above;		/* the id of the export around it */
	struct vfs_handle dir;		/* ... in which it is in this one */
};

/* Reads the file in @t's state directory.  0, or -errno, which was logged if
 * it is the file's. */
int  children_create(struct export_table *t, struct children **out);
/* Closes all.  No call comes now. */
void children_destroy(struct children *c);
/* Takes in the entries of @set that have a mountpoint: before @set becomes the
 * current one.  0, or -errno and perhaps *@err.  Waits for RCU. */
int  children_take_exports(struct children *c, const struct export_set *set,
			   char **err);
/* Closes those that are not in use now; with @force also those in use that @set
 * does not want.  Waits for RCU. */
void children_close(struct children *c, const struct export_set *set,
		    bool force);
/* Any thread, never blocks; NULL: there is none.  Valid as long as @c. */
struct child *children_find(struct children *c, uint32_t id);
/* Notes that a call uses @child, which keeps it from being closed as idle. */
void child_use(struct child *child);

/*
 * The export of @at, which a lookup in the directory @dir of @from came to,
 * opened if need be.  Counted.  Waits a little for its file system.
 * -ETIMEDOUT: that does not answer yet; -EREMCHG: something else is mounted
 * there by now, look again; or another -errno: it can't be exported.
 */
int children_enter(struct children *c, const struct export_tree *from,
		   const struct vfs_child *at, const struct vfs_handle *dir,
		   struct export_tree **out);
/* The same, if it is open.  -EAGAIN: it is not. */
int children_enter_open(struct children *c, const struct export_tree *from,
			const struct vfs_child *at, struct export_tree **out);
/* Finds the directory of @child's "..": *@dir in the export *@id.  -ENOENT: it
 * is not known. */
int children_above(struct children *c, const struct child *child, uint32_t *id,
		   struct vfs_handle *dir);
/* Opens @child.  Waits a little.  0; -ETIMEDOUT: come again; -ESTALE: it is not
 * where it was; -ENODEV: nothing is mounted on its entry's mountpoint. */
int children_open(struct children *c, struct child *child);
