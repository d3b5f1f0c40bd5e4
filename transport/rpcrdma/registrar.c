/* SPDX-License-Identifier: BSD-2-Clause */
/* registrar - a thread that registers memory for pollers. */
#include "transport/rpcrdma/registrar.h"

/* Waits for the next job.  NULL: it is over. */
static struct rpcrdma_job *take_request(struct rpcrdma_registrar *r)
{
	struct rpcrdma_job *job;

	mutex_lock(&r->lock);
	while (!r->first && !r->ends)
		pthread_cond_wait(&r->work, &r->lock);
	job = r->first;
	if (job)
		r->first = job->next;
	if (!r->first)
		r->last = &r->first;
	mutex_unlock(&r->lock);
	return job;
}

static void registrar_run(void *arg)
{
	struct rpcrdma_registrar *r = arg;
	struct rpcrdma_job *job;

	while ((job = take_request(r)))
		job->run(job);
}

int rpcrdma_registrar_start(struct rpcrdma_registrar *r)
{
	int err;

	*r = (struct rpcrdma_registrar){ .last = &r->first };
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->work, NULL);
	err = thread_start(&r->thread, "rdma memory", registrar_run, r);
	if (err) {
		pthread_cond_destroy(&r->work);
		pthread_mutex_destroy(&r->lock);
	}
	return err;
}

void rpcrdma_registrar_stop(struct rpcrdma_registrar *r)
{
	mutex_lock(&r->lock);
	r->ends = true;
	pthread_cond_signal(&r->work);
	mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	pthread_cond_destroy(&r->work);
	pthread_mutex_destroy(&r->lock);
}

void rpcrdma_registrar_do(struct rpcrdma_registrar *r, struct rpcrdma_job *job)
{
	job->next = NULL;
	mutex_lock(&r->lock);
	*r->last = job;
	r->last = &job->next;
	pthread_cond_signal(&r->work);
	mutex_unlock(&r->lock);
}
