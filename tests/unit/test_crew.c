/* SPDX-License-Identifier: BSD-2-Clause */
/* Jobs that can wait for a disk, and the threads that they get. */
#include "lib/crew.h"

#include <semaphore.h>
#include <stdatomic.h>

#include "lib/clock.h"
#include "lib/stats.h"
#include "lib/thread.h"
#include "lib/util.h"
#include "tests/unit/pause.h"
#include "tests/unit/runner.h"

#define MANY	500

static atomic_uint ran;
static sem_t gate;

struct job {
	struct crew_job job;
	atomic_uint	runs;
	atomic_uint	at_once;
	uint64_t	again;		/* the result of run() */
};

static void count(struct job *j)
{
	ck_assert_uint_eq(atomic_fetch_add(&j->at_once, 1), 0);
	atomic_fetch_add(&j->runs, 1);
	atomic_fetch_add(&ran, 1);
}

static uint64_t run_quickly(struct crew_job *job)
{
	struct job *j = container_of(job, struct job, job);

	count(j);
	atomic_fetch_sub(&j->at_once, 1);
	return j->again;
}

static uint64_t run_twice(struct crew_job *job)
{
	struct job *j = container_of(job, struct job, job);

	count(j);
	atomic_fetch_sub(&j->at_once, 1);
	return atomic_load(&j->runs) == 1 ? j->again : CREW_IDLE;
}

static uint64_t hang(struct crew_job *job)
{
	struct job *j = container_of(job, struct job, job);

	count(j);
	/* For as long as the test has jobs hang: some need minutes. */
	while (sem_wait(&gate) < 0)
		;			/* EINTR */
	atomic_fetch_sub(&j->at_once, 1);
	return j->again;
}

static void prepare(struct job *j, uint64_t (*run)(struct crew_job *))
{
	memset(j, 0, sizeof(*j));
	j->again = CREW_IDLE;
	ck_assert_int_eq(crew_job_init(&j->job, run, "job"), 0);
}

static atomic_bool are_held;
static sem_t begins;

/* A new thread names itself before it does anything else. */
int pthread_setname_np(pthread_t thread, const char *name)
{
	if (strcmp(name, "crew") == 0 && atomic_load(&are_held))
		wait_sem(&begins);
	return 0;
}

static void setup(void)
{
	sem_init(&begins, 0, 0);
	sem_init(&gate, 0, 0);
}

TEST_CASE(.setup = setup);

/* The crew grows after 20 ms without a free thread: more on a slow machine. */
TEST(quick_jobs_take_far_fewer_threads_than_they_are)
{
	static struct job jobs[MANY];

	for (unsigned i = 0; i < MANY; i++)
		prepare(&jobs[i], run_quickly);
	ck_assert_uint_eq(crew_size(), 0);
	for (unsigned i = 0; i < MANY; i++)
		crew_run(&jobs[i].job);
	EVENTUALLY(atomic_load(&ran) == MANY);
	ck_assert_uint_le(crew_size(), MANY / 4);
}

/* As on a machine that is busy. */
TEST(no_thread_is_started_while_earlier_ones_have_not_begun)
{
	static struct job jobs[MANY];

	atomic_store(&are_held, true);
	for (unsigned i = 0; i < MANY; i++) {
		prepare(&jobs[i], run_quickly);
		crew_run(&jobs[i].job);
	}
	EVENTUALLY(crew_size() == 1);
	/* Time for eight steps, but the crew must take none. */
	pause_on_purpose(200000);
	ck_assert_uint_eq(crew_size(), 1);
	atomic_store(&are_held, false);
	sem_post(&begins);
	EVENTUALLY(atomic_load(&ran) == MANY);
}

