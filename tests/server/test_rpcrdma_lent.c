/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory that a call of the client library lends, against a responder that
 * uses its handles too late: on the loop fabric, on one whose device pins
 * memory, and on iWARP.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "tools/rpcrdma/client.h"
#include "tests/server/one_call.h"
#include "tests/server/rdma_rig.h"
#include "tests/unit/runner.h"

enum { SIZE = 1024, NRECVS = 4, NCONNS = 2, LENT = 256, MARK = 0xa5 };
enum { ON_LOOP, ON_PINNED, ON_IWARP, NFABRICS };
enum { BY_CALL, BY_CACHE, BY_REGION, BY_WINDOW, BY_REGION_WINDOW,
       NSTRATEGIES };
enum ending { ANSWER, REFUSE, LOSE, HOLD, CANCEL, NENDINGS };

struct landing {
	struct fabric_op   op;
	struct fabric_recv wr;
	struct fabric_conn *fc;
};

static struct spy {
	struct fabric	    fabric;
	unsigned	    kind;
	struct loop	   *loop;
	struct fabric_listener *listener;
	struct fabric_conn *conn[NCONNS];
	unsigned	    nconns;
	struct fabric_mr   *mr;
	uint8_t		    bytes[NCONNS * NRECVS + 2][SIZE];
	struct landing	    recv[NCONNS * NRECVS];
	enum ending	    ending;
	struct rpcrdma_segment source, sink;	/* of the last call, */
	unsigned	    nsinks;		/* and segments of the latter */
	struct fabric_conn *caller;
	uint32_t	    xid;
	sem_t		    came;
	sem_t		    up;
	sem_t		    closed[NCONNS];
	struct fabric_op    send_op, touch_op;
	struct fabric_sge   send_sge, touch_sge;
	struct fabric_wr    send_wr, touch_wr;
	struct fabric_conn *touched;
	int		    touch_status;
	sem_t		    touch_done;
} spy;

/* Our client, and another one of the same process. */
static struct gannet_rpcrdma *c, *other;
static struct gannet_rpcrdma_region *region;
static uint8_t memory[2 * LENT];		/* the source, the sink */

static void answer(struct fabric_conn *fc, uint32_t xid)
{
	struct xdr_out x;

	xdr_out_init(&x, spy.bytes[NCONNS * NRECVS], SIZE);
	xdr_put_u32(&x, xid);
	xdr_put_u32(&x, RPCRDMA_VERSION);
	xdr_put_u32(&x, 4);
	xdr_put_u32(&x, spy.ending == REFUSE ? RPCRDMA_ERROR : RPCRDMA_MSG);
	if (spy.ending != REFUSE) {
		for (int i = 0; i < 3; i++)
			xdr_put_bool(&x, false);
		xdr_put_u32(&x, xid);
		xdr_put_u32(&x, 1);
	} else {
		xdr_put_u32(&x, RPCRDMA_ERR_CHUNK);
	}
	spy.send_sge = (struct fabric_sge){ x.start, (uint32_t)xdr_out_len(&x),
					    spy.mr->lkey };
	spy.send_wr = (struct fabric_wr){ .opcode = FABRIC_SEND,
		.op = &spy.send_op, .sge = &spy.send_sge, .nsge = 1 };
	require(fabric_post(fc, &spy.send_wr) == 0);
}

static void send_done(struct fabric_op *op, int status, uint32_t len)
{
}

static void call_came(struct fabric_op *op, int status, uint32_t len)
{
	struct landing *r = container_of(op, struct landing, op);
	struct rpcrdma_header h;

	if (status < 0)
		return;
	require(rpcrdma_header_decode(r->wr.sge.addr, len, &h) == 0);
	require(h.nreads == 1 && h.nwrites == 1);
	spy.source = rpcrdma_chunk_segment(&h.read[0], 0);
	spy.sink = rpcrdma_chunk_segment(&h.write, 0);
	spy.nsinks = h.write.nsegs;
	spy.caller = r->fc;
	spy.xid = h.xid;
	fabric_post_recv(r->fc, &r->wr);
	if (spy.ending == LOSE)
		fabric_close(r->fc);
	else if (spy.ending < LOSE)
		answer(r->fc, h.xid);
	sem_post(&spy.came);
}

static void conn_up(struct fabric_conn *fc)
{
	sem_post(&spy.up);
}

static void conn_closed(struct fabric_conn *fc, int err)
{
	sem_post(&spy.closed[fc == spy.conn[1]]);
}

