/* SPDX-License-Identifier: BSD-2-Clause */
/* A trace of known calls: their callers, and their times. */
#include <arpa/inet.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/server/tool_run.h"
#include "tests/unit/runner.h"

TEST_CASE(.teardown = stop, .timeout = 120);

/* ---- a trace */

struct tracer {
	FILE	 *in;
	json_t	 *calls;	/* reported calls */
	json_t	 *end;		/* the last line; NULL: none */
	json_int_t told;	/* as dropped, between the calls */
	char	  answer[512];
};

/* Asks; false: it was refused. */
static bool trace_asks(struct tracer *t, const char *command,
		       const char *options)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const struct timeval patience = { 60, 0 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(t, 0, sizeof(*t));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/state/control", d.dir);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	t->in = fdopen(fd, "r");
	dprintf(fd, "{\"v\":1,\"command\":\"%s\",\"options\":%s}\n", command,
		options);
	ck_assert_ptr_nonnull(fgets(t->answer, sizeof(t->answer), t->in));
	return strstr(t->answer, "\"result\"");
}

/* The same, and calls are seen when it returns. */
static void traces(struct tracer *t, const char *options)
{
	char line[8];

	ck_assert_msg(trace_asks(t, "trace", options), "%s: %s", options,
		      t->answer);
	ck_assert_str_eq(fgets(line, sizeof(line), t->in), "{}\n");
}

/* Reads to the end. */
static void reads_all(struct tracer *t)
{
	char *line = NULL;
	size_t size = 0;

	t->calls = json_array();
	while (getline(&line, &size, t->in) > 0) {
		json_t *o = json_loads(line, 0, NULL);

		ck_assert_msg(o && !t->end, "%s", line);
		if (json_object_get(o, "ns"))
			json_array_append(t->calls, o);
		else if (json_object_get(o, "calls"))
			t->end = json_incref(o);
		else
			t->told = json_integer_value(
				json_object_get(o, "dropped"));
		json_decref(o);
	}
	free(line);
	ck_assert_ptr_nonnull(t->end);
	ck_assert_int_eq(json_integer_value(json_object_get(t->end, "calls")),
			 (json_int_t)json_array_size(t->calls));
}

static void shuts(struct tracer *t)
{
	shutdown(fileno(t->in), SHUT_WR);
	reads_all(t);
}

static void forgets(struct tracer *t)
{
	fclose(t->in);
	json_decref(t->calls);
	json_decref(t->end);
}

static const char *text(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key)) ? : "";
}

static json_int_t number(const json_t *o, const char *key)
{
	ck_assert_msg(json_is_integer(json_object_get(o, key)), "%s", key);
	return json_integer_value(json_object_get(o, key));
}

static json_int_t part(const json_t *call, const char *key)
{
	return number(json_object_get(call, "parts"), key);
}

/* The last call of @proc with @status; NULL: none. */
static const json_t *find(const struct tracer *t, const char *proc,
			  const char *status)
{
	const json_t *found = NULL, *o;
	size_t i;

	json_array_foreach(t->calls, i, o)
		if (!strcmp(text(o, "procedure"), proc) &&
		    !strcmp(text(o, "status"), status))
			found = o;
	return found;
}

static const json_t *finds(const struct tracer *t, const char *proc,
			   const char *status)
{
	const json_t *o = find(t, proc, status);

	ck_assert_msg(o, "no %s with %s in %s", proc, status,
		      json_dumps(t->calls, JSON_INDENT(1)));
	return o;
}

/* The READ of the data.  The one at the end of the file can be done before. */
static const json_t *finds_read(const struct tracer *t)
{
	const json_t *o, *found = finds(t, "READ", "NFS3_OK");
	size_t i;

	json_array_foreach(t->calls, i, o)
		if (!strcmp(text(o, "procedure"), "READ") &&
		    number(o, "reply") > number(found, "reply"))
			found = o;
	return found;
}

