/* SPDX-License-Identifier: BSD-2-Clause */
/* The queues of a pool of workers, which the files of work share.  See
 * work.c. */
#pragma once

#include <stdatomic.h>

#include <urcu/list.h>

#include "lib/thread.h"
#include "rpc/work.h"

#define NTURNS		256u		/* a power of two */
/* Of these, at most so many for the addresses of one network: the others must
 * find free ones. */
#define NETWORK_TURNS	(NTURNS / 4)

struct worker;

/* A network's place in a class.  Free while it has no turns in use. */
struct network {
	uint32_t	  number;
	unsigned	  used;		/* turns */
	unsigned	  running;	/* items */
	bool		  listed;	/* in class->networks */
	struct cds_list_head turns;	/* clients that can run something */
	struct cds_list_head link;
};

/* A client's place in a class.  Free while no item of it waits or runs. */
struct turn {
	uint64_t	  client;
	struct network	 *network;	/* valid while it is in use */
	struct work_item *head;		/* waiting */
	struct work_item *tail;
	unsigned	  running;
	uint64_t	  ended;	/* items that have been run */
	/* At the last look for clients whose calls hang. */
	uint64_t	  seen;		/* ended */
	bool		  waited;	/* head was not NULL */
	bool		  listed;	/* in network->turns */
	struct cds_list_head link;
};

static inline bool turn_in_use(const struct turn *turn)
{
	return turn->head || turn->running;
}

/* After an item of @turn was taken away, or ended. */
static inline void turn_check_free(struct turn *turn)
{
	if (!turn_in_use(turn))
		turn->network->used--;
}

struct work_class {
	char		  name[24];	/* first, for tracers: see struct
					 * xprt */
	struct work_pool *pool;		/* borrowed: outlives its classes */
	unsigned	  max;
	unsigned	  max_client;	/* of these, for one client */
	unsigned	  max_network;	/* and for one network */
	/* Guarded by pool->lock from here on. */
	struct cds_list_head networks;	/* networks that can */
	unsigned	  waiting;
	unsigned	  running;
	bool		  listed;	/* in pool->ready */
	struct cds_list_head ready;
	struct cds_list_head all;
	struct turn	  turn[NTURNS];
	struct network	  network[NTURNS];
};

struct work_pool {
	pthread_mutex_t	  lock;		/* innermost, except locks that the
					 * caller of work_pool_take_hung()
					 * takes */
	struct cds_list_head ready;	/* classes that can run something */
	struct cds_list_head classes;	/* all of them */
	struct worker	 *idle;
	bool		  waking;	/* a worker is on its way: woken,
					 * started, or spinning */
	bool		  stopping;
	bool		  crowded;	/* a class had to wait for room */
	unsigned	  most;		/* items that run, see may_run_more() */
	unsigned	  running;
	bool		  growing;	/* the keeper is awake */
	pthread_cond_t	  quiet;	/* a class came to running == 0 */
	pthread_cond_t	  wanted;	/* the keeper sleeps here */
	struct worker	 *workers;	/* all */
	unsigned	  nworkers;
	unsigned	  started;	/* so far: their names */

	/* True if ready has a class.  Written with the lock held; a spinning
	 * worker reads it without, as a hint. */
	atomic_bool	  hint;

	unsigned	  max_spin;
	pthread_t	  keeper;
	struct work_class *common;
};

/*
 * Locked.  True if the class can run one more item.  One is always possible; of
 * pool->most a class can have twice the number that it leaves free, so that
 * however many classes hang, others have some.
 */
static inline bool may_run_more(const struct work_class *class)
{
	struct work_pool *pool = class->pool;

	if (class->running >= class->max)
		return false;
	if (likely(class->running / 2 + pool->running < pool->most) ||
	    class->running == 0)
		return true;
	pool->crowded = true;
	return false;
}
