/* SPDX-License-Identifier: BSD-2-Clause */
/* thread - starting threads. */
#include "lib/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <urcu.h>

atomic_uint thread_idle_ms = 10000;
_Thread_local bool thread_must_not_wait;
_Thread_local bool thread_changes_cred;

struct start {
	void (*fn)(void *);
	void *arg;
	char name[16];
};

static void *run_thread(void *arg)
{
	struct start s = *(struct start *)arg;

	free(arg);
	/* No thread is ever cancelled, so the type has no meaning.  With the
	 * asynchronous one the C library doesn't change the type around each
	 * system call that can wait, which costs two locked instructions. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	pthread_setname_np(pthread_self(), s.name);
	rcu_register_thread();
	s.fn(s.arg);
	rcu_unregister_thread();
	return NULL;
}

int thread_start(pthread_t *thread, const char *name, void (*fn)(void *),
		 void *arg)
{
	struct start *s = malloc(sizeof(*s));
	static const int faults[] = { THREAD_FAULTS };
	sigset_t all, old;
	int err;

	if (!s)
		return -ENOMEM;
	s->fn = fn;
	s->arg = arg;
	snprintf(s->name, sizeof(s->name), "%s", name);

	/* The new thread inherits the mask. */
	sigfillset(&all);
	for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&all, faults[i]);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(thread, NULL, run_thread, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		free(s);
	return -err;
}
