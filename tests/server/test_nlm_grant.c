/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks that were granted to a waiter, while its client has not answered. */
#include "tests/server/nlm_client.h"

#include "lib/stats.h"
#include "tests/unit/runner.h"

static struct nlm_process one, two, three;

static const struct nlm_bytes all = { 0, 100, true };
static const struct nlm_bytes all_shared = { 0, 100, false };
static const struct nlm_bytes head = { 0, 50, true };
static const struct nlm_bytes head_shared = { 0, 50, false };
static const struct nlm_bytes middle = { 40, 20, true };
static const struct nlm_bytes last = { 50, 50, true };
static const struct nlm_bytes beyond = { 50, 100, true };
static const struct nlm_bytes file = { 0, 0, true };

/* Call-backs without an answer after @told_ms might have come. */
static void start_told(uint32_t told_ms)
{
	const struct harness_config config = {
		.nlm = { .call_back_ms = 50, .told_ms = told_ms },
	};

	nlmc_start(&config);
	one = (struct nlm_process){ "c1", 11, 4, IPPROTO_TCP,
				    nfs_make_file(top, "file", "") };
	two = three = one;
	two.host = "c2";
	two.svid = 22;
	three.host = "c3";
	three.svid = 33;
}

static void start(void)
{
	start_told(200);
}

/* Even on a slow machine a deaf client counts as deaf. */
static void start_patient(void)
{
	start_told(60 * 1000);
}

TEST_CASE(.setup = start, .teardown = nlmc_end);

#define GRANTED(call) ck_assert_uint_eq(call, NLM4_GRANTED)
#define BLOCKED(call) ck_assert_uint_eq(call, NLM4_BLOCKED)
#define DENIED(call) ck_assert_uint_eq(call, NLM4_DENIED)

/* @two waits for @b, gets it, and its client doesn't answer as @answer. */
static void grant(struct nlm_bytes b, uint32_t answer)
{
	unsigned before = nlmc_count(NLM_GRANTED);

	nlmc_answer = answer;
	GRANTED(nlmc_lock(&one, b, false));
	BLOCKED(nlmc_lock(&two, b, true));
	GRANTED(nlmc_unlock(&one, b));
	if (answer == NLM_SILENT)
		EVENTUALLY(nlmc_count(NLM_GRANTED) > before);
}

static void ignore(void *arg, const struct lock_view *v)
{
}

static unsigned count_waits(void)
{
	struct lock_totals t;

	nlm_walk(srv.nlm, 0, ignore, NULL, &t);
	return t.waits;
}

/* The last call-back's bytes are @b. */
static bool told_of(struct nlm_bytes b)
{
	struct nlm_came came[NLM_CAME_MAX];
	unsigned n = nlmc_came(came);

	return n && came[n - 1].off == b.off && came[n - 1].len == b.len;
}

/* ---- the owner's calls meanwhile */

/* No call-back comes, or each answer is lost. */
static const uint32_t lost[] = { NLM_DEAF, NLM_SILENT };

TEST(bytes_that_were_unlocked_are_not_told_of)
{
	unsigned told;

	for (unsigned i = 0; i < ARRAY_SIZE(lost); i++) {
		grant(all, lost[i]);
		GRANTED(nlmc_unlock(&two, head));
		GRANTED(nlmc_lock(&one, head, false));
		told = nlmc_count(NLM_GRANTED);
		BLOCKED(nlmc_lock(&two, all, true));
		/* It might have taken the grant, and has the rest. */
		DENIED(nlmc_lock(&three, last, false));
		nlmc_answer = NLM4_GRANTED;
		ck_assert_uint_eq(nlmc_count(NLM_GRANTED), told);
		GRANTED(nlmc_unlock(&one, head));
		EVENTUALLY(nlmc_count(NLM_GRANTED) == told + 1);
		ck_assert(told_of(all));
		DENIED(nlmc_lock(&one, head, false));
		GRANTED(nlmc_unlock(&two, all));
		GRANTED(nlmc_lock(&three, all, false));
		GRANTED(nlmc_unlock(&three, all));
	}
}

