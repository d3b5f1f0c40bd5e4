/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks of clients that have too many. */
#include "tests/server/nlm_client.h"

#include "lib/stats.h"
#include "tests/unit/runner.h"

/* The clients are at several addresses of the loopback network. */
#define NETWORK_EXPORTS	"/mem 127.0.0.0/8(rw,insecure,no_root_squash)\n"

static struct nlm_process one, two;

static const struct nlm_bytes head = { 0, 10, true };
static const struct nlm_bytes all = { 0, 0, true };

static void start_small(void)
{
	const struct harness_config config = {
		.nlm = { .max_locks = 8, .max_host_locks = 4,
			 .max_file_locks = 7, .max_file_waits = 2 },
	};

	nlmc_start(&config);
	one = (struct nlm_process){ "c1", 11, 4, IPPROTO_TCP,
				    nfs_make_file(top, "file", "") };
	two = (struct nlm_process){ "c2", 22, 4, IPPROTO_TCP, one.fh };
}

TEST_CASE(.setup = start_small, .teardown = nlmc_end);

TEST(a_client_with_too_many_locks_is_told_and_another_is_not)
{
	const struct nlm_bytes far = { 500, 1, true };
	struct nlm_bytes b = { 0, 1, true };
	uint32_t status = NLM4_GRANTED;

	harness_publish(&srv, NETWORK_EXPORTS);
	for (; status == NLM4_GRANTED && b.off < 100; b.off += 2)
		status = nlmc_lock(&one, b, false);
	ck_assert_uint_eq(status, NLM4_DENIED_NOLOCKS);
	ck_assert_uint_le(b.off, 10);
	/* Another name makes no other client. */
	ck_assert_uint_eq(nlmc_lock(&two, far, false), NLM4_DENIED_NOLOCKS);
	nlmc_from = "127.0.0.2";
	ck_assert_uint_eq(nlmc_lock(&two, far, false), NLM4_GRANTED);
	nlmc_from = NULL;
	ck_assert_uint_eq(nlmc_unlock(&one, all), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
}

TEST(unlocks_that_split_locks_are_refused_at_twice_the_limit)
{
	const struct nlm_bytes whole = { 0, 1000, true };
	struct nlm_bytes b = { 1, 1, true };
	uint32_t status = NLM4_GRANTED;

	harness_publish(&srv, NETWORK_EXPORTS);
	ck_assert_uint_eq(nlmc_lock(&one, whole, false), NLM4_GRANTED);
	for (; status == NLM4_GRANTED && b.off < 100; b.off += 2)
		status = nlmc_unlock(&one, b);
	ck_assert_uint_eq(status, NLM4_DENIED_NOLOCKS);
	ck_assert_uint_eq(stats_sum_by_name("nlm_no_locks"), 1);
	ck_assert_uint_eq(nlmc_unlock(&one, whole), NLM4_GRANTED);
}

/* @from locks as many bytes of the file as the bounds allow. */
static void fill_file(const char *from, uint64_t off)
{
	struct nlm_bytes b = { off, 1, true };

	nlmc_from = from;
	for (unsigned i = 0; i < 4; i++, b.off += 2)
		nlmc_lock(&one, b, false);
	nlmc_from = NULL;
}

TEST(a_refused_upgrade_gives_back_the_shared_lock_though_the_file_is_full)
{
	const struct nlm_bytes low = { 0, 10, false };

	harness_publish(&srv, NETWORK_EXPORTS);
	ck_assert_uint_eq(nlmc_lock(&one, low, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, low, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head, true), NLM4_BLOCKED);
	nlmc_answer = NLM_DEAF;
	ck_assert_uint_eq(nlmc_unlock(&one, low), NLM4_GRANTED);
	fill_file("127.0.0.2", 100);
	fill_file("127.0.0.3", 200);
	ck_assert_uint_eq(nlmc_lock(&one, low, false), NLM4_DENIED);
	nlmc_answer = NLM4_DENIED;
	/* The lock is shared again, and no place is left. */
	EVENTUALLY(nlmc_lock(&one, low, false) == NLM4_DENIED_NOLOCKS);
}

TEST(a_file_with_too_many_locks_or_waiters_refuses_more)
{
	const struct nlm_bytes far = { 500, 1, true };
	struct nlm_bytes b = { 0, 1, true };

	harness_publish(&srv, NETWORK_EXPORTS);
	for (unsigned i = 0; i < 6; i++, b.off += 2) {
		nlmc_from = i < 3 ? NULL : "127.0.0.2";
		ck_assert_uint_eq(nlmc_lock(i < 3 ? &one : &two, b, false),
				  NLM4_GRANTED);
	}
	ck_assert_uint_eq(nlmc_lock(&two, far, false), NLM4_DENIED_NOLOCKS);
	for (b.off = 0; b.off < 4; b.off += 2)
		ck_assert_uint_eq(nlmc_lock(&two, b, true), NLM4_BLOCKED);
	ck_assert_uint_eq(nlmc_lock(&two, b, true), NLM4_DENIED_NOLOCKS);
	ck_assert_uint_eq(stats_sum_by_name("nlm_no_locks"), 2);
}
