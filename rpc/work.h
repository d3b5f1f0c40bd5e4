/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * work - the worker threads, and the shares that bound who may use them.
 *
 * A class has workers of its own, at most max_workers, whatever the items of
 * other classes do.  In a class clients take turns, one item each, and one
 * client never has more than three quarters of the workers.  The items of one
 * client run in the order in which they were submitted.
 */
#ifndef GANNET_RPC_WORK_H
#define GANNET_RPC_WORK_H

#include "rpc/rpc.h"

struct work_pool;

/* The caller's memory, until run is called. */
struct work_item {
	struct work_item *next;
	uint64_t	  client;	/* whose it is: work_client() */
	void		(*run)(struct work_item *item);
};

/* A client's number, from its address. */
uint64_t work_client(const struct sockaddr *peer);

/* Starts @nworkers threads; more are started when classes need them.  0 or
 * -errno. */
int work_pool_create(unsigned nworkers, struct work_pool **out);
/* Runs what was submitted, then ends the threads.  Nothing is submitted any
 * more, except by items that run.  All classes but the pool's own are gone
 * or will not be used. */
void work_pool_destroy(struct work_pool *pool);

/* The share of calls that have no other; @nworkers of work_pool_create(). */
struct work_class *work_pool_common(struct work_pool *pool);

struct work_class *work_class_new(struct work_pool *pool, const char *name,
				  unsigned max_workers);

/* Any thread.  Wakes at most one worker; that one wakes the next. */
void work_submit(struct work_class *class, struct work_item *item);

typedef void work_walk_fn(const char *name, unsigned max, unsigned running,
			  unsigned waiting, void *arg);
/* @fn is called with the queues locked: it only takes notes. */
void work_pool_walk(struct work_pool *pool, work_walk_fn *fn, void *arg);

#endif
