/* SPDX-License-Identifier: BSD-2-Clause */
/* A node's lock; mem.h has the order. */
#include "vfs/mem/mem.h"

#include <sched.h>

/* An unlock hands the lock to a sleeping thread, and until that thread runs
 * every other caller also goes to sleep.  If callers outnumber processors, a
 * lock held for a microsecond then costs each of them milliseconds, and this
 * does not end.  So a caller that can wait tries this often before it sleeps.
 * It does sleep in the end, since readers are held back only for a sleeping
 * writer. */
#define TRIES 64

typedef int (*lock_fn)(pthread_rwlock_t *);

static int lock_waiting(pthread_rwlock_t *rw, lock_fn trylock, lock_fn lock)
{
	for (unsigned i = 0; i < TRIES; i++) {
		if (trylock(rw) == 0)
			return 0;
		sched_yield();
	}
	return lock(rw);
}

void mem_wrlock(struct mem_node *n)
{
	int err = lock_waiting(&n->lock, pthread_rwlock_trywrlock,
			       pthread_rwlock_wrlock);

	assert(err == 0);
	(void)err;
}

int mem_wrlock_op(const struct vfs_op *op, struct mem_node *n)
{
	if (op->nonblock)
		return pthread_rwlock_trywrlock(&n->lock) ? -EAGAIN : 0;
	mem_wrlock(n);
	return 0;
}

int mem_rdlock(const struct vfs_op *op, struct mem_node *n)
{
	int err;

	if (op->nonblock)
		return pthread_rwlock_tryrdlock(&n->lock) ? -EAGAIN : 0;
	/* EAGAIN: too many readers; one of them will be gone soon. */
	do {
		err = lock_waiting(&n->lock, pthread_rwlock_tryrdlock,
				   pthread_rwlock_rdlock);
	} while (unlikely(err == EAGAIN));
	assert(err == 0);
	return 0;
}

void mem_unlock(struct mem_node *n)
{
	int err = pthread_rwlock_unlock(&n->lock);

	assert(err == 0);
	(void)err;
}

void mem_wrlock2(struct mem_node *a, struct mem_node *b)
{
	mem_wrlock(MIN(a, b));
	if (a != b)
		mem_wrlock(MAX(a, b));
}

void mem_unlock2(struct mem_node *a, struct mem_node *b)
{
	mem_unlock(a);
	if (a != b)
		mem_unlock(b);
}
