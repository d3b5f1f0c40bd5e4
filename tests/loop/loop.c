/* SPDX-License-Identifier: BSD-2-Clause */
/* loop - the provider: listeners, and connecting two ends. */
#include "tests/loop/impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <netinet/in.h>

#include "transport/addr.h"

static const struct fabric_ops loop_fabric_ops;

static const struct fabric_limits generous = {
	.max_sge = 16,
	.max_wr = 16384,
	.max_recv = 16384,
	.max_read_depth = 128,
	.max_resp_depth = 128,
	.max_private = 196,
};

static void loopback_limit(unsigned *v, unsigned wanted)
{
	if (wanted)
		*v = wanted;
}

static int loopback_device_init(struct provider *p, enum side side,
				const struct fabric_limits *wanted)
{
	struct device *d = &p->device[side];
	struct fabric_limits *l = &d->base.limits;

	*l = generous;
	loopback_limit(&l->max_sge, wanted->max_sge);
	loopback_limit(&l->max_wr, wanted->max_wr);
	loopback_limit(&l->max_recv, wanted->max_recv);
	loopback_limit(&l->max_read_depth, wanted->max_read_depth);
	loopback_limit(&l->max_resp_depth, wanted->max_resp_depth);
	loopback_limit(&l->max_private, wanted->max_private);
	l->open_sinks = wanted->open_sinks;
	l->pins = wanted->pins;
	l->windows = wanted->windows;
	l->unacknowledged = wanted->unacknowledged;
	l->invalidates = !p->options.no_invalidate;
	d->base.ops = &loop_fabric_ops;
	strcpy(d->base.name, side == PASSIVE ? "loop0" : "loop1");
	d->p = p;
	d->side = side;
	pthread_mutex_init(&d->base.lock, NULL);
	return pthread_rwlock_init(&d->mr_lock, NULL);
}

int loop_fabric_create(const struct loop_fabric_options *options,
		       struct fabric *out)
{
	struct provider *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->options = *options;
	p->random = options->seed;
	p->next_port = 40000;
	CDS_INIT_LIST_HEAD(&p->listeners);
	CDS_INIT_LIST_HEAD(&p->links);
	pthread_mutex_init(&p->lock, NULL);
	loopback_device_init(p, PASSIVE, &options->passive);
	loopback_device_init(p, ACTIVE, &options->active);
	out->ops = &loop_fabric_ops;
	out->provider = p;
	return 0;
}

