/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replies: encoded, remembered, counted, and given to the transport.
 *
 * After xprt_reply() and the like the call's memory belongs to the next
 * call; nothing here touches it then.
 */
#include "lib/clock.h"
#include "rpc/call.h"

#include "lib/log.h"
#include "lib/probe.h"
#include "lib/stats.h"
#include "rpc/auth.h"
#include "transport/clients.h"

STAT(rpc_reply_overflow, "results that did not fit a reply's head");
STAT(rpc_replied, "replies handed over to a transport");
STAT(rpc_reply_lost, "replies lost because their connection had ended");
STAT(rpc_dropped, "calls that got no reply");
STAT(rpc_rejected, "calls and messages that cost the peer its connection");
STAT(drc_answered, "duplicates answered with the call they repeat");
STAT(drc_ran_after, "duplicates of WRITEs run after the WRITE they repeat");
STAT(drc_taken_over, "duplicates run in place of a call that got no reply");

const char *const rpc_way_names[RPC_WAYS] = {
	[RPC_WAY_TCP] = "tcp", [RPC_WAY_UDP] = "udp", [RPC_WAY_RDMA] = "rdma",
};

/* Gives back the buffers that are not sent, and counts the call for its
 * procedure, its export and its client. */
static void reply_end(struct rpc_slot *slot, bool error)
{
	struct rpc_call *call = &slot->call;
	struct rpc_call_priv *priv = &slot->priv;
	struct xprt_client *client = call->msg->xprt->client;
	struct account_event e = {
		.way = call->way, .bytes = call->bytes,
		.failed = error || call->failed,
	};
	uint64_t now;

	buf_put(priv->body);
	if (unlikely(priv->pipe))
		pipe_put(priv->pipe);
	if (unlikely(priv->limited.limit))
		rpc_limit_settle(call);
	if (unlikely(priv->turn.state != RPC_TURN_NONE))
		rpc_order_end(slot);
	if (!call->proc)
		return;
	now = clock_ns();
	e.ns = now - priv->started;
	e.bucket = histogram_bucket(e.ns);
	if (likely(call->by_proc))
		account_add(&call->by_proc->by[rpc_way_of(call->msg->xprt)], e);
	if (call->by_export)
		account_add(call->by_export, e);
	if (client) {
		account_add(&client->account, e);
		xprt_client_seen(client, now);
	}
}

/* Sends the waiting duplicates the reply of the call that they repeat. */
static void reply_too(struct drc_call *dup, const struct msg *m)
{
	uint32_t len = m->head_len + m->tail_len;
	struct drc_call *next;
	struct rpc_slot *slot;

	for (; dup; dup = next) {
		next = dup->waiting;
		slot = rpc_slot_waited(dup);
		stat_inc(drc_answered);
		slot->call.msg->sent = dup->sent;
		memcpy(slot->call.msg->head, m->head, len);
		rpc_reply_again(slot, len);
	}
}

/*
 * The cache keeps the reply of a call that it admitted: a duplicate has to get
 * the same one.  A body is not copied: such a reply is not remembered, and a
 * duplicate runs again.  (No procedure that is not idempotent has one.)
 */
static void reply_remember(struct rpc_slot *slot, bool keep)
{
	struct drc *drc = slot->call.server->drc;
	struct drc_call *call = &slot->priv.drc, *dup;
	struct msg *m = slot->call.msg;
	struct rpc_slot *heir;

	slot->priv.in_drc = false;
	if (keep && call->keep && !m->body) {
		dup = drc_done(drc, call, m->head, m->head_len + m->tail_len);
		m->sent = call->sent;
		reply_too(dup, m);
		return;
	}
	dup = drc_forget(drc, call);
	if (dup) {
		if (call->keep)
			stat_inc(drc_taken_over);
		else
			stat_inc(drc_ran_after);
		heir = container_of(dup, struct rpc_slot, priv.drc);
		rpc_order_inherit(slot, heir);
		rpc_call_start(heir);
	}
}

/* The guard was released; the transport frees the body.  Not inlined: replies
 * that are sent do not pay for its registers. */
static __attribute__((noinline)) void drop_encoded(struct rpc_slot *slot)
{
	struct msg *m = slot->call.msg;

	if (unlikely(slot->priv.tapped))
		rpc_tap_none(slot, "DROPPED");
	PROBE(call_dropped, m, m->xprt, slot->call.xid);
	xprt_note_sent(m, XPRT_LOST);
	xprt_drop(m);
	stat_inc(rpc_dropped);
}