TEST(a_cancel_after_a_part_was_unlocked_gives_back_the_rest)
{
	for (unsigned i = 0; i < ARRAY_SIZE(lost); i++) {
		grant(all, lost[i]);
		GRANTED(nlmc_unlock(&two, head));
		GRANTED(nlmc_cancel(&two, all));
		GRANTED(nlmc_lock(&three, all, false));
		GRANTED(nlmc_unlock(&three, all));
	}
}

/* It waits again, and might have the rest of the grant: the CANCEL's answer
 * makes the client unlock that. */
TEST(a_cancel_of_a_second_wait_is_denied_and_an_unlock_ends_all)
{
	grant(all, NLM_DEAF);
	GRANTED(nlmc_unlock(&two, head));
	GRANTED(nlmc_lock(&one, head, false));
	BLOCKED(nlmc_lock(&two, all, true));
	DENIED(nlmc_cancel(&two, all));
	DENIED(nlmc_lock(&three, last, false));
	GRANTED(nlmc_unlock(&two, all));
	GRANTED(nlmc_lock(&three, last, false));
}

/* The CANCEL came after both calls: the client has to unlock the rest. */
TEST(a_cancel_of_a_lock_that_was_granted_is_denied_while_a_part_is_held)
{
	GRANTED(nlmc_lock(&two, all, true));
	GRANTED(nlmc_unlock(&two, head));
	DENIED(nlmc_cancel(&two, all));
	DENIED(nlmc_lock(&three, last, false));
	GRANTED(nlmc_unlock(&two, all));
	GRANTED(nlmc_cancel(&two, all));
	GRANTED(nlmc_lock(&three, all, false));
}

/* The same after the call-back was answered. */
TEST(a_cancel_of_a_lock_that_was_taken_is_denied_while_a_part_is_held)
{
	grant(all, NLM4_GRANTED);
	EVENTUALLY(count_waits() == 0);
	GRANTED(nlmc_unlock(&two, head));
	DENIED(nlmc_cancel(&two, all));
	GRANTED(nlmc_unlock(&two, all));
	GRANTED(nlmc_lock(&three, all, false));
}

/* The bytes are another thread's by now, as shared, and it was told so. */
TEST(a_cancel_of_an_exclusive_lock_is_no_matter_of_a_shared_one)
{
	GRANTED(nlmc_lock(&two, all, true));
	GRANTED(nlmc_lock(&two, all_shared, false));
	GRANTED(nlmc_cancel(&two, all));
	DENIED(nlmc_lock(&three, all, false));
	GRANTED(nlmc_lock(&three, all_shared, false));
}

TEST(a_lock_of_another_thread_stays_when_the_wait_is_cancelled)
{
	for (unsigned i = 0; i < ARRAY_SIZE(lost); i++) {
		grant(all, lost[i]);
		GRANTED(nlmc_lock(&two, middle, false));
		GRANTED(nlmc_cancel(&two, all));
		DENIED(nlmc_lock(&one, middle, false));
		GRANTED(nlmc_lock(&one, (struct nlm_bytes){ 0, 40, true },
				  false));
		GRANTED(nlmc_lock(&one, (struct nlm_bytes){ 60, 40, true },
				  false));
		GRANTED(nlmc_unlock(&one, all));
		GRANTED(nlmc_unlock(&two, all));
	}
}

TEST(two_waits_of_one_owner_that_overlap_are_told_one_by_one)
{
	GRANTED(nlmc_lock(&one, file, false));
	BLOCKED(nlmc_lock(&two, all, true));
	BLOCKED(nlmc_lock(&two, beyond, true));
	nlmc_answer = NLM_DEAF;
	GRANTED(nlmc_unlock(&one, file));
	GRANTED(nlmc_cancel(&two, all));
	nlmc_answer = NLM4_GRANTED;
	EVENTUALLY(nlmc_count(NLM_GRANTED) == 1);
	ck_assert(told_of(beyond));
	GRANTED(nlmc_lock(&one, head, false));
	DENIED(nlmc_lock(&one, last, false));
}

TEST(a_wait_that_was_taken_lets_the_next_of_its_owner_be_told)
{
	GRANTED(nlmc_lock(&one, file, false));
	BLOCKED(nlmc_lock(&two, all, true));
	BLOCKED(nlmc_lock(&two, beyond, true));
	GRANTED(nlmc_unlock(&one, file));
	EVENTUALLY(nlmc_count(NLM_GRANTED) == 2);
	ck_assert(told_of(beyond));
	DENIED(nlmc_cancel(&two, all));
	DENIED(nlmc_lock(&one, head, false));
}

