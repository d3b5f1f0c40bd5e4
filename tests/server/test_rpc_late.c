/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that are suspended, and resumed by another thread. */
#include "rpc/rpc.h"

#include "tests/server/rpc_fixture.h"
#include "transport/fate.h"

static const uint32_t late[] = { 80, 0, 2, TEST_PROG, 4, TEST_LATE, NOAUTH };

static unsigned listed;

static void note(const struct rpc_call *call, const char *why, uint64_t ns,
		 void *arg)
{
	ck_assert_ptr_eq(call->prog, &test_program);
	ck_assert_str_eq(why, "the test");
	ck_assert_uint_lt(ns, 60000000000u);
	listed++;
}

static unsigned suspended(void)
{
	listed = 0;
	rpc_server_walk_suspended(server, note, NULL);
	return listed;
}

static struct fake_call *send_late(void)
{
	return send_words(&conn, late, ARRAY_SIZE(late));
}

TEST_CASE(.setup = start, .teardown = stop);

TEST(a_suspended_call_goes_on_with_the_step_that_suspended_it)
{
	struct fake_call *first = send_late(), *second = send_late();

	ck_assert(!fake_over(first));
	ck_assert_uint_eq(suspended(), 2);
	ck_assert_uint_eq(rpc_busy(), 2);
	ck_assert_uint_eq(test_held, 2);
	test_late_resume();
	c = second;
	fake_wait(c);
	expect(80, OK, 2);
	ck_assert(!fake_over(first));
	ck_assert_uint_eq(suspended(), 1);
	test_late_resume();
	c = first;
	fake_wait(c);
	expect(80, OK, 2);
	ck_assert_uint_eq(suspended(), 0);
	ck_assert_uint_eq(test_held, 2);
	ck_assert_uint_eq(test_put, 2);
}

TEST(a_call_may_be_resumed_before_its_step_ends)
{
	test_late.at_once = true;
	for (unsigned i = 0; i < 1000; i++) {
		c = send_late();
		fake_wait(c);
		expect(80, OK, 2);
	}
	ck_assert_uint_eq(suspended(), 0);
}

TEST(a_call_is_cancelled_when_its_connection_is_gone)
{
	test_program.sends_back = true;
	conn.x.fate = xprt_fate_create(&conn.x, 0);
	c = send_late();
	rpc_server_relieve(server);
	rpc_server_relieve(server);
	ck_assert(!fake_over(c));
	xprt_fate_end(conn.x.fate, XPRT_BROKEN);
	/* The holder has begun work that can't be undone. */
	test_late.keeps = true;
	rpc_server_relieve(server);
	ck_assert(!fake_over(c));
	ck_assert_uint_eq(suspended(), 1);
	test_late.keeps = false;
	rpc_server_relieve(server);
	ck_assert(fake_over(c));
	expect_dropped("rpc_cancelled");
	ck_assert_uint_eq(test_put, 1);
	ck_assert_uint_eq(test_late.n, 0);
	xprt_fate_put(conn.x.fate);
}

static unsigned held_late(void)
{
	unsigned n;

	mutex_lock(&test_late.lock);
	n = test_late.n;
	mutex_unlock(&test_late.lock);
	return n;
}

/* The client sent the call again, so it takes the second one's reply: the first
 * one is dropped. */
TEST(a_duplicate_runs_in_place_of_a_cancelled_call)
{
	static const uint32_t once[] = { 81, 0, 2, TEST_PROG, 4,
					 TEST_LATE_ONCE, NOAUTH };
	struct fake_call *again;

	test_program.sends_back = true;
	conn.x.fate = xprt_fate_create(&conn.x, 0);
	c = send_words(&conn, once, ARRAY_SIZE(once));
	again = send_words(&conn, once, ARRAY_SIZE(once));
	ck_assert_uint_eq(held_late(), 1);
	xprt_fate_end(conn.x.fate, XPRT_BROKEN);
	rpc_server_relieve(server);
	ck_assert(fake_over(c));
	expect_dropped("drc_taken_over");
	EVENTUALLY(held_late() == 1);
	test_late_resume();
	c = again;
	fake_wait(c);
	expect(81, OK, 2);
	xprt_fate_put(conn.x.fate);
}

static void got(struct pool_request *r, struct buf *b)
{
	buf_put(b);
}

TEST(a_suspended_call_gives_back_memory_that_others_wait_for)
{
	struct pool_request others = { .ready = got };
	struct buf *all = NULL, *b;

	test_program.sends_back = true;
	for (; (b = pool_alloc(pool, POOL_BUF_MAX)); all = b)
		b->next = all;
	ck_assert_ptr_null(pool_request(pool, POOL_BUF_MAX, &others));
	conn.in_pool = true;
	c = send_late();
	rpc_server_relieve(server);
	ck_assert(!fake_over(c));
	rpc_server_relieve(server);
	ck_assert(fake_over(c));
	expect(80, OK, TEST_SENT_BACK);
	ck_assert(pool_cancel(pool, &others));
	for (; all; all = b) {
		b = all->next;
		buf_put(all);
	}
}

#define MANY	1024

/* A call beyond the bound is not suspended: its step completes the operation,
 * so the number of waiting calls stays bounded. */
TEST(the_number_of_suspended_calls_is_bounded)
{
	static struct fake_call *calls[MANY];

	for (unsigned i = 0; i < MANY; i++)
		calls[i] = send_late();
	ck_assert_uint_eq(suspended(), MANY);
	c = send_late();
	ck_assert(fake_over(c));
	expect(80, OK, 1);
	for (unsigned i = 0; i < MANY; i++)
		test_late_resume();
	for (unsigned i = 0; i < MANY; i++)
		fake_free(calls[i]);
	ck_assert_uint_eq(stats_sum_by_name("rpc_suspend_full"), 1);
}
