/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of rpc/: a call's own memory, and the server. */
#pragma once

#include "rpc/drc.h"
#include "rpc/limit.h"
#include "rpc/rpc.h"
#include "rpc/tap.h"
#include "rpc/work.h"

#define RPC_MAX_PROGRAMS	16
#define RPC_MAX_TAIL		4

/* The times of a call that a tap took. */
struct rpc_times {
	bool	    ran;		/* its steps have begun */
	uint64_t    left;		/* CLOCK_MONOTONIC ns: when it left its
					 * thread; 0: it did not, since */
	uint64_t    part[RPC_PARTS];	/* ns */
	const char *why;		/* literal: its last wait, not for a
					 * worker; or NULL */
	const char *status;		/* literal; NULL: that of its results */
};

struct limit_client;

/* A call's part of rpc/limit.c. */
struct rpc_limited {
	struct rpc_limit    *limit;	/* that it passed, or waits for; NULL:
					 * none */
	struct limit_client *client;	/* with limit */
	uint64_t	     bytes;	/* taken for it, or to be */
	struct cds_list_head link;	/* in its client's queue: the limit's
					 * lock guards it */
};

/* A call's wait for anything but a worker or a buffer. */
enum rpc_wait {
	RPC_WAIT_NONE,
	RPC_WAITS,		/* suspended, above a limit, or for its turn */
	RPC_WAITS_LONG,		/* as it did at the last rpc_server_relieve() */
	RPC_WAIT_OVER,		/* resumed by its holder; no step ran since */
};

/* A call's place among the calls of its key (rpc/order.c). */
enum rpc_turn_state {
	RPC_TURN_NONE,		/* it has no place */
	RPC_TURN_COMES,		/* a thread has it, to start or to end it */
	RPC_TURN_WAITS,		/* it is in its queue, and nowhere else */
	RPC_TURN_HAS,		/* it runs, or is on its way to a worker */
};

struct rpc_turn {
	enum rpc_turn_state  state;
	uint64_t	     key;
	struct cds_list_head link;	/* in a chain, or behind the first */
	/* Of the first of its key: */
	struct cds_list_head behind;
	unsigned	     nbehind;
};

struct rpc_call_priv {
	struct work_item  work;		/* while it waits for a worker */
	struct pool_request room;	/* while it waits for a buffer */
	struct work_class *class;	/* that it was last given to: borrowed,
					 * outlives the call; NULL: none */
	rpc_step_fn	  *then;	/* a worker runs it before the next
					 * step; NULL: none */
	/* While it waits; the lock of the list that it is in guards them. */
	enum rpc_wait	   wait;
	uint64_t	   since;	/* CLOCK_MONOTONIC ns */
	/* While it is suspended, likewise. */
	struct cds_list_head suspended;
	const char	  *why;		/* literal */
	rpc_cancel_fn	  *cancel;	/* or NULL */
	struct rpc_limited limited;
	struct rpc_turn	   turn;	/* the order's lock guards it */

	struct drc_call	   drc;		/* the cache's while ... */
	bool		   in_drc;
	struct buf	  *body;	/* owned, or NULL */
	struct pipe	  *pipe;	/* likewise */
	uint64_t	   started;	/* CLOCK_MONOTONIC ns */
	uint32_t	   wire_len;	/* msg->call_len as it came, for taps */
	uint32_t	   body_len;
	uint32_t	   ntail;
	uint32_t	   tail[RPC_MAX_TAIL];
	bool		   body_ddp;
	bool		   body_piped;
	bool		   opened;	/* a worker opened its arguments */
	bool		   tapped;	/* a tap took it: these are valid */
	uint32_t	   taps[RPC_TAPS];	/* number of the tap, or 0 */
	struct rpc_times   times;
};

/*
 * msg->upper.  Owner: the poller in dispatch, then the place the call was given
 * to (a class's queue, a worker, the pool's waiters, the cache, the list of
 * suspended calls), until xprt_reply() or xprt_drop().
 */
