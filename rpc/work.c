/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The worker threads, and the shares that bound who may use them.
 *
 * Operation: one lock guards short lists.  A class with something to run and
 * workers to spare stands in the ready list once; a worker takes the first
 * item of the first class and puts the class behind the others.  A worker
 * that finds nothing sleeps on its own futex, last in first out, so that
 * the same few stay warm.
 *
 * Waking: at most one worker is on its way at a time.  It wakes the next
 * when it leaves more behind.  So whoever submits a burst pays for one wake,
 * and none at all while workers keep up.
 *
 * Spinning: before a worker sleeps it looks a short while whether something
 * comes, if nobody else does; that, too, is a worker on its way.  How long
 * depends on how often it paid off: an idle server spins for microseconds a
 * call, at most.
 */
#include "rpc/work.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <urcu/arch.h>
#include <urcu/list.h>

#include "lib/thread.h"

#define MAX_SPIN	256u

struct worker {
	struct work_pool *pool;		/* borrowed: outlives its workers */
	pthread_t	  thread;
	struct worker	 *next_idle;
	unsigned	  spin;		/* rounds to look before it sleeps */
	atomic_uint	  awake;	/* futex: 0 while it sleeps */
} __attribute__((aligned(64)));

struct work_class {
	struct work_pool *pool;		/* borrowed: outlives its classes */
	unsigned	  max;
	/* Guarded by pool->lock from here on. */
	struct work_item *head;		/* waiting */
	struct work_item **tail;
	unsigned	  waiting;
	unsigned	  running;
	bool		  listed;	/* in pool->ready */
	struct cds_list_head ready;
	struct cds_list_head all;
	char		  name[24];
};

struct work_pool {
	pthread_mutex_t	  lock;		/* innermost */
	struct cds_list_head ready;	/* classes that may run something */
	struct cds_list_head classes;	/* all of them */
	struct worker	 *idle;
	bool		  waking;	/* one is on its way: woken, or spins */
	bool		  stopping;
	pthread_cond_t	  quiet;	/* some class came to running == 0 */

	/* Is there a class in ready?  Written with the lock held; read
	 * without, by who spins, as a hint. */
	atomic_bool	  hint;

	unsigned	  nworkers;
	unsigned	  max_spin;
	struct worker	 *workers;
	struct work_class *common;
};

