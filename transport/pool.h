/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool - payload buffers: page aligned, in size classes, registered once.
 *
 * Memory comes in regions (huge pages where there are any) that live as
 * long as the pool.  A fabric device registers each region once, so a
 * buffer is ready for RDMA when it is allocated.
 *
 * The pool is bounded.  When it is empty that is back-pressure, not an
 * error: the caller parks what it was doing with pool_wait() and is called
 * when buffers came back.
 *
 * Any thread, everything.  Buffers are counted: the last put gives back.
 */
#ifndef GANNET_TRANSPORT_POOL_H
#define GANNET_TRANSPORT_POOL_H

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
 * Who takes buffers, as far as a hash of its address tells.  None but flow 0,
 * the server itself, has more than half of the pool at a time, and of those
 * who wait the one that has least is served first.  So one peer can not take
 * what there is and leave all others waiting.
 */
#define POOL_FLOWS	64

struct pool;

struct buf {
	uint8_t		*data;		/* page aligned */
	uint32_t	 size;		/* bytes at data */
	uint32_t	 region;	/* which region it lies in */
	struct pool	*pool;		/* borrowed: outlives its buffers */
	struct ref	 ref;
	uint8_t		 size_class;
	uint8_t		 flow;		/* while out: who took it */
	struct buf	*next;		/* while free */
};

/* At most @max_bytes are ever taken from the system.  0 or -ENOMEM. */
int pool_create(size_t max_bytes, struct pool **out);
/* Every buffer must have come back. */
void pool_destroy(struct pool *pool);

/* A buffer of at least @size <= POOL_BUF_MAX bytes, or NULL: park. */
struct buf *pool_alloc(struct pool *pool, size_t size);
struct buf *pool_alloc_for(struct pool *pool, size_t size, uint8_t flow);
static inline void buf_get(struct buf *b)
{
	ref_get(&b->ref);
}
/* NULL is fine. */
void buf_put(struct buf *b);

/* Called once, from the thread that gave a buffer back; must not block. */
struct pool_waiter {
	void (*ready)(struct pool_waiter *w);
	struct cds_list_head link;
	uint8_t flow;
};

/*
 * Parks @w until a buffer of @size may be had.  First in, first out, among
 * those of one flow.  It is called at once, from here, when one came back
 * meanwhile.
 */
void pool_wait(struct pool *pool, size_t size, struct pool_waiter *w);
/*
 * Only a buffer that comes back wakes a waiter, and just one.  One that was
 * called, and may not have taken a buffer after all, has the next called.
 */
void pool_pass(struct pool *pool, size_t size);
/* False when it was called already or is being called: pass. */
bool pool_wait_cancel(struct pool *pool, struct pool_waiter *w);
/* Does anybody wait?  Who holds buffers for nothing should not then. */
bool pool_is_short(struct pool *pool);

/*
 * Regions, for the devices.  add is called for each region that exists and
 * for each that comes, with the pool's lock held: it registers memory and
 * calls nothing of the pool's.  Returning -errno makes the pool do without
 * the new region; del, with the lock held too, then undoes the add of those
 * that had taken it.
 */
struct pool_observer {
	int  (*add)(struct pool_observer *o, uint32_t region, void *addr,
		    size_t len);
	void (*del)(struct pool_observer *o, uint32_t region);
	/* Its device holds on to the pages that it was shown: they can't be
	 * given back. */
	bool pins;
	struct cds_list_head link;
};

#define POOL_MAX_REGIONS	4096

int pool_observe(struct pool *pool, struct pool_observer *o);
void pool_unobserve(struct pool *pool, struct pool_observer *o);

/*
 * Gives the memory of regions back of which no buffer was taken since the call
 * before; their addresses stay, and memory comes when they are used again.
 * Where a device pins the regions nothing is given back.  True when something
 * was.
 */
bool pool_trim(struct pool *pool);

/* Bytes taken from the system, bytes in buffers that are out. */
void pool_usage(struct pool *pool, size_t *taken, size_t *out);

#endif