struct rpc_slot {
	struct rpc_call		call;
	struct rpc_call_priv	priv;
};

static inline struct rpc_slot *rpc_slot_of(struct rpc_call *call)
{
	return container_of(call, struct rpc_slot, call);
}

/* Returns the call of @waited, which lay in the cache and is the caller's
 * again. */
static inline struct rpc_slot *rpc_slot_waited(struct drc_call *waited)
{
	struct rpc_slot *slot = container_of(waited, struct rpc_slot, priv.drc);

	slot->priv.in_drc = false;
	return slot;
}

/* The server's suspended calls. */
struct rpc_suspended {
	pthread_mutex_t	     lock;
	struct cds_list_head calls;
	unsigned	     n;		/* with those not linked yet */
};

/* The server's limits, and the thread that lets calls go on. */
struct rpc_limits {
	pthread_mutex_t	     lock;
	pthread_cond_t	     wanted;
	pthread_t	     thread;
	struct cds_list_head all;
	uint64_t	     looked;	/* the thread, last: clock_ns() */
	uint64_t	     due;	/* its next look */
	unsigned	     nagain;	/* all calls run again so often, */
	uint64_t	     again;	/* next at this time */
	bool		     off;	/* no call waits */
	bool		     ends;
};

#define RPC_SUSPENDED_MAX	1024u

#define RPC_ORDER_CHAINS	256u

/* The server's calls that run in order, by their keys. */
struct rpc_order {
	pthread_mutex_t	     lock;
	struct cds_list_head chains[RPC_ORDER_CHAINS];	/* of those whose
							 * turn it is */
};

struct rpc_server {
	struct xprt_sink   sink;
	struct pool	  *pool;	/* borrowed */
	struct work_pool  *work;
	struct rpc_suspended suspended;
	struct rpc_order   order;
	struct rpc_limits  limits;
	struct drc	  *drc;
	struct pipes	  *pipes;
	uint8_t		  *probe;	/* see rpc_read_chunk_ok() */
	/* Borrowed, under RCU; NULL: none. */
	_Atomic(struct rpc_tap *) tap[RPC_TAPS];
	atomic_uint	   ntaps;	/* of these are not NULL, or will be */
	_Atomic uint32_t   taps;	/* so far; rpc_server_tap() */
	const struct rpc_flavor *const *flavors;	/* borrowed */
	unsigned	   nprogs;
	struct rpc_program *progs[RPC_MAX_PROGRAMS];	/* borrowed */
	/* Of each program, the counts of its versions' procedures, in order. */
	struct rpc_proc_counts *counts[RPC_MAX_PROGRAMS];
};

/* dispatch.c */
void rpc_dispatch(struct xprt_sink *sink, struct msg *m);
uint8_t *rpc_probe_create(void);	/* NULL: no memory; to be freed */
bool rpc_read_chunk_ok(struct xprt_sink *sink, const void *head,
		       uint32_t len, uint32_t position);

/* tap.c */
/* Shows the call, see rpc/tap.h. */
void rpc_tap_call(struct rpc_slot *slot, const struct rpc_header *h,
		  const struct xdr_in *args);

/* Of calls that are tapped: */
/* Shows the reply and gives it to the transport, as xprt_reply(). */
int rpc_tap_send(struct rpc_slot *slot);
/* There will be no reply. */
void rpc_tap_none(struct rpc_slot *slot, const char *status);
/* Its steps begin, or go on. */
void rpc_times_run(struct rpc_slot *slot);
/* It leaves its thread. */
void rpc_times_leave(struct rpc_slot *slot);
/* Its wait is over, and it needs a worker next. */
void rpc_times_go_on(struct rpc_slot *slot, const char *why);
/* The call that is tapped has no results: @status tells why, a literal. */
static inline void rpc_times_refused(struct rpc_slot *slot, const char *status)
{
	if (unlikely(slot->priv.tapped))
		slot->priv.times.status = status;
}

