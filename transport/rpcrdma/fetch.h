/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fetch - a requester reads replies that lie in the responder's memory, the
 * Read-Read transfer model (RFC 5666 section 3.8).  On the loop.
 */
#pragma once

#include <urcu/list.h>

#include "transport/rpcrdma/proto.h"
#include "transport/rpcrdma/requester.h"

/* Segments of one reply. */
#define FETCH_SEGS	64
/* Steps of a call that can be in a send queue: its Send, and if its reply is
 * read, a Read and the RDMA_DONE. */
#define FETCH_STEPS(options)	((options).read_read ? 3u : 1u)

struct rpcrdma_fetch;

/* The fetches of a connection. */
struct rpcrdma_fetches {
	struct fabric_conn  *fc;		/* borrowed */
	unsigned	     depth;	/* most Reads in flight; */
	unsigned	     room;	/* Reads that can be posted now */
	struct cds_list_head waiting;	/* with a Read to post */
	uint32_t	     acks;	/* RDMA_DONEs sent, */
	uint32_t	     taken;	/* and known to be taken */
	/* The reply is here.  Send the RDMA_DONE. */
	void (*here)(struct rpcrdma_fetch *f);
	/* The RDMA_DONE was sent. */
	void (*acked)(struct rpcrdma_fetch *f);
	unsigned	     n;
	struct rpcrdma_fetch *fetch;		/* owned */
};

/* One reply at a time. */
struct rpcrdma_fetch {
	struct rpcrdma_fetches *all;		/* borrowed: contains us */
	bool		     active;		/* from begin to here() */
	bool		     acking;		/* the RDMA_DONE is posted */
	uint32_t	     before;	/* acks when its call was sent */
	struct cds_list_head link;
	struct fabric_op     op;		/* one Read at a time */
	struct fabric_wr     wr;
	struct fabric_sge    sge;
	struct fabric_mr    *sink;
	uint8_t		    *to;
	uint32_t	     len;	/* of all segments */
	unsigned	     nsegs;
	unsigned	     next;
	struct rpcrdma_segment seg[FETCH_SEGS];
	struct fabric_op     ack_op;
	struct fabric_wr     ack_wr;
	struct fabric_sge    ack_sge;
};

/* Makes @n fetches, over @all->fc. 0 or -ENOMEM. */
int rpcrdma_fetches_init(struct rpcrdma_fetches *all, unsigned n);
void rpcrdma_fetches_fini(struct rpcrdma_fetches *all);
/* Gives them RPCRDMA_DONE_LEN bytes each of registered memory. */
void rpcrdma_fetches_place(struct rpcrdma_fetches *all, uint8_t *at,
			   uint32_t lkey);
/* Before the first fetch: lets so many Reads be in flight. */
void rpcrdma_fetches_set_depth(struct rpcrdma_fetches *all, unsigned depth);
/*
 * Reads the reply that @h tells of into @mem.  0, and here() follows, or the
 * connection ends; -EIO: it is not a reply as RFC 5666 has them, or the
 * responder lets us read nothing; -EMSGSIZE: longer than @mem; or -errno.
 */
int rpcrdma_fetch_begin(struct rpcrdma_fetch *f, const struct rpcrdma_header *h,
			struct rpcrdma_memory mem);
/* The call of @f was answered: the responder took all that was sent before. */
void rpcrdma_fetch_answered(struct rpcrdma_fetch *f);
/* Counts the RDMA_DONEs that the responder has perhaps not received yet. */
static inline unsigned rpcrdma_fetches_owed(const struct rpcrdma_fetches *all)
{
	return all->acks - all->taken;
}

/* Sends the RDMA_DONE for the call @xid. */
void rpcrdma_fetch_ack(struct rpcrdma_fetch *f, uint32_t xid);
/* The connection is gone. */
void rpcrdma_fetch_cancel(struct rpcrdma_fetch *f);
