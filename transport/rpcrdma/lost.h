/* SPDX-License-Identifier: BSD-2-Clause */
/* lost - calls that cost their connections.  Any thread. */
#pragma once

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/rpcrdma/proto.h"

/* The call that a requester sends again: from there to here, and the same in
 * all that does not change on its next connection. */
struct rpcrdma_lost_key {
	struct in6_addr	     peer;
	struct in6_addr	     local;
	uint64_t	     content;
};

struct rpcrdma_lost_call {
	struct rpcrdma_lost_key key;
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
/* Returns the content of the call with the header @h at @message, of @len
 * bytes. */
uint64_t rpcrdma_lost_content(const struct rpcrdma_header *h,
			      const uint8_t *message, uint32_t len);
/* Notes a call whose chunks the peer refused us. */
void rpcrdma_lost_note(struct rpcrdma_lost *l,
		       const struct rpcrdma_lost_key *key, uint64_t now);
/* True, once, if the call was noted: it has to be answered with an error. */
bool rpcrdma_lost_take(struct rpcrdma_lost *l,
		       const struct rpcrdma_lost_key *key, uint64_t now);
