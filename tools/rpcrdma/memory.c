/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory - that of the caller: structs of any version, the memory that calls
 * name, and the regions that outlive them.
 */
#include "tools/rpcrdma/client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/thread.h"
#include "lib/util.h"
#include "lib/xdr.h"

int client_check_size(const void *s, size_t size, size_t first, size_t known)
{
	const uint8_t *byte = s;

	if (size < first)
		return -EINVAL;
	for (size_t i = known; i < size; i++)
		if (byte[i] != 0)
			return -E2BIG;
	return 0;
}

/* ---- the memory that a call names */

static bool in_region(const struct gannet_rpcrdma_region *region,
		      const struct iovec *piece)
{
	uintptr_t at = (uintptr_t)piece->iov_base;
	uintptr_t start = (uintptr_t)region->region.addr;

	return at >= start && at - start <= region->region.len &&
	       piece->iov_len <= region->region.len - (at - start);
}

static int take_memory(const struct gannet_rpcrdma *c,
		       struct rpcrdma_memory *to,
		       const struct gannet_rpcrdma_memory *from, unsigned use)
{
	const struct iovec one = { from->addr, from->len };
	const struct iovec *iov = from->niov ? from->iov : &one;
	unsigned n = from->niov ? from->niov : 1;
	uint64_t len = 0;

	if (n > GANNET_RPCRDMA_SEGMENTS)
		return -EMSGSIZE;
	if (from->region &&
	    (from->region->c != c || !(from->region->use & use)))
		return -EINVAL;
	for (unsigned i = 0; i < n; i++) {
		if (iov[i].iov_len > UINT32_MAX ||
		    (from->region && !in_region(from->region, &iov[i])))
			return -EINVAL;
		len += iov[i].iov_len;
	}
	if (len > UINT32_MAX)
		return -EINVAL;
	*to = (struct rpcrdma_memory){
		.addr = from->addr, .len = (uint32_t)len,
		.niov = from->niov, .iov = from->iov,
		.region = from->region ? &from->region->region : NULL,
	};
	return 0;
}

/*
 * On the wire positions count the sources' data, padded (RFC 8166 section
 * 3.4.5); the caller's positions count its message, in its order (rfc5666bis-01
 * section 5.2.1).
 */
static int take_sources(struct client_call *call)
{
	const struct gannet_rpcrdma_call *u = call->user;
	struct rpcrdma_request *q = &call->q;
	uint64_t at, carried = 0;
	int err;

	q->nreads = u->nsources;
	for (unsigned i = 0; i < u->nsources; i++) {
		if (i > 0 && u->source[i].position < u->source[i - 1].position)
			return -EINVAL;
		err = take_memory(call->c, &q->read[i].mem,
				  &u->source[i].mem, GANNET_RPCRDMA_SOURCE);
		if (err < 0)
			return err;
		at = u->source[i].position + carried;
		if (at > UINT32_MAX)
			return -EINVAL;
		q->read[i].position = (uint32_t)at;
		carried += (uint64_t)q->read[i].mem.len +
			   xdr_pad(q->read[i].mem.len);
	}
	return 0;
}

int client_take_call(struct client_call *call)
{
	const struct gannet_rpcrdma_call *u = call->user;
	struct rpcrdma_request *q = &call->q;
	int err;

	q->call = u->msg;
	q->call_len = u->msg_len;
	err = take_sources(call);
	q->nwrites = u->nsinks;
	for (unsigned i = 0; i < u->nsinks && err == 0; i++)
		err = take_memory(call->c, &q->write[i], &u->sink[i],
				  GANNET_RPCRDMA_SINK);
	if (err == 0 && u->reply_mem.niov > 0)
		err = -EINVAL;
	if (err == 0)
		err = take_memory(call->c, &q->reply, &u->reply_mem,
				  GANNET_RPCRDMA_SINK);
	/* We look into the reply. */
	if (err == 0 && rpcrdma_is_dmabuf(&q->reply))
		err = -EINVAL;
	return err;
}

static void count_call(struct gannet_rpcrdma_region *region, int calls)
{
	if (region)
		atomic_fetch_add(&region->calls, (unsigned)calls);
}

void client_count_calls(const struct gannet_rpcrdma_call *u, int calls)
{
	for (unsigned i = 0; i < u->nsources; i++)
		count_call(u->source[i].mem.region, calls);
	for (unsigned i = 0; i < u->nsinks; i++)
		count_call(u->sink[i].region, calls);
	count_call(u->reply_mem.region, calls);
}

/* ---- regions and the cache, on the loop */

struct job {
	struct gannet_rpcrdma *c;
	struct gannet_rpcrdma_region *region;
	const void *addr;
	size_t	    len;
	int	    err;
};

/* The regions of the present connection, or NULL.  With the lock. */
static struct rpcrdma_regions *regions_of(struct gannet_rpcrdma *c)
{
	return c->r ? rpcrdma_requester_regions(c->r) : NULL;
}

static void begin_region(void *arg)
{
	struct job *job = arg;
	struct rpcrdma_regions *all;

	mutex_lock(&job->c->lock);
	all = regions_of(job->c);
	/* Else it is registered with its first use. */
	if (all)
		job->err = rpcrdma_region_register(all, &job->region->region);
	if (job->err == 0)
		cds_list_add(&job->region->link, &job->c->regions);
	mutex_unlock(&job->c->lock);
}

static void end_region(void *arg)
{
	struct job *job = arg;

	mutex_lock(&job->c->lock);
	if (atomic_load(&job->region->calls) > 0) {
		job->err = -EBUSY;
	} else {
		if (rpcrdma_region_deregister(&job->region->region) < 0)
			job->err = -EIO;
		cds_list_del(&job->region->link);
	}
	mutex_unlock(&job->c->lock);
}

