/* SPDX-License-Identifier: BSD-2-Clause */
/* fate - a connection's fate: its acknowledged position, and its end. */
#include "transport/fate.h"

#include <stdlib.h>
#include <time.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "transport/xprt.h"

/* For tests: milliseconds to add to the clock. */
static _Atomic uint64_t ahead;

static _Atomic uint64_t turns;

uint64_t xprt_now_ms(void)
{
	return clock_ms() + atomic_load_explicit(&ahead, memory_order_relaxed);
}

void xprt_age(int seconds)
{
	atomic_fetch_add(&ahead, (uint64_t)((int64_t)seconds * 1000));
}

struct xprt_fate *xprt_fate_create(struct xprt *x, uint32_t ms)
{
	struct xprt_fate *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	ref_init(&f->ref);
	pthread_mutex_init(&f->lock, NULL);
	f->xprt = x;
	f->born = xprt_now_ms() - ms;
	f->turn = atomic_fetch_add(&turns, 1);
	return f;
}

void xprt_fate_put(struct xprt_fate *f)
{
	if (!f || !ref_put(&f->ref))
		return;
	pthread_mutex_destroy(&f->lock);
	free(f);
}

/* With the lock. */
static void note_acked(struct xprt_fate *f, uint64_t acked)
{
	if (acked > atomic_load_explicit(&f->acked, memory_order_relaxed))
		atomic_store_explicit(&f->acked, acked, memory_order_relaxed);
}

/* With the lock. */
static void ask(struct xprt_fate *f, struct xprt_view *v)
{
	*v = (struct xprt_view){ .end = XPRT_ALIVE, .ended = xprt_now_ms() };
	f->xprt->ops->look(f->xprt, v);
	note_acked(f, v->acked);
	atomic_store_explicit(&f->looked, v->ended, memory_order_relaxed);
}

void xprt_fate_look(struct xprt_fate *f, struct xprt_view *v)
{
	mutex_lock(&f->lock);
	if (f->xprt)
		ask(f, v);
	else
		*v = f->last;
	mutex_unlock(&f->lock);
}

void xprt_fate_known(struct xprt_fate *f, struct xprt_view *v)
{
	mutex_lock(&f->lock);
	*v = f->last;
	mutex_unlock(&f->lock);
	v->acked = atomic_load_explicit(&f->acked, memory_order_relaxed);
}

void xprt_fate_end(struct xprt_fate *f, enum xprt_end how)
{
	mutex_lock(&f->lock);
	if (f->xprt) {
		ask(f, &f->last);
		f->last.end = MAX(f->last.end, how);
		f->xprt = NULL;
	}
	mutex_unlock(&f->lock);
}
