/* SPDX-License-Identifier: BSD-2-Clause */
/* lost - calls that cost their connections.  Any thread. */
#ifndef GANNET_TRANSPORT_RPCRDMA_LOST_H
#define GANNET_TRANSPORT_RPCRDMA_LOST_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct rpcrdma_lost_call {
	struct in6_addr	     host;
	uint32_t	     xid;
	uint64_t	     when;	/* 0: no call */
};

struct rpcrdma_lost {
	_Atomic uint64_t     last;	/* when a call was noted; 0: never */
	pthread_mutex_t	     lock;	/* guards the fields below */
	struct rpcrdma_lost_call call[64];	/* a ring */
	unsigned	     next;
};

void rpcrdma_lost_init(struct rpcrdma_lost *l);
void rpcrdma_lost_fini(struct rpcrdma_lost *l);
/* Notes a call whose chunks the peer refused us. */
void rpcrdma_lost_note(struct rpcrdma_lost *l, const struct sockaddr *peer,
		       uint32_t xid, uint64_t now);
/* True, once, if the call was noted: it has to be answered with an error. */
bool rpcrdma_lost_take(struct rpcrdma_lost *l, const struct sockaddr *peer,
		       uint32_t xid, uint64_t now);

#endif
