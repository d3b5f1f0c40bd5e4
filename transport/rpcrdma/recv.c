/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * recv - Receives: posting, taking their messages, and reposting.
 *
 * Operation: all of them are posted before the connection is accepted.  A
 * message waits here until the connection is established and a call is free.
 * Receives go back in batches, or at once when the low-water mark is reached
 * (conn.h says why that is early enough).
 */
#include "transport/rpcrdma/call.h"

#include <errno.h>

#include "lib/log.h"
#include "lib/stats.h"

STAT(rdma_overruns, "calls beyond the credits of their connection");
STAT(rdma_early_calls, "messages that came before their connection was up");
STAT(rdma_drain_drops, "messages not taken because the listener stops");

static void append_waiting(struct rpcrdma_conn *conn, struct rpcrdma_recv *r)
{
	r->next = NULL;
	*conn->waiting_tail = r;
	conn->waiting_tail = &r->next;
}

/*
 * A peer with more calls in progress than it was granted (RFC 8166 section
 * 3.3.1) loses its connection.
 */
static bool within_credits(struct rpcrdma_conn *conn)
{
	if (atomic_fetch_add(&conn->unanswered, 1) < conn->credits)
		return true;
	stat_inc(rdma_overruns);
	log_limited(LOG_LEVEL_WARN, "%s: more calls than its %u credits",
		    conn->xprt.name, conn->credits);
	rpcrdma_conn_close(conn, -EPROTO);
	return false;
}

static void recv_done(struct fabric_op *op, int status, uint32_t len)
{
	struct rpcrdma_recv *r = container_of(op, struct rpcrdma_recv, op);
	struct rpcrdma_conn *conn = r->conn;

	if (status < 0) {
		rpcrdma_conn_close(conn, status);
		return;
	}
	conn->posted--;
	r->len = len;
	atomic_store_explicit(&conn->active, loop_now(conn->xprt.loop),
			      memory_order_relaxed);
	append_waiting(conn, r);
	if (within_credits(conn))
		rpcrdma_recv_pump(conn);
}

void rpcrdma_recv_init(struct rpcrdma_conn *conn)
{
	conn->waiting_tail = &conn->waiting;
	for (unsigned i = 2 * conn->credits; i-- > 0; ) {
		struct rpcrdma_recv *r = &conn->recvs[i];

		r->op.done = recv_done;
		r->conn = conn;
		r->buf = conn->memory + (size_t)i * conn->inline_size;
		r->wr.op = &r->op;
		r->wr.sge = (struct fabric_sge){ .addr = r->buf,
						 .len = conn->inline_size,
						 .lkey = conn->mr->lkey };
		r->next = conn->free_recvs;
		conn->free_recvs = r;
		conn->nfree_recvs++;
	}
}

enum { REFILL_BATCH = 32 };

/* With the lock.  NULL if few are free and enough are posted. */
static struct rpcrdma_recv *take_free(struct rpcrdma_conn *conn, bool all,
				      unsigned *n)
{
	struct rpcrdma_recv *first = conn->free_recvs;

	if (!all && conn->nfree_recvs < REFILL_BATCH &&
	    conn->posted >= conn->credits)
		return NULL;
	*n = conn->nfree_recvs;
	conn->free_recvs = NULL;
	conn->nfree_recvs = 0;
	return first;
}

int rpcrdma_recv_refill(struct rpcrdma_conn *conn, bool all)
{
	struct rpcrdma_recv *first;
	unsigned n = 0;

	mutex_lock(&conn->lock);
	first = conn->state < CONN_CLOSING ? take_free(conn, all, &n) : NULL;
	mutex_unlock(&conn->lock);
	if (!first)
		return 0;
	for (struct rpcrdma_recv *r = first; r; r = r->next)
		r->wr.next = r->next ? &r->next->wr : NULL;
	conn->posted += n;
	return fabric_post_recv(conn->fc, &first->wr);
}

/* Drops a message. */
static void give_back(struct rpcrdma_conn *conn, struct rpcrdma_recv *r)
{
	stat_inc(rdma_drain_drops);
	atomic_fetch_sub(&conn->unanswered, 1);
	mutex_lock(&conn->lock);
	r->next = conn->free_recvs;
	conn->free_recvs = r;
	conn->nfree_recvs++;
	mutex_unlock(&conn->lock);
}

/* Returns a free call, if one may start; NULL and *@drain: drop the message
 * instead. */
static struct rpcrdma_call *take_call(struct rpcrdma_conn *conn, bool *drain)
{
	struct rpcrdma_call *call = NULL;

	mutex_lock(&conn->lock);
	*drain = conn->draining && conn->state == CONN_LIVE;
	if (conn->state == CONN_LIVE && !*drain && conn->free_calls) {
		call = conn->free_calls;
		conn->free_calls = call->next;
		conn->busy_calls++;
	}
	if (conn->state == CONN_ACCEPTING)
		stat_inc(rdma_early_calls);
	mutex_unlock(&conn->lock);
	return call;
}

void rpcrdma_recv_pump(struct rpcrdma_conn *conn)
{
	struct rpcrdma_call *call;
	struct rpcrdma_recv *r;
	bool drain;

	while ((r = conn->waiting)) {
		call = take_call(conn, &drain);
		if (!call && !drain)
			break;
		conn->waiting = r->next;
		if (!conn->waiting)
			conn->waiting_tail = &conn->waiting;
		if (call)
			rpcrdma_call_start(call, r);
		else
			give_back(conn, r);
	}
	if (rpcrdma_recv_refill(conn, false) < 0)
		rpcrdma_conn_close(conn, -ENOTCONN);
}
