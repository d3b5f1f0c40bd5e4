/* SPDX-License-Identifier: BSD-2-Clause */
/* lost - calls that cost their connections.  Any thread. */
#ifndef GANNET_TRANSPORT_RPCRDMA_LOST_H
#define GANNET_TRANSPORT_RPCRDMA_LOST_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

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

#endif
