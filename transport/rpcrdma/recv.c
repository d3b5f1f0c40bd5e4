/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * recv - the way in: a message becomes a call, or is refused.  On the poller.
 *
 * Operation: all Receives are posted before the connection is accepted.
 * rpcrdma_recv_done() has a message; it waits until the connection is
 * established and a slot is free.  The pump starts it: decodes the header,
 * checks it, has pull.c read its chunks, and hands the whole call to the sink.
 * The pump also posts the Receives that came back, in batches, or at once when
 * the low-water mark is reached (slots.h says why that is early enough).
 *
 * Ownership: a posted Receive is the fabric's until rpcrdma_recv_done(); a
 * message is its slot's until the reply's Send is done, and call.c gives both
 * back.
 *
 * Errors: as RFC 8166 section 4.5.  Drops a message that is too short, or of a
 * kind that only a responder sends; answers one that can't be decoded or
 * carried out with RDMA_ERROR.  A failed Receive, or a message beyond the
 * credits, closes the connection.
 */
#include "transport/rpcrdma/call.h"

#include <errno.h>

#include "lib/log.h"
#include "lib/probe.h"
#include "lib/stats.h"
#include "transport/rpcrdma/credits.h"
#include "transport/rpcrdma/expose.h"
#include "transport/rpcrdma/listen.h"
#include "transport/rpcrdma/store.h"

STAT(rdma_overruns, "calls beyond the credits of their connection");
STAT(rdma_early_calls, "messages that came before their connection was up");
STAT(rdma_calls, "calls accepted over RDMA");
STAT(rdma_long_calls, "calls that came in a Position-Zero Read chunk");
STAT(rdma_cut_calls, "calls cut because they were too long");
STAT(rdma_padded_calls, "RDMA_MSGP calls");
STAT(rdma_short_messages, "messages shorter than a header");
STAT(rdma_bad_version, "messages of another version");
STAT(rdma_bad_headers, "messages with a malformed header");
STAT(rdma_bad_chunks, "calls with impossible Read chunks");
STAT(rdma_wide_lists, "calls with chunk lists too long for a reply");
STAT(rdma_bad_xids, "calls whose two xids differ");
STAT(rdma_not_eligible, "Read chunks for arguments that are not DDP-eligible");
STAT(rdma_not_readable, "Read chunks of peers that answer no Reads");
STAT(rdma_hopeless, "calls refused because their chunks had failed before");
STAT(rdma_done_messages, "RDMA_DONE messages dropped: nothing is exposed");
STAT(rdma_error_messages, "RDMA_ERROR messages from requesters, dropped");

static void rpcrdma_call_refuse(struct rpcrdma_call *call, const char *why)
{
	xprt_log_limited(call->msg.xprt, LOG_LEVEL_INFO,
			 "refused a call: %s", why);
	rpcrdma_reply_error(call, RPCRDMA_ERR_CHUNK);
}

/* True if the xids of the call and of the header agree (section 4.5.2). */
static bool same_xid(const struct rpcrdma_call *call, const uint8_t *rpc,
		     uint32_t len)
{
	return len >= 4 && xdr_word(rpc) == call->hdr.xid;
}

/*
 * True if chunks stand only where the Upper-Layer Binding lets them.  If not,
 * the call must not be processed (RFC 8166 section 6.1).
 */
static bool chunks_eligible(struct rpcrdma_call *call, const uint8_t *rpc,
			    uint32_t len)
{
	struct xprt_sink *sink = call->msg.xprt->sink;

	if (!sink->read_chunk_ok)
		return true;
	for (uint32_t i = call->layout.pzrc ? 1 : 0; i < call->hdr.nreads; i++)
		if (!sink->read_chunk_ok(sink, rpc, len,
					 call->hdr.read[i].position))
			return false;
	return true;
}

/* Checks the start of the call, which is here.  True: the call goes on. */
static bool check_rpc(struct rpcrdma_call *call, const uint8_t *rpc,
		      uint32_t len)
{
	if (!same_xid(call, rpc, len)) {
		stat_inc(rdma_bad_xids);
		rpcrdma_call_refuse(call, "its xids differ");
		return false;
	}
	if (!chunks_eligible(call, rpc, len)) {
		stat_inc(rdma_not_eligible);
		rpcrdma_call_refuse(call,
				    "a Read chunk where there may be none");
		return false;
	}
	return true;
}

/* To ask for a place is to decode the call up to there. */
enum { MAX_REFUSED_PADS = 16 };

