/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbs provider: creation, end, and its table of functions. */
#include "transport/fabric/verbs/verbs.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "transport/fabric/fabrics.h"
#include "transport/fabric/verbs/internal.h"

static const struct fabric_ops verbs_fabric_ops = {
	.name = "verbs",
	.listen = verbs_listen,
	.unlisten = verbs_unlisten,
	.connect = verbs_connect,
	.setup = verbs_setup,
	.start = verbs_start,
	.reject = verbs_reject,
	.post = verbs_post,
	.post_recv = verbs_post_recv,
	.close = verbs_close,
	.free = verbs_free,
	.isolate = verbs_isolate,
	.mr_create = verbs_mr_create,
	.mr_create_for = verbs_mr_create_for,
	.mr_create_dmabuf = verbs_mr_create_dmabuf,
	.mr_destroy = verbs_mr_destroy,
	.mr_window = verbs_mr_window,
};

/*
 * Registered memory counts as locked, and the default limit is 8 MiB.  Some
 * drivers apply it even to root.
 */
static void lift_memory_limit(void)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	struct rlimit now;

	if (setrlimit(RLIMIT_MEMLOCK, &all) == 0 ||
	    getrlimit(RLIMIT_MEMLOCK, &now))
		return;
	now.rlim_cur = now.rlim_max;
	setrlimit(RLIMIT_MEMLOCK, &now);
}

int verbs_fabric_create(struct fabric *out)
{
	struct verbs_provider *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	pthread_mutex_init(&p->lock, NULL);
	CDS_INIT_LIST_HEAD(&p->devices);
	CDS_INIT_LIST_HEAD(&p->loops);
	p->connect_ms = 10000;
	lift_memory_limit();
	p->ops = &verbs_fabric_ops;
	out->ops = p->ops;
	out->provider = p;
	return 0;
}

void verbs_fabric_destroy(struct fabric *f)
{
	struct verbs_provider *p = f->provider;
	struct verbs_dev *dev, *next;

	assert(cds_list_empty(&p->loops));
	cds_list_for_each_entry_safe(dev, next, &p->devices, link)
		verbs_dev_destroy(dev);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void verbs_fabric_set_connect_ms(struct fabric *f, unsigned ms)
{
	struct verbs_provider *p = f->provider;

	p->connect_ms = (int)MIN(ms, (unsigned)INT_MAX);
}

bool verbs_available(void)
{
	/* librdmacm makes a channel only if the machine has a device. */
	struct rdma_event_channel *channel = rdma_create_event_channel();

	if (!channel)
		return false;
	rdma_destroy_event_channel(channel);
	return true;
}

static int create_verbs(const struct fabric_options *o, struct fabric *out)
{
	int err = verbs_fabric_create(out);

	if (!err && o->connect_ms)
		verbs_fabric_set_connect_ms(out, o->connect_ms);
	return err;
}

const struct fabric_row verbs_row = {
	.name = "verbs", .help = "on an RDMA device",
	.title = "NFS/RDMA on devices",
	.listener = "rdma",
	.available = verbs_available,
	.absent = "there is no RDMA device that this process may use",
	.has_own_pollers = true,
	.create = create_verbs, .destroy = verbs_fabric_destroy,
};
