/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cache - the nodes in use, by handle.
 *
 * Look-ups run under RCU and take a reference if there still is one to
 * take; the cache gives up its own only after a node left the table.  A
 * node that was forgotten while someone uses it lives on beside the one
 * that a later look-up makes: both name the same file.
 *
 * A sweep looks at every node once a tick, a few at a time under the lock.  It
 * is a job of the crew, since it syncs files; there is none while there are no
 * nodes.
 */
#include "vfs/posix/handle.h"
#include "vfs/posix/places.h"

#include <errno.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/rcu.h"

STAT(posix_node_idle, "unused files closed");
STAT(posix_node_evicted, "files closed to make room for others");
STAT(posix_fds_short, "opens that failed for lack of descriptors");
STAT(posix_fds_full, "opens refused because an export had used its share of "
     "descriptors");

#define IDLE_MS		5000
#define IDLE_TICKS	4
/* A file with data that may not be on disk stays longer, for a COMMIT. */
#define DIRTY_FACTOR	6
/* A file that can't be opened again stays as long as clients hold back written
 * data: Linux does for 35 seconds. */
#define CLOSED_FACTOR	2
#define SWEEP_BATCH	64
/* An idle export has few buckets.  More nodes than CHAIN_MAX for each don't
 * wait for the tick. */
#define MIN_BUCKETS	64
#define MAX_BUCKETS	65536
#define CHAIN_MAX	4
#define MAX_FDS		262144
/* A worker waits so long for the sweep to close a file. */
#define ROOM_NS		NS_PER_S

static uint64_t key(const struct vfs_handle *h)
{
	return hash_bytes(h->data, posix_handle_key(h));
}

/* This thread closes files to make room for its own. */
static _Thread_local bool makes_room;
/* This thread sweeps: nothing else makes room for it. */
static _Thread_local bool sweeps;

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

