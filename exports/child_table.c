/* SPDX-License-Identifier: BSD-2-Clause */
/* child_table - the known file systems below exports, by id. */
#include "exports/children_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/fail.h"
#include "lib/log.h"
#include "lib/rcu.h"
#include "lib/stats.h"

#define KNOWN_MAX	(CHILD_SLOTS / 4 * 3)

STAT(children_refused, "file systems below exports not entered: too many");

uint32_t children_now(void)
{
	return (uint32_t)(clock_ns() / NS_PER_S);
}

void child_use(struct child *child)
{
	uint32_t now = children_now();

	if (atomic_load_explicit(&child->used, memory_order_relaxed) != now)
		atomic_store_explicit(&child->used, now, memory_order_relaxed);
}

/* The slot of @id, or the empty one where it would be. */
static struct child *_Atomic *child_slot(struct children *c, uint32_t id)
{
	for (uint32_t i = id;; i++) {
		struct child *_Atomic *slot = &c->slot[i & (CHILD_SLOTS - 1)];
		struct child *child =
			atomic_load_explicit(slot, memory_order_acquire);

		if (!child || child->id == id)
			return slot;
	}
}

struct child *children_find(struct children *c, uint32_t id)
{
	return atomic_load_explicit(child_slot(c, id), memory_order_acquire);
}

struct child *child_at(struct children *c, uint32_t top, const char *path)
{
	for (int i = 0; i < CHILD_SLOTS; i++) {
		struct child *child = atomic_load(&c->slot[i]);
		struct export_tree *e = child ? atomic_load(&child->tree) :
						NULL;

		if (e && child->top == top && strcmp(e->path, path) == 0)
			return child;
	}
	return NULL;
}

struct child *child_add(struct children *c, uint32_t id, uint32_t top)
{
	struct child *child;

	if (c->known >= KNOWN_MAX) {
		stat_inc(children_refused);
		log_limited(LOG_LEVEL_WARN, "more than %d file systems below "
			    "exports: restart to forget old ones", KNOWN_MAX);
		return NULL;
	}
	child = calloc(1, sizeof(*child));
	if (!child)
		return NULL;
	child->id = id;
	child->top = top;
	c->known++;
	/* Pairs with the acquire in child_slot(). */
	atomic_store_explicit(child_slot(c, id), child, memory_order_release);
	return child;
}

/* ---- closing */

void child_close(struct child *child, struct closing *closing)
{
	struct export_tree *e = atomic_load(&child->tree);

	if (!e || closing->n == 2 * CHILD_OPEN_MAX)
		return;
	atomic_store(&child->tree, NULL);
	closing->tree[closing->n++] = e;
}

void closing_end(struct closing *closing)
{
	if (closing->n)
		rcu_wait();		/* a poller might have found them */
	while (closing->n)
		export_put(closing->tree[--closing->n]);
}

void opening_close(struct opening **at, struct closing *closing)
{
	struct opening *o = *at;

	if (closing->n == 2 * CHILD_OPEN_MAX)
		return;
	*at = o->next;
	closing->tree[closing->n++] = o->tree;
	free(o);
}

/* ---- filling */

/* Under the lock: the child of @e, which has a mountpoint. */
static int child_of_export(struct children *c, const struct export *e,
			   struct closing *closing, char **err)
{
	struct child *child = children_find(c, e->id);
	char *path;

	if (!child)
		child = child_add(c, e->id, e->id);
	if (!child)
		return fail_with(err, "%s: '%s': there is no room for "
				   "one more file system that comes and goes",
				   e->where, e->path);
	if (child->top != e->id)
		return fail_with(err, "%s: '%s' has the id of a file system "
				   "below an export; give it another with "
				   "fsid=", e->where, e->path);
	child->is_part = true;
	if (child->path && strcmp(child->path, e->path) == 0)
		return 0;
	path = strdup(e->path);
	if (!path)
		return -ENOMEM;
	child_close(child, closing);
	free(child->path);
	child->path = path;
	return 0;
}

int children_take_exports(struct children *c, const struct export_set *set,
			  char **err)
{
	struct closing closing = { .n = 0 };
	int ret = 0;

	mutex_lock(&c->lock);
	for (unsigned i = 0; i < set->nexports && ret == 0; i++)
		if (set->exports[i]->mountpoint &&
		    !set->exports[i]->id_taken)
			ret = child_of_export(c, set->exports[i], &closing,
					      err);
	mutex_unlock(&c->lock);
	closing_end(&closing);
	return ret;
}

static void child_from_record(void *arg, const struct child_line *line)
{
	struct children *c = arg;
	struct child *child = children_find(c, line->id);

	if (!child)
		child = child_add(c, line->id, line->top);
	if (!child)
		return;
	free(child->path);
	child->path = strdup(line->path);
	child->above = line->above;
	child->dir = line->dir;
	child->is_part = line->is_part;
}

void children_free(struct children *c)
{
	for (int i = 0; i < CHILD_SLOTS; i++) {
		struct child *child = atomic_load(&c->slot[i]);

		if (child)
			free(child->path);
		free(child);
	}
	pthread_mutex_destroy(&c->lock);
	free(c);
}

int children_create(struct export_table *t, struct children **out)
{
	struct children *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->table = t;
	pthread_mutex_init(&c->lock, NULL);
	err = child_record_open(t->state_dir, KNOWN_MAX / 2, child_from_record,
				c, &c->record);
	if (err < 0)
		children_free(c);
	else
		*out = c;
	return err;
}

struct export_tree *tree_of_export(struct export_table *t,
				   const struct export *e)
{
	struct child *child;

	if (e->tree || e->id_taken)
		return e->tree;
	child = children_find(t->children, e->id);
	/* Pairs with the release in child_adopt(). */
	return child ? atomic_load_explicit(&child->tree,
					    memory_order_acquire) : NULL;
}
