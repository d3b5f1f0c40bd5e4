/* SPDX-License-Identifier: BSD-2-Clause */
/* enter - the export that a path, or a mount point, leads to. */
#include "exports/children.h"

#include <errno.h>
#include <string.h>

#include "lib/rcu.h"

/* Returns the rest of @path below @export; NULL: @path does not lie in it.
 * Ignores empty components and "." of @path. */
static const char *below(const char *export, const char *path)
{
	for (;;) {
		size_t len;

		while (*path == '/' || (*path == '.' && path[1] == '/'))
			path++;
		if (*path == '.' && path[1] == '\0')
			path++;
		export += *export == '/';
		if (!*export)
			return path;
		len = strcspn(export, "/");
		if (strncmp(export, path, len) != 0 ||
		    (path[len] && path[len] != '/'))
			return NULL;
		export += len;
		path += len;
	}
}

static const struct export *find_longest(const struct export_set *set,
					 const char *path, const char **rest)
{
	const struct export *best = NULL;

	for (unsigned i = 0; i < set->nexports; i++) {
		const struct export *e = set->exports[i];
		const char *left = below(e->path, path);

		if (left && (!best || strlen(e->path) > strlen(best->path))) {
			best = e;
			*rest = left;
		}
	}
	return best;
}

/* The child of the entry that @path lies in, if that has a mountpoint. */
static struct child *child_of_path(struct export_table *t, const char *path)
{
	struct child *child = NULL;
	const struct export_set *set;
	const struct export *e;
	const char *rest;

	rcu_enter();
	set = t->current;
	e = set ? find_longest(set, path, &rest) : NULL;
	if (e && e->mountpoint && !e->id_taken)
		child = children_find(t->children, e->id);
	rcu_exit();
	return child;
}

int export_find_path(struct export_table *t, const char *path,
		     const struct export_peer *peer, struct export_tree **out,
		     struct export_opts *opts, const char **rest)
{
	const struct export_set *set;
	const struct export *e;
	int err = -ENOENT;

	rcu_enter();
	set = t->current;
	e = set && *path == '/' ? find_longest(set, path, rest) : NULL;
	if (e)
		err = export_admit(t, set, e, peer, opts, out);
	if (err == 0)
		ref_get(&(*out)->ref);
	rcu_exit();
	return err;
}

int export_reach_path(struct export_table *t, const char *path,
		      const struct export_peer *peer, struct export_tree **out,
		      struct export_opts *opts, const char **rest)
{
	struct child *child;
	int err;

	export_resolve(t, peer->addr);
	err = export_find_path(t, path, peer, out, opts, rest);
	child = err == -EAGAIN ? child_of_path(t, path) : NULL;
	if (!child)
		return err;
	err = export_open_child(t, child, peer);
	if (err == 0)
		err = export_find_path(t, path, peer, out, opts, rest);
	return err == -EAGAIN ? -ETIMEDOUT : err;
}

/* True if @e, perhaps reached by a symbolic link, is the mount at @at.  An
 * export that is not open is compared by its mountpoint; opening it shows
 * whether it matches.  But an entry for a directory below its mountpoint does
 * not match. */
static bool is_mount_of(struct export_table *t, const struct export *e,
			const struct vfs_child *at)
{
	const struct export_tree *x = tree_of_export(t, e);
	const char *rest;

	if (x && x->mounted)
		return at->mark && x->fs->mark == at->mark;
	if (!e->mountpoint || e->id_taken ||
	    strcmp(e->mountpoint, at->path) != 0)
		return false;
	rest = below(e->mountpoint, e->path);
	return !rest || !*rest;
}

/* The entry of @at, by its path or, because an entry's path can be a symbolic
 * link, by its mount; or NULL.  In an RCU section. */
static const struct export *find_mount(struct export_table *t,
				       const struct export_set *set,
				       const struct vfs_child *at)
{
	const struct export *e = export_set_find(set, at->path);

	for (unsigned i = 0; !e && i < set->nexports; i++)
		if (is_mount_of(t, set->exports[i], at))
			e = set->exports[i];
	return e;
}

/* The child of that entry, if it has a mountpoint. */
static struct child *child_of_mount(struct export_table *t,
				    const struct vfs_child *at)
{
	const struct export_set *set;
	const struct export *e;
	struct child *child = NULL;

	rcu_enter();
	set = t->current;
	e = set ? find_mount(t, set, at) : NULL;
	if (e && e->mountpoint && !e->id_taken)
		child = children_find(t->children, e->id);
	rcu_exit();
	return child;
}

/* The entry of @at's path, counted.  -ENOENT: no such entry. */
static int enter_export(struct export_table *t, bool crosses,
			const struct vfs_child *at,
			const struct export_peer *peer,
			struct export_tree **out)
{
	const struct export_set *set;
	const struct export *e;
	struct export_opts opts;
	struct export_tree *in;
	int err = -ENOENT;

	rcu_enter();
	set = t->current;
	e = set ? find_mount(t, set, at) : NULL;
	if (e)
		err = export_admit(t, set, e, peer, &opts, &in);
	if (err == -EACCES || (err == 0 && in->fs->mark != at->mark) ||
	    ((err == 0 || err == -EKEYREJECTED) &&
	     !crosses && !at->is_part && !opts.nohide))
		err = -EXDEV;
	if (err == 0) {
		ref_get(&in->ref);
		*out = in;
	}
	rcu_exit();
	return err;
}

int export_enter_open(struct export_table *t, const struct export_tree *from,
		      bool crosses, const struct vfs_child *at,
		      const struct export_peer *peer, struct export_tree **out)
{
	int err = enter_export(t, crosses, at, peer, out);

	if (err == -ENOENT && (crosses || at->is_part))
		return children_enter_open(t->children, from, at, out);
	if (err == -EKEYREJECTED)
		return -EACCES;
	return err == 0 || err == -EAGAIN || err == -ETIMEDOUT ? err : -EXDEV;
}

int export_enter(struct export_table *t, const struct export_tree *from,
		 bool crosses, const struct vfs_child *at,
		 const struct vfs_handle *dir, const struct export_peer *peer,
		 struct export_tree **out)
{
	int err = enter_export(t, crosses, at, peer, out);
	struct child *child;

	if (err == -EAGAIN) {
		export_resolve(t, peer->addr);
		child = child_of_mount(t, at);
		err = child ? export_open_child(t, child, peer) : 0;
		if (err == 0)
			err = enter_export(t, crosses, at, peer, out);
	}
	if (err == -ENOENT && (crosses || at->is_part))
		err = children_enter(t->children, from, at, dir, out);
	switch (err) {
	case 0:
	case -ETIMEDOUT:
	case -EREMCHG:
		return err;
	/* Going on in the directory below would hide the reason. */
	case -EKEYREJECTED:
		return -EACCES;
	case -EAGAIN:			/* the answers are gone already */
		return -ETIMEDOUT;
	}
	return -EXDEV;
}
