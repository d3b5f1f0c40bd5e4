/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Read-Read transfer model (RFC 5666 section 3.8), the requester's side,
 * with a responder that says anything.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "tests/server/rdma_rig.h"
#include "tests/unit/runner.h"

enum { LONG = 100001, NRECVS = 16, SEND_MAX = 4096 };

static struct rpcrdma_requester *requester;
static const struct rpcrdma_requester_options reads = { .read_read = true };
static uint8_t mem[4096];

struct landing {
	struct fabric_op   op;
	struct fabric_recv wr;
};

struct liar {
	struct fabric	    fabric;
	struct loop	   *loop, *client;
	struct fabric_listener *l;
	struct fabric_conn *fc;
	struct fabric_mr   *mr;
	uint8_t		    bytes[(NRECVS + 1) * SEND_MAX];
	struct landing	    recv[NRECVS];
	struct fabric_op    op;
	struct fabric_wr    wr;
	struct fabric_sge   sge;
	void		    (*lie)(struct xdr_out *x, uint32_t xid);
	unsigned	    read_depth;
	atomic_uint	    done;		/* RDMA_DONEs */
	atomic_uint	    calls;
	unsigned	    held_from;	/* calls from this on are held */
	uint32_t	    held;		/* the xid of the last */
	sem_t		    closed;
};

static struct liar liar;
static sem_t up;

static void liar_send(uint32_t xid)
{
	struct xdr_out x;

	xdr_out_init(&x, liar.bytes + NRECVS * SEND_MAX, SEND_MAX);
	liar.lie(&x, xid);
	require(!x.bad);
	liar.sge = (struct fabric_sge){ x.start, (uint32_t)xdr_out_len(&x),
					liar.mr->lkey };
	liar.wr = (struct fabric_wr){ .opcode = FABRIC_SEND, .op = &liar.op,
				      .sge = &liar.sge, .nsge = 1 };
	fabric_post(liar.fc, &liar.wr);
}

static void liar_sent(struct fabric_op *op, int status, uint32_t len)
{
}

static void liar_recv(struct fabric_op *op, int status, uint32_t len)
{
	struct landing *r = container_of(op, struct landing, op);
	struct rpcrdma_header h;
	uint32_t xid;

	if (status < 0)
		return;
	if (rpcrdma_header_is_done(r->wr.sge.addr, len, &xid)) {
		atomic_fetch_add(&liar.done, 1);
	} else {
		require(rpcrdma_header_decode(r->wr.sge.addr, len, &h) == 0);
		require(!h.has_reply);
		liar.held = h.xid;
		if (atomic_fetch_add(&liar.calls, 1) < liar.held_from)
			liar_send(h.xid);
	}
	fabric_post_recv(liar.fc, &r->wr);
}

static void liar_up(struct fabric_conn *fc)
{
}

static void liar_closed(struct fabric_conn *fc, int err)
{
	fabric_free(fc);
	sem_post(&liar.closed);
}

static void liar_asked(struct fabric_listener *l, struct fabric_conn *fc)
{
	const struct fabric_queues q = { 4, NRECVS, 1 };

	liar.fc = fc;
	fc->established = liar_up;
	fc->closed = liar_closed;
	require(fabric_mr_create(fc->dev, liar.bytes, sizeof(liar.bytes),
				 FABRIC_REMOTE_READ, &liar.mr) == 0);
	require(fabric_setup(fc, liar.loop, &q) == 0);
	for (int i = 0; i < NRECVS; i++) {
		liar.recv[i].op.done = liar_recv;
		liar.recv[i].wr = (struct fabric_recv){
			.op = &liar.recv[i].op,
			.sge = { liar.bytes + i * SEND_MAX, SEND_MAX,
				 liar.mr->lkey },
		};
		require(fabric_post_recv(fc, &liar.recv[i].wr) == 0);
	}
	require(fabric_start(fc, NULL, 0, liar.read_depth) == 0);
}

static void is_up(void *arg)
{
	sem_post(&up);
}

static void open_liar(void (*lie)(struct xdr_out *x, uint32_t xid),
		      unsigned read_depth)
{
	static const struct loop_fabric_options plain;
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct rpcrdma_requester_options o = reads;

	memset(&liar, 0, sizeof(liar));
	liar.lie = lie;
	liar.read_depth = read_depth;
	liar.held_from = UINT32_MAX;
	liar.op.done = liar_sent;
	sem_init(&liar.closed, 0, 0);
	sem_init(&up, 0, 0);
	require(loop_fabric_create(&plain, &liar.fabric) == 0);
	require(loop_create("liar", &liar.loop) == 0);
	require(loop_create("client", &liar.client) == 0);
	require(loop_start(liar.loop) == 0 && loop_start(liar.client) == 0);
	require(fabric_listen(&liar.fabric, (struct sockaddr *)&addr,
			      liar.loop, liar_asked, NULL, &liar.l) == 0);
	o.connected = is_up;
	require(rpcrdma_requester_create(&liar.fabric,
			(struct sockaddr *)&liar.l->local, liar.client, &o,
			&requester) == 0);
	wait_sem(&up);
}

