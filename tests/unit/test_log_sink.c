/* SPDX-License-Identifier: BSD-2-Clause */
/* The journal, syslog and standard error as the log's places. */
#include "lib/log.h"

#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/runner.h"

static char dir[40], path[64], got[2048];
static int taker = -1;		/* takes datagrams at @path */
static int stderr_was;

static void setup(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	strcpy(dir, "/tmp/gannet-test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/socket", dir);
	strcpy(un.sun_path, path);
	taker = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(taker, (struct sockaddr *)&un, sizeof(un)), 0);
	stderr_was = dup(STDERR_FILENO);
	unsetenv("JOURNAL_STREAM");
}

static void teardown(void)
{
	dup2(stderr_was, STDERR_FILENO);
	close(stderr_was);
	close(taker);
	unlink(path);
	rmdir(dir);
}

TEST_CASE(.setup = setup, .teardown = teardown);

static const char *takes(void)
{
	ssize_t n = recv(taker, got, sizeof(got) - 1, MSG_DONTWAIT);

	got[n < 0 ? 0 : n] = '\0';
	return got;
}

TEST(a_line_for_the_journal_has_its_fields)
{
	const struct log_fields f = { .client = "192.0.2.7",
				      .transport = "tcp",
				      .export = "/srv\nPRIORITY=0" };

	log_open(LOG_TO_JOURNAL, path);
	log_print_with(LOG_LEVEL_WARN, &f, "refused %d\nMESSAGE=%s", 3, "x");
	ck_assert_str_eq(takes(), "PRIORITY=4\n"
			 "SYSLOG_IDENTIFIER=gannetd\n"
			 "GANNET_CLIENT=192.0.2.7\n"
			 "GANNET_TRANSPORT=tcp\n"
			 "GANNET_EXPORT=/srv?PRIORITY=0\n"
			 "MESSAGE=refused 3?MESSAGE=x\n");
	log_info("plain");
	ck_assert_str_eq(takes(), "PRIORITY=6\n"
			 "SYSLOG_IDENTIFIER=gannetd\nMESSAGE=plain\n");
}

TEST(a_line_for_syslog_has_its_facility_and_process)
{
	char end[64];

	log_open(LOG_TO_SYSLOG, path);
	log_err("no %s", "disk");
	snprintf(end, sizeof(end), " gannetd[%d]: no disk\n", (int)getpid());
	takes();
	ck_assert_int_eq(strncmp(got, "<27>", 4), 0);
	ck_assert_uint_eq(strlen(got), 4 + strlen("Nov 24 00:00:00") +
			  strlen(end));
	ck_assert_str_eq(got + strlen(got) - strlen(end), end);
}

TEST(the_logs_thread_sends_datagrams_too)
{
	log_open(LOG_TO_JOURNAL, path);
	ck_assert_int_eq(log_start(), 0);
	log_info("one");
	log_stop();
	ck_assert_ptr_nonnull(strstr(takes(), "\nMESSAGE=one\n"));
}

/* Makes a file standard error. */
static void writes_to(int fd)
{
	ck_assert_int_ge(fd, 0);
	dup2(fd, STDERR_FILENO);
	close(fd);
}

TEST(the_place_follows_from_standard_error)
{
	char stream[64];
	struct stat st;
	int fds[2];

	writes_to(open("/dev/null", O_WRONLY));
	ck_assert_int_eq(log_open(LOG_TO_AUTO, path), LOG_TO_SYSLOG);
	ck_assert_int_eq(pipe(fds), 0);
	writes_to(fds[1]);
	ck_assert_int_eq(log_open(LOG_TO_AUTO, path), LOG_TO_STDERR);
	setenv("JOURNAL_STREAM", "1:2", 1);
	ck_assert_int_eq(log_open(LOG_TO_AUTO, path), LOG_TO_STDERR);
	fstat(STDERR_FILENO, &st);
	snprintf(stream, sizeof(stream), "%llu:%llu",
		 (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	ck_assert_int_eq(log_open(LOG_TO_AUTO, path), LOG_TO_JOURNAL);
	close(fds[0]);
}

TEST(a_line_that_no_daemon_takes_goes_to_standard_error)
{
	int fds[2];
	ssize_t n;

	ck_assert_int_eq(pipe(fds), 0);
	writes_to(fds[1]);
	unlink(path);
	log_open(LOG_TO_JOURNAL, path);
	log_info("still here");
	log_open(LOG_TO_SYSLOG, path);
	log_info("and here");
	n = read(fds[0], got, sizeof(got) - 1);
	got[n < 0 ? 0 : n] = '\0';
	ck_assert_str_eq(got, "still here\nand here\n");
	close(fds[0]);
}

TEST(a_log_outlives_its_terminal)
{
	int master, slave;

	ck_assert_int_eq(openpty(&master, &slave, NULL, NULL, NULL), 0);
	writes_to(slave);
	log_open(LOG_TO_STDERR, path);
	close(master);
	log_info("kept");
	ck_assert_ptr_nonnull(strstr(takes(), "info: kept\n"));
}
