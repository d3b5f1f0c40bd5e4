/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers and the shares that bound who may use them. */
#include "rpc/work.h"

#include <stdlib.h>

#include "tests/unit/runner.h"

#define NWORKERS	4u

static struct work_pool *pool;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool shut;			/* items that wait stand at the gate */
static unsigned standing, most, done;
static unsigned order[10000];		/* ids, as they ran */

struct job {
	struct work_item item;
	struct work_class *class;
	unsigned	id;
	bool		waits;
	unsigned	again;		/* times it submits itself */
};

static void run(struct work_item *item)
{
	struct job *j = container_of(item, struct job, item);

	if (j->again) {
		j->again--;
		work_submit(j->class, item);
		return;
	}
	mutex_lock(&lock);
	if (j->waits) {
		standing++;
		most = MAX(most, standing);
		pthread_cond_broadcast(&cond);
		while (shut)
			pthread_cond_wait(&cond, &lock);
		standing--;
	}
	order[done++] = j->id;
	pthread_cond_broadcast(&cond);
	mutex_unlock(&lock);
}

static void submit(struct work_class *class, struct job *j, unsigned id,
		   bool waits)
{
	memset(j, 0, sizeof(*j));
	j->item.run = run;
	j->class = class;
	j->id = id;
	j->waits = waits;
	work_submit(class, &j->item);
}

static void gate(bool is_shut)
{
	mutex_lock(&lock);
	shut = is_shut;
	pthread_cond_broadcast(&cond);
	mutex_unlock(&lock);
}

static void wait_standing(unsigned n)
{
	mutex_lock(&lock);
	while (standing < n)
		pthread_cond_wait(&cond, &lock);
	mutex_unlock(&lock);
}

static void wait_done(unsigned n)
{
	mutex_lock(&lock);
	while (done < n)
		pthread_cond_wait(&cond, &lock);
	mutex_unlock(&lock);
}

static void start(void)
{
	ck_assert_int_eq(work_pool_create(NWORKERS, &pool), 0);
}

static void stop(void)
{
	work_pool_destroy(pool);
}

START_TEST(a_class_of_one_worker_runs_in_order)
{
	struct work_class *class = work_class_new(pool, "one", 1);
	struct job *jobs = calloc(5000, sizeof(*jobs));

	for (unsigned i = 0; i < 5000; i++)
		submit(class, &jobs[i], i, false);
	wait_done(5000);
	for (unsigned i = 0; i < 5000; i++)
		ck_assert_uint_eq(order[i], i);
	work_class_destroy(class);
	free(jobs);
}
END_TEST

static unsigned seen_max, seen_running, seen_waiting;

static void note(const char *name, unsigned max, unsigned running,
		 unsigned waiting, void *arg)
{
	if (strcmp(name, arg) == 0) {
		seen_max = max;
		seen_running = running;
		seen_waiting = waiting;
	}
}

START_TEST(a_class_never_has_more_workers_than_its_share)
{
	struct work_class *class = work_class_new(pool, "two", 2);
	struct job jobs[20], other;

	gate(true);
	for (unsigned i = 0; i < 20; i++)
		submit(class, &jobs[i], i, true);
	wait_standing(2);
	/* Others go on meanwhile. */
	submit(work_pool_common(pool), &other, 100, false);
	wait_done(1);
	ck_assert_uint_eq(order[0], 100);
	work_pool_walk(pool, note, "common");
	ck_assert_uint_eq(seen_max, NWORKERS);
	work_pool_walk(pool, note, "two");
	ck_assert_uint_eq(seen_max, 2);
	ck_assert_uint_eq(seen_running, 2);
	ck_assert_uint_eq(seen_waiting, 18);
	gate(false);
	wait_done(21);
	ck_assert_uint_le(most, 2);
	work_class_destroy(class);
}
END_TEST

/* Also when all is submitted while the first worker is on its way. */
START_TEST(the_common_class_has_all_workers)
{
	struct job jobs[NWORKERS];

	for (unsigned round = 1; round <= 500; round++) {
		gate(true);
		for (unsigned i = 0; i < NWORKERS; i++)
			submit(work_pool_common(pool), &jobs[i], i, true);
		wait_standing(NWORKERS);
		gate(false);
		wait_done(NWORKERS * round);
	}
}
END_TEST

