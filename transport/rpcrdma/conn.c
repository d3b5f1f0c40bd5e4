/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * conn - a connection's state, its closing, and its proof of replies.
 *
 * Operation: accept.c makes a connection and frees it, recv.c takes its
 * messages, reply.c sends the answers; the listener sweeps it.  The functions
 * here are below them all; any thread can call them.
 *
 * Ownership: counted.  The fabric's side holds one reference until closed();
 * each call in use and the pump's task hold one each.  The last put, on any
 * thread, sends the connection to its loop to be freed.
 *
 * Errors: every error starts an asynchronous close, and does nothing else: the
 * fabric flushes all that is posted, each completion gives back its call, and
 * closed() comes after the last one.
 */
#include "transport/rpcrdma/conn.h"

#include <errno.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "transport/rpcrdma/listen.h"
#include "transport/rpcrdma/proto.h"

STAT(rdma_idle_closed, "idle connections closed");
STAT(rdma_stalled, "connections closed because nothing completed");

bool rpcrdma_conn_advance(struct rpcrdma_conn *conn, enum rpcrdma_state from,
			  enum rpcrdma_state to)
{
	assert(from < to);
	return atomic_compare_exchange_strong(&conn->state, &from, to);
}

void rpcrdma_conn_close(struct rpcrdma_conn *conn, int err)
{
	enum rpcrdma_state was = atomic_load(&conn->state);

	do
		if (was >= CONN_CLOSING)
			return;
	while (!atomic_compare_exchange_weak(&conn->state, &was, CONN_CLOSING));
	if (was == CONN_ACCEPTING)
		return;		/* rpcrdma_accept() closes or refuses it */
	/* A flush follows a cause that others know. */
	if (err < 0 && err != -ECANCELED)
		xprt_life_why(&conn->xprt, xprt_life_cause(err));
	fabric_close(conn->fc);
}

void rpcrdma_conn_drain(struct rpcrdma_conn *conn)
{
	if (rpcrdma_slots_drain(&conn->slots))
		rpcrdma_conn_close(conn, 0);
}

static bool stalled(struct rpcrdma_conn *conn, uint64_t now)
{
	const struct rpcrdma_options *o = &conn->listener->options;
	uint64_t done;
	bool busy = rpcrdma_sq_busy(&conn->sq, &done);
	unsigned held = MAX(atomic_load(&conn->slots.unanswered), 1u);

	return watchdog_stalled(&conn->watch.stalled, now, done, busy,
				o->stall_ms) ||
	       watchdog_slow(&conn->watch.slow, now, done,
			     busy && pool_is_short(conn->xprt.pool) ? held : 0,
			     o->short_ms);
}

void rpcrdma_conn_sweep(struct rpcrdma_conn *conn)
{
	uint64_t now = loop_now(conn->listener->env.loops[0]);

	if (!rpcrdma_conn_is_live(conn))
		return;
	if (stalled(conn, now)) {
		stat_inc(rdma_stalled);
		xprt_life_why(&conn->xprt, "nothing completes");
		rpcrdma_conn_close(conn, -ETIMEDOUT);
	} else if (atomic_load(&conn->slots.busy) > 0) {
		atomic_store(&conn->watch.active, now);
	} else if (loop_passed(now, atomic_load(&conn->watch.active),
			       conn->listener->options.idle_ms)) {
		stat_inc(rdma_idle_closed);
		xprt_life_why(&conn->xprt, "no call came for long");
		rpcrdma_conn_close(conn, 0);
	}
}

void rpcrdma_conn_free_slot(struct rpcrdma_conn *conn,
			    struct rpcrdma_slot *slot)
{
	switch (rpcrdma_slots_put(&conn->slots, slot)) {
	case SLOTS_PUMP:
		if (atomic_exchange(&conn->pump_due, true))
			break;
		xprt_get(&conn->xprt);
		loop_post(conn->xprt.loop, &conn->pump_task, conn->pump);
		break;
	case SLOTS_IDLE:
		rpcrdma_conn_close(conn, 0);
		break;
	case SLOTS_REST:
		break;
	}
}

/* Grants fewer credits while memory is short, but never 0 (RFC 8166 section
 * 3.3.1). */
uint32_t rpcrdma_conn_grant(struct rpcrdma_conn *conn)
{
	unsigned grant = atomic_load_explicit(&conn->credits.grant,
					      memory_order_relaxed);

	if (atomic_load_explicit(&conn->nparked, memory_order_relaxed) == 0)
		return grant;
	return MAX(grant / 4, 1u);
}

/*
 * Tells whether the peer got a reply.  On InfiniBand and RoCE, and on the loop
 * fabric, a completed Send is in the peer's memory: all replies end at position
 * 1, which is always acknowledged.  iWARP in user space asks its socket.
 *
 * On an iWARP adapter a completed Send proves nothing, nor does the next
 * Receive: its message might have crossed the reply.  There the position of a
 * reply is its number in the order of sending, and credits prove it.  A
 * requester sends a call only if with it at most as many are outstanding as
 * that call requests and we grant (RFC 8166 section 3.3.1).  So when it sent
 * its nth call, which asks for r, it had taken n - min(r, credits) replies or
 * more.  They are our first ones, as a Receive takes Sends in order.
 */
static bool asks_fabric(const struct rpcrdma_conn *conn)
{
	return conn->fc->ops->look != NULL;
}

void rpcrdma_conn_called(struct rpcrdma_conn *conn, uint32_t asked)
{
	uint64_t n = ++conn->proof.calls, known;
	uint32_t out = MAX(asked, 1u);

	conn->credits.asked = asked;
	out = MIN(out, conn->slots.credits);
	/* A call that asks for more than the last one proves less. */
	known = atomic_load_explicit(&conn->proof.taken, memory_order_relaxed);
	if (n > known + out)
		atomic_store_explicit(&conn->proof.taken, n - out,
				      memory_order_relaxed);
}

uint64_t rpcrdma_conn_position(struct rpcrdma_conn *conn)
{
	if (asks_fabric(conn))
		return fabric_sent(conn->fc);
	return conn->fc->dev->limits.unacknowledged ? conn->proof.replies : 1;
}

static uint64_t acknowledged(struct rpcrdma_conn *conn)
{
	if (!conn->fc->dev->limits.unacknowledged)
		return 1;
	return atomic_load_explicit(&conn->proof.taken, memory_order_relaxed);
}

void rpcrdma_conn_look(struct xprt *x, struct xprt_view *v)
{
	struct rpcrdma_conn *conn = rpcrdma_conn_of(x);

	if (asks_fabric(conn))
		fabric_look(conn->fc, v);
	else
		v->acked = acknowledged(conn);
}
