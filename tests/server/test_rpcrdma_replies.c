/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester before a responder that sends whatever a test makes it send.
 *
 * Both are on one loop, so a chain of Sends arrives before the requester does
 * anything about its first.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <endian.h>

#include "tests/server/rdma_rig.h"
#include "tests/unit/runner.h"

enum { CALLS = 32, SIZE = 4096 };

static struct fabric fabric;
static struct fabric_listener *listener;
static struct loop *loop;
static struct rpcrdma_requester *requester;

/* The responder. */
static struct fabric_conn *conn;
static struct fabric_mr *mr;
static uint8_t memory[2 * CALLS][SIZE];		/* Receives, then Sends */
static struct fabric_op recv_op, send_op;
static struct fabric_recv recvs[CALLS];
static struct fabric_sge sges[CALLS];
static struct fabric_wr sends[CALLS];
static atomic_uint ncalls, nsends;
static sem_t closed;

static void call_came(struct fabric_op *op, int status, uint32_t len)
{
	if (status == 0)
		atomic_fetch_add(&ncalls, 1);
}

static void send_done(struct fabric_op *op, int status, uint32_t len)
{
	atomic_fetch_sub(&nsends, 1);
}

static void conn_up(struct fabric_conn *c)
{
}

static void conn_closed(struct fabric_conn *c, int err)
{
	sem_post(&closed);
}

static void take_peer(struct fabric_listener *l, struct fabric_conn *c)
{
	const struct fabric_queues q = { CALLS, CALLS, 1 };

	conn = c;
	c->established = conn_up;
	c->closed = conn_closed;
	require(fabric_mr_create(c->dev, memory, sizeof(memory), FABRIC_LOCAL,
				 &mr) == 0);
	require(fabric_setup(c, loop, &q) == 0);
	for (int i = 0; i < CALLS; i++) {
		recvs[i] = (struct fabric_recv){
			.op = &recv_op,
			.sge = { memory[i], SIZE, mr->lkey },
		};
		require(fabric_post_recv(c, &recvs[i]) == 0);
	}
	require(fabric_start(c, NULL, 0, 16) == 0);
}

static void open_with(const struct rpcrdma_requester_options *ro)
{
	const struct loop_fabric_options fo = { .seed = 0 };
	struct sockaddr_in addr = { .sin_family = AF_INET };

	recv_op.done = call_came;
	send_op.done = send_done;
	atomic_store(&ncalls, 0);
	sem_init(&closed, 0, 0);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	require(loop_create("both", &loop) == 0);
	require(loop_start(loop) == 0);
	require(loop_fabric_create(&fo, &fabric) == 0);
	require(fabric_listen(&fabric, (struct sockaddr *)&addr, loop,
			      take_peer, NULL, &listener) == 0);
	require(rpcrdma_requester_create(&fabric,
			(struct sockaddr *)&listener->local, loop, ro,
			&requester) == 0);
}

static void open_all(void)
{
	static const struct rpcrdma_requester_options o = { .credits = CALLS };

	open_with(&o);
}

static void free_responder(void *arg)
{
	fabric_free(conn);
	fabric_mr_destroy(mr);
}

static void close_all(void)
{
	struct loop_fabric_counts counts;

	rpcrdma_requester_destroy(requester);
	wait_sem(&closed);
	loop_call(loop, free_responder, NULL);
	fabric_unlisten(listener);
	loop_fabric_count(&fabric, &counts);
	ck_assert_uint_eq(counts.violations, 0);
	ck_assert_uint_eq(counts.mrs, 0);
	loop_stop(loop);
	loop_destroy(loop);
	loop_fabric_destroy(&fabric);
	sem_destroy(&closed);
}

static void get_info(void *arg)
{
	rpcrdma_requester_info(requester, arg);
}

static struct rpcrdma_requester_info requester_info(void)
{
	struct rpcrdma_requester_info info;

	loop_call(loop, get_info, &info);
	return info;
}

static bool have_calls(void *arg)
{
	return atomic_load(&ncalls) >= *(unsigned *)arg;
}

static void await_calls(unsigned n)
{
	wait_until(have_calls, &n);
}

static bool are_sent(void *arg)
{
	return atomic_load(&nsends) == 0;
}

static struct xdr_out out;

/* Begins the n-th message of a chain. */
static void begin(unsigned n, uint32_t xid, uint32_t vers, uint32_t credits,
		  uint32_t proc)
{
	xdr_out_init(&out, memory[CALLS + n], SIZE);
	xdr_put_u32(&out, xid);
	xdr_put_u32(&out, vers);
	xdr_put_u32(&out, credits);
	xdr_put_u32(&out, proc);
}

static void put_words(uint32_t word, unsigned n)
{
	while (n-- > 0)
		xdr_put_u32(&out, word);
}

/* Ends it, or cuts it off at @len. */
static void end_at(unsigned n, uint32_t len)
{
	sges[n] = (struct fabric_sge){ memory[CALLS + n], len, mr->lkey };
	sends[n] = (struct fabric_wr){ .opcode = FABRIC_SEND, .op = &send_op,
				       .sge = &sges[n], .nsge = 1 };
}

