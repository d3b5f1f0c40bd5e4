/* SPDX-License-Identifier: BSD-2-Clause */
/* What every Check program ends with: runs the suite, exits accordingly. */
#ifndef GANNET_TESTS_UNIT_RUNNER_H
#define GANNET_TESTS_UNIT_RUNNER_H

#include <check.h>
#include <stdlib.h>

/* Takes @suite.  CK_FORK=no in the environment keeps all in one process. */
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
