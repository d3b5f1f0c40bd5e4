/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ./gannet-nfs against ./gannetd, over TCP and over RDMA without a device.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/server/tool_run.h"
#include "tests/unit/runner.h"

TEST_CASE(.timeout = 120);

TEST_LOOP(odd_sizes_make_the_round_trip, 0, WAYS)
{
	static const size_t sizes[] = { 0, 1, 511, 4097, 65535, 1048576,
					5000003 };
	const char *from, *back;

	start(_i);
	from = path(d.dir, "from");
	back = path(d.dir, "back");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		make_file(from, sizes[i]);
		ck_assert_msg(TOOL("put", from, url("f")) == 0, "%s", err);
		same(from, path(export, "f"));
		ck_assert_msg(TOOL("get", url("f"), back) == 0, "%s", err);
		same(from, back);
		ck_assert_int_eq(TOOL("cat", url("f")), 0);
		same(from, outfile);
		ck_assert_str_eq(err, "");
	}
	ck_assert_int_eq(TOOL("put", "-b", "1000", "-d", "3", from, url("g")),
			 0);
	same(from, path(export, "g"));
	ck_assert_int_eq(TOOL("get", "-b", "3000", "-d", "100", url("g"),
			      back), 0);
	same(from, back);
	/* Into directories, under the same name. */
	ck_assert_int_eq(mkdir(path(export, "dir"), 0777), 0);
	ck_assert_int_eq(TOOL("put", from, url("dir")), 0);
	same(from, path(export, "dir/from"));
	ck_assert_int_eq(TOOL("get", url("g"), d.dir), 0);
	same(from, path(d.dir, "g"));
	/* From a pipe, to one. */
	ck_assert_int_eq(tool((const char *const[]){ "put", "-", url("p"),
						     NULL }, from), 0);
	same(from, path(export, "p"));
	stop();
}

TEST_LOOP(holes_stay_holes, 0, WAYS)
{
	const char *from, *back;
	struct stat st;
	int fd;

	start(_i);
	from = path(export, "sparse");
	back = path(d.dir, "back");
	make_file(from, 5000);
	ck_assert_int_eq(truncate(from, 16 << 20), 0);
	fd = open(from, O_WRONLY);
	ck_assert_int_eq(pwrite(fd, "middle", 6, 5 << 20), 6);
	close(fd);
	ck_assert_int_eq(stat(from, &st), 0);
	ck_assert_int_lt(st.st_blocks, (8 << 20) / 512);
	ck_assert_int_eq(TOOL("get", url("sparse"), back), 0);
	same(from, back);
	ck_assert_int_eq(stat(back, &st), 0);
	ck_assert_int_lt(st.st_blocks, (8 << 20) / 512);
	ck_assert_int_eq(TOOL("cat", url("sparse")), 0);
	same(from, outfile);
	stop();
}

TEST_LOOP(a_big_directory_is_listed_whole_and_in_order, 0, WAYS)
{
	enum { N = 3001 };
	char name[64], *line;
	unsigned n = 0;

	start(_i);
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "a-file-with-a-name-%05d",
			 (i * 7919) % N);
		make_file(path(export, name), 0);
	}
	make_file(path(export, ".hidden"), 0);
	ck_assert_msg(TOOL("ls", url("")) == 0, "%s", err);
	for (line = strtok(out, "\n"); line; line = strtok(NULL, "\n"), n++) {
		snprintf(name, sizeof(name), "a-file-with-a-name-%05u", n);
		ck_assert_str_eq(line, name);
	}
	ck_assert_uint_eq(n, N);
	ck_assert_int_eq(TOOL("ls", "-a", url("")), 0);
	ck_assert_ptr_nonnull(strstr(out, "\n.hidden\n"));
	ck_assert_ptr_nonnull(strstr(out, "..\n"));
	stop();
}

TEST_LOOP(attributes_are_told, 0, WAYS)
{
	start(_i);
	make_file(path(export, "file"), 1234);
	chmod(path(export, "file"), 04751);
	ck_assert_int_eq(symlink("file", path(export, "link")), 0);
	ck_assert_int_eq(TOOL("ls", "-l", url("")), 0);
	ck_assert_ptr_nonnull(strstr(out, "-rwsr-x--x"));
	ck_assert_ptr_nonnull(strstr(out, " 1234 "));
	ck_assert_ptr_nonnull(strstr(out, "link -> file\n"));
	ck_assert_int_eq(TOOL("ls", url("file")), 0);
	ck_assert_str_eq(out, "file\n");
	ck_assert_int_eq(TOOL("stat", url("file")), 0);
	ck_assert_ptr_nonnull(strstr(out, "Type: regular file\n"));
	ck_assert_ptr_nonnull(strstr(out, "Size: 1234\n"));
	ck_assert_ptr_nonnull(strstr(out, "Mode: 4751 "));
	ck_assert_int_eq(TOOL("stat", url("link")), 0);
	ck_assert_ptr_nonnull(strstr(out, "Type: symbolic link\n"));
	ck_assert_int_eq(TOOL("stat", url("")), 0);
	ck_assert_ptr_nonnull(strstr(out, "Type: directory\n"));
	stop();
}

