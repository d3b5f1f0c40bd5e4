/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of the responder (RFC 8167), and the requester's answers. */
#include <string.h>

#include <endian.h>

#include "tests/server/rdma_responder.h"
#include "tests/unit/runner.h"
#include "tools/rpcrdma/client.h"
#include "transport/rpcrdma/answer.h"

static void put_call(unsigned n, uint32_t xid, uint32_t word)
{
	raw_begin(n, xid, RPCRDMA_VERSION, 1, RPCRDMA_MSG);
	raw_words(0, 3);
	raw_words(xid, 1);
	raw_words(MSG_TYPE_CALL, 1);
	raw_words(word, 1);
	raw_end(n);
}

/* xid, REPLY, the word and one. */
static uint32_t answer_call(void *arg, const void *call, uint32_t len,
			    void *reply, uint32_t room)
{
	struct xdr_in in;
	struct xdr_out x;

	require(len == 12);
	xdr_in_init(&in, call, len);
	xdr_out_init(&x, reply, room);
	xdr_put_u32(&x, xdr_get_u32(&in));
	require(xdr_get_u32(&in) == MSG_TYPE_CALL);
	xdr_put_u32(&x, MSG_TYPE_REPLY);
	xdr_put_u32(&x, xdr_get_u32(&in) + 1);
	return len;
}

static uint32_t answer_bytes(void *arg, const uint8_t *call, uint32_t len,
			     uint8_t *reply, uint32_t room)
{
	return answer_call(arg, call, len, reply, room);
}

/* The @n-th message that came answers the call, with a grant of @credits. */
static void check_answer(unsigned n, uint32_t xid, uint32_t credits,
			 uint32_t word)
{
	struct rpcrdma_header h;
	struct xdr_in x;

	ck_assert_int_eq(rpcrdma_header_decode(raw_memory[n], RAW_SIZE, &h), 0);
	ck_assert_uint_eq(h.proc, RPCRDMA_MSG);
	ck_assert_uint_eq(h.xid, xid);
	ck_assert_uint_eq(h.credits, credits);
	xdr_in_init(&x, raw_memory[n] + h.len, RAW_SIZE - h.len);
	ck_assert_uint_eq(xdr_get_u32(&x), xid);
	ck_assert_uint_eq(xdr_get_u32(&x), MSG_TYPE_REPLY);
	ck_assert_uint_eq(xdr_get_u32(&x), word);
}

/* The same xids are in use in both directions; the last calls wait for a place
 * until the Sends of the first answers are done. */
TEST(calls_of_the_responder_are_answered_between_its_replies)
{
	static const struct rpcrdma_requester_options o = {
		.credits = RAW_CALLS / 2, .back_credits = 2,
		.answer = answer_bytes };
	struct exchange x[4];

	raw_open_with(&o);
	raw_call(&x[0], 100);
	raw_await(1);
	raw_reply(100, 4);
	raw_answered(&x[0], 100);
	for (uint32_t i = 0; i < 4; i++)
		raw_call(&x[i], 100 + i);
	raw_await(5);
	for (uint32_t i = 0; i < 4; i++) {
		raw_put_reply(2 * i, 100 + i, 4);
		put_call(2 * i + 1, 100 + i, 7 * i);
	}
	raw_send(8);
	raw_await(9);
	for (uint32_t i = 0; i < 4; i++) {
		check_answer(5 + i, 100 + i, 2, 7 * i + 1);
		raw_answered(&x[i], 100 + i);
	}
	ck_assert_uint_eq(raw_info().credits, 4);
	ck_assert_uint_eq(raw_info().discarded, 0);
	raw_close();
}

TEST(a_requester_that_is_not_to_be_called_drops_calls)
{
	struct exchange x;

	raw_open();
	raw_call(&x, 7);
	raw_await(1);
	put_call(0, 8, 0);
	raw_send(1);
	ck_assert_uint_eq(raw_info().discarded, 1);
	raw_reply(7, RAW_CALLS);
	raw_answered(&x, 7);
	raw_close();
}

