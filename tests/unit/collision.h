/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts with the same hash_bytes(), as an attacker makes them. */
#pragma once

#include <endian.h>
#include <stdint.h>

/* The second word undoes the first one's effect on the hash. */
static inline void make_collision(uint64_t i, uint64_t text[2])
{
	uint64_t h = 16 * 0x9e3779b97f4a7c15u;

	h = (h ^ i) * 0xff51afd7ed558ccdu;
	text[0] = htole64(i);
	text[1] = htole64(h ^ h >> 32);
}
