/* SPDX-License-Identifier: BSD-2-Clause */
/* work_class - making, looking at and ending the shares of the workers. */
#include "rpc/work_priv.h"

#include <stdio.h>
#include <stdlib.h>

struct work_class *work_class_new(struct work_pool *pool, const char *name,
				  unsigned max_workers)
{
	struct work_class *class = calloc(1, sizeof(*class));

	if (!class)
		return NULL;
	class->pool = pool;
	class->max = MAX(1u, max_workers);
	class->max_client = class->max_network = class->max;
	if (class->max > 1) {
		class->max_client -= MAX(1u, class->max / 4);
		class->max_network -= MAX(1u, class->max / 8);
	}
	CDS_INIT_LIST_HEAD(&class->networks);
	for (unsigned i = 0; i < NTURNS; i++)
		CDS_INIT_LIST_HEAD(&class->network[i].turns);
	snprintf(class->name, sizeof(class->name), "%s", name);
	mutex_lock(&pool->lock);
	cds_list_add_tail(&class->all, &pool->classes);
	mutex_unlock(&pool->lock);
	return class;
}

bool work_class_idle(struct work_class *class)
{
	bool idle;

	mutex_lock(&class->pool->lock);
	idle = !class->running && !class->waiting;
	mutex_unlock(&class->pool->lock);
	return idle;
}

void work_class_destroy(struct work_class *class)
{
	struct work_pool *pool = class->pool;

	/* The last call was answered, but perhaps its worker has not counted
	 * that yet. */
	mutex_lock(&pool->lock);
	assert(!class->waiting);
	while (class->running)
		pthread_cond_wait(&pool->quiet, &pool->lock);
	cds_list_del(&class->all);
	mutex_unlock(&pool->lock);
	free(class);
}

void work_pool_walk(struct work_pool *pool, work_walk_fn *fn, void *arg)
{
	struct work_class *class;

	mutex_lock(&pool->lock);
	cds_list_for_each_entry(class, &pool->classes, all)
		fn(class->name, class->max, class->running, class->waiting,
		   arg);
	mutex_unlock(&pool->lock);
}

struct work_class *work_pool_common(struct work_pool *pool)
{
	return pool->common;
}

/* Locked.  Removes an entry that has nothing left to run from its list. */
static void class_unlist(struct work_class *class, struct turn *turn)
{
	struct network *network = turn->network;

	if (!turn->head && turn->listed) {
		turn->listed = false;
		cds_list_del(&turn->link);
	}
	if (cds_list_empty(&network->turns) && network->listed) {
		network->listed = false;
		cds_list_del(&network->link);
	}
	if (cds_list_empty(&class->networks) && class->listed) {
		class->listed = false;
		cds_list_del(&class->ready);
	}
}

/*
 * Locked.  Moves the items of @turn that @wanted picks to the front of @list.
 * The others stay in their order.
 */
static struct work_item *take_some(struct work_class *class, struct turn *turn,
				   work_pick_fn *wanted, void *arg,
				   struct work_item *list)
{
	struct work_item **p = &turn->head, *item;

	turn->tail = NULL;
	while ((item = *p)) {
		if (!wanted(item, arg)) {
			turn->tail = item;
			p = &item->next;
			continue;
		}
		*p = item->next;
		item->next = list;
		list = item;
		class->waiting--;
	}
	class_unlist(class, turn);
	turn_check_free(turn);
	return list;
}

/* Locked.  True if an item of @turn waited at the last look and none has ended
 * since.  Notes how it is now. */
static bool has_hung(struct turn *turn)
{
	bool hung = turn->head && turn->waited && turn->ended == turn->seen;

	turn->waited = turn->head != NULL;
	turn->seen = turn->ended;
	return hung;
}

struct work_item *work_pool_take_hung(struct work_pool *pool,
				      work_pick_fn *wanted, void *arg)
{
	struct work_item *list = NULL;
	struct work_class *class;

	mutex_lock(&pool->lock);
	cds_list_for_each_entry(class, &pool->classes, all)
		for (unsigned i = 0; i < NTURNS; i++)
			if (has_hung(&class->turn[i]))
				list = take_some(class, &class->turn[i],
						 wanted, arg, list);
	if (cds_list_empty(&pool->ready))
		atomic_store_explicit(&pool->hint, false,
				      memory_order_relaxed);
	mutex_unlock(&pool->lock);
	return list;
}
