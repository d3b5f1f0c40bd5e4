/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by Check programs: their tests, and waiting for a condition. */
#pragma once

#include <check.h>
#include <errno.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/pause.h"

/* Waits until @expr holds; fails the test after a minute. */
#define EVENTUALLY(expr) \
	ck_assert_msg(AWAIT(expr), "not so after a minute: %s", #expr)

/* Waits for @sem; fails the test after a minute. */
static inline void wait_sem(sem_t *sem)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += 60;
	while (sem_timedwait(sem, &t) < 0)
		ck_assert_int_eq(errno, EINTR);
}

static inline uint64_t runner_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Does @what in less than @ms.  A busy machine can need longer now and then,
 * but not five times in a row. */
#define IN_LESS_THAN(ms, what) do { \
		uint64_t took_ = UINT64_MAX; \
		for (int i_ = 0; i_ < 5 && took_ >= (ms); i_++) { \
			took_ = runner_now_ms(); \
			what; \
			took_ = runner_now_ms() - took_; \
		} \
		ck_assert_uint_lt(took_, (ms)); \
	} while (0)

/* A test, or the beginning of a case, in the list of its program. */
struct test_row {
	struct test_row	*next;
	int		 line;		/* their order */
	const TTest	*test;		/* NULL: a case */
	int		 from, to;	/* its _i */
	SFun		 setup, teardown;
	double		 timeout;	/* in seconds; 0 is a minute */
};

void test_row_add(struct test_row *row);

#define TEST_ROW_(name, ...) \
	static void __attribute__((constructor)) name(void) \
	{ \
		static struct test_row row_; \
		row_ = (struct test_row){ .line = __LINE__, __VA_ARGS__ }; \
		test_row_add(&row_); \
	}

/*
 *	TEST(a_sentence_about_behaviour)
 *	{
 *		ck_assert...
 *	}
 *
 * A test of this program.  It is in the case that begins above it.
 */
#define TEST(name) TEST_LOOP(name, 0, 1)

/* A test that runs once with each _i from @first to @end - 1. */
#define TEST_LOOP(name, first, end) \
	static const TTest *name; \
	TEST_ROW_(name##_row, .test = name, .from = (first), .to = (end)) \
	START_TEST(name)

/* TEST_CASE(.setup = ..., .teardown = ..., .timeout = ...) begins a case: all
 * tests between its line and that of the next one.  So the tests of a program
 * stand in one file. */
#define TEST_CASE(...) TEST_CASE_(__LINE__, __VA_ARGS__)
#define TEST_CASE_(line, ...) TEST_CASE__(line, __VA_ARGS__)
#define TEST_CASE__(line, ...) \
	TEST_ROW_(case_row_##line, .test = NULL, __VA_ARGS__) \
	_Static_assert(1, "takes the semicolon")

/* Runs all tests of this program, of which there must be one; returns main()'s
 * status.  libunit has a main() that calls it.  In the environment, GANNET_TEST
 * chooses tests by a part of their names, and CK_FORK=no keeps all in one
 * process. */
int run_tests(void);

/* For programs that make their suites themselves. */
int run_suite(Suite *suite);
