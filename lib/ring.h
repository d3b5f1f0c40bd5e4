/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring - records on their way from the threads that serve calls to one that
 * writes them.
 *
 * Any thread adds, without a lock and without ever waiting: when the ring is
 * full, a record is not taken.  One thread takes them out, in the order in
 * which they were added.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* A place in the ring. */
struct ring_record {
	_Atomic uint32_t size;		/* of the place; 0: not written yet */
	uint32_t	 len;		/* of data */
	_Alignas(8) uint8_t data[];
};

struct ring;

/* @size: a multiple of 64 bytes.  NULL: no memory. */
struct ring *ring_create(size_t size);
/* All its users are gone.  NULL is fine. */
void ring_destroy(struct ring *ring);

/* Takes a place for @len bytes, for the caller to fill in and then ring_add().
 * NULL: no room. */
struct ring_record *ring_reserve(struct ring *ring, uint32_t len);
void ring_add(struct ring_record *record);

/* The oldest record; NULL: the ring is empty, or the record is still being
 * written. */
struct ring_record *ring_next(struct ring *ring);
/* Gives its place back. */
void ring_release(struct ring *ring);