static void end(unsigned n)
{
	end_at(n, (uint32_t)xdr_out_len(&out));
}

static void put_reply(unsigned n, uint32_t xid, uint32_t credits)
{
	begin(n, xid, RPCRDMA_VERSION, credits, RPCRDMA_MSG);
	put_words(0, 3);
	put_words(xid, 2);
	end(n);
}

static void post(void *arg)
{
	require(fabric_post(conn, sends) == 0);
}

/* Sends the first @n messages as one chain. */
static void send_all(unsigned n)
{
	for (unsigned i = 0; i + 1 < n; i++)
		sends[i].next = &sends[i + 1];
	atomic_store(&nsends, n);
	loop_call(loop, post, NULL);
	wait_until(are_sent, NULL);
}

static void answer(uint32_t xid, uint32_t credits)
{
	put_reply(0, xid, credits);
	send_all(1);
}

static void begin_exchange(struct exchange *x, uint32_t xid)
{
	exchange_init(x, xid, 0, 0);
	exchange_start(requester, x);
}

static void end_exchange(struct exchange *x, uint32_t xid)
{
	ck_assert_int_eq(exchange_wait(x), 0);
	ck_assert_uint_eq(exchange_word(x, 1), xid);
	exchange_fini(x);
}

TEST(replies_may_come_all_at_once_and_in_any_order)
{
	static struct exchange x[CALLS];
	enum { N = CALLS - 1 };

	open_all();
	begin_exchange(&x[0], 100);
	await_calls(1);
	answer(100, CALLS);
	end_exchange(&x[0], 100);
	for (uint32_t i = 0; i < N; i++)
		begin_exchange(&x[i], i);
	await_calls(1 + N);
	for (uint32_t i = 0; i < N; i++)
		put_reply(i, N - 1 - i, CALLS);
	send_all(N);
	for (uint32_t i = 0; i < N; i++)
		end_exchange(&x[i], i);
	ck_assert_uint_eq(requester_info().discarded, 0);
	close_all();
}

/* Messages that answer a call's xid, and no call: returns how many. */
static unsigned make_none(uint32_t xid)
{
	unsigned n = 0;

	/* Cut off. */
	for (uint32_t len = 0; len < RPCRDMA_HEADER_MIN; len += 4) {
		put_reply(n, xid, 99);
		end_at(n++, len);
	}
	/* Another version, another procedure, and those that were given up. */
	begin(n, xid, 2, 99, RPCRDMA_MSG);
	put_words(0, 3);
	put_words(xid, 2);
	end(n++);
	begin(n, xid, RPCRDMA_VERSION, 99, 5);
	put_words(0, 5);
	end(n++);
	begin(n, xid, RPCRDMA_VERSION, 99, RPCRDMA_DONE);
	put_words(0, 3);
	end(n++);
	begin(n, xid, RPCRDMA_VERSION, 99, RPCRDMA_MSGP);
	put_words(0, 5);
	put_words(xid, 2);
	end(n++);
	/* An error that there isn't, and one without its versions. */
	begin(n, xid, RPCRDMA_VERSION, 99, RPCRDMA_ERROR);
	put_words(7, 3);
	end(n++);
	begin(n, xid, RPCRDMA_VERSION, 99, RPCRDMA_ERROR);
	put_words(RPCRDMA_ERR_VERS, 2);
	end(n++);
	/* A list mark that is no boolean, and an xid of nobody's. */
	begin(n, xid, RPCRDMA_VERSION, 99, RPCRDMA_MSG);
	put_words(2, 3);
	put_words(xid, 2);
	end(n++);
	put_reply(n++, xid + 1, 99);
	return n;
}

/* RFC 8166 sections 4.5 and 4.6: in silence, their credits too. */
TEST(replies_that_are_none_are_dropped)
{
	struct exchange x;
	unsigned n;

	open_all();
	begin_exchange(&x, 7);
	await_calls(1);
	n = make_none(7);
	send_all(n);
	ck_assert_uint_eq(requester_info().discarded, n);
	ck_assert_uint_eq(requester_info().credits, 0);
	ck_assert_uint_eq(requester_info().in_flight, 1);
	answer(7, 3);
	end_exchange(&x, 7);
	ck_assert_uint_eq(requester_info().credits, 3);
	close_all();
}

TEST(a_grant_of_no_credits_is_taken_for_one)
{
	struct exchange x[4];

	open_all();
	for (uint32_t i = 0; i < ARRAY_SIZE(x); i++)
		begin_exchange(&x[i], i);
	for (uint32_t i = 0; i < ARRAY_SIZE(x); i++) {
		await_calls(i + 1);
		ck_assert_uint_eq(requester_info().in_flight, 1);
		answer(i, 0);
		end_exchange(&x[i], i);
	}
	close_all();
}