/* Jobs of one place get a limited number of threads; the rest is for others. */
TEST(however_many_jobs_hang_at_one_place_the_next_one_elsewhere_runs)
{
	static struct job jobs[MANY], others[2];
	uint64_t held = stats_sum_by_name("crew_held");

	for (unsigned i = 0; i < MANY; i++) {
		prepare(&jobs[i], hang);
		jobs[i].job.place = 1;
		crew_run(&jobs[i].job);
	}
	EVENTUALLY(atomic_load(&ran) == crew_most() / 4);
	held += MANY - crew_most() / 4;
	EVENTUALLY(stats_sum_by_name("crew_held") == held);
	for (unsigned i = 0; i < ARRAY_SIZE(others); i++) {
		prepare(&others[i], run_quickly);
		others[i].job.place = i ? 2 : 0;
		crew_run(&others[i].job);
		EVENTUALLY(atomic_load(&others[i].runs) == 1);
	}
	ck_assert_uint_eq(atomic_load(&ran), crew_most() / 4 + 2);
	ck_assert_uint_le(crew_size(), crew_most());
	crew_cancel(&jobs[MANY - 1].job);	/* one that is held */
	for (unsigned i = 0; i < MANY; i++)
		sem_post(&gate);
	EVENTUALLY(atomic_load(&ran) == MANY + 1);
	for (unsigned i = 0; i < MANY; i++)
		crew_cancel(&jobs[i].job);
	ck_assert_uint_eq(atomic_load(&jobs[MANY - 1].runs), 0);
}

TEST(jobs_that_hang_at_many_places_leave_threads_to_the_next_one)
{
	static struct job jobs[MANY], other;
	unsigned n = crew_most() - 1;

	for (unsigned i = 0; i < n; i++) {
		prepare(&jobs[i], hang);
		jobs[i].job.place = 1 + i;
		crew_run(&jobs[i].job);
	}
	EVENTUALLY(atomic_load(&ran) == n);
	prepare(&other, run_quickly);
	other.job.place = 1 + n;
	crew_run(&other.job);
	EVENTUALLY(atomic_load(&other.runs) == 1);
	ck_assert_uint_le(crew_size(), crew_most());
	for (unsigned i = 0; i < n; i++)
		sem_post(&gate);
	for (unsigned i = 0; i < n; i++)
		crew_cancel(&jobs[i].job);
}

/* Also where no thread is left; the last ones begin as the first ones end. */
TEST(more_jobs_than_threads_all_run_in_the_end)
{
	static struct job jobs[MANY];
	unsigned most = crew_most();

	for (unsigned i = 0; i < MANY; i++) {
		prepare(&jobs[i], hang);
		crew_run(&jobs[i].job);
	}
	EVENTUALLY(atomic_load(&ran) == most);
	ck_assert_uint_eq(crew_size(), most);
	for (unsigned i = 0; i < MANY; i++) {
		sem_post(&gate);
		EVENTUALLY(atomic_load(&ran) >=
			   MIN(most + i + 1, (unsigned)MANY));
	}
	for (unsigned i = 0; i < MANY; i++)
		crew_cancel(&jobs[i].job);
}

static struct job made;

static uint64_t make_another(struct crew_job *job)
{
	prepare(&made, run_quickly);
	return run_quickly(job);
}

TEST(a_job_that_another_makes_has_its_place)
{
	struct job maker, later;

	prepare(&maker, make_another);
	maker.job.place = 7;
	crew_run(&maker.job);
	EVENTUALLY(atomic_load(&maker.runs) == 1);
	crew_cancel(&maker.job);
	ck_assert_uint_eq(made.job.place, 7);
	prepare(&later, run_quickly);
	ck_assert_uint_eq(later.job.place, 0);
}

/* That quick jobs end says nothing of hanging ones. */
TEST(quick_jobs_among_hanging_ones_do_not_delay_the_next_one)
{
	static struct job hanging[MANY], quick[MANY], other;
	uint64_t before;

	for (unsigned i = 0; i < MANY; i++) {
		prepare(&hanging[i], hang);
		hanging[i].job.place = 1;
		prepare(&quick[i], run_quickly);
	}
	prepare(&other, run_quickly);
	before = clock_ns();
	for (unsigned i = 0; i < MANY; i++) {
		crew_run(&hanging[i].job);
		crew_run(&quick[i].job);
	}
	crew_run(&other.job);
	EVENTUALLY(atomic_load(&other.runs) == 1);
	/* With a thread each 20 ms it would take longer. */
	ck_assert_uint_lt(clock_ns() - before, MANY * 20 * NS_PER_MS);
	for (unsigned i = 0; i < MANY; i++)
		sem_post(&gate);
	EVENTUALLY(atomic_load(&ran) == 2 * MANY + 1);
	for (unsigned i = 0; i < MANY; i++)
		crew_cancel(&hanging[i].job);
}

