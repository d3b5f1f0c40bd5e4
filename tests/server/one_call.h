/* SPDX-License-Identifier: BSD-2-Clause */
/* one_call - a call of the client library to the rig's program, waited for. */
#pragma once

#include <semaphore.h>

#include <gannet/rpcrdma.h>

struct one {
	struct gannet_rpcrdma_call call;
	sem_t	 done;
	uint32_t words[8];		/* of the call */
	uint32_t reply[8];
};

/* The call has three words: an xid, @op, @arg. */
void one_init(struct one *o, struct gannet_rpcrdma *c, uint32_t op,
	      uint32_t arg);
void one_start(struct one *o, struct gannet_rpcrdma *c);
/* Returns the call's status. */
int one_wait(struct one *o);

/* The counters of the connection, as they are now. */
struct gannet_rpcrdma_info one_info(struct gannet_rpcrdma *c);
/* The caller's memory, not registered. */
struct gannet_rpcrdma_memory one_memory(void *addr, uint32_t len);

/* A call without chunks: 0 when it was answered. */
int one_ping(struct gannet_rpcrdma *c);
