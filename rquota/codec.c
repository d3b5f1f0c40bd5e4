/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments and results of rquota: rpcsvc/rquota.x, and Linux's version 2.
 * Pure. */
#include "rquota/proc.h"

#include <errno.h>

/* Clients count blocks of a kilobyte.  They take larger ones, powers of two,
 * where 32 bits would not be enough. */
#define BLOCK		1024u
#define BLOCK_MAX	(1u << 30)

/* The words of sq_dqblk. */
#define SET_WORDS	8u

bool rquota_get1(struct xdr_in *x, void *args)
{
	struct rquota_args *a = args;

	a->path = xdr_get_opaque(x, WALK_PATH_MAX);
	a->type = RQUOTA_USER;
	a->id = xdr_get_u32(x);
	return xdr_ok(x);
}

bool rquota_get2(struct xdr_in *x, void *args)
{
	struct rquota_args *a = args;

	a->path = xdr_get_opaque(x, WALK_PATH_MAX);
	a->type = xdr_get_u32(x);
	a->id = xdr_get_u32(x);
	return xdr_ok(x);
}

static bool get_set(struct xdr_in *x, unsigned words)
{
	xdr_get_u32(x);			/* the command */
	xdr_get_opaque(x, WALK_PATH_MAX);
	xdr_get_fixed(x, words * 4);
	return xdr_ok(x);
}

bool rquota_get_set1(struct xdr_in *x, void *args)
{
	return get_set(x, 1 + SET_WORDS);	/* the id */
}

bool rquota_get_set2(struct xdr_in *x, void *args)
{
	return get_set(x, 2 + SET_WORDS);	/* the id and the type */
}

static uint32_t saturated(uint64_t n)
{
	return (uint32_t)MIN(n, (uint64_t)UINT32_MAX);
}

/* Rounds up: 0 would mean no limit. */
static uint64_t to_blocks(uint64_t bytes, uint32_t size)
{
	return bytes / size + (bytes % size != 0);
}

/* The smallest size of a block in which 32 bits count @u. */
static uint32_t block_size(const struct vfs_quota_use *u)
{
	uint64_t limit = MAX(u->soft, u->hard);
	uint64_t most = MAX(u->used, limit);
	uint32_t size = BLOCK;

	while (size < BLOCK_MAX && to_blocks(most, size) > UINT32_MAX)
		size <<= 1;
	return size;
}

/*
 * The seconds left, negative after the end, as Linux's client reads it.  0: no
 * time is running.
 */
static uint32_t time_left(int64_t ends, int64_t now)
{
	int64_t left;

	if (ends == 0)
		return 0;
	if (__builtin_sub_overflow(ends, now, &left))
		left = ends < 0 ? INT64_MIN : INT64_MAX;
	if (left == 0)
		left = -1;
	left = MIN(left, (int64_t)INT32_MAX);
	return (uint32_t)MAX(left, (int64_t)INT32_MIN);
}

void rquota_put(struct xdr_out *x, const void *res)
{
	const struct rquota_res *r = res;
	const struct vfs_quota_use *b = &r->quota.bytes, *f = &r->quota.files;
	uint32_t size = block_size(b);

	xdr_put_u32(x, r->status);
	if (r->status != Q_OK)
		return;
	xdr_put_u32(x, size);
	xdr_put_bool(x, true);		/* only active ones are told */
	xdr_put_u32(x, saturated(to_blocks(b->hard, size)));
	xdr_put_u32(x, saturated(to_blocks(b->soft, size)));
	xdr_put_u32(x, saturated(to_blocks(b->used, size)));
	xdr_put_u32(x, saturated(f->hard));
	xdr_put_u32(x, saturated(f->soft));
	xdr_put_u32(x, saturated(f->used));
	xdr_put_u32(x, time_left(b->ends, r->now));
	xdr_put_u32(x, time_left(f->ends, r->now));
}

enum rquota_status rquota_status(int err)
{
	switch (-err) {
	case 0:
		return Q_OK;
	case EPERM:
	case EACCES:
		return Q_EPERM;
	default:
		return Q_NOQUOTA;
	}
}