static void take_peer(struct fabric_listener *l, struct fabric_conn *fc)
{
	const struct fabric_queues q = { 4, NRECVS, 1 };
	unsigned n = spy.nconns++;

	require(n < NCONNS);
	spy.conn[n] = fc;
	fc->established = conn_up;
	fc->closed = conn_closed;
	if (!spy.mr)
		require(fabric_mr_create(fc->dev, spy.bytes, sizeof(spy.bytes),
					 FABRIC_READ_SINK, &spy.mr) == 0);
	require(fabric_setup(fc, spy.loop, &q) == 0);
	for (unsigned i = n * NRECVS; i < (n + 1) * NRECVS; i++) {
		spy.recv[i].fc = fc;
		spy.recv[i].op.done = call_came;
		spy.recv[i].wr = (struct fabric_recv){
			.op = &spy.recv[i].op,
			.sge = { spy.bytes[i], SIZE, spy.mr->lkey } };
		require(fabric_post_recv(fc, &spy.recv[i].wr) == 0);
	}
	require(fabric_start(fc, NULL, 0, 16) == 0);
}

static void connect_one(unsigned strategy, struct gannet_rpcrdma **out)
{
	const struct gannet_rpcrdma_options o = {
		.size = sizeof(o), .flags = GANNET_RPCRDMA_NO_RECONNECT,
		.registration = strategy == BY_CACHE ? GANNET_RPCRDMA_CACHE :
				strategy >= BY_WINDOW ? GANNET_RPCRDMA_WINDOWS :
				GANNET_RPCRDMA_EACH_CALL,
	};

	ck_assert_int_eq(client_connect(&spy.fabric,
			(struct sockaddr *)&spy.listener->local, &o, out), 0);
}

static void open_all(unsigned kind, unsigned strategy)
{
	const struct loop_fabric_options lo = {
		.active.pins = kind == ON_PINNED, .active.windows = true,
		.no_invalidate = true };
	/* The spy can post before any call comes. */
	const struct iwarp_options io = { .rtr = IWARP_RTR_WRITE };
	struct sockaddr_in addr = { .sin_family = AF_INET };

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	memset(&spy, 0, sizeof(spy));
	memset(memory, 0, sizeof(memory));
	spy.kind = kind;
	spy.send_op.done = send_done;
	sem_init(&spy.came, 0, 0);
	sem_init(&spy.up, 0, 0);
	sem_init(&spy.closed[0], 0, 0);
	sem_init(&spy.closed[1], 0, 0);
	sem_init(&spy.touch_done, 0, 0);
	require(loop_create("spy", &spy.loop) == 0);
	require(loop_start(spy.loop) == 0);
	require((kind == ON_IWARP ? iwarp_fabric_create(&io, &spy.fabric) :
				    loop_fabric_create(&lo, &spy.fabric)) == 0);
	require(fabric_listen(&spy.fabric, (struct sockaddr *)&addr, spy.loop,
			      take_peer, NULL, &spy.listener) == 0);
	connect_one(strategy, &c);
	connect_one(BY_CALL, &other);
	wait_sem(&spy.up);
	wait_sem(&spy.up);
	region = NULL;
	if (strategy == BY_REGION || strategy == BY_REGION_WINDOW)
		ck_assert_int_eq(gannet_rpcrdma_register(c, memory,
				sizeof(memory), GANNET_RPCRDMA_SOURCE |
				GANNET_RPCRDMA_SINK, &region), 0);
}

static void free_conns(void *arg)
{
	for (unsigned i = 0; i < spy.nconns; i++)
		fabric_free(spy.conn[i]);
	fabric_mr_destroy(spy.mr);
}

static void close_client(struct gannet_rpcrdma **client)
{
	if (*client)
		gannet_rpcrdma_close(*client);
	*client = NULL;
}

static void close_all(void)
{
	struct loop_fabric_counts counts;

	close_client(&c);
	close_client(&other);
	for (unsigned i = 0; i < spy.nconns; i++)
		wait_sem(&spy.closed[i]);
	loop_call(spy.loop, free_conns, NULL);
	fabric_unlisten(spy.listener);
	if (spy.kind != ON_IWARP) {
		loop_fabric_count(&spy.fabric, &counts);
		ck_assert_uint_eq(counts.mrs, 0);
		ck_assert_uint_eq(counts.violations, 0);
	}
	loop_stop(spy.loop);
	loop_destroy(spy.loop);
	if (spy.kind == ON_IWARP)
		iwarp_fabric_destroy(&spy.fabric);
	else
		loop_fabric_destroy(&spy.fabric);
}

/* ---- the late access */

static void touch_done(struct fabric_op *op, int status, uint32_t len)
{
	spy.touch_status = status;
	sem_post(&spy.touch_done);
}

static void post_touch(void *arg)
{
	if (fabric_post(spy.touched, &spy.touch_wr) < 0)
		touch_done(&spy.touch_op, -ENOTCONN, 0);
}