struct posix_node *posix_cache_find(struct posix_cache *c,
				    const struct vfs_handle *h)
{
	struct cds_lfht_node *hash;
	struct cds_lfht_iter iter;
	struct posix_node *n = NULL;

	rcu_enter();
	cds_lfht_lookup(c->hash, key(h), cache_match, h, &iter);
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

static void evict_idle(struct posix_cache *c);

struct posix_node *posix_cache_enter(struct posix_cache *c,
				     struct posix_node *n)
{
	struct posix_node *first = n;
	struct cds_lfht_node *hash;

	evict_idle(c);
	cds_lfht_node_init(&n->hash);
	cache_touch(c, n);
	mutex_lock(&c->lock);
	rcu_enter();
	rcu_published(PUBLISHED);
	hash = cds_lfht_add_unique(c->hash, key(&n->handle), cache_match,
				   &n->handle, &n->hash);
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

/* Called and returns with the lock held. */
static void free_dying(struct posix_cache *c)
{
	struct posix_node *n;

	while (!cds_list_empty(&c->dying)) {
		n = cds_list_first_entry(&c->dying, struct posix_node, link);
		cds_list_del(&n->link);
		mutex_unlock(&c->lock);
		posix_node_free(&n->node);
		mutex_lock(&c->lock);
	}
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

/* True if only the cache refers to it.  (Another thread may just be about to,
 * which is harmless.) */
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

/*
 * Syncs a dirty node while look-ups still find it, so that COMMITs of its
 * file go through it and are told of an error.  Takes it out if nobody used
 * it meanwhile.  The caller's reference is put.
 */
static bool sync_and_take_out(struct posix_cache *c, struct posix_node *n)
{
	bool gone;

	posix_node_flush_idle(n);
	mutex_lock(&c->lock);
	gone = n->cached && !n->dirty && atomic_load(&n->node.refs) == 2;
	if (gone)
		take_out(c, n);
	mutex_unlock(&c->lock);
	vfs_node_put(&n->node);
	if (gone)
		vfs_node_put(&n->node);
	return gone;
}

/* Files were closed. */
static void tell_room(struct posix_cache *c)
{
	mutex_lock(&c->lock);
	c->stuck = false;
	pthread_cond_broadcast(&c->closed);
	mutex_unlock(&c->lock);
}

/*
 * Looks at up to @max nodes, from the oldest; takes out those not used for
 * @age ticks (some of them longer: stay()).  Dirty ones are synced first.
 * Returns how many it looked at.
 */
static long cache_sweep(struct posix_cache *c, long max, uint32_t age,
			uint32_t dirty_age, long *closed)
{
	uint32_t tick = atomic_load(&c->tick);
	struct posix_node *victim[SWEEP_BATCH], *dirty[SWEEP_BATCH];
	long seen, nvictims = 0, ndirty = 0;

	mutex_lock(&c->lock);
	for (seen = 0; seen < max && seen < SWEEP_BATCH && seen < c->count;
	     seen++) {
		struct posix_node *n = look_at_next(c);
		bool is_dirty = n->dirty;
		uint32_t old = stay(n, is_dirty, age, dirty_age);
		/* It may have been used since @tick was read. */
		int32_t idle = MAX((int32_t)(tick - n->used), 0);

		if (!unused(n) || (uint32_t)idle < old)
			continue;
		if (is_dirty) {
			vfs_node_get(&n->node);
			dirty[ndirty++] = n;
		} else {
			victim[nvictims++] = n;
		}
	}
	for (long i = 0; i < nvictims; i++)
		take_out(c, victim[i]);
	mutex_unlock(&c->lock);
	for (long i = 0; i < nvictims; i++)
		vfs_node_put(&victim[i]->node);
	*closed += nvictims;
	for (long i = 0; i < ndirty; i++)
		if (sync_and_take_out(c, dirty[i])) {
			++*closed;
			tell_room(c);
		}
	return seen;
}

/* Dirty files are left to the sweeper, since closing them means to wait for
 * storage and the caller may not. */
static void press(struct posix_cache *c)
{
	mutex_lock(&c->lock);
	c->pressed = true;
	crew_run(&c->sweep);
	mutex_unlock(&c->lock);
}

bool posix_cache_makes_room(void)
{
	return makes_room;
}

static struct posix_fs *fs_of(struct posix_cache *c)
{
	return container_of(c, struct posix_fs, cache);
}

static long nfds_of(struct posix_cache *c)
{
	return atomic_load_explicit(&c->nfds, memory_order_relaxed);
}

/* True if the export has all that it may have. */
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
	bool before = makes_room;
	long closed = 0;

	if (likely(!posix_cache_full(c)))
		return;
	makes_room = true;
	for (uint32_t age = 3; age-- > 0 && closed == 0;)
		cache_sweep(c, SWEEP_BATCH, age, UINT32_MAX, &closed);
	makes_room = before;
	stat_add(posix_node_evicted, closed);
	if (!closed)
		press(c);
}

/* The files that the sweep closes may need a disk that hangs, so the wait is
 * bounded, and no thread waits after one did in vain. */
static void wait_for_sweep(struct posix_cache *c)
{
	uint64_t until = clock_ns() + ROOM_NS;
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
	evict_idle(c);
	if (likely(!at_limit(c)) || sweeps)
		return 0;
	if (!thread_must_not_wait)
		wait_for_sweep(c);
	if (!at_limit(c))
		return 0;
	stat_inc(posix_fds_full);
	log_limited(LOG_LEVEL_WARN, "files of device %u:%u use the export's "
		    "whole share of descriptors: calls that open more get "
		    "JUKEBOX until some are closed",
		    major(fs_of(c)->dev), minor(fs_of(c)->dev));
	return -ETIMEDOUT;
}

void posix_cache_wake(struct posix_cache *c)
{
	crew_run(&c->sweep);
}

bool posix_cache_squeeze(struct posix_cache *c)
{
	long closed = 0;
	long left;

	stat_inc(posix_fds_short);
	mutex_lock(&c->lock);
	left = c->count;
	mutex_unlock(&c->lock);
	makes_room = true;
	while (left > 0 && closed == 0) {
		long n = cache_sweep(c, left, 0, UINT32_MAX, &closed);

		if (n == 0)
			break;
		left -= n;
	}
	makes_room = false;
	stat_add(posix_node_evicted, closed);
	if (!closed)
		press(c);
	return closed > 0;
}

/* One tick: looks at every node once.  @pressed: all unused ones may go. */
static void sweep_all(struct posix_cache *c, bool pressed)
{
	uint32_t age = pressed ? 0 : IDLE_TICKS;
	long left, n, closed = 0;

	mutex_lock(&c->lock);
	left = c->count;
	mutex_unlock(&c->lock);
	for (; left > 0; left -= n) {
		n = cache_sweep(c, left, age, age * DIRTY_FACTOR, &closed);
		if (closed)
			tell_room(c);
		if (n == 0 || (pressed && closed && !posix_cache_full(c)))
			break;
	}
	if (pressed)
		stat_add(posix_node_evicted, closed);
	else
		stat_add(posix_node_idle, closed);
}

/* Under the lock.  True: it is time to look at all nodes.  The first node's
 * tick is a whole one. */
static bool tick_came(struct posix_cache *c)
{
	uint64_t now = clock_ns();
	bool is_first = c->next_tick == 0;

	if (now < c->next_tick)
		return false;
	c->next_tick = now + c->idle_ms * 1ull * NS_PER_MS / IDLE_TICKS;
	return !is_first;
}

/* As many buckets as there are nodes. */
static void fit_buckets(struct posix_cache *c)
{
	long n = MIN_BUCKETS, was;

	mutex_lock(&c->lock);
	was = c->buckets;
	while (n < c->count && n < MAX_BUCKETS)
		n *= 2;
	/* Not for a few more or less. */
	if (n < was && n * 4 > was)
		n = was;
	c->buckets = n;
	mutex_unlock(&c->lock);
	if (n != was)
		cds_lfht_resize(c->hash, (unsigned long)n);
}

static uint64_t run_sweep(struct crew_job *job)
{
	struct posix_cache *c = container_of(job, struct posix_cache, sweep);
	bool tick, pressed;

	fit_buckets(c);
	mutex_lock(&c->lock);
	free_dying(c);
	tick = tick_came(c);
	pressed = c->pressed;
	c->pressed = false;
	mutex_unlock(&c->lock);
	if (tick) {
		atomic_fetch_add(&c->tick, 1);
		posix_rolls_age(fs_of(c));
	}
	sweeps = true;
	if (tick || pressed)
		sweep_all(c, pressed);
	sweeps = false;
	mutex_lock(&c->lock);
	if (c->count == 0 && !posix_rolls_any(fs_of(c)))
		c->next_tick = 0;
	mutex_unlock(&c->lock);
	/* If a node comes now, it asks for another run. */
	return c->next_tick ? c->next_tick : CREW_IDLE;
}

static long descriptor_share(void)
{
	long n = fds_limit() / 4;

	n = MIN(n, (long)MAX_FDS);
	return MAX(n, 16l);
}

int posix_cache_init(struct posix_cache *c, const struct posix_options *o)
{
	int err;

	c->max_fds = o->max_files ? (long)o->max_files : descriptor_share();
	c->idle_ms = o->idle_ms ? (uint32_t)o->idle_ms : IDLE_MS;
	CDS_INIT_LIST_HEAD(&c->nodes);
	CDS_INIT_LIST_HEAD(&c->dying);
	c->buckets = MIN_BUCKETS;
	c->hash = cds_lfht_new(MIN_BUCKETS, MIN_BUCKETS, MAX_BUCKETS, 0, NULL);
	if (!c->hash)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->closed, NULL);
	err = crew_job_init(&c->sweep, run_sweep, "posix-sweep");
	if (err < 0)
		cds_lfht_destroy(c->hash, NULL);
	return err;
}

void posix_cache_fini(struct posix_cache *c)
{
	struct posix_node *n, *next;

	crew_cancel(&c->sweep);
	mutex_lock(&c->lock);
	free_dying(c);
	mutex_unlock(&c->lock);
	cds_list_for_each_entry_safe(n, next, &c->nodes, link) {
		/* The tree's next write verifier is another one, so clients
		 * send uncommitted data again, and we need not wait for a
		 * disk. */
		atomic_store(&n->dirty, false);
		take_out(c, n);
		vfs_node_put(&n->node);
	}
	cds_lfht_destroy(c->hash, NULL);
	pthread_cond_destroy(&c->closed);
	pthread_mutex_destroy(&c->lock);
}
