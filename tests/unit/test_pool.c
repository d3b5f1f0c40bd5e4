/* SPDX-License-Identifier: BSD-2-Clause */
/* Payload buffers. */
#include "transport/pool.h"

#include <stdbool.h>
#include <string.h>

#include "lib/util.h"
#include "tests/unit/runner.h"

#define MIB	((size_t)1 << 20)

static struct pool *pool;

static size_t bytes_out(void)
{
	size_t taken, out;

	pool_usage(pool, &taken, &out);
	return out;
}

START_TEST(buffers_are_page_aligned_large_enough_and_apart)
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
END_TEST

START_TEST(a_buffer_comes_back_with_its_last_reference)
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
END_TEST

struct counted {
	struct pool_waiter w;
	int called;
};

static void called(struct pool_waiter *w)
{
	container_of(w, struct counted, w)->called++;
}

START_TEST(an_empty_pool_calls_its_waiters_in_order)
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
	pool_wait(pool, POOL_BUF_MAX, &first.w);
	pool_wait(pool, POOL_BUF_MAX, &gone.w);
	pool_wait(pool, POOL_BUF_MAX, &second.w);
	ck_assert_int_eq(first.called, 0);
	ck_assert(pool_wait_cancel(pool, &gone.w));
	ck_assert(!pool_wait_cancel(pool, &gone.w));

	b = bufs->next;
	buf_put(bufs);
	ck_assert_int_eq(first.called, 1);
	ck_assert_int_eq(second.called, 0);
	bufs = b->next;
	buf_put(b);
	ck_assert_int_eq(second.called, 1);
	/* One is free now: nobody has to wait. */
	pool_wait(pool, 1, &first.w);
	ck_assert_int_eq(first.called, 2);
	while (bufs) {
		b = bufs->next;
		buf_put(bufs);
		bufs = b;
	}
	ck_assert_int_eq(gone.called, 0);
	pool_destroy(pool);
}
END_TEST

START_TEST(small_requests_are_served_from_large_buffers_at_the_limit)
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
END_TEST

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

START_TEST(observers_see_each_region_before_its_buffers)
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
END_TEST

START_TEST(a_region_that_a_device_refuses_is_done_without)
{
	struct seen s = { .o.add = add_region };
	struct buf *b, *bufs = NULL;
	size_t before, taken, out;

	ck_assert_int_eq(pool_create(256 * MIB, &pool), 0);
	ck_assert_int_eq(pool_observe(pool, &s.o), 0);
	pool_usage(pool, &before, &out);
	s.answer = -12;
	while ((b = pool_alloc(pool, 4096))) {
		b->next = bufs;
		bufs = b;
	}
	pool_usage(pool, &taken, &out);
	ck_assert_uint_eq(taken, before);
	while (bufs) {
		b = bufs->next;
		buf_put(bufs);
		bufs = b;
	}
	pool_destroy(pool);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("pool");
	TCase *t = tcase_create("pool");

	tcase_add_test(t, buffers_are_page_aligned_large_enough_and_apart);
	tcase_add_test(t, a_buffer_comes_back_with_its_last_reference);
	tcase_add_test(t, an_empty_pool_calls_its_waiters_in_order);
	tcase_add_test(t, small_requests_are_served_from_large_buffers_at_the_limit);
	tcase_add_test(t, observers_see_each_region_before_its_buffers);
	tcase_add_test(t, a_region_that_a_device_refuses_is_done_without);
	suite_add_tcase(s, t);
	return run_suite(s);
}
