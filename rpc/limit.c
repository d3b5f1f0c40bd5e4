/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limit - calls over the limits of an export wait, without a thread.
 *
 * Operation: a call passes while the buckets of its export and of its client
 * are out of debt, and takes its cost.  Else it is suspended, in the queue of
 * its client.  One thread for all exports sleeps until the first bucket is out
 * of debt, and lets calls go on, in their shares of the workers.  The calls of
 * a client go in the order in which they came.  Where clients wait for the
 * export's own limit, the one that had least of it lately is next: each has a
 * clock, which its cost moves on (start-time fair queueing).
 *
 * A waiting call keeps its place in its connection, as any call that waits, and
 * perhaps payload buffers.  While other calls wait for such a buffer, the
 * latest calls are sent back to their clients (JUKEBOX).  rpc/relieve.c sends
 * back calls that fill their connection for long.
 *
 * Ownership: a limit is counted by its exports, and by each call from the time
 * that it takes or waits until its end.  Who takes a waiting call out of its
 * client's queue owns the call.
 *
 * Locks: that of the thread, then a limit's.  Neither is held while a call
 * leaves its thread, goes on or is sent back.
 */
#include "rpc/limit_priv.h"

#include <errno.h>

#include "lib/clock.h"
#include "lib/stats.h"
#include "lib/thread.h"
#include "transport/clients.h"

/* Calls of one client that wait. */
#define MAX_WAITING	1024u
/* The thread sleeps no longer, though no call asks it to look. */
#define MAX_SLEEP_NS	(86400 * NS_PER_S)
/* It looks so often whether others want the memory of waiting calls. */
#define MEMORY_NS	(100 * NS_PER_MS)

STAT(rpc_limited, "calls delayed by a limit of their export");
STAT(rpc_limit_full, "calls answered JUKEBOX because too many of their client "
     "waited for a limit");
STAT(rpc_limit_memory, "calls answered JUKEBOX because other clients needed "
     "the memory that they held while they waited for a limit");

static const char reason[] = "limit";

/* A look of the thread at waiting calls: it lets them go as the buckets say,
 * asks all of them again, or lets all go. */
enum look { LOOK_SERVE, LOOK_AGAIN, LOOK_OFF };

/* ---- a call's way */

static void set_rates(struct bucket *ops, struct bucket *bytes,
		      const struct rates *r, uint64_t now)
{
	bucket_set_rate(ops, r->ops, now);
	bucket_set_rate(bytes, r->bytes, now);
}

/* With the lock.  True if no call has to go before one of @c. */
static bool may_pass(const struct rpc_limit *l, const struct limit_client *c,
		     uint64_t now)
{
	return !c->nwaiting && !l->contended &&
	       !limit_wait(&l->ops, &l->bytes, now) &&
	       !limit_wait(&c->ops, &c->bytes, now);
}

static void count_held(const struct rpc_slot *slot)
{
	const struct xprt *x = slot->call.msg->xprt;
	struct xprt_client *client = x->client;
	uint64_t ns = clock_ns() - slot->priv.since;

	if (slot->call.by_proc)
		account_add_held(&slot->call.by_proc->by[rpc_way_of(x)], ns);
	if (slot->call.by_export)
		account_add_held(slot->call.by_export, ns);
	if (client)
		account_add_held(&client->account, ns);
}

static int hold_back(struct rpc_slot *slot, struct rpc_limit *l)
{
	struct limit_client *c = slot->priv.limited.client;
	struct rpc_limits *limits = l->limits;
	uint64_t now = clock_ns(), wait;

	stat_inc(rpc_limited);
	rpc_call_wait(&slot->call, reason, rpc_this_step(&slot->call));
	mutex_lock(&l->lock);
	wait = limit_wait(&l->ops, &l->bytes, now);
	l->contended |= wait > 0;
	wait = MAX(wait, limit_wait(&c->ops, &c->bytes, now));
	if (slot->call.msg->in_pool)
		wait = MIN(wait, MEMORY_NS);
	limit_enqueue(l, slot);
	mutex_unlock(&l->lock);
	/* The call can be over by now, and @l gone. */
	limit_ask_thread(limits, now + wait);
	return RPC_PENDING;
}

