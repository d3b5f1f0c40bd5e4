/* SPDX-License-Identifier: BSD-2-Clause */
/* runner - finds the tests of a program, and runs them. */
#include "tests/unit/runner.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static struct test_row *rows;

/* Check's, for a test that hangs. */
static struct sigaction end_test;
static pid_t runner;

/* Keeps the order of their lines, since C has no order of constructors. */
void test_row_add(struct test_row *row)
{
	struct test_row **at = &rows;

	while (*at && (*at)->line < row->line)
		at = &(*at)->next;
	row->next = *at;
	*at = row;
}

/* A test that hangs is ended.  But a machine can be slow, shared and sanitized:
 * Check waits five times as long as a test asks for.  The default is five
 * minutes, not four seconds. */
__attribute__((constructor)) static void be_patient(void)
{
	setenv("CK_DEFAULT_TIMEOUT", "60", 0);
	setenv("CK_TIMEOUT_MULTIPLIER", "5", 0);
}

/* Check is about to kill a test: shows where its threads are, before. */
static void show_hung(int sig)
{
	const char *src = getenv("srcdir");
	char tool[512], pid[16];
	pid_t child;

	snprintf(tool, sizeof(tool), "%s/tests/limited.sh", src ? src : ".");
	snprintf(pid, sizeof(pid), "%d", (int)runner);
	child = fork();
	if (child == 0) {
		execl(tool, tool, "--show", pid, NULL);
		_exit(1);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
	end_test.sa_handler(sig);
}

/* Check sets its handler before it forks the first test. */
static void take_alarm(void)
{
	struct sigaction now;

	if (getpid() != runner || sigaction(SIGALRM, NULL, &now) < 0 ||
	    now.sa_handler == show_hung || now.sa_handler == SIG_DFL ||
	    now.sa_handler == SIG_IGN)
		return;
	end_test = now;
	now.sa_handler = show_hung;
	sigaction(SIGALRM, &now, NULL);
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
	SRunner *all = srunner_create(suite);
	int failed;

	runner = getpid();
	pthread_atfork(NULL, take_alarm, NULL);
	srunner_run_all(all, CK_ENV);
	failed = srunner_ntests_failed(all);
	srunner_free(all);
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
