/* SPDX-License-Identifier: BSD-2-Clause */
/* histogram - counts of times by their length. */
#include "lib/histogram.h"

uint64_t histogram_low(unsigned i)
{
	unsigned power = i >> HISTOGRAM_SUB_BITS;
	uint64_t v = i;

	if (power > 0)
		v = (uint64_t)(HISTOGRAM_SUBS + i % HISTOGRAM_SUBS) <<
		    (power - 1);
	return v << HISTOGRAM_UNIT_BITS;
}

uint64_t histogram_quantile(const uint64_t counts[HISTOGRAM_BUCKETS],
			    unsigned per_mille)
{
	uint64_t all = 0, rank, seen = 0;
	unsigned i;

	for (i = 0; i < HISTOGRAM_BUCKETS; i++)
		all += counts[i];
	if (all == 0)
		return 0;
	/* The number of the time that is looked for, from 1; @all times 1000
	 * might pass 64 bits. */
	rank = all / 1000 * per_mille + (all % 1000 * per_mille + 999) / 1000;
	rank = MAX(rank, 1u);
	for (i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
		seen += counts[i];
		if (seen >= rank)
			break;
	}
	return (histogram_low(i) + histogram_low(i + 1)) / 2;
}
