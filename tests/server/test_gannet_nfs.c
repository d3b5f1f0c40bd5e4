/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ./gannet-nfs against ./gannetd, over TCP and over RDMA without a device.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/server/daemon_run.h"

enum way { WAY_TCP, WAY_IWARP, WAYS };

static struct daemon_run d;
static char export[128], outfile[128], errfile[128];
static char base[256];
/* What the tool printed last. */
static char *out, *err;

static void make_file(const char *path, size_t size)
{
	uint32_t x = (uint32_t)size + 1;
	uint8_t *mem = malloc(size + 1);
	int fd;

	for (size_t i = 0; i < size; i++) {
		x = x * 1664525 + 1013904223;
		mem[i] = (uint8_t)(x >> 24);
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, mem, size), (ssize_t)size);
	close(fd);
	free(mem);
}

static char *slurp(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	char *mem;

	ck_assert_msg(fd >= 0, "%s is not there", path);
	fstat(fd, &st);
	mem = malloc((size_t)st.st_size + 1);
	ck_assert_int_eq(read(fd, mem, (size_t)st.st_size), st.st_size);
	mem[st.st_size] = '\0';
	close(fd);
	if (len)
		*len = (size_t)st.st_size;
	return mem;
}

static void same(const char *a, const char *b)
{
	size_t n, m;
	char *x = slurp(a, &n), *y = slurp(b, &m);

	ck_assert_uint_eq(n, m);
	ck_assert_int_eq(memcmp(x, y, n), 0);
	free(x);
	free(y);
}

