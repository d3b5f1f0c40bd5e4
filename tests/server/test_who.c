/* SPDX-License-Identifier: BSD-2-Clause */
/* gannetctl(8) shows who is using the server: clients, latency, top,
 * disconnect. */
#include <ctype.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "tests/server/ctl_json.h"
#include "tests/server/daemon_run.h"
#include "tests/unit/runner.h"

#define FILE_SIZE	300000

static struct daemon_run d;
static char path[160];		/* of the socket */
static char out[262144];	/* the output of gannetctl() */

static void starts(void)
{
	const char *const args[] = {
		"--export", "mem:/a *(rw,insecure,no_root_squash)",
		"--export", "mem:/b *(rw,insecure,no_root_squash)", NULL,
	};

	ck_assert(daemon_start(&d, args));
}

static void setup(void)
{
	daemon_prepare(&d);
	snprintf(path, sizeof(path), "%s/state/control", d.dir);
	starts();
}

static void teardown(void)
{
	daemon_end(&d, SIGTERM);
	ck_assert_int_eq(WEXITSTATUS(d.status), 0);
	daemon_clean(&d);
}

TEST_CASE(.setup = setup, .teardown = teardown);

/* Starts gannetctl with these arguments, to be read. */
static FILE *gannetctl_open(const char *arguments)
{
	char line[400];
	FILE *f;

	snprintf(line, sizeof(line), "./gannetctl --socket %s %s 2>&1 "
		 "< /dev/null", path, arguments);
	f = popen(line, "r");
	ck_assert_ptr_nonnull(f);
	return f;
}

/* Runs it; returns its exit status. */
static int gannetctl(const char *arguments)
{
	FILE *f = gannetctl_open(arguments);
	size_t len = fread(out, 1, sizeof(out) - 1, f);

	out[len] = '\0';
	return WEXITSTATUS(pclose(f));
}

/* Its answer, to be given back. */
static json_t *answer(const char *arguments)
{
	json_error_t error;
	json_t *r;

	ck_assert_msg(gannetctl(arguments) == 0, "%s", out);
	r = json_loads(out, 0, &error);
	ck_assert_msg(r != NULL, "%s: %s", error.text, out);
	return r;
}

static long long number(const json_t *o, const char *key)
{
	ck_assert_msg(json_is_integer(json_object_get(o, key)), "no %s", key);
	return json_integer_value(json_object_get(o, key));
}

/* The member @key of the row @name, by @by; 0: no such row. */
static long long latency(const char *by, const char *name, const char *key)
{
	char arguments[64];
	const json_t *row;
	long long n = 0;
	json_t *r;

	snprintf(arguments, sizeof(arguments), "--json latency --by %s", by);
	r = answer(arguments);
	row = ctl_row(json_object_get(r, "rows"), "name", name);
	if (row)
		n = number(row, key);
	json_decref(r);
	return n;
}

/* ---- work */

static char url[160];

static void set_url(bool iwarp, const char *name)
{
	if (iwarp)
		snprintf(url, sizeof(url), "'rdma+iwarp://127.0.0.1:%u%s"
			 "?mountport=%u'", d.rdma_port, name, d.tcp_port);
	else
		snprintf(url, sizeof(url), "'tcp://127.0.0.1:%u%s'",
			 d.tcp_port, name);
}

static void tool(const char *before, const char *after)
{
	char line[400];

	snprintf(line, sizeof(line), "./gannet-nfs %s %s %s", before, url,
		 after);
	ck_assert_int_eq(system(line), 0);
}

static void make_local(void)
{
	char line[160];

	snprintf(line, sizeof(line), "head -c %d /dev/zero > %s/file",
		 FILE_SIZE, d.dir);
	ck_assert_int_eq(system(line), 0);
}

/* Sums @key over the rows of `stats` of the program. */
static long long stats_of(const char *program, const char *key)
{
	json_t *r = answer("--json stats"), *p;
	long long n = 0;
	size_t i;

	json_array_foreach(json_object_get(r, "procedures"), i, p)
		if (!*program || !strcmp(json_string_value(
				json_object_get(p, "program")), program))
			n += number(p, key);
	json_decref(r);
	return n;
}

/* ---- tests */

