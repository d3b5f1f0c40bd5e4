/* SPDX-License-Identifier: BSD-2-Clause */
/* Payload buffers. */
#include "transport/pool.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/unit/pool_fixture.h"
#include "tests/unit/runner.h"

TEST(buffers_are_page_aligned_large_enough_and_apart)
{
	static const size_t sizes[] = { 1, 4096, 4097, 65536, 300000,
					POOL_PAYLOAD_MAX, POOL_BUF_MAX };
	struct buf *b[ARRAY_SIZE(sizes)];

	ck_assert_int_eq(pool_create(128 * MIB, &pool), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		b[i] = pool_alloc(pool, sizes[i]);
		ck_assert_ptr_nonnull(b[i]);
		ck_assert_uint_eq((uintptr_t)b[i]->data % 4096, 0);
		ck_assert_uint_ge(b[i]->size, sizes[i]);
		memset(b[i]->data, (int)i + 1, b[i]->size);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		ck_assert_uint_eq(b[i]->data[0], i + 1);
		ck_assert_uint_eq(b[i]->data[b[i]->size - 1], i + 1);
		buf_put(b[i]);
	}
	ck_assert_uint_eq(bytes_out(), 0);
	pool_destroy(pool);
}

TEST(a_buffer_comes_back_with_its_last_reference)
{
	struct buf *b;

	ck_assert_int_eq(pool_create(64 * MIB, &pool), 0);
	b = pool_alloc(pool, 100);
	buf_get(b);
	buf_put(b);
	ck_assert_uint_eq(bytes_out(), 4096);
	buf_put(b);
	ck_assert_uint_eq(bytes_out(), 0);
	buf_put(NULL);
	pool_destroy(pool);
}

struct counted {
	struct pool_request w;
	int called;
	struct buf *got;
};

static void called(struct pool_request *r, struct buf *b)
{
	struct counted *c = container_of(r, struct counted, w);

	c->called++;
	c->got = b;
}

static void request(size_t size, struct counted *c)
{
	ck_assert_ptr_null(pool_request(pool, size, &c->w));
}

TEST(an_empty_pool_serves_its_requests_in_order)
{
	struct counted first = { .w.ready = called };
	struct counted second = { .w.ready = called };
	struct counted gone = { .w.ready = called };
	struct buf *bufs = NULL, *b;

	ck_assert_int_eq(pool_create(4 * MIB, &pool), 0);
	while ((b = pool_alloc(pool, POOL_BUF_MAX))) {
		b->next = bufs;
		bufs = b;
	}
	request(POOL_BUF_MAX, &first);
	request(POOL_BUF_MAX, &gone);
	request(POOL_BUF_MAX, &second);
	ck_assert_int_eq(first.called, 0);
	ck_assert(pool_cancel(pool, &gone.w));
	ck_assert(!pool_cancel(pool, &gone.w));

	b = bufs->next;
	buf_put(bufs);
	ck_assert_int_eq(first.called, 1);
	ck_assert_int_eq(second.called, 0);
	bufs = b->next;
	buf_put(b);
	ck_assert_int_eq(second.called, 1);
	ck_assert_uint_eq(first.got->size, POOL_BUF_MAX);
	ck_assert(!pool_cancel(pool, &first.w));
	ck_assert(!pool_is_short(pool));
	buf_put(first.got);
	/* One is free now: no request has to wait. */
	b = pool_request(pool, 1, &first.w);
	ck_assert_ptr_nonnull(b);
	buf_put(b);
	ck_assert_int_eq(first.called, 1);
	buf_put(second.got);
	while (bufs) {
		b = bufs->next;
		buf_put(bufs);
		bufs = b;
	}
	ck_assert_int_eq(gone.called, 0);
	pool_destroy(pool);
}

TEST(small_requests_are_served_from_large_buffers_at_the_limit)
{
	struct buf *b[4096];
	unsigned n = 0;
	size_t taken, out;

	ck_assert_int_eq(pool_create(4 * MIB, &pool), 0);
	while (n < ARRAY_SIZE(b) && (b[n] = pool_alloc(pool, 4096)))
		n++;
	pool_usage(pool, &taken, &out);
	ck_assert_uint_le(taken, 4 * MIB);
	ck_assert_uint_gt(out, taken / 2);
	while (n > 0)
		buf_put(b[--n]);
	pool_destroy(pool);
}