/* Starts a call with a Write chunk; returns the handle in the @n-th message. */
static uint32_t begin_handle(struct exchange *x, uint32_t xid, unsigned n)
{
	static uint8_t sink[1000];
	uint32_t word;

	exchange_init(x, xid, 0, 0);
	x->request.nwrites = 1;
	x->request.write[0] = rpcrdma_memory_at(sink, sizeof(sink));
	exchange_start(requester, x);
	await_calls(n + 1);
	/* Behind four words, no Read list, a mark and a count. */
	memcpy(&word, memory[n] + 28, sizeof(word));
	return be32toh(word);
}

static void answer_invalidating(uint32_t xid, uint32_t handle)
{
	put_reply(0, xid, CALLS);
	sends[0].opcode = FABRIC_SEND_INV;
	sends[0].invalidate = handle;
	send_all(1);
}

/* RFC 8797 section 4.1: another call's Writes would find it gone. */
TEST(a_reply_may_invalidate_a_handle_of_its_own_call_alone)
{
	struct exchange x, other;
	uint32_t handle;

	open_all();
	handle = begin_handle(&x, 7, 0);
	answer_invalidating(7, handle);
	end_exchange(&x, 7);
	ck_assert_uint_eq(requester_info().invalidated, 1);
	begin_handle(&x, 8, 1);
	handle = begin_handle(&other, 9, 2);
	answer_invalidating(8, handle);
	ck_assert_int_eq(exchange_wait(&x), -ENOTCONN);
	ck_assert_int_eq(exchange_wait(&other), -ENOTCONN);
	exchange_fini(&x);
	exchange_fini(&other);
	close_all();
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

	rpcrdma_requester_info(requester, &info);
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
	/* The Receive of the first answer has what done() will see. */
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

	open_all();
	begin_exchange(&other, 6);
	await_calls(1);
	answer(6, CALLS);
	end_exchange(&other, 6);
	exchange_init(&x, 7, 0, 0);
	x.request.nwrites = 1;
	x.request.write[0] = rpcrdma_memory_at(sink, sizeof(sink));
	exchange_start(requester, &x);
	begin_exchange(&other, 8);
	await_calls(3);
	loop_call(loop, make_stuck, NULL);
	/* A second answer is none. */
	put_reply(0, 7, CALLS);
	put_reply(1, 7, CALLS);
	send_all(2);
	ck_assert_uint_eq(requester_info().in_flight, 2);
	ck_assert_uint_eq(requester_info().discarded, 1);
	sem_getvalue(&x.done, &value);
	ck_assert_int_eq(value, 0);
	/* No more calls go out. */
	begin_exchange(&late, 9);
	ck_assert_uint_eq(requester_info().in_flight, 2);
	loop_call(loop, make_well, NULL);
	/* It was answered, and the other was not. */
	end_exchange(&x, 7);
	ck_assert_int_eq(exchange_wait(&other), -ENOTCONN);
	ck_assert_int_eq(exchange_wait(&late), -ENOTCONN);
	exchange_fini(&other);
	exchange_fini(&late);
	close_all();
}

/* Starts a call whose data may go padded; returns how the n-th call came. */
static uint32_t begin_padded(struct exchange *x, uint32_t xid, unsigned n)
{
	static uint8_t data[100];
	struct rpcrdma_header h;

	exchange_init(x, xid, 0, 0);
	exchange_put(x, sizeof(data));
	x->request.nreads = 1;
	x->request.read[0].position = x->request.call_len;
	x->request.read[0].mem = rpcrdma_memory_at(data, sizeof(data));
	exchange_start(requester, x);
	await_calls(n + 1);
	require(rpcrdma_header_decode(memory[n], SIZE, &h) == 0);
	require(h.xid == xid);
	return h.proc;
}

static void refuse(uint32_t xid)
{
	begin(0, xid, RPCRDMA_VERSION, CALLS, RPCRDMA_ERROR);
	put_words(RPCRDMA_ERR_CHUNK, 1);
	end(0);
	send_all(1);
}

/* RFC 8166 section 4.6.1: responders should refuse RDMA_MSGP.  It is the answer
 * to that call; the connection stays, and its other calls are not padded. */
TEST(a_padded_call_that_is_refused_fails_alone)
{
	static const struct rpcrdma_requester_options o = {
		.credits = CALLS, .pad_align = 128 };
	struct exchange x, y;

	open_with(&o);
	ck_assert_uint_eq(begin_padded(&x, 7, 0), RPCRDMA_MSGP);
	answer(7, CALLS);
	end_exchange(&x, 7);
	/* Both are on their way before the first is refused. */
	ck_assert_uint_eq(begin_padded(&x, 8, 1), RPCRDMA_MSGP);
	ck_assert_uint_eq(begin_padded(&y, 9, 2), RPCRDMA_MSGP);
	refuse(8);
	ck_assert_int_eq(exchange_wait(&x), -EREMOTEIO);
	ck_assert_uint_eq(x.request.errcode, RPCRDMA_ERR_CHUNK);
	exchange_fini(&x);
	ck_assert_uint_eq(begin_padded(&x, 8, 3), RPCRDMA_MSG);
	answer(9, CALLS);
	end_exchange(&y, 9);
	answer(8, CALLS);
	end_exchange(&x, 8);
	close_all();
}
