/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * credits - a connection's grant as its use and memory change (RFC 8166 section
 * 3.3.1).  On the poller.
 *
 * Operation: each call is counted.  When most of the grant is in use, or at the
 * end of a period of some calls, grant.c decides.  A higher grant is announced
 * when its slots are made and its Receives posted.  A lower one is announced at
 * once, and the slots and Receives of the old one stay until the requester is
 * known to keep to the new one.
 *
 * That is known from two things.  Slots are taken in epochs, and a lower grant
 * begins one.  Once all slots of older epochs are back, each reply that is yet
 * to be sent carries the lower grant.  And calls prove that the requester took
 * such a reply (conn.c).  The calls that it sends afterwards keep to this
 * grant.
 *
 * A requester that breaks that rule has more calls in progress than credits,
 * sooner or later, and loses its connection (recv.c), like any other that does.
 *
 * A Receive that is posted can't be taken back.  So a connection that was busy
 * and has stopped calling keeps its Receives until it is closed.
 */
#include "transport/rpcrdma/credits.h"

#include <errno.h>
#include <limits.h>

#include "lib/stats.h"
#include "transport/rpcrdma/grant.h"
#include "transport/rpcrdma/listen.h"
#include "transport/rpcrdma/store.h"

STAT(rdma_grants_grown, "grants raised because their credits were in use");
STAT(rdma_grants_shrunk, "grants lowered");
STAT(rdma_grants_limited, "decisions on grants that lacked memory");
STAT(rdma_grants_settled, "lowered grants whose requesters keep to them");

/* A period's calls for each credit: so many that a posted Receive is used
 * twice. */
enum { PERIOD = 4 };

static struct rpcrdma_extent extent_of_more(const struct rpcrdma_conn *conn,
					    unsigned n)
{
	return (struct rpcrdma_extent){
		.slots = n, .recvs = 2 * n, .inline_size = conn->inline_size,
		.msg_upper = conn->xprt.sink->msg_upper,
	};
}

static void begin_period(struct rpcrdma_conn *conn)
{
	struct rpcrdma_credits *c = &conn->credits;
	unsigned grant = atomic_load(&c->grant);

	c->peak = 0;
	c->calls = 0;
	c->since = loop_now(conn->xprt.loop);
	c->period = c->lowering ? grant : PERIOD * grant;
	c->alarm = grant < c->max ? grant - grant / 4 : UINT_MAX;
	if (c->min == c->max)
		c->period = UINT_MAX;
}

/* Replies tell of @grant from now on. */
static void set_grant(struct rpcrdma_conn *conn, unsigned grant)
{
	struct rpcrdma_budget *budget = conn->listener->options.budget;
	unsigned before = atomic_exchange(&conn->credits.grant, grant);

	if (budget)
		atomic_fetch_add(&budget->granted, grant - before);
}

void rpcrdma_credits_init(struct rpcrdma_conn *conn)
{
	struct rpcrdma_credits *c = &conn->credits;

	rpcrdma_slots_promise(&conn->slots, c->min);
	set_grant(conn, c->min);
	begin_period(conn);
}

void rpcrdma_credits_free_gone(struct rpcrdma_conn *conn)
{
	struct rpcrdma_store *store;

	while ((store = rpcrdma_slots_take_gone(&conn->slots)))
		rpcrdma_store_destroy(conn, store);
}

static void free_stores(struct rpcrdma_conn *conn, struct rpcrdma_store *store)
{
	struct rpcrdma_store *next;

	for (; store; store = next) {
		next = store->next;
		rpcrdma_store_destroy(conn, store);
	}
}

void rpcrdma_credits_fini(struct rpcrdma_conn *conn)
{
	set_grant(conn, 0);
	free_stores(conn, conn->slots.retired);
	free_stores(conn, conn->credits.newest);
}

static void store_came(struct loop_task *t);

static void register_store(struct rpcrdma_job *job)
{
	struct rpcrdma_credits *c = container_of(job, struct rpcrdma_credits,
						 job);
	struct rpcrdma_conn *conn = container_of(c, struct rpcrdma_conn,
						 credits);

	c->registered = rpcrdma_store_register(conn, c->coming);
	loop_post(conn->xprt.loop, &c->task, store_came);
}

/* Adds the store that was registered.  False: it was not, or the Receives of
 * retired stores leave no room for it. */
static bool take_store(struct rpcrdma_conn *conn)
{
	struct rpcrdma_credits *c = &conn->credits;
	struct rpcrdma_slots *s = &conn->slots;
	struct rpcrdma_store *store = c->coming;

	c->coming = NULL;
	if (c->registered < 0 ||
	    2 * (s->capacity + store->nslots) + rpcrdma_slots_leaving(s) >
	    2 * c->max) {
		rpcrdma_store_destroy(conn, store);
		return false;
	}
	rpcrdma_store_open(conn, store);
	store->next = c->newest;
	c->newest = store;
	return true;
}

/*
 * Makes slots for @n more credits.  False: no memory, or Receives of retired
 * stores leave no room for them; or, where memory is pinned, they come later
 * (store_came()).
 */
