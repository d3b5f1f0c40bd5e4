/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers, and the shares that bound their use. */
#include "rpc/work.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "lib/thread.h"
#include "rpc/work_priv.h"
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

/* As the address of this number, of the network of this number. */
static void submit_from(uint64_t network, uint64_t host,
			struct work_class *class, struct job *j, bool waits)
{
	unsigned id = j->id;

	memset(j, 0, sizeof(*j));
	j->item.run = run;
	j->item.client = network << 32 | host;
	j->class = class;
	j->id = id;
	j->waits = waits;
	work_submit(class, &j->item);
}

/* Like a client in a separate network. */
static void submit_as(uint64_t client, struct work_class *class, struct job *j,
		      unsigned id, bool waits)
{
	j->id = id;
	submit_from(client, client, class, j, waits);
}

static void submit(struct work_class *class, struct job *j, unsigned id,
		   bool waits)
{
	submit_as(7, class, j, id, waits);
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

TEST_CASE(.setup = start, .teardown = stop);

TEST(a_class_of_one_worker_runs_in_order)
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

TEST(a_class_never_has_more_workers_than_its_share)
{
	struct work_class *class = work_class_new(pool, "two", 2);
	struct job jobs[20], other;

	gate(true);
	for (unsigned i = 0; i < 20; i++)
		submit_as(i, class, &jobs[i], i, true);
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

/* Also when all is submitted while the first worker is on its way. */
TEST(the_common_class_has_all_workers)
{
	struct job jobs[NWORKERS];

	for (unsigned round = 1; round <= 500; round++) {
		gate(true);
		for (unsigned i = 0; i < NWORKERS; i++)
			submit_as(i, work_pool_common(pool), &jobs[i], i,
				  true);
		wait_standing(NWORKERS);
		gate(false);
		wait_done(NWORKERS * round);
	}
}

#define NHUNG	8

TEST(however_many_classes_hang_another_has_all_its_workers)
{
	static struct job jobs[NHUNG + 1][NWORKERS];
	struct work_class *all[NHUNG + 1];

	gate(true);
	for (unsigned c = 0; c <= NHUNG; c++) {
		all[c] = work_class_new(pool, "c", NWORKERS);
		for (unsigned i = 0; i < NWORKERS; i++)
			submit_as(i, all[c], &jobs[c][i], i, true);
		wait_standing((c + 1) * NWORKERS);
	}
	gate(false);
	wait_done((NHUNG + 1) * NWORKERS);
	for (unsigned c = 0; c <= NHUNG; c++)
		work_class_destroy(all[c]);
}

/* As in a container with 32 threads, with 12 exports on one disk. */
TEST(where_threads_are_few_classes_that_hang_leave_some_to_others)
{
	static struct job hung[12][NWORKERS], last[NWORKERS];
	struct work_class *class[12], *other;

	pool->most = 16;
	gate(true);
	for (unsigned i = 0; i < 12; i++) {
		class[i] = work_class_new(pool, "hangs", 6);
		for (unsigned k = 0; k < NWORKERS; k++)
			submit_as(k, class[i], &hung[i][k], k, true);
	}
	wait_standing(12);
	other = work_class_new(pool, "other", NWORKERS);
	for (unsigned k = 0; k < NWORKERS; k++)
		submit_as(k, other, &last[k], k, false);
	wait_done(NWORKERS);
	ck_assert_uint_le(most, 16 + 12);
	/* Items that had to wait come when others have ended. */
	gate(false);
	wait_done(13 * NWORKERS);
	for (unsigned i = 0; i < 12; i++)
		work_class_destroy(class[i]);
	work_class_destroy(other);
}

TEST(one_client_leaves_workers_for_the_next)
{
	struct work_class *class = work_class_new(pool, "c", NWORKERS);
	static struct job jobs[100], other;

	gate(true);
	for (unsigned i = 0; i < 100; i++)
		submit_as(1, class, &jobs[i], i, true);
	wait_standing(NWORKERS * 3 / 4);
	submit_as(2, class, &other, 1000, false);
	wait_done(1);
	ck_assert_uint_eq(order[0], 1000);
	ck_assert_uint_eq(most, NWORKERS * 3 / 4);
	gate(false);
	wait_done(101);
	work_class_destroy(class);
}

/* With one worker: a long queue of one client delays another by one item. */
TEST(clients_of_a_class_take_turns)
{
	struct work_class *class = work_class_new(pool, "c", 1);
	static struct job jobs[301];

	gate(true);
	submit_as(1, class, &jobs[300], 1000, true);
	wait_standing(1);
	for (unsigned i = 0; i < 298; i++)
		submit_as(1, class, &jobs[i], i, false);
	submit_as(2, class, &jobs[298], 298, false);
	submit_as(2, class, &jobs[299], 299, false);
	gate(false);
	wait_done(301);
	ck_assert_uint_eq(order[1], 298);
	ck_assert_uint_eq(order[2], 0);
	ck_assert_uint_eq(order[3], 299);
	ck_assert_uint_eq(order[4], 1);
	for (unsigned i = 5; i < 301; i++)
		ck_assert_uint_eq(order[i], i - 3);
	work_class_destroy(class);
}

/* With one worker: however many addresses a host has in its network, it delays
 * another network by one item; and the clients of a network take turns. */
TEST(networks_of_a_class_take_turns)
{
	struct work_class *class = work_class_new(pool, "c", 1);
	static struct job jobs[1032];
	unsigned late = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(jobs); i++)
		jobs[i].id = i;
	gate(true);
	submit_from(1, 0, class, &jobs[1031], true);
	wait_standing(1);
	for (unsigned i = 0; i < 1000; i++)
		submit_from(1, i * 77, class, &jobs[i], false);
	for (unsigned i = 1000; i < 1030; i++)
		submit_from(i, i, class, &jobs[i], false);
	submit_from(1029, 5, class, &jobs[1030], false);
	gate(false);
	wait_done(1032);
	for (unsigned i = 65; i < 1032; i++)
		late += order[i] >= 1000;
	ck_assert_uint_eq(late, 0);
	work_class_destroy(class);
}

TEST(one_network_leaves_workers_for_the_next)
{
	struct work_class *class = work_class_new(pool, "c", 16);
	static struct job jobs[100], other;

	gate(true);
	for (unsigned i = 0; i < 100; i++)
		submit_from(1, i * 77, class, &jobs[i], true);
	wait_standing(14);
	submit_as(2, class, &other, 1000, false);
	wait_done(1);
	ck_assert_uint_eq(order[0], 1000);
	ck_assert_uint_eq(most, 14);
	gate(false);
	wait_done(101);
	ck_assert_uint_eq(most, 14);
	work_class_destroy(class);
}

static bool pick_all(struct work_item *item, void *arg)
{
	(void)item;
	(void)arg;
	return true;
}

/* Whatever was taken away leaves its client and network free for others. */
TEST(items_of_a_hung_network_can_be_taken_back)
{
	struct work_class *class = work_class_new(pool, "c", 8);
	static struct job jobs[600], other;
	struct work_item *item;
	unsigned n = 0;

	gate(true);
	for (unsigned i = 0; i < 600; i++)
		submit_from(1, i * 77, class, &jobs[i], true);
	wait_standing(7);
	ck_assert_ptr_null(work_pool_take_hung(pool, pick_all, NULL));
	for (item = work_pool_take_hung(pool, pick_all, NULL); item;
	     item = item->next)
		n++;
	ck_assert_uint_eq(n, 600 - 7);
	submit_from(1, 300 * 77, class, &jobs[300], true);
	/* jobs[300] has not waited since the look before. */
	ck_assert_ptr_null(work_pool_take_hung(pool, pick_all, NULL));
	submit_as(2, class, &other, 1000, false);
	wait_done(1);
	ck_assert_uint_eq(order[0], 1000);
	gate(false);
	wait_done(9);
	work_class_destroy(class);
}

/* More clients than a class has places, and some that share one. */
TEST(any_number_of_clients_is_served)
{
	struct work_class *class = work_class_new(pool, "c", 2);
	struct job *jobs = calloc(6000, sizeof(*jobs));
	static bool seen[6000];

	gate(true);
	for (unsigned i = 0; i < 6000; i++)
		submit_as(i % 2 ? i : i / 100 * 4096u, class, &jobs[i], i,
			  i < 2);
	gate(false);
	wait_done(6000);
	for (unsigned i = 0; i < 6000; i++) {
		ck_assert(!seen[order[i]]);
		seen[order[i]] = true;
	}
	work_class_destroy(class);
	free(jobs);
}

TEST(neighbours_have_places_of_their_own)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	static bool taken[256];
	unsigned n = 0;

	for (uint32_t i = 0; i < 64; i++) {
		uint64_t client;

		a.sin_addr.s_addr = htonl(0x0a000001 + i);
		a.sin_port = htons((uint16_t)i);
		client = work_client((struct sockaddr *)&a);
		a.sin_port = 0;
		ck_assert(client == work_client((struct sockaddr *)&a));
		n += !taken[client % 256];
		taken[client % 256] = true;
	}
	ck_assert_uint_ge(n, 48);
}

