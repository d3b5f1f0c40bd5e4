/* SPDX-License-Identifier: BSD-2-Clause */
/* children - file systems below an export, opened when a client comes. */
#include "exports/children_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/rcu.h"
#include "lib/stats.h"
#include "lib/util.h"

#define LOOK_S		2		/* for idle and unmounted ones */
#define WAIT_S		2

STAT(children_opened, "file systems below exports that were opened");

/* An entry of @set names @e's mount, perhaps by a symbolic link. */
static bool is_exports(struct export_table *t, const struct export_set *set,
		       const struct export_tree *e)
{
	const struct export_tree *x;

	for (unsigned i = 0; e->fs->mark && i < set->nexports; i++) {
		x = tree_of_export(t, set->exports[i]);
		if (x && x != e && x->mounted &&
		    x->fs->mark == e->fs->mark)
			return true;
	}
	return false;
}

/*
 * Under the lock, for a child of @top that is in the export @above.  False if
 * @set has an entry for a file system between @top and the child: a look-up
 * comes to the child by the rules of that entry, or not at all.
 */
static bool is_way_free(struct children *c, const struct export_set *set,
			uint32_t top, uint32_t above)
{
	for (int n = 0; above != top && n < CHILD_OPEN_MAX; n++) {
		const struct child *outer = children_find(c, above);

		if (!outer || !outer->path || outer->top != top)
			break;
		if (export_set_find(set, outer->path))
			return false;
		above = outer->above;
	}
	return true;
}

/* False if @set has an entry with the path, the id or the mount of @e, or an
 * entry between @e, which is in the export @above, and its top; or if the id of
 * its top now has another path.  A child of an entry with a mountpoint is
 * wanted as long as the entry says the same. */
static bool is_wanted(struct export_table *t, const struct export_tree *e,
		      uint32_t above, const struct export_set *set)
{
	const struct export *top = export_set_find_id(set, e->top);
	const struct export *named = export_set_find(set, e->path);

	return top && tree_belongs(e, top) &&
	       (named == top || (!named && !export_set_find_id(set, e->id) &&
				 !is_exports(t, set, e) &&
				 is_way_free(t->children, set, e->top, above)));
}

/* is_wanted() in the current snapshot. */
static bool is_wanted_now(struct export_table *t, const struct export_tree *e,
			  uint32_t above)
{
	const struct export_set *set;
	bool room;

	rcu_enter();
	set = t->current;
	room = set && is_wanted(t, e, above, set);
	rcu_exit();
	return room;
}

/* Under the lock: is_way_free() for @child in the current snapshot. */
static bool is_way_free_now(struct children *c, const struct child *child)
{
	const struct export_set *set;
	bool is_free;

	rcu_enter();
	set = c->table->current;
	is_free = set && is_way_free(c, set, child->top, child->above);
	rcu_exit();
	return is_free;
}

/*
 * Under the lock: closes children that are no longer mounted there.  Also
 * closes a child that no running call and no lock counts, if it had no call
 * since @before, or if @set is given and has no room for it.  With @force
 * children without room are closed even if counted.
 */
static void close_unused(struct children *c, uint32_t before,
			 const struct export_set *set, bool force,
			 struct closing *closing)
{
	for (int i = 0; i < CHILD_SLOTS; i++) {
		struct child *child = atomic_load(&c->slot[i]);
		struct export_tree *e = child ? atomic_load(&child->tree) :
						NULL;
		bool unwanted = e && set &&
				!is_wanted(c->table, e, child->above, set);

		if (e && (tree_has_moved(e) || (unwanted && force) ||
			  (!ref_is_shared(&e->ref) &&
			   (unwanted || child->used < before))))
			child_close(child, closing);
	}
	for (struct opening **o = &c->opening; *o;) {
		struct opening *was = *o;

		if (was->since < before)
			opening_close(o, closing);
		if (*o == was)
			o = &was->next;
	}
}

