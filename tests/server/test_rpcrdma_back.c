/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls in the reverse direction (RFC 8167): responder, requester, and both at
 * once. */
#include <errno.h>
#include <string.h>

#include <endian.h>

#include "tools/rpcrdma/client.h"
#include "lib/stats.h"
#include "tests/server/rdma_peer.h"
#include "tests/unit/runner.h"
#include "transport/rpcrdma/answer.h"
#include "transport/rpcrdma/back.h"
#include "transport/rpcrdma/conn.h"

enum { CALL = 0, REPLY = 1, NBACK = 300, NFORTH = 64 };

static struct rig rig;
static struct rpcrdma_requester *requester;
static atomic_uint answered;

/* A call of the responder: xid, CALL, a word. */
struct back {
	struct rpcrdma_back_call call;
	sem_t	 done;
	uint32_t msg[3];
	uint32_t reply[3];
};

static void is_done(struct rpcrdma_back_call *call)
{
	struct back *b = container_of(call, struct back, call);

	if (call->status == 0)
		memcpy(b->reply, call->reply,
		       MIN(call->reply_len, (uint32_t)sizeof(b->reply)));
	sem_post(&b->done);
}

static int back_start(struct back *b, uint32_t word)
{
	memset(b, 0, sizeof(*b));
	sem_init(&b->done, 0, 0);
	b->msg[1] = htobe32(CALL);
	b->msg[2] = htobe32(word);
	b->call.call = b->msg;
	b->call.call_len = sizeof(b->msg);
	b->call.done = is_done;
	return rpcrdma_back_call(rig.xprt, &b->call);
}

static int back_wait(struct back *b)
{
	wait_sem(&b->done);
	sem_destroy(&b->done);
	return b->call.status;
}

/* xid, REPLY, the word and one. */
static uint32_t answer(void *arg, const uint8_t *call, uint32_t len,
		       uint8_t *reply, uint32_t room)
{
	uint32_t words[3];

	require(len == sizeof(words) && room >= sizeof(words));
	memcpy(words, call, sizeof(words));
	words[1] = htobe32(REPLY);
	words[2] = htobe32(be32toh(words[2]) + 1);
	memcpy(reply, words, sizeof(words));
	atomic_fetch_add(&answered, 1);
	return sizeof(words);
}

static void keep_connection(void)
{
	struct exchange x;

	exchange_init(&x, 5, OP_KEEP, 0);
	exchange_start(requester, &x);
	ck_assert_int_eq(exchange_wait(&x), 0);
	exchange_fini(&x);
}

static void open_both(unsigned credits, uint32_t (*fn)(void *, const uint8_t *,
		      uint32_t, uint8_t *, uint32_t))
{
	const struct rig_options o = { .rdma.back_credits = 8, .async = true };
	const struct rpcrdma_requester_options ro = {
		.back_credits = credits, .answer = fn,
	};

	rig_open(&rig, &o);
	rig_connect(&rig, &ro, &requester);
	keep_connection();
}

static void close_both(void)
{
	rpcrdma_requester_destroy(requester);
	rig_close(&rig);
}

TEST_CASE(.timeout = 30);

TEST(calls_go_both_ways_at_once)
{
	static struct exchange forth[NFORTH];
	static struct back back[NBACK];

	open_both(4, answer);
	for (uint32_t i = 0; i < NFORTH; i++) {
		exchange_init(&forth[i], i, OP_LONG, 100);
		exchange_start(requester, &forth[i]);
	}
	for (uint32_t i = 0; i < NBACK; i++)
		ck_assert_int_eq(back_start(&back[i], 7 * i), 0);
	for (uint32_t i = 0; i < NFORTH; i++) {
		ck_assert_int_eq(exchange_wait(&forth[i]), 0);
		ck_assert_uint_eq(exchange_word(&forth[i], 0), i);
		exchange_fini(&forth[i]);
	}
	for (uint32_t i = 0; i < NBACK; i++) {
		ck_assert_int_eq(back_wait(&back[i]), 0);
		ck_assert_uint_eq(back[i].reply[0], back[i].msg[0]);
		ck_assert_uint_eq(be32toh(back[i].reply[2]), 7 * i + 1);
	}
	ck_assert_uint_eq(atomic_load(&answered), NBACK);
	close_both();
}