void loop_fabric_destroy(struct fabric *f)
{
	struct provider *p = f->provider;

	for (int i = 0; i < 2; i++) {
		free(p->device[i].mrs);
		pthread_rwlock_destroy(&p->device[i].mr_lock);
		pthread_mutex_destroy(&p->device[i].base.lock);
	}
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void loop_fabric_count(const struct fabric *f, struct loop_fabric_counts *out)
{
	struct provider *p = f->provider;

	mutex_lock(&p->lock);
	*out = p->counts;
	mutex_unlock(&p->lock);
}

/* Takes a reference on the link after @prev, and drops the one on @prev. */
static struct link *next_link(struct provider *p, struct link *prev)
{
	struct cds_list_head *at;
	struct link *link = NULL;

	mutex_lock(&p->lock);
	for (at = prev ? prev->node.next : p->links.next;
	     at != &p->links && !link; at = at->next) {
		link = cds_list_entry(at, struct link, node);
		if (!ref_get_unless_zero(&link->ref))
			link = NULL;
	}
	mutex_unlock(&p->lock);
	if (prev)
		loop_link_put(prev);
	return link;
}

void loop_fabric_break(const struct fabric *f)
{
	struct provider *p = f->provider;
	struct link *link = NULL;

	while ((link = next_link(p, link))) {
		mutex_lock(&link->lock);
		/* An active end that has not asked yet has no link to break. */
		if (!link->end[ACTIVE] ||
		    link->end[ACTIVE]->state >= END_ASKING)
			loop_link_break(link, -ENETUNREACH, -ENETUNREACH);
		mutex_unlock(&link->lock);
	}
}

/* Returns the port, in either family: addresses are compared by port alone. */
static uint16_t *loopback_port_of(struct sockaddr_storage *ss)
{
	return ss->ss_family == AF_INET6 ?
	       &((struct sockaddr_in6 *)ss)->sin6_port :
	       &((struct sockaddr_in *)ss)->sin_port;
}

static struct listener *find_listener(struct provider *p,
				      struct sockaddr_storage *addr)
{
	struct listener *l;

	cds_list_for_each_entry(l, &p->listeners, node)
		if (l->base.local.ss_family == addr->ss_family &&
		    *loopback_port_of(&l->base.local) ==
		    *loopback_port_of(addr))
			return l;
	return NULL;
}

static int loopback_add_listener(void *provider, const struct sockaddr *addr,
		  struct loop *loop,
		  void (*request)(struct fabric_listener *,
				  struct fabric_conn *),
		  void *upper, struct fabric_listener **out)
{
	struct provider *p = provider;
	struct listener *l = calloc(1, sizeof(*l));
	int err = 0;

	if (!l)
		return -ENOMEM;
	l->base.ops = &loop_fabric_ops;
	l->base.loop = loop;
	l->base.upper = upper;
	l->base.request = request;
	l->p = p;
	CDS_INIT_LIST_HEAD(&l->pending);
	xprt_addr_copy(&l->base.local, addr);
	mutex_lock(&p->lock);
	if (*loopback_port_of(&l->base.local) == 0)
		*loopback_port_of(&l->base.local) = htons(++p->next_port);
	if (find_listener(p, &l->base.local))
		err = -EADDRINUSE;
	else
		cds_list_add(&l->node, &p->listeners);
	mutex_unlock(&p->lock);
	if (err < 0)
		free(l);
	else
		*out = &l->base;
	return err;
}

static struct end *next_pending(struct listener *l)
{
	struct end *e = NULL;

	mutex_lock(&l->p->lock);
	if (!cds_list_empty(&l->pending)) {
		e = cds_list_first_entry(&l->pending, struct end, pending);
		cds_list_del(&e->pending);
	} else {
		l->kicked = false;
	}
	mutex_unlock(&l->p->lock);
	return e;
}

static void loopback_ask(struct loop_task *t)
{
	struct listener *l = container_of(t, struct listener, task);
	struct end *e;

	while ((e = next_pending(l)))
		l->base.request(&l->base, &e->base);
}

static void loopback_refuse(struct fabric_conn *c)
{
	struct end *e = container_of(c, struct end, base);

	mutex_lock(&e->link->lock);
	loop_link_break(e->link, 0, -ECONNREFUSED);
	mutex_unlock(&e->link->lock);
	loop_end_free(c);
}

/* On the listener's loop: tasks that were posted before have run. */
static void loopback_finish(void *arg)
{
	struct listener *l = arg;
	struct end *e;

	while ((e = next_pending(l)))
		loopback_refuse(&e->base);
}

static void unlisten(struct fabric_listener *base)
{
	struct listener *l = container_of(base, struct listener, base);

	mutex_lock(&l->p->lock);
	cds_list_del(&l->node);
	mutex_unlock(&l->p->lock);
	loop_call(base->loop, loopback_finish, l);
	free(l);
}

static int make_end(void *provider, const struct sockaddr *addr,
		    struct fabric_conn **out)
{
	struct provider *p = provider;
	struct link *link = calloc(1, sizeof(*link));
	struct end *e;
	int err;

	if (!link)
		return -ENOMEM;
	ref_init(&link->ref);
	pthread_mutex_init(&link->lock, NULL);
	link->p = p;
	mutex_lock(&p->lock);
	cds_list_add(&link->node, &p->links);
	mutex_unlock(&p->lock);
	err = loop_end_create(link, ACTIVE, &e);
	if (err == 0) {
		xprt_addr_copy(&e->base.info.peer, addr);
		xprt_addr_copy(&e->base.info.local, addr);
		mutex_lock(&p->lock);
		*loopback_port_of(&e->base.info.local) = htons(++p->next_port);
		mutex_unlock(&p->lock);
		*out = &e->base;
	}
	loop_link_put(link);
	return err;
}

static void give_private(struct end *to, const void *data, unsigned len)
{
	struct fabric_info *info = &to->base.info;
	unsigned padded = to->link->p->options.pad_private;
	unsigned room = sizeof(info->private_data);

	if (len > 0)
		memcpy(info->private_data, data, len);
	padded = MAX(len, padded);
	info->private_len = MIN(padded, room);
}

/* The listener takes over a passive end, with the active end's link. */
static int ask_peer(struct end *a, const void *data, unsigned len,
		    unsigned read_depth)
{
	struct provider *p = a->link->p;
	struct listener *l;
	struct end *b;
	int err;

	err = loop_end_create(a->link, PASSIVE, &b);
	if (err < 0)
		return err;
	b->base.info.peer = a->base.info.local;
	b->base.info.local = a->base.info.peer;
	b->base.info.any_port = true;
	b->base.info.read_depth =
		MIN(read_depth, b->base.dev->limits.max_read_depth);
	give_private(b, data, len);
	mutex_lock(&p->lock);
	l = find_listener(p, &a->base.info.peer);
	if (l) {
		cds_list_add_tail(&b->pending, &l->pending);
		if (!l->kicked) {
			l->kicked = true;
			loop_post(l->base.loop, &l->task, loopback_ask);
		}
	}
	mutex_unlock(&p->lock);
	if (!l)
		loopback_refuse(&b->base);
	return 0;
}

static void go_live(struct end *e)
{
	e->state = END_LIVE;
	e->live_due = true;
	loop_end_kick(e);
}

static void accept_peer(struct end *b, const void *data, unsigned len,
			unsigned read_depth)
{
	struct end *a = b->link->end[ACTIVE];

	if (b->state == END_BROKEN || !a) {
		/* The link broke before the passive end existed; tell the end
		 * now. */
		b->state = END_BROKEN;
		loop_end_kick(b);
		return;
	}
	give_private(a, data, len);
	a->base.info.read_depth =
		MIN(read_depth, a->base.dev->limits.max_read_depth);
	go_live(a);
	go_live(b);
}

static int loopback_start(struct fabric_conn *c, const void *data, unsigned len,
			  unsigned read_depth)
{
	struct end *e = container_of(c, struct end, base);
	int err = 0;

	read_depth = MIN(read_depth, c->dev->limits.max_resp_depth);
	if (len > c->dev->limits.max_private ||
	    len > sizeof(c->info.private_data)) {
		loop_violation(e->link->p, "too much private data");
		len = 0;
	}
	mutex_lock(&e->link->lock);
	if (e->side == PASSIVE) {
		accept_peer(e, data, len, read_depth);
		mutex_unlock(&e->link->lock);
		return 0;
	}
	e->state = END_ASKING;
	mutex_unlock(&e->link->lock);
	err = ask_peer(e, data, len, read_depth);
	if (err < 0)
		loop_end_close(c);
	return err;
}

static const struct fabric_ops loop_fabric_ops = {
	.name = "loop",
	.listen = loopback_add_listener,
	.unlisten = unlisten,
	.connect = make_end,
	.setup = loop_end_setup,
	.start = loopback_start,
	.reject = loopback_refuse,
	.post = loop_end_post,
	.post_recv = loop_end_post_recv,
	.close = loop_end_close,
	.free = loop_end_free,
	.mr_create = loop_mr_create,
	.mr_bind = loop_mr_bind,
	.mr_window = loop_mr_window,
	.mr_destroy = loop_mr_destroy,
};