void children_close(struct children *c, const struct export_set *set,
		    bool force)
{
	struct closing closing = { .n = 0 };

	mutex_lock(&c->lock);
	close_unused(c, children_now(), set, force, &closing);
	mutex_unlock(&c->lock);
	closing_end(&closing);
}

static uint64_t keep_children(struct crew_job *job)
{
	struct children *c = container_of(job, struct children, keeper);
	/* An entry's mount that comes late takes over from a child. */
	const unsigned came = atomic_load(&c->table->late_mounts);
	uint32_t now = children_now(), idle = c->table->idle_s;
	struct closing closing = { .n = 0 };

	mutex_lock(&c->lock);
	rcu_enter();
	/* The machine might have been up for less than that. */
	close_unused(c, now > idle ? now - idle : 0,
		     came == c->came ? NULL : c->table->current, true,
		     &closing);
	rcu_exit();
	c->came = came;
	mutex_unlock(&c->lock);
	closing_end(&closing);
	return clock_ns() + LOOK_S * 1ull * NS_PER_S;
}

/* ---- opening */

/*
 * Under the lock: makes room for one more by closing the least recently used
 * child.  A child that is counted stays open: closing it would end its locks.
 * False: no room.
 */
static bool make_room(struct children *c, struct closing *closing)
{
	struct child *oldest = NULL;
	unsigned n = 0;

	for (struct opening *o = c->opening; o; o = o->next)
		n++;
	for (int i = 0; i < CHILD_SLOTS; i++) {
		struct child *child = atomic_load(&c->slot[i]);
		struct export_tree *e = child ? atomic_load(&child->tree) :
						NULL;

		if (!e)
			continue;
		n++;
		if (!ref_is_shared(&e->ref) &&
		    (!oldest || child->used < oldest->used))
			oldest = child;
	}
	if (n < CHILD_OPEN_MAX)
		return true;
	if (oldest)
		child_close(oldest, closing);
	else
		log_limited(LOG_LEVEL_WARN, "%d file systems below exports are "
			    "in use: no more are entered", CHILD_OPEN_MAX);
	return oldest;
}

/* Sets *@out to a new export at @path, counted, below the entry whose id is
 * @top; or to that entry's own export, if it has this path and a mountpoint.
 * Begins the mount.  -ESTALE: no such entry, or @path has another one. */
static int open_export(struct export_table *t, uint32_t top, const char *path,
		       struct export_tree **out)
{
	struct export_set *set = export_current(t);
	const struct export *e = export_set_find_id(set, top);
	const struct export *named = e ? export_set_find(set, path) : NULL;
	int err = -ESTALE;

	if (e && (!named || (named == e && e->mountpoint)))
		err = tree_open_child(t, e, named ? NULL : path, out);
	export_set_put(set);
	return err;
}

/* Under the lock: begins to mount @path, with the rules of @top. */
static int opening_begin(struct children *c, uint32_t top, const char *path,
			 struct opening **out)
{
	struct opening *o = calloc(1, sizeof(*o));
	int err;

	if (!o)
		return -ENOMEM;
	if (!c->has_keeper) {
		err = crew_job_init(&c->keeper, keep_children, "children");
		if (err < 0)
			goto fail;
		c->has_keeper = true;
		crew_run(&c->keeper);
	}
	err = open_export(c->table, top, path, &o->tree);
	if (err < 0)
		goto fail;
	stat_inc(children_opened);
	o->since = children_now();
	o->next = c->opening;
	c->opening = o;
	*out = o;
	return 0;

fail:
	free(o);
	return err;
}

static struct opening *opening_find(struct children *c, uint32_t top,
				    const char *path)
{
	struct opening *o = c->opening;

	while (o && (o->tree->top != top || strcmp(o->tree->path, path)))
		o = o->next;
	return o;
}

/* Under the lock: the opening of @e, unlinked; NULL: it has ended. */
static struct opening *opening_take(struct children *c,
				    const struct export_tree *e)
{
	struct opening **at = &c->opening, *o;

	while (*at && (*at)->tree != e)
		at = &(*at)->next;
	o = *at;
	if (o)
		*at = o->next;
	return o;
}