/* ---- against a raw peer */

static void open_peer_as(struct peer *p, const struct rig_options *o,
			 const struct peer_options *po)
{
	rig_open(&rig, o);
	peer_open(p, &rig, po);
	peer_wait_up(p);
	peer_call(p, 5, OP_KEEP, 0);
	peer_take(p);
}

static void open_peer(struct peer *p, const struct rig_options *o)
{
	open_peer_as(p, o, NULL);
}

static void close_peer(struct peer *p)
{
	peer_close(p);
	rig_close(&rig);
}

/* Takes the next message, a call of the responder's; returns its word. */
static uint32_t take_call(struct peer *p)
{
	peer_take(p);
	ck_assert_uint_eq(p->hdr.proc, RPCRDMA_MSG);
	ck_assert_uint_eq(peer_word(p, 0), p->hdr.xid);
	ck_assert_uint_eq(peer_word(p, 1), CALL);
	return peer_word(p, 2);
}

static void begin(struct peer *p, uint32_t xid, uint32_t credits,
		  uint32_t proc)
{
	xdr_out_init(&p->out, p->build, sizeof(p->build));
	peer_put(p, xid);
	peer_put(p, RPCRDMA_VERSION);
	peer_put(p, credits);
	peer_put(p, proc);
}

static void reply_to(struct peer *p, uint32_t xid, uint32_t credits)
{
	begin(p, xid, credits, RPCRDMA_MSG);
	peer_put_zeros(p, 3);
	peer_put(p, xid);
	peer_put(p, REPLY);
	peer_put(p, 0);
	peer_send(p);
}

static const struct rig_options four = {
	.rdma.back_credits = 4, .rdma.credits = 2,
};

TEST(credits_of_the_directions_are_counted_apart)
{
	struct back back[8];
	struct peer p;
	uint32_t first, xid;

	open_peer(&p, &four);
	for (uint32_t i = 0; i < 8; i++)
		ck_assert_int_eq(back_start(&back[i], i), 0);
	/* One before the first reply, while all forward credits can be used. */
	ck_assert_uint_eq(take_call(&p), 0);
	ck_assert_uint_eq(p.hdr.credits, 4);
	first = p.hdr.xid;
	for (int i = 0; i < 5; i++)
		peer_check_alive(&p);
	ck_assert_uint_eq(p.hdr.credits, 2);
	reply_to(&p, first, 2);
	ck_assert_int_eq(back_wait(&back[0]), 0);
	for (uint32_t i = 1; i < 3; i++)
		ck_assert_uint_eq(take_call(&p), i);
	xid = p.hdr.xid;
	peer_check_alive(&p);
	/* No more than the responder has room for, whatever is granted; and
	 * never none. */
	reply_to(&p, xid, 1000);
	for (uint32_t i = 3; i < 6; i++)
		ck_assert_uint_eq(take_call(&p), i);
	peer_check_alive(&p);
	reply_to(&p, first + 1, 0);
	for (uint32_t i = 3; i < 6; i++)
		reply_to(&p, first + i, 0);
	ck_assert_uint_eq(take_call(&p), 6);
	peer_check_alive(&p);
	reply_to(&p, first + 6, 0);
	ck_assert_uint_eq(take_call(&p), 7);
	reply_to(&p, first + 7, 0);
	for (uint32_t i = 1; i < 8; i++)
		ck_assert_int_eq(back_wait(&back[i]), 0);
	close_peer(&p);
}

TEST(one_xid_may_be_in_use_in_both_directions)
{
	struct back back;
	struct peer p;
	uint32_t xid;

	open_peer(&p, &four);
	ck_assert_int_eq(back_start(&back, 1), 0);
	take_call(&p);
	xid = p.hdr.xid;
	peer_call(&p, xid, OP_KEEP, 0);
	peer_take(&p);
	ck_assert_uint_eq(p.hdr.xid, xid);
	reply_to(&p, xid, 1);
	ck_assert_int_eq(back_wait(&back), 0);
	peer_check_alive(&p);
	close_peer(&p);
}

