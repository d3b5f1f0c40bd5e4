/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool - payload buffers: page aligned, in size classes, registered once.
 *
 * Operation: each class has a list of free buffers and grows by a region when
 * that is empty.  Every class gets its first region at the start: the growth of
 * the others must not starve it.  A class that can't grow further borrows a
 * free buffer from a larger one.  In a small pool first regions are small: a
 * sixteenth of all for each class, and the largest class gets the rest.
 * Regions are only address space until they are touched.
 *
 * A new region is mapped, and registered with each device, without the lock of
 * the buffers: by a thread that can wait, when it needs a buffer, and for all
 * others by the pool's own thread.  Their requests wait for it in their queue.
 *
 * Small buffers that are given back lie on shelves (shelf.h), so most come and
 * go without the lock of the buffers.
 */
#include "transport/pool_priv.h"

#include <errno.h>
#include <linux/mman.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "lib/util.h"

STAT(pool_waits, "waits for a payload buffer");
STAT(pool_regions, "regions of payload buffers taken from the system");

#define HUGE_PAGE	((size_t)2 << 20)

static const struct {
	uint32_t buf_size;
	uint32_t bufs;		/* in a region */
} classes[] = {
	{ SHELF_BUF_SIZE, 512 },
	{ 16u << 10, 128 },
	{ 64u << 10, 32 },
	{ 256u << 10, 16 },
	{ POOL_BUF_MAX, 32 },	/* 34 MiB: 17 huge pages */
};

static_assert(ARRAY_SIZE(classes) == NCLASSES, "a size each");

static unsigned class_of(size_t size)
{
	unsigned c = 0;

	while (classes[c].buf_size < size)
		c++;
	return c;
}

static void *map(size_t len)
{
	/* The default size can be 1 GiB, and munmap() takes whole pages. */
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
		       MAP_HUGE_2MB, -1, 0);

	if (p != MAP_FAILED)
		return p;
	p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	madvise(p, len, MADV_HUGEPAGE);
	return p;
}

/* With @growth held: shows the region to all observers; if one refuses it, none
 * keeps it. */
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

/* With @growth held: maps the next region, of @n buffers of the class. */
static bool map_region(struct pool *pool, unsigned c, uint32_t n)
{
	struct region *r = &pool->regions[pool->nregions];

	r->len = ALIGN_UP((size_t)n * classes[c].buf_size, HUGE_PAGE);
	r->bufs = calloc(n, sizeof(*r->bufs));
	if (!r->bufs)
		return false;
	r->addr = map(r->len);
	if (!r->addr)
		goto fail_free;
	if (show(pool, pool->nregions) < 0)
		goto fail_unmap;
	return true;

fail_unmap:
	munmap(r->addr, r->len);
fail_free:
	free(r->bufs);
	return false;
}

/* With both locks: makes the region's memory buffers of the class. */
static void carve(struct pool *pool, unsigned c, uint32_t n)
{
	uint32_t i = pool->nregions++;
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
	pool->taken += (size_t)n * classes[c].buf_size;
	stat_inc(pool_regions);
}

/* With the lock held: the buffers of a region that the class can have, if it
 * takes @most bytes. */
static uint32_t room(const struct pool *pool, unsigned c, size_t most)
{
	size_t left = pool->max_bytes - MIN(pool->taken, pool->max_bytes);

	left = MIN(left, most);
	if (pool->refused || pool->nregions == POOL_MAX_REGIONS)
		return 0;
	return (uint32_t)MIN((size_t)classes[c].bufs,
			     left / classes[c].buf_size);
}

/* With the lock held: true if the flow can have @size bytes more. */
static bool in_share(const struct pool *pool, size_t size, uint8_t flow)
{
	return flow == 0 || pool->held[flow] + size <= pool->max_bytes / 2;
}

/* With the lock held: true if the flow waits for a buffer of class @c until a
 * new region comes. */
static bool waits_for_region(const struct pool *pool, unsigned c, uint8_t flow)
{
	return !pool->free[c] && room(pool, c, SIZE_MAX) > 0 &&
	       in_share(pool, classes[c].buf_size, flow);
}

