/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool - payload buffers: page aligned, in size classes, registered once.
 *
 * Memory comes in regions (of huge pages where possible) that live as long as
 * the pool.  A fabric device registers each region once, so a buffer is ready
 * for RDMA when it is allocated.
 *
 * The pool is bounded.  When it is empty that is back-pressure, not an error:
 * the caller parks its work with pool_request(), and is given a buffer when one
 * came back.  Growing the pool takes long, so callers that must not wait
 * (thread_must_not_wait) park until the pool's own thread has grown it.
 *
 * Any thread, everything.  Buffers are counted: the last put gives back.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <urcu/list.h>

#include "lib/thread.h"

/* The largest payload of a call or reply (rtmax, wtmax). */
#define POOL_PAYLOAD_MAX	(1u << 20)
/* The largest buffer: a payload, and the rest of its RPC message. */
#define POOL_BUF_MAX		(POOL_PAYLOAD_MAX + (64u << 10))

/*
 * A flow: the peers with one hash of their address.  No flow but 0, the server
 * itself, has more than half of the pool at a time, and the waiting flow that
 * has least is served first.  So one peer can't take the whole pool and leave
 * all others waiting.
 */
#define POOL_FLOWS	64

struct pool;

struct buf {
	uint8_t		*data;		/* page aligned */
	uint32_t	 size;		/* bytes at data */
	uint32_t	 region;	/* the region that it lies in */
	struct pool	*pool;		/* borrowed: outlives its buffers */
	struct ref	 ref;
	uint8_t		 size_class;
	uint8_t		 flow;		/* while it is out: its flow */
	/* Set while it is in use: a peer can still reach its memory, so the
	 * pool never hands it out again. */
	bool		 lost;
	struct buf	*next;		/* while free */
};

/* Makes a pool that takes at most @max_bytes from the system,
 * and its thread.  0 or -errno. */
int pool_create(size_t max_bytes, struct pool **out);
/* Changes the bound.  A lower one ends growth: the pool keeps the addresses
 * that it has, and their memory as pool_trim() says. */
void pool_limit(struct pool *pool, size_t max_bytes);
/* The bound, in bytes. */
size_t pool_most(struct pool *pool);
/* Frees the pool.  Every buffer must have been put. */
void pool_destroy(struct pool *pool);

/* Returns a buffer of at least @size <= POOL_BUF_MAX bytes, or NULL: park.
 * Grows the pool if need be, unless the thread must not wait. */
struct buf *pool_alloc(struct pool *pool, size_t size);
struct buf *pool_alloc_for(struct pool *pool, size_t size, uint8_t flow);
static inline void buf_get(struct buf *b)
{
	ref_get(&b->ref);
}
/* NULL is fine. */
void buf_put(struct buf *b);

/*
 * A request for a buffer, while it waits.  The pool calls ready() once, on the
 * thread that gave a buffer back or made the pool grow, with a buffer that is
 * the request's; it must not block.
 */
struct pool_request {
	void (*ready)(struct pool_request *r, struct buf *b);
	uint8_t flow;
	/* The pool's from here on. */
	uint8_t size_class;
	bool parked;
	struct cds_list_head link;
	struct buf *buf;
	struct pool_request *next;
};

/*
 * Returns a buffer of at least @size, or NULL: parks @r until its flow can have
 * one.  Then ready() is called, perhaps before this returns.  First in, first
 * out within a flow.
 */
struct buf *pool_request(struct pool *pool, size_t size,
			 struct pool_request *r);
/* Unparks @r.  False if ready() was called or is being called: the buffer is
 * the caller's. */
bool pool_cancel(struct pool *pool, struct pool_request *r);
/* True if a request is parked that no new region can serve.  Then don't hold
 * buffers without need. */
bool pool_is_short(struct pool *pool);
/* True if a request of another flow is parked that a buffer of @flow can
 * serve. */
bool pool_wants_of(struct pool *pool, uint8_t flow);

/*
 * Shows regions to the devices.  The pool calls add for each region that
 * exists, and later for each new one before its first buffer is taken: one
 * call at a time, and no buffer waits for it.  add registers memory and must
 * not allocate.  If add returns -errno, the pool does without the new region,
 * calls del for the observers that had taken it, and tries no other before
 * pool_trim().
 */
struct pool_observer {
	int  (*add)(struct pool_observer *o, uint32_t region, void *addr,
		    size_t len);
	void (*del)(struct pool_observer *o, uint32_t region);
	/* The device pins the pages of its regions: they can't be given
	 * back. */
	bool pins;
	struct cds_list_head link;
};

#define POOL_MAX_REGIONS	4096

int pool_observe(struct pool *pool, struct pool_observer *o);
void pool_unobserve(struct pool *pool, struct pool_observer *o);

/*
 * Gives back the memory of the regions of which no buffer was taken since the
 * previous call.  Their addresses stay, and new memory comes with their next
 * use.  Regions that a device pins are kept.  True if memory was given back.
 */
bool pool_trim(struct pool *pool);

/* Tells the bytes taken from the system, and the bytes of buffers in use. */
void pool_usage(struct pool *pool, size_t *taken, size_t *out);
