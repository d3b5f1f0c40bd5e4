/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by Check programs: waiting for a condition, and main()'s end. */
#ifndef GANNET_TESTS_UNIT_RUNNER_H
#define GANNET_TESTS_UNIT_RUNNER_H

#include <check.h>
#include <errno.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Waits until @expr holds; fails the test after a minute. */
#define EVENTUALLY(expr) do { \
		bool holds_ = (expr); \
		for (int i_ = 0; i_ < 60000 && !holds_; i_++) { \
			usleep(1000); \
			holds_ = (expr); \
		} \
		ck_assert_msg(holds_, "not so after a minute: %s", #expr); \
	} while (0)

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

/* Does @what in less than @ms.  A machine that is busy with something else may
 * need longer now and then, but not five times in a row. */
#define IN_LESS_THAN(ms, what) do { \
		uint64_t took_ = UINT64_MAX; \
		for (int i_ = 0; i_ < 5 && took_ >= (ms); i_++) { \
			took_ = runner_now_ms(); \
			what; \
			took_ = runner_now_ms() - took_; \
		} \
		ck_assert_uint_lt(took_, (ms)); \
	} while (0)

/* A test that hangs ends, but a machine may be slow, shared and sanitized:
 * time-outs of Check's are five times what tests ask for, and theirs is a
 * minute where they ask for none, not four seconds. */
__attribute__((constructor)) static void be_patient(void)
{
	setenv("CK_DEFAULT_TIMEOUT", "60", 0);
	setenv("CK_TIMEOUT_MULTIPLIER", "5", 0);
}

/* Adds @test to @s as a case of its own, between @before and @after. */
static inline void add_case(Suite *s, const char *name, SFun before, SFun after,
			    const TTest *test)
{
	TCase *tc = tcase_create(name);

	tcase_add_checked_fixture(tc, before, after);
	tcase_add_test(tc, test);
	suite_add_tcase(s, tc);
}

/* Runs and takes @suite; what main() returns.  CK_FORK=no in the environment
 * keeps all in one process. */
static inline int run_suite(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
