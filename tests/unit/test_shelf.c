/* SPDX-License-Identifier: BSD-2-Clause */
/* Small buffers at threads' hands. */
#include "transport/shelf.h"

#include <sched.h>
#include <semaphore.h>

#include "lib/util.h"
#include "tests/unit/pool_fixture.h"
#include "tests/unit/runner.h"

/* Takes all small buffers for @flow; chained by next. */
static struct buf *take(uint8_t flow)
{
	struct buf *b, *all = NULL;

	while ((b = pool_alloc_for(pool, SHELF_BUF_SIZE, flow))) {
		b->next = all;
		all = b;
	}
	return all;
}

/* Unlinks and returns @b, or if that is NULL a small one; NULL: not found.
 * When no small one is left, take() gets larger ones. */
static struct buf *pick(struct buf **all, const struct buf *b)
{
	struct buf *picked;

	while (*all && (b ? *all != b : (*all)->size > SHELF_BUF_SIZE))
		all = &(*all)->next;
	picked = *all;
	if (picked)
		*all = picked->next;
	return picked;
}

static void give(struct buf *all)
{
	struct buf *next;

	for (; all; all = next) {
		next = all->next;
		buf_put(all);
	}
}

/* Another thread, which does one thing at a time. */
struct other {
	void	(*fn)(struct other *o);	/* NULL: it ends */
	struct buf *buf;
	sem_t	go, done;
};

static void run_other(void *arg)
{
	struct other *o = arg;

	for (;;) {
		sem_wait(&o->go);
		if (!o->fn)
			return;
		o->fn(o);
		sem_post(&o->done);
	}
}

static void let(struct other *o, void (*fn)(struct other *o))
{
	o->fn = fn;
	sem_post(&o->go);
	sem_wait(&o->done);
}

static void take_one(struct other *o)
{
	o->buf = pool_alloc_for(pool, SHELF_BUF_SIZE, 1);
}

static void put_one(struct other *o)
{
	buf_put(o->buf);
}

static pthread_t start(struct other *o)
{
	pthread_t thread;

	sem_init(&o->go, 0, 0);
	sem_init(&o->done, 0, 0);
	ck_assert_int_eq(thread_start(&thread, "other", run_other, o), 0);
	return thread;
}

static void end(struct other *o, pthread_t thread)
{
	o->fn = NULL;
	sem_post(&o->go);
	pthread_join(thread, NULL);
}

/* This thread gets the buffer that it gave back, not the other's, which came
 * back later. */
static void see_own_come_back(struct other *o)
{
	struct buf *b;

	let(o, take_one);
	b = pool_alloc_for(pool, SHELF_BUF_SIZE, 1);
	buf_put(b);
	let(o, put_one);
	ck_assert_ptr_eq(pool_alloc_for(pool, SHELF_BUF_SIZE, 1), b);
	buf_put(b);
	ck_assert_uint_eq(bytes_out(), 0);
}

TEST(a_thread_gets_the_small_buffer_that_it_gave_back)
{
	struct other other = { .fn = NULL };
	pthread_t thread = start(&other);

	ck_assert_int_eq(pool_create(256 * MIB, &pool), 0);
	see_own_come_back(&other);
	end(&other, thread);
	pool_destroy(pool);
}

struct wanted {
	struct pool_request r;
	struct buf *got;
	sem_t came;
};

static void came(struct pool_request *r, struct buf *b)
{
	struct wanted *w = container_of(r, struct wanted, r);

	w->got = b;
	sem_post(&w->came);
}

TEST(a_buffer_at_a_threads_hand_serves_all_when_there_is_no_other)
{
	struct wanted want = { .r = { .ready = came, .flow = 2 } };
	struct other other = { .fn = NULL };
	pthread_t thread = start(&other);
	struct buf *all;

	sem_init(&want.came, 0, 0);
	ck_assert_int_eq(pool_create(64 * MIB, &pool), 0);
	let(&other, take_one);
	let(&other, put_one);
	all = take(0);
	ck_assert_ptr_nonnull(pick(&all, other.buf));
	/* While a request waits, no buffer stays at hand. */
	ck_assert_ptr_null(pool_request(pool, SHELF_BUF_SIZE, &want.r));
	let(&other, put_one);
	ck_assert_ptr_eq(want.got, other.buf);
	buf_put(want.got);
	give(all);
	see_own_come_back(&other);
	end(&other, thread);
	pool_destroy(pool);
}

TEST(buffers_that_a_flow_left_at_hand_count_for_the_flow_that_takes_them)
{
	struct buf *mine = NULL, *first = NULL, *all, *b;

	ck_assert_int_eq(pool_create(256 * MIB, &pool), 0);
	for (unsigned i = 0; i < SHELF_BUFS_MAX / 2; i++) {
		b = pool_alloc_for(pool, SHELF_BUF_SIZE, 1);
		b->next = mine;
		mine = b;
		first = i == 0 ? b : first;
	}
	give(mine);
	mine = pool_alloc_for(pool, SHELF_BUF_SIZE, 2);
	/* The first to be taken was the last to come back. */
	ck_assert_ptr_eq(mine, first);
	/* The first flow takes its whole share; the second lacks nothing. */
	all = take(1);
	ck_assert_uint_eq(bytes_out(), 128 * MIB + mine->size);
	give(all);
	buf_put(mine);
	ck_assert_uint_eq(bytes_out(), 0);
	pool_destroy(pool);
}

enum { THREADS = 4, TURNS = 5000 };

static void take_turns(void *arg)
{
	struct wanted w = { .r = { .ready = came } };
	struct buf *b;

	(void)arg;
	sem_init(&w.came, 0, 0);
	for (unsigned i = 0; i < TURNS; i++) {
		w.r.flow = (uint8_t)(i / 7 % 3);
		b = pool_request(pool, SHELF_BUF_SIZE, &w.r);
		if (!b) {
			sem_wait(&w.came);
			b = w.got;
		}
		ck_assert_uint_eq(b->flow, w.r.flow);
		if (i % 3 == 0)
			sched_yield();
		buf_put(b);
	}
}

/* Each wants one buffer, but one is missing. */
TEST(no_thread_waits_for_ever_for_a_buffer_at_anothers_hand)
{
	struct buf *all;
	pthread_t threads[THREADS];

	ck_assert_int_eq(pool_create(64 * MIB, &pool), 0);
	all = take(0);
	for (unsigned i = 0; i < THREADS - 1; i++)
		buf_put(pick(&all, NULL));
	for (unsigned i = 0; i < THREADS; i++)
		ck_assert_int_eq(thread_start(&threads[i], "turns", take_turns,
					      NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	give(all);
	ck_assert_uint_eq(bytes_out(), 0);
	pool_destroy(pool);
}
