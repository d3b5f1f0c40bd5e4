/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * regions - the memory that a requester's calls lend to the responder.
 *
 * Operation: each segment of a chunk is lent by a handle.  On a device that
 * does not pin memory a registration is cheap, so each segment gets a separate
 * one that ends with the call (RFC 8166 section 8.1.3).  On a device that pins
 * memory the segment can use the handle of a longer registration: of the region
 * that the caller names, or of a piece of the cache.  When the limit of locked
 * memory is reached, unused pieces give way, and a segment whose region is not
 * registered gets a separate handle.  With windows, a longer registration is
 * for windows alone, and the segment gets one of these instead.  Windows of a
 * dma-buf don't exist: with windows, each segment of one gets a separate
 * handle.
 *
 * Ownership: a caller's region is the caller's memory; its registration is the
 * connection's, and ends with that.  Pieces of the cache are ours.
 *
 * Threads: all on the loop.
 */
#pragma once

#include <sys/uio.h>

#include <urcu/list.h>

#include "transport/fabric/fabric.h"

struct rpcrdma_region {
	/* Set before its first use.  @access: fabric_access bits. */
	void		    *addr;
	size_t		     len;
	unsigned	     access;
	/* Borrowed; NULL: the memory is not another device's. */
	const struct fabric_dmabuf *dmabuf;

	struct rpcrdma_regions *all;	/* borrowed while it has an mr */
	struct fabric_mr    *mr;	/* NULL: not registered now */
	unsigned	     uses;	/* segments lent */
	bool		     cached;	/* ours: in the cache, */
	bool		     forgotten;	/* or it was */
	struct cds_list_head link;	/* while it has an mr */
};

/* The regions of a connection. */
struct rpcrdma_regions {
	struct fabric_conn  *fc;	/* borrowed */
	bool		     pays;	/* registrations can be longer, */
	bool		     windows;	/* and are lent by windows */
	size_t		     max_bytes;	/* of the cache; 0: no cache */
	unsigned	     max_pieces;
	struct cds_list_head named;	/* the callers', and pieces that are
					 * forgotten */
	struct cds_list_head cache;	/* the latest used first */
	size_t		     bytes;	/* of the cache */
	unsigned	     pieces;
	uint64_t	     registered; /* registrations made */
	uint64_t	     reused;	/* segments that needed none */
};

/* A segment: @len bytes at @addr, which @mr covers. */
struct rpcrdma_lent {
	struct fabric_mr      *mr;
	struct fabric_mr      *window;	/* it is this; NULL: it is the region's,
					 * or its own */
	struct rpcrdma_region *region;	/* NULL: the segment has a separate
					 * mr */
	void		      *addr;
	uint32_t	       len;
	bool		       once;	/* nothing of it is cached */
	bool		       may_window; /* within the limit of windows */
};

void rpcrdma_regions_init(struct rpcrdma_regions *all, struct fabric_conn *fc,
			  bool windows, size_t max_bytes, unsigned max_pieces);
/* Ends all registrations.  All loans have ended. */
void rpcrdma_regions_fini(struct rpcrdma_regions *all);

/*
 * Registers a caller's region, if it is not and that saves anything; one of a
 * dma-buf is tried even so.  0 or -errno: -EOPNOTSUPP, the fabric or its device
 * knows no dma-bufs.
 */
int rpcrdma_region_register(struct rpcrdma_regions *all,
			    struct rpcrdma_region *region);
/* Ends its registration.  Nothing of it is lent.  0; or -errno, when the device
 * did not do it: then the connection ends. */
int rpcrdma_region_deregister(struct rpcrdma_region *region);

/*
 * Lends the segment that @out says, from its addr on: with @access, to the peer
 * of the connection alone where the fabric can.  @region covers it, or is NULL.
 * 0 or -errno.
 */
int rpcrdma_regions_lend(struct rpcrdma_regions *all,
			 struct rpcrdma_region *region, unsigned access,
			 struct rpcrdma_lent *out);
/* Takes it back.  Afterwards the peer can't reach the memory by @lent, unless
 * it had the handle of a longer registration.  0 or -errno: the device did not
 * end a registration that was to end. */
int rpcrdma_regions_take_back(struct rpcrdma_regions *all,
			      struct rpcrdma_lent *lent);

static inline bool rpcrdma_overlaps(const void *a, size_t a_len,
				    const void *b, size_t b_len)
{
	uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

	return x < y ? y - x < a_len : x - y < b_len;
}

/* Drops all pieces of the cache that have a byte of this memory: at once, or
 * when the calls that use them are done. */
void rpcrdma_regions_forget(struct rpcrdma_regions *all, const void *addr,
			    size_t len);
