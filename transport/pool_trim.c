/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_trim - the regions of a pool, shown to devices, given back, and told. */
#include "transport/pool_priv.h"

#include <sys/mman.h>

#include "lib/stats.h"

STAT(pool_trims, "unused regions of payload buffers returned to the system");

int pool_observe(struct pool *pool, struct pool_observer *o)
{
	int err = 0;

	mutex_lock(&pool->growth);
	for (uint32_t i = 0; i < pool->nregions && !err; i++)
		err = o->add(o, i, pool->regions[i].addr,
			     pool->regions[i].len);
	if (!err)
		cds_list_add_tail(&o->link, &pool->observers);
	mutex_unlock(&pool->growth);
	return err;
}

void pool_unobserve(struct pool *pool, struct pool_observer *o)
{
	mutex_lock(&pool->growth);
	cds_list_del(&o->link);
	mutex_unlock(&pool->growth);
}

/* With @growth held. */
static bool is_pinned(struct pool *pool)
{
	struct pool_observer *o;

	cds_list_for_each_entry(o, &pool->observers, link)
		if (o->pins)
			return true;
	return false;
}

/* The pages of a region without a buffer in use hold no data: the list of free
 * buffers is elsewhere. */
bool pool_trim(struct pool *pool)
{
	struct region *r;
	uint32_t n = 0;

	mutex_lock(&pool->growth);
	mutex_lock(&pool->lock);
	pool->refused = false;
	pool_gather(pool);
	pool_wake_grower(pool);
	mutex_unlock(&pool->lock);
	for (uint32_t i = 0; i < pool->nregions && !is_pinned(pool); i++) {
		/* The lock for each region: callers wait for it meanwhile. */
		mutex_lock(&pool->lock);
		r = &pool->regions[i];
		if (r->out || r->used) {
			r->trimmed = false;
		} else if (!r->trimmed) {
			r->trimmed = madvise(r->addr, r->len,
					     MADV_DONTNEED) == 0;
			n += r->trimmed;
		}
		r->used = false;
		mutex_unlock(&pool->lock);
	}
	mutex_unlock(&pool->growth);
	stat_add(pool_trims, n);
	return n > 0;
}

void pool_usage(struct pool *pool, size_t *taken, size_t *out)
{
	mutex_lock(&pool->lock);
	pool_gather(pool);
	*taken = pool->taken;
	*out = pool->out;
	mutex_unlock(&pool->lock);
}
