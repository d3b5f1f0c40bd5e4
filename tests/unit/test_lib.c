/* SPDX-License-Identifier: BSD-2-Clause */
/* The event loop, counters, hashes and times. */
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fds.h"
#include "lib/hash.h"
#include "lib/loop.h"
#include "lib/rcu.h"
#include "lib/stats.h"
#include "lib/thread.h"
#include "lib/util.h"
#include "tests/unit/collision.h"
#include "tests/unit/runner.h"

STAT(test_events, "counted by this test");

static struct loop *loop;

static void setup(void)
{
	ck_assert_int_eq(loop_create("test", &loop), 0);
	ck_assert_int_eq(loop_start(loop), 0);
}

static void teardown(void)
{
	loop_destroy(loop);
}

#define POSTERS	4
#define POSTS	5000

struct counted_task {
	struct loop_task task;
	atomic_int *count;
	atomic_int *wrong_thread;
};

static void count_task(struct loop_task *t)
{
	struct counted_task *c = container_of(t, struct counted_task, task);
	atomic_int *count = c->count;

	if (loop != loop_current)
		(*c->wrong_thread)++;
	free(c);
	(*count)++;
}

static void post_many(void *arg)
{
	for (int i = 0; i < POSTS; i++) {
		struct counted_task *c = malloc(sizeof(*c));

		*c = *(struct counted_task *)arg;
		loop_post(loop, &c->task, count_task);
	}
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(tasks_of_many_threads_all_run_on_the_loops_thread)
{
	atomic_int count = 0, wrong = 0;
	struct counted_task model = { .count = &count, .wrong_thread = &wrong };
	pthread_t t[POSTERS];

	for (int i = 0; i < POSTERS; i++)
		ck_assert_int_eq(thread_start(&t[i], "post", post_many,
					      &model), 0);
	for (int i = 0; i < POSTERS; i++)
		pthread_join(t[i], NULL);
	loop_stop(loop);
	ck_assert_int_eq(count, POSTERS * POSTS);
	ck_assert_int_eq(wrong, 0);
}

struct two_fds {
	struct loop_fd a, b;
	int ran;
	sem_t done;
};
static struct two_fds two;

static void drop_other(struct loop_fd *f, uint32_t events)
{
	two.ran++;
	loop_fd_del(loop, &two.a);
	loop_fd_del(loop, &two.b);
	sem_post(&two.done);
}

static void add_both(void *arg)
{
	loop_fd_add(loop, &two.a);
	loop_fd_add(loop, &two.b);
}

TEST(no_call_back_comes_after_a_descriptor_is_removed)
{
	int fd = eventfd(1, 0);

	two.a = (struct loop_fd){ drop_other, fd, EPOLLIN };
	two.b = (struct loop_fd){ drop_other, dup(fd), EPOLLIN };
	sem_init(&two.done, 0, 0);
	loop_call(loop, add_both, NULL);
	sem_wait(&two.done);
	loop_stop(loop);
	ck_assert_int_eq(two.ran, 1);
	close(two.a.fd);
	close(two.b.fd);
}

struct timing {
	struct loop_timer timer;
	uint64_t set_at, fired_at;
	unsigned turn;
	sem_t done;
};

static unsigned turns;

static void fired(struct loop_timer *t)
{
	struct timing *m = container_of(t, struct timing, timer);

	m->fired_at = loop_now(loop);
	m->turn = ++turns;
	sem_post(&m->done);
}

static struct timing early, late, cancelled;

static void set_timers(void *arg)
{
	early.set_at = late.set_at = loop_now(loop);
	loop_timer_set(loop, &late.timer, 120);
	loop_timer_set(loop, &cancelled.timer, 30);
	loop_timer_set(loop, &early.timer, 40);
	loop_timer_cancel(loop, &cancelled.timer);
}

TEST(timers_fire_once_in_order_and_not_early)
{
	early.timer.fire = late.timer.fire = cancelled.timer.fire = fired;
	sem_init(&early.done, 0, 0);
	sem_init(&late.done, 0, 0);
	loop_call(loop, set_timers, NULL);
	sem_wait(&early.done);
	sem_wait(&late.done);
	loop_stop(loop);
	ck_assert_uint_ge(early.fired_at, early.set_at + 40 * 1000000);
	ck_assert_uint_ge(late.fired_at, late.set_at + 120 * 1000000);
	/* On a busy machine both can be due at one time. */
	ck_assert_uint_lt(early.turn, late.turn);
	ck_assert_uint_eq(cancelled.fired_at, 0);
}

static atomic_int source_work;
static atomic_int source_done;

static unsigned poll_source(struct loop_source *s)
{
	int n = atomic_exchange(&source_work, 0);

	source_done += n;
	return (unsigned)n;
}

static bool arm_source(struct loop_source *s)
{
	return source_work > 0;
}

static void add_source(void *arg)
{
	loop_source_add(loop, arg);
}

static void del_source(void *arg)
{
	loop_source_del(loop, arg);
}

static void nothing(void *arg)
{
}

TEST(sources_are_asked_whenever_the_loop_is_awake)
{
	struct loop_source s = { .poll = poll_source, .arm = arm_source };

	loop_call(loop, add_source, &s);
	for (int i = 1; i <= 100; i++) {
		source_work = 1;
		/* Does the work of the source's descriptor. */
		loop_call(loop, nothing, NULL);
		loop_call(loop, nothing, NULL);
		ck_assert_int_eq(source_done, i);
	}
	loop_call(loop, del_source, &s);
}

struct echo {
	struct loop_fd	 f;
	struct loop_task task;
	atomic_int	 heard, ran;
};

static void echo_ready(struct loop_fd *f, uint32_t events)
{
	struct echo *e = container_of(f, struct echo, f);
	uint64_t n;

	ck_assert_int_eq(read(f->fd, &n, sizeof(n)), sizeof(n));
	loop_spin_next();
	e->heard += (int)n;
}

static void echo_run(struct loop_task *t)
{
	struct echo *e = container_of(t, struct echo, task);

	loop_spin_next();
	e->ran++;
}

static void echo_add(void *arg)
{
	struct echo *e = arg;

	ck_assert_int_eq(loop_fd_add(loop, &e->f), 0);
}

static bool is_ready(const struct loop *l, int ms)
{
	struct pollfd pfd = { loop_fd(l), POLLIN, 0 };

	return poll(&pfd, 1, ms) == 1;
}

static void set_timer(void *arg)
{
	loop_timer_set(loop, arg, 30);
}

TEST(a_driven_loop_tells_when_there_is_a_round_to_do)
{
	struct loop_source s = { .poll = poll_source, .arm = arm_source };
	struct echo e = { .f = { echo_ready, eventfd(0, EFD_CLOEXEC),
				 EPOLLIN } };
	uint64_t one = 1;

	loop_stop(loop);
	ck_assert_int_eq(loop_drive(loop), 0);
	loop_enter(loop, echo_add, &e);
	ck_assert(!is_ready(loop, 0));
	ck_assert_int_eq(write(e.f.fd, &one, sizeof(one)), sizeof(one));
	ck_assert(is_ready(loop, 0));
	loop_round(loop);
	ck_assert_int_eq(e.heard, 1);
	ck_assert(!is_ready(loop, 0));

	loop_post(loop, &e.task, echo_run);
	ck_assert(is_ready(loop, 0));
	loop_round(loop);
	ck_assert_int_eq(e.ran, 1);

	/* A source that has work when it is to be armed. */
	source_work = 1;
	loop_enter(loop, add_source, &s);
	ck_assert(is_ready(loop, 0));
	loop_round(loop);
	ck_assert_int_eq(source_done, 1);
	loop_round(loop);
	ck_assert(!is_ready(loop, 0));
	loop_enter(loop, del_source, &s);

	early.timer.fire = fired;
	sem_init(&early.done, 0, 0);
	loop_enter(loop, set_timer, &early.timer);
	while (sem_trywait(&early.done) != 0) {
		ck_assert(is_ready(loop, 60000));
		loop_round(loop);
	}
	loop_round(loop);
	ck_assert(!is_ready(loop, 0));
	close(e.f.fd);
}

/* Some of it comes while the loop looks, some as it lies down, some later. */
TEST(nothing_that_comes_while_a_loop_spins_is_missed)
{
	struct echo e = { .f = { echo_ready, eventfd(0, EFD_CLOEXEC),
				 EPOLLIN } };
	uint64_t one = 1;

	loop_call(loop, echo_add, &e);
	for (int i = 1; i <= 2000; i++) {
		ck_assert_int_eq(write(e.f.fd, &one, sizeof(one)), sizeof(one));
		while (e.heard < i)
			sched_yield();
		loop_post(loop, &e.task, echo_run);
		while (e.ran < i)
			sched_yield();
		/* The loop is about to sleep, or does: by chance. */
		pause_on_purpose((unsigned)i % 100);
	}
	loop_stop(loop);
	close(e.f.fd);
}

static void count_thousand(void *arg)
{
	for (int i = 0; i < 1000; i++)
		stat_inc(test_events);
}

TEST_CASE(.setup = NULL);

TEST(counts_of_ended_threads_stay)
{
	uint64_t before = stats_sum(&stat_test_events);
	pthread_t t[3];

	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(thread_start(&t[i], "count", count_thousand,
					      NULL), 0);
	count_thousand(NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	ck_assert_uint_eq(stats_sum(&stat_test_events), before + 4000);
	ck_assert_uint_eq(stats_sum_by_name("test_events"), before + 4000);
	ck_assert_uint_eq(stats_sum_by_name("no_such_counter"), 0);
}

static void note_cancelling(void *arg)
{
	int *noted = arg;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &noted[0]);
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &noted[1]);
}