TEST(refused_and_malformed_replies_fail_their_calls)
{
	struct back back, next;
	struct peer p;
	uint32_t xid;

	open_peer(&p, &four);
	ck_assert_int_eq(back_start(&back, 1), 0);
	take_call(&p);
	begin(&p, p.hdr.xid, 1000, RPCRDMA_ERROR);
	peer_put(&p, RPCRDMA_ERR_CHUNK);
	peer_send(&p);
	ck_assert_int_eq(back_wait(&back), -EREMOTEIO);
	ck_assert_uint_eq(back.call.errcode, RPCRDMA_ERR_CHUNK);
	/* It granted nothing: the second call waits for the first. */
	ck_assert_int_eq(back_start(&back, 2), 0);
	ck_assert_int_eq(back_start(&next, 3), 0);
	ck_assert_uint_eq(take_call(&p), 2);
	xid = p.hdr.xid;
	peer_check_alive(&p);
	begin(&p, xid, 1, RPCRDMA_MSG);
	peer_put_zeros(&p, 2);
	peer_put_chunk(&p, p.mr, 100);
	peer_put(&p, xid);
	peer_put(&p, REPLY);
	peer_send(&p);
	ck_assert_int_eq(back_wait(&back), -EIO);
	ck_assert_uint_eq(take_call(&p), 3);
	reply_to(&p, p.hdr.xid, 1);
	ck_assert_int_eq(back_wait(&next), 0);
	peer_check_alive(&p);
	close_peer(&p);
}

TEST(each_connection_begins_with_xids_of_its_own)
{
	uint32_t xid[2];
	struct back back;
	struct peer p;

	for (int i = 0; i < 2; i++) {
		open_peer(&p, &four);
		ck_assert_int_eq(back_start(&back, 1), 0);
		take_call(&p);
		xid[i] = p.hdr.xid;
		reply_to(&p, xid[i], 1);
		ck_assert_int_eq(back_wait(&back), 0);
		close_peer(&p);
	}
	ck_assert_uint_ne(xid[0], xid[1]);
}

static struct back second;
static uint64_t sent_by_then;

static void start_second(struct rpcrdma_back_call *call)
{
	require(back_start(&second, 2) == 0);
	sent_by_then = stats_sum_by_name("rdma_back_calls");
	is_done(call);
}

/* The reply to it may need the Receive that the first reply still has. */
TEST(a_call_waits_until_the_receive_of_the_last_reply_is_back)
{
	uint64_t before = stats_sum_by_name("rdma_back_calls");
	struct back first;
	struct peer p;

	open_peer(&p, &four);
	ck_assert_int_eq(back_start(&first, 1), 0);
	first.call.done = start_second;
	take_call(&p);
	reply_to(&p, p.hdr.xid, 1);
	ck_assert_int_eq(back_wait(&first), 0);
	ck_assert_uint_eq(sent_by_then, before + 1);
	ck_assert_uint_eq(take_call(&p), 2);
	reply_to(&p, p.hdr.xid, 1);
	ck_assert_int_eq(back_wait(&second), 0);
	close_peer(&p);
}

TEST(a_reply_to_no_call_is_judged_by_the_upper_layer)
{
	struct peer p;

	open_peer(&p, &four);
	begin(&p, 4711, 1, RPCRDMA_MSG);
	peer_put_zeros(&p, 3);
	peer_put(&p, 4711);
	peer_put(&p, REPLY);
	peer_send(&p);
	/* The rig's program takes it for a call, as it stands for any. */
	peer_take(&p);
	ck_assert_uint_eq(p.hdr.xid, 4711);
	close_peer(&p);
}

TEST(calls_fail_with_their_connection)
{
	struct back back[6];
	struct peer p;

	open_peer(&p, &four);
	for (uint32_t i = 0; i < 6; i++)
		ck_assert_int_eq(back_start(&back[i], i), 0);
	take_call(&p);
	fabric_close(p.fc);
	for (int i = 0; i < 6; i++)
		ck_assert_int_eq(back_wait(&back[i]), -ENOTCONN);
	ck_assert_int_eq(back_start(&back[0], 0), -ENOTCONN);
	close_peer(&p);
}