TEST_LOOP(numbers_are_those_of_the_work, 0, 2)
{
	long long nulls;
	char put[200];

	make_local();
	set_url(_i, "/a/file");
	snprintf(put, sizeof(put), "put -q %s/file", d.dir);
	tool(put, "");
	ck_assert_int_eq(latency("export", "/a", "bytes_written"), FILE_SIZE);
	ck_assert_int_eq(latency("export", "/a", "bytes_read"), 0);
	tool("cat", "> /dev/null");
	ck_assert_int_eq(latency("export", "/a", "bytes_read"), FILE_SIZE);
	ck_assert_int_eq(latency("client", "127.0.0.1", "bytes_read"),
			 FILE_SIZE);
	ck_assert_int_eq(latency("client", "127.0.0.1", "bytes_written"),
			 FILE_SIZE);
	ck_assert_int_eq(latency("procedure", "nfs3 WRITE", "bytes_written"),
			 FILE_SIZE);
	ck_assert_int_eq(latency("procedure", "nfs3 READ", "bytes_read"),
			 FILE_SIZE);
	ck_assert_int_eq(latency("export", "/b", "calls"), 0);
	/* Counted apart, by rpc/reply.c. */
	nulls = latency("procedure", "nfs3 NULL", "calls");
	ck_assert_int_eq(latency("export", "/a", "calls"),
			 stats_of("nfs", "calls") - nulls);
	ck_assert_int_eq(latency("export", "/a", "failed"),
			 stats_of("nfs", "failed"));
	ck_assert_int_eq(latency("client", "127.0.0.1", "calls"),
			 stats_of("", "calls"));
	ck_assert_int_eq(latency("client", "127.0.0.1", "ns"),
			 stats_of("", "ns"));
}

TEST(percentiles_are_those_of_the_histogram)
{
	json_t *r, *row, *pair;
	long long calls = 0;
	size_t i, k;

	for (i = 0; i < 20; i++)
		ck_assert(daemon_answers(&d));
	r = answer("--json latency");
	json_array_foreach(json_object_get(r, "rows"), k, row) {
		long long p50 = number(row, "p50_ns");
		long long p99 = number(row, "p99_ns");

		ck_assert_int_gt(p50, 0);
		ck_assert_int_le(p50, p99);
		ck_assert_int_le(p99, number(row, "p999_ns"));
		calls = 0;
		json_array_foreach(json_object_get(row, "histogram"), i, pair) {
			calls += json_integer_value(json_array_get(pair, 1));
			if (calls * 2 >= number(row, "calls") && p50)
				ck_assert_int_lt(p50, json_integer_value(
					json_array_get(pair, 0)));
			if (calls * 2 >= number(row, "calls"))
				p50 = 0;
		}
		ck_assert_int_eq(calls, number(row, "calls"));
	}
	json_decref(r);
	ck_assert_int_eq(latency("procedure", "nfs3 NULL", "calls"), 20);
	ck_assert_int_eq(gannetctl("latency --by p"), 0);
	ck_assert_ptr_nonnull(strstr(out, "nfs3 NULL"));
	ck_assert_int_eq(gannetctl("latency --by weather"), 2);
	ck_assert_int_eq(gannetctl("latency procedure"), 2);
}

/* The number of connections that the client has now. */
static long long connections(void)
{
	json_t *r = answer("--json clients");
	const json_t *row = ctl_row(r, "address", "127.0.0.1");
	long long n = row ? number(row, "connections") : 0;

	json_decref(r);
	return n;
}

TEST(clients_show_their_connections)
{
	int fd[2];

	ck_assert_int_eq(gannetctl("clients 127.0.0.1"), 1);
	ck_assert_ptr_nonnull(strstr(out, "no such client"));
	ck_assert_int_eq(gannetctl("clients 127.0.0"), 1);
	ck_assert_int_eq(gannetctl("clients 127.0.0.1 127.0.0.2"), 2);
	for (int i = 0; i < 2; i++)
		fd[i] = daemon_connect(d.tcp_port);
	EVENTUALLY(connections() == 2);
	ck_assert_int_eq(gannetctl("clients 127.0.0.1"), 0);
	ck_assert_ptr_nonnull(strstr(out, ": tcp\n"));
	close(fd[0]);
	EVENTUALLY(connections() == 1);
	close(fd[1]);
	EVENTUALLY(connections() == 0);
}

/* True if the client has an iWARP connection with its limits, and its path. */
static bool shows_iwarp(void)
{
	json_t *r = answer("--json clients 127.0.0.1"), *conn;
	const json_t *client = json_array_get(r, 0);
	bool found = false;
	size_t i;

	json_array_foreach(json_object_get(client, "transports"), i, conn) {
		const char *provider = json_string_value(
			json_object_get(conn, "provider"));

		if (!provider)
			continue;
		ck_assert_str_eq(provider, "iwarp");
		ck_assert_int_eq(number(conn, "credits"), 32);
		ck_assert_int_eq(number(conn, "inline_to_client"), 4096);
		ck_assert_int_eq(number(conn, "inline_from_client"), 4096);
		found = json_array_size(json_object_get(client, "paths")) == 1;
	}
	json_decref(r);
	return found;
}