TEST(a_thread_cannot_be_cancelled_so_its_system_calls_note_nothing)
{
	int noted[2];
	pthread_t t;

	ck_assert_int_eq(thread_start(&t, "note", note_cancelling, noted), 0);
	pthread_join(t, NULL);
	ck_assert_int_eq(noted[0], PTHREAD_CANCEL_DISABLE);
	ck_assert_int_eq(noted[1], PTHREAD_CANCEL_ASYNCHRONOUS);
}

struct later {
	struct rcu_head rcu;
	sem_t *called;
	_Atomic(bool) *reading;
	bool early;
};

static void note_call(struct rcu_head *head)
{
	struct later *l = container_of(head, struct later, rcu);

	l->early = l->reading && atomic_load(l->reading);
	sem_post(l->called);
}

static void later_many(void *arg)
{
	struct later *l = arg;

	for (unsigned i = 0; i < 1000; i++)
		rcu_later(&l[i].rcu, note_call);
}

TEST(each_object_of_many_threads_is_freed_once)
{
	static struct later all[4][1000];
	pthread_t t[ARRAY_SIZE(all)];
	sem_t called;

	sem_init(&called, 0, 0);
	for (unsigned i = 0; i < 4000; i++)
		all[i / 1000][i % 1000].called = &called;
	for (unsigned i = 0; i < ARRAY_SIZE(t); i++)
		ck_assert_int_eq(thread_start(&t[i], "later", later_many,
					      all[i]), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(t); i++)
		pthread_join(t[i], NULL);
	for (unsigned i = 0; i < 4000; i++)
		sem_wait(&called);
	ck_assert_int_lt(sem_trywait(&called), 0);
}

