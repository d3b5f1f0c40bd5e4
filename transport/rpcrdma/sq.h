/* SPDX-License-Identifier: BSD-2-Clause */
/* sq - the send queue of a connection, shared by Reads and replies. */
#pragma once

#include "lib/thread.h"
#include "transport/fabric/fabric.h"

struct rpcrdma_chain;

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
	/* Called after the last step is done, when posting has ended.  On the
	 * poller; for a chain that failed, on any thread. */
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
	unsigned	    room;	/* steps that can be posted */
	unsigned	    read_depth;	/* most Reads in flight; */
	int		    read_room;	/* Reads that can be posted now;
					 * negative once the depth was
					 * lowered */
	bool		    dead;
	uint64_t	    done;	/* batches posted so far */
	uint64_t	    turn;
	struct rpcrdma_fifo sends;	/* parked chains */
	struct rpcrdma_fifo reads;
};

void rpcrdma_sq_init(struct rpcrdma_sq *sq, struct fabric_conn *fc,
		     unsigned depth);
void rpcrdma_sq_fini(struct rpcrdma_sq *sq);
/* Lets so many Reads be in flight: none before the first time. */
void rpcrdma_sq_set_read_depth(struct rpcrdma_sq *sq, unsigned depth);
/*
 * Posts the chain now, or parks it until it fits, first in first out.  Never
 * blocks.  Any thread.  0, or -errno: it was not taken.
 */
int rpcrdma_sq_submit(struct rpcrdma_sq *sq, struct rpcrdma_chain *chain);
/* True if a batch is in flight.  Sets @done to the number of finished ones. */
bool rpcrdma_sq_busy(struct rpcrdma_sq *sq, uint64_t *done);
/* Ends parked chains with an error.  All batches must have ended. */
void rpcrdma_sq_kill(struct rpcrdma_sq *sq);