/* Ends the opening of @e, which did not become a child, unless it has ended. */
static void opening_fail(struct children *c, struct export_tree *e)
{
	struct opening *o;

	mutex_lock(&c->lock);
	o = opening_take(c, e);
	mutex_unlock(&c->lock);
	if (o)
		export_put(o->tree);
	free(o);
}

/* Waits for @e's file system.  0, -ETIMEDOUT, or how its mount failed. */
static int opening_wait(struct children *c, struct export_tree *e)
{
	const struct export wanted = { .path = e->path, .where = e->path,
				      .tree = e };
	uint64_t until = clock_ns() + WAIT_S * 1ull * NS_PER_S;
	char *text = NULL;
	int err = tree_settle(c->table, NULL, &wanted, until, &text);

	if (err < 0 && err != -ENODEV)	/* open_child() logs */
		log_limited(LOG_LEVEL_INFO, "%s", text ? text : e->path);
	free(text);
	if (err == 0 && !e->mounted)
		return -ETIMEDOUT;
	return err;
}

/* Under the lock: the tree at @path, mounted or not, counted. */
static int path_get(struct children *c, uint32_t top, const char *path,
		    struct closing *closing, struct export_tree **out)
{
	struct child *child = child_at(c, top, path);
	struct opening *o = opening_find(c, top, path);
	int err = 0;

	if (!child && !o)
		err = make_room(c, closing) ?
		      opening_begin(c, top, path, &o) : -ETIMEDOUT;
	if (err < 0)
		return err;
	*out = child ? atomic_load(&child->tree) : o->tree;
	ref_get(&(*out)->ref);
	return 0;
}

/* The export at @path, mounted and counted.  Errors: as opening_wait(), and of
 * open_export(). */
static int open_path(struct children *c, uint32_t top, const char *path,
		     struct export_tree **out)
{
	struct closing closing = { .n = 0 };
	struct export_tree *e = NULL;
	int err;

	mutex_lock(&c->lock);
	err = path_get(c, top, path, &closing, &e);
	mutex_unlock(&c->lock);
	closing_end(&closing);
	if (err < 0)
		return err;
	err = e->mounted ? 0 : opening_wait(c, e);
	if (err == 0) {
		*out = e;
		return 0;
	}
	if (err != -ETIMEDOUT)
		opening_fail(c, e);
	export_put(e);
	return err;
}

/* Under the lock: sets where @child is.  True: it was not known to be there. */
static bool child_place(struct child *child, const struct child_line *line)
{
	bool same = child->path && strcmp(child->path, line->path) == 0 &&
		    child->above == line->above &&
		    child->is_part == line->is_part &&
		    child->dir.len == line->dir.len &&
		    memcmp(child->dir.data, line->dir.data, line->dir.len) == 0;
	char *path = same ? NULL : strdup(line->path);

	if (!path)
		return false;
	free(child->path);
	child->path = path;
	child->above = line->above;
	child->is_part = line->is_part;
	child->dir = line->dir;
	return true;
}

/*
 * Makes @e, mounted and counted by the caller, a child.  @line: where it was
 * found, to be noted; NULL: where it is known to be.
 */
static int child_adopt(struct children *c, struct export_tree *e,
		       const struct child_line *line)
{
	struct closing closing = { .n = 0 };
	struct child *child;
	struct opening *o;
	bool news = false;
	int err = 0;

	mutex_lock(&c->lock);
	o = opening_take(c, e);
	child = children_find(c, e->id);
	if (!child && line)
		child = child_add(c, e->id, e->top);
	if (!child)
		err = line ? -ENOSPC : -ESTALE;
	else if (child->top != e->top ||
		 (child->path && strcmp(child->path, e->path) != 0) ||
		 !is_wanted_now(c->table, e, line ? line->above :
						    child->above))
		err = -EEXIST;
	if (err == 0 && line)
		news = child_place(child, line);
	if (err == 0 && o) {
		child_close(child, &closing);
		child_use(child);
		/* Pairs with the acquire in export_borrow(). */
		atomic_store_explicit(&child->tree, e, memory_order_release);
		/* An entry's own export, which can be the mount of other
		 * children. */
		if (e->id == e->top)
			atomic_fetch_add(&c->table->late_mounts, 1);
		free(o);
		o = NULL;
	}
	mutex_unlock(&c->lock);
	closing_end(&closing);
	if (o)
		export_put(o->tree);
	free(o);
	if (news)
		child_record_add(c->record, line);
	return err;
}

