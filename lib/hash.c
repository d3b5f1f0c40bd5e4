/* SPDX-License-Identifier: BSD-2-Clause */
/* hash - hashes for tables. */
#include "lib/hash.h"

#include <endian.h>
#include <sodium.h>
#include <string.h>
#include <sys/random.h>

#include "lib/clock.h"

/* Written once, before main(). */
static uint8_t key[crypto_shorthash_KEYBYTES];
static uint64_t multipliers[1 + HASH_WORDS];

__attribute__((constructor)) static void make_key(void)
{
	uint64_t other[] = { (uintptr_t)&key, clock_ns() };

	_Static_assert(sizeof(other) == sizeof(key), "size of the key");
	if (getrandom(key, sizeof(key), 0) != sizeof(key))
		memcpy(key, other, sizeof(key));
	for (size_t i = 0; i < 1 + HASH_WORDS; i++)
		multipliers[i] = hash_keyed(&i, sizeof(i));
}

uint64_t hash_keyed(const void *data, size_t len)
{
	uint64_t h;

	_Static_assert(sizeof(h) == crypto_shorthash_BYTES, "size of a hash");
	crypto_shorthash((uint8_t *)&h, data, len, key);
	return h;
}

/* Multilinear hashing (Lemire and Kaser, "Strongly universal string hashing is
 * fast", 2014).  The sums of numbers in a row are in a row as well: they are
 * mixed, as their table looks at some bits alone. */
uint32_t hash_words(const uint32_t w[HASH_WORDS])
{
	uint64_t h = multipliers[0];

	for (size_t i = 0; i < HASH_WORDS; i++)
		h += multipliers[1 + i] * w[i];
	return (uint32_t)hash_mix(0, h);
}

static uint64_t fold(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0xff51afd7ed558ccdu;
	return h ^ h >> 32;
}

uint64_t hash_bytes(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t h = len * 0x9e3779b97f4a7c15u, word = 0;
	size_t left = len;

	for (; left >= sizeof(word); p += sizeof(word), left -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = fold(h, le64toh(word));
	}
	if (left == 0)
		return h;
	if (len < sizeof(word)) {
		memcpy(&word, p, left);
		return fold(h, le64toh(word));
	}
	/* A load of eight bytes is faster than a copy of fewer; the shift
	 * drops the bytes that @h has already. */
	memcpy(&word, p + left - sizeof(word), sizeof(word));
	return fold(h, le64toh(word) >> 8 * (sizeof(word) - left));
}