TEST(an_rdma_client_goes_on_after_its_connection_was_ended)
{
	char line[400];
	json_t *r;
	FILE *f;

	ck_assert(daemon_answers(&d));	/* makes the client known */
	set_url(true, "/a/piped");
	snprintf(line, sizeof(line), "./gannet-nfs put -q - %s", url);
	f = popen(line, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs("one\n", f), 0);
	fflush(f);
	EVENTUALLY(shows_iwarp());
	ck_assert_int_eq(gannetctl("clients 127.0.0.1"), 0);
	ck_assert_ptr_nonnull(strstr(out, "iwarp"));
	ck_assert_ptr_nonnull(strstr(out, "mounted /a"));
	ck_assert_ptr_nonnull(strstr(out, "32 credits, Sends of 4096 bytes"));
	r = answer("--json disconnect 127.0.0.1");
	ck_assert_int_ge(number(r, "connections"), 1);
	json_decref(r);
	ck_assert_int_ge(fputs("two\n", f), 0);
	ck_assert_int_eq(pclose(f), 0);
	set_url(false, "/a/piped");
	snprintf(line, sizeof(line), "| grep -qx two");
	tool("cat", line);
}

TEST(disconnect_ends_the_connections_of_one_client)
{
	int fd[2];
	char byte;

	for (int i = 0; i < 2; i++)
		fd[i] = daemon_connect(d.tcp_port);
	EVENTUALLY(connections() == 2);
	ck_assert_int_eq(gannetctl("disconnect 192.0.2.1"), 0);
	ck_assert_str_eq(out, "0 connections of 192.0.2.1 end\n");
	ck_assert_int_eq(connections(), 2);
	ck_assert_int_eq(gannetctl("disconnect 127.0.0.1"), 0);
	ck_assert_str_eq(out, "2 connections of 127.0.0.1 end\n");
	for (int i = 0; i < 2; i++) {
		/* In order: not a reset. */
		ck_assert_int_eq(recv(fd[i], &byte, 1, 0), 0);
		close(fd[i]);
	}
	ck_assert(daemon_answers(&d));
	ck_assert_int_eq(gannetctl("disconnect localhost"), 1);
	ck_assert_ptr_nonnull(strstr(out, "expected an IPv4 or IPv6"));
	ck_assert_int_eq(gannetctl("disconnect"), 2);
}

/* ---- top */

TEST(rounds_of_top_add_up_to_the_work)
{
	FILE *f = gannetctl_open("top --json --by procedure --interval 0.1 "
				 "--count 100000");
	long long calls = 0;
	char line[65536];
	json_error_t error;
	const json_t *row;
	json_t *r;

	/* The sums before its first round don't count. */
	ck_assert_ptr_nonnull(fgets(line, sizeof(line), f));
	for (int i = 0; i < 10; i++)
		ck_assert(daemon_answers(&d));
	while (calls < 10) {
		ck_assert_ptr_nonnull(fgets(line, sizeof(line), f));
		r = json_loads(line, 0, &error);
		ck_assert_ptr_nonnull(r);
		ck_assert(json_real_value(json_object_get(r, "seconds")) >=
			  0.1);
		row = ctl_row(json_object_get(r, "rows"), "name", "nfs3 NULL");
		if (row) {
			calls += number(row, "calls");
			ck_assert_int_gt(number(row, "p50_ns"), 0);
		}
		json_decref(r);
	}
	ck_assert_int_eq(calls, 10);
	daemon_end(&d, SIGTERM);
	/* It ends with the server. */
	while (fgets(line, sizeof(line), f))
		;
	ck_assert_int_eq(WEXITSTATUS(pclose(f)), 1);
	starts();
}

TEST(top_prints_plain_tables_where_there_is_no_terminal)
{
	ck_assert_int_eq(gannetctl("top --count 2 --interval 0.1"), 0);
	ck_assert_ptr_nonnull(strstr(out, "client "));
	ck_assert_ptr_null(strchr(out, '\033'));
	ck_assert_int_eq(gannetctl("top --by nobody"), 2);
	ck_assert_int_eq(gannetctl("top --sort x"), 2);
	ck_assert_int_eq(gannetctl("top --sort ''"), 2);
	ck_assert_int_eq(gannetctl("top --count 0"), 2);
	ck_assert_int_eq(gannetctl("top --interval 0"), 2);
	ck_assert_int_eq(gannetctl("top --interval nan"), 2);
	ck_assert_int_eq(gannetctl("top now"), 2);
}