static void close_liar(void)
{
	struct loop_fabric_counts counts;

	rpcrdma_requester_destroy(requester);
	wait_sem(&liar.closed);
	fabric_unlisten(liar.l);
	fabric_mr_destroy(liar.mr);
	loop_fabric_count(&liar.fabric, &counts);
	ck_assert_uint_eq(counts.violations, 0);
	ck_assert_uint_eq(counts.mrs, 0);
	loop_stop(liar.client);
	loop_stop(liar.loop);
	loop_destroy(liar.client);
	loop_destroy(liar.loop);
	loop_fabric_destroy(&liar.fabric);
	sem_destroy(&liar.closed);
	sem_destroy(&up);
}

TEST_CASE(.timeout = 60);

static void start_xid(struct exchange *x, uint32_t xid)
{
	exchange_init(x, xid, OP_LONG, LONG);
	x->request.reply = rpcrdma_memory_at(mem, 1000);
	exchange_start(requester, x);
}

static void start(struct exchange *x)
{
	start_xid(x, 3);
}

/* The status of a call that is answered so. */
static int believe(void (*lie)(struct xdr_out *x, uint32_t xid))
{
	struct exchange x;
	int status;

	open_liar(lie, 16);
	start(&x);
	status = exchange_wait(&x);
	exchange_fini(&x);
	if (status != -ENOTCONN)
		EVENTUALLY(atomic_load(&liar.done) == 1);
	close_liar();
	return status;
}

static void put_head(struct xdr_out *x, uint32_t xid, uint32_t proc)
{
	xdr_put_u32(x, xid);
	xdr_put_u32(x, RPCRDMA_VERSION);
	xdr_put_u32(x, 1);
	xdr_put_u32(x, proc);
}

static void put_read(struct xdr_out *x, uint32_t position, uint32_t handle,
		     uint32_t len)
{
	xdr_put_bool(x, true);
	xdr_put_u32(x, position);
	xdr_put_u32(x, handle);
	xdr_put_u32(x, len);
	xdr_put_u64(x, (uintptr_t)liar.bytes);
}

static void put_ends(struct xdr_out *x, unsigned n)
{
	while (n-- > 0)
		xdr_put_bool(x, false);
}

/* The memory has the call at its beginning, behind 28 bytes: another xid. */
static void lie_xid(struct xdr_out *x, uint32_t xid)
{
	put_head(x, xid, RPCRDMA_NOMSG);
	memset(liar.bytes, 0xee, 4);
	put_read(x, 0, liar.mr->rkey, 100);
	put_ends(x, 3);
}

static void lie_length(struct xdr_out *x, uint32_t xid)
{
	put_head(x, xid, RPCRDMA_NOMSG);
	put_read(x, 0, liar.mr->rkey, 1001);
	put_ends(x, 3);
}

static void lie_huge(struct xdr_out *x, uint32_t xid)
{
	put_head(x, xid, RPCRDMA_NOMSG);
	put_read(x, 0, liar.mr->rkey, UINT32_MAX);
	put_ends(x, 3);
}

static void lie_short(struct xdr_out *x, uint32_t xid)
{
	put_head(x, xid, RPCRDMA_NOMSG);
	put_read(x, 0, liar.mr->rkey, 3);
	put_ends(x, 3);
}

static void lie_empty(struct xdr_out *x, uint32_t xid)
{
	put_head(x, xid, RPCRDMA_NOMSG);
	put_read(x, 0, liar.mr->rkey, 0);
	put_ends(x, 3);
}

static void lie_position(struct xdr_out *x, uint32_t xid)
{
	put_head(x, xid, RPCRDMA_NOMSG);
	put_read(x, 8, liar.mr->rkey, 100);
	put_ends(x, 3);
}

static void lie_two(struct xdr_out *x, uint32_t xid)
{
	put_head(x, xid, RPCRDMA_NOMSG);
	put_read(x, 0, liar.mr->rkey, 100);
	put_read(x, 8, liar.mr->rkey, 100);
	put_ends(x, 3);
}

static void lie_inline(struct xdr_out *x, uint32_t xid)
{
	put_head(x, xid, RPCRDMA_MSG);
	put_read(x, 0, liar.mr->rkey, 100);
	put_ends(x, 3);
	xdr_put_u32(x, xid);
}

