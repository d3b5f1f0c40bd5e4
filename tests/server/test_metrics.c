/* SPDX-License-Identifier: BSD-2-Clause */
/* gannetd's metrics over HTTP, and clients that mean no good. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/server/daemon_run.h"
#include "tests/unit/runner.h"

#define MEM	"--export", "mem:/a *(rw,insecure)"
#define OPEN	"Accept: application/openmetrics-text; version=1.0.0\r\n"

static struct daemon_run d;
static uint16_t port;
static char out[1 << 20];	/* the answer */
static char before[1 << 20];

static void setup(void)
{
	daemon_prepare(&d);
}

static void teardown(void)
{
	daemon_clean(&d);
}

TEST_CASE(.setup = setup, .teardown = teardown, .timeout = 300);

static void starts(const char *more)
{
	const char *const args[] = { MEM, "--metrics", "127.0.0.1:0", more,
				     NULL };

	ck_assert(daemon_start(&d, args));
	port = daemon_web_port(&d);
}

static void ends(void)
{
	daemon_end(&d, SIGTERM);
	ck_assert(WIFEXITED(d.status));
	ck_assert_int_eq(WEXITSTATUS(d.status), 0);
}

/* Sends these bytes; the answer is in out. */
static void says(const char *bytes, size_t len)
{
	daemon_fetch(port, bytes, len, out, sizeof(out));
}

static void asks(const char *method, const char *path, const char *headers)
{
	char request[512];
	int len = snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\n%s\r\n",
			   method, path, headers);

	says(request, (size_t)len);
}

static void has(const char *text)
{
	ck_assert_msg(strstr(out, text), "no '%s' in: %.500s", text, out);
}

static void gets(const char *headers)
{
	asks("GET", "/metrics", headers);
	has("HTTP/1.1 200 ");
}

/* The value of a series in @text, or -1. */
static double value_in(const char *text, const char *series)
{
	size_t len = strlen(series);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, series, len) && line[len] == ' ')
			return atof(line + len);
	}
	return -1;
}

