/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that find no payload buffer. */
#include "rpc/rpc.h"

#include "tests/server/rpc_fixture.h"

/* Takes all buffers of the pool. */
static struct buf *drain_pool(void)
{
	struct buf *all = NULL, *b;

	while ((b = pool_alloc(pool, POOL_BUF_MAX)) ||
	       (b = pool_alloc(pool, 1))) {
		b->next = all;
		all = b;
	}
	return all;
}

static struct buf *put_one(struct buf *b)
{
	struct buf *next = b->next;

	buf_put(b);
	return next;
}

TEST_CASE(.setup = start, .teardown = stop);

TEST(a_call_without_a_buffer_waits_for_one)
{
	uint32_t w[] = { 60, 0, 2, TEST_PROG, 4, TEST_BODY, NOAUTH, 4096, 0 };
	struct fake_call *waiting[3];
	struct buf *bufs = drain_pool();

	for (unsigned i = 0; i < 3; i++)
		waiting[i] = send_words(&conn, w, ARRAY_SIZE(w));
	ck_assert_uint_eq(stats_sum_by_name("rpc_no_buffer"), 3);
	ck_assert_uint_eq(rpc_busy(), 3);
	/* One buffer serves them all, one after the other. */
	bufs = put_one(bufs);
	for (unsigned i = 0; i < 3; i++) {
		fake_wait(waiting[i]);
		ck_assert_uint_eq(waiting[i]->body_len, 4096);
		ck_assert(!pthread_equal(waiting[i]->thread, pthread_self()));
		fake_free(waiting[i]);
	}
	while (bufs)
		bufs = put_one(bufs);
}

/* A call that does not take the buffer that it was woken for wakes the next:
 * perhaps no other buffer ever comes back. */
TEST(an_unused_buffer_goes_to_the_next_waiter)
{
	uint32_t w[] = { 60, 0, 2, TEST_PROG, 4, TEST_BODY, NOAUTH, 4096, 0 };
	struct fake_call *waiting[3];
	struct buf *bufs = drain_pool();

	for (unsigned i = 0; i < 3; i++)
		waiting[i] = send_words(&conn, w, ARRAY_SIZE(w));
	test_body_fails = 2;
	bufs = put_one(bufs);
	for (unsigned i = 0; i < 3; i++)
		fake_free(waiting[i]);
	ck_assert_uint_eq(stats_sum_by_name("rpc_system_err"), 2);
	while (bufs)
		bufs = put_one(bufs);
}

/* Calls that held a buffer while they wait for another would fill the pool
 * and wait for ever. */
TEST(a_call_that_lies_in_the_pool_does_not_wait_for_a_buffer)
{
	uint32_t w[] = { 61, 0, 2, TEST_PROG, 4, TEST_BODY, NOAUTH, 4096, 0 };
	struct buf *bufs = drain_pool();
	struct fake_call *waiting = send_words(&conn, w, ARRAY_SIZE(w));

	conn.in_pool = true;
	c = send_words(&conn, w, ARRAY_SIZE(w));
	ck_assert(fake_over(c));
	expect(61, 1, 0, 0, 0, 5);
	ck_assert_uint_eq(stats_sum_by_name("rpc_no_buffer_long"), 1);
	ck_assert_uint_eq(stats_sum_by_name("rpc_no_buffer"), 1);
	ck_assert(!fake_over(waiting));
	while (bufs)
		bufs = put_one(bufs);
	fake_wait(waiting);
	ck_assert_uint_eq(waiting->body_len, 4096);
	fake_free(waiting);
	/* With buffers to be had, it is a call as any other. */
	c = send_words(&conn, w, ARRAY_SIZE(w));
	fake_wait(c);
	ck_assert_uint_eq(c->body_len, 4096);
	fake_free(c);
}

#define HUNG		2	/* one client's share of three workers */
#define BEHIND		3

static struct fake_call *slow[HUNG + BEHIND];

/* The calls of one client hang, and others of it wait behind them. */
static void hang_before(struct fake_xprt *from, const uint32_t *behind,
			unsigned n)
{
	uint32_t w[] = { 70, 0, 2, TEST_PROG, 4, TEST_SLOW, NOAUTH };

	test_gate_shut();
	for (unsigned i = 0; i < HUNG; i++)
		slow[i] = send_words(from, w, ARRAY_SIZE(w));
	test_gate_wait(HUNG);
	for (unsigned i = HUNG; i < HUNG + BEHIND; i++)
		slow[i] = send_words(from, behind, n);
}

static void hang(struct fake_xprt *from)
{
	uint32_t w[] = { 70, 0, 2, TEST_PROG, 4, TEST_SLOW, NOAUTH };

	hang_before(from, w, ARRAY_SIZE(w));
}

/* Looks twice: all that waits behind the hung calls goes back. */
static void expect_relief(void)
{
	rpc_server_relieve(server);
	rpc_server_relieve(server);
	for (unsigned i = HUNG; i < HUNG + BEHIND; i++) {
		ck_assert(fake_over(slow[i]));
		c = slow[i];
		expect(70, OK, TEST_SENT_BACK);
	}
}

static void end_hang(unsigned behind)
{
	test_gate_open();
	for (unsigned i = 0; i < HUNG + behind; i++) {
		fake_wait(slow[i]);
		c = slow[i];
		expect(70, OK);
	}
}

