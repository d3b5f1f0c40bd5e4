/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of contexts.
 *
 * A context is new until a call comes whose checksum is good: an eavesdropper
 * can repeat an INIT, and has a context then, but not its keys.  New contexts
 * push out only new ones.  Of these, and of the proven ones, one client has a
 * part at most, and when too many exist the least recently used one goes: its
 * client makes another (RFC 2203 section 5.3.3.3).
 */
#include "rpc/gss_priv.h"

#include <stdlib.h>
#include <sys/random.h>

#include "lib/hash.h"
#include "lib/stats.h"

#define MAX_PROVEN	8192u
#define MAX_NEW		1024u
#define MAX_WAITING	((size_t)64 << 20)

STAT(gss_pushed_out, "contexts of RPCSEC_GSS that made room for others");

static void lru_init(struct gss_lru *l)
{
	for (int i = 0; i < 2; i++) {
		CDS_INIT_LIST_HEAD(&l->list[i]);
		l->n[i] = 0;
	}
}

void gss_table_init(struct gss_table *t, const struct rpc_gss_config *c)
{
	pthread_mutex_init(&t->lock, NULL);
	t->mech = c->mech;
	t->max[true] = c->max ? c->max : MAX_PROVEN;
	t->max[false] = c->max_new ? c->max_new : MAX_NEW;
	t->max_owner[true] = c->max_client ? c->max_client :
			     MAX(t->max[true] / 4, 1u);
	t->max_owner[false] = c->max_client_new ? c->max_client_new :
			      MAX(t->max[false] / 8, 1u);
	t->max_waiting = c->max_waiting ? c->max_waiting : MAX_WAITING;
	t->max_owner_waiting = c->max_client_waiting ? c->max_client_waiting :
			       t->max_waiting / 4;
	t->waiting = 0;
	lru_init(&t->all);
	for (unsigned i = 0; i < GSS_CHAINS; i++) {
		CDS_INIT_LIST_HEAD(&t->chains[i]);
		CDS_INIT_LIST_HEAD(&t->owners[i]);
	}
}

struct gss_context *gss_context_new(struct gss_table *t)
{
	struct gss_context *c = calloc(1, sizeof(*c));

	/* It is not secret; that of a server that runs later is another one. */
	if (!c || getrandom(c->handle, GSS_HANDLE, 0) != GSS_HANDLE) {
		free(c);
		return NULL;
	}
	ref_init(&c->ref);
	c->table = t;
	c->mech = t->mech;
	c->state = GSS_STEPS;
	pthread_mutex_init(&c->lock, NULL);
	return c;
}

