/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks that clients wait for, and how they hear of them. */
#include "tests/server/nlm_client.h"

#include <sys/socket.h>

#include "lib/stats.h"
#include "tests/unit/runner.h"

static struct nlm_process one, two, three;

static const struct nlm_bytes head = { 0, 10, true };
static const struct nlm_bytes head_shared = { 0, 10, false };
static const struct nlm_bytes tail = { 100, 0, true };

static void start_with(const struct harness_config *config)
{
	nlmc_start(config);
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
	start_with(NULL);
}

/* @one has @b, and @p waits for it. */
static void block(const struct nlm_process *p, struct nlm_bytes b)
{
	ck_assert_uint_eq(nlmc_lock(&one, b, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(p, b, true), NLM4_BLOCKED);
}

TEST_CASE(.setup = start, .teardown = nlmc_end);

TEST(a_waiter_is_called_back_when_the_lock_is_free)
{
	static const uint32_t versions[] = { 1, 3, 4 };
	struct nlm_came came[NLM_CAME_MAX];

	for (unsigned i = 0; i < 6; i++) {
		two.vers = versions[i % 3];
		two.proto = i < 3 ? IPPROTO_TCP : IPPROTO_UDP;
		block(&two, head);
		ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
		EVENTUALLY(nlmc_count(NLM_GRANTED) == i + 1);
		nlmc_came(came);
		ck_assert_uint_eq(came[i].vers, two.vers);
		ck_assert_uint_eq(came[i].svid, 22);
		ck_assert_uint_eq(came[i].off, 0);
		ck_assert_uint_eq(came[i].len, 10);
		ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_DENIED);
		ck_assert_uint_eq(nlmc_unlock(&two, head), NLM4_GRANTED);
	}
}

TEST(a_waiter_is_tried_again_only_when_bytes_that_it_wants_are_freed)
{
	const struct nlm_bytes last = { 9, 1, true };

	block(&two, head);
	for (unsigned i = 0; i < 10; i++) {
		ck_assert_uint_eq(nlmc_lock(&three, tail, false), NLM4_GRANTED);
		ck_assert_uint_eq(nlmc_unlock(&three, tail), NLM4_GRANTED);
		/* Bytes that the owner has already, or does not have. */
		ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
		ck_assert_uint_eq(nlmc_unlock(&three, head), NLM4_GRANTED);
		ck_assert_uint_eq(nlmc_unlock(&one, tail), NLM4_GRANTED);
	}
	ck_assert_uint_eq(stats_sum_by_name("nlm_waits_tried"), 0);
	ck_assert_uint_eq(nlmc_unlock(&one, last), NLM4_GRANTED);
	ck_assert_uint_eq(stats_sum_by_name("nlm_waits_tried"), 1);
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	EVENTUALLY(nlmc_count(NLM_GRANTED) == 1);
	ck_assert_uint_eq(stats_sum_by_name("nlm_waits_tried"), 2);
}

TEST(a_waiter_is_called_back_from_the_address_that_it_called)
{
	struct nlm_came came[NLM_CAME_MAX];

	two.proto = IPPROTO_UDP;
	block(&two, head);
	nlmc_to = NLMC_SECOND;
	ck_assert_uint_eq(nlmc_lock(&two, head, true), NLM4_BLOCKED);
	nlmc_to = NULL;
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	EVENTUALLY(nlmc_count(NLM_GRANTED) >= 1);
	nlmc_came(came);
	ck_assert_uint_eq(came[0].from, 1);
	/* The process at the other address is another one. */
	ck_assert_uint_eq(nlmc_unlock(&two, head), NLM4_GRANTED);
	EVENTUALLY(nlmc_count(NLM_GRANTED) >= 2);
	nlmc_came(came);
	ck_assert_uint_eq(came[nlmc_count(NLM_GRANTED) - 1].from, 2);
}

TEST(a_waiter_that_asks_again_stays_one_and_is_granted_when_it_asks)
{
	block(&two, head);
	ck_assert_uint_eq(nlmc_lock(&two, head, true), NLM4_BLOCKED);
	nlmc_answer = NLM_DEAF;
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head, true), NLM4_GRANTED);
	nlmc_answer = NLM4_DENIED;
	/* The client has its lock: it is no longer called back. */
	ck_assert(HOLDS_FOR(100, nlmc_lock(&one, head, false) == NLM4_DENIED));
	ck_assert_uint_eq(nlmc_unlock(&two, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
}

TEST(a_client_that_cannot_be_reached_is_called_again)
{
	nlmc_answer = NLM_DEAF;
	block(&two, head);
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_DENIED);
	nlmc_answer = NLM4_GRANTED;
	EVENTUALLY(nlmc_count(NLM_GRANTED) == 1);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_DENIED);
}

