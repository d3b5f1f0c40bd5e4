/* SPDX-License-Identifier: BSD-2-Clause */
/* expose - replies that lie in our memory, for the requester to read. */
#pragma once

#include "transport/rpcrdma/push.h"

/* Pieces of a reply: head, body, tail. */
#define EXPOSE_SEGS	3
/* Reads that a peer can have in flight to us. */
#define EXPOSE_READS	16u

struct rpcrdma_exposures;

/* Room for the replies of all calls of @conn.  NULL: no memory. */
struct rpcrdma_exposures *rpcrdma_expose_create(struct rpcrdma_conn *conn);
void rpcrdma_expose_destroy(struct rpcrdma_exposures *x);
/* Bytes of such a room. */
size_t rpcrdma_expose_bytes(unsigned credits);

/*
 * Lets the peer read the reply in @g, of at most EXPOSE_SEGS pieces, and fills
 * in a segment for each.  0, and rpcrdma_expose_sent() has to follow; or -errno
 * (-EDQUOT: the limit of exposed bytes).  Any thread.
 */
int rpcrdma_expose(struct rpcrdma_call *call, const struct rpcrdma_gather *g,
		   struct rpcrdma_segment seg[EXPOSE_SEGS]);
/* Takes @call: the Send that tells of its memory is done, with @status, or will
 * not be.  It is released when its memory is out of the peer's reach. */
void rpcrdma_expose_sent(struct rpcrdma_call *call, int status);
/* On the poller.  True: the message is an RDMA_DONE, and was obeyed. */
bool rpcrdma_expose_take(struct rpcrdma_exposures *x, const uint8_t *data,
			 uint32_t len);
/* Takes back replies that were exposed too long before @now.  Any thread. */
void rpcrdma_expose_sweep(struct rpcrdma_exposures *x, uint64_t now);
/* Takes back all replies: the connection is gone, and posting Sends fails. */
void rpcrdma_expose_kill(struct rpcrdma_exposures *x);