/* Takes all buffers of @size for @flow; chained by next. */
static struct buf *take(size_t size, uint8_t flow)
{
	struct buf *b, *all = NULL;

	while ((b = pool_alloc_for(pool, size, flow))) {
		b->next = all;
		all = b;
	}
	return all;
}

static void give(struct buf *all)
{
	struct buf *next;

	for (; all; all = next) {
		next = all->next;
		buf_put(all);
	}
}

TEST(large_buffers_leave_some_small_ones_however_little_there_is)
{
	static const size_t mib[] = { 4, 16, 32, 64, 1024 };
	struct buf *large, *small;

	for (unsigned i = 0; i < ARRAY_SIZE(mib); i++) {
		ck_assert_int_eq(pool_create(mib[i] * MIB, &pool), 0);
		large = take(POOL_BUF_MAX, 0);
		ck_assert_ptr_nonnull(large);
		for (size_t size = 4096; size <= 256 * 1024; size *= 4) {
			small = pool_alloc(pool, size);
			ck_assert_ptr_nonnull(small);
			buf_put(small);
		}
		give(large);
		pool_destroy(pool);
	}
}

TEST(one_flow_never_has_more_than_half)
{
	struct counted greedy = { .w = { .ready = called, .flow = 1 } };
	struct buf *all, *small, *b;

	ck_assert_int_eq(pool_create(32 * MIB, &pool), 0);
	small = pool_alloc_for(pool, 4096, 1);
	all = take(POOL_BUF_MAX, 1);
	ck_assert_uint_le(bytes_out(), 16 * MIB);
	ck_assert_uint_gt(bytes_out(), 14 * MIB);
	/* The flow waits although memory is left; another flow need not. */
	request(POOL_BUF_MAX, &greedy);
	ck_assert_int_eq(greedy.called, 0);
	ck_assert(pool_is_short(pool));
	b = pool_alloc_for(pool, POOL_BUF_MAX, 2);
	ck_assert_ptr_nonnull(b);
	buf_put(b);
	ck_assert_int_eq(greedy.called, 0);
	/* Its own come back. */
	b = all->next;
	buf_put(all);
	ck_assert_int_eq(greedy.called, 1);
	ck_assert(!pool_is_short(pool));
	buf_put(greedy.got);
	give(b);
	buf_put(small);
	pool_destroy(pool);
}

TEST(a_flow_that_returns_small_buffers_gets_a_large_one)
{
	struct counted greedy = { .w = { .ready = called, .flow = 1 } };
	struct buf *small, *large;

	ck_assert_int_eq(pool_create(64 * MIB, &pool), 0);
	large = take(POOL_BUF_MAX, 1);
	small = take(4096, 1);
	request(POOL_BUF_MAX, &greedy);
	ck_assert_int_eq(greedy.called, 0);
	give(small);
	/* The small buffers might not add up to a large one. */
	if (!greedy.called) {
		give(large->next);
		large->next = NULL;
	}
	ck_assert_int_eq(greedy.called, 1);
	buf_put(greedy.got);
	give(large);
	pool_destroy(pool);
}

TEST(the_flow_with_least_is_served_first)
{
	struct counted greedy = { .w = { .ready = called, .flow = 1 } };
	struct counted modest = { .w = { .ready = called, .flow = 2 } };
	struct buf *hers, *others, *b;

	ck_assert_int_eq(pool_create(32 * MIB, &pool), 0);
	hers = take(POOL_BUF_MAX, 1);
	others = take(POOL_BUF_MAX, 0);
	request(POOL_BUF_MAX, &greedy);
	request(POOL_BUF_MAX, &modest);
	b = hers->next;
	buf_put(hers);
	ck_assert_int_eq(modest.called, 1);
	ck_assert_int_eq(greedy.called, 0);
	hers = b->next;
	buf_put(b);
	ck_assert_int_eq(greedy.called, 1);
	buf_put(greedy.got);
	buf_put(modest.got);
	give(hers);
	give(others);
	pool_destroy(pool);
}

/* Of a flow that had its whole share, one large buffer comes back, and two
 * small requests wait: both get theirs. */
