/* SPDX-License-Identifier: BSD-2-Clause */
/* shelf - small buffers that a thread has at hand. */
#include "transport/shelf.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/util.h"

static struct shelf *mine(struct shelves *all)
{
	static atomic_uint threads;
	static _Thread_local unsigned number;	/* from 1 on */

	if (unlikely(number == 0))
		number = atomic_fetch_add(&threads, 1) % SHELVES + 1;
	return &all->shelf[number - 1];
}

int shelves_init(struct shelves *all, size_t max_bytes)
{
	size_t most = max_bytes / 16 / SHELVES / SHELF_BUF_SIZE;

	all->shelf = aligned_alloc(_Alignof(struct shelf),
				   SHELVES * sizeof(struct shelf));
	if (!all->shelf)
		return -ENOMEM;
	for (unsigned i = 0; i < SHELVES; i++) {
		all->shelf[i] = (struct shelf){ .n = 0 };
		pthread_mutex_init(&all->shelf[i].lock, NULL);
	}
	all->most = (uint32_t)MIN(most, (size_t)SHELF_BUFS_MAX);
	atomic_init(&all->closed, false);
	return 0;
}

void shelves_fini(struct shelves *all)
{
	for (unsigned i = 0; i < SHELVES; i++) {
		assert(all->shelf[i].n == 0);
		pthread_mutex_destroy(&all->shelf[i].lock);
	}
	free(all->shelf);
}

struct buf *shelf_take(struct shelves *all, uint8_t flow)
{
	struct shelf *s = mine(all);
	struct buf *b = NULL;

	mutex_lock(&s->lock);
	if (s->n > 0 && s->flow == flow) {
		b = s->bufs;
		s->bufs = b->next;
		s->n--;
		ref_init(&b->ref);
	}
	mutex_unlock(&s->lock);
	return b;
}

bool shelf_put(struct shelves *all, struct buf *b)
{
	struct shelf *s = mine(all);
	bool fits;

	mutex_lock(&s->lock);
	/* The shelves are closed before each is cleared, under its lock. */
	fits = s->n < all->most && (s->n == 0 || s->flow == b->flow) &&
	       !atomic_load_explicit(&all->closed, memory_order_relaxed);
	if (fits) {
		b->next = s->bufs;
		s->bufs = b;
		s->flow = b->flow;
		s->n++;
	}
	mutex_unlock(&s->lock);
	return fits;
}

/* With the lock. */
static struct buf *empty_shelf(struct shelf *s)
{
	struct buf *bufs = s->bufs;

	s->bufs = NULL;
	s->n = 0;
	return bufs;
}

struct buf *shelf_take_others(struct shelves *all, uint8_t flow)
{
	struct shelf *s = mine(all);
	struct buf *bufs = NULL;

	mutex_lock(&s->lock);
	if (s->n > 0 && s->flow != flow)
		bufs = empty_shelf(s);
	mutex_unlock(&s->lock);
	return bufs;
}

struct buf *shelf_clear(struct shelves *all, unsigned i)
{
	struct shelf *s = &all->shelf[i];
	struct buf *bufs;

	mutex_lock(&s->lock);
	bufs = empty_shelf(s);
	mutex_unlock(&s->lock);
	return bufs;
}
