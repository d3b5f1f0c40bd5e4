/* SPDX-License-Identifier: BSD-2-Clause */
/* tap - see tap.h. */
#include "rpc/tap.h"

#include "lib/clock.h"
#include "lib/rcu.h"
#include "rpc/call.h"

void rpc_server_tap(struct rpc_server *server, enum rpc_tap_place place,
		    struct rpc_tap *tap)
{
	if (!tap) {
		atomic_fetch_sub(&server->ntaps, 1);
		atomic_store(&server->tap[place], NULL);
		rcu_wait();
		return;
	}
	/* 0 stands for no tap.  A tap ignores calls that began before it was
	 * installed. */
	do
		tap->number = atomic_fetch_add(&server->taps, 1);
	while (tap->number == 0);
	/* Pairs with the load of borrow_tap(). */
	atomic_store_explicit(&server->tap[place], tap, memory_order_release);
	atomic_fetch_add(&server->ntaps, 1);
}

/* In the caller's RCU section. */
static struct rpc_tap *borrow_tap(struct rpc_server *server,
				  enum rpc_tap_place place)
{
	return atomic_load_explicit(&server->tap[place], memory_order_acquire);
}

/* The same if it took the call; else NULL. */
static struct rpc_tap *tap_of(struct rpc_server *server,
			      const uint32_t taken[RPC_TAPS],
			      enum rpc_tap_place place)
{
	struct rpc_tap *tap = borrow_tap(server, place);

	return tap && tap->number == taken[place] ? tap : NULL;
}

void rpc_tap_call(struct rpc_slot *slot, const struct rpc_header *h,
		  const struct xdr_in *args)
{
	struct rpc_call_priv *priv = &slot->priv;

	priv->times = (struct rpc_times){ .ran = 0 };
	priv->wire_len = slot->call.msg->call_len;
	rcu_enter();
	for (unsigned i = 0; i < RPC_TAPS; i++) {
		struct rpc_tap *tap = borrow_tap(slot->call.server, i);
		bool taken = tap && tap->call(tap, slot->call.msg, h, args);

		priv->taps[i] = taken ? tap->number : 0;
		priv->tapped |= taken;
	}
	rcu_exit();
	slot->call.timed = priv->tapped;
}

/* ---- times */

void rpc_times_run(struct rpc_slot *slot)
{
	struct rpc_times *t = &slot->priv.times;
	uint64_t now = clock_ns();

	if (!t->ran)
		t->part[RPC_PART_DECODE] = now - slot->priv.started;
	else if (t->left)
		t->part[RPC_PART_WORKER] += now - t->left;
	t->ran = true;
	t->left = 0;
}

void rpc_times_leave(struct rpc_slot *slot)
{
	slot->priv.times.left = clock_ns();
}

void rpc_times_go_on(struct rpc_slot *slot, const char *why)
{
	struct rpc_times *t = &slot->priv.times;
	uint64_t now = clock_ns();

	t->part[RPC_PART_WAIT] += now - t->left;
	t->left = now;
	t->why = why;
}

/* ---- ends */

static const char *status_of(const struct rpc_slot *slot)
{
	const struct rpc_call *call = &slot->call;

	if (slot->priv.times.status)
		return slot->priv.times.status;
	if (call->prog && call->prog->status && call->procnum != 0)
		return call->prog->status(call);
	return call->failed ? "ERROR" : "OK";
}

static void note_end(const struct rpc_slot *slot, struct rpc_end *e)
{
	const struct rpc_call *call = &slot->call;
	const struct xprt *x = call->msg->xprt;

	*e = (struct rpc_end){
		.prog = call->prog, .proc = call->proc,
		.status = status_of(slot), .by_export = call->by_export,
		.host = xprt_addr_host((const struct sockaddr *)&x->peer),
		.port = xprt_addr_port(&x->peer), .via = x->via,
		.xid = call->xid, .call_len = slot->priv.wire_len,
		.why = slot->priv.times.why,
	};
	memcpy(e->part, slot->priv.times.part, sizeof(e->part));
}

static void tell_end(struct rpc_server *server, const uint32_t taken[RPC_TAPS],
		     const struct rpc_end *e)
{
	rcu_enter();
	for (unsigned i = 0; i < RPC_TAPS; i++) {
		struct rpc_tap *tap = tap_of(server, taken, i);

		if (tap && tap->end)
			tap->end(tap, e);
	}
	rcu_exit();
}

static void show_reply(struct rpc_slot *slot)
{
	rcu_enter();
	for (unsigned i = 0; i < RPC_TAPS; i++) {
		struct rpc_tap *tap = tap_of(slot->call.server,
					     slot->priv.taps, i);

		if (tap && tap->reply)
			tap->reply(tap, slot->call.msg);
	}
	rcu_exit();
}

int rpc_tap_send(struct rpc_slot *slot)
{
	struct rpc_server *server = slot->call.server;
	struct msg *m = slot->call.msg;
	uint64_t started = slot->priv.started, before, now;
	uint32_t taken[RPC_TAPS];
	struct rpc_end e;
	int err;

	show_reply(slot);
	note_end(slot, &e);
	e.reply_len = m->head_len + m->body_len + m->tail_len;
	memcpy(taken, slot->priv.taps, sizeof(taken));
	before = clock_ns();
	err = xprt_reply(m);
	now = clock_ns();
	e.part[RPC_PART_SEND] = now - before;
	e.ns = now - started;
	if (err < 0)
		e.status = "LOST";
	tell_end(server, taken, &e);
	return err;
}

void rpc_tap_none(struct rpc_slot *slot, const char *status)
{
	struct rpc_end e;

	slot->priv.times.status = status;
	note_end(slot, &e);
	e.ns = clock_ns() - slot->priv.started;
	tell_end(slot->call.server, slot->priv.taps, &e);
}
