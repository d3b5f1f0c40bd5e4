/* SPDX-License-Identifier: BSD-2-Clause */
/* The window of sequence numbers, RFC 2203 section 5.3.3.1. */
#include "rpc/gss_priv.h"

#include "tests/unit/runner.h"

static struct gss_window w;

static void setup(void)
{
	memset(&w, 0, sizeof(w));
}

TEST(the_first_call_may_have_any_number)
{
	static const uint32_t first[] = { 0, 1, 63, GSS_WINDOW, 4000000000u };

	for (size_t i = 0; i < ARRAY_SIZE(first); i++) {
		setup();
		ck_assert(gss_window_take(&w, first[i]));
		ck_assert(!gss_window_take(&w, first[i]));
	}
}

TEST(each_number_is_taken_once_in_any_order)
{
	for (uint32_t i = 0; i < 5 * GSS_WINDOW; i += 4) {
		ck_assert(gss_window_take(&w, i + 3));
		ck_assert(gss_window_take(&w, i));
		ck_assert(gss_window_take(&w, i + 2));
		for (uint32_t k = 0; k < 4; k++)
			ck_assert_int_eq(gss_window_is_new(&w, i + k), k == 1);
		ck_assert(gss_window_take(&w, i + 1));
		ck_assert(!gss_window_take(&w, i + 1));
	}
}

TEST(numbers_below_the_window_are_old)
{
	ck_assert(gss_window_take(&w, 10 * GSS_WINDOW));
	ck_assert(!gss_window_take(&w, 9 * GSS_WINDOW));
	ck_assert(gss_window_take(&w, 9 * GSS_WINDOW + 1));
	ck_assert(!gss_window_take(&w, 0));
}

/* Random steps against a list of all numbers that came. */
TEST(a_window_is_as_a_list_of_all_numbers)
{
	enum { N = 1 << 16 };
	static bool seen[N];
	uint32_t seed = 1, top = 0, seq;

	for (int i = 0; i < 20000; i++) {
		bool is_new;

		seed = seed * 1664525 + 1013904223;
		seq = top + (seed >> 16) % 1300;
		seq = seq > 1200 ? seq - 1200 : 0;
		if (seq >= N)
			break;
		is_new = !seen[seq] && seq + GSS_WINDOW > top;
		ck_assert_int_eq(gss_window_take(&w, seq), is_new);
		seen[seq] = true;
		top = MAX(top, seq);
	}
}
