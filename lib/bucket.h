/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bucket - a token bucket: limits the use of something in a second.
 *
 * A call is admitted while the bucket is not in debt, and then takes its cost,
 * which can be more than the bucket ever holds: other calls wait until that is
 * paid off.  Unused tokens are kept for BUCKET_BURST_NS.  Pure; the time is the
 * caller's, CLOCK_MONOTONIC ns, and need not be exact.
 *
 * The level is kept as a time, which saves filling the bucket: it is in debt
 * until then.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A tenth of a second's tokens: enough to let the thread that serves waiting
 * calls sleep for milliseconds, and small against a second. */
#define BUCKET_BURST_NS	UINT64_C(100000000)

/* All zeros is a bucket without a limit. */
struct bucket {
	uint64_t rate;		/* a second; 0: no limit */
	uint64_t paid_at;	/* when the debt is paid off */
};

/* Changes the rate.  A debt stays as many tokens. */
void bucket_set_rate(struct bucket *b, uint64_t rate, uint64_t now);
/* The ns until the bucket is out of debt; 0: it is. */
uint64_t bucket_wait(const struct bucket *b, uint64_t now);
/* Takes @cost tokens, whatever the level is. */
void bucket_take(struct bucket *b, uint64_t cost, uint64_t now);
/* Returns tokens that were taken and not used. */
void bucket_give(struct bucket *b, uint64_t unused);
/* The ns that @cost tokens take to come; at most BUCKET_LONGEST. */
uint64_t bucket_ns(const struct bucket *b, uint64_t cost);
/* True if all tokens taken have come back: a new bucket would do as well. */
bool bucket_is_full(const struct bucket *b, uint64_t now);

/* No debt is longer (36 years): the sum of two must not overflow. */
#define BUCKET_LONGEST	(UINT64_C(1) << 60)

/* Two limits of one client or export; 0: none. */
struct rates {
	uint64_t ops;		/* a second */
	uint64_t bytes;		/* a second */
};

static inline bool rates_any(const struct rates *r)
{
	return r->ops || r->bytes;
}

static inline bool rates_same(const struct rates *a, const struct rates *b)
{
	return a->ops == b->ops && a->bytes == b->bytes;
}
