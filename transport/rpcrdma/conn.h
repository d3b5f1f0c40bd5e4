/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * conn - a connection of the responder.
 *
 * It has a send queue (sq.h), slots for calls with their Receives (slots.h),
 * the memory of both, and a state.  Its work is in calls (call.h).
 */
#pragma once

#include <stdatomic.h>

#include <urcu/list.h>

#include "lib/thread.h"
#include "lib/util.h"
#include "lib/watchdog.h"
#include "transport/rpcrdma/device.h"
#include "transport/rpcrdma/registrar.h"
#include "transport/rpcrdma/rpcrdma.h"
#include "transport/rpcrdma/slots.h"
#include "transport/rpcrdma/sq.h"

struct rpcrdma_exposures;
struct rpcrdma_listener;

enum rpcrdma_state {
	CONN_ACCEPTING,
	CONN_STARTED,		/* closed() will follow, from here on */
	CONN_LIVE,
	CONN_CLOSING,
};

/* The grant, which follows the use of it (credits.c). */
struct rpcrdma_credits {
	atomic_uint	     grant;	/* told in replies; <= slots.credits */
	unsigned	     min;
	unsigned	     max;
	/* The poller's fields. */
	unsigned	     asked;	/* by the last call */
	unsigned	     peak;	/* most calls in progress of this
					 * period */
	unsigned	     calls;	/* of this period, */
	unsigned	     period;	/* which is so many long */
	unsigned	     alarm;	/* calls in progress that end it
					 * early */
	uint64_t	     since;	/* its begin, of the loop's time */
	bool		     lowering;	/* perhaps not yet known to the peer */
	uint64_t	     known;	/* it knows with so many replies taken;
					 * 0: not certain yet */
	struct rpcrdma_store *newest;	/* of stores that are not retired */
	/* One that is being registered, or NULL; for so many credits. */
	struct rpcrdma_store *coming;
	unsigned	     wanted;
	int		     registered;	/* 0 or -errno */
	struct rpcrdma_job   job;
	struct loop_task     task;
};

/* The requester's proof that it took replies (conn.c). */
struct rpcrdma_proof {
	_Atomic uint64_t     taken;	/* replies, as its calls prove */
	/* The poller's fields. */
	uint64_t	     calls;	/* well-formed ones */
	uint64_t	     replies;	/* whose Sends are done */
	/* Bytes of the calls that were whole, and of these replies. */
	uint64_t	     received;
	uint64_t	     sent;
};

struct rpcrdma_watch {
	/* Time of the last call, or of the last look that saw a call in
	 * progress. */
	_Atomic uint64_t     active;
	/* The sweep's, of batches done; slow: while memory is short. */
	struct watchdog	     stalled;
	struct watchdog	     slow;
};

struct rpcrdma_conn {
	struct xprt	     xprt;
	struct fabric_conn  *fc;
	struct rpcrdma_listener *listener;	/* borrowed: outlives us */
	/* Counted; NULL: the connection has a separate protection domain, in
	 * which payload is registered for each call. */
	struct rpcrdma_device *device;
	struct cds_list_head link;		/* in the listener, */
	size_t		     bytes;		/* that it counts in the budget
						 * at its first grant */

	/* Fixed at creation. */
	uint32_t	     inline_size;	/* of Receives */
	uint32_t	     recv_inline;	/* the peer's longest Send, as
						 * it said at the start */
	unsigned	     max_sge;
	bool		     may_invalidate;
	struct rpcrdma_store *store;	/* the first, which is never retired */

	/* The peer's limits, which it can change (RFC 5666 section 6). */
	_Atomic uint32_t     send_inline;	/* longest Send */
	atomic_bool	     no_reads;		/* it answers no Reads */

	_Atomic enum rpcrdma_state state;
	struct rpcrdma_sq    sq;
	struct rpcrdma_slots slots;
	struct rpcrdma_credits credits;
	struct rpcrdma_exposures *exposures;	/* NULL: nothing is exposed */
	unsigned	     reads_taken;	/* that the peer may have in
						 * flight to us */
	struct loop_task     task;		/* accept, then destroy */
	void		     (*accept)(struct loop_task *t);
	struct rpcrdma_job   job;		/* the registrar's, to accept */
	int		     registered;	/* 0 or -errno */
	atomic_bool	     pump_due;		/* pump_task is posted */
	struct loop_task     pump_task;
	void		     (*pump)(struct loop_task *t);	/* recv.c's, */
	void		     (*recv_done)(struct fabric_op *op, int status,
					  uint32_t len);	/* too */
	struct rpcrdma_watch watch;
	struct rpcrdma_proof proof;
	atomic_uint	     nparked;
	struct cds_list_head parked;	/* calls without memory; the poller's */
};

/* Changes the state from @from.  False: another thread closes. */
bool rpcrdma_conn_advance(struct rpcrdma_conn *conn, enum rpcrdma_state from,
			  enum rpcrdma_state to);
void rpcrdma_conn_close(struct rpcrdma_conn *conn, int err);
/* Closes the connection if it was idle or stalled for too long.  On the
 * listener's loop. */
void rpcrdma_conn_sweep(struct rpcrdma_conn *conn);
/* Accepts no further calls, and closes when the last call in progress has
 * ended. */
void rpcrdma_conn_drain(struct rpcrdma_conn *conn);
/* Returns a call's slot and its Receive, and does the work that waited for
 * them. */
void rpcrdma_conn_free_slot(struct rpcrdma_conn *conn,
			    struct rpcrdma_slot *slot);
uint32_t rpcrdma_conn_grant(struct rpcrdma_conn *conn);
/* Counts a call, which asks for so many credits.  On the poller, in the order
 * of their coming. */
void rpcrdma_conn_called(struct rpcrdma_conn *conn, uint32_t asked);
/* Returns the position (transport/fate.h) of the end of the Send that is just
 * done and counted.  On the poller. */
uint64_t rpcrdma_conn_position(struct rpcrdma_conn *conn);
/* As in xprt_ops. */
void rpcrdma_conn_look(struct xprt *x, struct xprt_view *v);

static inline struct rpcrdma_conn *rpcrdma_conn_of(struct xprt *x)
{
	return container_of(x, struct rpcrdma_conn, xprt);
}

static inline bool rpcrdma_conn_is_live(struct rpcrdma_conn *conn)
{
	return atomic_load(&conn->state) == CONN_LIVE;
}

/* accept.c */
int rpcrdma_conn_create(struct rpcrdma_listener *l, struct fabric_conn *fc,
			struct loop *loop, struct rpcrdma_conn **out);
/* The queues of a connection on such a device. */
struct fabric_queues rpcrdma_conn_queues(const struct rpcrdma_options *o,
					 const struct fabric_limits *limits);
/* Makes the connection ready, and accepts the peer.  Its loop's task. */
void rpcrdma_accept(struct loop_task *t);
void rpcrdma_options_fill(struct rpcrdma_options *o);