TEST(a_peer_that_does_not_answer_loses_the_connection)
{
	struct rig_options o = four;
	struct back back;
	struct peer p;

	o.rdma.stall_ms = 200;
	open_peer(&p, &o);
	ck_assert_int_eq(back_start(&back, 0), 0);
	take_call(&p);
	ck_assert_int_eq(back_wait(&back), -ENOTCONN);
	peer_wait_down(&p);
	close_peer(&p);
}

TEST(calls_that_can_not_be_made_are_refused)
{
	static uint8_t big[4096];
	struct rpcrdma_back_call call = { .call = big, .done = is_done };
	struct back back;
	struct peer p;

	open_peer(&p, NULL);
	ck_assert_int_eq(back_start(&back, 0), -EOPNOTSUPP);
	close_peer(&p);
	/* A peer without private data takes 1 KiB. */
	open_peer(&p, &four);
	call.call_len = 1024 - 28 + 4;
	ck_assert_int_eq(rpcrdma_back_call(rig.xprt, &call), -EMSGSIZE);
	call.call_len = 2;
	ck_assert_int_eq(rpcrdma_back_call(rig.xprt, &call), -EMSGSIZE);
	close_peer(&p);
}

/* A call that waits for a credit was short enough when it was made. */
TEST(a_limit_that_is_lowered_refuses_the_calls_that_wait)
{
	static uint8_t big[4096];
	const struct rpcrdma_private p = { .recv_size = 4096,
					   .send_size = 4096 };
	const struct peer_options po = { .private_data = &p };
	const struct rpcrdma_limits theirs = { 4096, 1024, 16 };
	struct rpcrdma_limits ours;
	struct back first, wide, last;
	struct peer peer;

	open_peer_as(&peer, &four, &po);
	ck_assert_int_eq(back_start(&first, 1), 0);
	sem_init(&wide.done, 0, 0);
	wide.call = (struct rpcrdma_back_call){ .call = big, .call_len = 2000,
						.done = is_done };
	ck_assert_int_eq(rpcrdma_back_call(rig.xprt, &wide.call), 0);
	ck_assert_int_eq(back_start(&last, 3), 0);
	ck_assert_uint_eq(take_call(&peer), 1);
	rpcrdma_configure(rig.xprt, &theirs, &ours);
	ck_assert_int_eq(back_wait(&wide), -EMSGSIZE);
	reply_to(&peer, peer.hdr.xid, 4);
	ck_assert_int_eq(back_wait(&first), 0);
	ck_assert_uint_eq(take_call(&peer), 3);
	reply_to(&peer, peer.hdr.xid, 4);
	ck_assert_int_eq(back_wait(&last), 0);
	close_peer(&peer);
}

/* ---- the requester */

static void learn(void *arg)
{
	rpcrdma_requester_info(requester, arg);
}

static bool was_discarded(void *arg)
{
	struct rpcrdma_requester_info info;

	loop_call(rig.client, learn, &info);
	return info.discarded > 0;
}

TEST(a_requester_that_is_not_to_be_called_drops_calls)
{
	struct back back;

	open_both(0, NULL);
	ck_assert_int_eq(back_start(&back, 0), 0);
	wait_until(was_discarded, NULL);
	keep_connection();
	close_both();
	ck_assert_int_eq(back_wait(&back), -ENOTCONN);
}

static uint32_t answer_user(void *arg, const void *call, uint32_t len,
			    void *reply, uint32_t room)
{
	return answer(arg, call, len, reply, room);
}

static void user_done(struct gannet_rpcrdma_call *call)
{
	sem_post(call->arg);
}

/* A user of the library who stays within reach. */
struct user {
	struct gannet_rpcrdma *c;
	struct gannet_rpcrdma_call call;
};

static void connect_again(void *arg, enum gannet_rpcrdma_event event, int err)
{
	struct user *u = arg;

	if (event == GANNET_RPCRDMA_LOST)
		require(gannet_rpcrdma_call(u->c, &u->call) == 0);
}

