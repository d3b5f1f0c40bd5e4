/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * children - file systems below an export that clients reach by LOOKUP.
 *
 * Each is an export with its own id, tree and share of workers, but no entry in
 * the table: the rules of the export above, its *top*, apply.  It is opened
 * when a client reaches it, and closed when it has been idle for a while, so it
 * can be unmounted.
 *
 * Its id is made from its top's id and path, its own path and the number that
 * the backend gives the file system, struct vfs_fs's volume: so its handles
 * survive restarts.  The paths also tell copies of a file system apart, which
 * have the same number.  The state directory records its path.
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
/* Closes all, after the last call. */
void children_destroy(struct children *c);
/* Takes in the entries of @set that have a mountpoint: before @set becomes the
 * current one.  0, or -errno and perhaps *@err.  Waits for RCU. */
int  children_take_exports(struct children *c, const struct export_set *set,
			   char **err);
/* Closes children that are not in use; with @force also any that @set does not
 * want.  Waits for RCU. */
void children_close(struct children *c, const struct export_set *set,
		    bool force);
/* Any thread, never blocks.  NULL: not found.  Valid as long as @c. */
struct child *children_find(struct children *c, uint32_t id);
/* Notes that a call uses @child, which keeps it from being closed as idle. */
void child_use(struct child *child);

/*
 * The export of @at, which a lookup found in the directory @dir of @from;
 * opened if need be.  Counted.  Waits a little for its file system.
 * -ETIMEDOUT: it does not answer yet; -EREMCHG: something else is mounted there
 * by now, look again; or another -errno: it can't be exported.
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
