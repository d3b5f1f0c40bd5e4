/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pattern - the contents of the files: a byte depends on its offset, which
 * reveals data at a wrong place.
 */
#include "tools/bench/bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int load_pattern_create(struct target *t)
{
	size_t len = PATTERN_PERIOD + (1u << 20);
	uint64_t v = 88172645463325252u;

	t->pattern = malloc(len + 8);
	if (!t->pattern)
		return -ENOMEM;
	for (size_t i = 0; i < PATTERN_PERIOD; i += 8) {
		v ^= v << 13;
		v ^= v >> 7;
		v ^= v << 17;
		memcpy(t->pattern + i, &v, 8);
	}
	for (size_t i = PATTERN_PERIOD; i < len; i++)
		t->pattern[i] = t->pattern[i - PATTERN_PERIOD];
	return 0;
}
