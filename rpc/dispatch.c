/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call, from the transport to its procedure.
 *
 * Operation: on the poller the header and the arguments are decoded, the caller
 * is authorized, and the duplicate request cache is asked.  Then the steps of
 * the procedure run (run.c).
 *
 * Bytes after the arguments are ignored, as other servers do: an RDMA peer
 * might have left XDR padding there.
 */
#include "rpc/call.h"

#include <stdlib.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/probe.h"
#include "lib/stats.h"
#include "lib/thread.h"
#include "rpc/auth.h"

/* Bytes that the checksum covers of a call that only must not run at the same
 * time as its duplicate: a WRITE's place and the start of its data. */
#define ALONE_SUM	128

STAT(rpc_calls, "calls accepted");
STAT(rpc_short, "messages too short for a call header");
STAT(rpc_not_call, "messages other than calls");
STAT(rpc_version_mismatch, "calls of another RPC version");
STAT(rpc_denied, "calls whose credentials or verifier were refused");
STAT(rpc_prog_unavail, "calls to a program not served");
STAT(rpc_no_rdma, "calls over RDMA to a program not served there");
STAT(rpc_only_rdma, "calls over TCP or UDP to a program for RDMA only");
STAT(rpc_prog_mismatch, "calls to a program version not served");
STAT(rpc_long_udp, "calls over UDP denied because their replies would be much "
     "longer");
STAT(rpc_proc_unavail, "calls to a procedure that does not exist");
STAT(rpc_garbage, "calls whose arguments could not be decoded");
STAT(rpc_order_full, "calls sent back because too many of their owner "
		     "waited");
STAT(drc_hits, "duplicates answered from the cache");
STAT(drc_in_progress, "duplicates of calls in progress, which wait for them");

/* The call that this one repeats is over, and came to nothing; or its turn has
 * come. */
static void start_late(struct work_item *item)
{
	struct rpc_slot *slot = container_of(item, struct rpc_slot, priv.work);
	bool before = thread_must_not_wait;

	PROBE(call_started, slot->call.msg);
	/* It begins as on a poller, in an RCU section. */
	thread_must_not_wait = true;
	if (rpc_order_take(slot))
		rpc_call_run(slot, NULL);
	thread_must_not_wait = before;
}

/* False: the call waits for its turn, or is over. */
static bool dispatch_order(struct rpc_slot *slot)
{
	switch (rpc_order_join(slot)) {
	case RPC_TURN_HAS:
		return true;
	case RPC_TURN_NONE:
		stat_inc(rpc_order_full);
		rpc_call_send_back(slot, !slot->call.msg->xprt->datagram);
		break;
	default:
		break;
	}
	return false;
}

/* The call came too late, and its connection ends. */
static void refuse_late(struct rpc_slot *slot)
{
	struct xprt *x = slot->call.msg->xprt;

	if (!slot->priv.opened) {
		rpc_reply_reject(slot);
		return;
	}
	/* Only the poller can reject. */
	if (x->ops->end)
		x->ops->end(x);
	rpc_reply_none(slot);
}

/* Looks the call up in the cache.  False: the call is over. */
static bool dispatch_admit(struct rpc_slot *slot, const struct xdr_in *args)
{
	struct rpc_call *call = &slot->call;
	const struct msg *m = call->msg;
	struct xprt *x = m->xprt;
	struct drc_call *dc = &slot->priv.drc;
	struct drc_ask ask = { .reply = m->head };
	uint32_t xid = call->xid;

	dc->keep = call->proc->flags & RPC_PROC_CACHED;
	dc->fate = x->fate;
	dc->may_resend = x->may_resend;
	dc->key = (struct drc_key){
		.xid = xid,
		.prog = call->prog->prog,
		.vers = call->version->vers,
		.proc = call->procnum,
		.len = m->call_len,
		.flavor = call->cred.flavor,
		.uid = call->cred.uid,
		.gid = call->cred.gid,
		.sum = drc_sum(args, dc->keep ? DRC_SUM_MAX : ALONE_SUM),
	};
	drc_key_addr(&dc->key, rpc_call_peer(call), x->datagram);
	if (unlikely(x->protection != RPC_CLEAR))
		dc->key.port = x->protection * DRC_OVER_TLS;
	slot->priv.in_drc = true;
	switch (drc_lookup(call->server->drc, dc, &ask)) {
	case DRC_NEW:
		break;
	case DRC_IN_PROGRESS:
		/* The thread that runs the first call has @slot by now. */
		PROBE(duplicate, m, x, xid, "waits");
		stat_inc(drc_in_progress);
		if (ask.older)
			rpc_reply_none(rpc_slot_waited(ask.older));
		return false;
	case DRC_DROP:
		PROBE(duplicate, m, x, xid, "refused");
		slot->priv.in_drc = false;
		refuse_late(slot);
		return false;
	case DRC_REPLAY:
		PROBE(duplicate, m, x, xid, "answered");
		stat_inc(drc_hits);
		slot->priv.in_drc = false;
		call->msg->sent = ask.sent;
		rpc_reply_again(slot, ask.len);
		return false;
	}
	return true;
}

