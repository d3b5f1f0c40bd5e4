/* SPDX-License-Identifier: BSD-2-Clause */
/* The policy of grants: use, bounds, memory, fairness. */
#include "lib/util.h"
#include "tests/unit/runner.h"
#include "transport/rpcrdma/grant.h"

#define DEMAND(...) (struct rpcrdma_demand){ __VA_ARGS__ }

enum { KIB = 1024, MS = 1000000, S = 1000 * MS };

/* Zero stands for a connection alone, from 8 to 1024 credits of a KiB, without
 * a bound, that asks for more than the maximum. */
static unsigned next_of(struct rpcrdma_demand d)
{
	d.asked = d.asked ? d.asked : 4096;
	d.min = d.min ? d.min : 8;
	d.max = d.max ? d.max : 1024;
	d.unit = d.unit ? d.unit : 1024;
	d.conns = d.conns ? d.conns : 1;
	return rpcrdma_grant_next(&d);
}

static const struct {
	const char *why;
	struct rpcrdma_demand d;
	unsigned next;
} table[] = {
	/* Use. */
	{ "all in use: twice as many",
	  DEMAND(.grant = 32, .peak = 32), 64 },
	{ "three quarters in use: twice as many",
	  DEMAND(.grant = 32, .peak = 24), 64 },
	{ "a little less stays",
	  DEMAND(.grant = 32, .peak = 23), 32 },
	{ "more than a quarter stays",
	  DEMAND(.grant = 32, .peak = 9), 32 },
	{ "a quarter: half as many",
	  DEMAND(.grant = 32, .peak = 8), 16 },
	{ "idle: half as many",
	  DEMAND(.grant = 1024, .peak = 0), 512 },
	{ "calls beyond the grant are use as well",
	  DEMAND(.grant = 32, .peak = 100), 64 },
	/* Use that is not seen: the path takes 10 ms. */
	{ "2400 calls a second, one at a time here: 24 at a time there",
	  DEMAND(.grant = 32, .peak = 1, .calls = 2400, .time = S,
		 .path = 10 * MS), 64 },
	{ "900 calls a second: 9",
	  DEMAND(.grant = 32, .peak = 1, .calls = 900, .time = S,
		 .path = 10 * MS), 32 },
	{ "800 calls a second: 8",
	  DEMAND(.grant = 32, .peak = 1, .calls = 800, .time = S,
		 .path = 10 * MS), 16 },
	{ "8 calls and then nothing",
	  DEMAND(.grant = 32, .peak = 1, .calls = 8, .time = 10 * MS,
		 .path = 10 * MS), 16 },
	{ "24 calls in no time are at most 24 at a time",
	  DEMAND(.grant = 32, .peak = 1, .calls = 24, .time = 0,
		 .path = 10 * MS), 64 },
	{ "all calls that can be counted",
	  DEMAND(.grant = 32, .peak = 1, .calls = ~0u, .time = 0,
		 .path = 10 * MS), 64 },
	{ "on a path without length the calls don't count",
	  DEMAND(.grant = 32, .peak = 1, .calls = 100000, .time = MS), 16 },
	/* Bounds. */
	{ "no more than the maximum",
	  DEMAND(.grant = 1024, .peak = 1024), 1024 },
	{ "the last step is shorter",
	  DEMAND(.grant = 600, .peak = 600), 1024 },
	{ "no fewer than the minimum",
	  DEMAND(.grant = 8, .peak = 0), 8 },
	{ "the last step down is shorter",
	  DEMAND(.grant = 12, .peak = 0), 8 },
	{ "a fixed grant stays",
	  DEMAND(.grant = 128, .peak = 128, .min = 128, .max = 128), 128 },
	{ "a fixed grant stays when idle",
	  DEMAND(.grant = 128, .peak = 0, .min = 128, .max = 128), 128 },
	{ "a single credit in use grows",
	  DEMAND(.grant = 1, .peak = 1, .min = 1), 2 },
	{ "a single credit is never taken away",
	  DEMAND(.grant = 1, .peak = 0, .min = 1), 1 },
	{ "a bound beyond all numbers does not wrap",
	  DEMAND(.grant = 3u << 30, .peak = 3u << 30, .asked = ~0u,
		 .max = ~0u), ~0u },
	/* The requester's wish. */
	{ "no more than asked for",
	  DEMAND(.grant = 32, .peak = 32, .asked = 48), 48 },
	{ "a wish that is less takes nothing away",
	  DEMAND(.grant = 32, .peak = 32, .asked = 1), 32 },
	/* Memory: of 1024 KiB 768 are for grants. */
	{ "there is enough memory",
	  DEMAND(.grant = 32, .peak = 32, .budget = 1024 * KIB,
		 .used = 736 * KIB, .conns = 100), 64 },
	{ "not for twice as many, and 32 are more than the share",
	  DEMAND(.grant = 32, .peak = 32, .budget = 1024 * KIB,
		 .used = 737 * KIB, .conns = 100), 32 },
	{ "up to the share, when all want more",
	  DEMAND(.grant = 32, .peak = 32, .budget = 1024 * KIB,
		 .used = 760 * KIB, .conns = 16), 48 },
	{ "up to the share, even if others have the memory now",
	  DEMAND(.grant = 16, .peak = 16, .budget = 1024 * KIB,
		 .used = 1000 * KIB, .conns = 16), 32 },
	{ "above the share, while memory is short: half",
	  DEMAND(.grant = 512, .peak = 512, .budget = 1024 * KIB,
		 .used = 769 * KIB, .conns = 16), 256 },
	{ "half, but not below the share",
	  DEMAND(.grant = 64, .peak = 64, .budget = 1024 * KIB,
		 .used = 769 * KIB, .conns = 16), 48 },
	{ "a share below the minimum takes nothing more away",
	  DEMAND(.grant = 8, .peak = 8, .budget = 1024 * KIB,
		 .used = 1024 * KIB, .conns = 1000), 8 },
	{ "use beyond the bound is short as well",
	  DEMAND(.grant = 64, .peak = 30, .budget = 1024 * KIB,
		 .used = 5000 * KIB, .conns = 1000), 32 },
	{ "idle ones shrink while there is memory, too",
	  DEMAND(.grant = 64, .peak = 1, .budget = 1024 * KIB,
		 .used = 100 * KIB, .conns = 2), 32 },
	{ "nor is zero ever the share of a minimum of one",
	  DEMAND(.grant = 1, .peak = 0, .min = 1, .budget = 1,
		 .used = 1, .conns = 4096), 1 },
};

