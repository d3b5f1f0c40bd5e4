/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call - the life of a call: its room, its release, its failure.
 *
 * Ownership: recv.c takes a slot for a message, and the call in it counts the
 * connection.  One thread at a time has it, and gives it away last: to the
 * send queue with a chain, to the pool, or to the sink.  Release gives back all
 * it holds and the slot, once, whatever happened before.
 */
#include "transport/rpcrdma/call.h"

#include <errno.h>
#include <stdlib.h>

#include "transport/addr.h"
#include "transport/rpcrdma/listen.h"

void rpcrdma_call_init(struct rpcrdma_conn *conn, struct rpcrdma_store *store)
{
	uint8_t *head = store->memory +
			(size_t)store->nrecvs * conn->inline_size;

	for (unsigned i = store->nslots; i-- > 0; ) {
		struct rpcrdma_call *call = &store->calls[i];

		call->msg.xprt = &conn->xprt;
		call->msg.head = head + CALL_HEADER +
				 (size_t)i * (CALL_HEADER + MSG_HEAD_SIZE);
		call->msg.upper = store->upper + i * store->upper_size;
		call->wr = call->steps;
		call->sge = call->sges;
		call->slot.store = store;
		rpcrdma_slots_add(&conn->slots, &call->slot);
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

	xprt_note_sent(&call->msg, XPRT_LOST);	/* if no RDMA_ERROR was sent */
	rpcrdma_call_room(call, 0, 0);
	if (call->open_body)
		fabric_mr_destroy(call->open_body);
	call->open_body = NULL;
	buf_put(call->sink);
	buf_put(call->msg.body);
	call->sink = NULL;
	call->msg.body = NULL;
	rpcrdma_conn_free_slot(conn, &call->slot);
	xprt_put(&conn->xprt);
}

void rpcrdma_call_drop(struct rpcrdma_call *call)
{
	atomic_fetch_sub(&rpcrdma_call_conn(call)->slots.unanswered, 1);
	rpcrdma_call_release(call);
}

struct rpcrdma_lost_key rpcrdma_call_key(struct rpcrdma_call *call)
{
	struct xprt *x = call->msg.xprt;

	return (struct rpcrdma_lost_key){
		.peer = xprt_addr_host((struct sockaddr *)&x->peer),
		.local = xprt_addr_host((struct sockaddr *)&x->local),
		.content = call->content,
	};
}

void rpcrdma_call_failed(struct rpcrdma_call *call, int status)
{
	struct rpcrdma_conn *conn = rpcrdma_call_conn(call);
	struct rpcrdma_lost_key key;

	if (status != -EREMOTEIO || conn->fc->dev->limits.unacknowledged)
		return;
	key = rpcrdma_call_key(call);
	rpcrdma_lost_note(&conn->listener->lost, &key,
			  loop_now(conn->xprt.loop));
}