TEST(a_lock_that_shares_is_not_told_of_as_exclusive)
{
	unsigned told;

	for (unsigned i = 0; i < ARRAY_SIZE(lost); i++) {
		grant(all, lost[i]);
		GRANTED(nlmc_lock(&two, head_shared, false));
		GRANTED(nlmc_lock(&three, head_shared, false));
		told = nlmc_count(NLM_GRANTED);
		nlmc_answer = NLM4_GRANTED;
		BLOCKED(nlmc_lock(&two, all, true));
		ck_assert_uint_eq(nlmc_count(NLM_GRANTED), told);
		GRANTED(nlmc_unlock(&three, head));
		EVENTUALLY(nlmc_count(NLM_GRANTED) == told + 1);
		DENIED(nlmc_lock(&three, head_shared, false));
		GRANTED(nlmc_unlock(&two, file));
	}
}

TEST(a_cancelled_upgrade_leaves_what_was_locked_meanwhile)
{
	GRANTED(nlmc_lock(&two, head_shared, false));
	GRANTED(nlmc_lock(&one, head_shared, false));
	nlmc_answer = NLM_DEAF;
	BLOCKED(nlmc_lock(&two, all, true));
	GRANTED(nlmc_unlock(&one, all));
	GRANTED(nlmc_lock(&two, last, false));
	GRANTED(nlmc_cancel(&two, all));
	GRANTED(nlmc_lock(&one, head_shared, false));
	DENIED(nlmc_lock(&one, head, false));
	DENIED(nlmc_lock(&one, (struct nlm_bytes){ 50, 50, false }, false));
	GRANTED(nlmc_unlock(&two, all));
}

TEST(an_unlock_ends_the_waits_of_its_owner)
{
	GRANTED(nlmc_lock(&one, all, false));
	BLOCKED(nlmc_lock(&two, all, true));
	BLOCKED(nlmc_lock(&two, head, true));
	GRANTED(nlmc_unlock(&two, file));
	BLOCKED(nlmc_lock(&three, all, true));
	GRANTED(nlmc_unlock(&one, all));
	EVENTUALLY(nlmc_count(NLM_GRANTED) == 1);
	GRANTED(nlmc_unlock(&three, all));
	GRANTED(nlmc_lock(&one, all, false));
	ck_assert_uint_eq(nlmc_count(NLM_GRANTED), 1);
}

TEST(an_unlock_of_a_part_leaves_a_wait)
{
	GRANTED(nlmc_lock(&two, (struct nlm_bytes){ 0, 10, true }, false));
	GRANTED(nlmc_lock(&one, last, false));
	BLOCKED(nlmc_lock(&two, all, true));
	GRANTED(nlmc_unlock(&two, (struct nlm_bytes){ 0, 10, true }));
	GRANTED(nlmc_unlock(&one, last));
	EVENTUALLY(nlmc_count(NLM_GRANTED) == 1);
	ck_assert(told_of(all));
	DENIED(nlmc_lock(&one, head, false));
}

TEST(a_cancel_waits_for_a_call_back_that_is_under_way)
{
	uint64_t awaits = stats_sum_by_name("nlm_awaits");

	grant(all, NLM_SILENT);
	GRANTED(nlmc_cancel(&two, all));
	ck_assert_uint_gt(stats_sum_by_name("nlm_awaits"), awaits);
	GRANTED(nlmc_lock(&one, all, false));
}

/* ---- answers */

TEST(a_refusal_of_a_repeated_call_back_takes_nothing)
{
	static const int protos[] = { IPPROTO_TCP, IPPROTO_UDP };

	for (unsigned i = 0; i < 2; i++) {
		unsigned told = nlmc_count(NLM_GRANTED);

		two.proto = protos[i];
		grant(all, NLM_SILENT);
		nlmc_answer = NLM4_DENIED;
		EVENTUALLY(nlmc_count(NLM_GRANTED) > told + 1);
		/* That has been acted on. */
		DENIED(nlmc_cancel(&two, all));
		DENIED(nlmc_lock(&one, all, false));
		GRANTED(nlmc_unlock(&two, all));
	}
}

