/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring - the wr_ids that a device's queue has, in the order of posting.
 *
 * One thread at a time puts (it has the connection's lock), the loop's takes;
 * neither waits for the other.
 */
#pragma once

#include <errno.h>
#include <stdlib.h>

#include "transport/fabric/verbs/internal.h"

static inline int verbs_ring_init(struct verbs_ring *r, unsigned n)
{
	unsigned size = 1;

	while (size < n)
		size *= 2;
	r->slot = calloc(size, sizeof(r->slot[0]));
	r->mask = size - 1;
	return r->slot ? 0 : -ENOMEM;
}

static inline bool verbs_ring_has_room(struct verbs_ring *r, unsigned n)
{
	unsigned tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	/* Acquire: pairs with verbs_ring_take(), whose slot we overwrite. */
	unsigned head = atomic_load_explicit(&r->head, memory_order_acquire);

	return tail - head + n <= r->mask + 1;
}

static inline void verbs_ring_put_send(struct verbs_ring *r, void *id,
				       bool invalidates)
{
	unsigned tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	r->slot[tail & r->mask] = (struct verbs_slot){
		.id = id, .status = VERBS_PENDING, .invalidates = invalidates };
	/* Release: the loop's thread sees the id when it sees the tail. */
	atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
}

static inline void verbs_ring_put(struct verbs_ring *r, void *id)
{
	verbs_ring_put_send(r, id, false);
}

/* The loop's thread, from here on. */

/* The slot at the head; NULL: the ring is empty. */
static inline struct verbs_slot *verbs_ring_head(struct verbs_ring *r)
{
	unsigned head = atomic_load_explicit(&r->head, memory_order_relaxed);

	if (head == atomic_load_explicit(&r->tail, memory_order_acquire))
		return NULL;
	return &r->slot[head & r->mask];
}

/* Removes the head.  The ring must not be empty. */
static inline void *verbs_ring_take(struct verbs_ring *r)
{
	unsigned head = atomic_load_explicit(&r->head, memory_order_relaxed);
	void *id = r->slot[head & r->mask].id;

	atomic_store_explicit(&r->head, head + 1, memory_order_release);
	return id;
}

/* Notes the status of @id.  False: the ring does not have it.  With the
 * lock. */
static inline bool verbs_ring_note(struct verbs_ring *r, const void *id,
				   int status)
{
	unsigned i = atomic_load_explicit(&r->head, memory_order_relaxed);
	unsigned tail = atomic_load_explicit(&r->tail, memory_order_acquire);

	for (; i != tail; i++) {
		struct verbs_slot *slot = &r->slot[i & r->mask];

		if (slot->id == id && slot->status == VERBS_PENDING) {
			slot->status = status;
			return true;
		}
	}
	return false;
}
