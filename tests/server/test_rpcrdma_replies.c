/* SPDX-License-Identifier: BSD-2-Clause */
/* The requester before a responder that sends whatever a test makes it send. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <endian.h>

#include "tests/server/rdma_responder.h"
#include "tests/unit/runner.h"

TEST(replies_may_come_all_at_once_and_in_any_order)
{
	static struct exchange x[RAW_CALLS];
	enum { N = RAW_CALLS - 1 };

	raw_open();
	raw_call(&x[0], 100);
	raw_await(1);
	raw_reply(100, RAW_CALLS);
	raw_answered(&x[0], 100);
	for (uint32_t i = 0; i < N; i++)
		raw_call(&x[i], i);
	raw_await(1 + N);
	for (uint32_t i = 0; i < N; i++)
		raw_put_reply(i, N - 1 - i, RAW_CALLS);
	raw_send(N);
	for (uint32_t i = 0; i < N; i++)
		raw_answered(&x[i], i);
	ck_assert_uint_eq(raw_info().discarded, 0);
	raw_close();
}

/* Messages that answer a call's xid, and no call: returns how many. */
static unsigned make_none(uint32_t xid)
{
	unsigned n = 0;

	/* Cut off. */
	for (uint32_t len = 0; len < RPCRDMA_HEADER_MIN; len += 4) {
		raw_put_reply(n, xid, 99);
		raw_end_at(n++, len);
	}
	/* Another version, another procedure, and obsolete procedures. */
	raw_begin(n, xid, 2, 99, RPCRDMA_MSG);
	raw_words(0, 3);
	raw_words(xid, 2);
	raw_end(n++);
	raw_begin(n, xid, RPCRDMA_VERSION, 99, 5);
	raw_words(0, 5);
	raw_end(n++);
	raw_begin(n, xid, RPCRDMA_VERSION, 99, RPCRDMA_DONE);
	raw_words(0, 3);
	raw_end(n++);
	raw_begin(n, xid, RPCRDMA_VERSION, 99, RPCRDMA_MSGP);
	raw_words(0, 5);
	raw_words(xid, 2);
	raw_end(n++);
	/* An error that there isn't, and one without its versions. */
	raw_begin(n, xid, RPCRDMA_VERSION, 99, RPCRDMA_ERROR);
	raw_words(7, 3);
	raw_end(n++);
	raw_begin(n, xid, RPCRDMA_VERSION, 99, RPCRDMA_ERROR);
	raw_words(RPCRDMA_ERR_VERS, 2);
	raw_end(n++);
	/* A list mark that is no boolean, and the xid of no call. */
	raw_begin(n, xid, RPCRDMA_VERSION, 99, RPCRDMA_MSG);
	raw_words(2, 3);
	raw_words(xid, 2);
	raw_end(n++);
	raw_put_reply(n++, xid + 1, 99);
	return n;
}

/* RFC 8166 sections 4.5 and 4.6: in silence, their credits too. */
TEST(replies_that_are_none_are_dropped)
{
	struct exchange x;
	unsigned n;

	raw_open();
	raw_call(&x, 7);
	raw_await(1);
	n = make_none(7);
	raw_send(n);
	ck_assert_uint_eq(raw_info().discarded, n);
	ck_assert_uint_eq(raw_info().credits, 0);
	ck_assert_uint_eq(raw_info().in_flight, 1);
	raw_reply(7, 3);
	raw_answered(&x, 7);
	ck_assert_uint_eq(raw_info().credits, 3);
	raw_close();
}

TEST(a_grant_of_no_credits_is_taken_for_one)
{
	struct exchange x[4];

	raw_open();
	for (uint32_t i = 0; i < ARRAY_SIZE(x); i++)
		raw_call(&x[i], i);
	for (uint32_t i = 0; i < ARRAY_SIZE(x); i++) {
		raw_await(i + 1);
		ck_assert_uint_eq(raw_info().in_flight, 1);
		raw_reply(i, 0);
		raw_answered(&x[i], i);
	}
	raw_close();
}

/* Starts a call with a Write chunk; returns the handle in the @n-th message. */
static uint32_t begin_handle(struct exchange *x, uint32_t xid, unsigned n)
{
	static uint8_t sink[1000];
	uint32_t word;

	exchange_init(x, xid, 0, 0);
	x->request.nwrites = 1;
	x->request.write[0] = rpcrdma_memory_at(sink, sizeof(sink));
	exchange_start(raw_requester, x);
	raw_await(n + 1);
	/* Behind four words, no Read list, a mark and a count. */
	memcpy(&word, raw_memory[n] + 28, sizeof(word));
	return be32toh(word);
}

static void answer_invalidating(uint32_t xid, uint32_t handle)
{
	raw_put_reply(0, xid, RAW_CALLS);
	raw_sends[0].opcode = FABRIC_SEND_INV;
	raw_sends[0].invalidate = handle;
	raw_send(1);
}

/* RFC 8797 section 4.1: another call's Writes would find it gone. */
TEST(a_reply_may_invalidate_a_handle_of_its_own_call_alone)
{
	struct exchange x, other;
	uint32_t handle;

	raw_open();
	handle = begin_handle(&x, 7, 0);
	answer_invalidating(7, handle);
	raw_answered(&x, 7);
	ck_assert_uint_eq(raw_info().invalidated, 1);
	begin_handle(&x, 8, 1);
	handle = begin_handle(&other, 9, 2);
	answer_invalidating(8, handle);
	ck_assert_int_eq(exchange_wait(&x), -ENOTCONN);
	ck_assert_int_eq(exchange_wait(&other), -ENOTCONN);
	exchange_fini(&x);
	exchange_fini(&other);
	raw_close();
}

