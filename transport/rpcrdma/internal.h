/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the files of the responder.
 *
 * Contexts: a device's registrations, a listener, a connection, a receive (a
 * buffer that is posted, or that holds a message), a call (one transaction,
 * from its message to the completion of its reply), a chain (steps that are
 * posted for a call).  A connection's contexts are all made before it is
 * accepted.
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
#ifndef GANNET_TRANSPORT_RPCRDMA_INTERNAL_H
#define GANNET_TRANSPORT_RPCRDMA_INTERNAL_H

#include "lib/util.h"
#include "lib/watchdog.h"
#include "transport/gate.h"
#include "transport/rpcrdma/proto.h"
#include "transport/rpcrdma/rpcrdma.h"

struct rpcrdma_conn;
struct rpcrdma_chain;

/* ---- device.c: the pool's regions, registered once a device */

struct rpcrdma_device {
	struct rpcrdma_device *next;	/* on dev->upper; dev->lock */
	unsigned	     refs;	/* dev->lock */
	struct fabric_device *dev;	/* borrowed: outlives us */
	struct pool	    *pool;	/* borrowed */
	struct pool_observer observer;
	/* The observer writes it before a buffer of the region can be in
	 * use. */
	struct fabric_mr    *mr[POOL_MAX_REGIONS];
};

int rpcrdma_device_get(struct fabric_device *dev, struct pool *pool,
		       struct rpcrdma_device **out);
void rpcrdma_device_put(struct rpcrdma_device *d);

static inline struct fabric_sge
rpcrdma_device_sge(const struct rpcrdma_device *d, const struct buf *b,
		   uint32_t off, uint32_t len)
{
	return (struct fabric_sge){ .addr = b->data + off, .len = len,
				    .lkey = d->mr[b->region]->lkey };
}

/* ---- sq.c: the send queue, shared by Reads and replies */

/* A batch: the steps of a chain that were posted together. */
struct rpcrdma_batch {
	struct fabric_op      op;
	struct rpcrdma_chain *chain;
	unsigned	      steps;	/* 0: not in use */
	unsigned	      reads;
};

struct rpcrdma_chain {
	struct fabric_wr *next_wr;	/* the first that is not posted */
	unsigned	  left;		/* how many are not */
	bool		  reads;	/* they are Reads */
	int		  status;
	unsigned	  in_flight;	/* batches */
	struct rpcrdma_batch batch[2];
	uint64_t	  turn;
	struct rpcrdma_chain *next;	/* parked */
	struct rpcrdma_sq *sq;
	/* Called when all posted steps are done and no more will be posted.  On
	 * the poller; for a chain that failed, on any thread. */
	void (*done)(struct rpcrdma_chain *c, int status);
};

struct rpcrdma_fifo {
	struct rpcrdma_chain *head;
	struct rpcrdma_chain *tail;
};

struct rpcrdma_sq {
	struct fabric_conn *fc;		/* borrowed */
	/* Guards the fields below and serialises posts. */
	pthread_mutex_t	    lock;
	unsigned	    depth;
	unsigned	    room;	/* steps that may be posted */
	unsigned	    read_room;	/* Reads that may be posted */
	bool		    dead;
	uint64_t	    done;	/* batches posted so far */
	uint64_t	    turn;
	struct rpcrdma_fifo sends;	/* parked chains */
	struct rpcrdma_fifo reads;
};

void rpcrdma_sq_init(struct rpcrdma_sq *sq, struct fabric_conn *fc,
		     unsigned depth);
void rpcrdma_sq_fini(struct rpcrdma_sq *sq);
/* The connection is established: lets Reads go out. */
void rpcrdma_sq_set_read_depth(struct rpcrdma_sq *sq, unsigned depth);
/*
 * Posts the chain now, or parks it until there is room, first in first out.
 * Never blocks.  Any thread.  0, or -errno: it was not taken.
 */
int rpcrdma_sq_submit(struct rpcrdma_sq *sq, struct rpcrdma_chain *chain);
/* True if a batch is in flight.  Sets @done to the number of finished ones. */
bool rpcrdma_sq_busy(struct rpcrdma_sq *sq, uint64_t *done);
/* Ends parked chains with an error.  No batch may be in flight any more. */
void rpcrdma_sq_kill(struct rpcrdma_sq *sq);

/* ---- recv.c, call.c */

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
	struct pool_waiter   waiter;
	struct loop_task     task;
	struct cds_list_head parked;	/* on conn->parked */

	struct rpcrdma_chain chain;
	struct fabric_wr    *wr;	/* steps[], or allocated */
	struct fabric_sge   *sge;	/* sges[], or behind wr */
	struct fabric_wr     steps[CALL_STEPS];
	struct fabric_sge    sges[CALL_SGES];
};

enum rpcrdma_state {
	CONN_ACCEPTING,
	CONN_LIVE,
	CONN_CLOSING,
	CONN_DRAINED,
};