/* RFC 8167 section 5.3: none are used in this direction. */
TEST(calls_with_chunks_get_err_chunk)
{
	const struct rpcrdma_answers how = { .credits = 3,
					     .make = answer_bytes };
	uint8_t back[256], *msg = raw_memory[RAW_CALLS];
	struct rpcrdma_header h;
	struct xdr_out x;
	uint32_t len;

	/* A chunk in each list, in none, and a long call. */
	for (unsigned list = 0; list < 5; list++) {
		raw_begin(0, 9, RPCRDMA_VERSION, 1, list == 4 ? RPCRDMA_NOMSG :
							    RPCRDMA_MSG);
		for (unsigned i = 0; i < 3; i++) {
			raw_words(i == list % 4, 1);
			if (i != list % 4)
				continue;
			raw_words(i == 0 ? 0 : 1, 1);	/* position, count */
			raw_words(77, 4);
			raw_words(0, i < 2 ? 1 : 0);
		}
		raw_words(9, 1);
		raw_words(MSG_TYPE_CALL, 1);
		raw_words(3, 1);
		len = (uint32_t)xdr_out_len(&raw_out) - (list == 4 ? 12 : 0);
		ck_assert_int_eq(rpcrdma_header_decode(msg, len, &h), 0);
		ck_assert(rpcrdma_answer_is_due(&h, msg, len));
		xdr_out_init(&x, back, sizeof(back));
		len = rpcrdma_answer_make(&how, &h, msg, len, &x);
		ck_assert_int_eq(rpcrdma_header_decode(back, len, &h), 0);
		ck_assert_uint_eq(h.xid, 9);
		ck_assert_uint_eq(h.credits, 3);
		ck_assert_uint_eq(h.proc, list == 3 ? RPCRDMA_MSG :
						      RPCRDMA_ERROR);
		if (list != 3)
			ck_assert_uint_eq(h.err, RPCRDMA_ERR_CHUNK);
	}
}

static sem_t user_replies;

static void user_done(struct gannet_rpcrdma_call *call)
{
	require(call->status == 0);
	sem_post(&user_replies);
}

static struct gannet_rpcrdma *user;

static void connect_again(void *arg, enum gannet_rpcrdma_event event, int err)
{
	if (event != GANNET_RPCRDMA_LOST)
		return;
	/* The responder's Receives are flushed, so it can post them again. */
	wait_sem(&raw_closed);
	require(gannet_rpcrdma_call(user, arg) == 0);
}

static void lose(void *arg)
{
	fabric_close(raw_conn);
}

/* RFC 8167 section 5.4: the second time because the connection was lost. */
TEST(a_user_of_the_library_can_be_called_while_it_stays_connected)
{
	uint32_t msg[3] = { htobe32(1) }, xid;
	struct gannet_rpcrdma_call call = {
		.size = sizeof(call), .msg = msg, .msg_len = sizeof(msg),
		.done = user_done,
	};
	const struct gannet_rpcrdma_options o = {
		.size = sizeof(o), .answer = answer_call,
		.event = connect_again, .arg = &call,
	};

	sem_init(&user_replies, 0, 0);
	raw_start();
	ck_assert_int_eq(client_connect(&raw_fabric,
			(struct sockaddr *)&raw_listener->local, &o, &user), 0);
	ck_assert_int_eq(gannet_rpcrdma_call(user, &call), 0);
	for (unsigned i = 0; i < 2; i++) {
		raw_await(2 * i + 1);
		memcpy(&xid, raw_memory[0], sizeof(xid));
		raw_put_reply(0, be32toh(xid), 1);
		put_call(1, 5, 41 + i);
		raw_send(2);
		wait_sem(&user_replies);
		raw_await(2 * i + 2);
		check_answer(1, 5, 16, 42 + i);
		if (i == 0)
			loop_call(raw_loop, lose, NULL);
	}
	gannet_rpcrdma_close(user);
	raw_stop();
	sem_destroy(&user_replies);
}
