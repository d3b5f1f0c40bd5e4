/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entries of a directory: found by name in a hash table, walked in the
 * order of their cookies.  The node's lock guards it.
 */
#include "vfs/mem/mem.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#define MIN_BUCKETS	8
/* 1 and 2 are "." and "..". */
#define FIRST_COOKIE	3

/* Keyed: a client can't choose names that collide. */
static uint64_t name_hash(const struct mem_fs *fs, struct vfs_name name)
{
	uint64_t h;

	_Static_assert(sizeof(h) == crypto_shorthash_BYTES, "hash size");
	crypto_shorthash((uint8_t *)&h, (const uint8_t *)name.s, name.len,
			 fs->hash_key);
	return h;
}

struct mem_entry *mem_dir_find(const struct mem_fs *fs,
			       const struct mem_dir *d, struct vfs_name name)
{
	uint64_t h;
	struct mem_entry *e;

	if (d->nbuckets == 0)
		return NULL;
	h = name_hash(fs, name);
	for (e = d->buckets[h & (d->nbuckets - 1)]; e; e = e->next)
		if (e->hash == h && e->len == name.len &&
		    memcmp(e->name, name.s, name.len) == 0)
			return e;
	return NULL;
}

static int rehash(struct mem_fs *fs, struct mem_dir *d)
{
	uint32_t n = d->nbuckets ? d->nbuckets * 2 : MIN_BUCKETS;
	struct mem_entry **buckets;
	int err;

	err = mem_charge(fs, (n - d->nbuckets) * sizeof(*buckets));
	if (err < 0)
		return err;
	buckets = calloc(n, sizeof(*buckets));
	if (!buckets) {
		mem_uncharge(fs, (n - d->nbuckets) * sizeof(*buckets));
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < d->nbuckets; i++) {
		struct mem_entry *e = d->buckets[i], *next;

		for (; e; e = next) {
			next = e->next;
			e->next = buckets[e->hash & (n - 1)];
			buckets[e->hash & (n - 1)] = e;
		}
	}
	free(d->buckets);
	d->buckets = buckets;
	d->nbuckets = n;
	return 0;
}

/* Takes removed entries out of the order. */
static void compact(struct mem_dir *d)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < d->norder; i++)
		if (d->order[i].entry)
			d->order[n++] = d->order[i];
	d->norder = n;
}

/* Room for one more in the order. */
static int order_reserve(struct mem_fs *fs, struct mem_dir *d)
{
	uint32_t cap = d->cap ? d->cap * 2 : MIN_BUCKETS;
	struct mem_order *order;
	int err;

	if (d->norder < d->cap)
		return 0;
	if (d->count <= d->cap / 2) {
		compact(d);
		if (d->norder < d->cap)
			return 0;
	}
	err = mem_charge(fs, (cap - d->cap) * sizeof(*order));
	if (err < 0)
		return err;
	order = realloc(d->order, cap * sizeof(*order));
	if (!order) {
		mem_uncharge(fs, (cap - d->cap) * sizeof(*order));
		return -ENOMEM;
	}
	d->order = order;
	d->cap = cap;
	return 0;
}

static int entry_alloc(struct mem_fs *fs, struct vfs_name name,
		       struct mem_entry **out)
{
	struct mem_entry *e;
	int err = mem_charge(fs, sizeof(*e) + name.len);

	if (err < 0)
		return err;
	e = malloc(sizeof(*e) + name.len);
	if (!e) {
		mem_uncharge(fs, sizeof(*e) + name.len);
		return -ENOMEM;
	}
	e->hash = name_hash(fs, name);
	e->len = name.len;
	memcpy(e->name, name.s, name.len);
	*out = e;
	return 0;
}

int mem_dir_add(struct mem_fs *fs, struct mem_dir *d, struct vfs_name name,
		struct mem_node *node)
{
	struct mem_entry *e, **bucket;
	int err;

	err = order_reserve(fs, d);
	if (err < 0)
		return err;
	if (d->count >= d->nbuckets) {
		err = rehash(fs, d);
		if (err < 0)
			return err;
	}
	err = entry_alloc(fs, name, &e);
	if (err < 0)
		return err;
	e->node = node;
	if (d->next_cookie == 0)
		d->next_cookie = FIRST_COOKIE;
	e->cookie = d->next_cookie++;
	bucket = &d->buckets[e->hash & (d->nbuckets - 1)];
	e->next = *bucket;
	*bucket = e;
	d->order[d->norder++] = (struct mem_order){ e->cookie, e };
	d->count++;
	return 0;
}

uint32_t mem_dir_seek(const struct mem_dir *d, uint64_t cookie)
{
	uint32_t lo = 0, hi = d->norder;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (d->order[mid].cookie <= cookie)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

void mem_dir_del(struct mem_fs *fs, struct mem_dir *d, struct mem_entry *e)
{
	struct mem_entry **p = &d->buckets[e->hash & (d->nbuckets - 1)];

	while (*p != e)
		p = &(*p)->next;
	*p = e->next;
	d->order[mem_dir_seek(d, e->cookie) - 1].entry = NULL;
	d->count--;
	mem_uncharge(fs, sizeof(*e) + e->len);
	free(e);
	if (d->count == 0)
		d->norder = 0;
}

void mem_dir_fini(struct mem_fs *fs, struct mem_dir *d)
{
	while (d->norder > 0) {
		struct mem_entry *e = d->order[--d->norder].entry;

		if (!e)
			continue;
		mem_uncharge(fs, sizeof(*e) + e->len);
		free(e);
	}
	mem_uncharge(fs, d->nbuckets * sizeof(*d->buckets) +
		     d->cap * sizeof(*d->order));
	free(d->buckets);
	free(d->order);
}
