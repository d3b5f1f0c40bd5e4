/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * domain - protection domains of single connections.
 *
 * A handle is valid on all connections of its protection domain, and the driver
 * chooses its value, so peers can guess each other's handles.  A connection
 * whose memory its peer may reach has a separate domain with all its
 * registrations (RFC 8166 section 8.1.1).
 *
 * Ownership: counted by the connection and by each registration in it, which
 * can outlive the connection.  When the device is gone its watcher ends the
 * domains, and only the structs are left.
 */
#include "transport/fabric/verbs/internal.h"

#include <stdlib.h>

#include "lib/stats.h"

STAT(verbs_domains, "RDMA connections with a separate protection domain");

int verbs_isolate(struct fabric_conn *conn)
{
	struct verbs_conn *c = verbs_conn(conn);
	struct verbs_domain *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -ENOMEM;
	d->pd = ibv_alloc_pd(c->dev->ctx);
	if (!d->pd) {
		err = verbs_errno();
		free(d);
		return err;
	}
	d->refs = 1;
	mutex_lock(&c->provider->lock);
	cds_list_add(&d->link, &c->dev->domains);
	mutex_unlock(&c->provider->lock);
	c->domain = d;
	stat_inc(verbs_domains);
	return 0;
}

void verbs_domain_get(struct verbs_dev *dev, struct verbs_domain *d)
{
	mutex_lock(&dev->provider->lock);
	d->refs++;
	mutex_unlock(&dev->provider->lock);
}

void verbs_domain_put(struct verbs_dev *dev, struct verbs_domain *d)
{
	bool used = verbs_dev_use(dev);
	struct ibv_pd *pd = NULL;
	bool last;

	mutex_lock(&dev->provider->lock);
	last = --d->refs == 0;
	if (last && d->pd) {
		pd = d->pd;
		cds_list_del(&d->link);
	}
	mutex_unlock(&dev->provider->lock);
	if (pd)
		ibv_dealloc_pd(pd);
	if (last)
		free(d);
	if (used)
		verbs_dev_put(dev);
}