/* A call that comes too early comes while this reader still reads. */
TEST(no_object_is_freed_while_a_reader_may_see_it)
{
	_Atomic(bool) reading = true;
	struct later l = { .reading = &reading };
	sem_t called;

	sem_init(&called, 0, 0);
	l.called = &called;
	rcu_register_thread();
	rcu_enter();
	rcu_later(&l.rcu, note_call);
	/* As long as a grace period takes, and the call-backs behind it. */
	pause_on_purpose(1000000);
	atomic_store(&reading, false);
	rcu_exit();
	sem_wait(&called);
	ck_assert(!l.early);
	rcu_unregister_thread();
}

TEST(hashes_of_bytes_are_the_same_in_every_version)
{
	static const struct {
		const char *bytes;
		uint64_t    hash;
	} known[] = {
		{ "", 0 },
		{ "/", 0x15411e9a8e962ce8 },
		{ "/export", 0xc40b986851d6abe4 },
		{ "12345678", 0x9d0fc284558e9201 },
		{ "123456789", 0x242145779d9f5974 },
		{ "123456789abcdef", 0xeb11580368e38fab },
		{ "a longer text of thirty bytes.", 0xee8629f0e1636493 },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(known); i++)
		ck_assert_uint_eq(hash_bytes(known[i].bytes,
					     strlen(known[i].bytes)),
				  known[i].hash);
}

