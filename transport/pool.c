/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool - payload buffers: page aligned, in size classes, registered once.
 *
 * Operation: each class has a list of free buffers and grows by a region when
 * that is empty.  Every class gets its first region at the start, so that the
 * others' growth can't starve it for good, and a class that may not grow any
 * more borrows a free buffer from a larger one.  In a small pool first regions
 * are small: a sixteenth of all for each class, and the largest class gets the
 * rest.  Regions are only address space until they are touched.
 */
#include "transport/pool.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "lib/util.h"

STAT(pool_waits, "waits for a payload buffer");
STAT(pool_trims, "unused regions of payload buffers given back");
STAT(pool_regions, "regions of payload buffers taken from the system");

#define HUGE_PAGE	((size_t)2 << 20)

static const struct {
	uint32_t buf_size;
	uint32_t bufs;		/* in a region */
} classes[] = {
	{ 4u << 10, 512 },
	{ 16u << 10, 128 },
	{ 64u << 10, 32 },
	{ 256u << 10, 16 },
	{ POOL_BUF_MAX, 32 },	/* 34 MiB: 17 huge pages */
};

#define NCLASSES	ARRAY_SIZE(classes)

struct region {
	void		*addr;
	size_t		 len;
	struct buf	*bufs;
	uint32_t	 out;		/* buffers of it */
	bool		 used;		/* since the last pool_trim() */
	bool		 trimmed;	/* nothing to give back */
};

struct pool {
	size_t			 max_bytes;

	/*
	 * Guards everything below.  The pool calls observers and serves
	 * requests under it, but calls no ready() under it.
	 */
	pthread_mutex_t		 lock;
	struct buf		*free[NCLASSES];
	size_t			 taken;
	size_t			 out;
	uint32_t		 nregions;
	struct region		 regions[POOL_MAX_REGIONS];
	struct cds_list_head	 observers;
	size_t			 held[POOL_FLOWS];	/* of out */
	size_t			 nparked;
	struct cds_list_head	 parked[NCLASSES][POOL_FLOWS];
};

static unsigned class_of(size_t size)
{
	unsigned c = 0;

	while (classes[c].buf_size < size)
		c++;
	return c;
}

static void *map(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (p != MAP_FAILED)
		return p;
	p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	madvise(p, len, MADV_HUGEPAGE);
	return p;
}

/* Shows the region to all observers; if one refuses it, none keeps it. */
static int show(struct pool *pool, uint32_t i)
{
	struct region *r = &pool->regions[i];
	struct pool_observer *o, *took;
	int err;

	cds_list_for_each_entry(o, &pool->observers, link) {
		err = o->add(o, i, r->addr, r->len);
		if (err)
			goto undo;
	}
	return 0;

undo:
	cds_list_for_each_entry(took, &pool->observers, link) {
		if (took == o)
			break;
		took->del(took, i);
	}
	return err;
}

static void carve(struct pool *pool, unsigned c, uint32_t i, uint32_t n)
{
	struct region *r = &pool->regions[i];

	for (uint32_t k = n; k-- > 0;) {
		struct buf *b = &r->bufs[k];

		b->data = (uint8_t *)r->addr + (size_t)k * classes[c].buf_size;
		b->size = classes[c].buf_size;
		b->region = i;
		b->pool = pool;
		b->size_class = (uint8_t)c;
		b->next = pool->free[c];
		pool->free[c] = b;
	}
}

/* With the lock held. */
static size_t room(const struct pool *pool)
{
	return pool->max_bytes - pool->taken;
}

/*
 * With the lock held: adds a region of at most @most bytes to the class.  A
 * failure is back-pressure, as an empty pool is.
 */
static bool grow(struct pool *pool, unsigned c, size_t most)
{
	struct region *r = &pool->regions[pool->nregions];
	uint32_t n = (uint32_t)MIN((size_t)classes[c].bufs,
				   most / classes[c].buf_size);

	if (n == 0 || pool->nregions == POOL_MAX_REGIONS)
		return false;
	r->len = ALIGN_UP((size_t)n * classes[c].buf_size, HUGE_PAGE);
	r->bufs = calloc(n, sizeof(*r->bufs));
	if (!r->bufs)
		return false;
	r->addr = map(r->len);
	if (!r->addr)
		goto fail_free;
	if (show(pool, pool->nregions) < 0)
		goto fail_unmap;
	carve(pool, c, pool->nregions++, n);
	pool->taken += (size_t)n * classes[c].buf_size;
	stat_inc(pool_regions);
	return true;

fail_unmap:
	munmap(r->addr, r->len);
fail_free:
	free(r->bufs);
	return false;
}

