/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call - the contexts of a transaction.
 *
 * A call is one transaction, from its message to the completion of its reply;
 * its chain has the steps that are posted for it.
 */
#pragma once

#include "lib/util.h"
#include "transport/rpcrdma/conn.h"
#include "transport/rpcrdma/lost.h"
#include "transport/rpcrdma/proto.h"

/* Steps without an allocation: for a MiB in 16 segments, a pad, the Send. */
#define CALL_STEPS	20
#define CALL_SGES	24
/* Room for a reply's header before its head; longer ones lie elsewhere. */
#define CALL_HEADER	512

/*
 * One transaction.  Owner: the connection while the call is free; else the
 * thread that carries out its present step, until the reply's Send is done or
 * the call is dropped.
 */
struct rpcrdma_call {
	struct msg	     msg;	/* msg.xprt is counted unless free */
	struct rpcrdma_slot  slot;	/* with the Receive lent to us */
	struct rpcrdma_header hdr;	/* views of slot.recv->buf */
	struct rpcrdma_layout layout;
	uint64_t	     content;	/* see lost.h; 0: refusals name no
					 * call */
	struct buf	    *sink;	/* the pulled chunks */
	struct fabric_mr    *open_sink;	/* while registered, see pull.c */
	struct fabric_mr    *open_body;	/* the same, see reply.c */
	bool		     invalidate;
	uint32_t	     handle;	/* the handle that the reply
					 * invalidates */
	struct pool_request  room;	/* for @sink, while parked */
	struct loop_task     task;
	struct cds_list_head parked;	/* on conn->parked */

	struct rpcrdma_chain chain;
	struct fabric_wr    *wr;	/* steps[], or allocated */
	struct fabric_sge   *sge;	/* sges[], or behind wr */
	struct fabric_wr     steps[CALL_STEPS];
	struct fabric_sge    sges[CALL_SGES];
};

static inline struct rpcrdma_call *rpcrdma_call_of(struct msg *m)
{
	return container_of(m, struct rpcrdma_call, msg);
}

static inline struct rpcrdma_conn *rpcrdma_call_conn(struct rpcrdma_call *call)
{
	return rpcrdma_conn_of(call->msg.xprt);
}

/* call.c */
/* Makes the calls of a store, and adds their slots. */
void rpcrdma_call_init(struct rpcrdma_conn *conn, struct rpcrdma_store *store);
/* Makes room at wr and sge; their contents are lost. 0 or -ENOMEM. */
int rpcrdma_call_room(struct rpcrdma_call *call, unsigned steps,
		      unsigned sges);
/* Gives back the call with all it holds.  Any thread. */
void rpcrdma_call_release(struct rpcrdma_call *call);
/* The same for a call without an answer. */
void rpcrdma_call_drop(struct rpcrdma_call *call);
/* The call in lost.h's terms. */
struct rpcrdma_lost_key rpcrdma_call_key(struct rpcrdma_call *call);
/* Notes that an access to the call's chunks ended with @status. -EREMOTEIO
 * comes only on the poller. */
void rpcrdma_call_failed(struct rpcrdma_call *call, int status);

/* reply.c.  Any thread. */
int rpcrdma_reply_send(struct rpcrdma_call *call);
void rpcrdma_reply_error(struct rpcrdma_call *call, enum rpcrdma_errcode err);

/* pull.c.  On the poller. */
/* Reads the chunks; the chain's done() is the caller's, and calls
 * rpcrdma_pull_end(). */
void rpcrdma_pull(struct rpcrdma_call *call);
/* True: the data is in call->sink.  Else the call was dropped. */
bool rpcrdma_pull_end(struct rpcrdma_call *call, int status);
/* Drops the calls that wait for memory; the connection is gone. */
void rpcrdma_pull_cancel(struct rpcrdma_conn *conn);

/* recv.c.  On the poller. */
/* Sets the connection's functions. */
void rpcrdma_recv_init(struct rpcrdma_conn *conn);
/* Starts the waiting messages that can start; refills. */
void rpcrdma_recv_pump(struct rpcrdma_conn *conn);
