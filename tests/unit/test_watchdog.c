/* SPDX-License-Identifier: BSD-2-Clause */
/* The watchdog of peers that stand still, by a table. */
#include "lib/util.h"
#include "lib/watchdog.h"
#include "tests/unit/runner.h"

/* A look at the watchdog, and its answers with a limit of 100 ms. */
struct look {
	unsigned at;			/* ms; with the first look, at 1000 */
	uint64_t moved;
	uint64_t owed;
	bool	 stalled;
	bool	 slow;
};

static const struct look idle[] = {
	{ 1000, 7, 0, false, false },
	{ 9000, 7, 0, false, false },
	/* The debt is as new as the last look without one. */
	{ 9099, 7, 5, false, false },
	{ 9100, 7, 5, true, true },
};

static const struct look first_sight[] = {
	{ 1000, 7, 5, false, false },
	{ 1099, 7, 5, false, false },
	{ 1100, 7, 5, true, true },
};

static const struct look a_trickle[] = {
	{ 1000, 0, 1200, false, false },
	{ 1050, 1, 1200, false, false },
	{ 1100, 100, 1200, false, true },	/* 101 would do */
	{ 1149, 101, 1200, false, false },
	{ 1248, 101, 1200, false, false },
	{ 1249, 101, 1200, true, true },
	/* It is asked again after it barked. */
	{ 1250, 202, 1200, false, false },
};

static const struct look a_small_debt[] = {
	{ 1000, 0, 11, false, false },
	{ 1099, 1, 11, false, false },
	{ 1198, 1, 11, false, false },
	{ 1199, 1, 11, true, true },
};

static const struct look a_time_before_the_mark[] = {
	{ 1000, 0, 1, false, false },
	{ 900, 0, 1, false, false },
};

TEST_LOOP(a_watchdog_barks_when_too_little_of_a_debt_moves, 0, 5)
{
	static const struct {
		const struct look *looks;
		size_t n;
	} table[] = {
		{ idle, ARRAY_SIZE(idle) },
		{ first_sight, ARRAY_SIZE(first_sight) },
		{ a_trickle, ARRAY_SIZE(a_trickle) },
		{ a_small_debt, ARRAY_SIZE(a_small_debt) },
		{ a_time_before_the_mark, ARRAY_SIZE(a_time_before_the_mark) },
	};
	struct watchdog stalled = { 0 }, slow = { 0 };

	for (size_t i = 0; i < table[_i].n; i++) {
		const struct look *l = &table[_i].looks[i];
		uint64_t now = l->at * 1000000ull;

		ck_assert_msg(watchdog_stalled(&stalled, now, l->moved,
					       l->owed, 100) == l->stalled,
			      "table %d, look %zu: stalled", _i, i);
		ck_assert_msg(watchdog_slow(&slow, now, l->moved, l->owed,
					    100) == l->slow,
			      "table %d, look %zu: slow", _i, i);
	}
}
