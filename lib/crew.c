/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crew - the keeper gives jobs that are due to threads that have none.
 *
 * When all threads are busy, the first job in the list waits for one.  If it
 * has waited for GROW_MS, the keeper starts another thread; if jobs have waited
 * ever since it did so last, twice as many as then.  So a thousand jobs that
 * are quick take few threads, and a thousand that hang, also with quick ones
 * between them, delay the next one by a fraction of a second.
 *
 * Threads without a job lie on a stack: the last one in gets the next job, and
 * the ones at the bottom end.
 */
#include "lib/crew.h"

#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/stats.h"
#include "lib/thread.h"
#include "lib/util.h"

#define GROW_MS		20
#define NO_THREAD_MS	1000

STAT(crew_threads, "threads started for jobs that can wait for a disk");
STAT(crew_no_thread, "such threads that could not be started");

/* On its own stack. */
struct hand {
	struct crew_job	*job;		/* given by the keeper */
	pthread_cond_t	 given;
	struct hand	*below;
};

static struct crew {
	pthread_mutex_t	 lock;
	bool		 has_keeper;
	pthread_cond_t	 changed;	/* the keeper sleeps here */
	pthread_cond_t	 ended;		/* a run has */
	/* Each by due: */
	struct cds_list_head soon;	/* crew_run() was called */
	struct cds_list_head later;
	struct hand	*idle;
	unsigned	 size;		/* threads, also those to come */
	uint64_t	 grown;		/* when threads were started last, */
	unsigned	 step;		/* how many, 0: no job waited since */
} crew = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.ended = PTHREAD_COND_INITIALIZER,
	.soon = { &crew.soon, &crew.soon },
	.later = { &crew.later, &crew.later },
};

/* ---- the list; all locked */

static struct crew_job *first_listed(struct cds_list_head *list)
{
	if (cds_list_empty(list))
		return NULL;
	return cds_list_first_entry(list, struct crew_job, link);
}

static struct crew_job *first_job(void)
{
	struct crew_job *soon = first_listed(&crew.soon);
	struct crew_job *later = first_listed(&crew.later);

	return !soon || (later && later->due < soon->due) ? later : soon;
}

/* Behind earlier ones: as a rule that is the end. */
static void list_job(struct cds_list_head *list, struct crew_job *job,
		     uint64_t due)
{
	struct cds_list_head *at = list->prev;

	while (at != list &&
	       cds_list_entry(at, struct crew_job, link)->due > due)
		at = at->prev;
	job->due = due;
	cds_list_add(&job->link, at);
	if (first_job() == job)
		pthread_cond_signal(&crew.changed);
}

static void unlist_job(struct crew_job *job)
{
	cds_list_del(&job->link);
	job->due = CREW_IDLE;
}

/* The first one that is due, as running; or NULL. */
static struct crew_job *take_due(void)
{
	struct crew_job *job = first_job();

	if (!job || job->due > clock_ns())
		return NULL;
	unlist_job(job);
	job->running = true;
	return job;
}

/* ---- a thread */

/* Called and returns with the lock held. */
static void hand_run(struct crew_job *job, const char **name)
{
	uint64_t again;

	mutex_unlock(&crew.lock);
	if (*name != job->name)
		pthread_setname_np(pthread_self(), job->name);
	*name = job->name;
	again = job->run(job);
	mutex_lock(&crew.lock);
	if (again == CREW_GONE)
		return;
	job->running = false;
	/* While it ran, crew_run() noted only when. */
	again = MIN(again, job->due);
	if (again != CREW_IDLE && !job->cancelled)
		list_job(&crew.later, job, again);
	pthread_cond_broadcast(&crew.ended);
}

static void unstack(struct hand *h)
{
	struct hand **at = &crew.idle;

	while (*at != h)
		at = &(*at)->below;
	*at = h->below;
}

/* Called and returns with the lock held.  NULL: no job came for long. */
static struct crew_job *await_job(struct hand *h)
{
	uint64_t until = clock_ns() + atomic_load(&thread_idle_ms) * NS_PER_MS;

	h->job = NULL;
	h->below = crew.idle;
	crew.idle = h;
	while (!h->job && cond_wait_until(&h->given, &crew.lock, until))
		;
	if (!h->job)
		unstack(h);
	return h->job;
}