/* As ls(1): -h, -d and -1 mean the same here. */
TEST(ls_takes_the_options_of_ls)
{
	static const struct {
		off_t size;
		const char *shown;
	} sizes[] = {
		{ 0, " 0 " }, { 1023, " 1023 " }, { 1024, " 1.0K " },
		{ 1025, " 1.1K " }, { 10188, " 10K " }, { 10 << 10, " 10K " },
		{ (10 << 10) + 1, " 11K " }, { (1 << 20) - 1, " 1.0M " },
		{ 3 << 29, " 1.5G " },
	};

	start(WAY_TCP);
	make_file(path(export, "file"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		ck_assert_int_eq(truncate(path(export, "file"),
					  sizes[i].size), 0);
		ck_assert_int_eq(TOOL("ls", "-lh1", url("")), 0);
		ck_assert_msg(strstr(out, sizes[i].shown), "no '%s' in %s",
			      sizes[i].shown, out);
	}
	ck_assert_int_eq(mkdir(path(export, "dir"), 0700), 0);
	make_file(path(export, "dir/inside"), 0);
	ck_assert_int_eq(TOOL("ls", "-d", url("dir")), 0);
	ck_assert_str_eq(out, "dir\n");
	ck_assert_int_eq(TOOL("ls", "-ld", url("dir")), 0);
	ck_assert_ptr_nonnull(strstr(out, "drwx------"));
	ck_assert_int_eq(TOOL("df", "-h", url("")), 0);
	ck_assert_ptr_nonnull(strstr(out, "bytes "));
	ck_assert_int_eq(TOOL("ls", "--help"), 0);
	ck_assert_ptr_nonnull(strstr(out, "usage: gannet-nfs"));
	ck_assert_int_eq(TOOL("ls", "--depth", "4", url("")), 0);
	stop();
}

TEST_LOOP(links_are_followed_where_they_can_be, 0, WAYS)
{
	const char *from;

	start(_i);
	from = path(d.dir, "from");
	make_file(from, 100);
	mkdir(path(export, "a"), 0777);
	mkdir(path(export, "a/b"), 0777);
	make_file(path(export, "a/b/file"), 777);
	ck_assert_int_eq(symlink("a/b", path(export, "short")), 0);
	ck_assert_int_eq(symlink("b/../b/file", path(export, "a/deep")), 0);
	ck_assert_int_eq(symlink("loop", path(export, "loop")), 0);
	ck_assert_int_eq(symlink("/etc/passwd", path(export, "away")), 0);
	ck_assert_int_eq(symlink("nowhere", path(export, "new")), 0);
	ck_assert_msg(TOOL("cat", url("short/file")) == 0, "%s", err);
	same(outfile, path(export, "a/b/file"));
	ck_assert_int_eq(TOOL("cat", url("a/deep")), 0);
	same(outfile, path(export, "a/b/file"));
	/* The local name is the user's choice, not the server's. */
	ck_assert_int_eq(TOOL("get", url("a/deep"), d.dir), 0);
	same(path(d.dir, "deep"), path(export, "a/b/file"));
	ck_assert_int_eq(TOOL("cat", url("loop")), 1);
	ck_assert_int_eq(TOOL("cat", url("away")), 1);
	ck_assert_ptr_nonnull(strstr(err, "/etc/passwd"));
	ck_assert_int_eq(symlink("/\033[2J", path(export, "clear")), 0);
	ck_assert_int_eq(TOOL("cat", url("clear")), 1);
	ck_assert_ptr_nonnull(strstr(err, "link to /\\033[2J,"));
	ck_assert_int_eq(TOOL("put", from, url("new")), 0);
	same(from, path(export, "nowhere"));
	stop();
}

TEST_LOOP(an_error_names_its_cause, 0, WAYS)
{
	const char *from;

	start(_i);
	from = path(d.dir, "from");
	make_file(from, 10);
	mkdir(path(export, "dir"), 0777);
	ck_assert_int_eq(TOOL("stat", url("missing")), 1);
	/* A failed try of a URL's longer prefix is not a refusal. */
	ck_assert(daemon_logged(&d, "/missing by "));
	ck_assert_ptr_nonnull(strstr(err, "NFS3ERR_NOENT"));
	ck_assert_int_eq(TOOL("cat", url("dir")), 1);
	ck_assert_ptr_nonnull(strstr(err, "NFS3ERR_ISDIR"));
	ck_assert_int_eq(TOOL("put", from, url("no/such/dir")), 1);
	ck_assert_ptr_nonnull(strstr(err, "NFS3ERR_NOENT"));
	ck_assert_int_eq(mkfifo(path(export, "pipe"), 0666), 0);
	ck_assert_int_eq(TOOL("cat", url("pipe")), 1);
	ck_assert_ptr_nonnull(strstr(err, ": not a regular file"));
	make_file(path(export, "plain"), 1);
	ck_assert_int_eq(TOOL("stat", url("plain/below")), 1);
	ck_assert_ptr_nonnull(strstr(err, "NFS3ERR_NOTDIR"));
	ck_assert_int_eq(TOOL("put", path(d.dir, "missing"), url("x")), 1);
	ck_assert_ptr_nonnull(strstr(err, "No such file"));
	ck_assert_int_eq(TOOL("put", d.dir, url("x")), 1);
	ck_assert_int_eq(TOOL("get", url("plain"), "/no/such/dir"), 1);
	snprintf(base, sizeof(base), "tcp://127.0.0.1:%u/elsewhere",
		 d.tcp_port);
	ck_assert_int_eq(TOOL("ls", url("")), 1);
	ck_assert_ptr_nonnull(strstr(err, "MNT3ERR_"));
	ck_assert(daemon_logged(&d, "mount of /elsewhere refused to "));
	stop();
}

/* The tool also tries each shorter part of the path. */
TEST(a_refused_mount_is_one_line_in_the_servers_log)
{
	char line[2048];
	unsigned n = 0;
	FILE *f;

	start(WAY_TCP);
	snprintf(base, sizeof(base), "tcp://127.0.0.1:%u/else/where/it/is",
		 d.tcp_port);
	ck_assert_int_eq(TOOL("ls", url("")), 1);
	ck_assert(daemon_logged(&d, "mount of /else/where/it/is refused to "));
	/* Lines come in order: all lines from before the signal are there. */
	kill(d.pid, SIGUSR1);
	ck_assert(daemon_logged(&d, "calls accepted"));
	f = fopen(path(d.dir, "log"), "r");
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "refused to") != NULL;
	fclose(f);
	ck_assert_uint_eq(n, 1);
	stop();
}