/* run.c */
/* Runs @then, unless it is NULL, and the next steps; sends the reply after the
 * last.  Takes the call. */
void rpc_call_run(struct rpc_slot *slot, rpc_step_fn *then);
/* The call leaves its thread, to wait for @why, a literal; then a worker runs
 * @then before the next step; NULL: the next step.  Before others can find
 * it. */
void rpc_call_wait(struct rpc_call *call, const char *why, rpc_step_fn *then);
/* Its wait for @why is over, and @wait says how: a worker goes on. */
void rpc_call_go_on(struct rpc_slot *slot, const char *why,
		    enum rpc_wait wait);
/* Ends a call that waited; takes it.  Asks the client to retry later if its
 * program has such an answer, and if @answer. */
void rpc_call_send_back(struct rpc_slot *slot, bool answer);

/* order.c */
void rpc_order_init(struct rpc_order *o);
/* No call has a place. */
void rpc_order_fini(struct rpc_order *o);
/* A worker of the common share runs the call's work->run. */
void rpc_call_start(struct rpc_slot *slot);
/* On the poller, before the first step.  RPC_TURN_HAS: the call runs now;
 * RPC_TURN_WAITS: it was given away, and is started; RPC_TURN_NONE: too many
 * wait. */
enum rpc_turn_state rpc_order_join(struct rpc_slot *slot);
/* For a call that was started: false: it was given away, and waits. */
bool rpc_order_take(struct rpc_slot *slot);
/* The call, which has a place, is over: the next one of its key starts. */
void rpc_order_end(struct rpc_slot *slot);
/* @heir, a duplicate, stands in the place of the call from now on. */
void rpc_order_inherit(struct rpc_slot *slot, struct rpc_slot *heir);
/* Calls @fn with each call that waits, and why: a literal.  True: the call is
 * the caller's, who ends it after the walk.  The queues are locked. */
typedef bool rpc_waiting_fn(struct rpc_slot *slot, const char *why, void *arg);
void rpc_order_walk(struct rpc_order *o, rpc_waiting_fn *fn, void *arg);

/* limit.c */
/* 0 or -errno. */
int  rpc_limits_start(struct rpc_server *server);
void rpc_limits_stop(struct rpc_server *server);
/* At the end of a call that passed a limit: returns the unused part. */
void rpc_limit_settle(struct rpc_call *call);
/* As rpc_order_walk(), with the calls above a limit. */
void rpc_limits_walk(struct rpc_limits *limits, rpc_waiting_fn *fn, void *arg);

/* suspend.c */
void rpc_suspended_init(struct rpc_suspended *s);
/* No call is suspended. */
void rpc_suspended_fini(struct rpc_suspended *s);
/* Cancels calls whose connections are gone, and calls that hold resources that
 * other calls need; also calls that wait for their turn. */
void rpc_suspended_relieve(struct rpc_server *server, bool is_short);
/* True if the waiting call holds a resource that other calls need: memory, with
 * @is_short, or the last place of its connection or listener. */
bool rpc_call_obstructs(const struct rpc_slot *slot, bool is_short);

/* reply.c: each of these ends the call and gives the message back. */
void rpc_reply_results(struct rpc_slot *slot);
void rpc_reply_status(struct rpc_slot *slot, enum rpc_accept_stat stat);
void rpc_reply_prog_mismatch(struct rpc_slot *slot);
void rpc_reply_rpc_mismatch(struct rpc_slot *slot);
void rpc_reply_denied(struct rpc_slot *slot, enum rpc_auth_stat why);
/* The reply, @len bytes, lies in msg->head already. */
void rpc_reply_again(struct rpc_slot *slot, uint32_t len);
void rpc_reply_none(struct rpc_slot *slot);
/* The message is not a call: closes the peer's connection, if it has one. */
void rpc_reply_reject(struct rpc_slot *slot);
