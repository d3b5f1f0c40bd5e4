/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call - a message becomes a call, or is refused.
 *
 * Errors: as RFC 8166 section 4.5.  Drops a message that is too short, or of a
 * kind that only a responder sends; answers one that can't be decoded or
 * carried out with RDMA_ERROR.
 */
#include "transport/rpcrdma/call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <endian.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "transport/rpcrdma/listen.h"

STAT(rdma_calls, "calls taken over RDMA");
STAT(rdma_long_calls, "calls that came in a Position-Zero Read chunk");
STAT(rdma_cut_calls, "calls cut because they were too long");
STAT(rdma_padded_calls, "RDMA_MSGP calls");
STAT(rdma_short_messages, "messages shorter than a header");
STAT(rdma_bad_version, "messages of another version");
STAT(rdma_bad_headers, "messages with a malformed header");
STAT(rdma_bad_chunks, "calls with impossible Read chunks");
STAT(rdma_wide_lists, "calls with chunk lists too long for a reply");
STAT(rdma_bad_xids, "calls whose two xids differ");
STAT(rdma_not_eligible, "Read chunks for arguments that may not have one");
STAT(rdma_hopeless, "calls refused because their chunks had failed before");
STAT(rdma_done_messages, "RDMA_DONE messages, dropped");
STAT(rdma_error_messages, "RDMA_ERROR messages from requesters, dropped");

void rpcrdma_call_init(struct rpcrdma_conn *conn)
{
	uint8_t *head = conn->memory +
			(size_t)2 * conn->credits * conn->inline_size;

	for (unsigned i = conn->credits; i-- > 0; ) {
		struct rpcrdma_call *call = &conn->calls[i];

		call->msg.xprt = &conn->xprt;
		call->msg.head = head + CALL_HEADER +
				 (size_t)i * (CALL_HEADER + MSG_HEAD_SIZE);
		call->msg.upper = conn->upper + i * conn->upper_size;
		call->wr = call->steps;
		call->sge = call->sges;
		call->next = conn->free_calls;
		conn->free_calls = call;
	}
}

int rpcrdma_call_room(struct rpcrdma_call *call, unsigned steps, unsigned sges)
{
	struct fabric_wr *wr;

	if (call->wr != call->steps) {
		free(call->wr);
		call->wr = call->steps;
		call->sge = call->sges;
	}
	if (steps <= CALL_STEPS && sges <= CALL_SGES)
		return 0;
	wr = malloc(steps * sizeof(*wr) + sges * sizeof(*call->sge));
	if (!wr)
		return -ENOMEM;
	call->wr = wr;
	call->sge = (struct fabric_sge *)(wr + steps);
	return 0;
}

void rpcrdma_call_release(struct rpcrdma_call *call)
{
	struct rpcrdma_conn *conn = rpcrdma_call_conn(call);
	struct rpcrdma_recv *r = call->recv;
	bool idle;

	xprt_note_sent(&call->msg, XPRT_LOST);	/* if no RDMA_ERROR was sent */
	rpcrdma_call_room(call, 0, 0);
	buf_put(call->sink);
	buf_put(call->msg.body);
	call->sink = NULL;
	call->msg.body = NULL;
	call->recv = NULL;
	mutex_lock(&conn->lock);
	r->next = conn->free_recvs;
	conn->free_recvs = r;
	conn->nfree_recvs++;
	call->next = conn->free_calls;
	conn->free_calls = call;
	conn->busy_calls--;
	idle = conn->draining && conn->busy_calls == 0;
	rpcrdma_conn_want_pump(conn);
	mutex_unlock(&conn->lock);
	if (idle)
		rpcrdma_conn_close(conn, 0);
	xprt_put(&conn->xprt);
}

void rpcrdma_call_drop(struct rpcrdma_call *call)
{
	atomic_fetch_sub(&rpcrdma_call_conn(call)->unanswered, 1);
	rpcrdma_call_release(call);
}

void rpcrdma_call_failed(struct rpcrdma_call *call, int status)
{
	struct rpcrdma_conn *conn = rpcrdma_call_conn(call);

	/* An iWARP adapter may lay it on any work request. */
	if (status == -EREMOTEIO && !conn->device->dev->limits.sends_unproven)
		rpcrdma_lost_note(&conn->listener->lost,
				  (struct sockaddr *)&conn->xprt.peer,
				  call->hdr.xid, loop_now(conn->xprt.loop));
}

static void refuse(struct rpcrdma_call *call, const char *why)
{
	log_limited(LOG_LEVEL_INFO, "%s: refused a call: %s",
		    call->msg.xprt->name, why);
	rpcrdma_reply_error(call, RPCRDMA_ERR_CHUNK);
}

