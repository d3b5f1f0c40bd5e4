/* SPDX-License-Identifier: BSD-2-Clause */
/* gannetctl(8) and the socket that it asks. */
#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/server/daemon_run.h"
#include "tests/unit/runner.h"

static struct daemon_run d;
static char path[160];		/* of the socket */
static char out[65536];		/* the output of gannetctl() */

#define ARGS(...)	((const char *const[]){ __VA_ARGS__, NULL })
#define MEM	"--export", "mem:/a *(rw,insecure) 192.0.2.7(ro)"

static void setup(void)
{
	daemon_prepare(&d);
	snprintf(path, sizeof(path), "%s/state/control", d.dir);
}

static void teardown(void)
{
	daemon_clean(&d);
}

TEST_CASE(.setup = setup, .teardown = teardown);

static void starts(void)
{
	ck_assert(daemon_start(&d, ARGS(MEM)));
}

static void ends(void)
{
	daemon_end(&d, SIGTERM);
	ck_assert_int_eq(WEXITSTATUS(d.status), 0);
}

/* Runs it; returns its exit status. */
static int gannetctl(const char *arguments)
{
	char line[300];
	size_t len;
	FILE *f;

	snprintf(line, sizeof(line), "./gannetctl --socket %s %s 2>&1", path,
		 arguments);
	f = popen(line, "r");
	ck_assert_ptr_nonnull(f);
	len = fread(out, 1, sizeof(out) - 1, f);
	out[len] = '\0';
	return WEXITSTATUS(pclose(f));
}

static void prints(const char *arguments, const char *text)
{
	ck_assert_int_eq(gannetctl(arguments), 0);
	ck_assert_msg(strstr(out, text), "no '%s' in: %s", text, out);
}

/* Sends these bytes to the socket and ends; the answer is in out. */
static void sends(const char *bytes, size_t len)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	size_t at = 0;
	ssize_t n;

	strcpy(un.sun_path, path);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	/* The server can refuse it before it has read all of it. */
	send(fd, bytes, len, MSG_NOSIGNAL);
	shutdown(fd, SHUT_WR);
	while ((n = recv(fd, out + at, sizeof(out) - 1 - at, 0)) > 0)
		at += (size_t)n;
	out[at] = '\0';
	close(fd);
}

static void refuses(const char *request, const char *error)
{
	sends(request, strlen(request));
	ck_assert_msg(strstr(out, "\"error\"") && strstr(out, error), "%s",
		      out);
}

#define HANDLE	"0123456789abcdef0123456789abcdef00112233"

/* The journal of a server at debug. */
static void make_journal(void)
{
	static char paths[4096];
	char name[200];
	FILE *f;

	snprintf(name, sizeof(name), "%s/journalctl", d.dir);
	f = fopen(name, "w");
	ck_assert_ptr_nonnull(f);
	fputs("#!/bin/sh\necho 'handle " HANDLE " is stale'\n"
	      "echo 'api_token = swordfish'\necho '/srv=1 harmless'\n"
	      "echo 'name=admin,secret=swordfish'\n"
	      "echo 'a password: swordfish'\n", f);
	fclose(f);
	ck_assert_int_eq(chmod(name, 0700), 0);
	snprintf(paths, sizeof(paths), "%s:%s", d.dir, getenv("PATH"));
	setenv("PATH", paths, 1);
}