static void hand_work(void *arg)
{
	struct hand h = { .given = PTHREAD_COND_INITIALIZER };
	const char *name = NULL;
	struct crew_job *job;

	mutex_lock(&crew.lock);
	while ((job = take_due()) || (job = await_job(&h)))
		hand_run(job, &name);
	crew.size--;
	mutex_unlock(&crew.lock);
	pthread_cond_destroy(&h.given);
}

/* ---- the keeper */

static int start_thread(const char *name, void (*fn)(void *))
{
	pthread_t thread;
	int err = thread_start(&thread, name, fn, NULL);

	if (err == 0)
		pthread_detach(thread);
	return err;
}

/* Called and returns with the lock held. */
static void keeper_sleep(uint64_t until)
{
	if (until == CREW_IDLE)
		pthread_cond_wait(&crew.changed, &crew.lock);
	else
		cond_wait_until(&crew.changed, &crew.lock, until);
}

/* Called and returns with the lock held. */
static void grow(void)
{
	unsigned n = crew.step = crew.step ? crew.step * 2 : 1;
	int err = 0;

	crew.grown = clock_ns();
	crew.size += n;
	mutex_unlock(&crew.lock);
	for (; n > 0 && err == 0; n--)
		err = start_thread("crew", hand_work);
	mutex_lock(&crew.lock);
	if (err == 0) {
		stat_add(crew_threads, crew.step);
		return;
	}
	crew.size -= n + 1;
	crew.step = 0;
	stat_inc(crew_no_thread);
	log_limited(LOG_LEVEL_WARN, "can't start a thread for exports, so they "
		    "wait for each other: %s", strerror(-err));
	keeper_sleep(clock_ns() + NO_THREAD_MS * NS_PER_MS);
}

/* Locked. */
static void give_job(struct hand *h)
{
	h->job = take_due();
	crew.idle = h->below;
	pthread_cond_signal(&h->given);
}

static void keep_crew(void *arg)
{
	struct crew_job *job;
	uint64_t now, grows;

	mutex_lock(&crew.lock);
	for (;;) {
		now = clock_ns();
		job = first_job();
		if (!job || job->due > now) {
			crew.step = 0;
			keeper_sleep(job ? job->due : CREW_IDLE);
			continue;
		}
		grows = MAX(job->due, crew.grown) + GROW_MS * NS_PER_MS;
		if (crew.idle)
			give_job(crew.idle);
		else if (crew.size > 0 && now < grows)
			keeper_sleep(grows);
		else
			grow();
	}
}

/* ---- a child of fork(): it has none of the threads, so no job runs there, but
 * nobody keeps the lock either */

static void lock_crew(void)
{
	mutex_lock(&crew.lock);
}

static void unlock_crew(void)
{
	mutex_unlock(&crew.lock);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(lock_crew, unlock_crew, unlock_crew);
}

/* ---- for owners of jobs */

int crew_job_init(struct crew_job *job, uint64_t (*run)(struct crew_job *),
		  const char *name)
{
	int err = 0;

	*job = (struct crew_job){ .run = run, .name = name, .due = CREW_IDLE };
	mutex_lock(&crew.lock);
	if (!crew.has_keeper)
		err = start_thread("crew keeper", keep_crew);
	crew.has_keeper = err == 0;
	mutex_unlock(&crew.lock);
	return err;
}

void crew_run(struct crew_job *job)
{
	uint64_t now = clock_ns();

	mutex_lock(&crew.lock);
	if (job->running) {
		job->due = MIN(job->due, now);
	} else if (job->due > now && !job->cancelled) {
		if (job->due != CREW_IDLE)
			unlist_job(job);
		list_job(&crew.soon, job, now);
	}
	mutex_unlock(&crew.lock);
}

void crew_cancel(struct crew_job *job)
{
	mutex_lock(&crew.lock);
	job->cancelled = true;
	if (!job->running && job->due != CREW_IDLE)
		unlist_job(job);
	while (job->running)
		pthread_cond_wait(&crew.ended, &crew.lock);
	mutex_unlock(&crew.lock);
}

unsigned crew_size(void)
{
	unsigned n;

	mutex_lock(&crew.lock);
	n = crew.size;
	mutex_unlock(&crew.lock);
	return n;
}
