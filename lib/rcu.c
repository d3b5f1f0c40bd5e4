/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rcu - work after a grace period.
 *
 * Pollers run whole operations in one section.  While they do, a grace period
 * inspects them again each time that one of them leaves a section, and each
 * inspection interrupts all processors.  So grace periods are few, each for
 * many objects: call_rcu() of liburcu has up to a hundred a second.
 */
#include "lib/rcu.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "lib/thread.h"
#include "lib/util.h"

/* For how long objects are gathered. */
#define GATHER_NS	250000000

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int started;
static _Atomic(struct cds_wfcq_node *) pending;
static sem_t some;	/* posted when an object comes as the first one */

static void run_all(struct cds_wfcq_node *node)
{
	while (node) {
		struct rcu_head *head = container_of(node, struct rcu_head,
						     next);

		node = node->next;
		head->func(head);
	}
}

static void run_gathered(void *arg)
{
	const struct timespec while_others_come = { .tv_nsec = GATHER_NS };
	struct cds_wfcq_node *all;

	(void)arg;
	for (;;) {
		if (sem_wait(&some) < 0)
			continue;
		nanosleep(&while_others_come, NULL);
		all = atomic_exchange(&pending, NULL);
		rcu_wait();
		run_all(all);
	}
}

static void start_gathering(void)
{
	pthread_t thread;

	sem_init(&some, 0, 0);
	started = thread_start(&thread, "rcu", run_gathered, NULL);
	if (started == 0)
		pthread_detach(thread);
}

int rcu_later_start(void)
{
	pthread_once(&once, start_gathering);
	return started;
}

void rcu_later(struct rcu_head *head, void (*fn)(struct rcu_head *head))
{
	struct cds_wfcq_node *old = atomic_load(&pending);

	if (rcu_later_start() < 0)
		abort();
	head->func = fn;
	do
		head->next.next = old;
	while (!atomic_compare_exchange_weak(&pending, &old, &head->next));
	if (!old)
		sem_post(&some);
}
