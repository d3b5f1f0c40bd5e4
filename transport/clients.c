/* SPDX-License-Identifier: BSD-2-Clause */
/* clients - the hosts that call: each with its connections and its account. */
#include "transport/clients.h"

#include <stdlib.h>
#include <string.h>

#include "lib/stats.h"
#include "lib/thread.h"
#include "transport/gate.h"
#include "transport/xprt.h"

STAT(clients_dropped, "clients without connections forgotten to make room");
STAT(clients_not_held, "connections of clients that are counted together");

enum { BUCKETS = 1024, DEFAULT_MAX = 4096, DEFAULT_KEEP_S = 3600 };

struct xprt_clients {
	unsigned	 max;
	struct xprt_gate places;	/* of clients with holders */
	uint64_t	 keep_ns;
	/* Guards the rest, and the fields that clients.h names of each client.
	 * A leaf. */
	pthread_mutex_t	 lock;
	unsigned	 count;
	struct xprt_client *buckets[BUCKETS];
	struct cds_list_head idle;	/* the one that left first is first */
	struct xprt_client others;	/* of all that have no own */
};

static void client_init(struct xprt_client *c, struct xprt_clients *t)
{
	c->table = t;
	c->first = clock_ns();
	CDS_INIT_LIST_HEAD(&c->idle);
	CDS_INIT_LIST_HEAD(&c->conns);
}

struct xprt_clients *xprt_clients_create(unsigned max, unsigned keep_s)
{
	struct xprt_clients *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->max = max ? max : DEFAULT_MAX;
	xprt_gate_init_fair(&t->places, t->max);
	t->keep_ns = (uint64_t)(keep_s ? keep_s : DEFAULT_KEEP_S) * NS_PER_S;
	pthread_mutex_init(&t->lock, NULL);
	CDS_INIT_LIST_HEAD(&t->idle);
	client_init(&t->others, t);
	return t;
}

/* With the lock, from here on.  Returns the link of @host in its bucket, or the
 * end of the bucket. */
static struct xprt_client **client_at(struct xprt_clients *t,
				      const struct in6_addr *host)
{
	struct xprt_client **at = &t->buckets[xprt_addr_hash(host) % BUCKETS];

	while (*at && memcmp(&(*at)->host, host, sizeof(*host)) != 0)
		at = &(*at)->next;
	return at;
}

/* Forgets the client, which has no holder. */
static void client_drop(struct xprt_clients *t, struct xprt_client *c)
{
	*client_at(t, &c->host) = c->next;
	cds_list_del(&c->idle);
	t->count--;
	account_fini(&c->account);
	free(c);
}

static struct xprt_client *longest_idle(struct xprt_clients *t)
{
	return cds_list_empty(&t->idle) ? NULL :
	       cds_list_first_entry(&t->idle, struct xprt_client, idle);
}

static void drop_old(struct xprt_clients *t, uint64_t now)
{
	struct xprt_client *c;

	while ((c = longest_idle(t)) && now - c->left >= t->keep_ns)
		client_drop(t, c);
}

