/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * work - the worker threads, and the shares that bound their use.
 *
 * A class has at most max_workers workers, which items of other classes can't
 * use.  Where the cgroup bounds threads, classes share half of these, and each
 * can run an item at least.  In a class networks take turns, one item each, and
 * so do the clients of a network.  One client never has more than three
 * quarters of the workers, and one network never more than seven eighths.  The
 * items of one client run in the order in which they were submitted.
 *
 * A client is an address; its network is all of an IPv4 address, and the first
 * 64 bits of an IPv6 address.  An IPv6 host can have any number of addresses in
 * its /64, so addresses alone would give it any number of turns.  The /64 alone
 * would give one turn to all hosts of a LAN, which commonly share one.
 */
#pragma once

#include "rpc/rpc.h"

struct work_pool;

/* In the caller's memory, which must stay until run() is called. */
struct work_item {
	struct work_item *next;
	uint64_t	  client;	/* work_client() */
	void		(*run)(struct work_item *item);
	bool		  is_job;	/* no call: it is never sent back */
};

/* A client's number, from its address; its upper half is its network's. */
uint64_t work_client(const struct sockaddr *peer);

/* Starts one worker; others are started when classes need them, and end when
 * they had nothing to do for long.  @nworkers: the most of the common class.  0
 * or -errno. */
int work_pool_create(unsigned nworkers, struct work_pool **out);
/* Runs the submitted items, then ends the threads.  Only running items can
 * submit more.  All classes but the pool's own must be gone or out of use. */
void work_pool_destroy(struct work_pool *pool);

/* The common class, for calls without another class; @nworkers of
 * work_pool_create() is its limit. */
struct work_class *work_pool_common(struct work_pool *pool);

struct work_class *work_class_new(struct work_pool *pool, const char *name,
				  unsigned max_workers);

/* Any thread.  Wakes at most one worker; that one wakes the next. */
void work_submit(struct work_class *class, struct work_item *item);

typedef bool work_pick_fn(struct work_item *item, void *arg);
/*
 * Removes items that wait behind hung ones: items that @wanted selects, of
 * clients that had items waiting at the last call of this function and had no
 * item end since.  The items, linked by next, are the caller's again.  One
 * thread calls this; @wanted is called with the queues locked.
 */
struct work_item *work_pool_take_hung(struct work_pool *pool,
				      work_pick_fn *wanted, void *arg);

typedef void work_walk_fn(const char *name, unsigned max, unsigned running,
			  unsigned waiting, void *arg);
/* @fn is called with the queues locked: it only takes notes. */
void work_pool_walk(struct work_pool *pool, work_walk_fn *fn, void *arg);
