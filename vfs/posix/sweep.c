/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sweep - closes files that are no longer used.
 *
 * The sweep looks at every node of a cache once a tick, a few at a time.  It is
 * a job of the crew, since it syncs files.  It does not run while the cache is
 * empty.
 */
#include "vfs/posix/cache.h"
#include "vfs/posix/node.h"
#include "vfs/posix/table/places.h"

#include <errno.h>

#include "lib/clock.h"

#define IDLE_MS		5000
#define IDLE_TICKS	4
/* A file with data that might not be on disk stays longer, for a COMMIT. */
#define DIRTY_FACTOR	6
/* An idle export has few buckets. */
#define MIN_BUCKETS	64
#define MAX_BUCKETS	65536
#define MAX_FDS		262144

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

/*
 * Dirty files are synced while look-ups still find them.  So a COMMIT of one
 * uses the same node and gets any error.
 */
static void close_dirty(struct posix_cache *c, struct posix_pass *p)
{
	for (long i = 0; i < p->ndirty; i++) {
		posix_node_flush_idle(p->dirty[i]);
		if (posix_cache_drop(c, p->dirty[i], p))
			posix_cache_tell_room(c);
	}
}

/* One tick: looks at every node once.  @pressed: unused ones of any age can
 * go. */
static void sweep_all(struct posix_cache *c, bool pressed)
{
	struct posix_pass p = { .age = pressed ? 0 : IDLE_TICKS,
				.idle = !pressed };
	long left, n;

	p.dirty_age = p.age * DIRTY_FACTOR;
	mutex_lock(&c->lock);
	left = c->count;
	mutex_unlock(&c->lock);
	for (; left > 0; left -= n) {
		n = posix_cache_pass(c, left, &p);
		close_dirty(c, &p);
		if (p.closed)
			posix_cache_tell_room(c);
		if (n == 0 || (pressed && p.closed && !posix_cache_full(c)))
			break;
	}
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

/* As many buckets as nodes. */
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
	struct posix_fs *fs = container_of(c, struct posix_fs, cache);
	bool tick, pressed, rolls = false;

	fit_buckets(c);
	mutex_lock(&c->lock);
	free_dying(c);
	tick = tick_came(c);
	pressed = c->pressed;
	c->pressed = false;
	mutex_unlock(&c->lock);
	if (tick)
		atomic_fetch_add(&c->tick, 1);
	if (fs->table)
		rolls = posix_table_age(fs->table);
	posix_sweeps = true;
	if (tick || pressed)
		sweep_all(c, pressed);
	posix_sweeps = false;
	mutex_lock(&c->lock);
	if (c->count == 0 && !rolls)
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
		posix_cache_forget(c, n);
	}
	cds_lfht_destroy(c->hash, NULL);
	pthread_cond_destroy(&c->closed);
	pthread_mutex_destroy(&c->lock);
}
