/* SPDX-License-Identifier: BSD-2-Clause */
/* mr - memory registered with a device, in its domain or a connection's. */
#include "transport/fabric/verbs/internal.h"

#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "lib/stats.h"

STAT(verbs_stuck_mrs, "memory registrations that devices failed to end");

int verbs_remote_access(unsigned access)
{
	return (access & FABRIC_REMOTE_READ ? IBV_ACCESS_REMOTE_READ : 0) |
	       (access & FABRIC_REMOTE_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0);
}

static int access_flags(const struct verbs_dev *dev, unsigned access)
{
	int flags = IBV_ACCESS_LOCAL_WRITE | verbs_remote_access(access);

	if (access & FABRIC_BINDABLE)
		flags |= IBV_ACCESS_MW_BIND;
	/*
	 * The sink of an iWARP Read is named on the wire by its handle, and the
	 * adapter accepts a Read Response only where a peer may write (RFC 5040
	 * section 5.4; draft-hilland-rddp-verbs section 7.3).
	 */
	if ((access & FABRIC_READ_SINK) && dev->iwarp)
		flags |= IBV_ACCESS_REMOTE_WRITE;
	return flags;
}

/* @mem: NULL, or the memory of another device that it is. */
static struct ibv_mr *ask_device(const struct verbs_dev *dev,
				 const struct verbs_mr *mr,
				 const struct fabric_dmabuf *mem, int flags)
{
	struct ibv_pd *pd = verbs_pd(dev, mr->domain);

	if (mem)
		return ibv_reg_dmabuf_mr(pd, mem->offset, mem->len,
					 (uintptr_t)mem->addr, mem->fd, flags);
	return ibv_reg_mr(pd, mr->mr.addr, mr->mr.len, flags);
}

/* The library's, the kernel's, and an older kernel's ways to say that they
 * don't know dma-bufs. */
static bool lacks_dmabufs(int err)
{
	return err == -EOPNOTSUPP || err == -ENOSYS || err == -EPROTONOSUPPORT;
}

/*
 * Registers the memory.  0 or -errno.
 *
 * The memory of a device that is gone stays without a registration: no
 * connection will use it.  If that failed instead, the upper layer's memory
 * could not grow for its other devices either.
 */
static int verbs_mr_register(struct verbs_dev *dev, struct verbs_mr *mr,
			     const struct fabric_dmabuf *mem, unsigned access)
{
	int flags = access_flags(dev, access);
	int err;

	/* A completion still comes after its data. */
	mr->ibv = ask_device(dev, mr, mem, flags | IBV_ACCESS_RELAXED_ORDERING);
	if (!mr->ibv && (errno == EINVAL || errno == EOPNOTSUPP))
		mr->ibv = ask_device(dev, mr, mem, flags);
	if (!mr->ibv && errno == EIO && !mem)
		return 0;
	if (!mr->ibv) {
		err = verbs_errno();
		if (mem && lacks_dmabufs(err))
			return -EOPNOTSUPP;
		log_limited(LOG_LEVEL_WARN, "rdma device %s: cannot register "
			    "%zu bytes: %s%s", dev->dev.name, mr->mr.len,
			    strerror(-err), err == -ENOMEM ?
			    " (the limit of locked memory, ulimit -l?)" : "");
		return err;
	}
	mr->mr.lkey = mr->ibv->lkey;
	mr->mr.rkey = mr->ibv->rkey;
	mutex_lock(&dev->provider->lock);
	cds_list_add(&mr->link, &dev->mrs);
	mutex_unlock(&dev->provider->lock);
	return 0;
}

/* Makes @as, in the domain @d or, NULL, in the device's. */
static int create_mr(struct verbs_domain *d, struct fabric_mr as,
		     const struct fabric_dmabuf *mem, unsigned access,
		     struct fabric_mr **out)
{
	struct verbs_dev *dev = container_of(as.dev, struct verbs_dev, dev);
	struct verbs_mr *mr = calloc(1, sizeof(*mr));
	int err = 0;

	if (!mr)
		return -ENOMEM;
	mr->mr = as;
	mr->domain = d;
	if (verbs_dev_use(dev)) {
		err = verbs_mr_register(dev, mr, mem, access);
		verbs_dev_put(dev);
	}
	if (err) {
		free(mr);
		return err;
	}
	if (d)
		verbs_domain_get(dev, d);
	*out = &mr->mr;
	return 0;
}

int verbs_mr_create(struct fabric_device *dev, void *addr, size_t len,
		    unsigned access, struct fabric_mr **out)
{
	const struct fabric_mr as = { .addr = addr, .len = len, .dev = dev };

	return create_mr(NULL, as, NULL, access, out);
}

int verbs_mr_create_for(struct fabric_conn *c, void *addr, size_t len,
			unsigned access, struct fabric_mr **out)
{
	const struct fabric_mr as = { .addr = addr, .len = len, .dev = c->dev };

	return create_mr(verbs_conn(c)->domain, as, NULL, access, out);
}

int verbs_mr_create_dmabuf(struct fabric_conn *c,
			   const struct fabric_dmabuf *mem, unsigned access,
			   struct fabric_mr **out)
{
	const struct fabric_mr as = { .addr = mem->addr, .len = mem->len,
				      .dev = c->dev };

	return create_mr(verbs_conn(c)->domain, as, mem, access, out);
}

/* 0 or -errno: the device did not end it. */
static int deregister(const struct fabric_mr *mr, struct ibv_mr *ibv,
		      struct ibv_mw *mw)
{
	int err = mw ? ibv_dealloc_mw(mw) : ibv_dereg_mr(ibv);

	if (err) {
		stat_inc(verbs_stuck_mrs);
		log_limited(LOG_LEVEL_WARN, "rdma device %s: cannot end a "
			    "registration of %zu bytes: %s", mr->dev->name,
			    mr->len, strerror(err));
	}
	return -err;
}

int verbs_mr_destroy(struct fabric_mr *fmr)
{
	struct verbs_mr *mr = container_of(fmr, struct verbs_mr, mr);
	struct verbs_dev *dev = container_of(fmr->dev, struct verbs_dev, dev);
	int err = 0;

	if (verbs_dev_use(dev)) {
		if (mr->ibv) {
			mutex_lock(&dev->provider->lock);
			cds_list_del(&mr->link);
			mutex_unlock(&dev->provider->lock);
		}
		if (mr->ibv || mr->mw)
			err = deregister(fmr, mr->ibv, mr->mw);
		verbs_dev_put(dev);
	}
	if (mr->domain)
		verbs_domain_put(dev, mr->domain);
	free(mr);
	return err;
}
