/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a pool, which its files share.  See pool.c. */
#pragma once

#include "transport/pool.h"
#include "transport/shelf.h"

#define NCLASSES	5u

struct region {
	void		*addr;
	size_t		 len;
	struct buf	*bufs;
	uint32_t	 out;		/* buffers of it */
	bool		 used;		/* since the last pool_trim() */
	bool		 trimmed;	/* nothing to give back */
};

struct pool {
	/* Held while the pool grows or shrinks.  Before @lock. */
	pthread_mutex_t		 growth;
	struct cds_list_head	 observers;

	/* Closed while requests are parked. */
	struct shelves		 shelves;

	/* Guards everything below.  No ready() is called under it. */
	pthread_mutex_t		 lock;
	pthread_cond_t		 wanted;	/* a region, or an end */
	pthread_t		 grower;
	bool			 ends;
	bool			 refused;	/* the last region.  None is
						 * tried before pool_trim() */
	struct buf		*free[NCLASSES];
	size_t			 max_bytes;
	size_t			 taken;
	size_t			 out;
	uint32_t		 nregions;
	struct region		 regions[POOL_MAX_REGIONS];
	size_t			 held[POOL_FLOWS];	/* of out */
	size_t			 nparked;
	struct cds_list_head	 parked[NCLASSES][POOL_FLOWS];
};

/* ---- pool.c.  With the lock held. */

/* Due after every change that lets a parked request wait for a region. */
void pool_wake_grower(struct pool *pool);
/* Takes the buffers back that lie on shelves.  True if it found some. */
bool pool_gather(struct pool *pool);