int rpc_call_limit(struct rpc_call *call, struct rpc_limit *l,
		   const struct rates *all, const struct rates *each,
		   uint64_t bytes)
{
	struct rpc_slot *slot = rpc_slot_of(call);
	struct rpc_limited *w = &slot->priv.limited;
	uint64_t now = clock_ns();
	struct limit_client *c;
	bool passes, full;

	mutex_lock(&l->lock);
	set_rates(&l->ops, &l->bytes, all, now);
	c = limit_client_of(l, call, now);
	set_rates(&c->ops, &c->bytes, each, now);
	w->client = c;
	w->bytes = bytes;
	passes = may_pass(l, c, now);
	full = !passes && c->nwaiting >= MAX_WAITING;
	if (!full) {
		w->limit = l;
		c->users++;
		ref_get(&l->ref);
	}
	if (passes)
		limit_pay(l, slot, now);
	else if (!full)
		c->nwaiting++;
	mutex_unlock(&l->lock);
	if (full) {
		stat_inc(rpc_limit_full);
		return -ETIMEDOUT;
	}
	return passes ? 0 : hold_back(slot, l);
}

bool rpc_call_has_passed(const struct rpc_call *call)
{
	const struct rpc_slot *slot = (const struct rpc_slot *)call;

	return slot->priv.limited.limit != NULL;
}

/* ---- the thread */

/* With the lock.  Takes the first call of @c, for the caller's list. */
static void take_first(struct rpc_limit *l, struct limit_client *c,
		       struct cds_list_head *taken)
{
	struct rpc_slot *slot = limit_slot(c->calls.next);

	limit_dequeue(l, slot);
	cds_list_add_tail(&slot->priv.limited.link, taken);
}

/* With the lock.  Lets all calls of @c pass, or, without @pays, none. */
static void take_client(struct rpc_limit *l, struct limit_client *c, bool pays,
			uint64_t now, struct cds_list_head *taken)
{
	while (!cds_list_empty(&c->calls)) {
		if (pays)
			limit_pay(l, limit_slot(c->calls.next), now);
		take_first(l, c, taken);
	}
}

static void take_all(struct rpc_limit *l, bool pays, uint64_t now,
		     struct cds_list_head *taken)
{
	struct limit_client *c, *next;

	cds_list_for_each_entry_safe(c, next, &l->turns, turn)
		take_client(l, c, pays, now, taken);
	l->contended = false;
}

/* With the lock.  Moves the calls that can go on to the list.  Returns when the
 * next one can. */
static uint64_t serve_limit(struct rpc_limit *l, uint64_t now,
		      struct cds_list_head *taken)
{
	uint64_t due = UINT64_MAX, wait = 0;
	struct limit_client *c;
	CDS_LIST_HEAD(blocked);

	l->contended = false;
	while (!cds_list_empty(&l->turns)) {
		wait = limit_wait(&l->ops, &l->bytes, now);
		if (wait) {
			l->contended = true;
			due = now + wait;
			break;
		}
		c = cds_list_first_entry(&l->turns, struct limit_client, turn);
		wait = limit_wait(&c->ops, &c->bytes, now);
		if (wait) {
			due = MIN(due, now + wait);
			cds_list_del(&c->turn);
			cds_list_add_tail(&c->turn, &blocked);
			continue;
		}
		limit_pay(l, limit_slot(c->calls.next), now);
		take_first(l, c, taken);
		if (!cds_list_empty(&c->calls)) {
			cds_list_del(&c->turn);
			limit_list_turn(l, c);
		}
	}
	/* They come before the unchecked ones. */
	cds_list_splice(&blocked, &l->turns);
	return due;
}

/* With the lock.  The latest call that holds memory that others wait for, or
 * NULL. */
static struct rpc_slot *take_holder(struct rpc_limit *l)
{
	struct limit_client *c;
	struct rpc_slot *slot;

