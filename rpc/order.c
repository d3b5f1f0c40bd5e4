/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * order - calls that take effect in the order in which they came.
 *
 * A client does not wait for the answer to each call before it sends the next:
 * when a process is killed in LOCK, the kernel sends UNLOCK behind it.  Calls
 * run on several threads, and one can wait for a disk or a status monitor.  So
 * calls with one key (RPC_PROC_ORDERED: a lock's owner) run one at a time, in
 * the order in which their pollers read them; calls with other keys run at the
 * same time.
 *
 * Operation: the first call of a key runs.  The calls behind it wait in a
 * queue, without a thread, and keep their places in their connections.  When
 * the first has ended, the next one starts in a worker of the common share, as
 * on a poller.  A duplicate that runs in place of a call which came to nothing
 * takes that call's place: it is not moved behind calls that the client sent
 * later.
 *
 * At most RPC_ORDER_MAX calls wait behind one.  A further one is sent back, for
 * a retry, before it has any effect.  Waiting calls are listed as suspended
 * ones are (rpc/suspend.c).  If their connection has ended, they run in their
 * turn.  While the first one hangs, waiting calls that keep memory which others
 * need are taken back, and so are calls that fill their connection.
 */
#include "rpc/call.h"

#include "lib/clock.h"
#include "lib/probe.h"
#include "lib/stats.h"
#include "lib/thread.h"

STAT(rpc_order_waits, "calls that waited for an earlier call of their owner");

static const char reason[] = "an earlier call of its owner";

void rpc_order_init(struct rpc_order *o)
{
	pthread_mutex_init(&o->lock, NULL);
	for (unsigned i = 0; i < RPC_ORDER_CHAINS; i++)
		CDS_INIT_LIST_HEAD(&o->chains[i]);
}

void rpc_order_fini(struct rpc_order *o)
{
	for (unsigned i = 0; i < RPC_ORDER_CHAINS; i++)
		assert(cds_list_empty(&o->chains[i]));
	pthread_mutex_destroy(&o->lock);
}

static struct rpc_slot *turn_slot(struct rpc_turn *turn)
{
	return container_of(turn, struct rpc_slot, priv.turn);
}

void rpc_call_start(struct rpc_slot *slot)
{
	struct work_class *class = work_pool_common(slot->call.server->work);

	PROBE(call_queued, slot->call.msg, class);
	slot->priv.class = class;
	slot->priv.work.client = work_client(rpc_call_peer(&slot->call));
	work_submit(class, &slot->priv.work);
}

/* ---- with the lock */

static struct cds_list_head *key_chain(struct rpc_order *o, uint64_t key)
{
	return &o->chains[key % RPC_ORDER_CHAINS];
}

/* The call of @key whose turn it is, or NULL. */
static struct rpc_turn *find_first(struct rpc_order *o, uint64_t key)
{
	struct rpc_turn *t;

	cds_list_for_each_entry(t, key_chain(o, key), link)
		if (t->key == key)
			return t;
	return NULL;
}

static void begin_wait(struct rpc_turn *t)
{
	struct rpc_slot *slot = turn_slot(t);

	stat_inc(rpc_order_waits);
	PROBE(call_suspended, slot->call.msg, reason);
	if (unlikely(slot->call.timed))
		rpc_times_leave(slot);
	slot->priv.since = clock_ns();
	slot->priv.wait = RPC_WAITS;
	t->state = RPC_TURN_WAITS;
}

/* @next, which is behind @first or in no list, stands in its place. */
static void succeed(struct rpc_order *o, struct rpc_turn *first,
		    struct rpc_turn *next)
{
	cds_list_del(&first->link);
	cds_list_add(&next->link, key_chain(o, first->key));
	CDS_INIT_LIST_HEAD(&next->behind);
	cds_list_splice(&first->behind, &next->behind);
	next->nbehind = first->nbehind;
}

/* Takes the call out.  Returns the one to start now, or NULL. */
static struct rpc_turn *unlist_turn(struct rpc_order *o, struct rpc_turn *t)
{
	struct rpc_turn *first = find_first(o, t->key), *next;

	if (first != t) {
		cds_list_del(&t->link);
		first->nbehind--;
		return NULL;
	}
	if (cds_list_empty(&t->behind)) {
		cds_list_del(&t->link);
		return NULL;
	}
	next = cds_list_first_entry(&t->behind, struct rpc_turn, link);
	cds_list_del(&next->link);
	t->nbehind--;
	succeed(o, t, next);
	/* A thread that has it will see that it is the first. */
	if (next->state != RPC_TURN_WAITS)
		return NULL;
	next->state = RPC_TURN_HAS;
	return next;
}

/* ---- without */

enum rpc_turn_state rpc_order_join(struct rpc_slot *slot)
{
	struct rpc_order *o = &slot->call.server->order;
	struct rpc_turn *t = &slot->priv.turn, *first;
	enum rpc_turn_state state = RPC_TURN_NONE;

	t->key = slot->call.prog->order(&slot->call);
	mutex_lock(&o->lock);
	first = find_first(o, t->key);
	if (!first) {
		cds_list_add(&t->link, key_chain(o, t->key));
		CDS_INIT_LIST_HEAD(&t->behind);
		t->nbehind = 0;
		state = t->state = RPC_TURN_HAS;
	} else if (first->nbehind < RPC_ORDER_MAX) {
		cds_list_add_tail(&t->link, &first->behind);
		first->nbehind++;
		begin_wait(t);
		state = RPC_TURN_WAITS;
	}
	mutex_unlock(&o->lock);
	return state;
}

bool rpc_order_take(struct rpc_slot *slot)
{
	struct rpc_order *o = &slot->call.server->order;
	struct rpc_turn *t = &slot->priv.turn;
	bool has = true;

	mutex_lock(&o->lock);
	if (t->state == RPC_TURN_COMES) {
		has = find_first(o, t->key) == t;
		if (has)
			t->state = RPC_TURN_HAS;
		else
			begin_wait(t);
	}
	mutex_unlock(&o->lock);
	return has;
}

void rpc_order_end(struct rpc_slot *slot)
{
	struct rpc_order *o = &slot->call.server->order;
	struct rpc_turn *t = &slot->priv.turn, *next;

	mutex_lock(&o->lock);
	next = unlist_turn(o, t);
	t->state = RPC_TURN_NONE;
	mutex_unlock(&o->lock);
	if (!next)
		return;
	slot = turn_slot(next);
	PROBE(call_resumed, slot->call.msg);
	if (unlikely(slot->priv.tapped))
		rpc_times_go_on(slot, reason);
	slot->priv.wait = RPC_WAIT_NONE;
	rpc_call_start(slot);
}

void rpc_order_inherit(struct rpc_slot *slot, struct rpc_slot *heir)
{
	struct rpc_order *o = &slot->call.server->order;
	struct rpc_turn *t = &slot->priv.turn, *h = &heir->priv.turn;

	if (t->state == RPC_TURN_NONE)
		return;
	mutex_lock(&o->lock);
	h->key = t->key;
	if (find_first(o, t->key) == t) {
		succeed(o, t, h);
		h->state = RPC_TURN_HAS;
	} else {
		cds_list_add(&h->link, &t->link);
		cds_list_del(&t->link);
		h->state = RPC_TURN_COMES;
	}
	t->state = RPC_TURN_NONE;
	mutex_unlock(&o->lock);
}

void rpc_order_walk(struct rpc_order *o, rpc_waiting_fn *fn, void *arg)
{
	struct rpc_turn *first, *t;

	mutex_lock(&o->lock);
	for (unsigned i = 0; i < RPC_ORDER_CHAINS; i++)
		cds_list_for_each_entry(first, &o->chains[i], link)
			cds_list_for_each_entry(t, &first->behind, link)
				if (t->state == RPC_TURN_WAITS &&
				    fn(turn_slot(t), reason, arg))
					t->state = RPC_TURN_COMES;
	mutex_unlock(&o->lock);
}
