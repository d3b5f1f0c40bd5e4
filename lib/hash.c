/* SPDX-License-Identifier: BSD-2-Clause */
/* hash - hashes for tables. */
#include "lib/hash.h"

#include <string.h>
#include <sys/random.h>

#include "lib/clock.h"

uint64_t hash_secret;

/* Runs before main(), and so before anything is hashed. */
__attribute__((constructor)) static void make_secret(void)
{
	if (getrandom(&hash_secret, sizeof(hash_secret), 0) < 0)
		hash_secret = (uintptr_t)&hash_secret ^ clock_ns();
}

static uint64_t fold(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0xff51afd7ed558ccdu;
	return h ^ h >> 32;
}

uint64_t hash_bytes(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t h = len * 0x9e3779b97f4a7c15u, word;

	for (; len >= sizeof(word); p += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = fold(h, word);
	}
	if (len) {
		word = 0;
		memcpy(&word, p, len);
		h = fold(h, word);
	}
	return h;
}
