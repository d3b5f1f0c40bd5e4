/* SPDX-License-Identifier: BSD-2-Clause */
/* grant - the number of credits that a requester gets next.  Pure. */
#include "transport/rpcrdma/grant.h"

#include <stdbool.h>

#include "lib/util.h"

/* The bytes that grants can grow into; the rest is for new connections. */
static size_t room_of_all(const struct rpcrdma_demand *d)
{
	return d->budget - d->budget / 4;
}

static unsigned fair_share(const struct rpcrdma_demand *d)
{
	size_t share = room_of_all(d) / MAX(d->conns, 1u) / MAX(d->unit, 1u);

	share = MIN(share, d->max);
	return MAX((unsigned)share, d->min);
}

/* True if all connections keep within their room with @more credits. */
static bool leaves_room(const struct rpcrdma_demand *d, unsigned more)
{
	size_t room = room_of_all(d);

	return d->used <= room && more <= (room - d->used) / MAX(d->unit, 1u);
}

/* Most calls that were in progress for the requester at once, as far as we can
 * tell: the calls in progress here, or that came within the time of the
 * path. */
static unsigned use_of(const struct rpcrdma_demand *d)
{
	uint64_t underway = 0;

	if (d->path > 0)
		underway = d->calls * d->path / MAX(d->time, d->path);
	return MAX(d->peak, (unsigned)underway);
}

/* The grant by use alone. */
static unsigned by_use(const struct rpcrdma_demand *d)
{
	unsigned use = use_of(d);
	unsigned useful = MAX(d->asked, d->grant);
	unsigned twice = d->grant < d->max / 2 ? 2 * d->grant : d->max;

	if (use >= d->grant - d->grant / 4)
		return MIN(twice, useful);
	if (use <= d->grant / 4)
		return d->grant / 2;
	return d->grant;
}

unsigned rpcrdma_grant_next(const struct rpcrdma_demand *d)
{
	unsigned next = by_use(d);
	unsigned share;

	if (d->budget > 0) {
		share = fair_share(d);
		if (next > share && next > d->grant &&
		    !leaves_room(d, next - d->grant))
			next = MAX(share, d->grant);
		/* By halves: perhaps the requester uses all its credits. */
		if (next > share && !leaves_room(d, 0))
			next = MAX(share, d->grant / 2);
	}
	next = MAX(next, d->min);
	return MIN(next, d->max);
}
