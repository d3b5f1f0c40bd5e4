/* SPDX-License-Identifier: BSD-2-Clause */
/* hist - a histogram of latencies, to 3 percent. */
#include "tools/bench/bench.h"

static unsigned hist_bucket(uint64_t ns)
{
	unsigned exp, i;

	if (ns < HIST_SUB)
		return (unsigned)ns;
	exp = 63 - (unsigned)__builtin_clzll(ns) - 5;
	i = exp * HIST_SUB + (unsigned)(ns >> exp);
	return MIN(i, HIST_BUCKETS - 1);
}

static uint64_t hist_upper(unsigned i)
{
	unsigned exp;

	if (i < 2 * HIST_SUB)
		return i;
	exp = i / HIST_SUB - 1;
	return ((uint64_t)(i - exp * HIST_SUB + 1) << exp) - 1;
}

void hist_add(struct hist *h, uint64_t ns)
{
	h->count[hist_bucket(ns)]++;
	h->total++;
	h->sum += ns;
	if (ns > h->max)
		h->max = ns;
}

void hist_merge(struct hist *to, const struct hist *from)
{
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		to->count[i] += from->count[i];
	to->total += from->total;
	to->sum += from->sum;
	if (from->max > to->max)
		to->max = from->max;
}

uint64_t hist_below(const struct hist *h, uint64_t ns)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < HIST_BUCKETS && hist_upper(i) < ns; i++)
		sum += h->count[i];
	return sum;
}

const char *bench_time(uint64_t ns, char out[16])
{
	double us = (double)ns / 1e3;

	if (us < 1000)
		snprintf(out, 16, us < 10 ? "%.1f us" : "%.0f us", us);
	else if (us < 1e6)
		snprintf(out, 16, us < 1e4 ? "%.1f ms" : "%.0f ms", us / 1e3);
	else
		snprintf(out, 16, "%.1f s", us / 1e6);
	return out;
}

uint64_t hist_quantile(const struct hist *h, double q)
{
	uint64_t want = (uint64_t)(q * (double)h->total), sum = 0;

	if (want >= h->total)
		return h->max;
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		sum += h->count[i];
		if (sum > want)
			return MIN(hist_upper(i), h->max);
	}
	return h->max;
}