TEST(threads_without_jobs_end)
{
	static struct job jobs[20];

	atomic_store(&thread_idle_ms, 20);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < ARRAY_SIZE(jobs); i++) {
			prepare(&jobs[i], hang);
			crew_run(&jobs[i].job);
		}
		EVENTUALLY(crew_size() >= ARRAY_SIZE(jobs));
		for (unsigned i = 0; i < ARRAY_SIZE(jobs); i++)
			sem_post(&gate);
		EVENTUALLY(crew_size() == 0);
	}
}

TEST(a_job_comes_again_when_it_says)
{
	uint64_t begin = clock_ns();
	struct job later;

	prepare(&later, run_twice);
	later.again = begin + 100 * NS_PER_MS;
	crew_run(&later.job);
	EVENTUALLY(atomic_load(&later.runs) == 2);
	ck_assert_uint_ge(clock_ns(), later.again);
	crew_cancel(&later.job);
}

TEST(a_job_that_is_asked_for_comes_before_its_time)
{
	struct job later;

	prepare(&later, run_quickly);
	later.again = clock_ns() + 3600 * NS_PER_S;
	for (unsigned i = 1; i < 4; i++) {
		crew_run(&later.job);
		EVENTUALLY(atomic_load(&later.runs) == i);
	}
	crew_cancel(&later.job);
}

TEST(a_job_that_runs_is_run_once_more_and_never_twice_at_once)
{
	struct job j;

	prepare(&j, hang);
	crew_run(&j.job);
	EVENTUALLY(atomic_load(&j.runs) == 1);
	for (unsigned i = 0; i < 10; i++)
		crew_run(&j.job);
	sem_post(&gate);
	EVENTUALLY(atomic_load(&j.runs) == 2);
	sem_post(&gate);
	crew_cancel(&j.job);
	ck_assert_uint_eq(atomic_load(&j.runs), 2);
}

static struct job cancelled;
static atomic_bool is_over;

static void cancel(void *arg)
{
	crew_cancel(&cancelled.job);
	ck_assert_uint_eq(atomic_load(&cancelled.at_once), 0);
	atomic_store(&is_over, true);
}

TEST(a_job_is_taken_back_after_its_run_and_comes_no_more)
{
	struct job other;
	pthread_t thread;
	unsigned runs;

	prepare(&cancelled, hang);
	cancelled.again = 1;		/* at once */
	crew_run(&cancelled.job);
	EVENTUALLY(atomic_load(&cancelled.runs) == 1);
	ck_assert_int_eq(thread_start(&thread, "cancel", cancel, NULL), 0);
	ck_assert(!atomic_load(&is_over));
	EVENTUALLY((sem_post(&gate), atomic_load(&is_over)));
	pthread_join(thread, NULL);
	runs = atomic_load(&cancelled.runs);
	crew_run(&cancelled.job);
	prepare(&other, run_quickly);
	crew_run(&other.job);
	EVENTUALLY(atomic_load(&other.runs) == 1);
	ck_assert_uint_eq(atomic_load(&cancelled.runs), runs);
}

static uint64_t free_itself(struct crew_job *job)
{
	free(container_of(job, struct job, job));
	atomic_fetch_add(&ran, 1);
	return CREW_GONE;
}

TEST(a_job_can_free_itself)
{
	for (unsigned i = 0; i < MANY; i++) {
		struct job *j = malloc(sizeof(*j));

		prepare(j, free_itself);
		crew_run(&j->job);
	}
	EVENTUALLY(atomic_load(&ran) == MANY);
}

/* No process has room for such a stack. */
TEST(jobs_wait_for_threads_that_the_system_refuses)
{
	pthread_attr_t usual, huge;
	struct job one, two;

	prepare(&one, hang);
	prepare(&two, run_quickly);
	crew_run(&one.job);
	EVENTUALLY(atomic_load(&one.runs) == 1);
	ck_assert_int_eq(pthread_getattr_default_np(&usual), 0);
	pthread_attr_init(&huge);
	pthread_attr_setstacksize(&huge, (size_t)1 << 47);
	ck_assert_int_eq(pthread_setattr_default_np(&huge), 0);
	crew_run(&two.job);
	EVENTUALLY(stats_sum_by_name("crew_no_thread") > 0);
	ck_assert_uint_eq(atomic_load(&two.runs), 0);
	sem_post(&gate);
	EVENTUALLY(atomic_load(&two.runs) == 1);
	pthread_setattr_default_np(&usual);
}
