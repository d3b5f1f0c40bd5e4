/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * grant - the number of credits that a requester gets next.  Pure.
 *
 * The grant doubles when three quarters of it were used at once, and halves
 * when at most a quarter were: a requester whose use stays as it is never sees
 * both.  A requester's credits are in use for longer than a responder sees its
 * calls; the rate of the calls tells how much longer.
 *
 * A quarter of the memory's bound is kept for new connections.  A grant that
 * would grow into that quarter stops at a fair share of the rest, and while the
 * quarter is in use all grants come down to that share.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The facts of one connection that decide about its grant. */
struct rpcrdma_demand {
	unsigned grant;		/* credits that it has now: 1 at least */
	unsigned peak;		/* most calls in progress of late */
	unsigned calls;		/* that came of late, */
	uint64_t time;		/* in so many nanoseconds */
	uint64_t path;		/* nanoseconds that messages can be on their way
				 * while the requester waits; 0: none */
	unsigned asked;		/* credits that its requester asks for */
	unsigned min;		/* 1 <= min <= max */
	unsigned max;
	size_t	 unit;		/* bytes that a credit takes */
	size_t	 used;		/* bytes of all connections, */
	size_t	 budget;	/* and their bound; 0: none */
	unsigned conns;		/* that share the budget, with this one */
};

/* Returns the next grant, from d->min to d->max.  Any thread. */
unsigned rpcrdma_grant_next(const struct rpcrdma_demand *d);