/* RDMA_MSGP: leaves out the pad before the last opaque. */
static void unpad(struct rpcrdma_call *call)
{
	struct xprt_sink *sink = call->msg.xprt->sink;
	const struct rpcrdma_recv *recv = call->slot.recv;
	const uint8_t *rpc = recv->buf + call->hdr.len;
	uint32_t len = recv->len - call->hdr.len;
	uint32_t at = 0, pad = 0;
	unsigned refused = 0;

	stat_inc(rdma_padded_calls);
	while (refused < MAX_REFUSED_PADS &&
	       rpcrdma_msgp_find(&call->hdr, recv->buf, recv->len, at, &at,
				 &pad)) {
		if (!sink->read_chunk_ok ||
		    sink->read_chunk_ok(sink, rpc, len, at)) {
			rpcrdma_layout_unpad(&call->layout, at, pad);
			return;
		}
		refused++;
	}
}

static void dispatch(struct rpcrdma_call *call)
{
	struct msg *m = &call->msg;
	const uint8_t *sink = call->sink ? call->sink->data : NULL;
	const uint8_t *base = call->slot.recv->buf + call->hdr.len;

	if (call->layout.pzrc) {
		base = sink + call->layout.sink_off[0];
		if (!check_rpc(call, base, call->layout.pull_len[0]))
			return;
		stat_inc(rdma_long_calls);
	}
	m->ncall = rpcrdma_layout_splice(&call->layout, base, sink, m->call);
	m->call_len = call->layout.call_len;
	if (unlikely(call->layout.cut > 0)) {
		stat_inc(rdma_cut_calls);
		msg_add_cut(m, call->layout.cut);
	}
	m->in_pool = call->sink != NULL;
	m->head_len = 0;
	m->tail_len = 0;
	m->body_len = 0;
	m->body_ddp = false;
	stat_inc(rdma_calls);
	rpcrdma_call_conn(call)->proof.received += m->call_len;
	m->xprt->sink->recv(m->xprt->sink, m);
}

static void pulled(struct rpcrdma_chain *chain, int status)
{
	struct rpcrdma_call *call = container_of(chain, struct rpcrdma_call,
						 chain);

	if (rpcrdma_pull_end(call, status))
		dispatch(call);
}

/* True if the call came before, and its chunks cost its connection.  Only one
 * with chunks can. */
static bool is_hopeless(struct rpcrdma_call *call)
{
	struct rpcrdma_conn *conn = rpcrdma_call_conn(call);
	const struct rpcrdma_recv *recv = call->slot.recv;
	const struct rpcrdma_header *h = &call->hdr;
	struct rpcrdma_lost_key key;

	call->content = 0;
	if (conn->fc->dev->limits.unacknowledged ||
	    !(h->nreads || h->nwrites || h->has_reply))
		return false;
	call->content = rpcrdma_lost_content(h, recv->buf, recv->len);
	key = rpcrdma_call_key(call);
	return rpcrdma_lost_take(&conn->listener->lost, &key,
				 loop_now(conn->xprt.loop));
}

/* The header is decoded; @len bytes follow it. */
static void plan(struct rpcrdma_call *call, uint32_t len)
{
	struct rpcrdma_conn *conn = rpcrdma_call_conn(call);
	const uint8_t *rpc = call->slot.recv->buf + call->hdr.len;

	if (is_hopeless(call)) {
		stat_inc(rdma_hopeless);
		rpcrdma_call_refuse(call, "its chunks failed before");
		return;
	}
	/* The reply's header must fit, in any case. */
	if (call->hdr.reply_len > atomic_load(&conn->send_inline)) {
		stat_inc(rdma_wide_lists);
		rpcrdma_call_refuse(call, "its lists are too long to return");
		return;
	}
	if (rpcrdma_layout_plan(&call->hdr, len, &call->layout) < 0) {
		stat_inc(rdma_bad_chunks);
		rpcrdma_call_refuse(call, "its Read chunks can't be");
		return;
	}
	call->invalidate = conn->may_invalidate &&
		rpcrdma_header_invalidate(&call->hdr, &call->handle);
	if (call->layout.pzrc && call->layout.sink_len == 0) {
		stat_inc(rdma_bad_chunks);
		rpcrdma_call_refuse(call, "it is empty");
		return;
	}
	if (!call->layout.pzrc && !check_rpc(call, rpc, len))
		return;
	if (call->hdr.proc == RPCRDMA_MSGP)
		unpad(call);
	if (call->layout.sink_len == 0) {
		dispatch(call);
	} else if (atomic_load(&conn->no_reads)) {
		stat_inc(rdma_not_readable);
		rpcrdma_call_refuse(call, "its sender answers no Reads");
	} else {
		call->chain.done = pulled;
		rpcrdma_pull(call);
	}
}

