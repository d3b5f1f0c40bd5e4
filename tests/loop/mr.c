/* SPDX-License-Identifier: BSD-2-Clause */
/* mr - registrations: the memory that each side can access. */
#include "tests/loop/impl.h"

#include <errno.h>
#include <stdlib.h>

/* A handle is a slot and a generation: an old one stays refused. */
enum { GENERATION_BITS = 16 };

static struct mr *loop_mr_find(struct device *d, uint32_t handle)
{
	unsigned slot = handle >> GENERATION_BITS;
	struct mr *mr;

	if (slot >= d->nslots)
		return NULL;
	mr = d->mrs[slot];
	return mr && mr->base.lkey == handle ? mr : NULL;
}

static int loop_mr_find_slot(struct device *d, unsigned *slot)
{
	struct mr **mrs;
	unsigned n = d->nslots;

	for (unsigned i = 0; i < n; i++) {
		if (!d->mrs[i]) {
			*slot = i;
			return 0;
		}
	}
	if (n == 1u << (32 - GENERATION_BITS))
		return -ENOMEM;
	mrs = realloc(d->mrs, (n ? 2 * n : 64) * sizeof(struct mr *));
	if (!mrs)
		return -ENOMEM;
	d->mrs = mrs;
	d->nslots = n ? 2 * n : 64;
	for (unsigned i = n; i < d->nslots; i++)
		d->mrs[i] = NULL;
	*slot = n;
	return 0;
}

static void loop_mr_count(struct device *d, const struct mr *mr, int sign)
{
	size_t bytes = sign < 0 ? -mr->base.len : mr->base.len;

	mutex_lock(&d->p->lock);
	d->p->counts.mrs += (unsigned)sign;
	d->p->counts.mr_bytes += bytes;
	if (d->side == PASSIVE)
		d->p->counts.passive_bytes += bytes;
	mutex_unlock(&d->p->lock);
}

static bool mr_fails(struct provider *p)
{
	unsigned one_in = p->options.seed ? p->options.chance.mr : 0;
	bool fails = false;

	if (one_in) {
		mutex_lock(&p->lock);
		fails = loop_roll(&p->random, one_in) == 0;
		mutex_unlock(&p->lock);
	}
	return fails;
}

int loop_mr_create(struct fabric_device *dev, void *addr, size_t len,
		   unsigned access, struct fabric_mr **out)
{
	struct device *d = container_of(dev, struct device, base);
	struct mr *mr = calloc(1, sizeof(*mr));
	int err;

	if (!mr)
		return -ENOMEM;
	if (mr_fails(d->p)) {
		free(mr);
		return -ENOMEM;
	}
	pthread_rwlock_wrlock(&d->mr_lock);
	err = loop_mr_find_slot(d, &mr->slot);
	if (err == 0) {
		d->generation = d->generation % 0xffff + 1;
		mr->base.lkey = mr->slot << GENERATION_BITS | d->generation;
		mr->base.rkey = mr->base.lkey;
		mr->base.addr = addr;
		mr->base.len = len;
		mr->base.dev = dev;
		mr->access = access;
		d->mrs[mr->slot] = mr;
	}
	pthread_rwlock_unlock(&d->mr_lock);
	if (err < 0) {
		free(mr);
		return err;
	}
	loop_mr_count(d, mr, 1);
	*out = &mr->base;
	return 0;
}

int loop_mr_destroy(struct fabric_mr *base)
{
	struct mr *mr = container_of(base, struct mr, base);
	struct device *d = container_of(base->dev, struct device, base);

	pthread_rwlock_wrlock(&d->mr_lock);
	d->mrs[mr->slot] = NULL;
	pthread_rwlock_unlock(&d->mr_lock);
	loop_mr_count(d, mr, -1);
	free(mr);
	return 0;
}

void loop_mr_bind(struct fabric_mr *base, struct fabric_conn *c)
{
	struct mr *mr = container_of(base, struct mr, base);
	struct device *d = container_of(base->dev, struct device, base);

	pthread_rwlock_wrlock(&d->mr_lock);
	mr->only = c;
	pthread_rwlock_unlock(&d->mr_lock);
}

int loop_mr_window(struct fabric_mr *base, struct fabric_conn *c, void *addr,
		   size_t len, unsigned access, struct fabric_mr **out)
{
	struct mr *mr = container_of(base, struct mr, base);
	int err;

	if (!(mr->access & FABRIC_BINDABLE))
		return -EINVAL;
	err = loop_mr_create(base->dev, addr, len, access, out);
	if (err == 0)
		loop_mr_bind(*out, c);
	return err;
}

static bool loop_mr_covers(const struct mr *mr, uint64_t addr, uint64_t len)
{
	uint64_t start = (uintptr_t)mr->base.addr;

	return addr >= start && len <= mr->base.len &&
	       addr - start <= mr->base.len - len;
}

bool loop_mr_local_ok(struct device *d, const struct fabric_sge *sge,
		      unsigned access)
{
	struct mr *mr;
	bool ok;

	pthread_rwlock_rdlock(&d->mr_lock);
	mr = loop_mr_find(d, sge->lkey);
	ok = mr && loop_mr_covers(mr, (uintptr_t)sge->addr, sge->len) &&
	     (mr->access & access) == access;
	pthread_rwlock_unlock(&d->mr_lock);
	return ok;
}

/* Finds a region that the peer of @c has a right of @access to, or NULL. */
static struct mr *find_remote(const struct fabric_conn *c, uint32_t handle,
			      unsigned access)
{
	struct device *d = container_of(c->dev, struct device, base);
	struct mr *mr = loop_mr_find(d, handle);

	if (!mr || mr->invalidated || !(mr->access & access))
		return NULL;
	return mr->only && mr->only != c ? NULL : mr;
}

void *loop_mr_remote(const struct fabric_conn *c, uint32_t handle,
		     uint64_t offset, uint64_t len, unsigned access)
{
	struct mr *mr = find_remote(c, handle, access);

	if (!mr || !loop_mr_covers(mr, offset, len))
		return NULL;
	return (uint8_t *)mr->base.addr +
	       (offset - (uintptr_t)mr->base.addr);
}

bool loop_mr_invalidate(const struct fabric_conn *c, uint32_t handle)
{
	struct device *d = container_of(c->dev, struct device, base);
	struct mr *mr;

	pthread_rwlock_wrlock(&d->mr_lock);
	mr = find_remote(c, handle, FABRIC_REMOTE_READ | FABRIC_REMOTE_WRITE);
	if (mr)
		mr->invalidated = true;
	pthread_rwlock_unlock(&d->mr_lock);
	return mr;
}
