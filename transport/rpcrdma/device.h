/* SPDX-License-Identifier: BSD-2-Clause */
/* device - the pool's regions, registered once for each device. */
#pragma once

#include "transport/fabric/fabric.h"
#include "transport/pool.h"

struct rpcrdma_device {
	struct rpcrdma_device *next;	/* on dev->upper; dev->lock */
	unsigned	     refs;	/* dev->lock */
	struct fabric_device *dev;	/* borrowed: outlives us */
	struct pool	    *pool;	/* borrowed */
	struct pool_observer observer;
	/* The observer writes it before a buffer of the region can be in
	 * use. */
	struct fabric_mr    *mr[POOL_MAX_REGIONS];
};

int rpcrdma_device_get(struct fabric_device *dev, struct pool *pool,
		       struct rpcrdma_device **out);
void rpcrdma_device_put(struct rpcrdma_device *d);

static inline struct fabric_sge
rpcrdma_device_sge(const struct rpcrdma_device *d, const struct buf *b,
		   uint32_t off, uint32_t len)
{
	return (struct fabric_sge){ .addr = b->data + off, .len = len,
				    .lkey = d->mr[b->region]->lkey };
}