/* The buffers that a client's calls hold while they wait behind hung ones come
 * back when others want some. */
TEST(calls_behind_hung_ones_give_their_buffers_back)
{
	uint32_t w[] = { 60, 0, 2, TEST_PROG, 4, TEST_BODY, NOAUTH, 4096, 0 };
	struct fake_call *waiting;
	struct fake_xprt other;
	struct buf *bufs;

	test_program.sends_back = true;
	conn.in_pool = true;
	hang(&conn);
	/* They can stay while no call needs memory. */
	rpc_server_relieve(server);
	rpc_server_relieve(server);
	ck_assert(!fake_over(slow[HUNG]));

	bufs = drain_pool();
	fake_xprt_init(&other, rpc_server_sink(server), pool, "192.0.2.8", 801);
	waiting = send_words(&other, w, ARRAY_SIZE(w));
	rpc_server_relieve(server);
	for (unsigned i = HUNG; i < HUNG + BEHIND; i++) {
		fake_wait(slow[i]);
		c = slow[i];
		expect(70, OK, TEST_SENT_BACK);
	}
	for (unsigned i = 0; i < HUNG; i++)
		ck_assert(!fake_over(slow[i]));
	ck_assert_uint_eq(stats_sum_by_name("rpc_sent_back"), BEHIND);
	while (bufs)
		bufs = put_one(bufs);
	fake_free(waiting);
	end_hang(0);
}

/* Relief lets the call that waits for a buffer have one.  Puts @bufs. */
static void expect_served(struct fake_call *waiting, struct buf *bufs)
{
	expect_relief();
	fake_wait(waiting);
	ck_assert_uint_eq(waiting->body_len, 4096);
	fake_free(waiting);
	while (bufs)
		bufs = put_one(bufs);
	end_hang(0);
}

/* The buffers can also be for their replies. */
TEST(calls_behind_hung_ones_give_the_buffers_of_replies_back)
{
	uint32_t w[] = { 60, 0, 2, TEST_PROG, 4, TEST_BODY, NOAUTH, 4096, 0 };
	uint32_t behind[] = { 70, 0, 2, TEST_PROG, 4, TEST_SLOW_BODY, NOAUTH,
			      4096, 0 };
	struct fake_call *waiting;
	struct fake_xprt other;
	struct buf *bufs;

	test_program.sends_back = true;
	hang_before(&conn, behind, ARRAY_SIZE(behind));
	bufs = drain_pool();
	fake_xprt_init(&other, rpc_server_sink(server), pool, "192.0.2.8", 801);
	waiting = send_words(&other, w, ARRAY_SIZE(w));
	expect_served(waiting, bufs);
}

/* Calls that are woken for a buffer, but wait for a worker now, leave it to
 * other calls. */
TEST(calls_behind_hung_ones_give_turns_at_a_buffer_back)
{
	uint32_t w[] = { 60, 0, 2, TEST_PROG, 4, TEST_BODY, NOAUTH, 4096, 0 };
	uint32_t behind[] = { 70, 0, 2, TEST_PROG, 4, TEST_SLOW_BODY, NOAUTH,
			      4096, 0 };
	struct buf *bufs = drain_pool();
	struct fake_call *waiting;
	struct fake_xprt other;

	test_program.sends_back = true;
	hang_before(&conn, behind, ARRAY_SIZE(behind));
	fake_xprt_init(&other, rpc_server_sink(server), pool, "192.0.2.8", 801);
	waiting = send_words(&other, w, ARRAY_SIZE(w));
	for (unsigned i = 0; i < BEHIND; i++)
		bufs = put_one(bufs);
	ck_assert(!fake_over(waiting));
	expect_served(waiting, bufs);
}

/* A client whose calls end one after the other is slow, and has not hung. */
TEST(calls_of_a_slow_client_are_not_sent_back)
{
	uint32_t w[] = { 70, 0, 2, TEST_PROG, 4, TEST_SLOW, NOAUTH };
	struct fake_call *more[HUNG];
	struct buf *bufs;

	test_program.sends_back = true;
	conn.in_pool = true;
	hang(&conn);
	bufs = drain_pool();
	rpc_server_relieve(server);
	end_hang(BEHIND);
	test_gate_shut();
	for (unsigned i = 0; i < HUNG; i++)
		more[i] = send_words(&conn, w, ARRAY_SIZE(w));
	test_gate_wait(HUNG);
	rpc_server_relieve(server);
	rpc_server_relieve(server);
	test_gate_open();
	for (unsigned i = 0; i < HUNG; i++) {
		fake_wait(more[i]);
		c = more[i];
		expect(70, OK);
	}
	ck_assert_uint_eq(stats_sum_by_name("rpc_sent_back"), 0);
	while (bufs)
		bufs = put_one(bufs);
}

TEST(datagrams_behind_hung_ones_are_dropped)
{
	conn.x.datagram = true;
	hang(&conn);
	rpc_server_relieve(server);
	for (unsigned i = 0; i < HUNG + BEHIND; i++)
		ck_assert(!fake_over(slow[i]));
	rpc_server_relieve(server);
	for (unsigned i = HUNG; i < HUNG + BEHIND; i++) {
		fake_wait(slow[i]);
		ck_assert(slow[i]->dropped);
		fake_free(slow[i]);
	}
	end_hang(0);
}
