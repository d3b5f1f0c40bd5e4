/* SPDX-License-Identifier: BSD-2-Clause */
/* NLM arguments and results of versions 1, 3 and 4.  Pure. */
#include "nlm/proc.h"

#include <errno.h>

/* LM_MAXSTRLEN: a longer name than we keep is an error of its own. */
#define STRING_MAX	1024u

static void get_cookie(struct xdr_in *x, struct nlm_args *a)
{
	a->cookie = xdr_get_opaque(x, NLM_OBJ_MAX);
}

/* In 32 bits, a range that goes beyond them goes to the end. */
static void get_range1(struct xdr_in *x, struct nlm_args *a)
{
	a->off = xdr_get_u32(x);
	a->len = xdr_get_u32(x);
	if (a->off + a->len > UINT32_MAX)
		a->len = 0;
}

static void get_lock(struct xdr_in *x, struct nlm_args *a, bool wide)
{
	a->name = xdr_get_opaque(x, STRING_MAX);
	a->fh = xdr_get_opaque(x, NLM_FH_MAX);
	a->oh = xdr_get_opaque(x, NLM_OBJ_MAX);
	a->svid = xdr_get_u32(x);
	if (wide) {
		a->off = xdr_get_u64(x);
		a->len = xdr_get_u64(x);
	} else {
		get_range1(x, a);
	}
}

static bool get_test(struct xdr_in *x, struct nlm_args *a, bool wide)
{
	get_cookie(x, a);
	a->exclusive = xdr_get_bool(x);
	get_lock(x, a, wide);
	return xdr_ok(x);
}

static bool get_cancel(struct xdr_in *x, struct nlm_args *a, bool wide)
{
	get_cookie(x, a);
	a->block = xdr_get_bool(x);
	a->exclusive = xdr_get_bool(x);
	get_lock(x, a, wide);
	return xdr_ok(x);
}

static bool get_lock_args(struct xdr_in *x, struct nlm_args *a, bool wide)
{
	get_cancel(x, a, wide);
	a->reclaim = xdr_get_bool(x);
	a->state = xdr_get_u32(x);
	return xdr_ok(x);
}

static bool get_unlock(struct xdr_in *x, struct nlm_args *a, bool wide)
{
	get_cookie(x, a);
	get_lock(x, a, wide);
	return xdr_ok(x);
}

#define GETTERS(name, fn) \
	bool nlm_get_##name##1(struct xdr_in *x, void *args) \
	{ \
		*(struct nlm_args *)args = (struct nlm_args){ .len = 0 }; \
		return fn(x, args, false); \
	} \
	bool nlm_get_##name##4(struct xdr_in *x, void *args) \
	{ \
		*(struct nlm_args *)args = (struct nlm_args){ .len = 0 }; \
		return fn(x, args, true); \
	}
GETTERS(test, get_test)
GETTERS(lock, get_lock_args)
GETTERS(cancel, get_cancel)
GETTERS(unlock, get_unlock)

bool nlm_get_share(struct xdr_in *x, void *args)
{
	struct nlm_args *a = args;

	*a = (struct nlm_args){ .len = 0 };
	get_cookie(x, a);
	a->name = xdr_get_opaque(x, STRING_MAX);
	a->fh = xdr_get_opaque(x, NLM_FH_MAX);
	a->oh = xdr_get_opaque(x, NLM_OBJ_MAX);
	a->mode = xdr_get_count(x, NLM_SHARE_MODES - 1);
	a->access = xdr_get_count(x, NLM_SHARE_MODES - 1);
	a->reclaim = xdr_get_bool(x);
	return xdr_ok(x);
}

/* The parts of a result behind its status don't matter. */
bool nlm_get_res(struct xdr_in *x, void *args)
{
	struct nlm_res_args *a = args;

	a->cookie = xdr_get_opaque(x, NLM_OBJ_MAX);
	a->status = xdr_get_u32(x);
	return xdr_ok(x);
}

bool nlm_get_free_all(struct xdr_in *x, void *args)
{
	struct nlm_notify_args *a = args;

	a->name = xdr_get_opaque(x, STRING_MAX);
	a->state = xdr_get_u32(x);
	return xdr_ok(x);
}

