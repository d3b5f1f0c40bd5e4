/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * requester - the client end of RPC-over-RDMA version 1 (RFC 8166), on any
 * fabric.
 *
 * Operation: asynchronous.  A request says where the call lies and which chunks
 * go with it; its done() is called on the requester's loop when the reply has
 * arrived, or can't arrive.  Requests beyond the credits that the responder
 * grants wait in line; before the first reply there is one credit.
 *
 * Ownership: a request and all memory it names are lent to the requester until
 * done().  When done() is called, the responder can no longer reach that memory
 * by the handles of this request, unless it lies in a region or the cache and
 * the device pins memory (regions.h).
 *
 * Errors: the end of the connection fails all outstanding requests.  The
 * requester neither reconnects nor sends again.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include <urcu/list.h>

#include "transport/rpcrdma/regions.h"

struct rpcrdma_requester;

/* Zero is the default of every field. */
struct rpcrdma_requester_options {
	unsigned credits;	/* calls in flight, at most: 128 */
	unsigned inline_size;	/* longest Send made or taken: 4096 */
	unsigned segment_size;	/* a chunk is cut into segments of at most this,
				 * each with a separate handle */
	bool	 no_private;	/* don't speak RFC 8797 */
	bool	 no_invalidate;	/* don't allow Send With Invalidate */
	/* Not 0: ask for the responder's limits before the first call (RFC
	 * 5666 section 6), by a call with this xid. */
	uint32_t config_xid;
	unsigned read_depth;	/* Reads that the responder can have in flight:
				 * 16 */
	size_t	 cache_bytes;	/* of registrations that outlive their request,
				 * where these cost; 0: none */
	unsigned cache_pieces;	/* such registrations, at most */
	/* Longer registrations are lent by windows, which end with the request;
	 * a device without windows gets no such registrations. */
	bool	 windows;
	/* The Read-Read transfer model (RFC 5666 section 3.8): no call offers a
	 * Reply chunk; a long reply is read from the responder's memory. */
	bool	 read_read;
	/*
	 * Not 0: RDMA_MSGP (RFC 5666 section 3.9).  An opaque of at least
	 * @pad_thresh bytes that ends a call, and would be its only Read chunk,
	 * goes inline if the call fits a Send then, moved to a multiple of this
	 * number.  Until a call is refused: RFC 8166 section 4.6.1 lets
	 * responders do that.
	 */
	unsigned pad_align;
	unsigned pad_thresh;
	/*
	 * Calls of the responder in progress (RFC 8167), and on the loop, to
	 * answer one: returns the length of the RPC reply written to @reply,
	 * which has @room bytes; 0: no reply is sent.  Must not block.
	 */
	unsigned back_credits;
	uint32_t (*answer)(void *arg, const uint8_t *call, uint32_t len,
			   uint8_t *reply, uint32_t room);
	/* On the loop: 0 when connected; -errno (or 0 again) when it ended. */
	void	 (*connected)(void *arg);
	void	 (*closed)(void *arg, int err);
	void	 *arg;
};

#define RPCRDMA_REQUEST_READS	4
#define RPCRDMA_REQUEST_WRITES	4
/* Segments of all chunks of one request. */
#define RPCRDMA_REQUEST_SEGS	64

/* @len bytes at @addr; or if @niov is not 0, in so many pieces. */
struct rpcrdma_memory {
	void	*addr;
	uint32_t len;
	unsigned niov;
	const struct iovec *iov;	/* together @len bytes */
	struct rpcrdma_region *region;	/* which covers it; NULL: none */
};

static inline struct rpcrdma_memory rpcrdma_memory_at(void *addr, uint32_t len)
{
	return (struct rpcrdma_memory){ .addr = addr, .len = len };
}

/* True if it is another device's: the CPU must not touch it. */
static inline bool rpcrdma_is_dmabuf(const struct rpcrdma_memory *mem)
{
	return mem->region && mem->region->dmabuf;
}

struct rpcrdma_request {
	/* The call, from its xid on, without the data of Read chunks. */
	const void	*call;
	uint32_t	 call_len;
	/* Send the call in a Position-Zero Read chunk, as is done anyway if it
	 * is too long for a Send. */
	bool		 long_call;