static void hand_over(struct rpc_slot *slot)
{
	struct msg *m;
	int err;

	if (unlikely(slot->call.guard) && !rpc_auth_protect(&slot->call)) {
		drop_encoded(slot);
		return;
	}
	m = slot->call.msg;
	PROBE(reply_sent, m, m->xprt, slot->call.xid, m->head_len, m->body_len,
	      slot->call.failed);
	if (unlikely(slot->priv.tapped))
		err = rpc_tap_send(slot);
	else
		err = xprt_reply(m);
	if (err < 0)
		stat_inc(rpc_reply_lost);
	stat_inc(rpc_replied);		/* rpc_busy() counted it till here */
}

/* The reply's head was encoded by @x; it has no body. */
static void send_head(struct rpc_slot *slot, uint32_t len)
{
	struct msg *m = slot->call.msg;

	m->head_len = len;
	m->tail_len = 0;
	m->body = NULL;
	m->body_len = 0;
	m->body_ddp = false;
	hand_over(slot);
}

/* Sends a reply without results.  The cache does not keep it: the call had no
 * effect, or an unknown one. */
static void send_error(struct rpc_slot *slot, const struct xdr_out *x)
{
	slot->call.msg->body = NULL;
	slot->call.failed = true;
	if (slot->priv.in_drc)
		reply_remember(slot, false);
	reply_end(slot, true);
	send_head(slot, (uint32_t)xdr_out_len(x));
}

static void reply_start(struct rpc_slot *slot, struct xdr_out *x)
{
	xdr_out_init(x, slot->call.msg->head, MSG_HEAD_SIZE);
}

void rpc_reply_status(struct rpc_slot *slot, enum rpc_accept_stat stat)
{
	static const char *const names[] = {
		[RPC_PROG_UNAVAIL] = "PROG_UNAVAIL",
		[RPC_PROC_UNAVAIL] = "PROC_UNAVAIL",
		[RPC_GARBAGE_ARGS] = "GARBAGE_ARGS",
		[RPC_SYSTEM_ERR] = "SYSTEM_ERR",
	};
	struct xdr_out x;

	rpc_times_refused(slot, names[stat]);
	reply_start(slot, &x);
	rpc_header_accepted(&x, slot->call.xid, stat);
	send_error(slot, &x);
}

void rpc_reply_prog_mismatch(struct rpc_slot *slot)
{
	const struct rpc_program *prog = slot->call.prog;
	struct xdr_out x;

	rpc_times_refused(slot, "PROG_MISMATCH");
	reply_start(slot, &x);
	rpc_header_prog_mismatch(&x, slot->call.xid, prog->versions[0].vers,
				 prog->versions[prog->nversions - 1].vers);
	send_error(slot, &x);
}

void rpc_reply_rpc_mismatch(struct rpc_slot *slot)
{
	struct xdr_out x;

	rpc_times_refused(slot, "RPC_MISMATCH");
	reply_start(slot, &x);
	rpc_header_rpc_mismatch(&x, slot->call.xid);
	send_error(slot, &x);
}

void rpc_reply_denied(struct rpc_slot *slot, enum rpc_auth_stat why)
{
	struct xdr_out x;

	rpc_times_refused(slot, "AUTH_ERROR");
	reply_start(slot, &x);
	rpc_header_denied(&x, slot->call.xid, why);
	send_error(slot, &x);
}

void rpc_reply_again(struct rpc_slot *slot, uint32_t len)
{
	rpc_times_refused(slot, "DUPLICATE");
	slot->call.msg->body = NULL;
	reply_end(slot, false);
	send_head(slot, len);
}

void rpc_reply_none(struct rpc_slot *slot)
{
	struct msg *m = slot->call.msg;

	m->body = NULL;
	if (slot->priv.in_drc)
		reply_remember(slot, false);
	reply_end(slot, true);
	rpc_auth_release(&slot->call);
	if (unlikely(slot->priv.tapped))
		rpc_tap_none(slot, "DROPPED");
	PROBE(call_dropped, m, m->xprt, slot->call.xid);
	xprt_drop(m);
	stat_inc(rpc_dropped);
}

void rpc_reply_reject(struct rpc_slot *slot)
{
	struct msg *m = slot->call.msg;

	m->body = NULL;
	reply_end(slot, true);
	rpc_auth_release(&slot->call);
	if (unlikely(slot->priv.tapped))
		rpc_tap_none(slot, "REJECTED");
	PROBE(call_rejected, m, m->xprt, m->call_len);
	xprt_reject(m);
	stat_inc(rpc_rejected);
}