TEST(a_buffer_that_comes_back_serves_all_that_it_can)
{
	struct counted want[2] = { { .w = { .ready = called, .flow = 1 } },
				   { .w = { .ready = called, .flow = 1 } } };
	struct buf *large, *small, *next;

	ck_assert_int_eq(pool_create(32 * MIB, &pool), 0);
	large = take(POOL_BUF_MAX, 1);
	small = take(4096, 1);
	request(4096, &want[0]);
	request(4096, &want[1]);
	next = large->next;
	buf_put(large);
	ck_assert_int_eq(want[0].called, 1);
	ck_assert_int_eq(want[1].called, 1);
	ck_assert(!pool_is_short(pool));
	buf_put(want[0].got);
	buf_put(want[1].got);
	give(next);
	give(small);
	pool_destroy(pool);
}

struct seen {
	struct pool_observer o;
	unsigned regions;
	int answer;
	uint8_t *last;
	size_t last_len;
};

static int add_region(struct pool_observer *o, uint32_t region, void *addr,
		      size_t len)
{
	struct seen *s = container_of(o, struct seen, o);

	if (s->answer)
		return s->answer;
	ck_assert_uint_eq(region, s->regions);
	s->regions++;
	s->last = addr;
	s->last_len = len;
	return 0;
}

static void del_region(struct pool_observer *o, uint32_t region)
{
	struct seen *s = container_of(o, struct seen, o);

	s->regions--;
	ck_assert_uint_eq(region, s->regions);
}

TEST(observers_see_each_region_before_its_buffers)
{
	struct seen s = { .o.add = add_region };
	struct buf *b[1024];
	unsigned n = 0, before;

	ck_assert_int_eq(pool_create(256 * MIB, &pool), 0);
	ck_assert_int_eq(pool_observe(pool, &s.o), 0);
	before = s.regions;
	ck_assert_uint_ge(before, 5);
	do {
		b[n] = pool_alloc(pool, 4096);
		ck_assert_uint_lt(b[n]->region, s.regions);
		n++;
	} while (s.regions == before);
	ck_assert(b[n - 1]->data >= s.last &&
		  b[n - 1]->data < s.last + s.last_len);
	while (n > 0)
		buf_put(b[--n]);
	pool_unobserve(pool, &s.o);
	pool_destroy(pool);
}

/* Pages that are in memory, of @n buffers. */
static size_t resident(struct buf *const *b, unsigned n)
{
	static unsigned char in[POOL_BUF_MAX / 4096];
	size_t pages = 0;

	for (unsigned i = 0; i < n; i++) {
		ck_assert_int_eq(mincore(b[i]->data, b[i]->size, in), 0);
		for (size_t k = 0; k < b[i]->size / 4096; k++)
			pages += in[k] & 1;
	}
	return pages;
}

#define BURST	100u

/* Of a burst of replies to slow readers nothing is left. */
TEST(memory_that_nobody_uses_is_given_back_unless_a_device_pins_it)
{
	struct seen pins = { .o = { .add = add_region, .del = del_region,
				    .pins = true } };
	struct buf *b[BURST];

	ck_assert_int_eq(pool_create(256 * MIB, &pool), 0);
	ck_assert_int_eq(pool_observe(pool, &pins.o), 0);
	for (unsigned i = 0; i < BURST; i++) {
		b[i] = pool_alloc(pool, POOL_BUF_MAX);
		ck_assert_ptr_nonnull(b[i]);
		memset(b[i]->data, 1, b[i]->size);
	}
	ck_assert(!pool_trim(pool));
	ck_assert(!pool_trim(pool));
	ck_assert_uint_eq(resident(b, BURST), BURST * POOL_BUF_MAX / 4096);
	for (unsigned i = 0; i < BURST; i++)
		buf_put(b[i]);
	ck_assert(!pool_trim(pool));
	ck_assert_uint_eq(resident(b, BURST), BURST * POOL_BUF_MAX / 4096);
	pool_unobserve(pool, &pins.o);
	/* It was used since the last time. */
	buf_put(pool_alloc(pool, POOL_BUF_MAX));
	pool_trim(pool);
	ck_assert(pool_trim(pool));
	ck_assert_uint_eq(resident(b, BURST), 0);
	ck_assert(!pool_trim(pool));
	b[0] = pool_alloc(pool, POOL_BUF_MAX);
	memset(b[0]->data, 2, b[0]->size);
	buf_put(b[0]);
	pool_destroy(pool);
}