	cds_list_for_each_entry_reverse(c, &l->turns, turn)
		cds_list_for_each_entry_reverse(slot, &c->calls,
						priv.limited.link) {
			const struct msg *m = slot->call.msg;

			if (!m->in_pool || !pool_wants_of(l->pool,
							  m->xprt->flow))
				continue;
			limit_dequeue(l, slot);
			return slot;
		}
	return NULL;
}

/* The call was taken from its queue, and is this thread's. */
static void end_hold(struct rpc_slot *slot, bool passed)
{
	struct rpc_limit *l = slot->priv.limited.limit;

	count_held(slot);
	if (passed)
		return;
	mutex_lock(&l->lock);
	limit_forget(slot);
	mutex_unlock(&l->lock);
	rpc_limit_put(l);
}

/* Sends calls back while others wait for the memory that they keep. */
static void give_memory(struct rpc_limit *l)
{
	struct rpc_slot *slot;

	for (;;) {
		mutex_lock(&l->lock);
		slot = l->nholding > 0 ? take_holder(l) : NULL;
		mutex_unlock(&l->lock);
		if (!slot)
			return;
		end_hold(slot, false);
		stat_inc(rpc_limit_memory);
		rpc_call_send_back(slot, true);
	}
}

/* With the thread's lock, which it lets go meanwhile. */
static void give_all_memory(struct rpc_limits *limits)
{
	struct rpc_limit *l, *next;

	cds_list_for_each_entry_safe(l, next, &limits->all, link) {
		if (!ref_get_unless_zero(&l->ref))
			continue;
		mutex_unlock(&limits->lock);
		give_memory(l);
		mutex_lock(&limits->lock);
		next = caa_container_of(l->link.next, struct rpc_limit, link);
		if (ref_put(&l->ref)) {
			cds_list_del(&l->link);
			limit_free(l);
		}
	}
}

/* The calls of the list continue; calls that have not passed are checked
 * again. */
static void let_all_go(struct cds_list_head *taken, bool passed)
{
	struct cds_list_head *link, *next;

	cds_list_for_each_safe(link, next, taken) {
		struct rpc_slot *slot = limit_slot(link);

		end_hold(slot, passed);
		rpc_call_go_on(slot, reason, RPC_WAIT_NONE);
	}
}

static enum look next_look(struct rpc_limits *limits, uint64_t now)
{
	if (limits->off)
		return LOOK_OFF;
	if (!limits->nagain || limits->again > now)
		return LOOK_SERVE;
	limits->nagain--;
	limits->again = now + NS_PER_S;
	return LOOK_AGAIN;
}

/* With the thread's lock, which it lets go meanwhile.  Sets the time of the
 * next look.  True if some calls keep memory. */
static bool look_at_all(struct rpc_limits *limits, uint64_t now)
{
	enum look look = next_look(limits, now);
	uint64_t due = limits->nagain ? limits->again : UINT64_MAX;
	bool holding = false;
	struct rpc_limit *l;
	CDS_LIST_HEAD(taken);

	cds_list_for_each_entry(l, &limits->all, link) {
		mutex_lock(&l->lock);
		if (look == LOOK_SERVE)
			due = MIN(due, serve_limit(l, now, &taken));
		else
			take_all(l, look == LOOK_OFF, now, &taken);
		holding |= l->nholding > 0;
		mutex_unlock(&l->lock);
	}
	limits->looked = now;
	limits->due = MAX(due, now + LOOK_NS);
	mutex_unlock(&limits->lock);
	let_all_go(&taken, look != LOOK_AGAIN);
	mutex_lock(&limits->lock);
	return holding;
}

static void limits_run(void *arg)
{
	struct rpc_limits *limits = arg;
	uint64_t memory_at = 0, now;
	bool holding;

	/* A call that is sent back can hold the last reference to a file: as in
	 * rpc_server_relieve(). */
	thread_must_not_wait = true;
	mutex_lock(&limits->lock);
	while (!limits->ends) {
		now = clock_ns();
		holding = look_at_all(limits, now);
		if (holding && now >= memory_at) {
			give_all_memory(limits);
			memory_at = now + MEMORY_NS;
		}
		if (holding)
			limits->due = MIN(limits->due, memory_at);
		/* Many days are as good as ever. */
		while (!limits->ends && clock_ns() < limits->due)
			cond_wait_until(&limits->wanted, &limits->lock,
					MIN(limits->due, now + MAX_SLEEP_NS));
	}
	mutex_unlock(&limits->lock);
}

