/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon under any parent: closed descriptors, storms of signals. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/server/daemon_run.h"
#include "tests/unit/runner.h"

static struct daemon_run d;

static void setup(void)
{
	daemon_prepare(&d);
}

static void teardown(void)
{
	daemon_clean(&d);
}

TEST_CASE(.setup = setup, .teardown = teardown, .timeout = 120);

/* Whatever set of them a supervisor closes. */
TEST_LOOP(standard_descriptors_that_are_closed_are_of_no_file, 1, 8)
{
	static const char *const close_it[] = { "<&-", ">&-", "2>&-" };
	char command[512], path[160], to[64];
	int pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/pid", d.dir);
	snprintf(command, sizeof(command), "./gannetd --port 0 --rdma-port 0 "
		 "--no-rpcbind --state-dir %s/state --pid-file %s "
		 "--export 'mem:/m 127.0.0.1(rw)' %s %s %s", d.dir, path,
		 _i & 1 ? close_it[0] : "", _i & 2 ? close_it[1] : "",
		 _i & 4 ? close_it[2] : "");
	ck_assert_int_eq(system(command), 0);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "%d", &pid), 1);
	fclose(f);
	for (int fd = 0; fd <= 2; fd++) {
		ssize_t n;

		if (!(_i >> fd & 1))
			continue;
		snprintf(command, sizeof(command), "/proc/%d/fd/%d", pid, fd);
		n = readlink(command, to, sizeof(to) - 1);
		to[n > 0 ? n : 0] = '\0';
		ck_assert_str_eq(to, "/dev/null");
	}
	ck_assert_int_eq(kill(pid, SIGTERM), 0);
	EVENTUALLY(access(path, F_OK) < 0);
}

/* A traced thread can stand still while the others run. */
static pid_t stop_thread(const char *name)
{
	pid_t tid = daemon_thread(&d, name, 0);
	int status;

	ck_assert_int_gt(tid, 0);
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
		return 0;
	ck_assert_int_eq(ptrace(PTRACE_INTERRUPT, tid, NULL, NULL), 0);
	ck_assert_int_eq(waitpid(tid, &status, __WALL), tid);
	return tid;
}

/* The daemon ends 24 seconds after the first signal, four after the second, at
 * once after the third. */
TEST_LOOP(a_poller_that_hangs_does_not_delay_the_end, 0, 3)
{
	static const int least[] = { 23, 3, 0 }, most[] = { 45, 18, 18 };
	time_t from;
	pid_t tid;

	ck_assert(daemon_start(&d, (const char *const[]){ "--export",
			       "mem:/m 127.0.0.1(rw,insecure)", NULL }));
	tid = stop_thread("poller 0");
	if (!tid) {
		fprintf(stderr, "no thread may be traced here\n");
		daemon_end(&d, SIGTERM);
		return;
	}
	from = time(NULL);
	kill(d.pid, SIGTERM);
	if (_i > 0) {
		ck_assert(daemon_logged(&d, "ending"));
		kill(d.pid, SIGTERM);
	}
	while (waitpid(tid, &d.status, __WALL | WNOHANG) == 0) {
		ck_assert_int_le(time(NULL) - from, most[_i]);
		/* It is asked again and again, but not to wake all the time. */
		pause_on_purpose(20000);
		if (_i > 1)
			kill(d.pid, SIGTERM);
	}
	ck_assert_int_ge(time(NULL) - from, least[_i]);
	daemon_end(&d, SIGTERM);
	ck_assert(WIFEXITED(d.status) && WEXITSTATUS(d.status) == 1);
	ck_assert(daemon_has_logged(&d, "ending"));
}

/* Its log is a pipe whose reader is gone. */
TEST(a_storm_of_signals_ends_in_order)
{
	char file[160];
	pid_t storm;
	int fd;

	snprintf(file, sizeof(file), "%s/log", d.dir);
	ck_assert_int_eq(mkfifo(file, 0600), 0);
	fd = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert(daemon_start(&d, (const char *const[]){ "--export",
			       "mem:/m 127.0.0.1(rw,insecure)", NULL }));
	close(fd);
	storm = fork();
	for (int i = 0; storm == 0 && i < 20000; i++)
		kill(d.pid, i % 2 ? SIGHUP : SIGUSR1);
	if (storm == 0)
		_exit(0);
	for (int i = 0; i < 20; i++)
		ck_assert(daemon_answers(&d));
	ck_assert_int_eq(waitpid(storm, NULL, 0), storm);
	ck_assert(daemon_alive(&d));
	kill(d.pid, SIGHUP);
	daemon_end(&d, SIGTERM);
	ck_assert(WIFEXITED(d.status) && WEXITSTATUS(d.status) == 0);
}
