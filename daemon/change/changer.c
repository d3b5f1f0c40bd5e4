/* SPDX-License-Identifier: BSD-2-Clause */
/* changer - a thread that reads the exports again, or changes them, on
 * request. */
#include "daemon/change/change.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/log.h"
#include "lib/thread.h"

/* A thread that hangs must not have everyone wait. */
#define MAX_JOBS	16

struct changer {
	int		(*fn)(void *arg, struct outcome *o);
	void		 *arg;
	pthread_t	  thread;
	pthread_mutex_t	  lock;		/* guards the rest */
	pthread_cond_t	  told;
	bool		  asked, busy, stops;
	struct changer_job *first, **last;
	unsigned	  njobs;
};

/* With the lock: the next job, or NULL. */
static struct changer_job *next_job(struct changer *r)
{
	struct changer_job *job = r->first;

	if (!job)
		return NULL;
	r->first = job->next;
	if (!r->first)
		r->last = &r->first;
	r->njobs--;
	return job;
}

static void run_changes(void *arg)
{
	struct changer *r = arg;
	struct changer_job *job;

	mutex_lock(&r->lock);
	while (!r->stops) {
		job = r->asked ? NULL : next_job(r);
		if (!r->asked && !job) {
			pthread_cond_wait(&r->told, &r->lock);
			continue;
		}
		if (!job)
			r->asked = false;
		r->busy = true;
		mutex_unlock(&r->lock);
		if (job)
			job->run(job, false);
		else
			r->fn(r->arg, NULL);
		mutex_lock(&r->lock);
		r->busy = false;
	}
	mutex_unlock(&r->lock);
}

int changer_start(int (*fn)(void *arg, struct outcome *o), void *arg,
		   struct changer **out)
{
	struct changer *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->fn = fn;
	r->arg = arg;
	r->last = &r->first;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->told, NULL);
	err = thread_start(&r->thread, "changer", run_changes, r);
	if (err < 0)
		free(r);
	else
		*out = r;
	return err;
}

void changer_reload(struct changer *r)
{
	bool busy;

	mutex_lock(&r->lock);
	busy = r->busy;
	r->asked = true;
	pthread_cond_signal(&r->told);
	mutex_unlock(&r->lock);
	if (busy)
		log_warn("a file system does not answer, so the exports are "
			 "still being read; they will be read again after "
			 "that");
}

bool changer_give(struct changer *r, struct changer_job *job)
{
	bool fits;

	mutex_lock(&r->lock);
	fits = r->njobs < MAX_JOBS;
	if (fits) {
		job->next = NULL;
		*r->last = job;
		r->last = &job->next;
		r->njobs++;
		pthread_cond_signal(&r->told);
	}
	mutex_unlock(&r->lock);
	return fits;
}

void changer_stop(struct changer *r)
{
	struct changer_job *job;

	if (!r)
		return;
	mutex_lock(&r->lock);
	r->stops = true;
	pthread_cond_signal(&r->told);
	mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	while ((job = next_job(r)))
		job->run(job, true);
	pthread_cond_destroy(&r->told);
	pthread_mutex_destroy(&r->lock);
	free(r);
}