int rpc_limits_start(struct rpc_server *server)
{
	struct rpc_limits *limits = &server->limits;
	int err;

	pthread_mutex_init(&limits->lock, NULL);
	pthread_cond_init(&limits->wanted, NULL);
	CDS_INIT_LIST_HEAD(&limits->all);
	err = thread_start(&limits->thread, "limits", limits_run, limits);
	if (err < 0) {
		pthread_cond_destroy(&limits->wanted);
		pthread_mutex_destroy(&limits->lock);
	}
	return err;
}

void rpc_limits_stop(struct rpc_server *server)
{
	struct rpc_limits *limits = &server->limits;

	mutex_lock(&limits->lock);
	assert(cds_list_empty(&limits->all));
	limits->ends = true;
	pthread_cond_signal(&limits->wanted);
	mutex_unlock(&limits->lock);
	pthread_join(limits->thread, NULL);
	pthread_cond_destroy(&limits->wanted);
	pthread_mutex_destroy(&limits->lock);
}

/* ---- for the owner */

void rpc_limits_changed(struct rpc_server *server)
{
	struct rpc_limits *limits = &server->limits;

	mutex_lock(&limits->lock);
	/* Twice: a call might be on its way to a queue. */
	limits->nagain = 2;
	limits->again = limits->due = 0;
	pthread_cond_signal(&limits->wanted);
	mutex_unlock(&limits->lock);
}

void rpc_limits_off(struct rpc_server *server, bool off)
{
	struct rpc_limits *limits = &server->limits;

	mutex_lock(&limits->lock);
	limits->off = off;
	limits->due = 0;
	pthread_cond_signal(&limits->wanted);
	mutex_unlock(&limits->lock);
}

bool rpc_limits_are_off(struct rpc_server *server)
{
	bool off;

	mutex_lock(&server->limits.lock);
	off = server->limits.off;
	mutex_unlock(&server->limits.lock);
	return off;
}

void rpc_limits_let_go(struct rpc_server *server, const struct in6_addr *host)
{
	struct rpc_limits *limits = &server->limits;
	struct limit_client *c;
	struct rpc_limit *l;
	CDS_LIST_HEAD(taken);

	mutex_lock(&limits->lock);
	cds_list_for_each_entry(l, &limits->all, link) {
		mutex_lock(&l->lock);
		c = limit_find_host(l, host);
		if (c)
			take_client(l, c, true, clock_ns(), &taken);
		mutex_unlock(&l->lock);
	}
	mutex_unlock(&limits->lock);
	let_all_go(&taken, true);
}

/* With the lock. */
static void walk_limit(struct rpc_limit *l, rpc_waiting_fn *fn, void *arg,
		       struct cds_list_head *taken)
{
	struct limit_client *c, *next_client;
	struct rpc_slot *slot, *next;

	cds_list_for_each_entry_safe(c, next_client, &l->turns, turn)
		cds_list_for_each_entry_safe(slot, next, &c->calls,
					     priv.limited.link)
			if (fn(slot, reason, arg)) {
				limit_dequeue(l, slot);
				cds_list_add_tail(&slot->priv.limited.link,
						  taken);
			}
}

void rpc_limits_walk(struct rpc_limits *limits, rpc_waiting_fn *fn, void *arg)
{
	struct cds_list_head *link, *next;
	struct rpc_limit *l;
	CDS_LIST_HEAD(taken);

	mutex_lock(&limits->lock);
	cds_list_for_each_entry(l, &limits->all, link) {
		mutex_lock(&l->lock);
		walk_limit(l, fn, arg, &taken);
		mutex_unlock(&l->lock);
	}
	mutex_unlock(&limits->lock);
	cds_list_for_each_safe(link, next, &taken)
		end_hold(limit_slot(link), false);
}
