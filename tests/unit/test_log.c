/* SPDX-License-Identifier: BSD-2-Clause */
/* The log: its limits, its levels, and the lines that wait when the process
 * ends. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/thread.h"
#include "lib/util.h"
#include "tests/unit/runner.h"

TEST_CASE(.setup = NULL);

TEST(a_place_logs_at_most_ten_lines_a_second)
{
	struct timespec from, to;
	int passed;

	/* All within one second. */
	do {
		struct log_limit limit = { 0 };

		passed = 0;
		clock_gettime(CLOCK_MONOTONIC_COARSE, &from);
		for (int i = 0; i < 1000; i++)
			passed += log_limit_pass(&limit, LOG_LEVEL_ERR);
		clock_gettime(CLOCK_MONOTONIC_COARSE, &to);
	} while (from.tv_sec != to.tv_sec);
	ck_assert_int_eq(passed, 10);
}

/* The bytes that @log writes to the log. */
static const char *logged(void (*log)(void *arg), void *arg)
{
	static char text[2048];
	int keep = dup(STDERR_FILENO), fds[2];
	ssize_t n;

	ck_assert_int_eq(pipe(fds), 0);
	dup2(fds[1], STDERR_FILENO);
	log(arg);
	dup2(keep, STDERR_FILENO);
	close(keep);
	close(fds[1]);
	n = read(fds[0], text, sizeof(text) - 1);
	close(fds[0]);
	ck_assert_int_gt(n, 0);
	text[n] = '\0';
	return text;
}

static void pass_limit(void *limit)
{
	ck_assert(log_limit_pass(limit, LOG_LEVEL_ERR));
}

TEST_LOOP(dropped_lines_are_counted_at_their_own_level, 0, 2)
{
	static const struct { unsigned count; const char *told; } cases[] = {
		{ 25, "15 messages like" }, { 11, " 1 message like" },
	};
	struct log_limit limit = { .count = cases[_i].count };
	const char *text = logged(pass_limit, &limit);

	ck_assert_ptr_nonnull(strstr(text, cases[_i].told));
	/* The journal's prefix, or the level's name. */
	ck_assert(strstr(text, " err: ") || !strncmp(text, "<3>", 3));
}

static void log_name(void *name)
{
	log_print(LOG_LEVEL_ERR, "it is %s.", (const char *)name);
}

TEST(a_name_in_the_log_commands_no_terminal)
{
	static char longest[] = "[\302\2332J\033[\n\177\342\200\250"
				"\342\201\246]\303\251\302\240\302\377\342";

	ck_assert_ptr_nonnull(strstr(logged(log_name, longest),
		"it is [??2J?[????????]\303\251\302\240\302\377\342.\n"));
}

TEST(levels_are_known_by_name)
{
	enum log_level level;

	ck_assert(log_level_parse("debug", &level));
	ck_assert_int_eq(level, LOG_LEVEL_DEBUG);
	ck_assert(!log_level_parse("loud", &level));
}

/* The lines' destination is not read at first, and then is. */
TEST(a_log_that_nobody_takes_stops_nothing)
{
	static char text[1 << 20];
	int fds[2], keep = dup(STDERR_FILENO);
	size_t n = 0;
	ssize_t got;

	ck_assert_int_eq(pipe(fds), 0);
	fcntl(fds[1], F_SETPIPE_SZ, 4096);
	dup2(fds[1], STDERR_FILENO);
	close(fds[1]);
	ck_assert_int_eq(log_start(), 0);
	for (int i = 0; i < 1000; i++)
		log_print(LOG_LEVEL_ERR, "line %d of many, some of which are "
			  "left out", i);
	while (!strstr(text, " messages left out") &&
	       (got = read(fds[0], text + n, 4096)) > 0 &&
	       n < sizeof(text) - 8192)
		n += (size_t)got;
	log_stop();
	dup2(keep, STDERR_FILENO);
	close(keep);
	close(fds[0]);
	ck_assert_ptr_nonnull(strstr(text, "line 0 of many"));
	ck_assert_ptr_nonnull(strstr(text, " messages left out"));
	ck_assert_ptr_null(strstr(text, "line 999 of many"));
}