static uint64_t client_of(const char *text)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6 };

	ck_assert_int_eq(inet_pton(AF_INET6, text, &a.sin6_addr), 1);
	return work_client((struct sockaddr *)&a);
}

TEST(the_addresses_of_a_64_are_clients_of_one_network)
{
	uint64_t one = client_of("2001:db8::1");

	ck_assert(one != client_of("2001:db8::2"));
	ck_assert(one >> 32 == client_of("2001:db8::2") >> 32);
	ck_assert(one >> 32 == client_of("2001:db8::ffff:0:0:0") >> 32);
	ck_assert(one >> 32 != client_of("2001:db8:0:1::1") >> 32);
	ck_assert(client_of("::ffff:192.0.2.1") >> 32 !=
		  client_of("::ffff:192.0.2.2") >> 32);
}

/* Addresses in two networks that sums of their halves don't tell apart: the
 * owner of one of the networks can choose the other half. */
TEST(no_address_can_be_made_to_share_anothers_turns)
{
	static const uint64_t factors[] = { 1, 31, 33, 0x9e3779b97f4a7c15ull,
					    0xd6e8feb86659fd93ull };
	const uint64_t victim[2] = { 0x0100b80d0120ull, 0x2a00000000000000ull };
	struct sockaddr_in6 a = { .sin6_family = AF_INET6 };
	uint64_t client, half[2];

	memcpy(&a.sin6_addr, victim, sizeof(victim));
	client = work_client((struct sockaddr *)&a);
	for (unsigned i = 0; i < ARRAY_SIZE(factors); i++) {
		half[0] = 0x0200b80d0120ull;
		half[1] = half[0] * factors[i] ^ victim[0] * factors[i] ^
			  victim[1];
		memcpy(&a.sin6_addr, half, sizeof(half));
		ck_assert(client != work_client((struct sockaddr *)&a));
	}
}