/* Attaches the body and puts the tail right behind the head. */
static void attach_body(struct rpc_slot *slot, uint32_t pad)
{
	struct rpc_call_priv *priv = &slot->priv;
	struct msg *m = slot->call.msg;
	struct xdr_out x;

	m->tail_len = 0;
	if (pad + priv->ntail > 0) {
		xdr_out_init(&x, m->head + m->head_len,
			     MSG_HEAD_SIZE - m->head_len);
		memset(xdr_reserve(&x, pad), 0, pad);
		for (uint32_t i = 0; i < priv->ntail; i++)
			xdr_put_u32(&x, priv->tail[i]);
		m->tail_len = (uint32_t)xdr_out_len(&x);
	}
	m->body = NULL;
	m->body_len = priv->body_len;
	m->body_ddp = priv->body_ddp && priv->body_len;
	m->pipe = NULL;
	if (priv->body_piped) {
		m->pipe = priv->pipe;
		priv->pipe = NULL;
	} else if (priv->body_len) {
		m->body = priv->body;
		priv->body = NULL;
	}
}

void rpc_reply_results(struct rpc_slot *slot)
{
	struct rpc_call *call = &slot->call;
	struct rpc_call_priv *priv = &slot->priv;
	uint32_t pad = priv->body_ddp ? xdr_pad(priv->body_len) : 0;
	struct xdr_out x;

	xdr_out_init(&x, call->msg->head,
		     MSG_HEAD_SIZE - pad - 4 * priv->ntail);
	rpc_header_accepted(&x, call->xid, RPC_SUCCESS);
	if (call->proc->encode)
		call->proc->encode(&x, call->res);
	if (unlikely(x.bad)) {
		stat_inc(rpc_reply_overflow);
		xprt_log_limited(call->msg->xprt, LOG_LEVEL_ERR,
				 "results of %s %s do not fit",
				 call->prog->name, call->proc->name);
		rpc_reply_status(slot, RPC_SYSTEM_ERR);
		return;
	}
	call->msg->head_len = (uint32_t)xdr_out_len(&x);
	attach_body(slot, pad);
	if (slot->priv.in_drc)
		reply_remember(slot, true);
	reply_end(slot, false);
	hand_over(slot);
}

struct pipe *rpc_body_pipe(struct rpc_call *call)
{
	struct rpc_call_priv *priv = &rpc_slot_of(call)->priv;

	if (!call->msg->xprt->takes_pipes || (call->guard && call->guard->wrap))
		return NULL;
	/* A capture sees no bytes that stay in the kernel. */
	if (unlikely(priv->tapped) && priv->taps[RPC_TAP_CAPTURE])
		return NULL;
	if (!priv->pipe)
		priv->pipe = pipe_get(call->server->pipes);
	if (priv->pipe)
		priv->pipe->left = 1;	/* the message can be freed now */
	return priv->pipe;
}

void rpc_body_drop_pipe(struct rpc_call *call)
{
	struct rpc_call_priv *priv = &rpc_slot_of(call)->priv;

	priv->pipe->left = 0;
	pipe_put(priv->pipe);
	priv->pipe = NULL;
}

void rpc_body_set_pipe(struct rpc_call *call, uint32_t len)
{
	struct rpc_call_priv *priv = &rpc_slot_of(call)->priv;

	assert(priv->pipe && len > 0 &&
	       call->proc->flags & RPC_PROC_DDP_RES);
	priv->pipe->left = len;
	priv->body_piped = true;
	priv->body_len = len;
	priv->body_ddp = true;
	priv->ntail = 0;
}

void rpc_body_set(struct rpc_call *call, uint32_t len, const uint32_t *tail,
		  unsigned ntail)
{
	struct rpc_call_priv *priv = &rpc_slot_of(call)->priv;
	bool ddp = call->proc->flags & RPC_PROC_DDP_RES;

	assert(ntail <= RPC_MAX_TAIL);
	assert(!len || (priv->body && len <= priv->body->size));
	assert(ddp || len % 4 == 0);
	priv->body_len = len;
	priv->body_ddp = ddp;
	priv->ntail = ntail;
	for (unsigned i = 0; i < ntail; i++)
		priv->tail[i] = tail[i];
}