static void futex_wait(atomic_uint *word, unsigned value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(struct worker *w)
{
	if (!w)
		return;
	atomic_store_explicit(&w->awake, 1, memory_order_release);
	syscall(SYS_futex, &w->awake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Locked.  Who is to be woken, after unlocking; NULL: nobody needs to. */
static struct worker *pick_idle(struct work_pool *pool)
{
	struct worker *w = pool->idle;

	if (!w || pool->waking || cds_list_empty(&pool->ready))
		return NULL;
	pool->idle = w->next_idle;
	pool->waking = true;
	return w;
}

/* Locked. */
static void list_class(struct work_class *class)
{
	if (class->listed || !class->head || class->running >= class->max)
		return;
	class->listed = true;
	cds_list_add_tail(&class->ready, &class->pool->ready);
	atomic_store_explicit(&class->pool->hint, true, memory_order_relaxed);
}

void work_submit(struct work_class *class, struct work_item *item)
{
	struct work_pool *pool = class->pool;
	struct worker *w;

	item->next = NULL;
	mutex_lock(&pool->lock);
	*class->tail = item;
	class->tail = &item->next;
	class->waiting++;
	list_class(class);
	w = pick_idle(pool);
	mutex_unlock(&pool->lock);
	wake(w);
}

/* Locked.  Takes the first item of the class whose turn it is. */
static struct work_item *take(struct work_pool *pool,
			      struct work_class **from)
{
	struct work_class *class;
	struct work_item *item;

	if (cds_list_empty(&pool->ready))
		return NULL;
	class = cds_list_first_entry(&pool->ready, struct work_class, ready);
	cds_list_del(&class->ready);
	class->listed = false;
	item = class->head;
	class->head = item->next;
	if (!class->head)
		class->tail = &class->head;
	class->waiting--;
	class->running++;
	list_class(class);
	if (cds_list_empty(&pool->ready))
		atomic_store_explicit(&pool->hint, false,
				      memory_order_relaxed);
	*from = class;
	return item;
}

/*
 * Locked, and again when it returns.  Looks whether something comes; true
 * when something did.
 */
static bool spin(struct work_pool *pool, struct worker *w)
{
	unsigned n = w->spin;

	if (!pool->max_spin || pool->waking || pool->stopping)
		return false;
	pool->waking = true;
	mutex_unlock(&pool->lock);
	while (n-- && !atomic_load_explicit(&pool->hint, memory_order_relaxed))
		caa_cpu_relax();
	mutex_lock(&pool->lock);
	pool->waking = false;
	if (cds_list_empty(&pool->ready)) {
		w->spin = MAX(w->spin / 2, pool->max_spin / 16);
		return false;
	}
	w->spin = MIN(w->spin * 2, pool->max_spin);
	return true;
}

/* Locked, and again when it returns. */
static void sleep_idle(struct work_pool *pool, struct worker *w)
{
	atomic_store_explicit(&w->awake, 0, memory_order_relaxed);
	w->next_idle = pool->idle;
	pool->idle = w;
	mutex_unlock(&pool->lock);
	/* Pairs with the release in wake(). */
	while (!atomic_load_explicit(&w->awake, memory_order_acquire))
		futex_wait(&w->awake, 0);
	mutex_lock(&pool->lock);
	pool->waking = false;
}

static void work(void *arg)
{
	struct worker *w = arg, *next;
	struct work_pool *pool = w->pool;
	struct work_class *class;
	struct work_item *item;

	mutex_lock(&pool->lock);
	for (;;) {
		item = take(pool, &class);
		if (item) {
			next = pick_idle(pool);
			mutex_unlock(&pool->lock);
			wake(next);
			item->run(item);
			mutex_lock(&pool->lock);
			if (--class->running == 0)
				pthread_cond_broadcast(&pool->quiet);
			list_class(class);
		} else if (pool->stopping) {
			break;
		} else if (!spin(pool, w)) {
			if (!pool->stopping)
				sleep_idle(pool, w);
		}
	}
	mutex_unlock(&pool->lock);
}

struct work_class *work_class_new(struct work_pool *pool, const char *name,
				  unsigned max_workers)
{
	struct work_class *class = calloc(1, sizeof(*class));

	if (!class)
		return NULL;
	class->pool = pool;
	class->max = MAX(1u, max_workers);
	class->tail = &class->head;
	snprintf(class->name, sizeof(class->name), "%s", name);
	mutex_lock(&pool->lock);
	cds_list_add_tail(&class->all, &pool->classes);
	mutex_unlock(&pool->lock);
	return class;
}

void work_class_destroy(struct work_class *class)
{
	struct work_pool *pool = class->pool;

	/* The last call was answered, but its worker may still be about to
	 * say so here. */
	mutex_lock(&pool->lock);
	assert(!class->head);
	while (class->running)
		pthread_cond_wait(&pool->quiet, &pool->lock);
	cds_list_del(&class->all);
	mutex_unlock(&pool->lock);
	free(class);
}

void work_pool_walk(struct work_pool *pool, work_walk_fn *fn, void *arg)
{
	struct work_class *class;

	mutex_lock(&pool->lock);
	cds_list_for_each_entry(class, &pool->classes, all)
		fn(class->name, MIN(class->max, pool->nworkers),
		   class->running, class->waiting, arg);
	mutex_unlock(&pool->lock);
}

struct work_class *work_pool_common(struct work_pool *pool)
{
	return pool->common;
}

/* Ends the first @n threads. */
static void join(struct work_pool *pool, unsigned n)
{
	struct worker *w, *next;

	mutex_lock(&pool->lock);
	pool->stopping = true;
	w = pool->idle;
	pool->idle = NULL;
	mutex_unlock(&pool->lock);
	for (; w; w = next) {
		next = w->next_idle;	/* w may sleep again, if woken */
		wake(w);
	}
	for (unsigned i = 0; i < n; i++)
		pthread_join(pool->workers[i].thread, NULL);
}

/* It is held for a few instructions: better to spin than to sleep. */
static void init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

int work_pool_create(unsigned nworkers, struct work_pool **out)
{
	struct work_pool *pool;
	char name[24];
	int err = -ENOMEM;

	pool = calloc(1, sizeof(*pool));
	if (!pool)
		goto fail;
	init_lock(&pool->lock);
	pthread_cond_init(&pool->quiet, NULL);
	CDS_INIT_LIST_HEAD(&pool->ready);
	CDS_INIT_LIST_HEAD(&pool->classes);
	pool->nworkers = MAX(1u, nworkers);
	pool->max_spin = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? MAX_SPIN : 0;
	pool->common = work_class_new(pool, "common", UINT_MAX);
	if (!pool->common)
		goto fail_pool;
	pool->workers = aligned_alloc(64, pool->nworkers *
				      sizeof(*pool->workers));
	if (!pool->workers)
		goto fail_common;
	for (unsigned i = 0; i < pool->nworkers; i++) {
		struct worker *w = &pool->workers[i];

		memset(w, 0, sizeof(*w));
		w->pool = pool;
		w->spin = pool->max_spin;
		snprintf(name, sizeof(name), "worker/%u", i);
		err = thread_start(&w->thread, name, work, w);
		if (err < 0) {
			join(pool, i);
			goto fail_workers;
		}
	}
	*out = pool;
	return 0;

fail_workers:
	free(pool->workers);
fail_common:
	free(pool->common);
fail_pool:
	pthread_cond_destroy(&pool->quiet);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
fail:
	return err;
}

void work_pool_destroy(struct work_pool *pool)
{
	join(pool, pool->nworkers);
	assert(cds_list_empty(&pool->ready));
	free(pool->workers);
	free(pool->common);
	pthread_cond_destroy(&pool->quiet);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}