/* Each part is there, in order, and they are not more than the whole. */
static void check_parts(const json_t *call)
{
	static const char *const names[] = {
		"decode", "worker", "wait", "backend", "send",
	};
	json_t *parts = json_object_get(call, "parts");
	json_int_t sum = 0;
	void *at = json_object_iter(parts);

	for (int i = 0; i < 5; i++) {
		ck_assert_ptr_nonnull(at);
		ck_assert_str_eq(json_object_iter_key(at), names[i]);
		ck_assert_int_ge(part(call, names[i]), 0);
		sum += part(call, names[i]);
		at = json_object_iter_next(parts, at);
	}
	ck_assert_ptr_null(at);
	ck_assert_int_le(sum, number(call, "ns"));
}

/* ---- calls */

static void session(void)
{
	make_file(path(d.dir, "from"), 300000);
	ck_assert_int_eq(TOOL("put", path(d.dir, "from"), url("file")), 0);
	ck_assert_int_eq(TOOL("get", url("file"), path(d.dir, "to")), 0);
	ck_assert_int_ne(TOOL("cat", url("none")), 0);
}

/* Sends @n calls of procedure @proc of @prog, some at a time, and takes the
 * replies, of @len bytes with their marks. */
static void raw_calls(unsigned n, uint32_t prog, uint32_t proc, size_t len)
{
	enum { SOME = 200 };
	const uint32_t words[11] = { htonl(0x80000028), htonl(77), 0, htonl(2),
				     htonl(prog), htonl(3), htonl(proc) };
	static uint32_t calls[SOME][11];
	static uint8_t replies[SOME * 64];
	int fd = daemon_connect(d.tcp_port);

	for (int i = 0; i < SOME; i++)
		memcpy(calls[i], words, sizeof(words));
	while (n > 0) {
		size_t now = n < SOME ? n : SOME;

		ck_assert_int_eq(send(fd, calls, now * 44, MSG_NOSIGNAL),
				 (ssize_t)now * 44);
		ck_assert_int_eq(recv(fd, replies, now * len, MSG_WAITALL),
				 (ssize_t)(now * len));
		n -= (unsigned)now;
	}
	close(fd);
}

static void nulls(unsigned n)
{
	raw_calls(n, 100003, 0, 28);
}

/* ---- the tests */

TEST_LOOP(each_call_is_told_with_the_parts_of_its_time, 0, WAYS)
{
	struct tracer t;
	const json_t *o, *call;
	size_t i;

	start(_i);
	traces(&t, "{}");
	session();
	shuts(&t);
	json_array_foreach(t.calls, i, o) {
		check_parts(o);
		ck_assert_str_eq(text(o, "client"), "127.0.0.1");
		ck_assert_int_gt(part(o, "decode"), 0);
	}
	call = finds(&t, "WRITE", "NFS3_OK");
	ck_assert_str_eq(text(call, "transport"),
			 _i == WAY_TCP ? "tcp" : "iwarp");
	ck_assert_str_eq(text(call, "export"), export);
	ck_assert_str_eq(text(call, "program"), "nfs");
	ck_assert_int_gt(number(call, "call"), 300000);
	ck_assert_int_gt(part(call, "worker"), 0);
	ck_assert_int_gt(part(call, "backend"), 0);
	ck_assert_int_gt(part(call, "send"), 0);
	call = finds_read(&t);
	ck_assert_int_gt(number(call, "reply"), 300000);
	ck_assert_int_gt(part(call, "backend"), 0);
	finds(&t, "LOOKUP", "NFS3ERR_NOENT");
	call = finds(&t, "MNT", "OK");
	ck_assert_str_eq(text(call, "program"), "mount");
	ck_assert_str_eq(text(call, "export"), "");
	ck_assert_int_eq(part(call, "backend"), 0);
	ck_assert_int_gt(part(call, "worker"), 0);
	ck_assert_int_eq(number(t.end, "dropped"), 0);
	forgets(&t);
}

