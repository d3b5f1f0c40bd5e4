/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ./gannet-nfs without some of the standard descriptors, as cron jobs and
 * supervisors can start it: its messages go to no file or connection.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/server/tool_run.h"
#include "tests/unit/runner.h"

#define NSETS	8		/* of descriptors 0 to 2, as bits */

/* Descriptors in the set @closed are closed; the others are open on no file. */
static int run_without(unsigned closed, const char *const args[])
{
	const char *argv[10] = { "gannet-nfs", "--verbose", "--progress" };
	int status, null;
	pid_t pid;

	for (int i = 0; args[i]; i++)
		argv[i + 3] = args[i];
	pid = fork();
	if (pid == 0) {
		alarm(120);
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
		for (int fd = 0; fd <= STDERR_FILENO; fd++)
			if (closed >> fd & 1)
				close(fd);
			else if (dup2(null, fd) < 0)
				_exit(127);
		/* Nothing of the test's is open in the tool. */
		close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
		execv("./gannet-nfs", (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define RUN(closed, ...) \
	run_without(closed, (const char *const[]){ __VA_ARGS__, NULL })

TEST_CASE(.timeout = 300);

TEST_LOOP(copies_are_right_without_standard_descriptors, 0, WAYS)
{
	const char *from, *back;
	char name[8];

	start(_i);
	from = path(d.dir, "from");
	back = path(d.dir, "back");
	make_file(from, 3000001);
	for (unsigned closed = 0; closed < NSETS; closed++) {
		snprintf(name, sizeof(name), "f%u", closed);
		ck_assert_int_eq(RUN(closed, "put", from, url(name)), 0);
		same(from, path(export, name));
		ck_assert_int_eq(RUN(closed, "get", url(name), back), 0);
		same(from, back);
		/* An error is not printed. */
		ck_assert_int_eq(RUN(closed, "get", url("none"), back), 1);
		/* A closed descriptor that is needed is an error. */
		ck_assert_int_eq(RUN(closed, "cat", url(name)),
				 closed >> STDOUT_FILENO & 1);
		ck_assert_int_eq(RUN(closed, "ls", "-l", url("")),
				 closed >> STDOUT_FILENO & 1);
		ck_assert_int_eq(RUN(closed, "put", "-", url("in")),
				 closed >> STDIN_FILENO & 1);
	}
	stop();
}
