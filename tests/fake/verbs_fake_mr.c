/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs_fake - RDMA devices that do what the test says: memory.
 */
#include <errno.h>
#include <stdlib.h>

#include "tests/fake/verbs_fake_impl.h"

struct fake_mr {
	struct ibv_mr	mr;
	int		access;
	struct fake_mr	*next;
};

static struct fake_mr *mrs;
static uint32_t next_key;

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	struct ibv_pd *pd;

	if (fake_fails())
		return NULL;
	pd = calloc(1, sizeof(*pd));
	pd->context = ctx;
	fake_lock();
	fake.pds++;
	fake_unlock();
	fake_count(1);
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	fake_lock();
	fake.pds--;
	fake_unlock();
	fake_count(-1);
	free(pd);
	return 0;
}

bool fake_mr_has(struct ibv_context *ctx, uint32_t key, const void *addr,
		 size_t len, int access)
{
	const uint8_t *at = addr;

	for (struct fake_mr *m = mrs; m; m = m->next) {
		const uint8_t *start = m->mr.addr;

		if (m->mr.context == ctx && m->mr.lkey == key)
			return at >= start &&
			       at + len <= start + m->mr.length &&
			       (m->access & access) == access;
	}
	return false;
}

/* With the lock: names the memory. */
static void list_mr(struct fake_mr *m)
{
	m->next = mrs;
	mrs = m;
	/* The first byte is the consumer's. */
	m->mr.lkey = m->mr.rkey = ++next_key << 8;
}

static void unlist_mr(struct fake_mr *m)
{
	for (struct fake_mr **p = &mrs; *p; p = &(*p)->next)
		if (*p == m) {
			*p = m->next;
			return;
		}
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len,
			  int access)
{
	struct ibv_mr *mr;

	if (fake_fails())
		return NULL;
	if (fake.no_relaxed && (access & IBV_ACCESS_RELAXED_ORDERING)) {
		errno = EINVAL;
		return NULL;
	}
	if (fake_device_of(pd->context)->gone) {
		errno = EIO;
		return NULL;
	}
	if ((fake.attr.max_mr && fake.mrs >= (unsigned)fake.attr.max_mr) ||
	    (fake.attr.max_mr_size && len > fake.attr.max_mr_size)) {
		errno = ENOMEM;
		return NULL;
	}
	mr = calloc(1, sizeof(struct fake_mr));
	mr->pd = pd;
	mr->context = pd->context;
	mr->addr = addr;
	mr->length = len;
	/* Each device has its own. */
	mr->lkey = 0x11 + 0x1000 * (uint32_t)(fake_device_of(pd->context) -
					      fake_devices);
	mr->rkey = 0x22;
	/* Remembered here for ibv_dereg_mr(). */
	mr->handle = (unsigned)access;
	((struct fake_mr *)mr)->access = access;
	fake_lock();
	if (fake.wired)
		list_mr((struct fake_mr *)mr);
	fake.mrs++;
	fake.mr_access = (unsigned)access;
	if (access & IBV_ACCESS_REMOTE_WRITE) {
		fake.open_mrs++;
		fake.opened++;
		fake.open_addr = addr;
		fake.open_len = len;
	}
	fake_unlock();
	fake_count(1);
	return mr;
}

/* ---- windows: each is listed like a registration while it is bound */

struct fake_mw {
	struct ibv_mw	mw;
	struct fake_mr	bound;
};

struct ibv_mw *fake_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct fake_mw *w;

	if (fake_fails())
		return NULL;
	FAKE_CHECK(type == IBV_MW_TYPE_2);
	w = calloc(1, sizeof(*w));
	w->mw.context = pd->context;
	w->mw.pd = pd;
	w->mw.type = type;
	fake_lock();
	w->mw.rkey = ++next_key << 8;
	fake_unlock();
	fake_count(1);
	return &w->mw;
}

void fake_mw_bind(struct ibv_context *ctx, const struct fake_wr *wr)
{
	struct fake_mw *w = (struct fake_mw *)wr->mw;
	const struct ibv_mw_bind_info *b = &wr->bind;

	FAKE_CHECK(b->length > 0 && wr->rkey != w->mw.rkey &&
		   wr->rkey >> 8 == w->mw.rkey >> 8);
	FAKE_CHECK(fake_mr_has(ctx, wr->lkey, (void *)(uintptr_t)b->addr,
			       b->length, IBV_ACCESS_MW_BIND |
			       (b->mw_access_flags & IBV_ACCESS_REMOTE_WRITE ?
				IBV_ACCESS_LOCAL_WRITE : 0)));
	w->bound.mr.context = ctx;
	w->bound.mr.addr = (void *)(uintptr_t)b->addr;
	w->bound.mr.length = b->length;
	w->bound.access = (int)b->mw_access_flags;
	list_mr(&w->bound);
	w->bound.mr.lkey = w->bound.mr.rkey = wr->rkey;
	fake.windows++;
}

int fake_dealloc_mw(struct ibv_mw *mw)
{
	struct fake_mw *w = (struct fake_mw *)mw;

	fake_lock();
	unlist_mr(&w->bound);
	fake_unlock();
	fake_count(-1);
	free(w);
	return 0;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len,
				uint64_t iova, unsigned access)
{
	return ibv_reg_mr(pd, addr, len, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	int err;

	fake_lock();
	unlist_mr((struct fake_mr *)mr);
	fake.mrs--;
	err = fake.dereg_errno;
	/* A registration that can't be ended stays open. */
	if (!err && (mr->handle & IBV_ACCESS_REMOTE_WRITE))
		fake.open_mrs--;
	fake_unlock();
	fake_count(-1);
	free(mr);
	return err;
}