static void start_decoded(struct rpcrdma_call *call)
{
	if (call->hdr.proc == RPCRDMA_DONE) {
		stat_inc(rdma_done_messages);
		rpcrdma_call_drop(call);
		return;
	}
	rpcrdma_conn_called(rpcrdma_call_conn(call), call->hdr.credits);
	plan(call, call->slot.recv->len - call->hdr.len);
}

static void rpcrdma_call_start(struct rpcrdma_call *call)
{
	const struct rpcrdma_recv *recv = call->slot.recv;
	int err = rpcrdma_header_decode(recv->buf, recv->len, &call->hdr);

	PROBE(rdma_received, &call->msg, call->msg.xprt, recv->len);
	call->invalidate = false;
	call->msg.sent = NULL;
	xprt_get(call->msg.xprt);
	/* Section 4.2.4: dropped without checking its version or decoding it:
	 * two peers must not answer errors with errors for ever. */
	if (err != -ENODATA && call->hdr.proc == RPCRDMA_ERROR) {
		stat_inc(rdma_error_messages);
		rpcrdma_call_drop(call);
		return;
	}
	switch (err) {
	case 0:
		start_decoded(call);
		break;
	case -ENODATA:
		stat_inc(rdma_short_messages);
		rpcrdma_call_drop(call);
		break;
	case -EPROTONOSUPPORT:
		stat_inc(rdma_bad_version);
		rpcrdma_reply_error(call, RPCRDMA_ERR_VERS);
		break;
	default:
		stat_inc(rdma_bad_headers);
		rpcrdma_call_refuse(call, "its header is malformed");
		break;
	}
}

void rpcrdma_recv_pump(struct rpcrdma_conn *conn)
{
	enum rpcrdma_state state = atomic_load(&conn->state);
	struct rpcrdma_slot *slot;

	if (unlikely(state != CONN_LIVE)) {
		if (state < CONN_LIVE && conn->slots.waiting)
			stat_inc(rdma_early_calls);
		return;
	}
	while ((slot = rpcrdma_slots_take(&conn->slots)))
		rpcrdma_call_start(container_of(slot, struct rpcrdma_call,
						slot));
	if (rpcrdma_store_post(conn, false) < 0)
		rpcrdma_conn_close(conn, -ENOTCONN);
	if (unlikely(atomic_load(&conn->slots.gone)))
		rpcrdma_credits_free_gone(conn);
}

static void pump(struct loop_task *t)
{
	struct rpcrdma_conn *conn = container_of(t, struct rpcrdma_conn,
						 pump_task);

	atomic_store(&conn->pump_due, false);
	rpcrdma_recv_pump(conn);
	xprt_put(&conn->xprt);
}

static void rpcrdma_recv_done(struct fabric_op *op, int status, uint32_t len)
{
	struct rpcrdma_recv *r = container_of(op, struct rpcrdma_recv, op);
	struct rpcrdma_conn *conn = r->conn;

	if (status < 0) {
		rpcrdma_conn_close(conn, status);
		return;
	}
	atomic_store_explicit(&conn->watch.active, loop_now(conn->xprt.loop),
			      memory_order_relaxed);
	if (likely(rpcrdma_slots_arrived(&conn->slots, r, len))) {
		rpcrdma_credits_used(conn);
		rpcrdma_recv_pump(conn);
		return;
	}
	stat_inc(rdma_overruns);
	xprt_log_limited(&conn->xprt, LOG_LEVEL_WARN,
			 "more calls than its %u credits",
			 conn->slots.credits);
	rpcrdma_conn_close(conn, -EPROTO);
}

/* The same on a connection where a message can be the RDMA_DONE for an exposed
 * reply, which needs no slot. */
static void either_recv_done(struct fabric_op *op, int status, uint32_t len)
{
	struct rpcrdma_recv *r = container_of(op, struct rpcrdma_recv, op);
	struct rpcrdma_conn *conn = r->conn;

	if (status < 0 ||
	    !rpcrdma_expose_take(conn->exposures, r->buf, len)) {
		rpcrdma_recv_done(op, status, len);
		return;
	}
	atomic_store_explicit(&conn->watch.active, loop_now(conn->xprt.loop),
			      memory_order_relaxed);
	rpcrdma_slots_skip(&conn->slots, r);
	rpcrdma_recv_pump(conn);
}

void rpcrdma_recv_init(struct rpcrdma_conn *conn)
{
	conn->pump = pump;
	conn->recv_done = conn->exposures ? either_recv_done :
					    rpcrdma_recv_done;
}
