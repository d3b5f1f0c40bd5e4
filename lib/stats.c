/* SPDX-License-Identifier: BSD-2-Clause */
/* stats - counters that cost an add in the thread's own memory. */
#include "lib/stats.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <urcu/list.h>

#include "lib/thread.h"

#define CACHE_LINE	64

/* The layers' counters all lie in this section; this one makes it exist. */
STAT(stats_threads, "threads that have counted an event");

struct row {
	struct cds_list_head link;
	struct stat_slot slots[] __attribute__((aligned(CACHE_LINE)));
};

_Thread_local uintptr_t stats_to_row;

/* Guards the list of rows, and their additions to ended. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Aligned as if it were in a row, where walking the list takes it to be. */
static struct cds_list_head rows __attribute__((aligned(CACHE_LINE))) =
	CDS_LIST_HEAD_INIT(rows);
/* Sums of the threads that are gone, and of threads without memory for a
 * row. */
static struct row *ended;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static size_t count_counters(void)
{
	return (size_t)(__stop_gannet_stats - __start_gannet_stats);
}

static struct row *make_row(void)
{
	size_t size = sizeof(struct row) +
		      count_counters() * sizeof(struct stat_slot);
	struct row *r;

	size = ALIGN_UP(size, (size_t)CACHE_LINE);
	r = aligned_alloc(CACHE_LINE, size);
	if (r)
		memset(r, 0, size);
	return r;
}

/* A thread ends: its counts stay. */
static void retire(void *arg)
{
	struct row *r = arg;

	mutex_lock(&lock);
	for (size_t i = 0; i < count_counters(); i++)
		ended->slots[i].n += r->slots[i].n;
	cds_list_del(&r->link);
	mutex_unlock(&lock);
	stats_to_row = 0;
	free(r);
}

/* With the first count of all, when the process starts. */
static void make_ended_row(void)
{
	ended = make_row();
	if (!ended || pthread_key_create(&key, retire))
		abort();
}

/* Makes this thread's row, if memory allows, and counts. */
void stats_add_first(const struct stat_counter *c, uint64_t n)
{
	struct row *r;

	pthread_once(&once, make_ended_row);
	r = make_row();
	mutex_lock(&lock);
	if (r)
		cds_list_add(&r->link, &rows);
	else
		ended->slots[c - __start_gannet_stats].n += n;
	mutex_unlock(&lock);
	if (!r)
		return;
	pthread_setspecific(key, r);
	stats_to_row = (uintptr_t)r->slots - (uintptr_t)__start_gannet_stats;
	stat_inc(stats_threads);
	stats_add(c, n);
}

uint64_t stats_sum(const struct stat_counter *c)
{
	size_t i = (size_t)(c - __start_gannet_stats);
	struct row *r;
	uint64_t sum;

	pthread_once(&once, make_ended_row);
	mutex_lock(&lock);
	sum = ended->slots[i].n;
	cds_list_for_each_entry(r, &rows, link)
		sum += r->slots[i].n;
	mutex_unlock(&lock);
	return sum;
}

uint64_t stats_sum_by_name(const char *name)
{
	const struct stat_counter *c;

	for (c = __start_gannet_stats; c < __stop_gannet_stats; c++)
		if (!strcmp(c->name, name))
			return stats_sum(c);
	return 0;
}

void stats_walk(void (*fn)(const struct stat_counter *c, uint64_t sum,
			   void *arg), void *arg)
{
	const struct stat_counter *c;

	for (c = __start_gannet_stats; c < __stop_gannet_stats; c++)
		fn(c, stats_sum(c), arg);
}