TEST(the_next_grant_is_that_of_the_table)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		ck_assert_msg(next_of(table[i].d) == table[i].next,
			      "%s: %u, not %u", table[i].why,
			      next_of(table[i].d), table[i].next);
}

TEST(a_grant_is_never_beyond_its_bounds)
{
	for (unsigned grant = 1; grant <= 40; grant++)
		for (unsigned peak = 0; peak <= 2 * grant; peak++)
			for (unsigned used = 0; used < 64; used += 3) {
				struct rpcrdma_demand d = {
					.grant = grant, .peak = peak,
					.asked = 3 * peak, .min = 2, .max = 33,
					.unit = 1, .used = used,
					.budget = 32, .conns = 1 + used / 2,
				};
				unsigned next = rpcrdma_grant_next(&d);

				ck_assert_uint_ge(next, 2);
				ck_assert_uint_le(next, 33);
			}
}

/* Whatever the use, once the grant suits it, it stays. */
TEST(a_steady_use_has_a_steady_grant)
{
	for (unsigned use = 0; use <= 1024; use++) {
		unsigned grant = 32, last = 0;

		for (int i = 0; i < 20; i++) {
			last = grant;
			grant = next_of(DEMAND(.grant = grant,
					       .peak = MIN(use, grant)));
		}
		ck_assert_uint_eq(grant, last);
		ck_assert_uint_ge(grant, use);
	}
}

enum { CLIENTS = 4 };

/* One round: each client of @use decides, as its memory is counted. */
static void decide_all(unsigned grant[CLIENTS], const unsigned use[CLIENTS],
		       size_t budget)
{
	for (int i = 0; i < CLIENTS; i++) {
		struct rpcrdma_demand d = DEMAND(.grant = grant[i],
			.peak = MIN(use[i], grant[i]), .unit = 1,
			.budget = budget, .conns = CLIENTS);

		for (int j = 0; j < CLIENTS; j++)
			d.used += grant[j];
		grant[i] = next_of(d);
	}
}

TEST(a_busy_client_does_not_keep_others_from_their_share)
{
	unsigned grant[CLIENTS] = { 8, 8, 8, 8 };
	unsigned use[CLIENTS] = { 4096, 0, 0, 0 };

	for (int i = 0; i < 20; i++)
		decide_all(grant, use, 800);
	/* Alone it gets nearly all; 600 are for grants. */
	ck_assert_uint_ge(grant[0], 256);
	for (int i = 1; i < CLIENTS; i++)
		use[i] = 4096;
	for (int i = 0; i < 20; i++)
		decide_all(grant, use, 800);
	for (int i = 0; i < CLIENTS; i++) {
		ck_assert_uint_ge(grant[i], 75);
		ck_assert_uint_le(grant[i], 300);
	}
	/* Connections with enough credits leave the rest to it. */
	for (int i = 1; i < CLIENTS; i++)
		use[i] = 1;
	for (int i = 0; i < 20; i++)
		decide_all(grant, use, 800);
	ck_assert_uint_ge(grant[0], 256);
	for (int i = 1; i < CLIENTS; i++)
		ck_assert_uint_eq(grant[i], 8);
}