/* With the lock held: returns the class that would serve @c now, within the
 * flow's limit, or NCLASSES. */
static unsigned pool_find(const struct pool *pool, unsigned c, uint8_t flow)
{
	if (waits_for_region(pool, c, flow))
		return NCLASSES;
	while (c < NCLASSES && !pool->free[c])
		c++;
	return c < NCLASSES && in_share(pool, pool->free[c]->size, flow) ? c :
	       NCLASSES;
}

/* With the lock held: takes a buffer of class @c or a larger one, within the
 * flow's limit, or NULL. */
static struct buf *pool_take(struct pool *pool, unsigned c, uint8_t flow)
{
	struct buf *b;

	c = pool_find(pool, c, flow);
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

/* With the lock held: @b is free. */
static void take_back(struct pool *pool, struct buf *b)
{
	pool->out -= b->size;
	pool->held[b->flow] -= b->size;
	/* The region of a lost one stays as it is. */
	if (likely(!b->lost)) {
		b->next = pool->free[b->size_class];
		pool->free[b->size_class] = b;
		pool->regions[b->region].out--;
	}
}

bool pool_gather(struct pool *pool)
{
	struct buf *b, *next;
	bool any = false;

	for (unsigned i = 0; i < SHELVES; i++)
		for (b = shelf_clear(&pool->shelves, i); b; b = next) {
			next = b->next;
			pool->regions[b->region].used = true;
			take_back(pool, b);
			any = true;
		}
	return any;
}

/* With the lock held: a request found no buffer, so the buffers on shelves are
 * for all.  True if it took some back. */
static bool tighten(struct pool *pool)
{
	if (atomic_load(&pool->shelves.closed))
		return false;
	atomic_store(&pool->shelves.closed, true);
	return pool_gather(pool);
}

/* With the lock held: the buffers on this thread's shelf are now @flow's, as
 * far as its share goes; takes back the others.  Returns one, or NULL.  Serves
 * no requests, since none is parked while a shelf has a buffer. */
static struct buf *pass_shelf(struct pool *pool, uint8_t flow)
{
	struct buf *b = shelf_take_others(&pool->shelves, flow);
	struct buf *first = NULL, *next;

	for (; b; b = next) {
		next = b->next;
		if (!in_share(pool, b->size, flow)) {
			take_back(pool, b);
			continue;
		}
		pool->held[b->flow] -= b->size;
		pool->held[flow] += b->size;
		b->flow = flow;
		if (!first)
			first = b;
		else if (!shelf_put(&pool->shelves, b))
			take_back(pool, b);
	}
	if (first)
		ref_init(&first->ref);
	return first;
}

/* With the lock held. */
static struct buf *take_any(struct pool *pool, unsigned c, uint8_t flow)
{
	struct buf *b = c == 0 ? pass_shelf(pool, flow) : NULL;

	return b ? b : pool_take(pool, c, flow);
}

/* With the lock held: of the flows that wait for a buffer of class @c and can
 * have one now, the queue of the flow that has least; or NULL. */
static struct cds_list_head *next_queue(struct pool *pool, unsigned c)
{
	struct cds_list_head *best = NULL;
	size_t least = SIZE_MAX;

	for (unsigned f = 0; f < POOL_FLOWS; f++)
		if (!cds_list_empty(&pool->parked[c][f]) &&
		    pool->held[f] < least &&
		    pool_find(pool, c, (uint8_t)f) < NCLASSES) {
			least = pool->held[f];
			best = &pool->parked[c][f];
		}
	return best;
}

/* With the lock held: the class that requests wait for a region of, or
 * NCLASSES. */
static unsigned wanted_class(struct pool *pool)
{
	unsigned c = pool->nparked > 0 ? 0 : NCLASSES;

	for (; c < NCLASSES; c++)
		for (unsigned f = 0; f < POOL_FLOWS; f++)
			if (!cds_list_empty(&pool->parked[c][f]) &&
			    waits_for_region(pool, c, (uint8_t)f))
				return c;
	return c;
}

/* With the lock held. */
static void unpark(struct pool *pool, struct pool_request *r)
{
	cds_list_del(&r->link);
	r->parked = false;
	pool->nparked--;
}

/* With the lock held: gives a buffer to a request, and returns it; NULL: none
 * can be served.  The largest requests go first, because they wait longest. */
static struct pool_request *pool_serve(struct pool *pool)
{
	struct cds_list_head *queue = NULL;
	struct pool_request *r;

