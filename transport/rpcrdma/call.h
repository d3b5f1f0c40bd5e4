/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call - the contexts of a transaction.
 *
 * A receive is a buffer that is posted, or that holds a message.  A call is one
 * transaction, from its message to the completion of its reply; its chain has
 * the steps that are posted for it.
 */
#ifndef GANNET_TRANSPORT_RPCRDMA_CALL_H
#define GANNET_TRANSPORT_RPCRDMA_CALL_H

#include "lib/util.h"
#include "transport/rpcrdma/conn.h"
#include "transport/rpcrdma/proto.h"

struct rpcrdma_recv {
	struct fabric_op     op;
	struct fabric_recv   wr;
	struct rpcrdma_conn *conn;	/* borrowed: contains us */
	uint8_t		    *buf;
	uint32_t	     len;	/* the message's length */
	struct rpcrdma_recv *next;	/* free, or waiting */
};

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
	struct rpcrdma_call *next;	/* free */
	struct rpcrdma_recv *recv;	/* lent to us */
	struct rpcrdma_header hdr;	/* views of recv->buf */
	struct rpcrdma_layout layout;
	struct buf	    *sink;	/* the pulled chunks */
	struct fabric_mr    *open_sink;	/* while registered, see pull.c */
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
	return call->recv->conn;
}

/* recv.c.  All on the poller. */
void rpcrdma_recv_init(struct rpcrdma_conn *conn);
/* Posts the free Receives, if enough are free or @all. */
int rpcrdma_recv_refill(struct rpcrdma_conn *conn, bool all);
/* Starts the waiting messages that can start; refills. */
void rpcrdma_recv_pump(struct rpcrdma_conn *conn);

/* call.c */
void rpcrdma_call_init(struct rpcrdma_conn *conn);
/* Takes @recv, which holds a message, and @call.  On the poller. */
void rpcrdma_call_start(struct rpcrdma_call *call, struct rpcrdma_recv *recv);
/* Makes room at wr and sge; their contents are lost. 0 or -ENOMEM. */
int rpcrdma_call_room(struct rpcrdma_call *call, unsigned steps,
		      unsigned sges);
/* Hands the call, which is whole, to the sink. */
void rpcrdma_call_dispatch(struct rpcrdma_call *call);
/* Gives back the call with all it holds.  Any thread. */
void rpcrdma_call_release(struct rpcrdma_call *call);
/* The same for a call without an answer. */
void rpcrdma_call_drop(struct rpcrdma_call *call);
/* Notes that an access to the call's chunks ended with @status. -EREMOTEIO
 * comes only on the poller. */
void rpcrdma_call_failed(struct rpcrdma_call *call, int status);

/* pull.c */
void rpcrdma_pull(struct rpcrdma_call *call);
/* Drops the calls that wait for memory; the connection is gone. */
void rpcrdma_pull_cancel(struct rpcrdma_conn *conn);

/* reply.c.  Any thread. */
int rpcrdma_reply_send(struct rpcrdma_call *call);
void rpcrdma_reply_error(struct rpcrdma_call *call, enum rpcrdma_errcode err);

#endif
