/* SPDX-License-Identifier: BSD-2-Clause */
/* regions - handles of memory, each for a segment or longer. */
#include "transport/rpcrdma/regions.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/util.h"

void rpcrdma_regions_init(struct rpcrdma_regions *all, struct fabric_conn *fc,
			  bool windows, size_t max_bytes, unsigned max_pieces)
{
	const struct fabric_limits *limits = &fc->dev->limits;

	/* On a device that pins memory a long registration pays. */
	*all = (struct rpcrdma_regions){
		.fc = fc, .pays = limits->pins && (!windows || limits->windows),
		.windows = windows && limits->windows,
		.max_bytes = max_bytes, .max_pieces = max_pieces };
	CDS_INIT_LIST_HEAD(&all->named);
	CDS_INIT_LIST_HEAD(&all->cache);
}

/* A piece of the cache is gone with its registration.  If the device does not
 * end that, the connection is. */
static int end_registration(struct rpcrdma_region *region)
{
	struct fabric_conn *fc = region->all->fc;
	int err = fabric_mr_destroy(region->mr);

	region->mr = NULL;
	cds_list_del(&region->link);
	if (region->cached || region->forgotten)
		free(region);
	if (err < 0)
		fabric_close(fc);
	return err;
}

static void end_listed(struct cds_list_head *list)
{
	struct rpcrdma_region *region, *next;

	cds_list_for_each_entry_safe(region, next, list, link)
		end_registration(region);
}

void rpcrdma_regions_fini(struct rpcrdma_regions *all)
{
	end_listed(&all->named);
	end_listed(&all->cache);
	all->bytes = all->pieces = 0;
}

/* ---- the cache */

static void uncache(struct rpcrdma_regions *all, struct rpcrdma_region *piece)
{
	all->bytes -= piece->len;
	all->pieces--;
	piece->cached = false;
	piece->forgotten = true;
	cds_list_move(&piece->link, &all->named);
	if (piece->uses == 0)
		end_registration(piece);
}

/* The piece that was unused for longest, or NULL: all are in use. */
static struct rpcrdma_region *oldest_idle(struct rpcrdma_regions *all)
{
	struct rpcrdma_region *piece;

	cds_list_for_each_entry_reverse(piece, &all->cache, link)
		if (piece->uses == 0)
			return piece;
	return NULL;
}

/* Makes an mr of @len bytes at @addr, which are the region's if it is one. */
static int make_mr(struct fabric_conn *fc,
		   const struct rpcrdma_region *region, struct iovec at,
		   unsigned access, struct fabric_mr **out)
{
	struct fabric_dmabuf part;

	if (!region || !region->dmabuf)
		return fabric_mr_create_for(fc, at.iov_base, at.iov_len, access,
					    out);
	part = *region->dmabuf;
	part.offset += (uintptr_t)at.iov_base - (uintptr_t)part.addr;
	part.addr = at.iov_base;
	part.len = at.iov_len;
	return fabric_mr_create_dmabuf(fc, &part, access, out);
}

/* Registers memory.  The cache gives way when the limit of locked memory is
 * reached. */
static int register_for(struct rpcrdma_regions *all,
			const struct rpcrdma_region *region, struct iovec at,
			unsigned access, struct fabric_mr **out)
{
	struct rpcrdma_region *old;
	int err;

	while ((err = make_mr(all->fc, region, at, access,
			      out)) == -ENOMEM &&
	       (old = oldest_idle(all)))
		uncache(all, old);
	if (err < 0)
		return err;
	all->registered++;
	return 0;
}

/* With windows, these decide who has which access. */
static int register_longer(struct rpcrdma_regions *all,
			   struct rpcrdma_region *region)
{
	const struct iovec whole = { region->addr, region->len };

	return register_for(all, region, whole, all->windows ?
			    FABRIC_BINDABLE : region->access, &region->mr);
}

static struct rpcrdma_region *find_piece(struct rpcrdma_regions *all,
					 const struct rpcrdma_lent *lent,
					 unsigned access)
{
	uintptr_t at = (uintptr_t)lent->addr;
	struct rpcrdma_region *piece;

	cds_list_for_each_entry(piece, &all->cache, link) {
		uintptr_t start = (uintptr_t)piece->addr;

		if (piece->access == access && at >= start &&
		    at - start <= piece->len &&
		    lent->len <= piece->len - (at - start))
			return piece;
	}
	return NULL;
}

/* Makes room for a new piece; false: it can't. */
static bool evict_for(struct rpcrdma_regions *all, size_t len)
{
	struct rpcrdma_region *piece;

	if (len > all->max_bytes)
		return false;
	while (all->pieces >= all->max_pieces ||
	       all->bytes > all->max_bytes - len) {
		piece = oldest_idle(all);
		if (!piece)
			return false;
		uncache(all, piece);
	}
	return true;
}