static unsigned threads_of_process(void)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned n = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Except the last one: work goes on where no thread can be made. */
TEST(workers_without_work_end_and_come_again)
{
	static struct job jobs[NWORKERS];
	unsigned at_first = threads_of_process();

	atomic_store(&thread_idle_ms, 20);
	for (unsigned round = 1; round <= 5; round++) {
		gate(true);
		for (unsigned i = 0; i < NWORKERS; i++)
			submit_as(i, work_pool_common(pool), &jobs[i], i,
				  true);
		wait_standing(NWORKERS);
		ck_assert_uint_eq(threads_of_process(),
				  at_first + NWORKERS - 1);
		gate(false);
		wait_done(NWORKERS * round);
		EVENTUALLY(threads_of_process() == at_first);
	}
}

/* Ending workers race with woken ones, and with the pool's. */
TEST(no_work_is_lost_while_workers_end)
{
	static struct job jobs[NWORKERS];

	atomic_store(&thread_idle_ms, 1);
	for (unsigned round = 1; round <= 1000; round++) {
		for (unsigned i = 0; i < NWORKERS; i++)
			submit_as(i, work_pool_common(pool), &jobs[i], i,
				  false);
		wait_done(NWORKERS * round);
		/* As long as they stay. */
		pause_on_purpose(900 + round % 300);
	}
	stop();
	start();
}

TEST(submitted_items_run_before_the_end)
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

TEST(an_item_may_submit_itself_again)
{
	struct job j = { .item.run = run, .again = 1000 };

	j.class = work_pool_common(pool);
	work_submit(j.class, &j.item);
	wait_done(1);
	ck_assert_uint_eq(j.again, 0);
}

/* The owner can destroy a class as soon as its items ran, even before the
 * worker that ran the last one has noted that. */
TEST(a_class_may_be_destroyed_at_once)
{
	for (unsigned i = 0; i < 2000; i++) {
		struct work_class *class = work_class_new(pool, "x", 1);
		struct job j;

		submit(class, &j, i, false);
		wait_done(i + 1);
		work_class_destroy(class);
	}
}

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

TEST(many_threads_submit_and_each_item_runs_once)
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