	/* Read chunks, ascending; roundup can be part of them or not. */
	unsigned	 nreads;
	struct {
		uint32_t position;
		struct rpcrdma_memory mem;
	} read[RPCRDMA_REQUEST_READS];
	/* Write chunks; one of no length is an empty chunk. */
	unsigned	 nwrites;
	struct rpcrdma_memory write[RPCRDMA_REQUEST_WRITES];
	/* The Reply chunk, if @reply has memory; not a dma-buf.  With
	 * read_read, the place for a reply that is read; a call with Write
	 * chunks gets none.  One piece. */
	struct rpcrdma_memory reply;
	/* Its memory is not to be cached.  Changed on the loop, once it is
	 * queued. */
	bool		 uncached;

	/* The requester's report about @self; it does not touch the other
	 * fields. */
	void (*done)(struct rpcrdma_request *self);

	/*
	 * The result, valid in done() and after, but reply_data only in done().
	 * Status is 0; -EREMOTEIO: an RDMA_ERROR with @errcode; -EIO: a
	 * malformed reply; -ENOTCONN; -EMSGSIZE: the chunk lists are too long,
	 * or a reply that is to be read; -ENOMEM.
	 */
	int		 status;
	uint32_t	 errcode;
	bool		 nomsg;		/* it is in @reply */
	const uint8_t	*reply_data;	/* from the xid on */
	uint32_t	 reply_len;
	uint32_t	 written[RPCRDMA_REQUEST_WRITES];
	/* The responder can have the call since this time, CLOCK_MONOTONIC ns;
	 * 0: it has not.  Any thread reads it; the caller clears it. */
	_Atomic uint64_t sent;

	/* The requester's fields. */
	struct cds_list_head link;
	bool		 revoked;
};

/*
 * Connects to @addr.  May wait for the network to resolve it: don't call it on
 * a loop.  0, and connected() or closed() follows; or -errno.
 */
int rpcrdma_requester_create(const struct fabric *fabric,
			     const struct sockaddr *addr, struct loop *loop,
			     const struct rpcrdma_requester_options *options,
			     struct rpcrdma_requester **out);
/* Queues a request.  Any thread. done() follows, but is never called from
 * here. */
void rpcrdma_requester_call(struct rpcrdma_requester *r,
			    struct rpcrdma_request *request);
/*
 * Returns the memory of a queued request to the caller, before its done(): ends
 * the handles, so a responder that uses them later loses the connection.
 * done() still follows, but without a result: an unsent request is never sent,
 * and a reply is dropped.  False: the request keeps its memory, as some of it
 * lies in a longer registration, is being read into, or can't be had back
 * before the connection ends, which this starts.  On the loop.
 */
bool rpcrdma_requester_revoke(struct rpcrdma_requester *r,
			      struct rpcrdma_request *request);
/* Starts the end of the connection.  Any thread, any number of times. */
void rpcrdma_requester_close(struct rpcrdma_requester *r);
/* Closes, waits until all requests are done, and frees.  Not on the loop. */
void rpcrdma_requester_destroy(struct rpcrdma_requester *r);

struct rpcrdma_requester_info {
	uint32_t send_inline;	/* thresholds in use */
	uint32_t recv_inline;
	unsigned credits;	/* granted last */
	unsigned in_flight;
	unsigned invalidated;	/* handles, by the responder */
	unsigned discarded;	/* malformed messages */
	unsigned fetched;	/* replies that were read */
	bool	 private_data;	/* the responder speaks RFC 8797, */
	bool	 invalidates;	/* and knows Send With Invalidate */
	bool	 configured;	/* it told its limits */
	uint64_t registered;	/* registrations of requests' memory, */
	uint64_t reused;	/* and segments that needed none */
	unsigned read_depth;	/* Reads that the responder was offered */
	const char *fabric;	/* borrowed: the provider's, */
	const char *device;	/* the device's */
	const struct fabric_info *conn;	/* as the fabric has it */
};

/* The regions of its connection.  On the loop. */
struct rpcrdma_regions *rpcrdma_requester_regions(struct rpcrdma_requester *r);

/* On the loop. */
void rpcrdma_requester_info(const struct rpcrdma_requester *r,
			    struct rpcrdma_requester_info *info);