int pool_create(size_t max_bytes, struct pool **out)
{
	struct pool *pool = calloc(1, sizeof(*pool));
	size_t share = max_bytes / 16;

	if (!pool)
		return -ENOMEM;
	pthread_mutex_init(&pool->lock, NULL);
	CDS_INIT_LIST_HEAD(&pool->observers);
	pool->max_bytes = max_bytes;
	for (unsigned c = 0; c < NCLASSES; c++) {
		for (unsigned f = 0; f < POOL_FLOWS; f++)
			CDS_INIT_LIST_HEAD(&pool->parked[c][f]);
		if (c < NCLASSES - 1)
			grow(pool, c, share);
	}
	if (!grow(pool, NCLASSES - 1, room(pool))) {
		pool_destroy(pool);
		return -ENOMEM;
	}
	*out = pool;
	return 0;
}

void pool_destroy(struct pool *pool)
{
	assert(pool->out == 0);
	for (uint32_t i = 0; i < pool->nregions; i++) {
		munmap(pool->regions[i].addr, pool->regions[i].len);
		free(pool->regions[i].bufs);
	}
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

/* With the lock held: returns the class that would serve @c now, or
 * NCLASSES. */
static unsigned find(struct pool *pool, unsigned c)
{
	if (pool->free[c] || grow(pool, c, room(pool)))
		return c;
	for (c++; c < NCLASSES; c++)
		if (pool->free[c])
			break;
	return c;
}

/* With the lock held: true if the flow may have @size bytes more. */
static bool in_share(const struct pool *pool, size_t size, uint8_t flow)
{
	return flow == 0 || pool->held[flow] + size <= pool->max_bytes / 2;
}

/* The same, within the flow's limit. */
static unsigned find_for(struct pool *pool, unsigned c, uint8_t flow)
{
	c = find(pool, c);
	return c < NCLASSES && in_share(pool, pool->free[c]->size, flow) ? c :
	       NCLASSES;
}

struct buf *pool_alloc(struct pool *pool, size_t size)
{
	return pool_alloc_for(pool, size, 0);
}

/* With the lock held: takes a buffer of class @c or a larger one, within the
 * flow's limit, or NULL. */
static struct buf *take(struct pool *pool, unsigned c, uint8_t flow)
{
	struct buf *b;

	c = find_for(pool, c, flow);
	if (c == NCLASSES)
		return NULL;
	b = pool->free[c];
	pool->free[c] = b->next;
	pool->out += b->size;
	pool->held[flow] += b->size;
	pool->regions[b->region].out++;
	pool->regions[b->region].used = true;
	b->flow = flow;
	ref_init(&b->ref);
	return b;
}

struct buf *pool_alloc_for(struct pool *pool, size_t size, uint8_t flow)
{
	struct buf *b;

	assert(size <= POOL_BUF_MAX);
	mutex_lock(&pool->lock);
	b = take(pool, class_of(size), flow);
	mutex_unlock(&pool->lock);
	return b;
}

/* With the lock held: the queue of the flow that has least of those which wait
 * for a buffer of class @c and may have one now, or NULL. */
static struct cds_list_head *next_queue(struct pool *pool, unsigned c)
{
	struct cds_list_head *best = NULL;
	size_t least = SIZE_MAX;

	for (unsigned f = 0; f < POOL_FLOWS; f++)
		if (!cds_list_empty(&pool->parked[c][f]) &&
		    pool->held[f] < least &&
		    find_for(pool, c, (uint8_t)f) < NCLASSES) {
			least = pool->held[f];
			best = &pool->parked[c][f];
		}
	return best;
}

/* With the lock held. */
static void unpark(struct pool *pool, struct pool_request *r)
{
	cds_list_del(&r->link);
	r->parked = false;
	pool->nparked--;
}

/* With the lock held: gives a buffer to a request, and returns it; NULL: there
 * is nothing to give.  The largest requests go first, because they wait
 * longest. */
static struct pool_request *serve(struct pool *pool)
{
	struct cds_list_head *queue = NULL;
	struct pool_request *r;

	for (unsigned c = NCLASSES; c-- > 0 && !queue;)
		queue = next_queue(pool, c);
	if (!queue)
		return NULL;
	r = cds_list_first_entry(queue, struct pool_request, link);
	unpark(pool, r);
	r->buf = take(pool, r->size_class, r->flow);
	return r;
}

void buf_put(struct buf *b)
{
	struct pool_request *served = NULL, **last = &served, *r;
	struct pool *pool;

	if (!b || !ref_put(&b->ref))
		return;
	pool = b->pool;
	mutex_lock(&pool->lock);
	b->next = pool->free[b->size_class];
	pool->free[b->size_class] = b;
	pool->out -= b->size;
	pool->held[b->flow] -= b->size;
	pool->regions[b->region].out--;
	while (unlikely(pool->nparked > 0) && (r = serve(pool))) {
		*last = r;
		last = &r->next;
	}
	*last = NULL;
	mutex_unlock(&pool->lock);
	while ((r = served)) {
		served = r->next;
		r->ready(r, r->buf);
	}
}

struct buf *pool_request(struct pool *pool, size_t size,
			 struct pool_request *r)
{
	struct buf *b;

	assert(size <= POOL_BUF_MAX);
	mutex_lock(&pool->lock);
	r->size_class = (uint8_t)class_of(size);
	b = take(pool, r->size_class, r->flow);
	r->parked = !b;
	if (!b) {
		stat_inc(pool_waits);
		cds_list_add_tail(&r->link,
				  &pool->parked[r->size_class][r->flow]);
		pool->nparked++;
	}
	mutex_unlock(&pool->lock);
	return b;
}

bool pool_cancel(struct pool *pool, struct pool_request *r)
{
	bool parked;

	mutex_lock(&pool->lock);
	parked = r->parked;
	if (parked)
		unpark(pool, r);
	mutex_unlock(&pool->lock);
	return parked;
}

bool pool_is_short(struct pool *pool)
{
	bool is_short;

	mutex_lock(&pool->lock);
	is_short = pool->nparked > 0;
	mutex_unlock(&pool->lock);
	return is_short;
}

int pool_observe(struct pool *pool, struct pool_observer *o)
{
	int err = 0;

	mutex_lock(&pool->lock);
	for (uint32_t i = 0; i < pool->nregions && !err; i++)
		err = o->add(o, i, pool->regions[i].addr,
			     pool->regions[i].len);
	if (!err)
		cds_list_add_tail(&o->link, &pool->observers);
	mutex_unlock(&pool->lock);
	return err;
}

void pool_unobserve(struct pool *pool, struct pool_observer *o)
{
	mutex_lock(&pool->lock);
	cds_list_del(&o->link);
	mutex_unlock(&pool->lock);
}

static bool is_pinned(struct pool *pool)
{
	struct pool_observer *o;

	cds_list_for_each_entry(o, &pool->observers, link)
		if (o->pins)
			return true;
	return false;
}

/* The pages of a region without a buffer in use hold no data: the list of free
 * buffers is elsewhere. */
bool pool_trim(struct pool *pool)
{
	struct region *r;
	uint32_t n = 0;

	for (uint32_t i = 0; ; i++) {
		/* Lock for each region anew: callers wait for the lock
		 * meanwhile. */
		mutex_lock(&pool->lock);
		if (i >= pool->nregions || is_pinned(pool))
			break;
		r = &pool->regions[i];
		if (r->out || r->used) {
			r->trimmed = false;
		} else if (!r->trimmed) {
			r->trimmed = madvise(r->addr, r->len,
					     MADV_DONTNEED) == 0;
			n += r->trimmed;
		}
		r->used = false;
		mutex_unlock(&pool->lock);
	}
	mutex_unlock(&pool->lock);
	stat_add(pool_trims, n);
	return n > 0;
}

void pool_usage(struct pool *pool, size_t *taken, size_t *out)
{
	mutex_lock(&pool->lock);
	*taken = pool->taken;
	*out = pool->out;
	mutex_unlock(&pool->lock);
}
