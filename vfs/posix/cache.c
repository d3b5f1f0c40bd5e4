/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cache - the nodes in use, by handle.
 *
 * Look-ups run under RCU and take a reference unless the count is already zero;
 * the cache drops its reference only after the node left the table.  If a node
 * is forgotten while in use, a later look-up can make a second node of the same
 * file.
 *
 * Here nodes are only closed to make room for others; sweep.c closes
 * unused ones.
 */
#include "vfs/posix/cache.h"

#include <errno.h>
#include <sys/sysmacros.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/rcu.h"

STAT(posix_node_idle, "unused files closed");
STAT(posix_node_evicted, "files closed to make room for others");
STAT(posix_fds_short, "opens that failed for lack of descriptors");
STAT(posix_fds_full, "opens refused because an export had used its share of "
     "descriptors");

/* A file that can't be opened again stays as long as clients hold back written
 * data: Linux does for 35 seconds. */
#define CLOSED_FACTOR	2
/* More nodes than these for each bucket don't wait for the tick. */
#define CHAIN_MAX	4

_Atomic unsigned posix_room_ms = 1000;
_Thread_local bool posix_makes_room;
_Thread_local bool posix_sweeps;

/* The tag of what the table publishes. */
#define PUBLISHED	posix_cache_find

static int cache_match(struct cds_lfht_node *hash, const void *h)
{
	rcu_seen(PUBLISHED);
	return posix_handle_same(
		&container_of(hash, struct posix_node, hash)->handle, h);
}

static void cache_touch(struct posix_cache *c, struct posix_node *n)
{
	uint32_t tick = atomic_load_explicit(&c->tick, memory_order_relaxed);

	if (atomic_load_explicit(&n->used, memory_order_relaxed) != tick)
		atomic_store_explicit(&n->used, tick, memory_order_relaxed);
}

struct posix_node *posix_cache_find(struct posix_fs *fs,
				    const struct vfs_handle *h)
{
	struct posix_cache *c = &fs->cache;
	struct cds_lfht_node *hash;
	struct cds_lfht_iter iter;
	struct posix_node *n = NULL;

	if (posix_handle_is_root(h)) {
		vfs_node_get(&fs->root->node);
		return fs->root;
	}
	rcu_enter();
	cds_lfht_lookup(c->hash, posix_handle_hash(h), cache_match, h, &iter);
	hash = cds_lfht_iter_get_node(&iter);
	if (hash) {
		n = container_of(hash, struct posix_node, hash);
		if (vfs_node_get_unless_zero(&n->node))
			cache_touch(c, n);
		else
			n = NULL;
	}
	rcu_exit();
	return n;
}

/* Under the lock.  The cache's reference is now the caller's to put. */
static void take_out(struct posix_cache *c, struct posix_node *n)
{
	rcu_enter();
	cds_lfht_del(c->hash, &n->hash);
	rcu_exit();
	cds_list_del(&n->link);
	n->cached = false;
	c->count--;
}

struct posix_node *posix_cache_enter(struct posix_cache *c,
				     struct posix_node *n)
{
	struct posix_node *first = n;
	struct cds_lfht_node *hash;

	cds_lfht_node_init(&n->hash);
	cache_touch(c, n);
	mutex_lock(&c->lock);
	rcu_enter();
	rcu_published(PUBLISHED);
	hash = cds_lfht_add_unique(c->hash, posix_handle_hash(&n->handle),
				   cache_match, &n->handle, &n->hash);
	rcu_exit();
	if (hash == &n->hash) {
		vfs_node_get(&n->node);
		n->cached = true;
		cds_list_add_tail(&n->link, &c->nodes);
		if (c->count++ == 0 || c->count == c->buckets * CHAIN_MAX)
			crew_run(&c->sweep);
	} else {
		/* In the table, so the cache's reference is there. */
		first = container_of(hash, struct posix_node, hash);
		vfs_node_get(&first->node);
		cache_touch(c, first);
	}
	mutex_unlock(&c->lock);
	if (first != n)
		vfs_node_put(&n->node);
	return first;
}

void posix_cache_bury(struct posix_cache *c, struct posix_node *n)
{
	mutex_lock(&c->lock);
	cds_list_add_tail(&n->link, &c->dying);
	crew_run(&c->sweep);
	mutex_unlock(&c->lock);
}

void posix_cache_forget(struct posix_cache *c, struct posix_node *n)
{
	bool mine;

	mutex_lock(&c->lock);
	mine = n->cached;
	if (mine)
		take_out(c, n);
	mutex_unlock(&c->lock);
	if (mine)
		vfs_node_put(&n->node);
}

/* True if only the cache refers to it.  (Another thread might just be taking a
 * reference, which is harmless.) */
static bool unused(const struct posix_node *n)
{
	return atomic_load(&n->node.refs) == 1;
}

/* Under the lock: takes the node looked at longest ago, and puts it last. */
static struct posix_node *look_at_next(struct posix_cache *c)
{
	struct posix_node *n = cds_list_first_entry(&c->nodes,
						    struct posix_node, link);

	cds_list_del(&n->link);
	cds_list_add_tail(&n->link, &c->nodes);
	return n;
}

/* Returns the ticks that @n stays while it is unused. */
static uint32_t stay(const struct posix_node *n, bool is_dirty, uint32_t age,
		     uint32_t dirty_age)
{
	if (n->closed_to_owner && dirty_age != UINT32_MAX)
		return dirty_age * CLOSED_FACTOR;
	return is_dirty || n->closed_to_owner ? dirty_age : age;
}

