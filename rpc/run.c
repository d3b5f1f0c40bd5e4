/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run - the steps of a call's procedure, one after the other.
 *
 * Operation: a call begins on its poller.  A step that would wait there answers
 * -EAGAIN; the call goes to a worker of the share that its program names, and
 * goes on with this step there.  A step that has to wait for a buffer gives the
 * call to the pool, which gives it to a worker, for the next step.  A step that
 * suspends its call (suspend.c) names the function that goes on in its place.
 *
 * Ownership: giving a call away is a thread's last act on it.  The next owner
 * can run it, answer it, and use its memory for another call before
 * work_submit() or pool_request() has returned.
 */
#include "rpc/call.h"

#include <errno.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/probe.h"
#include "lib/rcu.h"
#include "lib/stats.h"

/* A reply of this many bytes takes the peer longer to read than a poller spins
 * for the next call. */
#define SPIN_MAX	(32u << 10)

STAT(rpc_system_err, "calls that failed inside the server");
STAT(rpc_too_weak, "calls denied because their export wants another flavor");
STAT(rpc_inline, "calls completed on a poller");
STAT(rpc_would_block, "calls moved from a poller to a worker");
STAT(rpc_no_buffer, "calls that waited for a payload buffer");
STAT(rpc_no_buffer_long, "long calls refused for lack of a payload buffer");

/* Detaches the call from this thread.  Returns the share it goes on in. */
static struct work_class *leave_thread(struct rpc_call *call)
{
	struct work_class *class = NULL;

	if (call->prog->leave)
		class = call->prog->leave(call);
	assert(!rcu_read_ongoing());
	if (unlikely(call->timed))
		rpc_times_leave(rpc_slot_of(call));
	return class ? class : work_pool_common(call->server->work);
}

static void run_on_worker(struct work_item *item);

/* Gives the call to a worker of @class, which runs @then before the next step;
 * NULL: the next step. */
static void queue_call(struct rpc_slot *slot, struct work_class *class,
		       rpc_step_fn *then)
{
	PROBE(call_queued, slot->call.msg, class);
	slot->priv.class = class;
	slot->priv.then = then;
	slot->priv.work.run = run_on_worker;
	slot->priv.work.client = work_client(rpc_call_peer(&slot->call));
	work_submit(class, &slot->priv.work);
}

void rpc_call_wait(struct rpc_call *call, const char *why, rpc_step_fn *then)
{
	struct rpc_call_priv *priv = &rpc_slot_of(call)->priv;

	PROBE(call_suspended, call->msg, why);
	priv->class = leave_thread(call);
	priv->then = then;
	priv->since = clock_ns();
	priv->wait = RPC_WAITS;
}

void rpc_call_go_on(struct rpc_slot *slot, const char *why, enum rpc_wait wait)
{
	PROBE(call_resumed, slot->call.msg);
	if (unlikely(slot->priv.tapped))
		rpc_times_go_on(slot, why);
	slot->priv.wait = wait;
	queue_call(slot, slot->priv.class, slot->priv.then);
}

int rpc_need_worker(struct rpc_call *call)
{
	return call->may_wait ? 0 : -EAGAIN;
}

int rpc_call_move(struct rpc_call *call, rpc_step_fn *then)
{
	struct rpc_slot *slot = rpc_slot_of(call);
	struct work_class *class = leave_thread(call);

	if (class == slot->priv.class)
		return 0;
	queue_call(slot, class, then);
	return RPC_PENDING;
}

/* Called by the thread that gave a buffer back. */
static void buffer_ready(struct pool_request *r, struct buf *b)
{
	struct rpc_slot *slot = container_of(r, struct rpc_slot, priv.room);

	PROBE(call_resumed, slot->call.msg);
	if (unlikely(slot->priv.tapped))
		rpc_times_go_on(slot, "payload buffer");
	slot->priv.body = b;
	queue_call(slot, slot->priv.class, NULL);
}

