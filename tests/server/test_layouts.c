/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NFS calls with random chunks, every byte of the answers and of the memory
 * around the chunks held against a plain model (layout.h).  LAYOUT_CALLS and
 * LAYOUT_SEED in the environment ask for more of them, and for others.
 *
 * A case that fails is made smaller as long as it fails, and printed as a row
 * for the table of cases that failed once.
 */
#include "tests/server/layout.h"

#include <stdlib.h>

#include "lib/util.h"
#include "tests/unit/runner.h"

/* A row is the smallest form of a case, as it was printed. */
static const struct layout once[] = {
	/* Zeros were written in the place of bytes that a chunk lacks. */
	{ .proc = LAYOUT_WRITE, .len = 2,
	  .nreads = 1, .read = { { 1, -1, { 0 } } },
	},
	{ .proc = LAYOUT_WRITE, .len = 8,
	  .nreads = 1, .read = { { 1, -1, { 0 } } },
	},
	{ .proc = LAYOUT_SYMLINK, .len = 4, .nomsg = true,
	  .call = { 1, 0, { 0 } },
	  .nreads = 1, .read = { { 2, -3, { 1, 0 } } },
	},
};

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *s = getenv(name);

	return s ? strtoull(s, NULL, 0) : otherwise;
}

/* Makes a case that @fails as small as it can be. */
static void shrink(struct layout *l, const char *(*fails)(const struct layout *,
							  bool *))
{
	struct layout next;
	unsigned step = 0;
	bool sent;

	for (unsigned tries = 0; tries < 5000; tries++) {
		if (!layout_smaller(l, &step, &next))
			return;
		if (layout_valid(&next) && fails(&next, &sent)) {
			*l = next;
			step = 0;
		}
	}
}

/* Counts the layout if it could be sent. */
static unsigned go(const struct layout *l)
{
	struct layout small = *l;
	bool sent;
	const char *why = layout_try(l, &sent);

	if (!why)
		return sent;
	layout_print(l, stderr);
	fprintf(stderr, "\t/* %s; in its smallest form: */\n", why);
	shrink(&small, layout_try);
	layout_print(&small, stderr);
	why = layout_try(&small, &sent);
	fprintf(stderr, "\t/* %s */\n", why ? why : "right by now");
	ck_abort_msg("a layout has a wrong answer");
}

TEST_CASE(.timeout = 1200);

TEST(cases_that_failed_once_do_not_fail_again)
{
	layout_open(0);
	for (size_t i = 0; i < ARRAY_SIZE(once); i++)
		ck_assert(go(&once[i]));
	layout_close();
}

static const char *pretend(const struct layout *l, bool *sent)
{
	return l->len >= 1000 && l->nwrites > 1 && l->write[1].nsegs > 2 &&
	       l->write[1].cut[1] > 7 ? "so it is" : NULL;
}

TEST(a_case_that_fails_is_made_as_small_as_it_can_be)
{
	struct layout_random r = { .state = 5 };
	struct layout l;

	do
		layout_random(&l, &r);
	while (!pretend(&l, NULL));
	shrink(&l, pretend);
	ck_assert_uint_eq(l.len, 1000);
	ck_assert_uint_eq(l.offset + l.place + l.peer + l.nreads, 0);
	ck_assert(!l.has_reply && !l.nomsg && !l.mixed);
	ck_assert_uint_eq(l.nwrites, 2);
	ck_assert_uint_eq(l.write[0].nsegs, 0);
	ck_assert_uint_eq(l.write[1].nsegs, 3);
	ck_assert_int_eq(l.write[1].diff, 0);
	ck_assert_uint_eq(l.write[1].cut[0], 0);
	ck_assert_uint_eq(l.write[1].cut[1], 8);
}

/* In order, and then a tenth of them over a fabric that does whatever RDMA
 * lets it do. */
TEST_LOOP(any_chunks_get_the_answer_of_a_plain_model, 0, 2)
{
	uint64_t calls = number("LAYOUT_CALLS", 5000) / (_i ? 10 : 1);
	uint64_t seed = number("LAYOUT_SEED", 1) + (uint64_t)_i;
	struct layout_random r = { .state = 2 * seed + 1 };
	uint64_t sent = 0;
	struct layout l;

	layout_open(_i ? (uint32_t)seed : 0);
	while (sent < calls) {
		layout_random(&l, &r);
		if (layout_valid(&l))
			sent += go(&l);
	}
	layout_close();
	printf("# %llu layouts from seed %llu\n", (unsigned long long)sent,
	       (unsigned long long)seed);
}
