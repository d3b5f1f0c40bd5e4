/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * work - the worker threads, and the shares that bound who may use them.
 *
 * Items of one class run in the order in which they were submitted, at most
 * max_workers of them at a time.  Classes take turns, one item each, so a
 * class with a long queue delays the others by one item, not by its queue.
 */
#ifndef GANNET_RPC_WORK_H
#define GANNET_RPC_WORK_H

#include "rpc/rpc.h"

struct work_pool;

/* The caller's memory, until run is called. */
struct work_item {
	struct work_item *next;
	void		(*run)(struct work_item *item);
};

/* 0 or -errno; the threads run when it returns. */
int work_pool_create(unsigned nworkers, struct work_pool **out);
/* Runs what was submitted, then ends the threads.  Nothing is submitted any
 * more, except by items that run.  All classes but the pool's own are gone
 * or will not be used. */
void work_pool_destroy(struct work_pool *pool);

/* The common share: as many workers as there are. */
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