/* Does the peer of @n refuse an access to a segment of the last call? */
static bool refused(unsigned n, const struct rpcrdma_segment *seg, bool write)
{
	uint8_t *at = spy.bytes[NCONNS * NRECVS + 1];

	memset(at, MARK, 8);
	spy.touched = spy.conn[n];
	spy.touch_op.done = touch_done;
	spy.touch_sge = (struct fabric_sge){ at, 8, spy.mr->lkey };
	spy.touch_wr = (struct fabric_wr){
		.opcode = write ? FABRIC_WRITE : FABRIC_READ,
		.op = &spy.touch_op, .sge = &spy.touch_sge, .nsge = 1,
		.handle = seg->handle, .offset = seg->offset,
	};
	loop_call(spy.loop, post_touch, NULL);
	wait_sem(&spy.touch_done);
	/* An iWARP Write is done when it is sent: the refusal follows. */
	if (spy.kind == ON_IWARP && spy.touch_status == 0) {
		wait_sem(&spy.closed[n]);
		sem_post(&spy.closed[n]);
		return true;
	}
	return spy.touch_status < 0;
}

static void start(struct one *o)
{
	one_init(o, c, 1, 2);
	o->call.nsources = 1;
	o->call.source[0].position = 12;
	o->call.source[0].mem = (struct gannet_rpcrdma_memory){
		.addr = memory, .len = LENT, .region = region };
	o->call.nsinks = 1;
	o->call.sink[0] = (struct gannet_rpcrdma_memory){
		.addr = memory + LENT, .len = LENT, .region = region };
	one_start(o, c);
}

static void answer_late(void *arg)
{
	answer(spy.caller, spy.xid);
}

/* A call that ends like this, @longer: with handles that it does not end;
 * returns the connection that is left. */
static unsigned call_and_end(enum ending ending, bool longer)
{
	const int status[] = {
		[ANSWER] = 0, [REFUSE] = -EREMOTEIO, [LOSE] = -ENOTCONN,
		[HOLD] = -ECANCELED, [CANCEL] = longer ? 0 : -ECANCELED,
	};
	struct one o;

	spy.ending = ending;
	start(&o);
	wait_sem(&spy.came);
	if (ending == HOLD)
		close_client(&c);
	if (ending == CANCEL)
		ck_assert_int_eq(gannet_rpcrdma_cancel(c, &o.call), 0);
	if (ending == CANCEL && longer)
		loop_call(spy.loop, answer_late, NULL);
	ck_assert_int_eq(one_wait(&o), status[ending]);
	return ending == LOSE || ending == HOLD;
}

static void check_over(unsigned kind, unsigned strategy, enum ending ending,
		       bool write)
{
	const bool longer = kind == ON_PINNED &&
			    (strategy == BY_CACHE || strategy == BY_REGION) &&
			    ending != LOSE && ending != HOLD;
	const struct rpcrdma_segment *seg = write ? &spy.sink : &spy.source;
	unsigned n;

	open_all(kind, strategy);
	n = call_and_end(ending, longer);
	if (longer) {
		ck_assert(!refused(n, seg, write));
		gannet_rpcrdma_forget(c, memory, sizeof(memory));
		if (region)
			ck_assert_int_eq(gannet_rpcrdma_deregister(c, region),
					 0);
	}
	ck_assert(refused(n, seg, write));
	close_all();
	ck_assert_uint_eq(memory[LENT], longer && write ? MARK : 0);
}

TEST_CASE(.timeout = 30);

/*
 * However it ends: by a reply, by RDMA_ERROR, with the connection, because the
 * client is closed, or because it is cancelled (RFC 8166 sections 4.4.1 and
 * 8.1.3).  A handle that the caller wanted to last longer ends when the caller
 * says so.
 */
TEST_LOOP(no_handle_is_good_for_longer_than_was_asked_for, 0,
	  NFABRICS * NSTRATEGIES)
{
	for (enum ending ending = ANSWER; ending < NENDINGS; ending++)
		for (int write = 0; write < 2; write++)
			check_over((unsigned)_i / NSTRATEGIES,
				   (unsigned)_i % NSTRATEGIES, ending, write);
}

/* RFC 5041 section 8.2: while the call is under way as well. */
TEST_LOOP(a_handle_is_good_for_its_own_connection_alone, 0,
	  NFABRICS * NSTRATEGIES)
{
	struct one o;

	open_all((unsigned)_i / NSTRATEGIES, (unsigned)_i % NSTRATEGIES);
	spy.ending = HOLD;
	start(&o);
	wait_sem(&spy.came);
	ck_assert(refused(1, &spy.sink, true));
	close_client(&c);
	ck_assert_int_eq(one_wait(&o), -ECANCELED);
	close_all();
	ck_assert_uint_eq(memory[LENT], 0);
}