/* True if the xids of the call and of the header agree (section 4.5.2). */
static bool same_xid(const struct rpcrdma_call *call, const uint8_t *rpc,
		     uint32_t len)
{
	uint32_t xid;

	if (len < sizeof(xid))
		return false;
	memcpy(&xid, rpc, sizeof(xid));
	return be32toh(xid) == call->hdr.xid;
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

/* Checks the start of the call, which is here.  True: the call may go on. */
static bool check_rpc(struct rpcrdma_call *call, const uint8_t *rpc,
		      uint32_t len)
{
	if (!same_xid(call, rpc, len)) {
		stat_inc(rdma_bad_xids);
		refuse(call, "its xids differ");
		return false;
	}
	if (!chunks_eligible(call, rpc, len)) {
		stat_inc(rdma_not_eligible);
		refuse(call, "a Read chunk where there may be none");
		return false;
	}
	return true;
}

/* RDMA_MSGP: leaves out the pad before the last opaque. */
static void unpad(struct rpcrdma_call *call)
{
	struct xprt_sink *sink = call->msg.xprt->sink;
	const uint8_t *rpc = call->recv->buf + call->hdr.len;
	uint32_t len = call->recv->len - call->hdr.len;
	uint32_t at = 0, pad = 0;

	stat_inc(rdma_padded_calls);
	while (rpcrdma_msgp_find(&call->hdr, call->recv->buf, call->recv->len,
				 at, &at, &pad)) {
		if (sink->read_chunk_ok &&
		    !sink->read_chunk_ok(sink, rpc, len, at))
			continue;
		rpcrdma_layout_unpad(&call->layout, at, pad);
		return;
	}
}

void rpcrdma_call_dispatch(struct rpcrdma_call *call)
{
	struct msg *m = &call->msg;
	const uint8_t *sink = call->sink ? call->sink->data : NULL;
	const uint8_t *base = call->recv->buf + call->hdr.len;

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
	m->xprt->sink->recv(m->xprt->sink, m);
}

/* The header is decoded; @len bytes follow it. */
static void plan(struct rpcrdma_call *call, uint32_t len)
{
	struct rpcrdma_conn *conn = rpcrdma_call_conn(call);
	const uint8_t *rpc = call->recv->buf + call->hdr.len;

	if (rpcrdma_lost_take(&conn->listener->lost,
			      (struct sockaddr *)&conn->xprt.peer,
			      call->hdr.xid, loop_now(conn->xprt.loop))) {
		stat_inc(rdma_hopeless);
		refuse(call, "its chunks failed before");
		return;
	}
	/* The reply's header must fit, in any case. */
	if (rpcrdma_reply_len(&call->hdr) > conn->send_inline) {
		stat_inc(rdma_wide_lists);
		refuse(call, "its lists are too long to return");
		return;
	}
	if (rpcrdma_layout_plan(&call->hdr, len, &call->layout) < 0) {
		stat_inc(rdma_bad_chunks);
		refuse(call, "its Read chunks can't be");
		return;
	}
	call->invalidate = conn->may_invalidate &&
		rpcrdma_header_invalidate(&call->hdr, &call->handle);
	if (call->layout.pzrc && call->layout.sink_len == 0) {
		stat_inc(rdma_bad_chunks);
		refuse(call, "it is empty");
		return;
	}
	if (!call->layout.pzrc && !check_rpc(call, rpc, len))
		return;
	if (call->hdr.proc == RPCRDMA_MSGP)
		unpad(call);
	if (call->layout.sink_len > 0)
		rpcrdma_pull(call);
	else
		rpcrdma_call_dispatch(call);
}

static void start_decoded(struct rpcrdma_call *call)
{
	if (call->hdr.proc == RPCRDMA_DONE) {
		stat_inc(rdma_done_messages);
		rpcrdma_call_drop(call);
		return;
	}
	rpcrdma_conn_called(rpcrdma_call_conn(call), call->hdr.credits);
	plan(call, call->recv->len - call->hdr.len);
}

void rpcrdma_call_start(struct rpcrdma_call *call, struct rpcrdma_recv *recv)
{
	int err = rpcrdma_header_decode(recv->buf, recv->len, &call->hdr);

	call->recv = recv;
	call->invalidate = false;
	call->msg.sent = NULL;
	xprt_get(call->msg.xprt);
	/* Section 4.2.4: dropped without looking at its version or decoding it,
	 * so that two peers don't answer errors with errors for ever. */
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
		refuse(call, "its header is malformed");
		break;
	}
}
