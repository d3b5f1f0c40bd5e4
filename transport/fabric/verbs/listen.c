/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listeners: connect requests become connections.
 *
 * A listener at [::] takes IPv4 as well, as a TCP socket does. iWARP adapters
 * differ in how they treat a mapped address, so it has an id for each family.
 *
 * A listener at a device's own address goes when the device goes.  Drivers are
 * restarted, so it tries to listen again until that succeeds.  When the address
 * moves to another device (bonding), it follows with a new id.
 */
#include "transport/fabric/verbs/internal.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "transport/addr.h"

/* Requests that can wait for us in the kernel; it refuses more. */
#define BACKLOG		512
#define RETRY_MS	2000

STAT(verbs_requests, "connect requests of RDMA peers");
STAT(verbs_listeners_moved, "listeners set up again because their device or "
     "address changed");
STAT(verbs_requests_kept, "connect requests rejected to hold their devices");
STAT(verbs_requests_lost, "connect requests dropped for lack of resources");

struct verbs_listener {
	struct fabric_listener	l;
	struct verbs_end	end;
	struct verbs_provider	*provider;	/* borrowed */
	struct verbs_loop	*vl;		/* counted */
	struct rdma_cm_id	*id;		/* NULL: its device is away */
	struct rdma_cm_id	*id4;		/* for [::] only */
	struct loop_timer	retry;
};

/* An id at an address of a device opens it.  So it has to be watched, or its
 * driver would wait for us when it is unplugged. */
static void watch_device(struct verbs_provider *p, struct rdma_cm_id *id)
{
	struct verbs_dev *dev;
	int err;

	if (!id->verbs)
		return;
	err = verbs_dev_get(p, id, VERBS_ID_LISTENS, &dev);
	if (err)
		log_warn("rdma: the device of a listener is not watched: %s",
			 strerror(-err));
	else
		verbs_dev_put(dev);
}

/* Listens at @addr, and fills in its port. */
static int bind_id(struct verbs_listener *l, struct sockaddr *addr,
		   struct rdma_cm_id **out)
{
	struct rdma_cm_id *id;
	int only = 1;
	int err;

	if (rdma_create_id(l->vl->channel, &id, &l->end, RDMA_PS_TCP))
		return verbs_errno();
	if (addr->sa_family == AF_INET6 &&
	    rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &only,
			    sizeof(only)))
		goto fail;
	if (rdma_bind_addr(id, addr) || rdma_listen(id, BACKLOG))
		goto fail;
	watch_device(l->provider, id);
	memcpy(addr, rdma_get_local_addr(id), xprt_addr_len(addr));
	*out = id;
	return 0;

fail:
	err = verbs_errno();
	rdma_destroy_id(id);
	return err;
}

static int bind_ids(struct verbs_listener *l)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&l->l.local;
	struct sockaddr_in sin = { .sin_family = AF_INET };
	int err;

	err = bind_id(l, (struct sockaddr *)&l->l.local, &l->id);
	if (err || sin6->sin6_family != AF_INET6 ||
	    !IN6_IS_ADDR_UNSPECIFIED(&sin6->sin6_addr))
		return err;
	sin.sin_port = sin6->sin6_port;
	err = bind_id(l, (struct sockaddr *)&sin, &l->id4);
	if (err) {
		rdma_destroy_id(l->id);
		l->id = NULL;
	}
	return err;
}

static void verbs_listen_try_again(struct loop_timer *t)
{
	struct verbs_listener *l = container_of(t, struct verbs_listener,
						retry);

	if (bind_ids(l))
		loop_timer_set(l->l.loop, &l->retry, RETRY_MS);
	else
		log_info("rdma: listening again");
}

static void give_up_ids(struct verbs_listener *l)
{
	stat_inc(verbs_listeners_moved);
	rdma_destroy_id(l->id);
	l->id = NULL;
	if (l->id4)
		rdma_destroy_id(l->id4);
	l->id4 = NULL;
}

static void device_gone(struct verbs_listener *l)
{
	log_warn("rdma: the device of a listener is gone");
	give_up_ids(l);
	loop_timer_set(l->l.loop, &l->retry, RETRY_MS);
}

static void address_moved(struct verbs_listener *l)
{
	log_warn("rdma: the address of a listener moved to another device");
	give_up_ids(l);
	verbs_listen_try_again(&l->retry);
}

static void connect_request(struct verbs_listener *l,
			    const struct verbs_event *ev)
{
	struct verbs_conn *c;
	int err;

	stat_inc(verbs_requests);
	err = verbs_conn_create(l->provider, ev->id, l->vl, &c);
	if (err == -ERESTART) {
		stat_inc(verbs_requests_kept);
		log_info("rdma: a peer has to ask again: its request now holds "
			 "its device");
		return;
	}
	if (err) {
		stat_inc(verbs_requests_lost);
		log_limited(LOG_LEVEL_WARN, "rdma: a peer is refused: %s",
			    strerror(-err));
		rdma_reject(ev->id, NULL, 0);
		rdma_destroy_id(ev->id);
		return;
	}
	c->passive = true;
	verbs_conn_learn(c, ev);
	l->l.request(&l->l, &c->conn);
}

static void listener_event(struct verbs_end *end, const struct verbs_event *ev)
{
	struct verbs_listener *l = container_of(end, struct verbs_listener,
						end);

	if (ev->type == RDMA_CM_EVENT_CONNECT_REQUEST)
		connect_request(l, ev);
	else if (ev->type == RDMA_CM_EVENT_DEVICE_REMOVAL)
		device_gone(l);
	else if (ev->type == RDMA_CM_EVENT_ADDR_CHANGE)
		address_moved(l);
	else
		log_info("rdma: a listener got %s", rdma_event_str(ev->type));
}

struct listen_call {
	struct verbs_listener *l;
	int err;
};

static void open_here(void *arg)
{
	struct listen_call *call = arg;
	struct verbs_listener *l = call->l;

	call->err = verbs_loop_get(l->provider, l->l.loop, &l->vl);
	if (call->err)
		return;
	call->err = bind_ids(l);
	if (call->err)
		verbs_loop_put_here(l->vl);
}

int verbs_listen(void *provider, const struct sockaddr *addr,
		 struct loop *loop,
		 void (*request)(struct fabric_listener *,
				 struct fabric_conn *),
		 void *upper, struct fabric_listener **out)
{
	struct verbs_listener *l;
	struct listen_call call;

	if (addr->sa_family != AF_INET && addr->sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->provider = provider;
	l->end.event = listener_event;
	l->end.started = true;
	l->retry.fire = verbs_listen_try_again;
	l->l.ops = l->provider->ops;
	l->l.loop = loop;
	l->l.request = request;
	l->l.upper = upper;
	xprt_addr_copy(&l->l.local, addr);
	call.l = l;
	loop_call(loop, open_here, &call);
	if (call.err)
		free(l);
	else
		*out = &l->l;
	return call.err;
}

static void verbs_listen_close_here(void *arg)
{
	struct verbs_listener *l = arg;

	loop_timer_cancel(l->l.loop, &l->retry);
	if (l->id)
		rdma_destroy_id(l->id);
	if (l->id4)
		rdma_destroy_id(l->id4);
	verbs_loop_put_here(l->vl);
}

void verbs_unlisten(struct fabric_listener *fl)
{
	struct verbs_listener *l = container_of(fl, struct verbs_listener, l);

	loop_call(fl->loop, verbs_listen_close_here, l);
	free(l);
}
