/* SPDX-License-Identifier: BSD-2-Clause */
/* What Check programs share: to wait for something; and how each ends. */
#ifndef GANNET_TESTS_UNIT_RUNNER_H
#define GANNET_TESTS_UNIT_RUNNER_H

#include <check.h>
#include <stdlib.h>
#include <unistd.h>

/* Waits until @expr holds; fails the test after ten seconds. */
#define EVENTUALLY(expr) do { \
		for (int i_ = 0; i_ < 10000 && !(expr); i_++) \
			usleep(1000); \
		ck_assert(expr); \
	} while (0)

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