static bool add_store(struct rpcrdma_conn *conn, unsigned n)
{
	struct rpcrdma_slots *s = &conn->slots;
	struct rpcrdma_extent t = extent_of_more(conn, n);
	struct rpcrdma_budget *budget = conn->listener->options.budget;
	struct rpcrdma_store *store;

	if (conn->credits.coming ||
	    2 * (s->capacity + n) + rpcrdma_slots_leaving(s) >
	    2 * conn->credits.max)
		return false;
	if (!rpcrdma_budget_take(budget, rpcrdma_store_bytes(&t)))
		return false;
	store = rpcrdma_store_create(&t);
	if (!store) {
		rpcrdma_budget_give(budget, rpcrdma_store_bytes(&t));
		return false;
	}
	store->bytes = rpcrdma_store_bytes(&t);
	conn->credits.coming = store;
	conn->credits.wanted = s->capacity + n;
	conn->credits.job.run = register_store;
	if (conn->fc->dev->limits.pins) {
		xprt_get(&conn->xprt);
		rpcrdma_registrar_do(&conn->listener->registrar,
				     &conn->credits.job);
		return false;
	}
	conn->credits.registered = rpcrdma_store_register(conn, store);
	return take_store(conn);
}

static void raise_grant(struct rpcrdma_conn *conn, unsigned next)
{
	struct rpcrdma_credits *c = &conn->credits;
	struct rpcrdma_slots *s = &conn->slots;

	if (next > s->capacity && !add_store(conn, next - s->capacity))
		next = s->capacity;
	if (next <= atomic_load(&c->grant))
		return;
	c->lowering = false;
	/* A Receive is posted for each credit before a reply tells of it (RFC
	 * 8166 section 3.3.1). */
	if (next > s->credits) {
		rpcrdma_slots_promise(s, next);
		if (rpcrdma_store_post(conn, true) < 0)
			rpcrdma_conn_close(conn, -ENOTCONN);
	}
	set_grant(conn, next);
	stat_inc(rdma_grants_grown);
}

static void store_came(struct loop_task *t)
{
	struct rpcrdma_credits *c = container_of(t, struct rpcrdma_credits,
						 task);
	struct rpcrdma_conn *conn = container_of(c, struct rpcrdma_conn,
						 credits);

	if (!rpcrdma_conn_is_live(conn)) {
		rpcrdma_store_destroy(conn, c->coming);
		c->coming = NULL;
	} else if (take_store(conn) && !c->lowering) {
		raise_grant(conn, MIN(c->wanted, conn->slots.capacity));
		begin_period(conn);
	}
	xprt_put(&conn->xprt);
}

static void lower_grant(struct rpcrdma_conn *conn, unsigned next)
{
	struct rpcrdma_credits *c = &conn->credits;

	set_grant(conn, next);
	rpcrdma_slots_turn(&conn->slots);
	c->lowering = true;
	c->known = 0;
	stat_inc(rdma_grants_shrunk);
}

static void retire_stores(struct rpcrdma_conn *conn)
{
	struct rpcrdma_slots *s = &conn->slots;
	struct rpcrdma_store *store;

	while ((store = conn->credits.newest) != conn->store &&
	       s->capacity - store->nslots >= s->credits) {
		conn->credits.newest = store->next;
		rpcrdma_slots_retire(s, store);
	}
	rpcrdma_credits_free_gone(conn);
}

/* Takes away stores that the lower grant does not need, once the requester
 * keeps to it. */
static void settle_grant(struct rpcrdma_conn *conn)
{
	struct rpcrdma_credits *c = &conn->credits;

	if (c->known == 0) {
		if (!rpcrdma_slots_turned(&conn->slots))
			return;
		c->known = conn->proof.replies + 1;
	}
	if (atomic_load_explicit(&conn->proof.taken, memory_order_relaxed) <
	    c->known)
		return;
	c->lowering = false;
	rpcrdma_slots_promise(&conn->slots, atomic_load(&c->grant));
	stat_inc(rdma_grants_settled);
	retire_stores(conn);
}

static struct rpcrdma_demand demand_of(const struct rpcrdma_conn *conn)
{
	const struct rpcrdma_credits *c = &conn->credits;
	const struct rpcrdma_extent t = extent_of_more(conn, 1);
	struct rpcrdma_budget *b = conn->listener->options.budget;

	return (struct rpcrdma_demand){
		.grant = atomic_load(&c->grant), .peak = c->peak,
		.calls = c->calls,
		.time = loop_now(conn->xprt.loop) - c->since,
		.path = conn->listener->options.path_us * 1000ull,
		.asked = c->asked, .min = c->min, .max = c->max,
		.unit = rpcrdma_store_bytes(&t),
		.used = b ? atomic_load(&b->used) : 0,
		.budget = b ? b->max : 0,
		.conns = b ? atomic_load(&b->conns) : 1,
	};
}

void rpcrdma_credits_decide(struct rpcrdma_conn *conn)
{
	struct rpcrdma_credits *c = &conn->credits;
	struct rpcrdma_demand d = demand_of(conn);
	unsigned next = rpcrdma_grant_next(&d);

	/* A grant below the one before the lowering does not cancel the
	 * lowering. */
	if (c->lowering && next < conn->slots.credits)
		settle_grant(conn);
	if (next > d.grant &&
	    (!c->lowering || next >= conn->slots.credits))
		raise_grant(conn, next);
	else if (next < d.grant && !c->lowering)
		lower_grant(conn, next);
	next = atomic_load(&c->grant);
	d.budget = 0;
	if (!c->coming && next < rpcrdma_grant_next(&d))
		stat_inc(rdma_grants_limited);
	if (next == d.grant && c->calls < c->period)
		c->alarm = UINT_MAX;	/* until the period is over */
	else
		begin_period(conn);
}
