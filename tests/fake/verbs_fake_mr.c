/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs_fake - RDMA devices that the test controls: memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fake/verbs_fake_impl.h"

struct fake_mr {
	struct ibv_mr	mr;
	int		access;
	struct fake_mr	*next;
	/* Of a dma-buf, as the device has it mapped; else NULL. */
	uint8_t		*pages;
	size_t		pages_len;
	uint8_t		*bytes;		/* the memory of mr.addr in there */
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
	FAKE_CHECK(!fake_device_of(pd->context)->closed);
	fake_lock();
	/* It would stay, and the device's end wait for it. */
	for (struct fake_mr *m = mrs; m; m = m->next)
		FAKE_CHECK(m->mr.pd != pd);
	fake.pds--;
	fake_unlock();
	fake_count(-1);
	free(pd);
	return 0;
}

uint8_t *fake_mr_at(struct ibv_pd *pd, uint32_t key, const void *addr,
		    size_t len, int access)
{
	uintptr_t at = (uintptr_t)addr;

	for (struct fake_mr *m = mrs; m; m = m->next) {
		uintptr_t start = (uintptr_t)m->mr.addr;

		if (m->mr.pd != pd || m->mr.lkey != key)
			continue;
		if (at < start || at + len > start + m->mr.length ||
		    (m->access & access) != access)
			return NULL;
		return (m->pages ? m->bytes : (uint8_t *)m->mr.addr) +
		       (at - start);
	}
	return NULL;
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

/* The error of a registration; 0: it goes well. */
static int why_not(struct ibv_pd *pd, size_t len, int access)
{
	if (fake_fails())
		return ENOMEM;
	if (fake.reg_no_bind && (access & IBV_ACCESS_MW_BIND))
		return EINVAL;
	if (fake.no_relaxed && (access & IBV_ACCESS_RELAXED_ORDERING))
		return EINVAL;
	if (fake_device_of(pd->context)->gone)
		return EIO;
	if ((fake.attr.max_mr && fake.mrs >= (unsigned)fake.attr.max_mr) ||
	    (fake.attr.max_mr_size && len > fake.attr.max_mr_size))
		return ENOMEM;
	return 0;
}

/* Takes @m. */
static struct ibv_mr *add_mr(struct fake_mr *m, struct ibv_pd *pd, void *addr,
			     size_t len)
{
	struct ibv_mr *mr = &m->mr;

	mr->pd = pd;
	mr->context = pd->context;
	mr->addr = addr;
	mr->length = len;
	/* Each device has its own. */
	mr->lkey = 0x11 + 0x1000 * (uint32_t)(fake_device_of(pd->context) -
					      fake_devices);
	mr->rkey = 0x22;
	fake_lock();
	if (fake.wired)
		list_mr(m);
	fake.mrs++;
	fake.mr_access = (unsigned)m->access;
	if (m->access & IBV_ACCESS_REMOTE_WRITE) {
		fake.open_mrs++;
		fake.opened++;
		fake.open_pd = pd;
		fake.open_addr = addr;
		fake.open_len = len;
	}
	fake_unlock();
	fake_count(1);
	return mr;
}

static pthread_cond_t released = PTHREAD_COND_INITIALIZER;

void fake_hold_regs(bool hold)
{
	fake_lock();
	fake.hold_regs = hold;
	pthread_cond_broadcast(&released);
	fake_unlock();
}

static void wait_held(void)
{
	fake_lock();
	fake.registering++;
	while (fake.hold_regs)
		pthread_cond_wait(&released, &fake.lock);
	fake.registering--;
	fake_unlock();
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len,
			  int access)
{
	struct fake_mr *m;

	wait_held();
	errno = why_not(pd, len, access);
	if (errno)
		return NULL;
	m = calloc(1, sizeof(*m));
	m->access = access;
	return add_mr(m, pd, addr, len);
}

/* With the lock: as Linux, which knows no other flags of a dma-buf. */
static int why_no_dmabuf(const struct fake_dmabuf *d)
{
	const int known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			  IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC |
			  IBV_ACCESS_RELAXED_ORDERING;
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (fake.dmabuf_most && d->len > (size_t)fake.dmabuf_most)
		return ENOMEM;
	if ((d->access & ~known) || (d->offset ^ d->iova) % page)
		return EINVAL;
	return 0;
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t len,
				 uint64_t iova, int fd, int access)
{
	const struct fake_dmabuf d = { offset, len, iova, fd, access };
	size_t skip = offset % (uint64_t)sysconf(_SC_PAGESIZE);
	struct fake_mr *m;
	int err;

	fake_lock();
	fake.dmabuf = d;
	fake.dmabufs++;
	err = fake.dmabuf_errno ? fake.dmabuf_errno : why_no_dmabuf(&d);
	fake_unlock();
	errno = err ? err : why_not(pd, len, access);
	if (errno)
		return NULL;
	m = calloc(1, sizeof(*m));
	m->access = access;
	m->pages_len = skip + len;
	m->pages = mmap(NULL, m->pages_len, PROT_READ | PROT_WRITE, MAP_SHARED,
			fd, (off_t)(offset - skip));
	FAKE_CHECK(m->pages != MAP_FAILED);
	m->bytes = m->pages + skip;
	return add_mr(m, pd, (void *)(uintptr_t)iova, len);
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
	if (fake.lib_no_windows) {
		errno = EOPNOTSUPP;
		return NULL;
	}
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

void fake_mw_bind(struct ibv_pd *pd, const struct fake_wr *wr)
{
	struct fake_mw *w = (struct fake_mw *)wr->mw;
	const struct ibv_mw_bind_info *b = &wr->bind;

	FAKE_CHECK(b->length > 0 && wr->rkey != w->mw.rkey &&
		   wr->rkey >> 8 == w->mw.rkey >> 8);
	FAKE_CHECK(fake_mr_at(pd, wr->lkey, (void *)(uintptr_t)b->addr,
			      b->length, IBV_ACCESS_MW_BIND |
			      (b->mw_access_flags & IBV_ACCESS_REMOTE_WRITE ?
			       IBV_ACCESS_LOCAL_WRITE : 0)));
	FAKE_CHECK(w->mw.pd == pd);
	w->bound.mr.context = pd->context;
	w->bound.mr.pd = pd;
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
	struct fake_mr *m = (struct fake_mr *)mr;
	int err;

	fake_lock();
	unlist_mr(m);
	fake.mrs--;
	err = fake.dereg_errno;
	/* A registration that can't be ended stays open. */
	if (!err && (m->access & IBV_ACCESS_REMOTE_WRITE))
		fake.open_mrs--;
	fake_unlock();
	if (m->pages)
		munmap(m->pages, m->pages_len);
	fake_count(-1);
	free(m);
	return err;
}