TEST(a_client_that_refuses_its_lock_loses_it_to_the_next)
{
	nlmc_answer = NLM4_DENIED;
	block(&two, head);
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	EVENTUALLY(nlmc_count(NLM_GRANTED) == 1);
	EVENTUALLY(nlmc_lock(&one, head, false) == NLM4_GRANTED);
}

TEST(a_refused_upgrade_leaves_the_shared_lock)
{
	nlmc_answer = NLM4_DENIED;
	ck_assert_uint_eq(nlmc_lock(&one, head_shared, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head_shared, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head, true), NLM4_BLOCKED);
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	EVENTUALLY(nlmc_count(NLM_GRANTED) == 1);
	EVENTUALLY(nlmc_lock(&three, head_shared, false) == NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_unlock(&three, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&three, head, false), NLM4_DENIED);
}

TEST(waiters_are_granted_in_order)
{
	struct nlm_came came[NLM_CAME_MAX];

	block(&two, head);
	ck_assert_uint_eq(nlmc_lock(&three, head, true), NLM4_BLOCKED);
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	EVENTUALLY(nlmc_count(NLM_GRANTED) == 1);
	ck_assert_uint_eq(nlmc_unlock(&two, head), NLM4_GRANTED);
	EVENTUALLY(nlmc_count(NLM_GRANTED) == 2);
	nlmc_came(came);
	ck_assert_uint_eq(came[0].svid, 22);
	ck_assert_uint_eq(came[1].svid, 33);
}

TEST(a_client_with_many_waiters_is_called_for_each_at_once)
{
	uint64_t busy = stats_sum_by_name("client_busy");
	struct nlm_process waiter = two;

	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	for (waiter.svid = 0; waiter.svid < 100; waiter.svid++)
		ck_assert_uint_eq(nlmc_lock(&waiter, head_shared, true),
				  NLM4_BLOCKED);
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	EVENTUALLY(nlmc_count(NLM_GRANTED) == 100);
	ck_assert_uint_eq(stats_sum_by_name("client_busy"), busy);
}

