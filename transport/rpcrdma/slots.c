/* SPDX-License-Identifier: BSD-2-Clause */
/* slots - Receives and places for calls, and the credits that bound them. */
#include "transport/rpcrdma/slots.h"

#include <assert.h>

#include "lib/stats.h"
#include "lib/util.h"

STAT(rdma_drain_drops, "messages not accepted because the listener was "
		       "stopping");

void rpcrdma_slots_init(struct rpcrdma_slots *s, unsigned others)
{
	*s = (struct rpcrdma_slots){ .others = others };
	s->waiting_tail = &s->waiting;
	pthread_mutex_init(&s->lock, NULL);
}

void rpcrdma_slots_fini(struct rpcrdma_slots *s)
{
	pthread_mutex_destroy(&s->lock);
}

/* With the lock: part of a retired store is back. */
static void come_back(struct rpcrdma_slots *s, struct rpcrdma_store *store)
{
	if (--store->out == 0)
		atomic_store(&s->gone, true);
}

void rpcrdma_slots_add_recv(struct rpcrdma_slots *s, struct rpcrdma_recv *r)
{
	if (unlikely(r->store->retired)) {
		come_back(s, r->store);
		return;
	}
	r->next = s->free_recvs;
	s->free_recvs = r;
	s->nfree_recvs++;
}

void rpcrdma_slots_add(struct rpcrdma_slots *s, struct rpcrdma_slot *slot)
{
	if (unlikely(slot->store->retired)) {
		come_back(s, slot->store);
		return;
	}
	slot->next = s->free;
	s->free = slot;
}

void rpcrdma_slots_promise(struct rpcrdma_slots *s, unsigned credits)
{
	assert(credits >= 1 && credits <= s->capacity);
	mutex_lock(&s->lock);
	s->credits = credits;
	mutex_unlock(&s->lock);
}

void rpcrdma_slots_turn(struct rpcrdma_slots *s)
{
	mutex_lock(&s->lock);
	s->epoch++;
	s->nold = atomic_load(&s->busy);
	mutex_unlock(&s->lock);
}

bool rpcrdma_slots_turned(struct rpcrdma_slots *s)
{
	bool turned;

	mutex_lock(&s->lock);
	turned = s->nold == 0;
	mutex_unlock(&s->lock);
	return turned;
}

/* With the lock: drops the store's slots and Receives that are free. */
static void drop_free(struct rpcrdma_slots *s, struct rpcrdma_store *store)
{
	struct rpcrdma_slot **slot = &s->free;
	struct rpcrdma_recv **recv = &s->free_recvs;

	while (*slot) {
		if ((*slot)->store == store) {
			*slot = (*slot)->next;
			store->out--;
		} else {
			slot = &(*slot)->next;
		}
	}
	while (*recv) {
		if ((*recv)->store == store) {
			*recv = (*recv)->next;
			store->out--;
			s->nfree_recvs--;
		} else {
			recv = &(*recv)->next;
		}
	}
}

void rpcrdma_slots_retire(struct rpcrdma_slots *s, struct rpcrdma_store *store)
{
	assert(s->credits + store->nslots <= s->capacity);
	mutex_lock(&s->lock);
	s->capacity -= store->nslots;
	store->out = store->nslots + store->nrecvs;
	store->retired = true;
	store->next = s->retired;
	s->retired = store;
	drop_free(s, store);
	if (store->out == 0)
		atomic_store(&s->gone, true);
	mutex_unlock(&s->lock);
}

struct rpcrdma_store *rpcrdma_slots_take_gone(struct rpcrdma_slots *s)
{
	struct rpcrdma_store **at = &s->retired, *store;

	mutex_lock(&s->lock);
	while (*at && (*at)->out > 0)
		at = &(*at)->next;
	store = *at;
	if (store)
		*at = store->next;
	else
		atomic_store(&s->gone, false);
	mutex_unlock(&s->lock);
	return store;
}

unsigned rpcrdma_slots_leaving(struct rpcrdma_slots *s)
{
	unsigned n = 0;

	mutex_lock(&s->lock);
	for (struct rpcrdma_store *r = s->retired; r; r = r->next)
		n += MIN(r->out, r->nrecvs);
	mutex_unlock(&s->lock);
	return n;
}

static struct rpcrdma_recv *take_waiting(struct rpcrdma_slots *s)
{
	struct rpcrdma_recv *r = s->waiting;

	s->waiting = r->next;
	if (!s->waiting)
		s->waiting_tail = &s->waiting;
	return r;
}

bool rpcrdma_slots_arrived(struct rpcrdma_slots *s, struct rpcrdma_recv *r,
			   uint32_t len)
{
	s->posted--;
	r->len = len;
	r->next = NULL;
	*s->waiting_tail = r;
	s->waiting_tail = &r->next;
	return atomic_fetch_add(&s->unanswered, 1) < s->credits;
}

void rpcrdma_slots_skip(struct rpcrdma_slots *s, struct rpcrdma_recv *r)
{
	s->posted--;
	mutex_lock(&s->lock);
	rpcrdma_slots_add_recv(s, r);
	mutex_unlock(&s->lock);
}

struct rpcrdma_slot *rpcrdma_slots_take(struct rpcrdma_slots *s)
{
	struct rpcrdma_slot *slot = NULL;

	if (!s->waiting)
		return NULL;
	mutex_lock(&s->lock);
	while (s->draining && s->waiting) {
		stat_inc(rdma_drain_drops);
		atomic_fetch_sub(&s->unanswered, 1);
		rpcrdma_slots_add_recv(s, take_waiting(s));
	}
	if (s->waiting && s->free && s->busy < s->capacity) {
		slot = s->free;
		s->free = slot->next;
		slot->epoch = s->epoch;
		slot->recv = take_waiting(s);
		s->busy++;
	}
	mutex_unlock(&s->lock);
	return slot;
}

enum { REFILL_BATCH = 32 };

struct rpcrdma_recv *rpcrdma_slots_refill(struct rpcrdma_slots *s, bool all)
{
	struct rpcrdma_recv *first = NULL;

	mutex_lock(&s->lock);
	if (all || s->nfree_recvs >= REFILL_BATCH ||
	    s->posted < s->credits + s->others) {
		first = s->free_recvs;
		s->free_recvs = NULL;
		s->posted += s->nfree_recvs;
		s->nfree_recvs = 0;
	}
	mutex_unlock(&s->lock);
	for (struct rpcrdma_recv *r = first; r; r = r->next)
		r->wr.next = r->next ? &r->next->wr : NULL;
	return first;
}

enum rpcrdma_slots_next rpcrdma_slots_put(struct rpcrdma_slots *s,
					  struct rpcrdma_slot *slot)
{
	enum rpcrdma_slots_next next = SLOTS_REST;

	mutex_lock(&s->lock);
	if (unlikely(slot->epoch != s->epoch))
		s->nold--;
	rpcrdma_slots_add_recv(s, slot->recv);
	rpcrdma_slots_add(s, slot);
	s->busy--;
	if (s->draining && s->busy == 0) {
		next = SLOTS_IDLE;
	} else if (s->busy + 1 >= s->credits || atomic_load(&s->gone)) {
		/* A message waits only if every slot is in use.  Receives need
		 * not be posted before the next message comes. */
		next = SLOTS_PUMP;
	}
	mutex_unlock(&s->lock);
	return next;
}

bool rpcrdma_slots_drain(struct rpcrdma_slots *s)
{
	bool idle;

	mutex_lock(&s->lock);
	s->draining = true;
	idle = s->busy == 0;
	mutex_unlock(&s->lock);
	return idle;
}