static bool touches(const struct rpcrdma_memory *mem, const struct job *job)
{
	const struct iovec one = { mem->addr, mem->len };
	const struct iovec *iov = mem->niov ? mem->iov : &one;
	unsigned n = mem->niov ? mem->niov : 1;

	for (unsigned i = 0; i < n; i++)
		if (rpcrdma_overlaps(iov[i].iov_base, iov[i].iov_len,
				     job->addr, job->len))
			return true;
	return false;
}

/* A call that is still to be sent, perhaps again, caches nothing of the
 * range. */
static void forget_in(struct cds_list_head *calls, const struct job *job)
{
	struct client_call *call;

	cds_list_for_each_entry(call, calls, link) {
		struct rpcrdma_request *q = &call->q;

		if (!call->user)	/* its pieces might be gone */
			continue;
		q->uncached |= touches(&q->reply, job);
		for (unsigned i = 0; i < q->nreads; i++)
			q->uncached |= touches(&q->read[i].mem, job);
		for (unsigned i = 0; i < q->nwrites; i++)
			q->uncached |= touches(&q->write[i], job);
	}
}

static void forget_range(void *arg)
{
	struct job *job = arg;
	struct rpcrdma_regions *all;

	mutex_lock(&job->c->lock);
	forget_in(&job->c->given, job);
	forget_in(&job->c->waiting, job);
	all = regions_of(job->c);
	if (all)
		rpcrdma_regions_forget(all, job->addr, job->len);
	mutex_unlock(&job->c->lock);
}

/* Takes @mem.fd, on every path; -1: the memory is not a dma-buf's. */
static int register_region(struct gannet_rpcrdma *c,
			   struct fabric_dmabuf mem, unsigned use,
			   struct gannet_rpcrdma_region **out)
{
	struct gannet_rpcrdma_region *region = calloc(1, sizeof(*region));
	struct job job = { .c = c, .region = region, .err = -ENOMEM };

	if (!region)
		goto fail;
	region->c = c;
	region->use = use;
	region->dmabuf = mem;
	region->region.addr = mem.addr;
	region->region.len = mem.len;
	if (mem.fd >= 0)
		region->region.dmabuf = &region->dmabuf;
	if (use & GANNET_RPCRDMA_SOURCE)
		region->region.access |= FABRIC_REMOTE_READ;
	if (use & GANNET_RPCRDMA_SINK)
		region->region.access |= FABRIC_REMOTE_WRITE;
	job.err = 0;
	client_on_loop(c, begin_region, &job);
	if (job.err < 0)
		goto fail;
	*out = region;
	return 0;

fail:
	if (mem.fd >= 0)
		close(mem.fd);
	free(region);
	return job.err;
}

static bool is_region(const void *addr, size_t len, unsigned use)
{
	const unsigned all = GANNET_RPCRDMA_SOURCE | GANNET_RPCRDMA_SINK;

	return len > 0 && len <= UINTPTR_MAX - (uintptr_t)addr && use != 0 &&
	       !(use & ~all);
}

int gannet_rpcrdma_register(struct gannet_rpcrdma *c, void *addr, size_t len,
			    unsigned use, struct gannet_rpcrdma_region **out)
{
	const struct fabric_dmabuf mem = { .fd = -1, .addr = addr, .len = len };

	if (!is_region(addr, len, use))
		return -EINVAL;
	return register_region(c, mem, use, out);
}

int gannet_rpcrdma_register_dmabuf(struct gannet_rpcrdma *c,
				   const struct gannet_rpcrdma_dmabuf *dmabuf,
				   struct gannet_rpcrdma_region **out)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct fabric_dmabuf mem;
	int err = client_check_size(dmabuf, dmabuf->size, DMABUF_FIRST,
				    sizeof(*dmabuf));

	if (err < 0)
		return err;
	if (!is_region(dmabuf->addr, dmabuf->len, dmabuf->use) ||
	    dmabuf->len > UINT64_MAX - dmabuf->offset ||
	    ((uintptr_t)dmabuf->addr ^ dmabuf->offset) % page != 0)
		return -EINVAL;
	mem = (struct fabric_dmabuf){
		.fd = fcntl(dmabuf->fd, F_DUPFD_CLOEXEC, 0),
		.offset = dmabuf->offset, .addr = dmabuf->addr,
		.len = dmabuf->len,
	};
	if (mem.fd < 0)
		return -errno;
	return register_region(c, mem, dmabuf->use, out);
}

static void free_region(struct gannet_rpcrdma_region *region)
{
	if (region->dmabuf.fd >= 0)
		close(region->dmabuf.fd);
	free(region);
}

int gannet_rpcrdma_deregister(struct gannet_rpcrdma *c,
			      struct gannet_rpcrdma_region *region)
{
	struct job job = { .c = c, .region = region };

	if (region->c != c)
		return -EINVAL;
	client_on_loop(c, end_region, &job);
	if (job.err != -EBUSY)
		free_region(region);
	return job.err;
}

void gannet_rpcrdma_forget(struct gannet_rpcrdma *c, const void *addr,
			   size_t len)
{
	struct job job = { .c = c, .addr = addr, .len = len };

	client_on_loop(c, forget_range, &job);
}

void client_free_regions(struct gannet_rpcrdma *c)
{
	struct gannet_rpcrdma_region *region, *next;

	cds_list_for_each_entry_safe(region, next, &c->regions, link)
		free_region(region);
}