static void lie_chunks(struct xdr_out *x, uint32_t xid)
{
	put_head(x, xid, RPCRDMA_NOMSG);
	put_read(x, 0, liar.mr->rkey, 100);
	put_ends(x, 2);
	xdr_put_bool(x, true);
	put_ends(x, 1);
}

static void lie_many(struct xdr_out *x, uint32_t xid)
{
	put_head(x, xid, RPCRDMA_NOMSG);
	for (int i = 0; i < 65; i++)
		put_read(x, 0, liar.mr->rkey, 4);
	put_ends(x, 3);
}

static void lie_handle(struct xdr_out *x, uint32_t xid)
{
	put_head(x, xid, RPCRDMA_NOMSG);
	put_read(x, 0, liar.mr->rkey + 1, 100);
	put_ends(x, 3);
}

TEST(replies_that_can_not_be_fail_their_call)
{
	ck_assert_int_eq(believe(lie_xid), -EIO);
	ck_assert_int_eq(believe(lie_length), -EMSGSIZE);
	ck_assert_int_eq(believe(lie_huge), -EMSGSIZE);
	ck_assert_int_eq(believe(lie_short), -EIO);
	ck_assert_int_eq(believe(lie_empty), -EIO);
	ck_assert_int_eq(believe(lie_position), -EIO);
	ck_assert_int_eq(believe(lie_two), -EIO);
	ck_assert_int_eq(believe(lie_inline), -EIO);
	ck_assert_int_eq(believe(lie_chunks), -EIO);
	ck_assert_int_eq(believe(lie_many), -EIO);
}

TEST(memory_that_can_not_be_read_ends_the_connection)
{
	ck_assert_int_eq(believe(lie_handle), -ENOTCONN);
}

/* In segments of all sizes, one of them empty, and said twice. */
static void tell_true(struct xdr_out *x, uint32_t xid)
{
	uint32_t word = htonl(xid);

	memcpy(liar.bytes, &word, 4);
	put_head(x, xid, RPCRDMA_NOMSG);
	put_read(x, 0, liar.mr->rkey, 4);
	put_read(x, 0, liar.mr->rkey, 0);
	for (int i = 0; i < 62; i++)
		put_read(x, 0, liar.mr->rkey, 5);
	put_ends(x, 3);
}

TEST(a_reply_may_lie_in_many_segments)
{
	struct exchange x;

	open_liar(tell_true, 1);
	start(&x);
	ck_assert_int_eq(exchange_wait(&x), 0);
	ck_assert_uint_eq(x.request.reply_len, 4 + 62 * 5);
	for (int i = 0; i < 62; i++)
		ck_assert(memcmp(x.reply + 4 + 5 * i, x.reply, 4) == 0);
	exchange_fini(&x);
	EVENTUALLY(atomic_load(&liar.done) == 1);
	close_liar();
}

TEST(nothing_is_read_where_the_responder_lets_nothing_be_read)
{
	struct exchange x;

	open_liar(tell_true, 0);
	start(&x);
	ck_assert_int_eq(exchange_wait(&x), -EIO);
	exchange_fini(&x);
	close_liar();
}

static void grant_two(struct xdr_out *x, uint32_t xid)
{
	tell_true(x, xid);
	memcpy(x->start + 8, &(uint32_t){ htonl(2) }, 4);
}

static void nothing(void *arg)
{
}

static void answer_held(void *arg)
{
	liar_send(liar.held);
}

/* Section 3.8: the second credit is for the RDMA_DONE, until the responder
 * answers a call that came behind it. */
TEST(rdma_done_takes_a_credit_until_it_was_taken)
{
	struct exchange x[3];

	open_liar(grant_two, 16);
	liar.held_from = 1;
	for (uint32_t i = 0; i < 3; i++)
		start_xid(&x[i], 3 + i);
	EVENTUALLY(atomic_load(&liar.calls) == 2);
	for (int i = 0; i < 3; i++) {
		loop_call(liar.client, nothing, NULL);
		loop_call(liar.loop, nothing, NULL);
	}
	ck_assert_uint_eq(atomic_load(&liar.calls), 2);
	/* The next reply lies where the one before was read. */
	EVENTUALLY(atomic_load(&liar.done) == 1);
	loop_call(liar.loop, answer_held, NULL);
	EVENTUALLY(atomic_load(&liar.calls) == 3);
	EVENTUALLY(atomic_load(&liar.done) == 2);
	loop_call(liar.loop, answer_held, NULL);
	for (uint32_t i = 0; i < 3; i++) {
		ck_assert_int_eq(exchange_wait(&x[i]), 0);
		exchange_fini(&x[i]);
	}
	EVENTUALLY(atomic_load(&liar.done) == 3);
	close_liar();
}