TEST(a_call_that_rpc_refuses_has_its_status)
{
	struct tracer t;

	start(WAY_TCP);
	traces(&t, "{}");
	raw_calls(1, 4711, 5, 28);
	raw_calls(1, 100003, 77, 28);
	raw_calls(1, 100003, 1, 28);
	shuts(&t);
	finds(&t, "", "PROG_UNAVAIL");
	finds(&t, "", "PROC_UNAVAIL");
	finds(&t, "GETATTR", "GARBAGE_ARGS");
	forgets(&t);
}

/* The calls of a session that a trace with @options has. */
static void session_with(struct tracer *t, const char *options)
{
	traces(t, options);
	session();
	shuts(t);
}

TEST(filters_take_the_calls_that_they_name_and_no_others)
{
	struct tracer t;
	char options[200];
	const json_t *o;
	size_t i;

	start(WAY_IWARP);
	session_with(&t, "{\"proc\":\"read,LOOKUP\"}");
	finds(&t, "READ", "NFS3_OK");
	finds(&t, "LOOKUP", "NFS3_OK");
	json_array_foreach(t.calls, i, o)
		ck_assert(!strcmp(text(o, "procedure"), "READ") ||
			  !strcmp(text(o, "procedure"), "LOOKUP"));
	forgets(&t);
	snprintf(options, sizeof(options), "{\"export\":\"%s\"}", export);
	session_with(&t, options);
	finds(&t, "READ", "NFS3_OK");
	ck_assert_ptr_null(find(&t, "NULL", "OK"));
	forgets(&t);
	session_with(&t, "{\"client\":\"192.0.2.1\"}");
	ck_assert_uint_eq(json_array_size(t.calls), 0);
	forgets(&t);
}

TEST(slower_leaves_out_the_calls_that_were_faster)
{
	struct tracer all, slow;
	const json_t *o;
	json_int_t longest = 0;
	char options[64];
	size_t i;

	start(WAY_TCP);
	session_with(&all, "{}");
	json_array_foreach(all.calls, i, o)
		if (number(o, "ns") > longest)
			longest = number(o, "ns");
	snprintf(options, sizeof(options), "{\"slower\":%lld}",
		 (long long)longest / 2000);
	session_with(&slow, options);
	json_array_foreach(slow.calls, i, o)
		ck_assert_int_ge(number(o, "ns"), longest / 2000 * 1000);
	forgets(&slow);
	session_with(&slow, "{\"slower\":4000000000}");
	ck_assert_uint_eq(json_array_size(slow.calls), 0);
	forgets(&slow);
	forgets(&all);
}

TEST(a_trace_ends_at_the_limits_that_it_was_given)
{
	struct tracer t;

	start(WAY_TCP);
	traces(&t, "{\"count\":3}");
	nulls(5);
	reads_all(&t);
	ck_assert_uint_eq(json_array_size(t.calls), 3);
	forgets(&t);
	traces(&t, "{\"duration\":1}");
	nulls(2);
	reads_all(&t);
	ck_assert_uint_eq(json_array_size(t.calls), 2);
	forgets(&t);
}

TEST(a_reader_that_does_not_read_is_told_how_many_calls_it_missed)
{
	struct tracer t;
	json_int_t dropped;

	start(WAY_TCP);
	traces(&t, "{\"proc\":\"NULL\"}");
	nulls(60000);
	shuts(&t);
	dropped = number(t.end, "dropped");
	ck_assert_int_gt(dropped, 0);
	ck_assert_int_eq(dropped + number(t.end, "calls"), 60000);
	ck_assert_int_gt(t.told, 0);
	ck_assert_int_le(t.told, dropped);
	forgets(&t);
}