/* ---- a device that ends no registration, on the loop fabric */

static const struct fabric_ops *real;
static struct fabric_ops stuck;
static struct fabric_conn *stuck_conn;		/* the requester's */
static unsigned nstuck, ncloses, nposted;	/* the loop's */

static int mr_stuck(struct fabric_mr *m)
{
	nstuck++;
	real->mr_destroy(m);
	return -EBUSY;
}

/* It takes its time. */
static void close_later(struct fabric_conn *c)
{
	ncloses++;
}

static int count_recv(struct fabric_conn *c, struct fabric_recv *chain)
{
	nposted++;
	return real->post_recv(c, chain);
}

static void make_stuck(void *arg)
{
	struct rpcrdma_requester_info info;

	rpcrdma_requester_info(raw_requester, &info);
	stuck_conn = container_of(info.conn, struct fabric_conn, info);
	real = stuck_conn->ops;
	stuck = *real;
	stuck.mr_destroy = mr_stuck;
	stuck.close = close_later;
	stuck.post_recv = count_recv;
	stuck_conn->ops = stuck_conn->dev->ops = &stuck;
}

static void make_well(void *arg)
{
	stuck_conn->ops = stuck_conn->dev->ops = real;
	ck_assert_uint_eq(nstuck, 1);
	ck_assert_uint_eq(ncloses, 1);
	/* The Receive of the first answer has the bytes that done() will
	 * see. */
	ck_assert_uint_eq(nposted, 1);
	fabric_close(stuck_conn);
}

/* RFC 8166 section 4.5.4: the responder can reach the call's memory until the
 * connection is gone, so the call's end waits for that. */
TEST(a_registration_that_can_not_be_ended_ends_the_connection_first)
{
	static uint8_t sink[1000];
	struct exchange x, other, late;
	int value;

	raw_open();
	raw_call(&other, 6);
	raw_await(1);
	raw_reply(6, RAW_CALLS);
	raw_answered(&other, 6);
	exchange_init(&x, 7, 0, 0);
	x.request.nwrites = 1;
	x.request.write[0] = rpcrdma_memory_at(sink, sizeof(sink));
	exchange_start(raw_requester, &x);
	raw_call(&other, 8);
	raw_await(3);
	loop_call(raw_loop, make_stuck, NULL);
	/* A second answer is ignored. */
	raw_put_reply(0, 7, RAW_CALLS);
	raw_put_reply(1, 7, RAW_CALLS);
	raw_send(2);
	ck_assert_uint_eq(raw_info().in_flight, 2);
	ck_assert_uint_eq(raw_info().discarded, 1);
	sem_getvalue(&x.done, &value);
	ck_assert_int_eq(value, 0);
	/* No more calls go out. */
	raw_call(&late, 9);
	ck_assert_uint_eq(raw_info().in_flight, 2);
	loop_call(raw_loop, make_well, NULL);
	/* It was answered, and the other was not. */
	raw_answered(&x, 7);
	ck_assert_int_eq(exchange_wait(&other), -ENOTCONN);
	ck_assert_int_eq(exchange_wait(&late), -ENOTCONN);
	exchange_fini(&other);
	exchange_fini(&late);
	raw_close();
}

/* Starts a call whose data can go padded; returns how the n-th call came. */
static uint32_t begin_padded(struct exchange *x, uint32_t xid, unsigned n)
{
	static uint8_t data[100];
	struct rpcrdma_header h;

	exchange_init(x, xid, 0, 0);
	exchange_put(x, sizeof(data));
	x->request.nreads = 1;
	x->request.read[0].position = x->request.call_len;
	x->request.read[0].mem = rpcrdma_memory_at(data, sizeof(data));
	exchange_start(raw_requester, x);
	raw_await(n + 1);
	require(rpcrdma_header_decode(raw_memory[n], RAW_SIZE, &h) == 0);
	require(h.xid == xid);
	return h.proc;
}

static void refuse(uint32_t xid)
{
	raw_begin(0, xid, RPCRDMA_VERSION, RAW_CALLS, RPCRDMA_ERROR);
	raw_words(RPCRDMA_ERR_CHUNK, 1);
	raw_end(0);
	raw_send(1);
}

/* RFC 8166 section 4.6.1: responders should refuse RDMA_MSGP.  It is the answer
 * to that call; the connection stays, and its other calls are not padded. */
TEST(a_padded_call_that_is_refused_fails_alone)
{
	static const struct rpcrdma_requester_options o = {
		.credits = RAW_CALLS, .pad_align = 128 };
	struct exchange x, y;

	raw_open_with(&o);
	ck_assert_uint_eq(begin_padded(&x, 7, 0), RPCRDMA_MSGP);
	raw_reply(7, RAW_CALLS);
	raw_answered(&x, 7);
	/* Both are on their way before the first is refused. */
	ck_assert_uint_eq(begin_padded(&x, 8, 1), RPCRDMA_MSGP);
	ck_assert_uint_eq(begin_padded(&y, 9, 2), RPCRDMA_MSGP);
	refuse(8);
	ck_assert_int_eq(exchange_wait(&x), -EREMOTEIO);
	ck_assert_uint_eq(x.request.errcode, RPCRDMA_ERR_CHUNK);
	exchange_fini(&x);
	ck_assert_uint_eq(begin_padded(&x, 8, 3), RPCRDMA_MSG);
	raw_reply(9, RAW_CALLS);
	raw_answered(&y, 9);
	raw_reply(8, RAW_CALLS);
	raw_answered(&x, 8);
	raw_close();
}