TEST(the_pool_works_without_a_region_that_a_device_refuses)
{
	struct seen takes = { .o.add = add_region, .o.del = del_region };
	struct seen s = { .o.add = add_region };
	struct buf *b, *bufs = NULL;
	size_t before, taken, out;
	unsigned regions;

	ck_assert_int_eq(pool_create(256 * MIB, &pool), 0);
	ck_assert_int_eq(pool_observe(pool, &takes.o), 0);
	ck_assert_int_eq(pool_observe(pool, &s.o), 0);
	regions = takes.regions;
	pool_usage(pool, &before, &out);
	s.answer = -12;
	while ((b = pool_alloc(pool, 4096))) {
		b->next = bufs;
		bufs = b;
	}
	pool_usage(pool, &taken, &out);
	ck_assert_uint_eq(taken, before);
	/* The other device does not keep regions that the pool has given up. */
	ck_assert_uint_eq(takes.regions, regions);
	while (bufs) {
		b = bufs->next;
		buf_put(bufs);
		bufs = b;
	}
	pool_destroy(pool);
}

struct slow {
	struct pool_observer o;
	atomic_bool	hold;
	atomic_bool	adding;
	bool		on_poller;
};

static int add_slowly(struct pool_observer *o, uint32_t region, void *addr,
		      size_t len)
{
	struct slow *s = container_of(o, struct slow, o);

	s->on_poller = thread_must_not_wait;
	atomic_store(&s->adding, true);
	WAIT_WHILE(atomic_load(&s->hold));
	return 0;
}

struct late {
	struct pool_request r;
	_Atomic(struct buf *) got;
};

static void got_late(struct pool_request *r, struct buf *b)
{
	atomic_store(&container_of(r, struct late, r)->got, b);
}

/* While a device takes long to register a new region, other buffers come and
 * go; and the thread that asked for the region goes on with its work. */
TEST(a_poller_does_not_wait_for_a_new_region)
{
	struct slow s = { .o.add = add_slowly };
	struct late late = { .r.ready = got_late };
	struct buf *b, *bufs;

	ck_assert_int_eq(pool_create(256 * MIB, &pool), 0);
	ck_assert_int_eq(pool_observe(pool, &s.o), 0);
	thread_must_not_wait = true;
	atomic_store(&s.hold, true);
	atomic_store(&s.adding, false);
	bufs = take(4096, 0);
	ck_assert_ptr_null(pool_request(pool, 4096, &late.r));
	EVENTUALLY(atomic_load(&s.adding));
	ck_assert(!s.on_poller);
	ck_assert(!pool_is_short(pool));
	b = pool_alloc(pool, 16384);
	ck_assert_ptr_nonnull(b);
	buf_put(b);
	ck_assert_ptr_null(atomic_load(&late.got));
	atomic_store(&s.hold, false);
	EVENTUALLY(atomic_load(&late.got));
	buf_put(atomic_load(&late.got));
	give(bufs);
	pool_unobserve(pool, &s.o);
	pool_destroy(pool);
	thread_must_not_wait = false;
}

/* A request that is parked while no region is tried gets its buffer when one is
 * tried again, although no other buffer is requested or comes back. */
TEST(a_parked_request_is_served_when_a_device_takes_regions_again)
{
	struct seen s = { .o.add = add_region };
	struct late first = { .r.ready = got_late };
	struct late late = { .r.ready = got_late };
	struct buf *bufs, *rest;

	ck_assert_int_eq(pool_create(256 * MIB, &pool), 0);
	ck_assert_int_eq(pool_observe(pool, &s.o), 0);
	s.answer = -12;
	thread_must_not_wait = true;
	bufs = take(4096, 0);
	/* The pool's thread has tried, and found a larger one. */
	ck_assert_ptr_null(pool_request(pool, 4096, &first.r));
	EVENTUALLY(atomic_load(&first.got));
	rest = take(4096, 0);
	ck_assert_ptr_null(pool_request(pool, 4096, &late.r));
	ck_assert(pool_is_short(pool));
	s.answer = 0;
	pool_trim(pool);
	EVENTUALLY(atomic_load(&late.got));
	ck_assert(!pool_is_short(pool));
	buf_put(atomic_load(&first.got));
	buf_put(atomic_load(&late.got));
	give(bufs);
	give(rest);
	pool_unobserve(pool, &s.o);
	pool_destroy(pool);
	thread_must_not_wait = false;
}
