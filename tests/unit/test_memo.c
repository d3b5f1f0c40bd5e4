/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers that take long to get, and the threads that wait for them. */
#include "lib/memo.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "lib/thread.h"
#include "lib/util.h"
#include "tests/unit/runner.h"

#define KEPT		64
#define LONG		3600		/* seconds */
#define PATIENCE_NS	((uint64_t)LONG * NS_PER_S)

static struct memo *memo;
static atomic_uint freed, asked, ended;

static void free_answer(struct memo_entry *e)
{
	atomic_fetch_add(&freed, 1);
	free(e);
}

static void setup(void)
{
	atomic_store(&freed, 0);
	atomic_store(&asked, 0);
	atomic_store(&ended, 0);
	ck_assert_int_eq(memo_create(KEPT, 10 * KEPT, free_answer, &memo), 0);
}

static void teardown(void)
{
	memo_destroy(memo);
}

TEST_CASE(.setup = setup, .teardown = teardown);

static struct memo_entry *make_answer(uint32_t key, size_t bytes)
{
	struct memo_entry *e = calloc(1, sizeof(*e));

	ck_assert_ptr_nonnull(e);
	e->key = (struct memo_key){ { key } };
	e->bytes = bytes;
	e->expires = clock_coarse_s() + LONG;
	return e;
}

/* Asks for @key, if need be, and keeps an answer of @bytes. */
static bool learn(uint32_t key, size_t bytes)
{
	struct memo_question q = { .key = { { key } } };

	if (!memo_ask(memo, &q, PATIENCE_NS))
		return false;
	memo_answered(memo, &q, make_answer(key, bytes));
	return true;
}

static bool knows(uint32_t key)
{
	const struct memo_key k = { { key } };
	bool known;

	rcu_enter();
	known = memo_is_fresh(memo_find(memo, &k));
	rcu_exit();
	return known;
}

/* Runs on a separate thread: asks for 1, and notes it. */
static void ask_for_one(void *arg)
{
	struct memo_question q = { .key = { { 1 } } };

	if (memo_ask(memo, &q, PATIENCE_NS)) {
		atomic_fetch_add(&asked, 1);
		memo_answered(memo, &q, make_answer(1, 0));
	}
	atomic_fetch_add(&ended, 1);
}

TEST(an_answer_is_asked_for_once)
{
	ck_assert(!knows(1));
	ck_assert(learn(1, 0));
	ck_assert(knows(1));
	ck_assert(!knows(2));
	ck_assert(!learn(1, 0));
	ck_assert_uint_eq(memo_count(memo), 1);
}

TEST(an_answer_that_expired_is_asked_for_again_and_replaced)
{
	learn(1, 0);
	memo_expire(memo);
	ck_assert(!knows(1));
	ck_assert(learn(1, 0));
	ck_assert(knows(1));
	ck_assert_uint_eq(memo_count(memo), 1);
	EVENTUALLY(atomic_load(&freed) == 1);
}

/* With no answer to the first question, one of the others asks. */
TEST_LOOP(threads_wait_for_the_answer_to_the_same_question, 0, 2)
{
	struct memo_question q = { .key = { { 1 } } };
	pthread_t threads[4];

	ck_assert(memo_ask(memo, &q, PATIENCE_NS));
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		ck_assert_int_eq(thread_start(&threads[i], "asker", ask_for_one,
					      NULL), 0);
	ck_assert(learn(2, 0));		/* another question waits for nothing */
	ck_assert_uint_eq(atomic_load(&ended), 0);
	memo_answered(memo, &q, _i ? NULL : make_answer(1, 0));
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(atomic_load(&asked), _i ? 1 : 0);
	ck_assert(knows(1));
}

/* The asking thread can use the answer, and so can waiters; then the question
 * is asked again. */
TEST(an_answer_to_a_question_from_before_is_not_kept)
{
	const struct memo_key key = { { 1 } };
	struct memo_question q = { .key = key };

	ck_assert(memo_ask(memo, &q, PATIENCE_NS));
	memo_expire(memo);
	memo_answered(memo, &q, make_answer(1, 0));
	rcu_enter();
	ck_assert_int_le(memo_find(memo, &key)->expires, clock_coarse_s());
	rcu_exit();
}

static atomic_bool is_over;
static atomic_ulong misses, finds;

