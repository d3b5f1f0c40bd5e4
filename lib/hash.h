/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hash - hashes for tables.
 *
 * A table whose keys a peer may choose begins with hash_secret: then nobody
 * can tell which keys share a place.
 */
#ifndef GANNET_LIB_HASH_H
#define GANNET_LIB_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Folds @v into the hash @h.  All bits of the result are equally good. */
static inline uint64_t hash_mix(uint64_t h, uint64_t v)
{
	unsigned __int128 m;

	m = (unsigned __int128)(h ^ v ^ 0x9e3779b97f4a7c15ull) *
	    0xd6e8feb86659fd93ull;
	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/* Random, and the same as long as the process lives.  Read only. */
extern uint64_t hash_secret;

/* Folds the text @s into the hash @h.  The same for ever: handles and cookies
 * of CephFS are made of it. */
static inline uint64_t hash_text(uint64_t h, const char *s)
{
	while (*s)
		h = hash_mix(h, (uint8_t)*s++);
	return h;
}

/* The hash of an IPv6 address, whose bits its host may choose. */
static inline uint64_t hash_addr(const uint8_t addr[16])
{
	uint64_t half[2];

	memcpy(half, addr, sizeof(half));
	return hash_mix(hash_mix(hash_secret, half[0]), half[1]);
}

/* The same for the same bytes for ever: disks and clients keep it. */
uint64_t hash_bytes(const void *data, size_t len);

#endif
