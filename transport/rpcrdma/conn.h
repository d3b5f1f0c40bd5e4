/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * conn - a connection of the responder.
 *
 * Its contexts are receives and calls (call.h).  All are made before the
 * connection is accepted.
 *
 * A connection has C credits, C calls and 2C receives.  A receive is lent to
 * a call until the reply's Send completed.  Let P calls be unanswered, S
 * answered with the Send not completed, W messages wait for a call, F
 * receives be free: 2C - P - S - W - F are posted.  A peer within its
 * credits has at most C - P - W messages under way, so each has a Receive
 * as long as S + F <= C.  The pump, which runs whenever a message came,
 * leaves F zero or at least C posted, that is P + S + W + F <= C; until it
 * runs again F grows only by what P and S lose, and P + S <= C.
 */
#ifndef GANNET_TRANSPORT_RPCRDMA_CONN_H
#define GANNET_TRANSPORT_RPCRDMA_CONN_H

#include <stdatomic.h>

#include <urcu/list.h>

#include "lib/thread.h"
#include "lib/util.h"
#include "lib/watchdog.h"
#include "transport/rpcrdma/device.h"
#include "transport/rpcrdma/rpcrdma.h"
#include "transport/rpcrdma/sq.h"

struct rpcrdma_listener;

enum rpcrdma_state {
	CONN_ACCEPTING,
	CONN_LIVE,
	CONN_CLOSING,
	CONN_DRAINED,
};

struct rpcrdma_conn {
	struct xprt	     xprt;
	struct fabric_conn  *fc;
	struct rpcrdma_listener *listener;	/* borrowed: outlives us */
	struct rpcrdma_device *device;		/* counted */
	struct cds_list_head link;		/* in the listener */

	/* Fixed at creation. */
	unsigned	     credits;
	uint32_t	     inline_size;	/* of Receives */
	uint32_t	     send_inline;	/* longest Send */
	unsigned	     max_sge;
	bool		     may_invalidate;
	struct rpcrdma_call *calls;
	struct rpcrdma_recv *recvs;
	uint8_t		    *upper;
	size_t		     upper_size;	/* of each call */
	uint8_t		    *memory;		/* registered */
	size_t		     memory_len;
	struct fabric_mr    *mr;

	struct rpcrdma_sq    sq;
	struct loop_task     task;		/* accept, then destroy */
	struct loop_task     pump_task;
	/* Messages that have no answer yet. */
	atomic_uint	     unanswered;
	atomic_uint	     nparked;
	/* Replies that the requester took, as its calls prove. */
	_Atomic uint64_t     taken;
	/* Time of the last call, or of the last look that saw a call in
	 * progress. */
	_Atomic uint64_t     active;
	/* The sweep's, of batches done; slow: while memory is short. */
	struct watchdog	     stalled;
	struct watchdog	     slow;

	/* Guards the fields below.  A leaf, but for the posting of a task. */
	pthread_mutex_t	     lock;
	enum rpcrdma_state   state;
	bool		     started;	/* closed() will follow */
	bool		     draining;
	bool		     pump_due;	/* pump_task is posted */
	struct rpcrdma_call *free_calls;
	unsigned	     busy_calls;
	struct rpcrdma_recv *free_recvs;
	unsigned	     nfree_recvs;

	/* The poller's fields. */
	unsigned	     posted;		/* Receives */
	struct rpcrdma_recv *waiting;		/* messages without a call */
	struct rpcrdma_recv **waiting_tail;
	struct cds_list_head parked;		/* calls without memory */
	uint64_t	     ncalls;		/* well-formed ones */
	uint64_t	     nreplies;		/* whose Sends are done */
};

int rpcrdma_conn_create(struct rpcrdma_listener *l, struct fabric_conn *fc,
			struct loop *loop, struct rpcrdma_conn **out);
void rpcrdma_conn_close(struct rpcrdma_conn *conn, int err);
bool rpcrdma_conn_is_live(struct rpcrdma_conn *conn);
/* Closes the connection if it was idle or stalled for too long.  On the
 * listener's loop. */
void rpcrdma_conn_sweep(struct rpcrdma_conn *conn);
/* Takes no more calls, and closes when none is in progress. */
void rpcrdma_conn_drain(struct rpcrdma_conn *conn);
/* With the lock, after a release: makes the pump run on the poller if messages
 * wait. */
void rpcrdma_conn_want_pump(struct rpcrdma_conn *conn);
uint32_t rpcrdma_conn_grant(struct rpcrdma_conn *conn);
/* Counts a call, which asks for so many credits.  On the poller, in the order
 * of their coming. */
void rpcrdma_conn_called(struct rpcrdma_conn *conn, uint32_t asked);
/* Returns the position (transport/fate.h) of the end of the Send that is just
 * done and counted.  On the poller. */
uint64_t rpcrdma_conn_position(struct rpcrdma_conn *conn);

static inline struct rpcrdma_conn *rpcrdma_conn_of(struct xprt *x)
{
	return container_of(x, struct rpcrdma_conn, xprt);
}

/* accept.c: makes the connection ready, and accepts the peer.  Its loop's
 * task. */
void rpcrdma_accept(struct loop_task *t);

#endif
