/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slots - a connection's Receives and places for calls, and the credits that
 * bound them.
 *
 * A connection with at most C calls in progress has K >= C slots and 2K
 * Receives.  A Receive is lent to a slot until the reply's Send completed.  Let
 * P calls be unanswered, S answered with the Send not completed, W messages
 * wait for a slot, F Receives be free: 2K - P - S - W - F are posted.  A peer
 * within its credits has at most C - P - W messages under way, so each has a
 * Receive as long as S + F <= 2K - C, and K is less than that.  The pump
 * (recv.c), which runs whenever a message came, leaves F zero or at least C
 * posted, that is P + S + W + F <= 2K - C; until it runs again F grows only by
 * what P and S lose, and P + S <= K.
 *
 * Slots and Receives come and go a store at a time.  A new store's Receives are
 * posted before any reply tells of the credits.  A store is retired only when
 * the peer is known to keep within C without it (credits.c).  Its Receives
 * can't be unposted: each goes when a message has used it and was answered, and
 * counts in addition until then.  No slot is taken while K or more are in use,
 * so P + S comes down to K.
 *
 * An answered call whose reply is exposed for the peer to read counts in S
 * until the peer says RDMA_DONE.  Such a message has a further Receive: at most
 * C are due (expose.c), so C more are posted where replies are exposed.  The
 * pump then leaves F zero or 2C posted, and also runs when an RDMA_DONE has
 * given its Receive back.
 */
#pragma once

#include <stdatomic.h>

#include "lib/thread.h"
#include "transport/fabric/fabric.h"

struct rpcrdma_call;
struct rpcrdma_conn;
struct rpcrdma_store;

/* A buffer that is posted, or that holds a message, or is free. */
struct rpcrdma_recv {
	struct fabric_op     op;
	struct fabric_recv   wr;
	struct rpcrdma_conn *conn;	/* borrowed: contains us */
	struct rpcrdma_store *store;	/* borrowed: contains us */
	uint8_t		    *buf;
	uint32_t	     len;	/* the message's length */
	struct rpcrdma_recv *next;	/* free, or waiting */
};

/* A place for a call. */
struct rpcrdma_slot {
	struct rpcrdma_recv *recv;	/* the call's message */
	struct rpcrdma_store *store;	/* borrowed: contains us */
	unsigned	     epoch;	/* since when it is in use */
	struct rpcrdma_slot *next;	/* free */
};

/* Slots and Receives that are made and freed at once, with their memory. */
struct rpcrdma_store {
	unsigned	     nslots;
	unsigned	     nrecvs;
	struct rpcrdma_call *calls;	/* the slots are in them */
	struct rpcrdma_recv *recvs;
	uint8_t		    *upper;
	size_t		     upper_size;	/* of each call */
	uint8_t		    *memory;		/* registered */
	size_t		     memory_len;
	struct fabric_mr    *mr;
	size_t		     bytes;	/* taken from the budget for it */
	struct rpcrdma_store *next;	/* older, or retired earlier */
	/* With the lock of the slots. */
	bool		     retired;
	unsigned	     out;	/* slots and Receives of a retired one
					 * that are not back */
};

struct rpcrdma_slots {
	/* The poller changes them, with the lock. */
	unsigned	     credits;	/* C: the most that the peer can know
					 * of */
	unsigned	     capacity;	/* K: of the stores not retired */
	unsigned	     others;	/* Receives for messages other than
					 * calls */
	/* Any thread reads them. */
	atomic_uint	     unanswered;	/* messages */
	atomic_uint	     busy;	/* slots; changes with the lock */
	atomic_bool	     gone;	/* all of a retired store is back */

	/* The poller's fields. */
	unsigned	     posted;	/* Receives */
	struct rpcrdma_recv *waiting;	/* messages without a slot */
	struct rpcrdma_recv **waiting_tail;

	/* Guards the fields below.  A leaf. */
	pthread_mutex_t	     lock;
	struct rpcrdma_slot *free;
	struct rpcrdma_recv *free_recvs;
	unsigned	     nfree_recvs;
	bool		     draining;
	unsigned	     epoch;
	unsigned	     nold;	/* slots in use since an older epoch */
	struct rpcrdma_store *retired;
};

/* Without slots and Receives.  @others: Receives for messages that are not
 * calls, in the first store, in addition to two for each slot. */
void rpcrdma_slots_init(struct rpcrdma_slots *s, unsigned others);
void rpcrdma_slots_fini(struct rpcrdma_slots *s);
/* Adds a free Receive, or slot.  Before the start, or with the lock. */
void rpcrdma_slots_add_recv(struct rpcrdma_slots *s, struct rpcrdma_recv *r);
void rpcrdma_slots_add(struct rpcrdma_slots *s, struct rpcrdma_slot *slot);
/* On the poller: the peer may have @credits calls in progress from now on;
 * slots for them exist. */
void rpcrdma_slots_promise(struct rpcrdma_slots *s, unsigned credits);
/* On the poller: begins a new epoch. */
void rpcrdma_slots_turn(struct rpcrdma_slots *s);
/* True if each slot in use was taken in this epoch.  On the poller. */
bool rpcrdma_slots_turned(struct rpcrdma_slots *s);
/* On the poller: takes the store out of use, without which there must be as
 * many slots as credits.  It is rpcrdma_slots_take_gone()'s in the end. */
void rpcrdma_slots_retire(struct rpcrdma_slots *s,
			  struct rpcrdma_store *store);
/* On the poller: returns a retired store that is all back, which is the
 * caller's to free; NULL: no slot is free. */
struct rpcrdma_store *rpcrdma_slots_take_gone(struct rpcrdma_slots *s);
/* On the poller: returns how many Receives of retired stores can be posted or
 * lent, at most. */
unsigned rpcrdma_slots_leaving(struct rpcrdma_slots *s);

/* On the poller: takes a posted Receive whose message came.  False: the peer
 * has more calls in progress than credits (RFC 8166 section 3.3.1). */
bool rpcrdma_slots_arrived(struct rpcrdma_slots *s, struct rpcrdma_recv *r,
			   uint32_t len);
/* On the poller: takes a posted Receive whose message is not a call, and frees
 * it at once. */
void rpcrdma_slots_skip(struct rpcrdma_slots *s, struct rpcrdma_recv *r);
/* On the poller: takes a slot for the first message that waits; NULL: none
 * waits, or no slot is free.  Drops all that wait while draining. */
struct rpcrdma_slot *rpcrdma_slots_take(struct rpcrdma_slots *s);
/* On the poller: takes Receives that are to be posted now, as a chain.  NULL:
 * few are free and enough are posted, unless @all are wanted. */
struct rpcrdma_recv *rpcrdma_slots_refill(struct rpcrdma_slots *s, bool all);

enum rpcrdma_slots_next {
	SLOTS_REST,
	SLOTS_PUMP,	/* let the pump run: a message can be waiting for the
			 * slot */
	SLOTS_IDLE,	/* close: all is answered, nothing more is taken */
};

/* Gives back a slot and its Receive; returns the caller's next step.  Any
 * thread. */
enum rpcrdma_slots_next rpcrdma_slots_put(struct rpcrdma_slots *s,
					  struct rpcrdma_slot *slot);
/* Accepts no further messages.  True: no slot is in use.  Any thread. */
bool rpcrdma_slots_drain(struct rpcrdma_slots *s);