TEST(an_answer_that_is_neither_yes_nor_no_is_none)
{
	unsigned told;

	grant(all, NLM4_DENIED_GRACE_PERIOD);
	EVENTUALLY(nlmc_count(NLM_GRANTED) >= 2);
	DENIED(nlmc_lock(&one, all, false));
	nlmc_answer = NLM4_GRANTED;
	EVENTUALLY(count_waits() == 0);
	told = nlmc_count(NLM_GRANTED);
	DENIED(nlmc_lock(&one, all, false));
	ck_assert_uint_eq(nlmc_count(NLM_GRANTED), told);
}

static struct nlm_came came[NLM_CAME_MAX];

/* @two waits by a message, and is called back @n times without an answer. */
static void tell_by_messages(unsigned n)
{
	nlmc_answer = NLM4_GRANTED;
	GRANTED(nlmc_lock(&one, all, false));
	nlmc_message(&two, NLM_LOCK_MSG, all, true);
	EVENTUALLY(nlmc_count(NLM_LOCK_RES) == 1);
	GRANTED(nlmc_unlock(&one, all));
	EVENTUALLY(nlmc_count(NLM_GRANTED_MSG) >= n);
	nlmc_came(came);
}

/* The cookie of the call-back @n, from 0. */
static uint64_t cookie_of(unsigned n)
{
	for (unsigned i = 0;; i++)
		if (came[i].proc == NLM_GRANTED_MSG && n-- == 0)
			return came[i].cookie;
}

TEST(a_late_yes_to_an_earlier_call_back_counts)
{
	unsigned told;

	tell_by_messages(2);
	nlmc_granted_res_to(&two, cookie_of(0), NLM4_GRANTED);
	DENIED(nlmc_cancel(&two, all));
	told = nlmc_count(NLM_GRANTED_MSG);
	nlmc_granted_res_to(&two, cookie_of(1), NLM4_DENIED);
	DENIED(nlmc_lock(&one, all, false));
	ck_assert_uint_eq(nlmc_count(NLM_GRANTED_MSG), told);
}

TEST(a_no_to_a_later_call_back_proves_nothing)
{
	tell_by_messages(2);
	ck_assert_uint_ne(cookie_of(0), cookie_of(1));
	nlmc_granted_res_to(&two, cookie_of(1), NLM4_DENIED);
	DENIED(nlmc_cancel(&two, all));
	DENIED(nlmc_lock(&one, all, false));
}

TEST(a_late_no_to_the_first_call_back_takes_the_lock)
{
	tell_by_messages(2);
	nlmc_granted_res_to(&two, cookie_of(0), NLM4_DENIED);
	EVENTUALLY(nlmc_lock(&one, all, false) == NLM4_GRANTED);
}

TEST(an_answer_with_a_strange_cookie_is_none)
{
	tell_by_messages(1);
	nlmc_granted_res_to(&two, cookie_of(0) + 4096, NLM4_DENIED);
	nlmc_granted_res_to(&three, cookie_of(0) - 4096, NLM4_DENIED);
	DENIED(nlmc_lock(&one, all_shared, false));
	nlmc_granted_res_to(&two, cookie_of(0), NLM4_GRANTED);
	DENIED(nlmc_cancel(&two, all));
}

TEST_CASE(.setup = start_patient, .teardown = nlmc_end);

TEST(a_refusal_of_the_first_that_came_takes_the_lock)
{
	grant(all, NLM_DEAF);
	DENIED(nlmc_lock(&one, all, false));
	nlmc_answer = NLM4_DENIED;
	EVENTUALLY(nlmc_lock(&one, all, false) == NLM4_GRANTED);
}

TEST(a_lock_of_another_thread_stays_when_the_grant_is_refused)
{
	grant(all, NLM_DEAF);
	GRANTED(nlmc_lock(&two, middle, false));
	nlmc_answer = NLM4_DENIED;
	EVENTUALLY(nlmc_lock(&one, (struct nlm_bytes){ 0, 40, true }, false) ==
		   NLM4_GRANTED);
	DENIED(nlmc_lock(&one, middle, false));
}
