/* SPDX-License-Identifier: BSD-2-Clause */
/* A node's lock; mem.h has the order. */
#include "vfs/mem/mem.h"

#include <errno.h>

void mem_wrlock(struct mem_node *n)
{
	int err = pthread_rwlock_wrlock(&n->lock);

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
		err = pthread_rwlock_rdlock(&n->lock);
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