	for (unsigned c = NCLASSES; c-- > 0 && !queue;)
		queue = next_queue(pool, c);
	if (!queue)
		return NULL;
	r = cds_list_first_entry(queue, struct pool_request, link);
	unpark(pool, r);
	r->buf = pool_take(pool, r->size_class, r->flow);
	return r;
}

void pool_wake_grower(struct pool *pool)
{
	if (unlikely(wanted_class(pool) < NCLASSES))
		pthread_cond_signal(&pool->wanted);
}

/* With the lock held, which it lets go: serves all requests that it can. */
static void serve_all(struct pool *pool)
{
	struct pool_request *served = NULL, **last = &served, *r;

	if (likely(pool->nparked == 0)) {
		if (unlikely(atomic_load(&pool->shelves.closed)))
			atomic_store(&pool->shelves.closed, false);
		mutex_unlock(&pool->lock);
		return;
	}
	while (pool->nparked > 0 && (r = pool_serve(pool))) {
		*last = r;
		last = &r->next;
	}
	*last = NULL;
	pool_wake_grower(pool);
	mutex_unlock(&pool->lock);
	while ((r = served)) {
		served = r->next;
		r->ready(r, r->buf);
	}
}

/*
 * Adds a region of at most @most bytes to the class, unless another thread did
 * meanwhile.  A failure is back-pressure, as an empty pool is.
 */
static void pool_grow(struct pool *pool, unsigned c, size_t most)
{
	bool mapped = false;
	uint32_t n;

	mutex_lock(&pool->growth);
	mutex_lock(&pool->lock);
	n = pool->free[c] ? 0 : room(pool, c, most);
	mutex_unlock(&pool->lock);
	if (n > 0)
		mapped = map_region(pool, c, n);
	mutex_lock(&pool->lock);
	if (mapped)
		carve(pool, c, n);
	else if (n > 0)
		pool->refused = true;
	mutex_unlock(&pool->growth);
	serve_all(pool);
}

/* The thread of the pool: grows it for callers that must not wait. */
static void grower(void *arg)
{
	struct pool *pool = arg;
	unsigned c;

	mutex_lock(&pool->lock);
	while (!pool->ends) {
		c = wanted_class(pool);
		if (c == NCLASSES) {
			pthread_cond_wait(&pool->wanted, &pool->lock);
			continue;
		}
		mutex_unlock(&pool->lock);
		pool_grow(pool, c, SIZE_MAX);
		mutex_lock(&pool->lock);
	}
	mutex_unlock(&pool->lock);
}

static void pool_free_all(struct pool *pool)
{
	pool_gather(pool);
	assert(pool->out == 0);
	shelves_fini(&pool->shelves);
	for (uint32_t i = 0; i < pool->nregions; i++) {
		munmap(pool->regions[i].addr, pool->regions[i].len);
		free(pool->regions[i].bufs);
	}
	pthread_cond_destroy(&pool->wanted);
	pthread_mutex_destroy(&pool->lock);
	pthread_mutex_destroy(&pool->growth);
	free(pool);
}

int pool_create(size_t max_bytes, struct pool **out)
{
	struct pool *pool = calloc(1, sizeof(*pool));
	size_t share = max_bytes / 16;
	int err = -ENOMEM;

	if (!pool)
		return err;
	if (shelves_init(&pool->shelves, max_bytes) < 0) {
		free(pool);
		return err;
	}
	pthread_mutex_init(&pool->growth, NULL);
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->wanted, NULL);
	CDS_INIT_LIST_HEAD(&pool->observers);
	pool->max_bytes = max_bytes;
	for (unsigned c = 0; c < NCLASSES; c++)
		for (unsigned f = 0; f < POOL_FLOWS; f++)
			CDS_INIT_LIST_HEAD(&pool->parked[c][f]);
	for (unsigned c = 0; c < NCLASSES; c++)
		pool_grow(pool, c, c < NCLASSES - 1 ? share : SIZE_MAX);
	if (pool->free[NCLASSES - 1])
		err = thread_start(&pool->grower, "pool", grower, pool);
	if (err) {
		pool_free_all(pool);
		return err;
	}
	*out = pool;
	return 0;
}