/* Returns RPC_SUCCESS, or the status to answer. */
static enum rpc_accept_stat find_proc(struct rpc_server *server,
				      struct rpc_call *call,
				      const struct rpc_header *h)
{
	const struct rpc_program *prog;
	struct rpc_proc_counts *counts;
	unsigned k = 0;

	while (k < server->nprogs && server->progs[k]->prog != h->prog)
		k++;
	if (k == server->nprogs)
		return RPC_PROG_UNAVAIL;
	call->prog = prog = server->progs[k];
	counts = server->counts[k];
	for (uint32_t i = 0; i < prog->nversions; i++) {
		const struct rpc_version *v = &prog->versions[i];

		if (v->vers == h->vers) {
			call->version = v;
			if (h->proc >= v->nproc || !v->procs[h->proc].name)
				return RPC_PROC_UNAVAIL;
			call->proc = &v->procs[h->proc];
			call->by_proc = counts + h->proc;
			return RPC_SUCCESS;
		}
		counts += v->nproc;
	}
	return RPC_PROG_MISMATCH;
}

/* The call has no row. */
static void refuse_proc(struct rpc_slot *slot, enum rpc_accept_stat stat)
{
	switch (stat) {
	case RPC_PROG_MISMATCH:
		stat_inc(rpc_prog_mismatch);
		rpc_reply_prog_mismatch(slot);
		return;
	case RPC_PROG_UNAVAIL:
		stat_inc(rpc_prog_unavail);
		break;
	default:
		stat_inc(rpc_proc_unavail);
		break;
	}
	rpc_reply_status(slot, stat);
}

/* The call came over a transport that its program is not for. */
static enum rpc_accept_stat refuse_door(struct rpc_slot *slot)
{
	if (slot->call.msg->xprt->rdma)
		stat_inc(rpc_no_rdma);
	else
		stat_inc(rpc_only_rdma);
	xprt_log_limited(slot->call.msg->xprt, LOG_LEVEL_INFO,
			 "%s is not for this transport",
			 slot->call.prog->name);
	return RPC_PROG_UNAVAIL;
}

static void deny(struct rpc_slot *slot, enum rpc_auth_stat why)
{
	stat_inc(rpc_denied);
	rpc_reply_denied(slot, why);
}

/* The header is not that of a call that can run. */
static void refuse_header(struct rpc_slot *slot, enum rpc_header_kind kind,
			  const struct rpc_header *h)
{
	switch (kind) {
	case RPC_HEADER_MISMATCH:
		stat_inc(rpc_version_mismatch);
		rpc_reply_rpc_mismatch(slot);
		return;
	case RPC_HEADER_DENIED:
		if (h->denied == RPC_AUTH_DROP)
			rpc_reply_none(slot);
		else
			deny(slot, h->denied);
		return;
	case RPC_HEADER_NOT_CALL:
		stat_inc(rpc_not_call);
		break;
	default:
		stat_inc(rpc_short);
		break;
	}
	xprt_log_limited(slot->call.msg->xprt, LOG_LEVEL_INFO,
			 "a message of %u bytes is not a call",
			 slot->call.msg->call_len);
	rpc_reply_reject(slot);
}

static void refuse_args(struct rpc_slot *slot)
{
	stat_inc(rpc_garbage);
	rpc_reply_status(slot, RPC_GARBAGE_ARGS);
}

/* Lets the guard look at its call.  Makes @x the bare arguments, in @segs.
 * False: they are not as the client made them. */
