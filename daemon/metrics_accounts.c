/* SPDX-License-Identifier: BSD-2-Clause */
/* metrics_accounts - the accounts of procedures, exports and clients. */
#include "daemon/metrics_accounts.h"

#include "lib/util.h"

/* Powers of four, from 16 us to 4 s. */
static const uint64_t bounds[] = {
	1u << 14, 1u << 16, 1u << 18, 1u << 20, 1u << 22, 1u << 24, 1u << 26,
	1u << 28, 1u << 30, 1ull << 32,
};

#define NBOUNDS	ARRAY_SIZE(bounds)

void metrics_put_times(struct metrics_out *m,
		       const struct metrics_label *labels,
		       const struct account_sum *sum)
{
	uint64_t counts[NBOUNDS + 1] = { 0 };
	const struct metrics_times t = { bounds, counts, NBOUNDS, sum->ns };
	unsigned at = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		while (at < NBOUNDS && histogram_low(i) >= bounds[at])
			at++;
		counts[at] += sum->histogram[i];
	}
	metrics_histogram(m, labels, &t);
}
