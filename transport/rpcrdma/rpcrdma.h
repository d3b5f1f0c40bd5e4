/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rpcrdma - the responder of RPC-over-RDMA version 1 (RFC 8166), on any
 * fabric.
 *
 * Read chunks are pulled before the sink sees a call; results go where the
 * call's Write and Reply chunks say.  No memory of ours is exposed to a peer
 * (RFC 8166 section 8.1), but for the sink of a Read on iWARP adapters, and
 * only while it is being read.
 */
#ifndef GANNET_TRANSPORT_RPCRDMA_RPCRDMA_H
#define GANNET_TRANSPORT_RPCRDMA_RPCRDMA_H

#include <stdatomic.h>

#include "transport/fabric/fabric.h"
#include "transport/xprt.h"

/* What connections may take of the system's memory, as rpcrdma_conn_bytes()
 * has it; of any number of listeners.  All zeros but for max at first. */
struct rpcrdma_budget {
	size_t		max;
	atomic_size_t	used;
};

/* Zero is the default, everywhere. */
struct rpcrdma_options {
	unsigned credits;	/* calls in progress on a connection: 128 */
	unsigned inline_size;	/* longest Send taken or made: 4096 */
	unsigned send_queue;	/* steps in flight: 8 for each credit */
	/* Closes a connection that does not call for so long: 6 min.  Of a
	 * peer that lost its power nothing else tells. */
	uint32_t idle_ms;
	/* ... or does not let what was posted complete: 60 s.  It may have no
	 * Receive for a reply, or not answer a Read, for ever. */
	uint32_t stall_ms;
	/* ... or, while others wait for memory, lets so little complete that
	 * it would keep what it has for a dozen times this: 5 s. */
	uint32_t short_ms;
	struct rpcrdma_budget *budget;	/* borrowed; none: no bound */
};

/*
 * Listens at @addr.  @fabric, @env and what @env points to are borrowed until
 * the listener is freed.  0 or -errno.
 */
int rpcrdma_listen(const struct fabric *fabric, const struct xprt_env *env,
		   const struct sockaddr *addr,
		   const struct rpcrdma_options *options,
		   struct xprt_listener **out);

/* Memory of one connection with these options, when calls carry
 * @msg_upper bytes; queues of the fabric come on top. */
size_t rpcrdma_conn_bytes(const struct rpcrdma_options *options,
			  size_t msg_upper);

#endif