TEST_LOOP(a_put_that_fails_names_what_is_left, 0, WAYS)
{
	const struct rlimit small = { 1 << 20, 1 << 20 };

	signal(SIGXFSZ, SIG_IGN);
	start(_i);
	make_file(path(d.dir, "from"), 3 << 20);
	ck_assert_int_eq(prlimit(d.pid, RLIMIT_FSIZE, &small, NULL), 0);
	ck_assert_int_eq(TOOL("put", path(d.dir, "from"), url("")), 1);
	ck_assert_ptr_nonnull(strstr(err, "NFS3ERR_FBIG"));
	ck_assert_ptr_nonnull(strstr(err, "from is not complete on the "
					  "server"));
	stop();
}

TEST_LOOP(an_unreadable_source_replaces_nothing, 0, WAYS)
{
	const char *mine;
	struct stat st;

	start(_i);
	mine = path(d.dir, "mine");
	make_file(mine, 10);
	make_file(path(export, "theirs"), 20);
	ck_assert_int_eq(chmod(path(export, "theirs"), 0200), 0);
	ck_assert_int_eq(TOOL("get", "-u", "1234", "-g", "1234",
			      url("theirs"), mine), 1);
	ck_assert_ptr_nonnull(strstr(err, "NFS3ERR_ACCES"));
	ck_assert_ptr_null(strstr(err, "not complete"));
	ck_assert_int_eq(stat(mine, &st), 0);
	ck_assert_int_eq(st.st_size, 10);
	stop();
}

TEST_LOOP(a_read_only_export_takes_nothing, 0, WAYS)
{
	start_with(_i, "ro,insecure,no_root_squash");
	make_file(path(d.dir, "from"), 10);
	ck_assert_int_eq(TOOL("put", path(d.dir, "from"), url("x")), 1);
	ck_assert_ptr_nonnull(strstr(err, "NFS3ERR_ROFS"));
	stop();
}

