/* SPDX-License-Identifier: BSD-2-Clause */
/* errand - all share a lock and a condition: they are rare. */
#include "lib/errand.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/mounts.h"
#include "lib/thread.h"
#include "lib/util.h"

_Atomic unsigned errand_wait_ms = 2000;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static struct errand *left;		/* by their owners */

static void errand_unlist(struct errand *e)
{
	struct errand **at = &left;

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
}

static uint64_t run_errand(struct crew_job *job)
{
	struct errand *e = container_of(job, struct errand, job);
	int err = e->run(e);
	bool drops;

	/* A network file system can answer so, which is an answer. */
	if (err == -ETIMEDOUT)
		err = -EIO;
	mutex_lock(&lock);
	e->err = err;
	e->ended = true;
	drops = e->left;
	if (drops)
		errand_unlist(e);
	/* Its owner frees it as soon as the lock is free. */
	pthread_cond_broadcast(&ended);
	mutex_unlock(&lock);
	if (drops)
		e->drop(e);
	return CREW_GONE;
}

static bool is_left(const struct errand *like)
{
	const struct errand *e;

	mutex_lock(&lock);
	e = left;
	while (e && (e->run != like->run || strcmp(e->path, like->path) != 0))
		e = e->next;
	mutex_unlock(&lock);
	return e;
}

int errand_begin(struct errand *e)
{
	int err;

	if (is_left(e))
		return -ETIMEDOUT;
	e->ended = e->left = false;
	err = crew_job_init(&e->job, run_errand, "errand");
	if (err)
		return err;
	e->job.place = mounts_place(e->path);
	crew_run(&e->job);
	return 0;
}

int errand_await(struct errand *e, uint64_t until)
{
	int err;

	mutex_lock(&lock);
	while (!e->ended && clock_ns() < until) {
		if (until == UINT64_MAX)
			pthread_cond_wait(&ended, &lock);
		else
			cond_wait_until(&ended, &lock, until);
	}
	err = e->ended ? e->err : -ETIMEDOUT;
	if (!e->ended) {
		e->left = true;
		e->next = left;
		left = e;
	}
	mutex_unlock(&lock);
	return err;
}

uint64_t errand_deadline(void)
{
	return clock_ns() + atomic_load(&errand_wait_ms) * NS_PER_MS;
}