void gss_context_put(struct gss_context *c)
{
	if (!ref_put(&c->ref))
		return;
	if (c->keys)
		c->mech->free(c->keys);
	if (c->making)
		c->mech->abandon(c->making);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static struct cds_list_head *handle_chain(struct gss_table *t,
				      const uint8_t handle[GSS_HANDLE])
{
	uint32_t at;

	memcpy(&at, handle, sizeof(at));
	return &t->chains[at % GSS_CHAINS];
}

/* Locked, as the others. */
static struct gss_owner *get_owner(struct gss_table *t,
				   const struct sockaddr *peer)
{
	struct in6_addr host = xprt_addr_host(peer);
	struct in6_addr network = IN6_IS_ADDR_V4MAPPED(&host) ? host :
				  xprt_addr_network(&host);
	struct cds_list_head *head =
		&t->owners[hash_addr(network.s6_addr) % GSS_CHAINS];
	struct gss_owner *o;

	cds_list_for_each_entry(o, head, link)
		if (IN6_ARE_ADDR_EQUAL(&o->network, &network))
			return o;
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->table = t;
	o->network = network;
	lru_init(&o->lru);
	cds_list_add(&o->link, head);
	return o;
}

static void put_owner(struct gss_owner *o)
{
	if (o->lru.n[false] || o->lru.n[true] || o->waiting)
		return;
	cds_list_del(&o->link);
	free(o);
}

static void enter_lists(struct gss_table *t, struct gss_context *c)
{
	cds_list_add_tail(&c->of_all, &t->all.list[c->proven]);
	cds_list_add_tail(&c->of_owner, &c->owner->lru.list[c->proven]);
	t->all.n[c->proven]++;
	c->owner->lru.n[c->proven]++;
}

static void leave_lists(struct gss_table *t, struct gss_context *c)
{
	cds_list_del(&c->of_all);
	cds_list_del(&c->of_owner);
	t->all.n[c->proven]--;
	c->owner->lru.n[c->proven]--;
}

/* The table's reference goes to @gone, linked by ->chain. */
static void unlist(struct gss_table *t, struct gss_context *c,
		   struct cds_list_head *gone)
{
	leave_lists(t, c);
	put_owner(c->owner);
	c->owner = NULL;
	c->listed = false;
	cds_list_move(&c->chain, gone);
}

/* Before one more context of @o becomes @proven, or new. */
static void push_out(struct gss_table *t, struct gss_owner *o, bool proven,
		      struct cds_list_head *gone)
{
	struct gss_context *c = NULL;

	if (o->lru.n[proven] >= t->max_owner[proven])
		c = cds_list_first_entry(&o->lru.list[proven],
					 struct gss_context, of_owner);
	else if (t->all.n[proven] >= t->max[proven])
		c = cds_list_first_entry(&t->all.list[proven],
					 struct gss_context, of_all);
	if (!c)
		return;
	stat_inc(gss_pushed_out);
	/* Its owner is here to stay: @o gets another one. */
	if (c->owner == o) {
		leave_lists(t, c);
		c->owner = NULL;
		c->listed = false;
		cds_list_move(&c->chain, gone);
	} else {
		unlist(t, c, gone);
	}
}

/* Not locked: frees contexts without users. */
static void put_all(struct cds_list_head *gone)
{
	struct gss_context *c, *next;

	cds_list_for_each_entry_safe(c, next, gone, chain)
		gss_context_put(c);
}

/* The step with @making is over. */
static void end_step(struct gss_context *c, void *making)
{
	c->making = making;
	c->state = making ? GSS_MAKING : GSS_READY;
}

bool gss_table_add(struct gss_table *t, struct gss_context *c,
		   const struct sockaddr *peer, void *making)
{
	struct gss_owner *o;
	CDS_LIST_HEAD(gone);

	mutex_lock(&t->lock);
	o = get_owner(t, peer);
	if (o) {
		push_out(t, o, false, &gone);
		c->owner = o;
		c->listed = true;
		ref_get(&c->ref);
		enter_lists(t, c);
		cds_list_add(&c->chain, handle_chain(t, c->handle));
		end_step(c, making);
	}
	mutex_unlock(&t->lock);
	put_all(&gone);
	return o != NULL;
}

bool gss_table_update(struct gss_table *t, struct gss_context *c, void *making)
{
	bool listed;

	mutex_lock(&t->lock);
	listed = c->listed;
	if (listed)
		end_step(c, making);
	mutex_unlock(&t->lock);
	return listed;
}

/* Locked; not counted. */
static struct gss_context *find_context(struct gss_table *t,
					struct xdr_view handle)
{
	struct gss_context *c;

	if (handle.len != GSS_HANDLE)
		return NULL;
	cds_list_for_each_entry(c, handle_chain(t, handle.data), chain)
		if (memcmp(c->handle, handle.data, GSS_HANDLE) == 0)
			return c;
	return NULL;
}

static void touch_context(struct gss_table *t, struct gss_context *c)
{
	cds_list_del(&c->of_all);
	cds_list_add_tail(&c->of_all, &t->all.list[c->proven]);
	cds_list_del(&c->of_owner);
	cds_list_add_tail(&c->of_owner, &c->owner->lru.list[c->proven]);
}

struct gss_context *gss_table_find(struct gss_table *t, struct xdr_view handle)
{
	struct gss_context *c;

	mutex_lock(&t->lock);
	c = find_context(t, handle);
	if (c && c->state != GSS_READY)
		c = NULL;
	if (c) {
		ref_get(&c->ref);
		if (c->proven)
			touch_context(t, c);
	}
	mutex_unlock(&t->lock);
	return c;
}

struct gss_context *gss_table_claim(struct gss_table *t, struct xdr_view handle)
{
	struct gss_context *c;

	mutex_lock(&t->lock);
	c = find_context(t, handle);
	if (c && c->state != GSS_MAKING)
		c = NULL;
	if (c) {
		ref_get(&c->ref);
		c->state = GSS_STEPS;
	}
	mutex_unlock(&t->lock);
	return c;
}

void gss_table_disclaim(struct gss_table *t, struct gss_context *c)
{
	mutex_lock(&t->lock);
	c->state = GSS_MAKING;
	mutex_unlock(&t->lock);
}

/* Locked.  The last quarter is for clients that have no call there, so that a
 * few that send many don't keep all others from their first. */
static bool has_room_to_wait(const struct gss_table *t,
			     const struct gss_owner *o, size_t bytes)
{
	size_t most = o->waiting ? t->max_waiting / 4 * 3 : t->max_waiting;

	return t->waiting + bytes <= most &&
	       o->waiting + bytes <= t->max_owner_waiting;
}

struct gss_owner *gss_table_wait(struct gss_table *t,
				 const struct sockaddr *peer, size_t bytes)
{
	struct gss_owner *o;

	mutex_lock(&t->lock);
	o = get_owner(t, peer);
	if (o && has_room_to_wait(t, o, bytes)) {
		t->waiting += bytes;
		o->waiting += bytes;
	} else if (o) {
		put_owner(o);
		o = NULL;
	}
	mutex_unlock(&t->lock);
	return o;
}

void gss_table_waited(struct gss_owner *o, size_t bytes)
{
	struct gss_table *t = o->table;

	mutex_lock(&t->lock);
	t->waiting -= bytes;
	o->waiting -= bytes;
	put_owner(o);
	mutex_unlock(&t->lock);
}

void gss_table_prove(struct gss_table *t, struct gss_context *c)
{
	CDS_LIST_HEAD(gone);

	mutex_lock(&t->lock);
	if (c->listed && !c->proven) {
		push_out(t, c->owner, true, &gone);
		leave_lists(t, c);
		c->proven = true;
		enter_lists(t, c);
	}
	mutex_unlock(&t->lock);
	put_all(&gone);
}

void gss_table_remove(struct gss_table *t, struct gss_context *c)
{
	CDS_LIST_HEAD(gone);

	mutex_lock(&t->lock);
	if (c->listed)
		unlist(t, c, &gone);
	mutex_unlock(&t->lock);
	put_all(&gone);
}

unsigned gss_table_count(struct gss_table *t)
{
	unsigned n;

	mutex_lock(&t->lock);
	n = t->all.n[false] + t->all.n[true];
	mutex_unlock(&t->lock);
	return n;
}

void gss_table_fini(struct gss_table *t)
{
	CDS_LIST_HEAD(gone);

	for (int i = 0; i < 2; i++)
		while (t->all.n[i])
			unlist(t, cds_list_first_entry(&t->all.list[i],
				struct gss_context, of_all), &gone);
	put_all(&gone);
	pthread_mutex_destroy(&t->lock);
}
