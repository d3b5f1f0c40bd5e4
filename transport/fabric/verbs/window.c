/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * window - memory windows of type 2: handles of a part of a registration, each
 * for the peer of one queue pair.
 *
 * Making one pins nothing, and ending one is a call to the driver that returns
 * when the device has forgotten the handle.
 */
#include "transport/fabric/verbs/internal.h"

#include <stdlib.h>

#include "lib/log.h"
#include "lib/stats.h"

STAT(verbs_windows, "memory windows bound");

static int bind_window(struct verbs_conn *c, struct verbs_mr *w,
		       struct ibv_mr *base, unsigned access)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW };

	/* The driver chooses a type 2 window's key, except the last byte. */
	w->mr.rkey = ibv_inc_rkey(w->mw->rkey);
	wr.bind_mw.mw = w->mw;
	wr.bind_mw.rkey = w->mr.rkey;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = base, .addr = (uintptr_t)w->mr.addr,
		.length = w->mr.len,
		.mw_access_flags = verbs_remote_access(access),
	};
	return verbs_post_bind(c, &wr);
}

/* The driver tells of windows, and the user library makes them. */
static int lacks_windows(struct verbs_dev *dev)
{
	if (!atomic_exchange(&dev->no_windows, true))
		log_info("rdma device %s: its library supports no memory "
			 "windows",
			 dev->dev.name);
	return -EOPNOTSUPP;
}

int verbs_mr_window(struct fabric_mr *fbase, struct fabric_conn *conn,
		    void *addr, size_t len, unsigned access,
		    struct fabric_mr **out)
{
	struct verbs_mr *base = container_of(fbase, struct verbs_mr, mr), *w;
	struct verbs_conn *c = verbs_conn(conn);
	int err;

	if (!base->ibv)			/* the device is gone */
		return -ENODEV;
	if (atomic_load(&c->dev->no_windows))
		return -EOPNOTSUPP;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->mr = (struct fabric_mr){ .addr = addr, .len = len,
				    .dev = fbase->dev };
	w->mw = ibv_alloc_mw(verbs_pd(c->dev, c->domain), IBV_MW_TYPE_2);
	err = w->mw ? bind_window(c, w, base->ibv, access) : verbs_errno();
	if (err) {
		if (w->mw)
			ibv_dealloc_mw(w->mw);
		free(w);
		return verbs_is_unknown(err) ? lacks_windows(c->dev) : err;
	}
	stat_inc(verbs_windows);
	*out = &w->mr;
	return 0;
}
