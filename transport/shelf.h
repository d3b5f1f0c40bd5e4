/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shelf - small buffers that a thread has at hand.
 *
 * Without it, each READ of 4 KiB takes the pool's lock twice, and so that
 * lock's cache lines limit the speed of all pollers together.
 *
 * A shelf has unused buffers of the smallest class.  All were last used by one
 * flow, and still count as held by it.  A thread takes from and puts on one
 * shelf; threads beyond SHELVES share.  The pool clears the shelves when it has
 * no buffer for a request, and keeps them empty meanwhile, so no request waits
 * for a buffer on a shelf.
 *
 * Any thread, everything.  A shelf's lock comes behind the pool's.
 */
#pragma once

#include <stdatomic.h>

#include "lib/thread.h"
#include "transport/pool.h"

#define SHELVES		128u
#define SHELF_BUF_SIZE	(4u << 10)
#define SHELF_BUFS_MAX	32u

struct shelf {
	pthread_mutex_t	 lock;		/* guards all below */
	struct buf	*bufs;
	uint32_t	 n;
	uint8_t		 flow;		/* of all bufs; valid if n > 0 */
} __attribute__((aligned(64)));

/* No two threads that have separate shelves write to one cache line. */
static_assert(sizeof(struct shelf) == 64, "a shelf is a cache line");

/* The shelves of a pool. */
struct shelves {
	struct shelf	*shelf;		/* SHELVES of them */
	uint32_t	 most;		/* buffers on each */
	atomic_bool	 closed;	/* nothing is put on them */
};

/* For a pool of @max_bytes, of which shelves have a sixteenth at most.  0 or
 * -errno. */
int shelves_init(struct shelves *all, size_t max_bytes);
/* All shelves are clear. */
void shelves_fini(struct shelves *all);

/* Takes a buffer of @flow from this thread's shelf.  NULL: the shelf has
 * none. */
struct buf *shelf_take(struct shelves *all, uint8_t flow);
/* Puts @b on this thread's shelf.  False: it is full or closed, or has buffers
 * of another flow. */
bool shelf_put(struct shelves *all, struct buf *b);
/* Takes all buffers from this thread's shelf if they are not @flow's; chained
 * by next. */
struct buf *shelf_take_others(struct shelves *all, uint8_t flow);
/* Takes all buffers from the @i-th shelf; chained by next. */
struct buf *shelf_clear(struct shelves *all, unsigned i);
