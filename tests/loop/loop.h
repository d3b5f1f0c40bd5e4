/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop - a fabric in one process: both ends, real copies, real refusals.
 *
 * Operation: every connection has a passive and an active end; each works
 * through its send queue on its own event loop, copying to and from the other
 * end's memory.  Handles, bounds, access and lengths are checked as an adapter
 * checks them, and an error ends the connection on both ends.  It checks the
 * caller's side of fabric.h's contract as well, and counts violations.
 *
 * With a seed, all that RDMA leaves open is open (chance.c): each end does a
 * random small amount of work at a time and gives completions late and
 * interleaved, within the order they must keep, and that of a Send perhaps
 * after the answer to it; the data of a Write is seen with the Receive behind
 * it, or earlier in pieces; a Read takes its time while later steps are carried
 * out; Receives can come before established().
 */
#pragma once

#include "transport/fabric/fabric.h"

/* Zero is the default of every field. */
struct loop_fabric_options {
	struct fabric_limits passive;	/* 0 members: generous */
	struct fabric_limits active;
	uint32_t seed;		/* 0: everything at once and in order */
	/* With a seed, the rate of failures: one in so many; 0: never. */
	struct {
		unsigned lose;	/* steps, posts and turns: the connection */
		unsigned fail;	/* steps: with -EIO */
		unsigned post;	/* posts: with -ENOMEM */
		unsigned mr;	/* registrations: with -ENOMEM */
	} chance;
	unsigned fail_nth;	/* the n-th operation fails, from 1 */
	unsigned break_nth;	/* the connection breaks just before it */
	unsigned stall_nth;	/* neither it nor a later one is carried out */
	unsigned pad_private;	/* private data grows to this, with zeros */
	unsigned late_established; /* passive end: after so many Receives */
	bool	 no_invalidate;	/* no end can send SEND_INV */
};

struct loop_fabric_counts {
	unsigned violations;	/* of the caller's side of fabric.h's
				 * contract */
	unsigned operations;
	unsigned sends;
	unsigned invalidates;
	unsigned writes;
	unsigned reads;
	unsigned refused;	/* bad handle, bounds or access */
	unsigned rnr;		/* Sends that found no Receive */
	unsigned too_long;	/* Sends that found a short one */
	unsigned deepest_reads;	/* most Reads in flight on one end */
	unsigned deepest_queue;	/* most steps on one send queue */
	unsigned ends;		/* ends that were not freed */
	unsigned mrs;		/* registrations, */
	size_t	 mr_bytes;	/* how much memory, */
	size_t	 passive_bytes;	/* and how much of it on the passive device */
};

int loop_fabric_create(const struct loop_fabric_options *options,
		       struct fabric *out);
/* All connections, listeners and registrations must be gone. */
void loop_fabric_destroy(struct fabric *f);
/* Any thread. */
void loop_fabric_count(const struct fabric *f, struct loop_fabric_counts *out);
/* Breaks both ends of every connection, as if a cable were pulled. */
void loop_fabric_break(const struct fabric *f);