/* Makes a client that has a place. */
static struct xprt_client *client_make(struct xprt_clients *t,
				       const struct in6_addr *host)
{
	struct xprt_client *c, **at;

	drop_old(t, clock_ns());
	/* Each client that is not idle has one of as many places. */
	if (t->count >= t->max) {
		stat_inc(clients_dropped);
		client_drop(t, longest_idle(t));
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	client_init(c, t);
	c->host = *host;
	at = client_at(t, host);
	*at = c;
	t->count++;
	return c;
}

/* The client of @host, held; that of all others, if @host gets no place or
 * @own is false. */
static struct xprt_client *client_hold(struct xprt_clients *t,
				       const struct in6_addr *host, bool own)
{
	struct xprt_client *c = *client_at(t, host);

	if (c && c->holders > 0) {
		c->holders++;
		return c;
	}
	if (c || own) {
		if (xprt_gate_enter_host(&t->places, host) == 0) {
			c = c ? c : client_make(t, host);
			if (!c)
				xprt_gate_leave_host(&t->places, host);
		} else {
			c = NULL;
		}
		if (!c)
			stat_inc(clients_not_held);
	}
	if (c) {
		cds_list_del(&c->idle);
		CDS_INIT_LIST_HEAD(&c->idle);
	} else {
		c = &t->others;
	}
	c->holders++;
	return c;
}

static void client_let_go(struct xprt_client *c)
{
	struct xprt_clients *t = c->table;

	assert(c->holders > 0);
	if (--c->holders > 0 || c == &t->others)
		return;
	xprt_gate_leave_host(&t->places, &c->host);
	c->left = clock_ns();
	cds_list_add_tail(&c->idle, &t->idle);
}

void xprt_client_enter(struct xprt_clients *t, struct xprt *x)
{
	struct in6_addr host = xprt_addr_host((struct sockaddr *)&x->peer);
	struct xprt_client *c;

	if (!t)
		return;
	CDS_INIT_LIST_HEAD(&x->of_client);
	mutex_lock(&t->lock);
	c = client_hold(t, &host, !x->datagram);
	c->udp |= x->datagram;
	if (!x->datagram)
		cds_list_add_tail(&x->of_client, &c->conns);
	mutex_unlock(&t->lock);
	x->client = c;
}

void xprt_client_leave(struct xprt *x)
{
	struct xprt_client *c = x->client;

	if (!c)
		return;
	mutex_lock(&c->table->lock);
	cds_list_del(&x->of_client);
	client_let_go(c);
	mutex_unlock(&c->table->lock);
	x->client = NULL;
}

static void client_look(struct xprt_client *c, struct xprt_client_view *v)
{
	struct xprt *x;

	v->first = c->first;
	v->last = atomic_load(&c->last);
	v->udp = c->udp;
	cds_list_for_each_entry(x, &c->conns, of_client) {
		struct xprt_facts *f = &v->conns[v->nshown];

		if (v->nconns++ >= XPRT_CLIENT_SHOWN)
			continue;
		v->nshown++;
		f->transport = x->ops->name;
		f->port = xprt_addr_port(&x->peer);
		if (x->ops->tell)
			x->ops->tell(x, f);
	}
}

/* Returns the hosts, @n of them, malloced; NULL: no memory. */
static struct in6_addr *list_hosts(struct xprt_clients *t, unsigned *n)
{
	struct in6_addr *hosts;
	unsigned k = 0;

	mutex_lock(&t->lock);
	drop_old(t, clock_ns());
	hosts = calloc(t->count + 1, sizeof(*hosts));
	for (unsigned i = 0; hosts && i < BUCKETS; i++)
		for (struct xprt_client *c = t->buckets[i]; c; c = c->next)
			hosts[k++] = c->host;
	mutex_unlock(&t->lock);
	*n = k;
	return hosts;
}

/* False: it was dropped meanwhile. */
static bool view_client(struct xprt_clients *t, const struct in6_addr *host,
			struct xprt_client_view *v)
{
	struct xprt_client *c;

	memset(v, 0, sizeof(*v));
	v->host = host;
	mutex_lock(&t->lock);
	c = *client_at(t, host);
	if (c) {
		client_look(c, v);
		account_sum(&c->account, &v->sum);
	}
	mutex_unlock(&t->lock);
	return c;
}

static void view_others(struct xprt_clients *t, struct xprt_client_view *v)
{
	memset(v, 0, sizeof(*v));
	mutex_lock(&t->lock);
	client_look(&t->others, v);
	account_sum(&t->others.account, &v->sum);
	mutex_unlock(&t->lock);
	v->nshown = 0;
}

void xprt_clients_walk(struct xprt_clients *t, xprt_clients_fn *fn, void *arg)
{
	struct xprt_client_view *v = malloc(sizeof(*v));
	struct in6_addr *hosts = NULL;
	unsigned n = 0;

	if (v)
		hosts = list_hosts(t, &n);
	for (unsigned i = 0; i < n; i++)
		if (view_client(t, &hosts[i], v))
			fn(v, arg);
	if (hosts) {
		view_others(t, v);
		fn(v, arg);
	}
	free(hosts);
	free(v);
}

/* Lists the connections of @c that are of @host and not gone, and counts a
 * reference of each.  @n are listed before; returns how many are then. */
static unsigned list_conns(const struct xprt_client *c,
			   const struct in6_addr *host, struct xprt **out,
			   unsigned n)
{
	struct in6_addr of;
	struct xprt *x;

	cds_list_for_each_entry(x, &c->conns, of_client) {
		of = xprt_addr_host((struct sockaddr *)&x->peer);
		if (memcmp(&of, host, sizeof(of)) == 0 && x->ops->end &&
		    ref_get_unless_zero(&x->ref))
			out[n++] = x;
	}
	return n;
}

static unsigned conns_in(const struct xprt_client *c)
{
	const struct cds_list_head *at;
	unsigned n = 0;

	cds_list_for_each(at, &c->conns)
		n++;
	return n;
}

unsigned xprt_clients_end(struct xprt_clients *t, const struct in6_addr *host)
{
	struct xprt_client *c;
	struct xprt **all;
	unsigned n = 0;

	mutex_lock(&t->lock);
	c = *client_at(t, host);
	all = calloc((c ? conns_in(c) : 0) + conns_in(&t->others) + 1,
		     sizeof(struct xprt *));
	if (all && c)
		n = list_conns(c, host, all, n);
	if (all)
		n = list_conns(&t->others, host, all, n);
	mutex_unlock(&t->lock);
	for (unsigned i = 0; i < n; i++) {
		xprt_life_why(all[i], "gannetctl disconnects it");
		all[i]->ops->end(all[i]);
		xprt_put(all[i]);
	}
	free(all);
	return n;
}

void xprt_clients_destroy(struct xprt_clients *t)
{
	struct xprt_client *c;

	if (!t)
		return;
	while ((c = longest_idle(t)))
		client_drop(t, c);
	assert(t->count == 0 && t->others.holders == 0);
	account_fini(&t->others.account);
	xprt_gate_fini(&t->places);
	pthread_mutex_destroy(&t->lock);
	free(t);
}