static int cache_piece(struct rpcrdma_regions *all,
		     const struct rpcrdma_lent *lent, unsigned access,
		     struct rpcrdma_region **out)
{
	struct rpcrdma_region *piece = calloc(1, sizeof(*piece));
	int err;

	if (!piece)
		return -ENOMEM;
	piece->addr = lent->addr;
	piece->len = lent->len;
	piece->access = access;
	piece->cached = true;
	piece->all = all;
	err = register_longer(all, piece);
	if (err < 0) {
		free(piece);
		return err;
	}
	cds_list_add(&piece->link, &all->cache);
	all->bytes += piece->len;
	all->pieces++;
	*out = piece;
	return 0;
}

void rpcrdma_regions_forget(struct rpcrdma_regions *all, const void *addr,
			    size_t len)
{
	struct rpcrdma_region *piece, *next;

	cds_list_for_each_entry_safe(piece, next, &all->cache, link)
		if (rpcrdma_overlaps(piece->addr, piece->len, addr, len))
			uncache(all, piece);
}

/* ---- the callers' regions */

/* True if calls that name the region can share one registration. */
static bool is_longer(const struct rpcrdma_regions *all,
		      const struct rpcrdma_region *region)
{
	return all->pays && !(region->dmabuf && all->windows);
}

/* Each segment is registered alone.  The device's verdict can't be foreseen, so
 * this asks it, for a moment and for no peer. */
static int try_region(struct rpcrdma_regions *all,
		      const struct rpcrdma_region *region)
{
	const struct iovec whole = { region->addr, region->len };
	struct fabric_mr *mr;
	int err = register_for(all, region, whole, FABRIC_LOCAL, &mr);

	return err < 0 ? err : fabric_mr_destroy(mr);
}

int rpcrdma_region_register(struct rpcrdma_regions *all,
			    struct rpcrdma_region *region)
{
	int err;

	if (region->mr)
		return 0;
	if (!is_longer(all, region))
		return region->dmabuf ? try_region(all, region) : 0;
	err = register_longer(all, region);
	region->all = all;
	if (err == 0)
		cds_list_add(&region->link, &all->named);
	return err;
}

int rpcrdma_region_deregister(struct rpcrdma_region *region)
{
	return region->mr ? end_registration(region) : 0;
}

/* ---- segments */

/* If a window is missing, the segment gets a separate mr. */
static void lend_of(struct rpcrdma_regions *all, struct rpcrdma_region *region,
		    unsigned access, struct rpcrdma_lent *out)
{
	int err = 0;

	if (all->windows && !out->may_window)
		return;
	if (all->windows)
		err = fabric_mr_window(region->mr, all->fc, out->addr, out->len,
				       access, &out->window);
	if (err == -EOPNOTSUPP)		/* the device has no windows */
		all->pays = false;
	if (err < 0)
		return;
	region->uses++;
	out->region = region;
	out->mr = out->window ? out->window : region->mr;
}

/* Sets out->region, or leaves it NULL: the segment gets a separate mr. */
static void lend_cached(struct rpcrdma_regions *all, unsigned access,
			struct rpcrdma_lent *out)
{
	struct rpcrdma_region *piece = find_piece(all, out, access);

	if (piece) {
		all->reused++;
		cds_list_move(&piece->link, &all->cache);
	} else if (!evict_for(all, out->len) ||
		   cache_piece(all, out, access, &piece) < 0) {
		return;
	}
	lend_of(all, piece, access, out);
}

int rpcrdma_regions_lend(struct rpcrdma_regions *all,
			 struct rpcrdma_region *region, unsigned access,
			 struct rpcrdma_lent *out)
{
	const struct iovec at = { out->addr, out->len };

	out->region = NULL;
	out->window = NULL;
	if (region && is_longer(all, region)) {
		all->reused += region->mr != NULL;
		/* Else there can still be room for the segment. */
		if (rpcrdma_region_register(all, region) == 0)
			lend_of(all, region, access, out);
	} else if (all->pays && !region && !out->once) {
		lend_cached(all, access, out);
	}
	if (out->region)
		return 0;
	return register_for(all, region, at, access, &out->mr);
}

int rpcrdma_regions_take_back(struct rpcrdma_regions *all,
			      struct rpcrdma_lent *lent)
{
	struct rpcrdma_region *region = lent->region;
	int err = 0, late = 0;

	if (!region)
		return fabric_mr_destroy(lent->mr);
	if (lent->window)
		err = fabric_mr_destroy(lent->window);
	if (--region->uses == 0 && region->forgotten)
		late = end_registration(region);
	return err < 0 ? err : late;
}
