/* SPDX-License-Identifier: BSD-2-Clause */
/* credits - a connection's grant as its use and memory change. */
#pragma once

#include "transport/rpcrdma/conn.h"

/* Begins with the lowest grant, for which the first store is open.  The bounds
 * are set. */
void rpcrdma_credits_init(struct rpcrdma_conn *conn);
/* Frees all stores. */
void rpcrdma_credits_fini(struct rpcrdma_conn *conn);
/* Decides about the grant.  On the poller. */
void rpcrdma_credits_decide(struct rpcrdma_conn *conn);
/* Frees the stores whose last call and Receive came back.  On the poller. */
void rpcrdma_credits_free_gone(struct rpcrdma_conn *conn);

/* Counts a call that just came.  On the poller. */
static inline void rpcrdma_credits_used(struct rpcrdma_conn *conn)
{
	struct rpcrdma_credits *c = &conn->credits;
	unsigned n = atomic_load_explicit(&conn->slots.unanswered,
					  memory_order_relaxed);
	/* Those answered count as well until their replies are sent. */
	unsigned busy = atomic_load_explicit(&conn->slots.busy,
					     memory_order_relaxed);

	n = MAX(n, busy);
	c->peak = MAX(c->peak, n);
	if (unlikely(n >= c->alarm || ++c->calls >= c->period))
		rpcrdma_credits_decide(conn);
}
