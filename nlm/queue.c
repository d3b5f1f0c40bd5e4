/* SPDX-License-Identifier: BSD-2-Clause */
/* queue - the waiters of one owner in one file, found by their bytes.  Pure. */
#include "nlm/table.h"

#include <stdlib.h>

#include "lib/util.h"

/* NULL: no queue. */
static struct nlm_queue *queue_find(const struct nlm_file *f,
				    const struct nlm_owner *o)
{
	const struct nlm_span key = nlm_owner_key(o);
	struct nlm_node *n = nlm_tree_find(f->queues, &key, NULL, NULL);

	return n ? container_of(n, struct nlm_queue, by_owner) : NULL;
}

/* Made if need be; NULL: no memory. */
static struct nlm_queue *queue_get(struct nlm_file *f, struct nlm_owner *o)
{
	struct nlm_queue *q = queue_find(f, o);

	if (q)
		return q;
	q = calloc(1, sizeof(*q));
	if (!q)
		return NULL;
	q->key = nlm_owner_key(o);
	q->by_owner = (struct nlm_node){ .at = &q->key, .owner = o };
	nlm_tree_add(&f->queues, &q->by_owner);
	return q;
}

bool nlm_queue_join(struct nlm_wait *w)
{
	w->queue = queue_get(w->file, w->owner);
	if (!w->queue)
		return false;
	w->queue->count++;
	nlm_queue_move(w);
	return true;
}

static void leave_tree(struct nlm_wait *w)
{
	if (w->of_queue_in)
		nlm_tree_del(w->of_queue_in, &w->of_queue);
	w->of_queue_in = NULL;
}

void nlm_queue_move(struct nlm_wait *w)
{
	struct nlm_node **to = w->granted || w->cut ? &w->queue->grants :
						      &w->queue->asleep;

	if (w->of_queue_in == to)
		return;
	leave_tree(w);
	w->of_queue_in = to;
	w->of_queue = (struct nlm_node){ .at = &w->at, .owner = w->owner };
	nlm_tree_add(to, &w->of_queue);
}

void nlm_queue_leave(struct nlm_wait *w)
{
	struct nlm_queue *q = w->queue;

	leave_tree(w);
	w->queue = NULL;
	if (--q->count)
		return;
	nlm_tree_del(&w->file->queues, &q->by_owner);
	free(q);
}

static struct nlm_wait *wait_of(struct nlm_node *n)
{
	return n ? container_of(n, struct nlm_wait, of_queue) : NULL;
}

struct nlm_wait *nlm_wait_find(const struct nlm_file *f,
			       const struct nlm_owner *o,
			       const struct nlm_span *at)
{
	const struct nlm_queue *q = queue_find(f, o);
	struct nlm_node *n = q ? nlm_tree_find_same(q->asleep, at) : NULL;

	if (q && !n)
		n = nlm_tree_find_same(q->grants, at);
	return wait_of(n);
}

static struct nlm_wait *next_in(struct nlm_node *tree,
				const struct nlm_span *at,
				const struct nlm_wait *prev)
{
	const struct nlm_span any = { at->start, at->end, true };

	return wait_of(nlm_tree_find(tree, &any, NULL,
				     prev ? &prev->of_queue : NULL));
}

struct nlm_wait *nlm_asleep_next(const struct nlm_file *f,
				 const struct nlm_owner *o,
				 const struct nlm_span *at,
				 const struct nlm_wait *prev)
{
	const struct nlm_queue *q = queue_find(f, o);

	return q ? next_in(q->asleep, at, prev) : NULL;
}

struct nlm_wait *nlm_grant_next(const struct nlm_file *f,
				const struct nlm_owner *o,
				const struct nlm_span *at,
				const struct nlm_wait *prev)
{
	const struct nlm_queue *q = queue_find(f, o);

	return q ? next_in(q->grants, at, prev) : NULL;
}