static bool take_guarded(struct rpc_call *call, struct xdr_in *x,
			 struct xdr_seg segs[MSG_MAX_SEGS])
{
	const struct rpc_guard *g = call->guard;
	int n;

	if (g->program) {
		call->prog = g->program;
		call->version = call->prog->versions;
		call->proc = call->version->procs;
		call->procnum = 0;
		call->by_proc = NULL;
	}
	if (g->unwrap) {
		/* Bytes beyond that were not kept. */
		n = call->msg->call_len > MSG_MAX_LEN ? -1 :
		    g->unwrap(call, x, segs);
		if (n < 0)
			return false;
		xdr_in_init_segs(x, segs, (uint32_t)n);
	}
	/* The cache of replies knows a call by its bare arguments: sent again,
	 * it can be protected by other bytes, and by more. */
	call->msg->call_len = (uint32_t)xdr_left(x);
	return true;
}

/* True: the procedure is not for datagrams, and the call is denied. */
static bool deny_datagram(struct rpc_slot *slot)
{
	const struct rpc_call *call = &slot->call;
	bool is_long = call->proc->flags & RPC_PROC_LONG;

	if (!is_long && (call->procnum == 0 || !call->prog->no_udp))
		return false;
	if (is_long)
		stat_inc(rpc_long_udp);
	deny(slot, RPC_AUTH_TOOWEAK);
	return true;
}

/* The row is known, @x stands before the arguments. */
static void dispatch_start(struct rpc_slot *slot, const struct rpc_header *h,
			   struct xdr_in *x)
{
	struct rpc_call *call = &slot->call;
	struct rpc_call_priv *priv = &slot->priv;
	const struct rpc_proc *proc = call->proc;
	struct xdr_in args = *x;

	if (unlikely(call->msg->xprt->datagram) && deny_datagram(slot))
		return;
	if (proc->decode && !proc->decode(x, call->args)) {
		refuse_args(slot);
		return;
	}
	PROBE(call_decoded, call->msg, call->xid, h->prog, h->vers,
	      call->procnum, proc->name);
	call->step = proc->steps;
	priv->body_len = priv->ntail = 0;
	priv->body_ddp = priv->body_piped = false;
	memset(call->res, 0, proc->res_size);
	memset(call->state, 0, proc->state_zeroed);
	priv->work.run = start_late;
	if (proc->flags & (RPC_PROC_CACHED | RPC_PROC_ALONE) &&
	    !dispatch_admit(slot, &args))
		return;
	if (proc->flags & RPC_PROC_ORDERED && !dispatch_order(slot))
		return;
	rpc_call_run(slot, NULL);
}

/* On a worker, for a long call whose guard has to look at its arguments: it
 * goes on as on a poller. */
static void open_late(struct work_item *item)
{
	struct rpc_slot *slot = container_of(item, struct rpc_slot, priv.work);
	bool before = thread_must_not_wait;
	struct xdr_seg bare[MSG_MAX_SEGS];
	struct msg *m = slot->call.msg;
	struct rpc_header h;
	struct xdr_in x;

	item->is_job = false;
	slot->priv.opened = true;
	xdr_in_init_segs(&x, m->call, m->ncall);
	rpc_header_decode(&x, &h);
	thread_must_not_wait = true;
	if (take_guarded(&slot->call, &x, bare))
		dispatch_start(slot, &h, &x);
	else
		refuse_args(slot);
	thread_must_not_wait = before;
}

/* True: a worker opens the call, or has done so. */
static bool give_to_opener(struct rpc_slot *slot)
{
	struct rpc_call *call = &slot->call;
	const struct rpc_guard *g = call->guard;
	struct work_class *class = g->unwrap_on ? g->unwrap_on(call) : NULL;

	if (!class)
		return false;
	slot->priv.work.run = open_late;
	/* Its arguments aren't known: it can't be sent back while it waits. */
	slot->priv.work.is_job = true;
	slot->priv.work.client = work_client(rpc_call_peer(call));
	work_submit(class, &slot->priv.work);
	return true;
}

static void init_call(struct rpc_server *server, struct msg *m,
		      struct rpc_slot *slot)
{
	struct rpc_call *call = &slot->call;
	struct rpc_call_priv *priv = &slot->priv;

