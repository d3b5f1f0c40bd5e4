/* SPDX-License-Identifier: BSD-2-Clause */
/* reload - a thread that reads the exports again when it is asked to. */
#include "daemon/reload.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/log.h"
#include "lib/thread.h"

struct reloader {
	void		(*fn)(void *arg);
	void		 *arg;
	pthread_t	  thread;
	pthread_mutex_t	  lock;		/* guards the rest */
	pthread_cond_t	  told;
	bool		  asked, busy, stops;
};

static void run_reloads(void *arg)
{
	struct reloader *r = arg;

	mutex_lock(&r->lock);
	while (!r->stops) {
		if (!r->asked) {
			pthread_cond_wait(&r->told, &r->lock);
			continue;
		}
		r->asked = false;
		r->busy = true;
		mutex_unlock(&r->lock);
		r->fn(r->arg);
		mutex_lock(&r->lock);
		r->busy = false;
	}
	mutex_unlock(&r->lock);
}

int reloader_start(void (*fn)(void *arg), void *arg, struct reloader **out)
{
	struct reloader *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->fn = fn;
	r->arg = arg;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->told, NULL);
	err = thread_start(&r->thread, "reload", run_reloads, r);
	if (err < 0)
		free(r);
	else
		*out = r;
	return err;
}

void reloader_ask(struct reloader *r)
{
	bool busy;

	mutex_lock(&r->lock);
	busy = r->busy;
	r->asked = true;
	pthread_cond_signal(&r->told);
	mutex_unlock(&r->lock);
	if (busy)
		log_warn("still reading the exports, because a file system "
			 "does not answer; reading them again after that");
}

void reloader_stop(struct reloader *r)
{
	if (!r)
		return;
	mutex_lock(&r->lock);
	r->stops = true;
	pthread_cond_signal(&r->told);
	mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	pthread_cond_destroy(&r->told);
	pthread_mutex_destroy(&r->lock);
	free(r);
}
