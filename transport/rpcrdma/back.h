/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * back - calls in the reverse direction (RFC 8167): from the responder of a
 * connection to its requester.
 *
 * rpcrdma_options.back_credits makes room for them on each connection.  An
 * upper layer makes one only on a connection whose peer told it, by the upper
 * layer's own means, that it takes them: a peer without Receives for them loses
 * the connection (RFC 8167 section 6).  The transport makes none by itself.
 *
 * Credits, windows and xids of the two directions have nothing to do with each
 * other.  Messages go inline only: no chunks are offered (section 5.3).
 */
#ifndef GANNET_TRANSPORT_RPCRDMA_BACK_H
#define GANNET_TRANSPORT_RPCRDMA_BACK_H

#include <urcu/list.h>

#include "transport/xprt.h"

/* It and the memory that it names are lent to the transport until done(). */
struct rpcrdma_back_call {
	void	*call;		/* the RPC message; the transport writes the
				 * xid, which are its first four bytes */
	uint32_t call_len;
	/* On the connection's poller, once: must not block. */
	void	 (*done)(struct rpcrdma_back_call *self);

	/*
	 * The result; reply only while done() runs.  Status is 0; -EREMOTEIO,
	 * an RDMA_ERROR with errcode; -EIO, a reply with chunks; -EMSGSIZE, the
	 * peer no longer accepts Sends of that length; -ENOTCONN, the
	 * connection is gone.
	 */
	int	 status;
	uint32_t errcode;
	const uint8_t *reply;	/* from the xid on */
	uint32_t reply_len;

	/* The transport's. */
	struct cds_list_head link;
};

/*
 * Starts a call on @x, a counted RPC-over-RDMA connection.  Those beyond the
 * peer's credits wait in line.  A call that is not answered within stall_ms
 * ends the connection.  Any thread.  0, and done() follows, never from in here;
 * or -errno and it does not: -EOPNOTSUPP, no back_credits; -EMSGSIZE, too long
 * for a Send; -ENOTCONN.
 */
int rpcrdma_back_call(struct xprt *x, struct rpcrdma_back_call *call);

struct rpcrdma_back;
struct rpcrdma_conn;

/* Room for @credits calls; @memory has inline_size bytes for each.  NULL: no
 * memory. */
struct rpcrdma_back *rpcrdma_back_create(struct rpcrdma_conn *conn,
					 unsigned credits, uint8_t *memory);
void rpcrdma_back_destroy(struct rpcrdma_back *b);
size_t rpcrdma_back_bytes(unsigned credits);
/* On the poller.  True: the message answers a call, and was taken; when its
 * Receive has been given back, rpcrdma_back_resume() is due. */
bool rpcrdma_back_take(struct rpcrdma_back *b, const uint8_t *data,
		       uint32_t len);
/* On the poller: lets the next call go out, whose reply needs that Receive. */
void rpcrdma_back_resume(struct rpcrdma_back *b);
/* On the poller: the limit of the connection's Sends can be lower now.  Refuses
 * the calls that wait and are too long. */
void rpcrdma_back_limit(struct rpcrdma_back *b);
/* True if a call was sent @ms or longer before @now.  Any thread. */
bool rpcrdma_back_overdue(struct rpcrdma_back *b, uint64_t now, uint32_t ms);
/* On the poller: the connection is gone, and fails all calls. */
void rpcrdma_back_kill(struct rpcrdma_back *b);

#endif