/* With one worker: a long queue of one class delays another by one item. */
START_TEST(classes_take_turns)
{
	struct work_class *a, *b;
	struct job *jobs = calloc(201, sizeof(*jobs));

	stop();
	ck_assert_int_eq(work_pool_create(1, &pool), 0);
	a = work_class_new(pool, "a", 1);
	b = work_class_new(pool, "b", 1);
	gate(true);
	submit(work_pool_common(pool), &jobs[200], 1000, true);
	wait_standing(1);
	for (unsigned i = 0; i < 100; i++)
		submit(a, &jobs[i], i, false);
	for (unsigned i = 100; i < 200; i++)
		submit(b, &jobs[i], i, false);
	gate(false);
	wait_done(201);
	for (unsigned i = 1; i < 201; i++)
		ck_assert_uint_eq(order[i], (i - 1) / 2 + (i % 2 ? 0 : 100));
	work_class_destroy(a);
	work_class_destroy(b);
	free(jobs);
}
END_TEST

START_TEST(what_was_submitted_is_run_before_the_end)
{
	struct job *jobs = calloc(1000, sizeof(*jobs));
	struct work_class *one = work_class_new(pool, "one", 1);

	for (unsigned i = 0; i < 1000; i++)
		submit(i % 2 ? one : work_pool_common(pool), &jobs[i], i,
		       false);
	work_pool_destroy(pool);
	ck_assert_uint_eq(done, 1000);
	free(jobs);
	free(one);		/* its pool is gone already */
	start();
}
END_TEST

START_TEST(an_item_may_submit_itself_again)
{
	struct job j = { .item.run = run, .again = 1000 };

	j.class = work_pool_common(pool);
	work_submit(j.class, &j.item);
	wait_done(1);
	ck_assert_uint_eq(j.again, 0);
}
END_TEST

/* A class may go as soon as its items ran, though the worker that ran the
 * last one has not said so yet. */
START_TEST(a_class_may_be_destroyed_at_once)
{
	for (unsigned i = 0; i < 2000; i++) {
		struct work_class *class = work_class_new(pool, "x", 1);
		struct job j;

		submit(class, &j, i, false);
		wait_done(i + 1);
		work_class_destroy(class);
	}
}
END_TEST

#define SUBMITTERS	3
#define EACH		2000

static struct work_class *classes[3];
static struct job jobs_of[SUBMITTERS][EACH];

static void submit_many(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < EACH; i++)
		submit(classes[i % 3], &jobs_of[me][i], me * EACH + i, false);
}

START_TEST(many_threads_submit_and_each_item_runs_once)
{
	static bool seen[SUBMITTERS * EACH];
	pthread_t threads[SUBMITTERS];

	for (unsigned i = 0; i < 3; i++)
		classes[i] = work_class_new(pool, "c", i + 1);
	for (uintptr_t i = 0; i < SUBMITTERS; i++)
		ck_assert_int_eq(thread_start(&threads[i], "submit",
					      submit_many, (void *)i), 0);
	for (unsigned i = 0; i < SUBMITTERS; i++)
		pthread_join(threads[i], NULL);
	wait_done(SUBMITTERS * EACH);
	for (unsigned i = 0; i < SUBMITTERS * EACH; i++) {
		ck_assert(!seen[order[i]]);
		seen[order[i]] = true;
	}
	for (unsigned i = 0; i < 3; i++)
		work_class_destroy(classes[i]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("work");
	TCase *t = tcase_create("work");

	tcase_add_checked_fixture(t, start, stop);
	tcase_add_test(t, a_class_of_one_worker_runs_in_order);
	tcase_add_test(t, a_class_never_has_more_workers_than_its_share);
	tcase_add_test(t, the_common_class_has_all_workers);
	tcase_add_test(t, classes_take_turns);
	tcase_add_test(t, what_was_submitted_is_run_before_the_end);
	tcase_add_test(t, an_item_may_submit_itself_again);
	tcase_add_test(t, a_class_may_be_destroyed_at_once);
	tcase_add_test(t, many_threads_submit_and_each_item_runs_once);
	suite_add_tcase(s, t);
	return run_suite(s);
}
