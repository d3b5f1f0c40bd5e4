/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crew - the keeper hands due jobs to idle threads.
 *
 * When all threads are busy, the first job in the list waits for one.  If it
 * has waited for GROW_MS, the keeper starts another thread; if jobs have waited
 * ever since it did so last, twice as many as then, but not before those have
 * begun: on a busy machine threads are slow to begin, and starting more doesn't
 * help.  So a thousand quick jobs take few threads, and a thousand that hang,
 * even with quick ones between them, delay the next one by a fraction of a
 * second.
 *
 * Threads without a job lie on a stack: the last one in gets the next job, and
 * the ones at the bottom end.
 *
 * While a quarter of all possible threads have jobs, a job that is due is held
 * if another one of its place runs.  The end of a run lists it again.
 */
#include "lib/crew.h"

#include <string.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/machine.h"
#include "lib/stats.h"
#include "lib/thread.h"
#include "lib/util.h"

#define GROW_MS		20
#define NO_THREAD_MS	1000
#define MOST		UINT64_C(256)
#define LEAST		UINT64_C(8)

STAT(crew_threads, "threads started for jobs that can wait for a disk");
STAT(crew_no_thread, "threads that could not be started for jobs that can "
     "wait for a disk");
STAT(crew_held, "times that a job had to wait for others of its file system");

/* On its own stack. */
struct hand {
	struct crew_job	*job;		/* given by the keeper */
	uint64_t	 place;		/* its job's, or 0 */
	pthread_cond_t	 given;
	struct hand	*below;
	struct cds_list_head link;
};

static _Thread_local uint64_t own_place;

static struct crew {
	pthread_mutex_t	 lock;
	bool		 has_keeper;
	pthread_cond_t	 changed;	/* the keeper sleeps here */
	pthread_cond_t	 ended;		/* a run has */
	/* Each by due: */
	struct cds_list_head soon;	/* crew_run() was called */
	struct cds_list_head later;
	struct cds_list_head held;
	struct cds_list_head hands;
	struct hand	*idle;
	unsigned	 size;		/* threads, also those to come, */
	unsigned	 starting;	/* threads that have not begun */
	unsigned	 most;		/* of so many */
	unsigned	 busy;		/* with a job */
	uint64_t	 grown;		/* when the last of a step began, */
	unsigned	 step;		/* how many, 0: no job waited since */
} crew = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.ended = PTHREAD_COND_INITIALIZER,
	.soon = { &crew.soon, &crew.soon },
	.later = { &crew.later, &crew.later },
	.held = { &crew.held, &crew.held },
	.hands = { &crew.hands, &crew.hands },
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

static bool may_run(const struct crew_job *job)
{
	const struct hand *h;

	if (!job->place || crew.busy < crew.most / 4)
		return true;
	cds_list_for_each_entry(h, &crew.hands, link)
		if (h->place == job->place)
			return false;
	return true;
}

/* The first due job that is not to be held; or NULL. */
static struct crew_job *first_due(void)
{
	struct crew_job *job;

	while ((job = first_job()) && job->due <= clock_ns()) {
		if (may_run(job))
			return job;
		cds_list_move(&job->link, crew.held.prev);
		stat_inc(crew_held);
	}
	return NULL;
}

/* Gives @h the first one that is due, as running; or NULL. */
static struct crew_job *take_due(struct hand *h)
{
	struct crew_job *job = first_due();

	h->job = job;
	if (!job)
		return NULL;
	unlist_job(job);
	job->running = true;
	h->place = job->place;
	crew.busy++;
	return job;
}

/* The run of @h has ended: lists the held jobs that can run now.  Jobs at other
 * places stay held, as thousands can wait there. */
