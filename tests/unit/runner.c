/* SPDX-License-Identifier: BSD-2-Clause */
/* runner - finds the tests of a program, and runs them. */
#include "tests/unit/runner.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static struct test_row *rows;

/* Keeps the order of their lines, since C has no order of constructors. */
void test_row_add(struct test_row *row)
{
	struct test_row **at = &rows;

	while (*at && (*at)->line < row->line)
		at = &(*at)->next;
	row->next = *at;
	*at = row;
}

/* A test that hangs is ended.  But a machine may be slow, shared and sanitized:
 * Check waits five times as long as a test asks for, and for a test that asks
 * for nothing five minutes, not four seconds. */
__attribute__((constructor)) static void be_patient(void)
{
	setenv("CK_DEFAULT_TIMEOUT", "60", 0);
	setenv("CK_TIMEOUT_MULTIPLIER", "5", 0);
}

static TCase *add_case(Suite *s, const struct test_row *row)
{
	TCase *t = tcase_create("case");

	tcase_add_checked_fixture(t, row->setup, row->teardown);
	if (row->timeout > 0)
		tcase_set_timeout(t, row->timeout);
	suite_add_tcase(s, t);
	return t;
}

/* GANNET_TEST in the environment chooses tests by a part of their names. */
static bool is_chosen(const struct test_row *row)
{
	const char *part = getenv("GANNET_TEST");

	return !part || strstr(row->test->name, part);
}

static int count_chosen(void)
{
	int n = 0;

	for (const struct test_row *row = rows; row; row = row->next)
		n += row->test && is_chosen(row);
	return n;
}

static Suite *all_tests(void)
{
	static const struct test_row plain;
	Suite *s = suite_create(program_invocation_short_name);
	TCase *t = NULL;

	for (const struct test_row *row = rows; row; row = row->next) {
		if (!t || !row->test)
			t = add_case(s, row->test ? &plain : row);
		if (row->test && is_chosen(row))
			tcase_add_loop_test(t, row->test, row->from, row->to);
	}
	return s;
}

/* Takes @suite. */
int run_suite(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int run_tests(void)
{
	assert(rows);
	if (count_chosen() == 0) {
		fprintf(stderr, "no test with '%s' in its name\n",
			getenv("GANNET_TEST"));
		return EXIT_FAILURE;
	}
	return run_suite(all_tests());
}