TEST(openmetrics_and_the_older_format_are_served)
{
	starts(NULL);
	ck_assert(daemon_answers(&d));
	gets(OPEN);
	has("Content-Type: application/openmetrics-text; version=1.0.0; "
	    "charset=utf-8\r\n");
	has("# TYPE gannet_procedure_calls counter\n");
	has("\n# EOF\n");
	ck_assert(value_in(out, "gannet_procedure_calls_total{program=\"nfs\","
		"version=\"3\",procedure=\"NULL\",transport=\"tcp\"}") == 1);
	ck_assert(value_in(out, "gannet_procedure_duration_seconds_count{"
		"program=\"nfs\",version=\"3\",procedure=\"NULL\"}") == 1);
	gets("");
	has("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
	has("# TYPE gannet_procedure_calls_total counter\n");
	ck_assert_ptr_null(strstr(out, "# EOF"));
	ends();
}

/* A line of @out that begins with @begin, @name and a space. */
static bool has_line(const char *begin, const char *name)
{
	char line[256];

	snprintf(line, sizeof(line), "\n%s%s ", begin, name);
	return strstr(out, line);
}

TEST(each_family_has_its_type_and_its_help_once)
{
	char *line, *at, name[128], other[160];
	unsigned families = 0;

	starts(NULL);
	ck_assert(daemon_answers(&d));
	gets(OPEN);
	for (at = strstr(out, "\r\n\r\n") + 4; (line = strchr(at, '\n'));
	     at = line + 1) {
		if (sscanf(at, "# TYPE %127s", name) == 1) {
			ck_assert(has_line("# HELP ", name));
			snprintf(other, sizeof(other), "\n# TYPE %s ", name);
			ck_assert_msg(!strstr(line, other), "%s twice", name);
			families++;
		} else if (*at != '#') {
			ck_assert_int_eq(sscanf(at, "%127[a-z0-9_A-Z]", other),
					 1);
			/* Samples stand below their own family. */
			ck_assert_msg(!strncmp(other, name, strlen(name)),
				      "%s below %s", other, name);
		}
	}
	ck_assert_uint_gt(families, 200);
	ends();
}

TEST(counters_never_decrease)
{
	char series[256];
	double value;

	starts(NULL);
	gets(OPEN);
	for (unsigned i = 0; i < 20; i++) {
		strcpy(before, out);
		ck_assert(daemon_answers(&d));
		gets(OPEN);
		for (char *at = strtok(before, "\n"); at;
		     at = strtok(NULL, "\n"))
			if (sscanf(at, "%255s %lf", series, &value) == 2 &&
			    (strstr(series, "_total") ||
			     strstr(series, "_bucket") ||
			     strstr(series, "_count") ||
			     strstr(series, "_sum")))
				ck_assert_msg(value_in(out, series) >= value,
					      "%s", series);
	}
	ck_assert(value_in(out, "gannet_procedure_calls_total{program=\"nfs\","
		"version=\"3\",procedure=\"NULL\",transport=\"tcp\"}") == 20);
	ends();
}

TEST(errors_are_told_by_their_kind)
{
	starts(NULL);
	gets("");
	ck_assert(value_in(out, "gannet_nfs_errors_total{status="
			   "\"NFS3ERR_NOENT\"}") == 0);
	ck_assert(value_in(out, "gannet_rdma_errors_total{kind=\"header\"}") ==
		  0);
	ck_assert(value_in(out, "gannet_connections_refused_total{transport="
			   "\"tcp\",reason=\"too many\"}") == 0);
	ends();
}

TEST(a_head_has_no_body)
{
	starts(NULL);
	asks("HEAD", "/metrics", "");
	has("HTTP/1.1 200 ");
	ck_assert_str_eq(strstr(out, "\r\n\r\n"), "\r\n\r\n");
	ends();
}

TEST(other_requests_are_refused)
{
	static char longer[64 << 10];

	starts(NULL);
	asks("GET", "/other", "");
	has("HTTP/1.1 404 ");
	asks("GET", "/metrics/../../etc/passwd", "");
	has("HTTP/1.1 404 ");
	asks("POST", "/metrics", "Content-Length: 5\r\n");
	has("HTTP/1.1 405 ");
	has("Allow: GET, HEAD\r\n");
	asks("DELETE", "/metrics", "");
	has("HTTP/1.1 405 ");
	says("\r\n\r\n\r\n\0\0\0", 9);
	says("nonsense\r\n\r\n", 12);
	memset(longer, 'x', sizeof(longer));
	memcpy(longer, "GET /", 5);
	says(longer, sizeof(longer));
	gets("");
	ck_assert(value_in(out, "gannet_web_refused_total") >= 4);
	ck_assert(daemon_answers(&d));
	ends();
}

/* Else a page of the Web, at a name that leads to 127.0.0.1 by now, could read
 * them in a browser of this machine. */
TEST(a_host_name_is_refused_at_a_loopback_address)
{
	static const char *const names[] = { "evil.example",
		"127.0.0.1.evil.example:80", "[::1].evil.example", "[::1",
		"", "localhost.evil.example", "[evil.example]" };
	static const char *const addresses[] = { "localhost",
		"LOCALHOST:20490", "127.0.0.1:20490", "127.0.0.1", "[::1]:80",
		"192.0.2.7" };
	char header[100];

	starts(NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(header, sizeof(header), "Host: %s\r\n", names[i]);
		asks("GET", "/metrics", header);
		ck_assert_msg(strstr(out, "HTTP/1.1 421 "), "%s: %.500s",
			      names[i],
			      out);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(addresses); i++) {
		snprintf(header, sizeof(header), "Host: %s\r\n", addresses[i]);
		gets(header);
	}
	ends();
}

#define SLOW	70

TEST(slow_clients_stop_neither_others_nor_the_end)
{
	int fd[SLOW];

	starts(NULL);
	for (unsigned i = 0; i < SLOW; i++) {
		fd[i] = daemon_connect(port);
		ck_assert_int_ge(fd[i], 0);
		/* Some send nothing, some a part. */
		if (i % 2)
			send(fd[i], "GET /metrics HTTP/1.1\r\n", 23,
			     MSG_NOSIGNAL);
	}
	ck_assert(daemon_answers(&d));
	/* Its turn comes when they have had their time. */
	gets("");
	ck_assert(value_in(out, "gannet_web_slow_total") >= 1);
	for (unsigned i = 0; i < SLOW / 2; i++)
		close(fd[i]);
	ends();
	for (unsigned i = SLOW / 2; i < SLOW; i++)
		close(fd[i]);
}

/* From 127.0.0.2; all others here come from 127.0.0.1. */
static int connects_from_elsewhere(void)
{
	struct sockaddr_in here = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1) };
	struct sockaddr_in to = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&here, sizeof(here)), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

TEST(one_address_can_not_hold_all_connections)
{
	const char *const args[] = { MEM, "--metrics", "0.0.0.0:0", NULL };
	int fd[SLOW];

	ck_assert(daemon_start(&d, args));
	port = daemon_web_port(&d);
	for (unsigned i = 0; i < SLOW; i++)
		fd[i] = connects_from_elsewhere();
	gets("");
	/* It did not wait until their time was over. */
	ck_assert(value_in(out, "gannet_web_slow_total") <= SLOW / 4);
	for (unsigned i = 0; i < SLOW; i++)
		close(fd[i]);
	ends();
}

