/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rpcrdma - the responder of RPC-over-RDMA version 1 (RFC 8166), on any
 * fabric.
 *
 * Read chunks are pulled before the sink sees a call; results go where the
 * call's Write and Reply chunks say.  No memory of ours is exposed to a peer
 * (RFC 8166 section 8.1), except the sink of a Read on iWARP adapters, while it
 * is being read, and replies with options.read_read.
 */
#pragma once

#include <stdatomic.h>

#include "transport/fabric/fabric.h"
#include "transport/xprt.h"

/* The memory that connections can take, measured by rpcrdma_conn_bytes() and
 * fabric_conn_bytes(), and more as their grants grow.  Any number of listeners
 * can share one.  Set max, at any time, and leave the rest zero. */
struct rpcrdma_budget {
	atomic_size_t	max;
	atomic_size_t	used;
	atomic_uint	conns;
	atomic_uint	granted;	/* credits, by all of them */
};

/* Zero is the default of every field. */
struct rpcrdma_options {
	unsigned credits;	/* calls in progress on a connection, at most:
				 * 128 */
	/* The grant of a new connection, and the lowest.  From there to
	 * @credits it follows the use of it, and the budget.  0: @credits: a
	 * constant grant.  With @read_read it always stays. */
	unsigned first_credits;
	/* Microseconds that messages can be on their way, while the requester
	 * waits: the calls that come in this time count as use at once.  0:
	 * only those in progress here do. */
	uint32_t path_us;
	unsigned inline_size;	/* longest Send taken or made: 4096 */
	unsigned send_queue;	/* steps in flight: 8 for each credit, but
				 * those beyond 128 */
	/* Closes a connection that does not call for this long: 6 min.  A peer
	 * that lost its power gives no other sign. */
	uint32_t idle_ms;
	/* ... or whose posted work does not complete: 60 s.  A peer can lack a
	 * Receive for a reply, or leave a Read unanswered, for ever. */
	uint32_t stall_ms;
	/* ... or, while others wait for memory, whose work completes so slowly
	 * that it would keep its memory for a dozen times this: 5 s. */
	uint32_t short_ms;
	/*
	 * The Read-Read transfer model (RFC 5666 section 3.8): a reply that is
	 * too long for a Send, to a call without Write and Reply chunks, is
	 * exposed for the requester to read, until its RDMA_DONE, but no longer
	 * than expose_ms: 10 s (or short_ms while others wait for memory); and
	 * at most expose_bytes of all connections at a time: 64 MiB.
	 */
	bool	 read_read;
	uint32_t expose_ms;
	size_t	 expose_bytes;
	struct rpcrdma_budget *budget;	/* borrowed; NULL: no bound */
};

/*
 * Listens at @addr.  @fabric, @env and what @env points to are borrowed until
 * the listener is freed.  0 or -errno.
 */
int rpcrdma_listen(const struct fabric *fabric, const struct xprt_env *env,
		   const struct sockaddr *addr,
		   const struct rpcrdma_options *options,
		   struct xprt_listener **out);

/* The Connection Configuration Protocol (RFC 5666 section 6). */
#define RDMA_CONFIG_PROGRAM	100417u
#define RDMA_CONFIG_VERSION	1u

enum { CONF_RDMA = 1 };

/* One side's limits of a connection (RFC 5666 section 6.2). */
struct rpcrdma_limits {
	uint32_t call;		/* bytes of the longest Send with a call, */
	uint32_t reply;		/* and with a reply */
	uint32_t reads;		/* RDMA Reads of its memory at a time */
};

/* Keeps to the limits of the peer of @x, a connection of RPC-over-RDMA, from
 * now on, and sets *@ours.  Any thread; doesn't block. */
void rpcrdma_configure(struct xprt *x, const struct rpcrdma_limits *theirs,
		       struct rpcrdma_limits *ours);

/* Returns the memory of one connection with these options at its first grant,
 * if each call has @msg_upper bytes.  fabric_conn_bytes() comes on top. */
size_t rpcrdma_conn_bytes(const struct rpcrdma_options *options,
			  size_t msg_upper);
