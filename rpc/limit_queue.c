/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limit_queue - the buckets and queues of an export that has limits.
 *
 * A client has separate buckets from its first call on.  They are freed, when
 * another client comes, once they are as good as new.
 *
 * An IPv6 host chooses among the addresses of its /64.  A fair gate bounds a
 * /64 and a /48 by the free places: a network must not take all of them.
 * Clients without a place share LIMIT_OTHERS of them by their networks, so
 * clients of a network that takes too many share with each other, and with few
 * strangers.
 */
#include "rpc/limit_priv.h"

#include <stdlib.h>

#include "lib/clock.h"
#include "lib/thread.h"
#include "transport/addr.h"

/* Clients with separate buckets. */
#define MAX_CLIENTS	4096u

/* ---- clients: with the limit's lock */

static void limit_client_init(struct limit_client *c)
{
	CDS_INIT_LIST_HEAD(&c->calls);
}

/* Frees the clients of a chain that are as good as new. */
static void drop_idle_clients(struct rpc_limit *l, struct limit_client **p,
			      uint64_t now)
{
	struct limit_client *c;

	while ((c = *p)) {
		if (c->users || !bucket_is_full(&c->ops, now) ||
		    !bucket_is_full(&c->bytes, now)) {
			p = &c->next;
			continue;
		}
		*p = c->next;
		xprt_gate_leave_host(&l->places, &c->host);
		free(c);
	}
}

static struct limit_client *others_of(struct rpc_limit *l,
				      const struct in6_addr *host)
{
	const struct in6_addr network = xprt_addr_network(host);

	return &l->others[xprt_addr_hash(&network) % LIMIT_OTHERS];
}

/* Gets @host a place, if need be after clients that are as good as new have
 * left theirs. */
static bool enter_places(struct rpc_limit *l, const struct in6_addr *host,
			 uint64_t now)
{
	if (xprt_gate_enter_host(&l->places, host) == 0)
		return true;
	if (now < l->swept + BUCKET_BURST_NS)
		return false;
	l->swept = now;
	for (unsigned i = 0; i < LIMIT_CHAINS; i++)
		drop_idle_clients(l, &l->chains[i], now);
	return xprt_gate_enter_host(&l->places, host) == 0;
}

/* Each call comes here of a client that is one too many: then all the chains
 * are gone through only now and then. */
static struct limit_client *client_add(struct rpc_limit *l, unsigned chain,
				       const struct in6_addr *host,
				       uint64_t now)
{
	struct limit_client *c;

	drop_idle_clients(l, &l->chains[chain], now);
	if (!enter_places(l, host, now))
		return others_of(l, host);
	c = calloc(1, sizeof(*c));
	if (!c) {
		xprt_gate_leave_host(&l->places, host);
		return others_of(l, host);
	}
	limit_client_init(c);
	c->host = *host;
	c->next = l->chains[chain];
	l->chains[chain] = c;
	return c;
}

static struct limit_client *client_find(struct rpc_limit *l, unsigned chain,
					const struct in6_addr *host)
{
	struct limit_client *c = l->chains[chain];

	while (c && memcmp(&c->host, host, sizeof(*host)) != 0)
		c = c->next;
	return c;
}

static unsigned chain_of(const struct in6_addr *host)
{
	return (unsigned)(xprt_addr_hash(host) % LIMIT_CHAINS);
}

struct limit_client *limit_client_of(struct rpc_limit *l,
				     const struct rpc_call *call, uint64_t now)
{
	struct in6_addr host = xprt_addr_host(rpc_call_peer(call));
	unsigned chain = chain_of(&host);
	struct limit_client *c = client_find(l, chain, &host);

	return c ? c : client_add(l, chain, &host, now);
}

struct limit_client *limit_find_host(struct rpc_limit *l,
				     const struct in6_addr *host)
{
	return client_find(l, chain_of(host), host);
}

/* The ns that a call of @bytes moves its client's clock on. */
static uint64_t clock_cost(const struct rpc_limit *l, uint64_t bytes)
{
	return MAX(bucket_ns(&l->ops, 1), bucket_ns(&l->bytes, bytes));
}

void limit_pay(struct rpc_limit *l, struct rpc_slot *slot, uint64_t now)
{
	const struct rpc_limited *w = &slot->priv.limited;
	struct limit_client *c = w->client;

	bucket_take(&l->ops, 1, now);
	bucket_take(&l->bytes, w->bytes, now);
	bucket_take(&c->ops, 1, now);
	bucket_take(&c->bytes, w->bytes, now);
	l->clock = c->clock = MAX(c->clock, l->clock);
	c->clock += clock_cost(l, w->bytes);
}