int rpc_body_get(struct rpc_call *call, size_t size)
{
	struct rpc_slot *slot = rpc_slot_of(call);
	struct rpc_call_priv *priv = &slot->priv;
	struct pool *pool = call->server->pool;
	struct buf *b;

	assert(!priv->body);
	/* Procedures without RPC_PROC_LONG have short replies. */
	if (unlikely(call->msg->xprt->datagram))
		return -EMSGSIZE;
	priv->body = pool_alloc_for(pool, size, call->msg->xprt->flow);
	if (likely(priv->body))
		return 0;
	/*
	 * Calls that hold a buffer each while they wait for another could
	 * wait for ever.  A procedure whose results have a body has short
	 * arguments, which transports don't keep in the pool, unless
	 * something else is behind them.
	 */
	if (call->msg->in_pool) {
		stat_inc(rpc_no_buffer_long);
		return -ETIMEDOUT;
	}
	stat_inc(rpc_no_buffer);
	PROBE(call_suspended, call->msg, "payload buffer");
	priv->class = leave_thread(call);
	priv->room.ready = buffer_ready;
	priv->room.flow = call->msg->xprt->flow;
	b = pool_request(pool, size, &priv->room);
	if (b)				/* it came back meanwhile */
		buffer_ready(&priv->room, b);
	return RPC_PENDING;
}

void rpc_call_took(struct rpc_call *call, uint64_t ns)
{
	rpc_slot_of(call)->priv.times.part[RPC_PART_BACKEND] += ns;
}

uint64_t rpc_call_started(const struct rpc_call *call)
{
	const struct rpc_slot *slot = (const struct rpc_slot *)call;

	_Static_assert(offsetof(struct rpc_slot, call) == 0, "its first");
	return slot->priv.started;
}

struct buf *rpc_body(struct rpc_call *call)
{
	return rpc_slot_of(call)->priv.body;
}

static void run_finish(struct rpc_slot *slot, int err)
{
	struct rpc_call *call = &slot->call;
	bool weak = err == RPC_TOO_WEAK;

	if (call->proc->end)
		err = call->proc->end(call, weak ? -EACCES : err);
	if (unlikely(weak)) {
		stat_inc(rpc_too_weak);
		rpc_reply_denied(slot, RPC_AUTH_TOOWEAK);
	} else if (likely(err == 0)) {
		rpc_reply_results(slot);
	} else if (err == -ECANCELED) {
		rpc_reply_none(slot);
	} else {
		stat_inc(rpc_system_err);
		xprt_log_limited(call->msg->xprt, LOG_LEVEL_WARN,
				 "%s %s failed", call->prog->name,
				 call->proc->name);
		rpc_reply_status(slot, RPC_SYSTEM_ERR);
	}
}

void rpc_call_run(struct rpc_slot *slot, rpc_step_fn *then)
{
	struct rpc_call *call = &slot->call;
	int n;

	if (unlikely(slot->priv.tapped))
		rpc_times_run(slot);
	n = then ? then(call) : 0;
	while (n == 0 && *call->step)
		n = (*call->step++)(call);
	if (n == RPC_PENDING)
		return;
	if (n == -EAGAIN && !call->may_wait) {
		stat_inc(rpc_would_block);
		queue_call(slot, leave_thread(call),
			       rpc_this_step(call));
		return;
	}
	if (!slot->priv.class) {
		stat_inc(rpc_inline);
		if (slot->priv.body_len <= SPIN_MAX)
			loop_spin_next();
	}
	run_finish(slot, MIN(n, 0));
}

static void run_on_worker(struct work_item *item)
{
	struct rpc_slot *slot = container_of(item, struct rpc_slot, priv.work);

	PROBE(call_started, slot->call.msg);
	slot->call.may_wait = true;
	slot->priv.wait = RPC_WAIT_NONE;
	rpc_call_run(slot, slot->priv.then);
}

void rpc_call_send_back(struct rpc_slot *slot, bool answer)
{
	slot->call.may_wait = false;
	if (answer && slot->call.prog->sends_back) {
		run_finish(slot, -ETIMEDOUT);
		return;
	}
	if (slot->call.proc->end)
		slot->call.proc->end(&slot->call, -ECANCELED);
	rpc_reply_none(slot);
}