/* Returns the log of a process that @end ends, with standard error at fds[1];
 * *@status is as waitpid() gives it. */
static const char *last_words(void (*end)(void), const int fds[2], int *status)
{
	static char text[65536];
	size_t n = 0;
	ssize_t got;
	pid_t pid = fork();

	if (pid == 0) {
		close(fds[0]);
		dup2(fds[1], STDERR_FILENO);
		if (fds[1] != STDERR_FILENO)
			close(fds[1]);
		log_start();
		end();
		_exit(0);
	}
	close(fds[1]);
	/* The reader comes late: the writer is waiting by then. */
	pause_on_purpose(300000);
	while (n < sizeof(text) - 1 &&
	       (got = read(fds[0], text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	close(fds[0]);
	ck_assert_int_eq(waitpid(pid, status, 0), pid);
	return text;
}

/* As the kernel ends it for a system call: no handler runs. */
static void die_at_once(void)
{
	log_print(LOG_LEVEL_ERR, "last words");
	kill(getpid(), SIGKILL);
}

TEST(a_line_for_a_socket_is_out_when_log_returns)
{
	int fds[2], status;

	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
		ck_assert_ptr_nonnull(strstr(last_words(die_at_once, fds,
							&status),
					     "last words"));
		ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
}

/* 32 of these fill the pipe; the others wait in the queue. */
static void log_much(void)
{
	for (int i = 0; i < 100; i++)
		log_print(LOG_LEVEL_ERR, "line %d; %0100d", i, 0);
}

static void abort_much(void)
{
	log_much();
	abort();
}

static void fault(void *arg)
{
	raise(SIGSEGV);
}

static void fault_much(void)
{
	pthread_t t;

	log_much();
	thread_start(&t, "faults", fault, NULL);
	pthread_join(t, NULL);
}

static void exit_much(void)
{
	log_much();
	log_rescue();
	_exit(1);
}

TEST_LOOP(a_dying_process_writes_the_lines_that_wait, 0, 3)
{
	static const struct { void (*end)(void); int sig; } ends[] = {
		{ abort_much, SIGABRT }, { fault_much, SIGSEGV },
		{ exit_much, 0 },
	};
	int fds[2], status;
	const char *text;

	if (SANITIZED && ends[_i].sig)
		return;		/* handles them itself */
	ck_assert_int_eq(pipe(fds), 0);
	fcntl(fds[1], F_SETPIPE_SZ, 4096);
	text = last_words(ends[_i].end, fds, &status);
	ck_assert_ptr_nonnull(strstr(text, "line 0;"));
	ck_assert_ptr_nonnull(strstr(text, "line 50;"));
	ck_assert_ptr_nonnull(strstr(text, "line 99;"));
	if (ends[_i].sig)
		ck_assert_int_eq(WTERMSIG(status), ends[_i].sig);
	else
		ck_assert_int_eq(WEXITSTATUS(status), 1);
}

static void log_often(void *arg)
{
	atomic_bool *stop = arg;

	while (!*stop)
		log_debug("nobody reads this");
}

TEST(the_level_may_change_while_others_log)
{
	enum log_level was = log_threshold;
	atomic_bool stop = false;
	pthread_t t;

	ck_assert_int_eq(thread_start(&t, "log", log_often, &stop), 0);
	for (int i = 0; i < 1000; i++)
		log_threshold = i % 2 ? LOG_LEVEL_WARN : LOG_LEVEL_ERR;
	ck_assert(log_wanted(LOG_LEVEL_WARN));
	ck_assert(!log_wanted(LOG_LEVEL_INFO));
	stop = true;
	pthread_join(t, NULL);
	log_threshold = was;
}

/* A journal's checksums, fsids and the times of files made by EXCLUSIVE CREATE
 * are such hashes, and outlive an upgrade. */
