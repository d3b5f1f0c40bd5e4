/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * histogram - counts of times by their length, in buckets of a fixed number.
 *
 * Each power of two has eight buckets, from 128 ns to 68 s; below are eight of
 * 16 ns, and the last has all that is longer.  So a bucket is at most an eighth
 * as wide as the times in it, and its middle at most 6.25 % (or 8 ns) away from
 * them.  Pure, any thread.
 */
#pragma once

#include <stdint.h>

#include "lib/util.h"

#define HISTOGRAM_BUCKETS	240u

enum { HISTOGRAM_UNIT_BITS = 4, HISTOGRAM_SUB_BITS = 3,
       HISTOGRAM_SUBS = 1 << HISTOGRAM_SUB_BITS };

/* The bucket of a time of @ns. */
static inline unsigned histogram_bucket(uint64_t ns)
{
	uint64_t v = ns >> HISTOGRAM_UNIT_BITS;
	unsigned power, i;

	if (v < HISTOGRAM_SUBS)
		return (unsigned)v;
	power = 63 - (unsigned)__builtin_clzll(v) - HISTOGRAM_SUB_BITS;
	i = (power << HISTOGRAM_SUB_BITS) + (unsigned)(v >> power);
	return MIN(i, HISTOGRAM_BUCKETS - 1);
}

/* The shortest time, in ns, of bucket @i; that of the bucket behind it is where
 * this one ends.  @i can be HISTOGRAM_BUCKETS. */
uint64_t histogram_low(unsigned i);
/* The time in ns that @per_mille thousandths of the counted times don't pass
 * (500: the median): the middle of the bucket that it lies in.  0: nothing was
 * counted. */
uint64_t histogram_quantile(const uint64_t counts[HISTOGRAM_BUCKETS],
			    unsigned per_mille);
