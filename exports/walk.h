/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * walk - from a path that a client names to a directory of an export.
 *
 * The export that the path lies in, then one look-up a component from the
 * export's root, as the caller: so it leads nowhere that LOOKUP would refuse.
 * Symbolic links are followed as far as they stay in exports.
 *
 * The way can lead through several exports, each with its own workers.  So a
 * walk stops at the border and goes on with the workers of the next export.
 */
#pragma once

#include "exports/export.h"
#include "lib/xdr.h"

/* As MNTPATHLEN of RFC 1813, and RQ_PATHLEN of rquota. */
#define WALK_PATH_MAX	1024

/* The client whose path it is.  Borrowed. */
struct walk_client {
	struct export_table   *exports;
	struct export_peer     peer;
	bool		       may_wait;	/* this thread: it's a worker */
	struct export_claim    who;
};

/* The state of a walk.  Zeros at first; walk_end() frees its resources. */
struct walk {
	struct export_tree *exp;	/* counted; NULL: it has not begun */
	struct export_tree *was;	/* counted: the one before, while
					 * walk_to() has nodes of it */
	struct export_opts  opts;	/* the caller's, there */
	struct vfs_cred	    cred;	/* with exp; counted */
	uint32_t	    rest;	/* offset in the path: the part below
					 * the export that walk_begin() found */
	unsigned	    links;	/* followed */
	unsigned	    restarts;	/* since something was mounted, or
					 * unmounted, on the way */
	char		   *path;	/* owned: the whole path, instead of the
					 * client's, since a link led out of
					 * the export to it */
	char		   *left;	/* owned: the rest of it, instead, once
					 * it led out of that export */
	/* Where it leads to a file system that is not open: */
	struct vfs_child    at;		/* path owned; NULL: nowhere */
	struct vfs_handle   dir;	/* in this directory of exp */
	struct vfs_node	   *covered;	/* counted: where it goes on if it is
					 * not allowed to enter */
};

/*
 * @path as a string without the slashes at its end.  0; -ENAMETOOLONG; -EINVAL:
 * not an absolute path.
 */
int walk_path(struct xdr_view path, char out[WALK_PATH_MAX + 1]);
/*
 * Finds the export that @path lies in, and the caller.  Waits only if
 * @c->may_wait.  0; -EAGAIN: call it on a worker, because it has to ask a name
 * service or open the export; -ENODEV: nothing is mounted on its mountpoint; or
 * as walk_path() and export_find_path().
 */
int walk_begin(const struct walk_client *c, struct xdr_view path,
	       struct walk *w);
/*
 * Goes on to the directory at the end of @path; *@out is counted.  Workers
 * only.  0; WALK_MOVES: it is to go on with other workers, by the same call;
 * -ETIMEDOUT: a file system or a name service does not answer, come again; or
 * another -errno.
 */
#define WALK_MOVES	1
int walk_to(const struct walk_client *c, struct xdr_view path, struct walk *w,
	    struct vfs_node **out);
/* True if the next step asks name services or opens a file system; false if it
 * reads w->exp, whose disk can be slow. */
bool walk_opens(const struct walk *w);
void walk_end(struct walk *w);