TEST(wrong_usage_is_told_apart)
{
	start(WAY_TCP);
	ck_assert_int_eq(TOOL("--help"), 0);
	ck_assert_ptr_nonnull(strstr(out, "mount-check"));
	ck_assert_int_eq(TOOL("--version"), 0);
	ck_assert_int_eq(TOOL("ls"), 2);
	ck_assert_int_eq(TOOL("ls", url(""), url("")), 2);
	ck_assert_int_eq(TOOL("rename", url("")), 2);
	ck_assert_int_eq(TOOL("--no-such-option"), 2);
	ck_assert_ptr_nonnull(strstr(err, "gannet-nfs: unrecognized"));
	ck_assert_int_eq(TOOL("stat", "-d", "0", url("")), 2);
	ck_assert_str_eq(err, "gannet-nfs: --depth 0: expected a number from "
			 "1 to 1024\n");
	ck_assert_int_eq(TOOL("ls", "--depth", "7x", url("")), 2);
	ck_assert_int_eq(TOOL("ls", "--inline", "65537", url("")), 2);
	ck_assert_int_eq(TOOL("ls", "http://127.0.0.1/x"), 2);
	ck_assert_ptr_nonnull(strstr(err, "not a URL"));
	/* No server there: not the same as a refusal. */
	ck_assert_int_eq(TOOL("ls", "-m", "1", "tcp://127.0.0.1:1/x"), 3);
	ck_assert_int_eq(TOOL("ls", "rdma+iwarp://127.0.0.1:1/x?mountport=1"),
			 3);
	snprintf(base, sizeof(base), "rdma+iwarp://127.0.0.1:1%s", export);
	ck_assert_int_eq(TOOL("ls", url("")), 3);
	ck_assert_ptr_nonnull(strstr(err, "refused"));
	ck_assert_int_eq(TOOL("ls", "tcp://no-such-host.invalid/x"), 3);
	ck_assert_ptr_nonnull(strstr(err, "host 'no-such-host.invalid': "));
	stop();
}

/* A server that accepts connections and never answers. */
TEST(the_timeout_is_for_mount_too)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char mute[64];

	start(WAY_TCP);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sin, len), 0);
	ck_assert_int_eq(listen(fd, 5), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
	snprintf(mute, sizeof(mute), "tcp://127.0.0.1/x?mountport=%u",
		 ntohs(sin.sin_port));
	IN_LESS_THAN(7000, ck_assert_int_eq(TOOL("ls", "-t", "1", mute), 3));
	ck_assert_ptr_nonnull(strstr(err, "timed out"));
	close(fd);
	stop();
}

/* A mail server, say, which speaks first. */
static void *greet(void *arg)
{
	static const char hello[] = "220 mail.example.org ESMTP\r\n";
	int fd, listener = *(int *)arg;
	char byte;

	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		send(fd, hello, strlen(hello), MSG_NOSIGNAL);
		while (recv(fd, &byte, 1, 0) > 0)
			;
		close(fd);
	}
	return NULL;
}

TEST_LOOP(a_port_of_another_service_is_told_as_such, 0, WAYS)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const char *scheme = _i == WAY_TCP ? "tcp" : "rdma+iwarp";
	pthread_t thread;
	char at[300];

	start(_i);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sin, len), 0);
	ck_assert_int_eq(listen(fd, 5), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
	pthread_create(&thread, NULL, greet, &fd);
	snprintf(at, sizeof(at), "%s://127.0.0.1:%u%s?mountport=%u", scheme,
		 ntohs(sin.sin_port), export, d.tcp_port);
	ck_assert_int_eq(TOOL("ls", at), 3);
	ck_assert_ptr_nonnull(strstr(err, "is the port right?"));
	snprintf(at, sizeof(at), "%s://127.0.0.1%s?mountport=%u", scheme,
		 export, ntohs(sin.sin_port));
	ck_assert_int_eq(TOOL("ls", at), 3);
	ck_assert_ptr_nonnull(strstr(err, "the MOUNT service: what came is "));
	/* MOUNT at the same port, whatever rpcbind would be. */
	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u%s", ntohs(sin.sin_port),
		 export);
	ck_assert_int_eq(TOOL("ls", at), 3);
	ck_assert_ptr_nonnull(strstr(err, "the MOUNT service: what came is "));
	shutdown(fd, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(fd);
	stop();
}