	call->msg = m;
	call->server = server;
	memset(&call->prog, 0, offsetof(struct rpc_call, guard_state) -
	       offsetof(struct rpc_call, prog));
	priv->class = NULL;
	priv->in_drc = false;
	priv->wait = RPC_WAIT_NONE;
	priv->tapped = false;
	priv->opened = false;
	priv->limited.limit = NULL;
	priv->turn.state = RPC_TURN_NONE;
	priv->body = NULL;
	priv->pipe = NULL;
	priv->started = clock_ns();
}

void rpc_dispatch(struct xprt_sink *sink, struct msg *m)
{
	struct rpc_server *server = container_of(sink, struct rpc_server, sink);
	struct rpc_slot *slot = m->upper;
	struct xdr_seg bare[MSG_MAX_SEGS];
	const struct rpc_program *prog;
	enum rpc_header_kind kind;
	enum rpc_accept_stat stat;
	struct rpc_header h;
	struct xdr_in x;

	PROBE(call_received, m, m->xprt, m->call_len);
	stat_inc(rpc_calls);
	init_call(server, m, slot);
	xdr_in_init_segs(&x, m->call, m->ncall);
	kind = rpc_header_decode(&x, &h);
	slot->call.xid = h.xid;
	if (unlikely(atomic_load_explicit(&server->ntaps,
					  memory_order_relaxed)))
		rpc_tap_call(slot, kind == RPC_HEADER_CALL ? &h : NULL, &x);
	if (likely(kind == RPC_HEADER_CALL)) {
		h.denied = rpc_auth_verify(server->flavors, &h, &slot->call);
		if (unlikely(h.denied != RPC_AUTH_OK))
			kind = RPC_HEADER_DENIED;
	}
	if (unlikely(kind != RPC_HEADER_CALL)) {
		refuse_header(slot, kind, &h);
		return;
	}
	slot->call.procnum = h.proc;
	stat = find_proc(server, &slot->call, &h);
	prog = slot->call.prog;
	if (unlikely(prog && (m->xprt->rdma ? prog->no_rdma : prog->only_rdma)))
		stat = refuse_door(slot);
	if (unlikely(stat != RPC_SUCCESS)) {
		refuse_proc(slot, stat);
		return;
	}
	if (unlikely(slot->call.guard)) {
		if (give_to_opener(slot))
			return;
		if (!take_guarded(&slot->call, &x, bare)) {
			refuse_args(slot);
			return;
		}
	}
	dispatch_start(slot, &h, &x);
}

/*
 * Stands for the data of a chunk that was not pulled yet.  Decoders look at the
 * text of short strings only, so just its start is not zero, and the rest takes
 * no memory.
 */
uint8_t *rpc_probe_create(void)
{
	uint8_t *probe = calloc(1, MSG_MAX_TAKEN);

	if (probe)
		memset(probe, 'x', 8192);
	return probe;
}

/* True if the arguments decode with @len bytes at their end, and end there. */
static bool ends_with(struct rpc_server *server, const void *head,
		      uint32_t position, uint32_t len)
{
	const struct xdr_seg segs[2] = {
		{ head, position }, { server->probe, len + xdr_pad(len) },
	};
	struct rpc_call call;
	struct rpc_header h;
	struct xdr_in x;

	xdr_in_init_segs(&x, segs, 2);
	if (rpc_header_decode(&x, &h) != RPC_HEADER_CALL ||
	    rpc_auth_wraps(server->flavors, &h) ||
	    find_proc(server, &call, &h) != RPC_SUCCESS)
		return false;
	return call.proc->flags & RPC_PROC_DDP_ARG &&
	       call.proc->decode(&x, call.args) && xdr_left(&x) == 0;
}

/*
 * A DDP-eligible argument is the last item, so its chunk stands where the
 * arguments before it end: right behind its length.  Inline bytes after it are
 * padding, or ignored as padding is.
 */
bool rpc_read_chunk_ok(struct xprt_sink *sink, const void *head,
		       uint32_t len, uint32_t position)
{
	struct rpc_server *server = container_of(sink, struct rpc_server, sink);
	uint32_t item;

	if (position % 4 || position > len || position < 4)
		return false;
	item = xdr_word((const uint8_t *)head + position - 4);
	return item <= MSG_MAX_TAKEN - 4 &&
	       ends_with(server, head, position, item);
}