/* Runs it with up to five arguments; returns its exit code. */
static int tool(const char *const args[], const char *in)
{
	const char *argv[12] = { "gannet-nfs" };
	int status, fd;
	pid_t pid;

	for (int i = 0; args[i]; i++)
		argv[i + 1] = args[i];
	pid = fork();
	if (pid == 0) {
		alarm(60);
		fd = open(outfile, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		dup2(fd, STDOUT_FILENO);
		fd = open(errfile, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		dup2(fd, STDERR_FILENO);
		fd = open(in ? in : "/dev/null", O_RDONLY);
		dup2(fd, STDIN_FILENO);
		execv("./gannet-nfs", (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	free(out);
	free(err);
	out = slurp(outfile, NULL);
	err = slurp(errfile, NULL);
	return WEXITSTATUS(status);
}

#define TOOL(...) tool((const char *const[]){ __VA_ARGS__, NULL }, NULL)

/* The URL of a name in the export. */
static const char *url(const char *name)
{
	static char text[64][512];
	static unsigned i;
	char *t = text[i++ % 64];

	snprintf(t, sizeof(text[0]), "%s%s%s?mountport=%u", base,
		 *name ? "/" : "", name, d.tcp_port);
	return t;
}

/* A path in the test's own directory, or in the export. */
static const char *path(const char *dir, const char *name)
{
	static char text[64][512];
	static unsigned i;
	char *t = text[i++ % 64];

	snprintf(t, sizeof(text[0]), "%s/%s", dir, name);
	return t;
}

static void set_base(int way, uint16_t port)
{
	if (way == WAY_TCP)
		snprintf(base, sizeof(base), "tcp://127.0.0.1:%u%s",
			 port ? port : d.tcp_port, export);
	else
		snprintf(base, sizeof(base), "rdma+iwarp://127.0.0.1:%u%s",
			 port ? port : d.rdma_port, export);
}

static void start_with(int way, const char *opts)
{
	char line[256];

	daemon_prepare(&d);
	snprintf(export, sizeof(export), "%s/export", d.dir);
	snprintf(outfile, sizeof(outfile), "%s/out", d.dir);
	snprintf(errfile, sizeof(errfile), "%s/err", d.dir);
	ck_assert_int_eq(mkdir(export, 0777), 0);
	snprintf(line, sizeof(line), "%s 127.0.0.1(%s)", export, opts);
	ck_assert(daemon_start(&d, (const char *const[]){
		"--rdma", "iwarp", "--export", line, NULL }));
	set_base(way, 0);
}

static void start(int way)
{
	start_with(way, "rw,insecure,no_root_squash");
}

static void stop(void)
{
	free(out);
	free(err);
	out = err = NULL;
	daemon_end(&d, SIGTERM);
	daemon_clean(&d);
}

START_TEST(odd_sizes_make_the_round_trip)
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
END_TEST

START_TEST(a_big_directory_is_listed_whole_and_in_order)
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
END_TEST

START_TEST(attributes_are_told)
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
END_TEST

START_TEST(links_are_followed_where_they_can_be)
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
	ck_assert_int_eq(TOOL("cat", url("loop")), 1);
	ck_assert_int_eq(TOOL("cat", url("away")), 1);
	ck_assert_ptr_nonnull(strstr(err, "/etc/passwd"));
	ck_assert_int_eq(TOOL("put", from, url("new")), 0);
	same(from, path(export, "nowhere"));
	stop();
}
END_TEST

START_TEST(what_goes_wrong_is_named)
{
	const char *from;

	start(_i);
	from = path(d.dir, "from");
	make_file(from, 10);
	mkdir(path(export, "dir"), 0777);
	ck_assert_int_eq(TOOL("stat", url("missing")), 1);
	ck_assert_ptr_nonnull(strstr(err, "NFS3ERR_NOENT"));
	ck_assert_int_eq(TOOL("cat", url("dir")), 1);
	ck_assert_ptr_nonnull(strstr(err, "NFS3ERR_ISDIR"));
	ck_assert_int_eq(TOOL("put", from, url("no/such/dir")), 1);
	ck_assert_ptr_nonnull(strstr(err, "NFS3ERR_NOENT"));
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
	stop();
}
END_TEST

START_TEST(a_read_only_export_takes_nothing)
{
	start_with(_i, "ro,insecure,no_root_squash");
	make_file(path(d.dir, "from"), 10);
	ck_assert_int_eq(TOOL("put", path(d.dir, "from"), url("x")), 1);
	ck_assert_ptr_nonnull(strstr(err, "NFS3ERR_ROFS"));
	stop();
}
END_TEST

START_TEST(wrong_usage_is_told_apart)
{
	start(WAY_TCP);
	ck_assert_int_eq(TOOL("--help"), 0);
	ck_assert_ptr_nonnull(strstr(out, "mount-check"));
	ck_assert_int_eq(TOOL("--version"), 0);
	ck_assert_int_eq(TOOL("ls"), 2);
	ck_assert_int_eq(TOOL("ls", url(""), url("")), 2);
	ck_assert_int_eq(TOOL("rm", url("")), 2);
	ck_assert_int_eq(TOOL("--no-such-option"), 2);
	ck_assert_ptr_nonnull(strstr(err, "gannet-nfs: unrecognized"));
	ck_assert_int_eq(TOOL("ls", "-d", "0", url("")), 2);
	ck_assert_str_eq(err, "gannet-nfs: --depth 0: expected a number from "
			 "1 to 1024\n");
	ck_assert_int_eq(TOOL("ls", "--depth", "7x", url("")), 2);
	ck_assert_int_eq(TOOL("ls", "http://127.0.0.1/x"), 2);
	ck_assert_ptr_nonnull(strstr(err, "not a URL"));
	/* Nobody there: not the same as a refusal. */
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
END_TEST

START_TEST(a_mount_check_tells_what_was_negotiated)
{
	static const char *const both[] = {
		"filehandle: ", "read size:       1.0 MiB at most",
		"round trip: ", "mount with: ", export,
	};
	static const char *const rdma[] = {
		"on iwarp", "inline size:     4096 bytes sent, 4096 received",
		"credits: ", "read depth: ", "memory handles:  STags",
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
END_TEST

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

START_TEST(a_mount_check_ends_with_a_command_that_works)
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
	if (TOOL("mount-check", url("")) == 0)	/* else there is no IPv6 */
		advises("proto=%s,port=%u,mountport=%u,mountproto=tcp6,nolock "
			"[::1]:%s DIR\n", six, port, d.tcp_port, export);
	stop();
}
END_TEST

START_TEST(progress_is_shown_when_asked_for)
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
END_TEST

/* ---- a relay that cuts */

struct relay {
	int	    fd;
	uint16_t    port, to;
	size_t	    cut_after;	/* bytes of a connection, both ways */
	unsigned    cuts;	/* so many connections */
	atomic_uint connections;
	pthread_t   thread;
};

static bool pass(int from, int to, size_t *left)
{
	char buf[16384];
	ssize_t n = read(from, buf, sizeof(buf) < *left ? sizeof(buf) : *left);

	for (ssize_t m, at = 0; at < n; at += m) {
		m = write(to, buf + at, (size_t)(n - at));
		if (m <= 0)
			return false;
	}
	*left -= n > 0 ? (size_t)n : 0;
	return n > 0 && *left > 0;
}

static void relay_one(struct relay *r, int a)
{
	size_t left = atomic_fetch_add(&r->connections, 1) < r->cuts ?
		r->cut_after : SIZE_MAX;
	struct linger hard = { .l_onoff = 1 };
	int b = daemon_connect(r->to);
	struct pollfd p[2] = { { a, POLLIN, 0 }, { b, POLLIN, 0 } };
	bool on = b >= 0;

	while (on && poll(p, 2, -1) > 0) {
		if (p[0].revents)
			on = pass(a, b, &left);
		if (on && p[1].revents)
			on = pass(b, a, &left);
	}
	if (left == 0)
		setsockopt(a, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(b);
	close(a);
}

static void *relay_run(void *arg)
{
	struct relay *r = arg;
	int a;

	while ((a = accept(r->fd, NULL, NULL)) >= 0)
		relay_one(r, a);
	return NULL;
}

static void relay_start(struct relay *r)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	r->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(r->fd, (struct sockaddr *)&addr, len), 0);
	ck_assert_int_eq(listen(r->fd, 10), 0);
	getsockname(r->fd, (struct sockaddr *)&addr, &len);
	r->port = ntohs(addr.sin_port);
	atomic_store(&r->connections, 0);
	pthread_create(&r->thread, NULL, relay_run, r);
}

static void relay_stop(struct relay *r)
{
	shutdown(r->fd, SHUT_RDWR);
	pthread_join(r->thread, NULL);
	close(r->fd);
}

START_TEST(copies_survive_cut_connections)
{
	struct relay r = { .cut_after = 3000000, .cuts = 4 };
	const char *from, *back;

	signal(SIGPIPE, SIG_IGN);
	start(_i);
	from = path(d.dir, "from");
	back = path(d.dir, "back");
	make_file(from, 20000001);
	r.to = _i == WAY_TCP ? d.tcp_port : d.rdma_port;
	relay_start(&r);
	set_base(_i, r.port);
	ck_assert_msg(TOOL("put", from, url("x")) == 0, "%s", err);
	ck_assert_uint_eq(atomic_load(&r.connections), 5);
	same(from, path(export, "x"));
	atomic_store(&r.connections, 0);
	ck_assert_msg(TOOL("get", url("x"), back) == 0, "%s", err);
	ck_assert_uint_eq(atomic_load(&r.connections), 5);
	same(from, back);
	relay_stop(&r);
	stop();
}
END_TEST

START_TEST(cut_for_good_is_an_error_in_the_end)
{
	struct relay r = { .cut_after = 3000000, .cuts = 1000000 };
	const char *from;

	signal(SIGPIPE, SIG_IGN);
	start(_i);
	from = path(d.dir, "from");
	make_file(from, 20000001);
	r.to = _i == WAY_TCP ? d.tcp_port : d.rdma_port;
	relay_start(&r);
	set_base(_i, r.port);
	/* After the first cut there is nothing to connect to. */
	shutdown(r.fd, SHUT_RDWR);
	relay_stop(&r);
	ck_assert_int_eq(TOOL("put", "-r", "2", from, url("x")), 3);
	stop();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("gannet_nfs");
	TCase *t = tcase_create("tool");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, odd_sizes_make_the_round_trip, 0, WAYS);
	tcase_add_loop_test(t, a_big_directory_is_listed_whole_and_in_order, 0,
			    WAYS);
	tcase_add_loop_test(t, attributes_are_told, 0, WAYS);
	tcase_add_loop_test(t, links_are_followed_where_they_can_be, 0, WAYS);
	tcase_add_loop_test(t, what_goes_wrong_is_named, 0, WAYS);
	tcase_add_loop_test(t, a_read_only_export_takes_nothing, 0, WAYS);
	tcase_add_test(t, wrong_usage_is_told_apart);
	tcase_add_loop_test(t, a_mount_check_tells_what_was_negotiated, 0,
			    WAYS);
	tcase_add_loop_test(t, a_mount_check_ends_with_a_command_that_works,
			    0, WAYS);
	tcase_add_loop_test(t, progress_is_shown_when_asked_for, 0, WAYS);
	tcase_add_loop_test(t, copies_survive_cut_connections, 0, WAYS);
	tcase_add_loop_test(t, cut_for_good_is_an_error_in_the_end, 0, WAYS);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