TEST(a_peer_can_not_make_texts_that_share_a_keyed_hash)
{
	uint64_t text[2], plain, first;

	make_collision(0, text);
	plain = hash_bytes(text, sizeof(text));
	first = hash_keyed(text, sizeof(text));
	for (uint64_t i = 1; i < 1000; i++) {
		make_collision(i, text);
		ck_assert_uint_eq(hash_bytes(text, sizeof(text)), plain);
		ck_assert_uint_ne(hash_keyed(text, sizeof(text)), first);
	}
}

/* The most of 4096 texts, which differ in word @at by @step, that share one of
 * 4096 places. */
static unsigned fullest_place(unsigned at, uint32_t step)
{
	uint32_t w[HASH_WORDS] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	static uint8_t places[4096];
	unsigned most = 0;

	memset(places, 0, sizeof(places));
	for (unsigned i = 0; i < ARRAY_SIZE(places); i++, w[at] += step)
		most = MAX(most, ++places[hash_words(w) % ARRAY_SIZE(places)]);
	return most;
}

TEST(words_in_a_row_spread_over_a_table)
{
	for (unsigned at = 0; at < HASH_WORDS; at++)
		for (unsigned bit = 0; bit <= 20; bit++)
			ck_assert_uint_lt(fullest_place(at, 1u << bit), 24);
}

TEST(a_keyed_hash_stays_the_same_while_the_process_lives)
{
	ck_assert_uint_eq(hash_keyed("abc", 3), hash_keyed("abc", 3));
	ck_assert_uint_ne(hash_keyed("abc", 3), hash_keyed("abc", 2));
	ck_assert_uint_eq(hash_values(1, 2), hash_values(1, 2));
	ck_assert_uint_ne(hash_values(1, 2), hash_values(2, 1));
}

/* Takes all descriptors that a user is allowed. */
static long take_all(void)
{
	long n = 0;

	for (; fds_may(FDS_FILES, n); n++)
		fds_count(FDS_FILES, 1);
	return n;
}

TEST(users_of_descriptors_leave_some_for_the_next_one)
{
	const struct rlimit lim = { 800, 800 };
	long all = 0, n;

	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
	n = take_all();
	ck_assert_int_eq(n, 267);
	for (int i = 0; i < 4; i++) {
		all += n;
		n = take_all();
		ck_assert_int_gt(n, 0);
	}
	fds_count(FDS_FILES, -all - n);
	ck_assert_int_eq(fds_free(FDS_FILES), 400);
	/* Another pool's are apart. */
	ck_assert_int_eq(fds_free(FDS_CONNS), 300);
}

/* The least is the process's own need, 48, and one for each other user. */
TEST_LOOP(shares_of_descriptors_are_no_more_than_there_are, 0, 5)
{
	static const rlim_t limits[] = { 53, 64, 128, 512, 1024 };
	const struct rlimit lim = { limits[_i], limits[_i] };
	long small;

	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
	small = fds_small(64);
	ck_assert_int_ge(small, 1);
	ck_assert_int_le(small, 64);
	ck_assert_int_ge(fds_free(FDS_FILES), 1);
	ck_assert_int_ge(fds_free(FDS_CONNS), 1);
	ck_assert_int_le(fds_free(FDS_FILES) + fds_free(FDS_CONNS) +
			 2 * small + fds_small(128) + 48, (long)lim.rlim_cur);
}

TEST(times_of_many_seconds_do_not_wrap)
{
	ck_assert_uint_eq(10 * NS_PER_S, 10000000000);
	ck_assert_uint_eq(10000 * NS_PER_MS, 10000000000);
}
