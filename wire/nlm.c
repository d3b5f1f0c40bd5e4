/* SPDX-License-Identifier: BSD-2-Clause */
/* NLM arguments and results of versions 1, 3 and 4.  Pure. */
#include "wire/nlm.h"

#include "lib/util.h"

/* LM_MAXSTRLEN: a name longer than we keep gets a different error. */
#define STRING_MAX	1024u

static void get_cookie(struct xdr_in *x, struct nlm_args *a)
{
	a->cookie = xdr_get_opaque(x, NLM_OBJ_MAX);
}

/* In 32 bits, a range that goes beyond them goes to the end. */
static void get_range(struct xdr_in *x, struct nlm_args *a, bool wide)
{
	if (wide) {
		a->off = xdr_get_u64(x);
		a->len = xdr_get_u64(x);
		return;
	}
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
	get_range(x, a, wide);
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

/* A range that 32 bits can't express begins at their end, or goes to the
 * file's. */
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

bool nlm_get_holder(struct xdr_in *x, struct nlm_args *holder, bool wide)
{
	holder->exclusive = xdr_get_bool(x);
	holder->svid = xdr_get_u32(x);
	holder->oh = xdr_get_opaque(x, NLM_OBJ_MAX);
	get_range(x, holder, wide);
	return xdr_ok(x);
}

/* The procedure whose arguments @proc has. */
static uint32_t args_of(uint32_t proc)
{
	return proc >= NLM_TEST_MSG && proc <= NLM_GRANTED_MSG ?
	       proc - NLM_TEST_MSG + NLM_TEST : proc;
}

void nlm_put_args(struct xdr_out *x, const struct nlm_args *a, uint32_t proc,
		  bool wide)
{
	uint32_t of = args_of(proc);
	bool share = of == NLM_SHARE || of == NLM_UNSHARE;
	bool lock = of == NLM_LOCK || of == NLM_NM_LOCK;

	xdr_put_opaque(x, a->cookie.data, a->cookie.len);
	if (lock || of == NLM_CANCEL)
		xdr_put_bool(x, a->block);
	if (!share && of != NLM_UNLOCK)
		xdr_put_bool(x, a->exclusive);
	xdr_put_opaque(x, a->name.data, a->name.len);
	xdr_put_opaque(x, a->fh.data, a->fh.len);
	xdr_put_opaque(x, a->oh.data, a->oh.len);
	if (share) {
		xdr_put_u32(x, a->mode);
		xdr_put_u32(x, a->access);
		xdr_put_bool(x, a->reclaim);
		return;
	}
	xdr_put_u32(x, a->svid);
	put_range(x, a->off, a->len, wide);
	if (lock) {
		xdr_put_bool(x, a->reclaim);
		xdr_put_u32(x, a->state);
	}
}
