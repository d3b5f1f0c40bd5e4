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