bool nlm_get_notify(struct xdr_in *x, void *args)
{
	nlm_get_free_all(x, args);
	xdr_get_fixed(x, NLM_NOTIFY_PRIV);
	return xdr_ok(x);
}

enum nlm_status nlm_status1(enum nlm_status s)
{
	if (s <= NLM4_DENIED_GRACE_PERIOD)
		return s;
	return s == NLM4_DEADLCK ? NLM4_DENIED : NLM4_DENIED_NOLOCKS;
}

static void put_status(struct xdr_out *x, const struct nlm_res *r, bool wide)
{
	xdr_put_opaque(x, r->cookie.data, r->cookie.len);
	xdr_put_u32(x, wide ? r->status : nlm_status1(r->status));
}

void nlm_put_res1(struct xdr_out *x, const void *res)
{
	put_status(x, res, false);
}

void nlm_put_res4(struct xdr_out *x, const void *res)
{
	put_status(x, res, true);
}

/* A range that 32 bits can't say begins at their end, or goes to the file's. */
static void put_range(struct xdr_out *x, uint64_t off, uint64_t len, bool wide)
{
	if (wide) {
		xdr_put_u64(x, off);
		xdr_put_u64(x, len);
		return;
	}
	off = MIN(off, (uint64_t)UINT32_MAX);
	xdr_put_u32(x, (uint32_t)off);
	xdr_put_u32(x, len > UINT32_MAX - off ? 0 : (uint32_t)len);
}

static void put_test(struct xdr_out *x, const struct nlm_res *r, bool wide)
{
	put_status(x, r, wide);
	if ((wide ? r->status : nlm_status1(r->status)) != NLM4_DENIED)
		return;
	xdr_put_bool(x, r->exclusive);
	xdr_put_u32(x, r->svid);
	xdr_put_opaque(x, r->oh, r->oh_len);
	put_range(x, r->off, r->len, wide);
}

void nlm_put_test1(struct xdr_out *x, const void *res)
{
	put_test(x, res, false);
}

void nlm_put_test4(struct xdr_out *x, const void *res)
{
	put_test(x, res, true);
}

/* The sequence of a share is for the client's own use. */
void nlm_put_share1(struct xdr_out *x, const void *res)
{
	put_status(x, res, false);
	xdr_put_u32(x, 0);
}

void nlm_put_share4(struct xdr_out *x, const void *res)
{
	put_status(x, res, true);
	xdr_put_u32(x, 0);
}

void nlm_put_granted(struct xdr_out *x, const struct nlm_args *a, bool wide)
{
	xdr_put_opaque(x, a->cookie.data, a->cookie.len);
	xdr_put_bool(x, a->exclusive);
	xdr_put_opaque(x, a->name.data, a->name.len);
	xdr_put_opaque(x, a->fh.data, a->fh.len);
	xdr_put_opaque(x, a->oh.data, a->oh.len);
	xdr_put_u32(x, a->svid);
	put_range(x, a->off, a->len, wide);
}

int nlm_span_of(const struct nlm_args *a, struct nlm_span *at)
{
	uint64_t end;

	if (a->off > NLM_EOF)
		return -EFBIG;
	at->start = a->off;
	at->exclusive = a->exclusive;
	if (a->len == 0 || __builtin_add_overflow(a->off, a->len - 1, &end))
		end = NLM_EOF;
	at->end = MIN(end, NLM_EOF);
	return 0;
}

enum nlm_status nlm_status(int err)
{
	switch (-err) {
	case 0:
		return NLM4_GRANTED;
	case ENOLCK:
	case ENOMEM:
	case ENOBUFS:
	case EMFILE:
	case ENFILE:
		return NLM4_DENIED_NOLOCKS;
	case ETIME:			/* a reclaim comes too late */
	case ETIMEDOUT:			/* the client asks again */
	case ECANCELED:			/* ... as it does after JUKEBOX */
		return NLM4_DENIED_GRACE_PERIOD;
	case EDEADLK:
		return NLM4_DEADLCK;
	case EROFS:
		return NLM4_ROFS;
	case ESTALE:
	case EBADMSG:
		return NLM4_STALE_FH;
	case EFBIG:
	case EOVERFLOW:
		return NLM4_FBIG;
	default:
		return NLM4_FAILED;
	}
}
