/* SPDX-License-Identifier: BSD-2-Clause */
/* The token bucket, with a clock of the tests' own. */
#include "lib/bucket.h"

#include "lib/clock.h"
#include "lib/util.h"
#include "tests/unit/runner.h"

#define START	(1000 * NS_PER_S)
#define LATE	(UINT64_MAX / 2)

static struct bucket bucket_of(uint64_t rate)
{
	struct bucket b = { 0 };

	bucket_set_rate(&b, rate, START);
	return b;
}

/* Takes @cost as often as the bucket allows from @now on until @until; returns
 * how often. */
static uint64_t take_until(struct bucket *b, uint64_t cost, uint64_t now,
			   uint64_t until)
{
	uint64_t n = 0;

	for (;;) {
		now += bucket_wait(b, now);
		if (now >= until)
			return n;
		bucket_take(b, cost, now);
		n++;
	}
}

TEST(a_bucket_without_a_rate_never_waits)
{
	struct bucket b = { 0 };

	for (unsigned i = 0; i < 1000; i++) {
		bucket_take(&b, UINT64_MAX, START);
		ck_assert_uint_eq(bucket_wait(&b, START), 0);
	}
	ck_assert(bucket_is_full(&b, START));
}

TEST(ten_seconds_give_ten_times_the_rate_and_a_burst_at_most)
{
	static const struct { uint64_t rate, cost; } rows[] = {
		{ 1, 1 }, { 3, 1 }, { 7, 1 }, { 10, 1 }, { 999, 1 },
		{ 1000, 1 }, { 100000, 1 }, { 1u << 20, 4096 },
		{ 100u << 20, 1u << 20 }, { 50000, 65536 },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct bucket b = bucket_of(rows[i].rate);
		uint64_t n = take_until(&b, rows[i].cost, START,
					START + 10 * NS_PER_S);
		uint64_t had = n * rows[i].cost;

		/* The last one can be in debt. */
		ck_assert(had >= 10 * rows[i].rate);
		ck_assert(had <= 10 * rows[i].rate + rows[i].rate / 10 +
		      rows[i].cost + rows[i].rate / 1000);
	}
}

TEST(a_burst_is_a_tenth_of_a_second_however_long_nothing_came)
{
	static const uint64_t idle[] = { 1, 10, 1000000 };

	for (unsigned i = 0; i < ARRAY_SIZE(idle); i++) {
		struct bucket b = bucket_of(1000);
		uint64_t now = START + idle[i] * NS_PER_S;
		unsigned n = 0;

		while (bucket_wait(&b, now) == 0) {
			bucket_take(&b, 1, now);
			n++;
		}
		ck_assert_uint_eq(n, 101);
	}
}

TEST(a_cost_above_the_burst_is_let_in_and_paid_off)
{
	struct bucket b = bucket_of(1000);

	ck_assert_uint_eq(bucket_wait(&b, START), 0);
	bucket_take(&b, 5000, START);
	ck_assert_uint_eq(bucket_wait(&b, START),
			  5 * NS_PER_S - BUCKET_BURST_NS);
	ck_assert_uint_eq(bucket_wait(&b, START + 4 * NS_PER_S),
			  NS_PER_S - BUCKET_BURST_NS);
	ck_assert_uint_eq(bucket_wait(&b, START + 5 * NS_PER_S), 0);
}

TEST(an_unused_part_of_a_cost_comes_back)
{
	struct bucket b = bucket_of(1000);

	bucket_take(&b, 5000, START);
	bucket_give(&b, 4000);
	ck_assert_uint_eq(bucket_wait(&b, START), NS_PER_S - BUCKET_BURST_NS);
	bucket_give(&b, UINT64_MAX);
	ck_assert_uint_eq(bucket_wait(&b, START), 0);
	/* That makes at most a burst. */
	ck_assert_uint_eq(take_until(&b, 1, START, START + 1), 101);
}

TEST(a_clock_that_goes_back_makes_nobody_wait_longer_than_that)
{
	struct bucket b = bucket_of(10);

	bucket_take(&b, 1, START);
	bucket_take(&b, 1, START);
	ck_assert_uint_eq(bucket_wait(&b, START), NS_PER_S / 10);
	ck_assert_uint_eq(bucket_wait(&b, START - NS_PER_S),
			  NS_PER_S * 11 / 10);
	bucket_take(&b, 1, START - NS_PER_S);
	ck_assert_uint_eq(bucket_wait(&b, START), NS_PER_S / 5);
}

TEST(no_cost_and_no_rate_overflows)
{
	static const uint64_t rates[] = {
		1, 2, 1000, UINT32_MAX, UINT64_MAX / 2, UINT64_MAX,
	}, nows[] = { 0, 1, START, LATE };

	for (unsigned r = 0; r < ARRAY_SIZE(rates); r++)
		for (unsigned n = 0; n < ARRAY_SIZE(nows); n++) {
			struct bucket b = bucket_of(rates[r]);

			for (unsigned i = 0; i < 100; i++) {
				bucket_take(&b, UINT64_MAX, nows[n]);
				ck_assert(bucket_wait(&b, nows[n]) <=
				      BUCKET_LONGEST);
			}
			bucket_set_rate(&b, 1, nows[n]);
			ck_assert(bucket_wait(&b, nows[n]) <= BUCKET_LONGEST);
		}
}

TEST(a_debt_is_paid_off_at_the_new_rate)
{
	static const struct { uint64_t from, to, ms; } rows[] = {
		{ 1000, 2000, 1000 }, { 1000, 100, 20000 },
		{ 1000, 1000, 2000 }, { 1000, 1, 2000000 },
		{ 1000, 1000000, 2 }, { 1000, 0, 0 },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct bucket b = bucket_of(rows[i].from);
		uint64_t now = START + NS_PER_S;

		bucket_take(&b, 3100, START);	/* 2000 are left at @now */
		bucket_set_rate(&b, rows[i].to, now);
		ck_assert_uint_eq(bucket_wait(&b, now), rows[i].ms * NS_PER_MS);
	}
}

TEST(a_limit_that_comes_back_knows_of_no_debt)
{
	struct bucket b = bucket_of(1);

	bucket_take(&b, 1000, START);
	bucket_set_rate(&b, 0, START);
	bucket_set_rate(&b, 1, START);
	ck_assert_uint_eq(bucket_wait(&b, START), 0);
}

TEST(a_bucket_is_full_when_all_came_back)
{
	struct bucket b = bucket_of(1000);

	ck_assert(bucket_is_full(&b, START));
	bucket_take(&b, 50, START);
	ck_assert(!bucket_is_full(&b, START + 49 * NS_PER_MS));
	ck_assert(bucket_is_full(&b, START + 50 * NS_PER_MS));
}

TEST(rates_are_the_same_when_both_are)
{
	const struct rates none = { 0, 0 }, ops = { 1, 0 }, bytes = { 0, 1 };

	ck_assert(!rates_any(&none) && rates_any(&ops) && rates_any(&bytes));
	ck_assert(rates_same(&ops, &ops) && !rates_same(&ops, &bytes));
	ck_assert(!rates_same(&none, &ops));
}
