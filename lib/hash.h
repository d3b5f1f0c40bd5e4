/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hash - hashes for tables.
 *
 * Peers choose addresses, names, owners of locks and xids.  A table whose keys
 * a peer chooses uses hash_keyed(): otherwise the peer could make keys that
 * collide.  A secret that is only mixed into a plain hash does not prevent
 * that: two texts with the same plain hash still share their place.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Folds @v into the hash @h.  All bits of the result are equally good.  For
 * values that no peer chooses. */
static inline uint64_t hash_mix(uint64_t h, uint64_t v)
{
	unsigned __int128 m;

	m = (unsigned __int128)(h ^ v ^ 0x9e3779b97f4a7c15ull) *
	    0xd6e8feb86659fd93ull;
	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/* SipHash with a random key, which is the same as long as the process lives.
 * Any thread. */
uint64_t hash_keyed(const void *data, size_t len);

/* The keyed hash of some values: hash_values(a, b, c). */
#define hash_values(...) \
	hash_keyed((const uint64_t[]){ __VA_ARGS__ }, \
		   sizeof((const uint64_t[]){ __VA_ARGS__ }))

#define HASH_WORDS	8

/* A keyed hash of words, cheaper than SipHash: two different texts share their
 * hash under one key in 2^32.  For tables whose hashes no peer sees; words that
 * a caller doesn't need are 0.  Any thread. */
uint32_t hash_words(const uint32_t w[HASH_WORDS]);

/* Folds the text @s into the hash @h.  The same for ever: handles and cookies
 * of CephFS are made of it. */
static inline uint64_t hash_text(uint64_t h, const char *s)
{
	while (*s)
		h = hash_mix(h, (uint8_t)*s++);
	return h;
}

/* The hash of an IPv6 address, whose bits its host chooses. */
static inline uint64_t hash_addr(const uint8_t addr[16])
{
	return hash_keyed(addr, 16);
}

/* The same for the same bytes for ever: disks and clients keep it. */
uint64_t hash_bytes(const void *data, size_t len);