/* ---- queues: with the limit's lock */

void limit_list_turn(struct rpc_limit *l, struct limit_client *c)
{
	struct cds_list_head *at = l->turns.prev;

	while (at != &l->turns &&
	       caa_container_of(at, struct limit_client, turn)->clock >
	       c->clock)
		at = at->prev;
	cds_list_add(&c->turn, at);
}

void limit_enqueue(struct rpc_limit *l, struct rpc_slot *slot)
{
	struct rpc_limited *w = &slot->priv.limited;
	struct limit_client *c = w->client;
	bool is_first = cds_list_empty(&c->calls);

	cds_list_add_tail(&w->link, &c->calls);
	l->nholding += slot->call.msg->in_pool;
	if (!is_first)
		return;
	/* A client that was away has not saved up turns. */
	c->clock = MAX(c->clock, l->clock);
	limit_list_turn(l, c);
}

void limit_dequeue(struct rpc_limit *l, struct rpc_slot *slot)
{
	struct rpc_limited *w = &slot->priv.limited;
	struct limit_client *c = w->client;

	cds_list_del(&w->link);
	l->nholding -= slot->call.msg->in_pool;
	c->nwaiting--;
	if (cds_list_empty(&c->calls))
		cds_list_del(&c->turn);
}

void limit_forget(struct rpc_slot *slot)
{
	slot->priv.limited.client->users--;
	slot->priv.limited.limit = NULL;
}

/* ---- its life, and a call's end */

struct rpc_limit *rpc_limit_create(struct rpc_server *server)
{
	struct rpc_limit *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	ref_init(&l->ref);
	l->limits = &server->limits;
	l->pool = server->pool;
	pthread_mutex_init(&l->lock, NULL);
	CDS_INIT_LIST_HEAD(&l->turns);
	for (unsigned i = 0; i < LIMIT_OTHERS; i++)
		limit_client_init(&l->others[i]);
	xprt_gate_init_fair(&l->places, MAX_CLIENTS);
	mutex_lock(&l->limits->lock);
	cds_list_add(&l->link, &l->limits->all);
	mutex_unlock(&l->limits->lock);
	return l;
}

void rpc_limit_put(struct rpc_limit *l)
{
	struct rpc_limits *limits = l->limits;

	if (!ref_put(&l->ref))
		return;
	mutex_lock(&limits->lock);
	cds_list_del(&l->link);
	mutex_unlock(&limits->lock);
	limit_free(l);
}

/* With the lock.  The call of @c moved @used bytes of the @paid ones. */
static void return_unused(struct rpc_limit *l, struct limit_client *c,
			  uint64_t paid, uint64_t used)
{
	uint64_t ns = clock_cost(l, paid) - clock_cost(l, used);

	bucket_give(&l->bytes, paid - used);
	bucket_give(&c->bytes, paid - used);
	c->clock -= MIN(c->clock, ns);
	if (!cds_list_empty(&c->calls)) {
		cds_list_del(&c->turn);
		limit_list_turn(l, c);
	}
}

void rpc_limit_settle(struct rpc_call *call)
{
	struct rpc_slot *slot = rpc_slot_of(call);
	struct rpc_limited *w = &slot->priv.limited;
	struct rpc_limit *l = w->limit;
	bool sooner = false;

	mutex_lock(&l->lock);
	if (call->bytes < w->bytes) {
		return_unused(l, w->client, w->bytes, call->bytes);
		sooner = !cds_list_empty(&l->turns);
	}
	limit_forget(slot);
	mutex_unlock(&l->lock);
	/* The thread sleeps until the earlier debt is paid off. */
	if (sooner)
		limit_ask_thread(l->limits, clock_ns());
	rpc_limit_put(l);
}

void limit_ask_thread(struct rpc_limits *limits, uint64_t due)
{
	mutex_lock(&limits->lock);
	due = MAX(due, limits->looked + LOOK_NS);
	if (limits->off)
		due = 0;
	if (due < limits->due) {
		limits->due = due;
		pthread_cond_signal(&limits->wanted);
	}
	mutex_unlock(&limits->lock);
}

void limit_free(struct rpc_limit *l)
{
	for (unsigned i = 0; i < LIMIT_CHAINS; i++)
		for (struct limit_client *c; (c = l->chains[i]);) {
			l->chains[i] = c->next;
			xprt_gate_leave_host(&l->places, &c->host);
			free(c);
		}
	xprt_gate_fini(&l->places);
	pthread_mutex_destroy(&l->lock);
	free(l);
}