void posix_cache_tell_room(struct posix_cache *c)
{
	mutex_lock(&c->lock);
	c->stuck = false;
	pthread_cond_broadcast(&c->closed);
	mutex_unlock(&c->lock);
}

static void count_closed(struct posix_pass *p, long n)
{
	p->closed += n;
	if (p->idle)
		stat_add(posix_node_idle, n);
	else
		stat_add(posix_node_evicted, n);
}

bool posix_cache_drop(struct posix_cache *c, struct posix_node *n,
		      struct posix_pass *p)
{
	bool gone;

	mutex_lock(&c->lock);
	gone = n->cached && !n->dirty && atomic_load(&n->node.refs) == 2;
	if (gone)
		take_out(c, n);
	mutex_unlock(&c->lock);
	vfs_node_put(&n->node);
	if (!gone)
		return false;
	vfs_node_put(&n->node);
	count_closed(p, 1);
	return true;
}

long posix_cache_pass(struct posix_cache *c, long max, struct posix_pass *p)
{
	uint32_t tick = atomic_load(&c->tick);
	struct posix_node *victim[POSIX_PASS];
	long seen, nvictims = 0;

	p->ndirty = 0;
	mutex_lock(&c->lock);
	for (seen = 0; seen < max && seen < POSIX_PASS && seen < c->count;
	     seen++) {
		struct posix_node *n = look_at_next(c);
		bool is_dirty = n->dirty;
		uint32_t old = stay(n, is_dirty, p->age, p->dirty_age);
		/* It might have been used since @tick was read. */
		int32_t idle = MAX((int32_t)(tick - n->used), 0);

		if (!unused(n) || (uint32_t)idle < old)
			continue;
		if (is_dirty) {
			vfs_node_get(&n->node);
			p->dirty[p->ndirty++] = n;
		} else {
			victim[nvictims++] = n;
		}
	}
	for (long i = 0; i < nvictims; i++)
		take_out(c, victim[i]);
	mutex_unlock(&c->lock);
	for (long i = 0; i < nvictims; i++)
		vfs_node_put(&victim[i]->node);
	count_closed(p, nvictims);
	return seen;
}

/* Closing dirty files waits for storage, which the caller must not do.  So
 * leave them to the sweeper. */
static void press(struct posix_cache *c)
{
	mutex_lock(&c->lock);
	c->pressed = true;
	crew_run(&c->sweep);
	mutex_unlock(&c->lock);
}

static long nfds_of(struct posix_cache *c)
{
	return atomic_load_explicit(&c->nfds, memory_order_relaxed);
}

/* True if the export has used its share of descriptors. */
static bool at_limit(struct posix_cache *c)
{
	return !fds_may(FDS_FILES, nfds_of(c));
}

bool posix_cache_full(struct posix_cache *c)
{
	return nfds_of(c) >= c->max_fds || at_limit(c);
}

/* Each open above the limit closes a few idle files, so the count stays near
 * the limit. */
static void evict_idle(struct posix_cache *c)
{
	struct posix_pass p = { .age = 3, .dirty_age = UINT32_MAX };
	bool before = posix_makes_room;

	posix_makes_room = true;
	while (p.age-- > 0 && p.closed == 0)
		posix_cache_pass(c, POSIX_PASS, &p);
	posix_makes_room = before;
	if (!p.closed)
		press(c);
}

/* The sweep can hang on the disk of a file that it closes, so the wait is
 * bounded, and no thread waits after one did in vain. */
static void wait_for_sweep(struct posix_cache *c)
{
	uint64_t until = clock_ns() + posix_room_ms * NS_PER_MS;
	bool in_time = true;

	mutex_lock(&c->lock);
	while (at_limit(c) && !c->stuck && in_time)
		in_time = cond_wait_until(&c->closed, &c->lock, until);
	if (!in_time && at_limit(c))
		c->stuck = true;
	mutex_unlock(&c->lock);
}

int posix_cache_room(struct posix_cache *c)
{
	const struct posix_fs *fs = container_of(c, struct posix_fs, cache);

	if (likely(!posix_cache_full(c)))
		return 0;
	evict_idle(c);
	if (!at_limit(c) || posix_sweeps)
		return 0;
	if (!thread_must_not_wait)
		wait_for_sweep(c);
	if (!at_limit(c))
		return 0;
	stat_inc(posix_fds_full);
	log_limited(LOG_LEVEL_WARN, "files of device %u:%u use the export's "
		    "whole share of descriptors: calls that open more get "
		    "JUKEBOX until some are closed",
		    major(fs->dev), minor(fs->dev));
	return -ETIMEDOUT;
}

bool posix_cache_squeeze(struct posix_cache *c)
{
	struct posix_pass p = { .dirty_age = UINT32_MAX };
	long left, n;

	stat_inc(posix_fds_short);
	mutex_lock(&c->lock);
	left = c->count;
	mutex_unlock(&c->lock);
	posix_makes_room = true;
	for (; left > 0 && p.closed == 0; left -= n) {
		n = posix_cache_pass(c, left, &p);
		if (n == 0)
			break;
	}
	posix_makes_room = false;
	if (!p.closed)
		press(c);
	return p.closed > 0;
}