TEST(a_trace_and_a_capture_see_the_same_calls)
{
	struct tracer t, c;
	char bytes[4];

	start(WAY_TCP);
	ck_assert(trace_asks(&c, "capture", "{\"count\":8}"));
	ck_assert_uint_eq(fread(bytes, 1, 4, c.in), 4);
	traces(&t, "{}");
	nulls(4);
	while (getc(c.in) != EOF)
		;
	/* The capture is over, and takes none of the trace's with it. */
	nulls(3);
	shuts(&t);
	ck_assert_uint_eq(json_array_size(t.calls), 7);
	forgets(&t);
	fclose(c.in);
	ck_assert(daemon_logged(&d, "capture ends: 8 messages"));
}

static void refuses(const char *options, const char *error)
{
	struct tracer t;

	ck_assert(!trace_asks(&t, "trace", options));
	ck_assert_msg(strstr(t.answer, error), "%s: %s", options, t.answer);
	fclose(t.in);
}

TEST(options_that_make_no_sense_and_a_second_trace_are_refused)
{
	struct tracer t;

	start(WAY_TCP);
	refuses("{\"client\":\"nobody\"}", "expected an address");
	refuses("{\"proc\":\"REED\"}", "names of procedures");
	refuses("{\"export\":\"/none\"}", "no export has this path");
	refuses("{\"slower\":-1}", "out of range");
	refuses("{\"snaplen\":1}", "expected client");
	traces(&t, "{}");
	refuses("{}", "only one at a time");
	shuts(&t);
	forgets(&t);
	/* The end of the server also ends it. */
	traces(&t, "{}");
	nulls(1);
	kill(d.pid, SIGTERM);
	reads_all(&t);
	ck_assert_uint_eq(json_array_size(t.calls), 1);
	forgets(&t);
}

/* The output of gannetctl with @options: two calls of NULL, and the end. */
static void two_nulls(const char *options, char *to, size_t size)
{
	char line[300];
	FILE *f;

	snprintf(line, sizeof(line), "./gannetctl --socket %s/state/control "
		 "trace --count 2 %s 2>&1", d.dir, options);
	f = popen(line, "r");
	ck_assert_ptr_nonnull(f);
	/* It prints nothing before the first call. */
	ck_assert(daemon_logged(&d, "trace begins"));
	nulls(2);
	to[fread(to, 1, size - 1, f)] = '\0';
	ck_assert_int_eq(WEXITSTATUS(pclose(f)), 0);
}

/* A filter left out would show other calls than the ones asked for. */
TEST_LOOP(gannetctl_refuses_a_filter_that_is_no_text, 0, 2)
{
	static const char *const commands[] = { "capture -w /dev/null",
						"trace" };
	char line[300], said[400];
	FILE *f;

	start(WAY_TCP);
	snprintf(line, sizeof(line), "./gannetctl --socket %s/state/control "
		 "%s --count 1 --export '/\377' 2>&1", d.dir, commands[_i]);
	f = popen(line, "r");
	ck_assert_ptr_nonnull(f);
	said[fread(said, 1, sizeof(said) - 1, f)] = '\0';
	ck_assert_int_eq(WEXITSTATUS(pclose(f)), 2);
	ck_assert_msg(strstr(said, "expected text in UTF-8"), "%s", said);
}

TEST(gannetctl_prints_a_line_for_each_call_and_the_sums)
{
	char said[2000];

	start(WAY_TCP);
	two_nulls("", said, sizeof(said));
	ck_assert_msg(strstr(said, " tcp - nfs NULL OK, ") &&
		      strstr(said, " us: decode ") &&
		      strstr(said, "; 40 bytes, reply 24\n") &&
		      strstr(said, "gannetctl: 2 calls, 0 dropped\n"), "%s",
		      said);
}

TEST(gannetctl_prints_json_where_asked)
{
	char said[2000];

	start(WAY_TCP);
	two_nulls("--json", said, sizeof(said));
	ck_assert_msg(!strncmp(said, "{}\n{\"time\":", 11) &&
		      strstr(said, "{\"calls\":2,\"dropped\":0}\n"), "%s",
		      said);
}