TEST(a_support_bundle_is_listed_before_it_is_written)
{
	char name[160], line[200], hex[16] = "";
	unsigned char key[4];
	struct stat st;
	FILE *f;

	starts();
	make_journal();
	snprintf(name, sizeof(name), "%s/bundle", d.dir);
	prints("support-bundle", "\nnothing is written without -w FILE\n");
	ck_assert_int_lt(access(name, F_OK), 0);
	snprintf(line, sizeof(line), "support-bundle -w %s", name);
	prints(line, "counters ");
	ck_assert_int_eq(stat(name, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
	f = fopen(name, "r");
	out[fread(out, 1, sizeof(out) - 1, f)] = '\0';
	fclose(f);
	for (const char *const *part = ARGS("versions", "status", "settings",
		"exports", "counters", "waits", "log"); *part; part++) {
		snprintf(line, sizeof(line), "==== %s\n", *part);
		ck_assert_msg(strstr(out, line), "no %s in %s", *part, out);
	}
	ck_assert_ptr_nonnull(strstr(out, "\"mem\""));
	ck_assert_ptr_nonnull(strstr(out, "/srv=1 harmless"));
	ck_assert_ptr_null(strstr(out, HANDLE));
	ck_assert_ptr_null(strstr(out, "swordfish"));
	snprintf(line, sizeof(line), "%s/state/filehandle.key", d.dir);
	f = fopen(line, "r");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fread(key, 1, sizeof(key), f), sizeof(key));
	fclose(f);
	snprintf(hex, sizeof(hex), "%02x%02x%02x%02x", key[0], key[1], key[2],
		 key[3]);
	ck_assert_ptr_null(strstr(out, hex));
	/* An existing file belongs to someone. */
	snprintf(line, sizeof(line), "support-bundle -w %s", name);
	ck_assert_int_eq(gannetctl(line), 1);
	ck_assert_ptr_nonnull(strstr(out, "File exists"));
	ends();
	ck_assert_int_eq(unlink(name), 0);
	prints(line, "written to ");
	f = fopen(name, "r");
	out[fread(out, 1, sizeof(out) - 1, f)] = '\0';
	fclose(f);
	ck_assert_ptr_nonnull(strstr(out, "(does gannetd run with this"));
	unlink(name);
	snprintf(line, sizeof(line), "%s/journalctl", d.dir);
	unlink(line);
}

/* Answers all that comes to the socket with an error, until it is killed. */
static pid_t refuses_all(void)
{
	static const char answer[] = "{\"v\": 1, \"error\": \"not to you\"}\n";
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), peer;
	char request[512];
	pid_t pid;

	snprintf(path, sizeof(path), "%s/refuses", d.dir);
	strcpy(un.sun_path, path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	ck_assert_int_eq(listen(fd, 16), 0);
	pid = fork();
	while (pid == 0 && (peer = accept(fd, NULL, NULL)) >= 0) {
		if (recv(peer, request, sizeof(request), 0) > 0)
			send(peer, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
		close(peer);
	}
	close(fd);
	return pid;
}

TEST(a_support_bundle_says_why_a_part_is_missing)
{
	pid_t pid = refuses_all();
	char name[160], line[200];
	FILE *f;

	make_journal();
	snprintf(name, sizeof(name), "%s/bundle", d.dir);
	snprintf(line, sizeof(line), "support-bundle -w %s", name);
	prints(line, "written to ");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	f = fopen(name, "r");
	out[fread(out, 1, sizeof(out) - 1, f)] = '\0';
	fclose(f);
	ck_assert_ptr_nonnull(strstr(out, "==== status\nnot to you\n"));
	ck_assert_ptr_null(strstr(out, "does not answer"));
	unlink(name);
	unlink(path);
	snprintf(line, sizeof(line), "%s/journalctl", d.dir);
	unlink(line);
}

/* The log says why it has ended. */
TEST(a_support_bundle_of_a_server_that_does_not_run_is_written)
{
	char name[160], line[200];
	FILE *f;

	make_journal();
	ck_assert_int_eq(gannetctl("status"), 1);
	snprintf(name, sizeof(name), "%s/bundle", d.dir);
	snprintf(line, sizeof(line), "support-bundle -w %s", name);
	prints(line, "written to ");
	f = fopen(name, "r");
	ck_assert_ptr_nonnull(f);
	out[fread(out, 1, sizeof(out) - 1, f)] = '\0';
	fclose(f);
	ck_assert_ptr_nonnull(strstr(out, path));
	ck_assert_ptr_nonnull(strstr(out, "/srv=1 harmless"));
	unlink(name);
	snprintf(line, sizeof(line), "%s/journalctl", d.dir);
	unlink(line);
}

TEST(each_command_prints_the_state_of_the_server)
{
	char text[64];

	starts();
	ck_assert(daemon_answers(&d));
	snprintf(text, sizeof(text), "process %d, up 0 d", d.pid);
	prints("status", text);
	prints("status", "exports          2 rules\n");
	prints("status", "replies          0 remembered, in 0 KiB of ");
	prints("exports", "/a\t192.0.2.7(ro,");
	prints("exports", "\t--export\n");
	prints("exports", "# /a is of the kind mem\n");
	prints("stats", "NULL                    1          0");
	prints("waits", "workers of common: 0 of 16 busy, 0 calls wait");
	ends();
}

/* A call that takes less than a microsecond takes some of it all the same. */
TEST(times_of_calls_are_told_below_a_microsecond)
{
	double us = 0;
	char *at;

	starts();
	ck_assert(daemon_answers(&d));
	prints("stats", "NULL                    1          0");
	at = strstr(out, "NULL                    1          0");
	ck_assert_int_eq(sscanf(at, "NULL 1 0 %lf", &us), 1);
	ck_assert_msg(us > 0, "%s", at);
	at = strchr(at, '\n');
	ck_assert_int_eq(at[-2], '.');
	ends();
}

TEST(whom_the_socket_does_not_let_in_is_told_who_may_ask)
{
	int status;
	pid_t pid;

	if (geteuid() != 0)
		return;
	starts();
	pid = fork();
	if (pid == 0) {
		/* 77: other users can't enter the build directory. */
		_exit(setuid(65534) < 0 || access("./gannetctl", X_OK) < 0 ?
		      77 : gannetctl("status") == 1 &&
		      strstr(out, "Permission denied (root, the server's user "
			     "and members of the group gannet may ask)") ?
		      0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_msg(WEXITSTATUS(status) % 77 == 0, "it is let in");
	ends();
}

/* This machine's groups, in a name space of the test's: 4242 is gannet. */
static bool have_group(void)
{
	char groups[96];
	FILE *f;

	snprintf(groups, sizeof(groups), "%s/groups", d.dir);
	f = fopen(groups, "we");
	ck_assert_ptr_nonnull(f);
	fputs("root:x:0:\ngannet:x:4242:\n", f);
	fclose(f);
	/* A user name space may lack the group. */
	return chown(groups, 0, 4242) == 0 && unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount(groups, "/etc/group", NULL, MS_BIND, NULL) == 0;
}

static void check_socket(uid_t uid, gid_t gid, mode_t mode)
{
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_uid, uid);
	ck_assert_uint_eq(st.st_gid, gid);
	ck_assert_uint_eq(st.st_mode & 07777, mode);
	ck_assert_int_eq(gannetctl("status"), 0);
}

TEST(the_group_of_gannetctl_gets_the_socket)
{
	if (!have_group())
		return;
	starts();
	check_socket(0, 4242, 0660);
	ends();
}

TEST(a_user_who_is_not_in_the_group_keeps_the_socket)
{
	if (!have_group())
		return;
	d.uid = 65534;
	ck_assert_int_eq(chmod(d.dir, 0777), 0);
	starts();
	check_socket(65534, 65534, 0600);
	ends();
}

TEST(json_has_what_the_text_says)
{
	json_error_t error;
	json_t *r;

	starts();
	ck_assert_int_eq(gannetctl("--json status"), 0);
	r = json_loads(out, 0, &error);
	ck_assert_ptr_nonnull(r);
	ck_assert_int_eq(json_integer_value(json_object_get(r, "pid")), d.pid);
	ck_assert_int_eq(json_array_size(json_object_get(r, "listeners")), 3);
	json_decref(r);
	ck_assert_int_eq(gannetctl("--json waits"), 0);
	r = json_loads(out, 0, &error);
	ck_assert_ptr_nonnull(r);
	json_decref(r);
	ends();
}

TEST(the_level_of_the_log_changes_at_once)
{
	starts();
	prints("log-level debug", "log level debug");
	ck_assert(daemon_logged(&d, "log level debug"));
	ck_assert_int_eq(gannetctl("log-level loud"), 1);
	ck_assert_ptr_nonnull(strstr(out, "expected err, warn, info or "
				     "debug"));
	ends();
}

TEST(wrong_usage_is_told)
{
	ck_assert_int_eq(gannetctl("nonsense"), 2);
	ck_assert_int_eq(gannetctl(""), 2);
	ck_assert_int_eq(gannetctl("status now"), 2);
	ck_assert_int_eq(gannetctl("log-level"), 2);
	ck_assert_int_eq(gannetctl("status"), 1);
	ck_assert_ptr_nonnull(strstr(out, "does gannetd run"));
}

TEST(requests_that_make_no_sense_are_refused)
{
	char longer[6000];

	starts();
	refuses("\n", "expected one line");
	refuses("status\n", "error");
	refuses("{\"v\":1}\n", "command");
	refuses("{\"v\":2,\"command\":\"status\"}\n", "version 1");
	refuses("{\"v\":1,\"command\":\"shutdown\"}\n", "no such command");
	refuses("{\"v\":1,\"command\":5}\n", "error");
	refuses("{\"v\":1,\"command\":\"status\"}", "expected one line");
	memset(longer, 'x', sizeof(longer));
	sends(longer, sizeof(longer));
	memset(longer, '[', 4000);
	longer[4000] = '\n';
	sends(longer, 4001);
	ck_assert_ptr_nonnull(strstr(out, "error"));
	prints("stats", "control_refused                          9");
	ck_assert(daemon_answers(&d));
	ends();
}

TEST(others_get_no_answer)
{
	struct stat st;
	pid_t pid;
	int status;

	starts();
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & (S_IRWXO), 0);
	if (geteuid() != 0) {
		ends();
		return;
	}
	/* Where the directories let others reach it, the socket does not. */
	ck_assert_int_eq(chmod(d.dir, 0755), 0);
	*strrchr(path, '/') = '\0';
	ck_assert_int_eq(chmod(path, 0755), 0);
	path[strlen(path)] = '/';
	pid = fork();
	if (pid == 0) {
		struct sockaddr_un un = { .sun_family = AF_UNIX };
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		strcpy(un.sun_path, path);
		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(2);
		_exit(connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ends();
}

static int connects(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(un.sun_path, path);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	return fd;
}

/* Half of them have begun a request, and more have than the server has
 * places. */
TEST(clients_that_stall_stop_neither_others_nor_the_end)
{
	int fd[200];

	starts();
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = connects();
		if (i % 2)
			ck_assert_int_eq(send(fd[i], "{", 1, MSG_NOSIGNAL), 1);
		if (i == 0 || i == 20 || i == ARRAY_SIZE(fd) - 1)
			prints("status", "gannetd ");
	}
	ends();
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
}

TEST(a_request_may_come_in_pieces_beside_others)
{
	static const char request[] = "{\"v\":1,\"command\":\"status\"}\n";
	char answer[8] = "";
	int fd;

	starts();
	fd = connects();
	for (unsigned i = 0; i < sizeof(request) - 1; i++) {
		ck_assert_int_eq(send(fd, request + i, 1, MSG_NOSIGNAL), 1);
		if (i == 5)
			prints("status", "gannetd ");
	}
	ck_assert_int_eq(recv(fd, answer, 5, MSG_WAITALL), 5);
	ck_assert_str_eq(answer, "{\"v\":");
	close(fd);
	ends();
}

TEST(a_file_in_the_place_of_the_socket_stays)
{
	char file[160];
	struct stat st;
	FILE *f;

	snprintf(file, sizeof(file), "%s/important", d.dir);
	f = fopen(file, "w");
	ck_assert_ptr_nonnull(f);
	fclose(f);
	ck_assert(daemon_start(&d, ARGS(MEM, "--control", file)));
	ck_assert(daemon_logged(&d, "gannetctl finds no socket"));
	ck_assert(daemon_answers(&d));
	ends();
	ck_assert_int_eq(stat(file, &st), 0);
	ck_assert(S_ISREG(st.st_mode));
}

TEST(an_export_that_can_not_be_mounted_is_shown_with_the_reason)
{
	ck_assert(daemon_start(&d, ARGS(MEM, "--export",
					"/no/such/directory *")));
	prints("exports", "# /no/such/directory is not exported now: there is "
	       "no such directory\n");
	ck_assert_ptr_null(strstr(out, "does not answer"));
	ends();
}

/* Of all commands that it lists. */
TEST(each_command_explains_itself)
{
	char list[sizeof(out)], name[32], line[64], *at = list;
	unsigned n = 0;

	ck_assert_int_eq(gannetctl("--help"), 0);
	memcpy(list, out, sizeof(list));
	for (; (at = strstr(at, "\n  ")); at++) {
		if (at[3] < 'a' || at[3] > 'z')
			continue;
		sscanf(at + 3, "%31[a-z-]", name);
		snprintf(line, sizeof(line), "%s --help", name);
		ck_assert_msg(gannetctl(line) == 0, "%s: %s", line, out);
		ck_assert_msg(strncmp(out, "Usage: gannetctl ", 17) == 0,
			      "%s: %s", line, out);
		n++;
	}
	ck_assert_uint_ge(n, 16);
}

TEST(the_socket_of_a_server_that_was_killed_is_taken_over)
{
	struct stat st;

	starts();
	daemon_end(&d, SIGKILL);
	ck_assert_int_eq(stat(path, &st), 0);
	starts();
	prints("status", "gannetd ");
	ends();
	ck_assert_int_ne(stat(path, &st), 0);
}
