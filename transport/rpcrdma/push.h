/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * push - the steps of a reply.  A gather is a list of pieces to send as one; a
 * piece that follows another one in memory is joined to it.
 */
#pragma once

#include "transport/rpcrdma/call.h"

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

/* Writes all of @g, at most the chunk's length, into @chunk. */
void rpcrdma_push_write(struct rpcrdma_push *p,
			const struct rpcrdma_chunk *chunk,
			const struct rpcrdma_gather *g);
void rpcrdma_push_send(struct rpcrdma_push *p, const struct rpcrdma_gather *g,
		       bool invalidate);