TEST(the_responder_may_call_a_client_that_answers)
{
	const struct rig_options o = { .rdma.back_credits = 2 };
	uint32_t msg[3] = { htobe32(1), htobe32(OP_KEEP), 0 };
	sem_t done;
	struct user u = { .call = {
		.size = sizeof(u.call),
		.msg = msg, .msg_len = sizeof(msg),
		.done = user_done, .arg = &done,
	} };
	const struct gannet_rpcrdma_options co = {
		.size = sizeof(co),
		.answer = answer_user, .event = connect_again, .arg = &u,
	};
	struct back back;

	sem_init(&done, 0, 0);
	rig_open(&rig, &o);
	ck_assert_int_eq(client_connect(&rig.fabric,
			(struct sockaddr *)&rig.listener->local, &co, &u.c),
			 0);
	ck_assert_int_eq(gannet_rpcrdma_call(u.c, &u.call), 0);
	for (uint32_t i = 0; i < 2; i++) {
		/* The second time because the connection was lost. */
		wait_sem(&done);
		ck_assert_int_eq(back_start(&back, 41 + i), 0);
		ck_assert_int_eq(back_wait(&back), 0);
		ck_assert_uint_eq(be32toh(back.reply[2]), 42 + i);
		if (i == 0)
			rpcrdma_conn_close(rpcrdma_conn_of(rig.xprt), 0);
	}
	gannet_rpcrdma_close(u.c);
	rig_close(&rig);
	sem_destroy(&done);
}

static uint8_t message[256];
static struct xdr_out out;

static uint32_t message_begin(struct rpcrdma_header *h, uint32_t proc,
			      unsigned list)
{
	xdr_out_init(&out, message, sizeof(message));
	xdr_put_u32(&out, 9);
	xdr_put_u32(&out, 1);
	xdr_put_u32(&out, 1);
	xdr_put_u32(&out, proc);
	for (unsigned i = 0; i < 3; i++) {
		xdr_put_bool(&out, i == list);
		if (i != list)
			continue;
		xdr_put_u32(&out, i == 0 ? 0 : 1);	/* position, count */
		xdr_put_u32(&out, 77);
		xdr_put_u32(&out, 100);
		xdr_put_u64(&out, 4096);
		if (i < 2)
			xdr_put_bool(&out, false);
	}
	if (proc == RPCRDMA_MSG) {
		xdr_put_u32(&out, 9);
		xdr_put_u32(&out, CALL);
		xdr_put_u32(&out, 3);
	}
	ck_assert_int_eq(rpcrdma_header_decode(message, xdr_out_len(&out), h),
			 0);
	return (uint32_t)xdr_out_len(&out);
}

TEST(calls_with_chunks_get_err_chunk)
{
	const struct rpcrdma_answers how = { .credits = 3, .make = answer };
	struct rpcrdma_header h;
	uint8_t back[256];
	struct xdr_out x;
	uint32_t len;

	for (unsigned list = 0; list < 4; list++) {
		len = message_begin(&h, RPCRDMA_MSG, list);
		ck_assert(rpcrdma_answer_is_due(&h, message, len));
		xdr_out_init(&x, back, sizeof(back));
		len = rpcrdma_answer_make(&how, &h, message, len, &x);
		ck_assert_int_eq(rpcrdma_header_decode(back, len, &h), 0);
		ck_assert_uint_eq(h.xid, 9);
		ck_assert_uint_eq(h.credits, 3);
		ck_assert_uint_eq(h.proc, list < 3 ? RPCRDMA_ERROR :
						     RPCRDMA_MSG);
		if (list < 3)
			ck_assert_uint_eq(h.err, RPCRDMA_ERR_CHUNK);
	}
	/* A long call has a Read list; a long reply has none. */
	len = message_begin(&h, RPCRDMA_NOMSG, 0);
	ck_assert(rpcrdma_answer_is_due(&h, message, len));
	xdr_out_init(&x, back, sizeof(back));
	len = rpcrdma_answer_make(&how, &h, message, len, &x);
	ck_assert_int_eq(rpcrdma_header_decode(back, len, &h), 0);
	ck_assert_uint_eq(h.proc, RPCRDMA_ERROR);
	len = message_begin(&h, RPCRDMA_NOMSG, 2);
	ck_assert(!rpcrdma_answer_is_due(&h, message, len));
}