struct rpcrdma_listener;

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

	/*
	 * If limits.blind_refusals: the last calls whose chunks were accessed,
	 * each by its xid and its places.
	 */
	atomic_uint	     ntouched;
	_Atomic uint64_t     touched[128];
	atomic_bool	     blamed;	/* a refused call was found */

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
/* Notes that the call's chunks are accessed or invalidated now.  Any thread. */
void rpcrdma_call_touches(struct rpcrdma_call *call);
/* On the poller: judges the last calls after the connection's end by @err. */
void rpcrdma_call_suspect(struct rpcrdma_conn *conn, int err);

/* pull.c */
void rpcrdma_pull(struct rpcrdma_call *call);
/* Drops the calls that wait for memory; the connection is gone. */
void rpcrdma_pull_cancel(struct rpcrdma_conn *conn);

/* reply.c.  Any thread. */
int rpcrdma_reply_send(struct rpcrdma_call *call);
void rpcrdma_reply_error(struct rpcrdma_call *call, enum rpcrdma_errcode err);

/*
 * push.c: the steps of a reply.  A gather is a list of pieces to send as one; a
 * piece that follows another one in memory is joined to it.
 */
struct rpcrdma_gather {
	struct fabric_sge piece[4];
	unsigned	  n;
	uint32_t	  len;
};

void rpcrdma_gather_add(struct rpcrdma_gather *g, struct fabric_sge sge);

/* A chain in the making, in the call's own room. */
struct rpcrdma_push {
	struct rpcrdma_call *call;
	unsigned	     steps;
	unsigned	     sges;
};

/* Writes all of @g, no more than the chunk's length, into @chunk. */
void rpcrdma_push_write(struct rpcrdma_push *p,
			const struct rpcrdma_chunk *chunk,
			const struct rpcrdma_gather *g);
void rpcrdma_push_send(struct rpcrdma_push *p, const struct rpcrdma_gather *g,
		       bool invalidate);

/* conn.c */
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

static inline struct rpcrdma_call *rpcrdma_call_of(struct msg *m)
{
	return container_of(m, struct rpcrdma_call, msg);
}

static inline struct rpcrdma_conn *rpcrdma_conn_of(struct xprt *x)
{
	return container_of(x, struct rpcrdma_conn, xprt);
}

static inline struct rpcrdma_conn *rpcrdma_call_conn(struct rpcrdma_call *call)
{
	return call->recv->conn;
}

/* lost.c: calls that cost their connections.  Any thread. */
#define RPCRDMA_LOST_SETS	256
#define RPCRDMA_LOST_WAYS	4

struct rpcrdma_lost_call {
	struct in6_addr	     host;
	uint32_t	     xid;
	uint32_t	     places;	/* rpcrdma_header_places() */
	unsigned	     suspicion;	/* 0: no call */
	uint64_t	     when;	/* last */
};

struct rpcrdma_lost {
	_Atomic uint64_t     last;	/* when a call was noted; 0: never */
	pthread_mutex_t	     lock;	/* guards the fields below */
	struct rpcrdma_lost_call call[RPCRDMA_LOST_SETS][RPCRDMA_LOST_WAYS];
};

/* A peer's call. */
struct rpcrdma_lost_key {
	struct in6_addr	     host;
	uint32_t	     xid;
	uint32_t	     places;
};

void rpcrdma_lost_init(struct rpcrdma_lost *l);
void rpcrdma_lost_fini(struct rpcrdma_lost *l);
/* Notes a suspect.  @sure: an access to its chunks was refused; else it is one
 * of several calls of which one was refused. */
void rpcrdma_lost_note(struct rpcrdma_lost *l,
		       const struct rpcrdma_lost_key *key, bool sure,
		       uint64_t now);
/* True if the notes are all too old to matter. */
bool rpcrdma_lost_none(struct rpcrdma_lost *l, uint64_t now);
/* True, once, if the call has to be answered with an error. */
bool rpcrdma_lost_hopeless(struct rpcrdma_lost *l,
			   const struct rpcrdma_lost_key *key, uint64_t now);

/* accept.c: on the connection's loop. */
void rpcrdma_accept(struct loop_task *t);

/* listen.c */
struct rpcrdma_listener {
	struct xprt_listener base;
	struct xprt_env	     env;
	struct rpcrdma_options options;	/* with the defaults filled in */
	struct fabric_listener *fl;
	struct xprt_gate     gate;
	struct rpcrdma_lost  lost;
	size_t		     conn_bytes;	/* of each, in the budget */
	struct loop_timer    sweep;		/* of the first loop */

	/* Guards the fields below.  No connection is called with it held. */
	pthread_mutex_t	     lock;
	bool		     stopping;
	struct cds_list_head conns;
	unsigned	     next_loop;
	/* The devices of past connections: their registrations are kept. */
	struct rpcrdma_device *device[16];
	unsigned	     ndevices;
};

void rpcrdma_options_fill(struct rpcrdma_options *o);
/* Keeps a connection's device while the listener lives. */
void rpcrdma_listener_keep(struct rpcrdma_listener *l,
			   struct fabric_device *dev);
/* Uncounts a connection.  It must not use its listener afterwards. */
void rpcrdma_listener_forget(struct rpcrdma_listener *l,
			     struct rpcrdma_conn *conn);

#endif