/* True once /readyz answers with @status in it. */
static bool becomes(const char *status)
{
	return AWAIT_EACH(20000, (asks("GET", "/readyz", ""),
				  strstr(out, status) != NULL));
}

TEST(a_server_is_ready_while_its_exports_answer)
{
	char dir[] = "/tmp/gannet-ready-XXXXXX", line[64], away[64];

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(line, sizeof(line), "--export=%s *(rw,insecure)", dir);
	starts(line);
	asks("GET", "/readyz", "");
	has("HTTP/1.1 200 ");
	has("\r\n\r\nok\n");
	snprintf(away, sizeof(away), "%s.away", dir);
	ck_assert_int_eq(rename(dir, away), 0);
	ck_assert(becomes("HTTP/1.1 503 "));
	has(dir);
	has(": No such file or directory\n");
	/* No restart makes a directory. */
	asks("GET", "/healthz", "");
	has("HTTP/1.1 200 ");
	/* Another directory in its place is not the clients'. */
	ck_assert_int_eq(mkdir(dir, 0700), 0);
	ck_assert(becomes(": leads to another directory than the one"));
	has("HTTP/1.1 503 ");
	ck_assert_int_eq(rmdir(dir), 0);
	ck_assert_int_eq(rename(away, dir), 0);
	ck_assert(becomes("HTTP/1.1 200 "));
	ck_assert_int_eq(rmdir(dir), 0);
	ends();
}

TEST(a_client_that_sends_a_byte_now_and_then_is_cut)
{
	static const char line[] = "GET /metrics HTTP/1.1\r\nX: ";
	int fd;

	starts(NULL);
	fd = daemon_connect(port);
	send(fd, line, sizeof(line) - 1, MSG_NOSIGNAL);
	ck_assert(AWAIT_EACH(100000, send(fd, "x", 1, MSG_NOSIGNAL) < 0));
	close(fd);
	gets("");
	ck_assert(value_in(out, "gannet_web_slow_total") >= 1);
	ends();
}

TEST(a_port_that_is_taken_does_not_stop_the_service)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char where[40], line[200];
	FILE *f;

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sin, len), 0);
	ck_assert_int_eq(listen(fd, 1), 0);
	getsockname(fd, (struct sockaddr *)&sin, &len);
	snprintf(where, sizeof(where), "127.0.0.1:%u", ntohs(sin.sin_port));
	ck_assert(daemon_start(&d, (const char *const[]){ MEM, "--metrics",
							  where, NULL }));
	ck_assert(daemon_logged(&d, "metrics: cannot listen on 127.0.0.1:"));
	ck_assert(daemon_answers(&d));
	snprintf(line, sizeof(line), "./gannetctl --socket %s/state/control "
		 "stats", d.dir);
	f = popen(line, "r");
	out[fread(out, 1, sizeof(out) - 1, f)] = '\0';
	pclose(f);
	has("web_unserved                             1");
	close(fd);
	ends();
}

TEST(the_status_page_runs_its_own_script_alone)
{
	starts(NULL);
	asks("GET", "/", "");
	has("HTTP/1.1 200 ");
	has("Content-Type: text/html; charset=utf-8\r\n");
	has("Content-Security-Policy: default-src 'none'; script-src "
	    "'sha256-");
	ck_assert_ptr_null(strstr(out, "unsafe-inline"));
	asks("GET", "/status.json", "");
	has("Content-Type: application/json\r\n");
	has("\"counters\":{");
	has("\"clients\":[");
	ends();
}

TEST(a_damaged_list_of_mounts_is_told_as_far_as_it_goes)
{
	static const char mounts[] = "\377 /a\n127.0.0.1 /b\n";
	char name[96];
	FILE *f;

	snprintf(name, sizeof(name), "%s/state", d.dir);
	mkdir(name, 0700);
	snprintf(name, sizeof(name), "%s/state/rmtab", d.dir);
	f = fopen(name, "w");
	ck_assert_ptr_nonnull(f);
	fputs(mounts, f);
	fclose(f);
	starts(NULL);
	ck_assert(daemon_answers(&d));
	asks("GET", "/status.json", "");
	has("HTTP/1.1 200 ");
	has("\"paths\":[\"/b\"]");
	ends();
}

TEST(nothing_is_served_unless_it_was_asked_for)
{
	ck_assert(daemon_start(&d, (const char *const[]){ MEM, NULL }));
	ck_assert(!daemon_has_logged(&d, "metrics are at"));
	ck_assert_int_eq(daemon_thread(&d, "metrics", 0), 0);
	ends();
}