/* Reads from the terminal until it has shown @text. */
static void shows(int master, const char *text)
{
	static char seen[1 << 20];
	struct pollfd p = { .fd = master, .events = POLLIN };
	size_t len = 0;
	ssize_t n;

	*seen = '\0';
	while (!strstr(seen, text)) {
		ck_assert_msg(poll(&p, 1, 60000) == 1, "no '%s' in %s", text,
			      seen);
		n = read(master, seen + len, sizeof(seen) - 1 - len);
		ck_assert_int_gt(n, 0);
		len += (size_t)n;
		seen[len] = '\0';
	}
}

static void press(int master, char key)
{
	ck_assert_int_eq(write(master, &key, 1), 1);
}

/* A terminal of 80 columns; its other end is in *@slave. */
static int terminal_open(int *slave)
{
	const struct winsize size = { .ws_row = 24, .ws_col = 80 };
	int master = posix_openpt(O_RDWR | O_NOCTTY);

	ck_assert_int_ge(master, 0);
	ck_assert_int_eq(grantpt(master), 0);
	ck_assert_int_eq(unlockpt(master), 0);
	*slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	ck_assert_int_ge(*slave, 0);
	ck_assert_int_eq(ioctl(*slave, TIOCSWINSZ, &size), 0);
	return master;
}

static pid_t top_start(int slave, const char *by)
{
	pid_t pid = fork();

	if (pid == 0) {
		dup2(slave, STDIN_FILENO);
		dup2(slave, STDOUT_FILENO);
		execl("./gannetctl", "gannetctl", "--socket", path, "top",
		      "--interval", "0.1", "--by", by, NULL);
		_exit(127);
	}
	return pid;
}

static void top_ends(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

TEST(keys_choose_on_a_terminal)
{
	int slave, master = terminal_open(&slave);
	struct termios before, after;
	pid_t pid;

	ck_assert_int_eq(tcgetattr(slave, &before), 0);
	ck_assert(daemon_answers(&d));
	pid = top_start(slave, "client");
	shows(master, "top by client");
	press(master, 'e');
	shows(master, "top by export");
	press(master, 'p');
	press(master, 'l');
	shows(master, "top by procedure");
	press(master, 'q');
	shows(master, "\033[?1049l");	/* the screen comes back */
	top_ends(pid);
	ck_assert_int_eq(tcgetattr(slave, &after), 0);
	ck_assert_int_eq(before.c_lflag, after.c_lflag);
	close(slave);
	close(master);
}

/* The columns that a line of a screen takes. */
static int columns(const char *line, size_t len)
{
	int n = 0;

	for (size_t i = 0; i < len; i++)
		if (line[i] == '\033')
			while (i < len && !isalpha((unsigned char)line[i]))
				i++;
		else
			n += (unsigned char)line[i] >= ' ';
	return n;
}

/* Of a name that is too long its end is shown. */
TEST(a_terminal_has_room_for_each_line_of_top)
{
	static const char tail[] = "/of-an-export";
	int slave, master = terminal_open(&slave);
	struct pollfd p = { .fd = master, .events = POLLIN };
	char name[100], line[200], seen[8192];
	size_t len = 0;
	pid_t pid;

	snprintf(name, sizeof(name), "/%060d%s", 0, tail);
	snprintf(line, sizeof(line), "exports add 'mem:%s *(rw,insecure)'",
		 name);
	ck_assert_int_eq(gannetctl(line), 0);
	*line = '\0';
	set_url(false, name);
	pid = top_start(slave, "export");
	do {
		char *end;

		tool("ls", "> /dev/null");
		ck_assert_int_eq(poll(&p, 1, 60000), 1);
		ssize_t n = read(master, seen + len, sizeof(seen) - 1 - len);

		ck_assert_int_gt(n, 0);
		len += (size_t)n;
		while ((end = memchr(seen, '\n', len))) {
			snprintf(line, sizeof(line), "%.*s", (int)(end - seen),
				 seen);
			ck_assert_msg(columns(seen, (size_t)(end - seen)) <= 80,
				      "too long: %s", line);
			len -= (size_t)(end + 1 - seen);
			memmove(seen, end + 1, len);
			if (strstr(line, tail))
				break;
		}
	} while (!strstr(line, tail));
	ck_assert_ptr_nonnull(strchr(line, '<'));
	press(master, 'q');
	shows(master, "\033[?1049l");
	top_ends(pid);
	close(slave);
	close(master);
}