/* The open child at @at, counted, if the same file system is still mounted
 * there.  Else closes it. */
static struct export_tree *find_open(struct children *c,
				     const struct export_tree *from,
				     const struct vfs_child *at)
{
	struct closing closing = { .n = 0 };
	struct export_tree *found = NULL;
	struct child *child;

	mutex_lock(&c->lock);
	child = child_at(c, from->top, at->path);
	if (child)
		found = atomic_load(&child->tree);
	if (found && found->fs->mark == at->mark) {
		child_use(child);
		ref_get(&found->ref);
	} else if (found) {
		child_close(child, &closing);
		found = NULL;
	}
	mutex_unlock(&c->lock);
	closing_end(&closing);
	return found;
}

int children_enter_open(struct children *c, const struct export_tree *from,
			const struct vfs_child *at, struct export_tree **out)
{
	*out = find_open(c, from, at);
	return *out ? 0 : -EAGAIN;
}

int children_enter(struct children *c, const struct export_tree *from,
		   const struct vfs_child *at, const struct vfs_handle *dir,
		   struct export_tree **out)
{
	const struct child *outer = children_find(c, from->id);
	struct child_line line = {
		.top = from->top, .above = from->id, .dir = *dir,
		.path = at->path,
		.is_part = at->is_part && (!outer || outer->is_part),
	};
	struct export_tree *e = find_open(c, from, at);
	int err = 0;

	if (!e)
		err = open_path(c, from->top, at->path, &e);
	if (err < 0)
		return err;
	if (e->fs->mark != at->mark)
		err = -EREMCHG;
	line.id = e->id;
	if (err == 0)
		err = child_adopt(c, e, &line);
	if (err < 0) {
		opening_fail(c, e);
		export_put(e);
		return err;
	}
	*out = e;
	return 0;
}

int children_open(struct children *c, struct child *child)
{
	struct export_tree *e;
	char *path;
	int err;

	mutex_lock(&c->lock);
	path = child->path && is_way_free_now(c, child) ? strdup(child->path) :
							  NULL;
	mutex_unlock(&c->lock);
	if (!path)
		return -ESTALE;
	err = open_path(c, child->top, path, &e);
	free(path);
	if (err < 0)
		return err == -ETIMEDOUT || err == -ENODEV ? err : -ESTALE;
	if (e->id == child->id)
		err = child_adopt(c, e, NULL) < 0 ? -ESTALE : 0;
	else		/* unless the other one is gone by now */
		err = tree_has_moved(e) || opening_wait(c, e) < 0 ? -ETIMEDOUT :
								    -ESTALE;
	if (err < 0)
		opening_fail(c, e);
	export_put(e);
	return err;
}

int children_above(struct children *c, const struct child *child, uint32_t *id,
		   struct vfs_handle *dir)
{
	mutex_lock(&c->lock);
	*id = child->above;
	*dir = child->dir;
	mutex_unlock(&c->lock);
	return dir->len ? 0 : -ENOENT;
}

void children_destroy(struct children *c)
{
	struct closing closing = { .n = 0 };

	if (c->has_keeper)
		crew_cancel(&c->keeper);
	for (int i = 0; i < CHILD_SLOTS; i++) {
		struct child *child = atomic_load(&c->slot[i]);

		if (child)
			child_close(child, &closing);
	}
	while (c->opening)
		opening_close(&c->opening, &closing);
	closing_end(&closing);
	child_record_close(c->record);
	children_free(c);
}