void pool_limit(struct pool *pool, size_t max_bytes)
{
	mutex_lock(&pool->lock);
	pool->max_bytes = max_bytes;
	pthread_cond_signal(&pool->wanted);
	mutex_unlock(&pool->lock);
}

size_t pool_most(struct pool *pool)
{
	size_t max;

	mutex_lock(&pool->lock);
	max = pool->max_bytes;
	mutex_unlock(&pool->lock);
	return max;
}

void pool_destroy(struct pool *pool)
{
	mutex_lock(&pool->lock);
	pool->ends = true;
	pthread_cond_signal(&pool->wanted);
	mutex_unlock(&pool->lock);
	pthread_join(pool->grower, NULL);
	pool_free_all(pool);
}

struct buf *pool_alloc(struct pool *pool, size_t size)
{
	return pool_alloc_for(pool, size, 0);
}

struct buf *pool_alloc_for(struct pool *pool, size_t size, uint8_t flow)
{
	unsigned c = class_of(size);
	bool grows = !thread_must_not_wait;
	struct buf *b = c == 0 ? shelf_take(&pool->shelves, flow) : NULL;

	assert(size <= POOL_BUF_MAX);
	if (likely(b))
		return b;
	mutex_lock(&pool->lock);
	while (!(b = take_any(pool, c, flow))) {
		if (tighten(pool))
			continue;
		if (!grows || !waits_for_region(pool, c, flow))
			break;
		mutex_unlock(&pool->lock);
		pool_grow(pool, c, SIZE_MAX);
		mutex_lock(&pool->lock);
	}
	mutex_unlock(&pool->lock);
	return b;
}

void buf_put(struct buf *b)
{
	struct pool *pool = b ? b->pool : NULL;

	if (!b || !ref_put(&b->ref))
		return;
	if (b->size_class == 0 && likely(!b->lost) &&
	    shelf_put(&pool->shelves, b))
		return;
	mutex_lock(&pool->lock);
	take_back(pool, b);
	serve_all(pool);
}

struct buf *pool_request(struct pool *pool, size_t size,
			 struct pool_request *r)
{
	unsigned c = class_of(size);
	struct buf *b = c == 0 ? shelf_take(&pool->shelves, r->flow) : NULL;

	assert(size <= POOL_BUF_MAX);
	r->size_class = (uint8_t)c;
	r->parked = false;
	if (likely(b))
		return b;
	mutex_lock(&pool->lock);
	b = take_any(pool, c, r->flow);
	if (!b && tighten(pool))
		b = pool_take(pool, c, r->flow);
	r->parked = !b;
	if (!b) {
		stat_inc(pool_waits);
		cds_list_add_tail(&r->link, &pool->parked[c][r->flow]);
		pool->nparked++;
		pool_wake_grower(pool);
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
	is_short = pool->nparked > 0 && wanted_class(pool) == NCLASSES;
	mutex_unlock(&pool->lock);
	return is_short;
}

bool pool_wants_of(struct pool *pool, uint8_t flow)
{
	bool wants = false;

	mutex_lock(&pool->lock);
	for (unsigned c = 0; c < NCLASSES && pool->nparked > 0; c++)
		for (unsigned f = 0; f < POOL_FLOWS && !wants; f++)
			wants = f != flow &&
				!cds_list_empty(&pool->parked[c][f]) &&
				!waits_for_region(pool, c, (uint8_t)f) &&
				in_share(pool, classes[c].buf_size, (uint8_t)f);
	mutex_unlock(&pool->lock);
	return wants;
}
