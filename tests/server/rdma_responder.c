/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/server/rdma_responder.h"

#include <arpa/inet.h>
#include <errno.h>

#include "tests/unit/runner.h"

struct fabric raw_fabric;
struct fabric_listener *raw_listener;
struct loop *raw_loop;
struct rpcrdma_requester *raw_requester;

/* The responder; the leftovers of a test when its client connects again. */
struct fabric_conn *raw_conn, *raw_earlier;
static struct fabric_mr *mr, *earlier_mr;
uint8_t raw_memory[2 * RAW_CALLS][RAW_SIZE];
static struct fabric_op recv_op, send_op;
static struct fabric_recv recvs[RAW_CALLS];
static struct fabric_sge sges[RAW_CALLS];
struct fabric_wr raw_sends[RAW_CALLS];
static atomic_uint ncalls, nsends;
sem_t raw_closed;

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
	sem_post(&raw_closed);
}

static void take_peer(struct fabric_listener *l, struct fabric_conn *c)
{
	const struct fabric_queues q = { RAW_CALLS, RAW_CALLS, 1 };

	raw_earlier = raw_conn;
	earlier_mr = mr;
	raw_conn = c;
	c->established = conn_up;
	c->closed = conn_closed;
	require(fabric_mr_create(c->dev, raw_memory, sizeof(raw_memory),
				 FABRIC_LOCAL, &mr) == 0);
	require(fabric_setup(c, raw_loop, &q) == 0);
	for (int i = 0; i < RAW_CALLS; i++) {
		recvs[i] = (struct fabric_recv){
			.op = &recv_op,
			.sge = { raw_memory[i], RAW_SIZE, mr->lkey },
		};
		require(fabric_post_recv(c, &recvs[i]) == 0);
	}
	require(fabric_start(c, NULL, 0, 16) == 0);
}

/* A fabric with the responder. */
void raw_start(void)
{
	const struct loop_fabric_options fo = { .seed = 0 };
	struct sockaddr_in addr = { .sin_family = AF_INET };

	recv_op.done = call_came;
	send_op.done = send_done;
	atomic_store(&ncalls, 0);
	sem_init(&raw_closed, 0, 0);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	require(loop_create("both", &raw_loop) == 0);
	require(loop_start(raw_loop) == 0);
	require(loop_fabric_create(&fo, &raw_fabric) == 0);
	require(fabric_listen(&raw_fabric, (struct sockaddr *)&addr, raw_loop,
			      take_peer, NULL, &raw_listener) == 0);
}

void raw_open_with(const struct rpcrdma_requester_options *ro)
{
	raw_start();
	require(rpcrdma_requester_create(&raw_fabric,
			(struct sockaddr *)&raw_listener->local, raw_loop, ro,
			&raw_requester) == 0);
}

void raw_open(void)
{
	static const struct rpcrdma_requester_options o = {
		.credits = RAW_CALLS };

	raw_open_with(&o);
}

static void free_responder(void *arg)
{
	fabric_free(raw_conn);
	fabric_mr_destroy(mr);
	if (raw_earlier) {
		fabric_free(raw_earlier);
		fabric_mr_destroy(earlier_mr);
	}
	raw_conn = raw_earlier = NULL;
}

void raw_stop(void)
{
	struct loop_fabric_counts counts;

	wait_sem(&raw_closed);
	loop_call(raw_loop, free_responder, NULL);
	fabric_unlisten(raw_listener);
	loop_fabric_count(&raw_fabric, &counts);
	ck_assert_uint_eq(counts.violations, 0);
	ck_assert_uint_eq(counts.mrs, 0);
	loop_stop(raw_loop);
	loop_destroy(raw_loop);
	loop_fabric_destroy(&raw_fabric);
	sem_destroy(&raw_closed);
}

void raw_close(void)
{
	rpcrdma_requester_destroy(raw_requester);
	raw_stop();
}

static void get_info(void *arg)
{
	rpcrdma_requester_info(raw_requester, arg);
}

struct rpcrdma_requester_info raw_info(void)
{
	struct rpcrdma_requester_info info;

	loop_call(raw_loop, get_info, &info);
	return info;
}

static bool have_calls(void *arg)
{
	return atomic_load(&ncalls) >= *(unsigned *)arg;
}

void raw_await(unsigned n)
{
	wait_until(have_calls, &n);
}

static bool are_sent(void *arg)
{
	return atomic_load(&nsends) == 0;
}

struct xdr_out raw_out;

/* Begins the n-th message of a chain. */
void raw_begin(unsigned n, uint32_t xid, uint32_t vers, uint32_t credits,
		  uint32_t proc)
{
	xdr_out_init(&raw_out, raw_memory[RAW_CALLS + n], RAW_SIZE);
	xdr_put_u32(&raw_out, xid);
	xdr_put_u32(&raw_out, vers);
	xdr_put_u32(&raw_out, credits);
	xdr_put_u32(&raw_out, proc);
}

void raw_words(uint32_t word, unsigned n)
{
	while (n-- > 0)
		xdr_put_u32(&raw_out, word);
}

/* Ends it, or cuts it off at @len. */
void raw_end_at(unsigned n, uint32_t len)
{
	sges[n] = (struct fabric_sge){ raw_memory[RAW_CALLS + n], len,
				       mr->lkey };
	raw_sends[n] = (struct fabric_wr){ .opcode = FABRIC_SEND,
					   .op = &send_op,
					   .sge = &sges[n], .nsge = 1 };
}

void raw_end(unsigned n)
{
	raw_end_at(n, (uint32_t)xdr_out_len(&raw_out));
}

void raw_put_reply(unsigned n, uint32_t xid, uint32_t credits)
{
	raw_begin(n, xid, RPCRDMA_VERSION, credits, RPCRDMA_MSG);
	raw_words(0, 3);
	raw_words(xid, 2);
	raw_end(n);
}

static void post(void *arg)
{
	require(fabric_post(raw_conn, raw_sends) == 0);
}

/* Sends the first @n messages as one chain. */
void raw_send(unsigned n)
{
	for (unsigned i = 0; i + 1 < n; i++)
		raw_sends[i].next = &raw_sends[i + 1];
	atomic_store(&nsends, n);
	loop_call(raw_loop, post, NULL);
	wait_until(are_sent, NULL);
}

void raw_reply(uint32_t xid, uint32_t credits)
{
	raw_put_reply(0, xid, credits);
	raw_send(1);
}

void raw_call(struct exchange *x, uint32_t xid)
{
	exchange_init(x, xid, 0, 0);
	exchange_start(raw_requester, x);
}

void raw_answered(struct exchange *x, uint32_t xid)
{
	ck_assert_int_eq(exchange_wait(x), 0);
	ck_assert_uint_eq(exchange_word(x, 1), xid);
	exchange_fini(x);
}