static void look_for_one(void *arg)
{
	const struct memo_key key = { { 1 } };

	while (!atomic_load(&is_over)) {
		rcu_enter();
		if (!memo_find(memo, &key))
			atomic_fetch_add(&misses, 1);
		rcu_exit();
		atomic_fetch_add(&finds, 1);
	}
}

/* Also where the new answer displaces others. */
TEST(readers_find_an_answer_while_it_is_replaced)
{
	unsigned long round = 0;
	pthread_t reader;

	for (uint32_t i = 1; i <= KEPT; i++)
		ck_assert(learn(i, 0));
	ck_assert_int_eq(thread_start(&reader, "reader", look_for_one, NULL),
			 0);
	while (atomic_load(&finds) < 1000 || round < 100 * KEPT) {
		memo_expire(memo);
		ck_assert(learn(1, 10 * KEPT));
		memo_expire(memo);
		ck_assert(learn(1, 0));
		for (uint32_t i = 0; i < KEPT / 4; i++)
			learn(2 + ++round % KEPT, 1);
	}
	atomic_store(&is_over, true);
	pthread_join(reader, NULL);
	ck_assert_uint_eq(atomic_load(&misses), 0);
}

/* A question renews a record, which stays until the answer; but records that
 * were expired meanwhile stay expired. */
TEST_LOOP(an_answer_is_prolonged_unless_all_expire_meanwhile, 0, 2)
{
	struct memo_question q = { .key = { { 1 } } };

	learn(1, 0);
	memo_expire(memo);
	ck_assert(memo_ask(memo, &q, PATIENCE_NS));
	if (_i)
		memo_expire(memo);
	memo_prolong(memo, &q, LONG);
	ck_assert_int_eq(knows(1), !_i);
	memo_expire(memo);
	ck_assert(!knows(1));
	memo_answered(memo, &q, NULL);
	ck_assert(learn(1, 0));
}

TEST(answers_that_are_forgotten_leave_their_places)
{
	for (uint32_t i = 0; i < KEPT; i++)
		ck_assert(learn(i, 10));
	memo_forget(memo);
	ck_assert_uint_eq(memo_count(memo), 0);
	ck_assert(!knows(1));
	EVENTUALLY(atomic_load(&freed) == KEPT);
	for (uint32_t i = 0; i < KEPT; i++)
		ck_assert(learn(i, 10));
	ck_assert_uint_eq(memo_count(memo), KEPT);
}

TEST(answers_are_bounded_in_number_and_in_bytes)
{
	for (uint32_t i = 0; i < 100 * KEPT; i++) {
		ck_assert(learn(i, 0));
		ck_assert(knows(i));
		ck_assert_uint_le(memo_count(memo), KEPT);
	}
	ck_assert_uint_gt(memo_count(memo), KEPT / 2);
	for (uint32_t i = 0; i < KEPT; i++)
		ck_assert(learn(100 * KEPT + i, 100));
	ck_assert_uint_le(memo_count(memo), 6);
	EVENTUALLY(atomic_load(&freed) + memo_count(memo) == 101 * KEPT);
}

TEST(a_doubted_source_is_asked_one_question_at_a_time)
{
	struct memo_question q = { .key = { { 1 } } };

	ck_assert(memo_doubt(memo, clock_ns() + PATIENCE_NS));
	ck_assert(!memo_doubt(memo, clock_ns() + PATIENCE_NS));
	ck_assert(!learn(2, 0));
	memo_doubt(memo, 1);			/* the pause is over */
	ck_assert(memo_ask(memo, &q, PATIENCE_NS));
	ck_assert(!learn(2, 0));
	memo_answered(memo, &q, NULL);
	ck_assert(learn(2, 0));
	ck_assert(memo_doubt(memo, 0));
	ck_assert(!memo_doubt(memo, 0));
}

/* Of questions that are out for longer than the asker's patience. */
TEST(a_source_that_is_silent_is_not_asked_more)
{
	struct memo_question q = { .key = { { 1 } } };

	ck_assert(memo_ask(memo, &q, PATIENCE_NS));
	EVENTUALLY(!memo_may_ask(memo, 1));
	ck_assert(!memo_ask(memo, &q, 1));
	ck_assert(memo_may_ask(memo, PATIENCE_NS));
	ck_assert(memo_may_ask(memo, 0));
	memo_answered(memo, &q, NULL);
	ck_assert(memo_may_ask(memo, 1));
}
