/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * suspend - calls that a step gave away, to be completed by another thread.
 *
 * Operation: a step suspends its call before it gives it to its new holder, say
 * a library that completes an operation later.  The holder resumes it, and a
 * worker of the call's share runs the function that the step named for that,
 * and then the next steps.  All suspended calls are in one list, whose length
 * is bounded.  Calls above a limit (limit.c) and calls that wait for their turn
 * (order.c) are in queues there, and are asked for: the operator sees all.
 *
 * A call is cancelled, where its holder can, when its connection is gone, or
 * when it was suspended for long and holds resources that other calls need.
 *
 * Ownership: a call is in the list from rpc_call_suspend() until it is resumed
 * or cancelled.  The thread that takes it out of the list owns it.
 */
#include "rpc/call.h"

#include "lib/clock.h"
#include "lib/probe.h"
#include "lib/stats.h"
#include "lib/thread.h"

STAT(rpc_suspended, "calls suspended until another thread resumed them");
STAT(rpc_suspend_full, "calls not suspended because too many were suspended");
STAT(rpc_cancelled, "suspended calls cancelled");

void rpc_suspended_init(struct rpc_suspended *s)
{
	pthread_mutex_init(&s->lock, NULL);
	CDS_INIT_LIST_HEAD(&s->calls);
	s->n = 0;
}

void rpc_suspended_fini(struct rpc_suspended *s)
{
	assert(s->n == 0);
	pthread_mutex_destroy(&s->lock);
}

bool rpc_call_suspend(struct rpc_call *call, const char *why,
		      rpc_cancel_fn *cancel, rpc_step_fn *then)
{
	struct rpc_call_priv *priv = &rpc_slot_of(call)->priv;
	struct rpc_suspended *s = &call->server->suspended;
	bool full;

	mutex_lock(&s->lock);
	full = s->n == RPC_SUSPENDED_MAX;
	s->n += !full;
	mutex_unlock(&s->lock);
	if (full) {
		stat_inc(rpc_suspend_full);
		return false;
	}
	stat_inc(rpc_suspended);
	rpc_call_wait(call, why, then);
	priv->why = why;
	priv->cancel = cancel;
	mutex_lock(&s->lock);
	cds_list_add_tail(&priv->suspended, &s->calls);
	mutex_unlock(&s->lock);
	return true;
}

/* With the lock held. */
static void suspended_unlist(struct rpc_suspended *s,
			     struct rpc_call_priv *priv)
{
	cds_list_del(&priv->suspended);
	s->n--;
}

void rpc_call_resume(struct rpc_call *call)
{
	struct rpc_suspended *s = &call->server->suspended;
	struct rpc_slot *slot = rpc_slot_of(call);

	mutex_lock(&s->lock);
	suspended_unlist(s, &slot->priv);
	mutex_unlock(&s->lock);
	rpc_call_go_on(slot, slot->priv.why, RPC_WAIT_OVER);
}

static bool is_gone(const struct xprt *x)
{
	struct xprt_view v = { .end = XPRT_ALIVE };

	if (x->fate)
		xprt_fate_known(x->fate, &v);
	return v.end != XPRT_ALIVE;
}

bool rpc_call_obstructs(const struct rpc_slot *slot, bool is_short)
{
	const struct msg *m = slot->call.msg;
	struct xprt *x = m->xprt;
	bool keeps = slot->call.proc->flags & RPC_PROC_GIVES_BACK;

	if ((x->datagram && !keeps) ||
	    (is_short && (m->in_pool || slot->priv.body)))
		return true;
	/* Without an answer its client would wait for ever. */
	return slot->call.prog->sends_back && x->ops->is_full && !is_gone(x) &&
	       x->ops->is_full(x);
}

/* With the lock held: true if the call waits behind a hung one, and others need
 * its memory or place. */
static bool hangs_in_the_way(struct rpc_slot *slot, bool is_short)
{
	struct rpc_call_priv *priv = &slot->priv;
	bool hung = priv->wait == RPC_WAITS_LONG &&
		    rpc_call_obstructs(slot, is_short);

	priv->wait = RPC_WAITS_LONG;
	return hung;
}

/* The same; true also if its client is gone. */
static bool is_in_the_way(struct rpc_slot *slot, bool is_short)
{
	return hangs_in_the_way(slot, is_short) ||
	       is_gone(slot->call.msg->xprt);
}

static void cancel_call(struct rpc_slot *slot)
{
	const struct xprt *x = slot->call.msg->xprt;

	/* Without an answer a duplicate that came on another connection runs in
	 * its place. */
	stat_inc(rpc_cancelled);
	rpc_call_send_back(slot, !x->datagram && !is_gone(x));
}

/* Calls that were taken back. */
struct taken {
	struct cds_list_head calls;
	bool is_short;
};

static bool take_turn_back(struct rpc_slot *slot, const char *why, void *arg)
{
	struct taken *t = arg;

	/* A call whose connection has ended can be the UNLOCK of the first
	 * one's LOCK, and its client might not live to send it again. */
	if (!hangs_in_the_way(slot, t->is_short))
		return false;
	cds_list_add_tail(&slot->priv.suspended, &t->calls);
	return true;
}

static bool take_limited_back(struct rpc_slot *slot, const char *why, void *arg)
{
	struct taken *t = arg;

	if (!is_in_the_way(slot, t->is_short))
		return false;
	cds_list_add_tail(&slot->priv.suspended, &t->calls);
	return true;
}

void rpc_suspended_relieve(struct rpc_server *server, bool is_short)
{
	struct rpc_suspended *s = &server->suspended;
	struct rpc_call_priv *priv, *next;
	struct taken taken = { .is_short = is_short };

	CDS_INIT_LIST_HEAD(&taken.calls);
	rpc_order_walk(&server->order, take_turn_back, &taken);
	rpc_limits_walk(&server->limits, take_limited_back, &taken);
	mutex_lock(&s->lock);
	cds_list_for_each_entry_safe(priv, next, &s->calls, suspended) {
		struct rpc_slot *slot = container_of(priv, struct rpc_slot,
						     priv);

		if (is_in_the_way(slot, is_short) && priv->cancel &&
		    priv->cancel(&slot->call)) {
			suspended_unlist(s, priv);
			cds_list_add_tail(&priv->suspended, &taken.calls);
		}
	}
	mutex_unlock(&s->lock);
	cds_list_for_each_entry_safe(priv, next, &taken.calls, suspended)
		cancel_call(container_of(priv, struct rpc_slot, priv));
}

/* A walk through the calls that wait. */
struct walk {
	rpc_suspended_fn *fn;
	void *arg;
	uint64_t now;
};

static bool show_waiting(struct rpc_slot *slot, const char *why, void *arg)
{
	const struct walk *w = arg;

	w->fn(&slot->call, why, w->now - MIN(w->now, slot->priv.since),
	      w->arg);
	return false;
}

void rpc_server_walk_suspended(struct rpc_server *server,
			       rpc_suspended_fn *fn, void *arg)
{
	struct walk w = { .fn = fn, .arg = arg, .now = clock_ns() };
	struct rpc_suspended *s = &server->suspended;
	struct rpc_call_priv *priv;

	mutex_lock(&s->lock);
	cds_list_for_each_entry(priv, &s->calls, suspended)
		show_waiting(container_of(priv, struct rpc_slot, priv),
			     priv->why, &w);
	mutex_unlock(&s->lock);
	rpc_order_walk(&server->order, show_waiting, &w);
	rpc_limits_walk(&server->limits, show_waiting, &w);
}
