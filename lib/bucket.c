/* SPDX-License-Identifier: BSD-2-Clause */
/* bucket - a token bucket, whose level is a time. */
#include "lib/bucket.h"

#include "lib/clock.h"
#include "lib/util.h"

/* a * b / c, at most BUCKET_LONGEST. */
static uint64_t scale(uint64_t a, uint64_t b, uint64_t c)
{
	unsigned __int128 v = (unsigned __int128)a * b / c;

	return v > BUCKET_LONGEST ? BUCKET_LONGEST : (uint64_t)v;
}

uint64_t bucket_ns(const struct bucket *b, uint64_t cost)
{
	return b->rate ? scale(cost, NS_PER_S, b->rate) : 0;
}

uint64_t bucket_wait(const struct bucket *b, uint64_t now)
{
	return b->rate && b->paid_at > now ? b->paid_at - now : 0;
}

void bucket_take(struct bucket *b, uint64_t cost, uint64_t now)
{
	uint64_t from = now - MIN(now, BUCKET_BURST_NS);

	if (!b->rate)
		return;
	b->paid_at = MAX(b->paid_at, from) + bucket_ns(b, cost);
	b->paid_at = MIN(b->paid_at, now + BUCKET_LONGEST);
}

void bucket_give(struct bucket *b, uint64_t unused)
{
	b->paid_at -= MIN(b->paid_at, bucket_ns(b, unused));
}

void bucket_set_rate(struct bucket *b, uint64_t rate, uint64_t now)
{
	uint64_t debt = bucket_wait(b, now);

	if (rate == b->rate)
		return;
	if (debt && rate)
		b->paid_at = now + scale(debt, b->rate, rate);
	else if (!b->rate || !rate)
		b->paid_at = 0;
	b->rate = rate;
}

bool bucket_is_full(const struct bucket *b, uint64_t now)
{
	return !b->rate || b->paid_at + BUCKET_BURST_NS <= now;
}
