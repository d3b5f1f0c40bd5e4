/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of records. */
#include "lib/ring.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/runner.h"

#define SIZE	4096u

static struct ring *ring;

static void setup(void)
{
	ring = ring_create(SIZE);
	ck_assert_ptr_nonnull(ring);
}

static void teardown(void)
{
	ring_destroy(ring);
}

TEST_CASE(.setup = setup, .teardown = teardown);

static void fill(struct ring_record *r, uint32_t n)
{
	memcpy(r->data, &n, 4);
	memset(r->data + 4, (int)(n & 0xff), r->len - 4);
}

/* Adds @stored bytes of the value @n; false: no room. */
static bool add(uint32_t n, uint32_t stored)
{
	struct ring_record *r = ring_reserve(ring, 4 + stored);

	if (!r)
		return false;
	fill(r, n);
	ring_add(r);
	return true;
}

/* Takes the oldest one; returns its number. */
static uint32_t take(void)
{
	struct ring_record *r = ring_next(ring);
	uint32_t n;

	ck_assert_ptr_nonnull(r);
	memcpy(&n, r->data, 4);
	for (uint32_t i = 4; i < r->len; i++)
		ck_assert_uint_eq(r->data[i], n & 0xff);
	ring_release(ring);
	return n;
}

TEST(records_come_out_as_they_went_in)
{
	for (uint32_t n = 1; n < 1000; n++) {
		ck_assert(add(n, n % 700));
		ck_assert(add(n + 1, 3));
		ck_assert_uint_eq(take(), n);
		ck_assert_uint_eq(take(), n + 1);
		ck_assert_ptr_null(ring_next(ring));
	}
}

TEST(a_full_ring_takes_nothing_and_loses_nothing)
{
	uint32_t n = 0, taken = 0;

	for (int rounds = 0; rounds < 50; rounds++) {
		while (add(n, 100 + n % 300))
			n++;
		ck_assert(!add(n, SIZE));
		ck_assert_uint_gt(n, taken);
		/* Take half of them: the next ones begin anywhere. */
		for (uint32_t half = (n - taken + 1) / 2; half > 0; half--)
			ck_assert_uint_eq(take(), taken++);
	}
	while (taken < n)
		ck_assert_uint_eq(take(), taken++);
	ck_assert_ptr_null(ring_next(ring));
}

TEST(a_record_that_is_being_written_holds_up_those_behind_it)
{
	struct ring_record *r = ring_reserve(ring, 14);

	ck_assert(add(2, 10));
	ck_assert_ptr_null(ring_next(ring));
	fill(r, 1);
	ring_add(r);
	ck_assert_uint_eq(take(), 1);
	ck_assert_uint_eq(take(), 2);
}

/* ---- many threads */

#define THREADS	4u
#define EACH	2000u

static _Atomic uint32_t added, running;

static void *add_many(void *arg)
{
	uint32_t first = (uint32_t)(uintptr_t)arg << 16;

	for (uint32_t n = 0; n < EACH; n++)
		if (add(first + n, n % 500))
			added++;
	running--;
	return NULL;
}

TEST(threads_add_at_the_same_time)
{
	uint32_t next[THREADS] = { 0 }, got = 0;
	pthread_t threads[THREADS];
	bool last;

	running = THREADS;
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, add_many,
						(void *)i), 0);
	do {
		last = running == 0;
		while (ring_next(ring)) {
			uint32_t n = take();

			/* Records of one thread keep their order. */
			ck_assert_uint_ge(n & 0xffff, next[n >> 16]);
			next[n >> 16] = (n & 0xffff) + 1;
			got++;
		}
	} while (!last);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(got, added);
}

static _Atomic uint32_t seen[THREADS];
static _Atomic bool refused;

/* Waits for the reader before each message. */
static void *add_in_turn(void *arg)
{
	uint32_t me = (uint32_t)(uintptr_t)arg;

	for (uint32_t n = 0; n < EACH && !refused; n++) {
		while (seen[me] < n)
			sched_yield();
		if (!add(me << 16 | n, 1))
			refused = true;
	}
	running--;
	return NULL;
}

TEST(a_ring_with_room_refuses_no_message)
{
	pthread_t threads[THREADS];
	bool last;

	running = THREADS;
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, add_in_turn,
						(void *)i), 0);
	do {
		last = running == 0;
		if (ring_next(ring))
			seen[take() >> 16]++;
		else
			sched_yield();
	} while (!last);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert(!refused);
}
