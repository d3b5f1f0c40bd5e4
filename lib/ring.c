/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring - see ring.h.
 *
 * Positions only grow; a byte's place is its position modulo the size.  A
 * record is one piece, so a place at the ring's end that is too short for the
 * next one is left out.  Free bytes are zero: so the reader knows a record that
 * is not written yet, wherever it begins.
 */
#include "lib/ring.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"

#define PLACE	64u		/* records begin at multiples of it */
#define LEFT_OUT	1u	/* in size, of a place without a record */

struct ring {
	_Atomic uint64_t taken;		/* position after the last record */
	_Alignas(PLACE)
	_Atomic uint64_t freed;		/* that of the oldest one */
	size_t		 size;
	uint8_t		*bytes;
};

struct ring *ring_create(size_t size)
{
	struct ring *ring = aligned_alloc(PLACE, sizeof(*ring));

	assert(size % PLACE == 0);
	if (!ring)
		return NULL;
	memset(ring, 0, sizeof(*ring));
	ring->size = size;
	/* Large: the system gives pages of zeros, when they are needed. */
	ring->bytes = calloc(1, size + PLACE);
	if (ring->bytes)
		return ring;
	free(ring);
	return NULL;
}

void ring_destroy(struct ring *ring)
{
	if (!ring)
		return;
	free(ring->bytes);
	free(ring);
}

static struct ring_record *record_at(struct ring *ring,
					uint64_t position)
{
	uint8_t *first = (uint8_t *)ALIGN_UP((uintptr_t)ring->bytes, PLACE);

	return (struct ring_record *)(first + position % ring->size);
}

struct ring_record *ring_reserve(struct ring *ring,
					    uint32_t len)
{
	uint64_t need = ALIGN_UP(sizeof(struct ring_record) + len,
				 (uint64_t)PLACE);
	uint64_t at, left, skip, freed;
	struct ring_record *record;

	at = atomic_load_explicit(&ring->taken, memory_order_relaxed);
	do {
		left = ring->size - at % ring->size;
		skip = left < need ? left : 0;
		/* Pairs with ring_release(): the bytes are zero. */
		freed = atomic_load_explicit(&ring->freed,
					     memory_order_acquire);
		/* Others might have added records behind @at, and the reader
		 * freed them: then the exchange fails. */
		if (at + skip + need > freed + ring->size)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(&ring->taken, &at,
			at + skip + need, memory_order_relaxed,
			memory_order_relaxed));
	if (skip)
		atomic_store_explicit(&record_at(ring, at)->size,
				      (uint32_t)skip | LEFT_OUT,
				      memory_order_release);
	record = record_at(ring, at + skip);
	record->len = len;
	return record;
}

static uint32_t record_size(const struct ring_record *record)
{
	return (uint32_t)ALIGN_UP(sizeof(*record) + record->len,
				  (size_t)PLACE);
}

void ring_add(struct ring_record *record)
{
	/* Pairs with ring_next(). */
	atomic_store_explicit(&record->size, record_size(record),
			      memory_order_release);
}

/* Zeros the first place, and gives it back. */
static void free_place(struct ring *ring, uint32_t size)
{
	uint64_t at = atomic_load_explicit(&ring->freed, memory_order_relaxed);

	memset((void *)record_at(ring, at), 0, size);
	atomic_store_explicit(&ring->freed, at + size, memory_order_release);
}

struct ring_record *ring_next(struct ring *ring)
{
	for (;;) {
		struct ring_record *record = record_at(ring,
			atomic_load_explicit(&ring->freed,
					     memory_order_relaxed));
		uint32_t size = atomic_load_explicit(&record->size,
						     memory_order_acquire);

		if (!(size & LEFT_OUT))
			return size ? record : NULL;
		free_place(ring, size & ~LEFT_OUT);
	}
}

void ring_release(struct ring *ring)
{
	struct ring_record *record = ring_next(ring);

	assert(record);
	free_place(ring, record_size(record));
}