TEST(a_cancelled_waiter_is_not_granted)
{
	block(&two, head);
	ck_assert_uint_eq(nlmc_cancel(&two, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_cancel(&two, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&three, head, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_count(NLM_GRANTED), 0);
}

TEST(a_cancel_that_crosses_the_call_back_undoes_the_grant)
{
	nlmc_answer = NLM_DEAF;
	block(&two, head);
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_cancel(&two, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
}

TEST(a_crossed_cancel_gives_back_nothing_that_was_unlocked_meanwhile)
{
	const struct nlm_bytes part = { 0, 5, true };

	nlmc_answer = NLM_DEAF;
	ck_assert_uint_eq(nlmc_lock(&one, head_shared, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head_shared, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head, true), NLM4_BLOCKED);
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_unlock(&two, part), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&three, part, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_cancel(&two, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_unlock(&three, part), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&one, part, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_lock(&one, head_shared, false), NLM4_GRANTED);
}

TEST(a_cancel_after_the_call_back_was_answered_is_denied)
{
	block(&two, head);
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	EVENTUALLY(nlmc_cancel(&two, head) == NLM4_DENIED ||
		   nlmc_lock(&two, head, false) != NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_DENIED);
}

TEST(a_circle_of_clients_is_a_deadlock)
{
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, tail, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&one, tail, true), NLM4_BLOCKED);
	ck_assert_uint_eq(nlmc_lock(&two, head, true), NLM4_DEADLCK);
	two.vers = 3;
	ck_assert_uint_eq(nlmc_lock(&two, head, true), NLM4_DENIED);
}

TEST(waiters_of_a_host_that_restarts_go_with_its_locks)
{
	block(&two, head);
	nlmc_restarted("c2", 0);
	ck_assert_uint_eq(nlmc_lock(&three, head, true), NLM4_BLOCKED);
	nlmc_restarted("c1", 0);
	EVENTUALLY(nlmc_count(NLM_GRANTED) == 1);
	ck_assert_uint_eq(nlmc_unlock(&three, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
}

/* ---- the asynchronous forms */

/* The answer to @proc has come with @status. */
static bool answered(uint32_t proc, uint32_t status)
{
	struct nlm_came came[NLM_CAME_MAX];
	unsigned n = nlmc_came(came);

	for (unsigned i = 0; i < n; i++)
		if (came[i].proc == proc)
			return came[i].vers == two.vers &&
			       came[i].status == status;
	return false;
}

TEST(messages_are_answered_by_calls)
{
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	two.vers = 3;
	two.proto = IPPROTO_UDP;
	nlmc_message(&two, NLM_TEST_MSG, head, false);
	EVENTUALLY(answered(NLM_TEST_RES, NLM4_DENIED));
	nlmc_message(&two, NLM_LOCK_MSG, tail, false);
	EVENTUALLY(answered(NLM_LOCK_RES, NLM4_GRANTED));
	nlmc_message(&two, NLM_UNLOCK_MSG, tail, false);
	EVENTUALLY(answered(NLM_UNLOCK_RES, NLM4_GRANTED));
	nlmc_message(&two, NLM_CANCEL_MSG, tail, false);
	EVENTUALLY(answered(NLM_CANCEL_RES, NLM4_GRANTED));
	ck_assert_uint_eq(nlmc_lock(&one, tail, false), NLM4_GRANTED);
}

TEST(messages_of_strangers_are_not_answered)
{
	harness_publish(&srv, "/mem 127.0.0.9(rw,insecure)\n");
	nlmc_message(&two, NLM_LOCK_MSG, head, false);
	two.fh.data.data_len = 5;
	nlmc_message(&two, NLM_TEST_MSG, head, false);
	harness_publish(&srv, "/mem 127.0.0.1(rw,insecure)\n");
	two.fh = one.fh;
	nlmc_message(&two, NLM_UNLOCK_MSG, head, false);
	EVENTUALLY(answered(NLM_UNLOCK_RES, NLM4_GRANTED));
	ck_assert_uint_eq(nlmc_count(NLM_LOCK_RES), 0);
	ck_assert_uint_eq(nlmc_count(NLM_TEST_RES), 0);
}

static void wait_by_message(uint32_t vers, uint32_t answer)
{
	two.vers = vers;
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	nlmc_message(&two, NLM_LOCK_MSG, head, true);
	EVENTUALLY(answered(NLM_LOCK_RES, NLM4_BLOCKED));
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	EVENTUALLY(nlmc_count(NLM_GRANTED_MSG) == 1);
	nlmc_granted_res(&two, answer);
}

TEST(an_asynchronous_waiter_gets_granted_msg_and_keeps_its_lock)
{
	wait_by_message(4, NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_DENIED);
}

TEST(an_asynchronous_waiter_may_refuse)
{
	wait_by_message(1, NLM4_DENIED);
	EVENTUALLY(nlmc_lock(&one, head, false) == NLM4_GRANTED);
}

/* ---- room for a single wait */

static void start_with_one_wait(void)
{
	const struct harness_config config = { .nlm.max_waits = 1 };

	start_with(&config);
}

TEST_CASE(.setup = start_with_one_wait, .teardown = nlmc_end);

TEST(a_wait_that_ends_leaves_its_place_to_another)
{
	block(&two, head);
	ck_assert_uint_eq(nlmc_lock(&three, head, true), NLM4_DENIED_NOLOCKS);
	nlmc_answer = NLM_DEAF;
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	/* It asks again, and has its lock by that. */
	ck_assert_uint_eq(nlmc_lock(&two, head, true), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&three, head, true), NLM4_BLOCKED);
}

/* ---- room for results on their way */

#define ROOM	2u

static void start_with_room(void)
{
	const struct harness_config config = { .nlm.max_answering = ROOM };

	start_with(&config);
}

static int rpcbind;			/* of clients: it never answers */

static void start_with_silent_rpcbind(void)
{
	struct harness_config config = { .nlm.max_answering = ROOM };
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	rpcbind = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(rpcbind, (struct sockaddr *)&at, len), 0);
	ck_assert_int_eq(getsockname(rpcbind, (struct sockaddr *)&at, &len),
			 0);
	config.rpcbind_port = ntohs(at.sin_port);
	start_with(&config);
}

static void end_with_silent_rpcbind(void)
{
	nlmc_end();
	close(rpcbind);
}

TEST_CASE(.setup = start_with_room, .teardown = nlmc_end);

TEST(results_that_were_sent_leave_room_for_others)
{
	two.proto = IPPROTO_UDP;
	for (unsigned i = 0; i < 5 * ROOM; i++) {
		nlmc_message(&two, NLM_TEST_MSG, head, false);
		EVENTUALLY(nlmc_count(NLM_TEST_RES) == i + 1);
	}
	ck_assert_uint_eq(stats_sum_by_name("nlm_unanswered"), 0);
}

TEST_CASE(.setup = start_with_silent_rpcbind,
	  .teardown = end_with_silent_rpcbind);

TEST(results_to_clients_that_are_not_found_are_bounded)
{
	two.proto = IPPROTO_UDP;
	for (unsigned i = 0; i < ROOM + 3; i++)
		nlmc_message(&two, NLM_TEST_MSG, head, false);
	EVENTUALLY(stats_sum_by_name("nlm_unanswered") == 3);
	ck_assert_uint_eq(nlmc_count(NLM_TEST_RES), 0);
}
