/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mr - registrations: the memory that a peer can reach.
 *
 * Only a registration with a remote access has an STag: a slot, and 16 random
 * bits that a peer can't guess (RFC 5040 section 8.1.1 rule 8), new ones each
 * time.
 */
#include "transport/fabric/iwarp/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "lib/stats.h"

STAT(iwarp_mrs_exposed, "memory regions registered for peers to reach");

enum { KEY_BITS = 16 };

/* Under the lock.  0 or -errno. */
static int random_key(struct iwarp_device *d, uint32_t *key)
{
	if (d->nkeys == 0) {
		/* getrandom() gives so few bytes whole, or fails. */
		if (getrandom(d->keys, sizeof(d->keys), 0) < 0)
			return -errno;
		d->nkeys = ARRAY_SIZE(d->keys);
	}
	*key = d->keys[--d->nkeys];
	return 0;
}

static int iwarp_mr_grow(struct iwarp_device *d)
{
	unsigned n = d->nslots ? 2 * d->nslots : 64;
	struct iwarp_mr **mrs;

	if (d->nslots == (1u << (32 - KEY_BITS)) / 2)
		return -ENOMEM;
	mrs = realloc(d->mrs, n * sizeof(struct iwarp_mr *));
	if (!mrs)
		return -ENOMEM;
	for (unsigned i = d->nslots; i < n; i++)
		mrs[i] = NULL;
	d->mrs = mrs;
	d->next_slot = d->nslots;
	d->nslots = n;
	return 0;
}

/* Slots are taken in turn, to keep an old STag invalid for long. */
static int iwarp_mr_find_slot(struct iwarp_device *d, unsigned *slot)
{
	for (unsigned i = 0; i < d->nslots; i++) {
		unsigned at = (d->next_slot + i) % d->nslots;

		if (d->mrs[at])
			continue;
		*slot = at;
		d->next_slot = at + 1;
		return 0;
	}
	if (iwarp_mr_grow(d) < 0)
		return -ENOMEM;
	*slot = d->next_slot++;
	return 0;
}

/* The slots in STags begin with 1, so no STag is 0. */
static int expose(struct iwarp_device *d, struct iwarp_mr *mr)
{
	uint32_t key = 0;
	int err;

	pthread_rwlock_wrlock(&d->mr_lock);
	err = random_key(d, &key);
	if (err == 0)
		err = iwarp_mr_find_slot(d, &mr->slot);
	if (err == 0) {
		d->mrs[mr->slot] = mr;
		mr->mr.rkey = (mr->slot + 1) << KEY_BITS | key;
	}
	pthread_rwlock_unlock(&d->mr_lock);
	stat_inc(iwarp_mrs_exposed);
	return err;
}

int iwarp_mr_create(struct fabric_device *dev, void *addr, size_t len,
		    unsigned access, struct fabric_mr **out)
{
	struct iwarp_device *d = container_of(dev, struct iwarp_device, dev);
	struct iwarp_mr *mr = calloc(1, sizeof(*mr));
	int err;

	if (!mr)
		return -ENOMEM;
	mr->mr.addr = addr;
	mr->mr.len = len;
	mr->mr.dev = dev;
	mr->access = access & (FABRIC_REMOTE_READ | FABRIC_REMOTE_WRITE);
	if (mr->access) {
		err = expose(d, mr);
		if (err < 0) {
			free(mr);
			return err;
		}
	}
	*out = &mr->mr;
	return 0;
}

int iwarp_mr_destroy(struct fabric_mr *base)
{
	struct iwarp_mr *mr = container_of(base, struct iwarp_mr, mr);
	struct iwarp_device *d = container_of(base->dev, struct iwarp_device,
					      dev);

	if (mr->access) {
		pthread_rwlock_wrlock(&d->mr_lock);
		d->mrs[mr->slot] = NULL;
		pthread_rwlock_unlock(&d->mr_lock);
	}
	free(mr);
	return 0;
}

void iwarp_mr_bind(struct fabric_mr *base, struct fabric_conn *c)
{
	struct iwarp_mr *mr = container_of(base, struct iwarp_mr, mr);
	struct iwarp_device *d = container_of(base->dev, struct iwarp_device,
					      dev);

	pthread_rwlock_wrlock(&d->mr_lock);
	mr->only = c;
	pthread_rwlock_unlock(&d->mr_lock);
}

void iwarp_mr_lock(struct iwarp_device *d)
{
	pthread_rwlock_rdlock(&d->mr_lock);
}

void iwarp_mr_unlock(struct iwarp_device *d)
{
	pthread_rwlock_unlock(&d->mr_lock);
}

/* The registration, if the peer of @c may use it; or NULL. */
static struct iwarp_mr *lookup(const struct iwarp_conn *c, uint32_t stag)
{
	struct iwarp_device *d = &c->provider->device;
	unsigned slot = (stag >> KEY_BITS) - 1;
	struct iwarp_mr *mr;

	if (slot >= d->nslots)
		return NULL;
	mr = d->mrs[slot];
	if (!mr || mr->mr.rkey != stag || mr->invalidated)
		return NULL;
	return mr->only && mr->only != &c->conn ? NULL : mr;
}

enum iwarp_refusal iwarp_mr_find(const struct iwarp_conn *c, uint32_t stag,
				 uint64_t to, uint64_t len, unsigned access,
				 uint8_t **out)
{
	struct iwarp_mr *mr = lookup(c, stag);
	uint64_t start, end;

	if (!mr)
		return IWARP_NO_STAG;
	if (!(mr->access & access))
		return IWARP_ACCESS;
	if (__builtin_add_overflow(to, len, &end))
		return IWARP_WRAP;
	start = (uintptr_t)mr->mr.addr;
	if (to < start || end > start + mr->mr.len)
		return IWARP_BOUNDS;
	*out = (uint8_t *)mr->mr.addr + (to - start);
	return IWARP_OK;
}

bool iwarp_mr_invalidate(const struct iwarp_conn *c, uint32_t stag)
{
	struct iwarp_device *d = &c->provider->device;
	struct iwarp_mr *mr;
	bool done;

	pthread_rwlock_wrlock(&d->mr_lock);
	mr = lookup(c, stag);
	done = mr && mr->only;
	if (done)
		mr->invalidated = true;
	pthread_rwlock_unlock(&d->mr_lock);
	return done;
}