TEST_LOOP(a_mount_check_tells_what_was_negotiated, 0, WAYS)
{
	static const char *const both[] = {
		"filehandle: ", "read size:       1.0 MiB at most",
		"round trip: ", "mount with: ", export,
	};
	static const char *const rdma[] = {
		"on iwarp", "inline size:     4096 bytes sent, 4096 received",
		"credits: ", "read depth: ", "memory handles:  each for",
		"RFC 8797", "proto=rdma",
	};

	start(_i);
	ck_assert_msg(TOOL("mount-check", url("")) == 0, "%s", err);
	for (size_t i = 0; i < sizeof(both) / sizeof(*both); i++)
		ck_assert_msg(strstr(out, both[i]), "%s not in %s", both[i],
			      out);
	for (size_t i = 0; _i == WAY_IWARP &&
	     i < sizeof(rdma) / sizeof(*rdma); i++)
		ck_assert_msg(strstr(out, rdma[i]), "%s not in %s", rdma[i],
			      out);
	stop();
}

#define OPTIONS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* A mount-check with these options says @text. */
static void checks(const char *text, const char *const options[])
{
	const char *args[5] = { "mount-check", url("") };

	for (size_t i = 0; options[i]; i++)
		args[2 + i] = options[i];
	ck_assert_msg(tool(args, NULL) == 0, "%s", err);
	ck_assert_msg(strstr(out, text), "no '%s' in %s", text, out);
}

TEST(sides_use_the_smaller_inline_size)
{
	start_as(WAY_IWARP, "[rdma]\ninline = 9000\n");
	checks("8192 bytes sent, 8192 received", OPTIONS("-i", "65536"));
	checks("4096 bytes sent, 4096 received", OPTIONS(NULL));
	checks("1024 bytes sent, 1024 received", OPTIONS("--inline", "1024"));
	checks("1024 bytes sent, 1024 received",
	       OPTIONS("--no-private", "--inline=8192"));
	checks("1024 bytes sent, 1024 received", OPTIONS("-P"));
	stop();
}

/* The mount command, as far as the directory to mount at. */
static void advises(const char *fmt, ...)
{
	char want[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(want, sizeof(want), fmt, ap);
	va_end(ap);
	ck_assert_msg(strstr(out, want), "no '%s' in %s", want, out);
}

TEST_LOOP(a_mount_check_ends_with_a_command_that_works, 0, WAYS)
{
	const char *six = _i == WAY_TCP ? "tcp6" : "rdma6";
	uint16_t port;

	start_with(_i, "rw,insecure) ::1(rw,insecure");
	port = _i == WAY_TCP ? d.tcp_port : d.rdma_port;
	ck_assert_int_eq(TOOL("mount-check", url("")), 0);
	advises("mount -t nfs -o vers=3,proto=%s,port=%u,mountport=%u,"
		"mountproto=tcp,nolock 127.0.0.1:%s DIR\n",
		_i == WAY_TCP ? "tcp" : "rdma", port, d.tcp_port, export);
	if (_i == WAY_IWARP)
		advises("no RDMA over loopback");
	ck_assert_int_eq(mkdir(path(export, "it's a"), 0777), 0);
	ck_assert_int_eq(TOOL("mount-check", url("it's%20a")), 0);
	advises("nolock 127.0.0.1:'%s/it'\\''s a' DIR\n", export);
	snprintf(base, sizeof(base), "%s://[::1]:%u%s",
		 _i == WAY_TCP ? "nfs" : "rdma+iwarp", port, export);
	if (TOOL("mount-check", url("")) == 0)	/* else no IPv6 */
		advises("proto=%s,port=%u,mountport=%u,mountproto=tcp6,nolock "
			"[::1]:%s DIR\n", six, port, d.tcp_port, export);
	stop();
}

TEST_LOOP(progress_is_shown_when_asked_for, 0, WAYS)
{
	start(_i);
	make_file(path(d.dir, "from"), 3000000);
	ck_assert_int_eq(TOOL("put", "-p", path(d.dir, "from"), url("x")), 0);
	ck_assert_ptr_nonnull(strstr(err, "100%"));
	ck_assert_int_eq(TOOL("get", "-p", url("x"), path(d.dir, "to")), 0);
	ck_assert_ptr_nonnull(strstr(err, "100%"));
	ck_assert_int_eq(TOOL("get", "-p", "-q", url("x"),
			      path(d.dir, "to")), 0);
	ck_assert_str_eq(err, "");
	stop();
}