static void free_hand(struct hand *h)
{
	struct cds_list_head again = { &again, &again };
	struct crew_job *job, *next;
	uint64_t place = h->place;

	h->place = 0;
	crew.busy--;
	cds_list_for_each_entry_safe(job, next, &crew.held, link)
		if (job->place == place || crew.busy < crew.most / 4)
			cds_list_move(&job->link, again.prev);
	if (cds_list_empty(&again))
		return;
	cds_list_splice(&again, &crew.soon);
	pthread_cond_signal(&crew.changed);
}

/* ---- a thread */

/* Called and returns with the lock held. */
static void hand_run(struct hand *h, const char **name)
{
	struct crew_job *job = h->job;
	uint64_t again;

	mutex_unlock(&crew.lock);
	if (*name != job->name)
		pthread_setname_np(pthread_self(), job->name);
	*name = job->name;
	own_place = h->place;
	again = job->run(job);
	mutex_lock(&crew.lock);
	free_hand(h);
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

/* If not, the keeper waits for a thread. */
static bool can_grow(void)
{
	return crew.starting == 0 && crew.size < crew.most;
}

/* Called and returns with the lock held.  NULL: no job came for long. */
static struct crew_job *await_job(struct hand *h)
{
	uint64_t until = clock_ns() + atomic_load(&thread_idle_ms) * NS_PER_MS;

	h->below = crew.idle;
	crew.idle = h;
	if (!can_grow())
		pthread_cond_signal(&crew.changed);
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

	mutex_lock(&crew.lock);
	cds_list_add(&h.link, &crew.hands);
	if (--crew.starting == 0) {
		crew.grown = clock_ns();
		pthread_cond_signal(&crew.changed);
	}
	while (take_due(&h) || await_job(&h))
		hand_run(&h, &name);
	cds_list_del(&h.link);
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
	unsigned n = crew.step ? crew.step * 2 : 1;
	int err = 0;

	n = crew.step = MIN(n, crew.most - crew.size);
	crew.size += n;
	crew.starting += n;
	mutex_unlock(&crew.lock);
	for (; n > 0 && err == 0; n--)
		err = start_thread("crew", hand_work);
	mutex_lock(&crew.lock);
	if (err == 0) {
		stat_add(crew_threads, crew.step);
		return;
	}
	crew.size -= n + 1;
	crew.starting -= n + 1;
	crew.step = 0;
	stat_inc(crew_no_thread);
	log_limited(LOG_LEVEL_WARN, "can't start a thread for exports, so they "
		    "wait for each other: %s", strerror(-err));
	keeper_sleep(clock_ns() + NO_THREAD_MS * NS_PER_MS);
}

/* Locked. */
static void give_job(struct hand *h)
{
	crew.idle = h->below;
	take_due(h);
	pthread_cond_signal(&h->given);
}

static void keep_crew(void *arg)
{
	struct crew_job *job;
	uint64_t now, grows;

	crew.most = crew_most();
	mutex_lock(&crew.lock);
	for (;;) {
		job = first_due();
		now = clock_ns();
		if (!job) {
			job = first_job();
			crew.step = 0;
			keeper_sleep(job ? job->due : CREW_IDLE);
			continue;
		}
		grows = MAX(job->due, crew.grown) + GROW_MS * NS_PER_MS;
		if (crew.idle)
			give_job(crew.idle);
		else if (!can_grow())
			keeper_sleep(CREW_IDLE);
		else if (crew.size > 0 && now < grows)
			keeper_sleep(grows);
		else
			grow();
	}
}

/* ---- a child of fork(): it has none of the threads, so no job runs there, but
 * its lock is free */

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

	*job = (struct crew_job){ .run = run, .name = name, .due = CREW_IDLE,
				  .place = own_place };
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

unsigned crew_most(void)
{
	uint64_t share = MAX(machine_share()->tasks / 8, LEAST);

	return (unsigned)MIN(share, MOST);
}

unsigned crew_size(void)
{
	unsigned n;

	mutex_lock(&crew.lock);
	n = crew.size;
	mutex_unlock(&crew.lock);
	return n;
}
