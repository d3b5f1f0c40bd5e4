/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device - the pool's memory, registered once a device.
 *
 * Ownership: counted; fabric_device.upper is a list, with one entry for each
 * pool in use.  Its lock is taken before the pool's.
 */
#include "transport/rpcrdma/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "lib/util.h"

/*
 * Read chunks are pulled into pool memory, so regions are the sinks of Reads.
 * On devices where a peer could write to a sink, regions are not sinks: pull.c
 * registers each sink by itself.
 */
static int add_region(struct pool_observer *o, uint32_t region, void *addr,
		      size_t len)
{
	struct rpcrdma_device *d = container_of(o, struct rpcrdma_device,
						observer);
	int err = fabric_mr_create(d->dev, addr, len,
				   d->dev->limits.open_sinks ? FABRIC_LOCAL :
				   FABRIC_READ_SINK, &d->mr[region]);

	if (err < 0)
		log_limited(LOG_LEVEL_ERR, "rdma %s: can't register %zu bytes: "
			    "%s", d->dev->name, len, strerror(-err));
	return err;
}

static void del_region(struct pool_observer *o, uint32_t region)
{
	struct rpcrdma_device *d = container_of(o, struct rpcrdma_device,
						observer);

	fabric_mr_destroy(d->mr[region]);
	d->mr[region] = NULL;
}

static void rpcrdma_device_destroy(struct rpcrdma_device *d)
{
	for (size_t i = 0; i < POOL_MAX_REGIONS; i++)
		if (d->mr[i])
			fabric_mr_destroy(d->mr[i]);
	free(d);
}

static int rpcrdma_device_create(struct fabric_device *dev, struct pool *pool,
				 struct rpcrdma_device **out)
{
	struct rpcrdma_device *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -ENOMEM;
	d->refs = 1;
	d->dev = dev;
	d->pool = pool;
	d->observer.add = add_region;
	d->observer.pins = dev->limits.pins;
	d->observer.del = del_region;
	err = pool_observe(pool, &d->observer);
	if (err < 0) {
		rpcrdma_device_destroy(d);
		return err;
	}
	*out = d;
	return 0;
}

int rpcrdma_device_get(struct fabric_device *dev, struct pool *pool,
		       struct rpcrdma_device **out)
{
	struct rpcrdma_device *d;
	int err = 0;

	mutex_lock(&dev->lock);
	for (d = dev->upper; d && d->pool != pool; d = d->next)
		;
	if (d) {
		d->refs++;
	} else {
		err = rpcrdma_device_create(dev, pool, &d);
		if (err == 0) {
			d->next = dev->upper;
			dev->upper = d;
		}
	}
	mutex_unlock(&dev->lock);
	if (err == 0)
		*out = d;
	return err;
}

static void unlink_from(struct fabric_device *dev, struct rpcrdma_device *d)
{
	struct rpcrdma_device *prev = dev->upper;

	if (prev == d) {
		dev->upper = d->next;
		return;
	}
	while (prev->next != d)
		prev = prev->next;
	prev->next = d->next;
}

void rpcrdma_device_put(struct rpcrdma_device *d)
{
	struct fabric_device *dev = d->dev;
	bool last;

	mutex_lock(&dev->lock);
	last = --d->refs == 0;
	if (last)
		unlink_from(dev, d);
	mutex_unlock(&dev->lock);
	if (!last)
		return;
	pool_unobserve(d->pool, &d->observer);
	rpcrdma_device_destroy(d);
}
