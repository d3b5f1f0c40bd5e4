/* SPDX-License-Identifier: BSD-2-Clause */
/* ./gannet-nfs bench and certify: of ./gannetd, and of a liar. */
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/server/ctl_run.h"
#include "tests/server/liar.h"
#include "tests/server/tool_run.h"
#include "tests/unit/runner.h"

TEST_CASE(.timeout = 120);

static void has(const char *text, const char *want)
{
	ck_assert_msg(strstr(text, want), "no '%s' in %s", want, text);
}

/* Names in a directory, and the last of them. */
static unsigned names_in(const char *dir, char last[256])
{
	DIR *open = opendir(dir);
	struct dirent *e;
	unsigned n = 0;

	ck_assert_ptr_nonnull(open);
	while ((e = readdir(open)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 ||
		    strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(last, 256, "%s", e->d_name);
		n++;
	}
	closedir(open);
	return n;
}

static void expect_no_files(void)
{
	char last[256] = "";

	ck_assert_msg(names_in(export, last) == 0, "%s is left", last);
}

/* The next line of the output, as JSON. */
static json_t *next_line(const char **at)
{
	json_error_t error;
	json_t *line;

	line = json_loads(*at, JSON_DISABLE_EOF_CHECK, &error);
	ck_assert_msg(line, "%s in %s", error.text, *at);
	*at += error.position;
	return line;
}

static double number(const json_t *line, const char *name)
{
	const json_t *v = json_object_get(line, name);

	ck_assert_msg(json_is_number(v), "there is no number %s", name);
	return json_number_value(v);
}

static void check_line(const char **at, const char *work, int way, double ops)
{
	json_t *line = next_line(at);
	const json_t *name = json_object_get(line, "work");
	const json_t *over = json_object_get(line, "transport");

	ck_assert_str_eq(json_string_value(name), work);
	ck_assert_str_eq(json_string_value(over),
			 way == WAY_TCP ? "tcp" : "iwarp");
	ck_assert_double_eq(number(line, "ops"), ops);
	ck_assert_double_eq(number(line, "errors"), 0);
	ck_assert_double_gt(number(line, "ops_per_s"), 0);
	ck_assert_double_gt(number(line, "mean_us"), 0);
	ck_assert_double_le(number(line, "p50_us"), number(line, "p99_us"));
	ck_assert_double_le(number(line, "p999_us"), number(line, "max_us"));
	ck_assert_double_ge(number(line, "client_cpu"), 0);
	json_decref(line);
}

TEST_LOOP(works_are_measured_and_leave_no_files, 0, WAYS)
{
	const char *at;

	start(_i);
	ck_assert_msg(TOOL("bench", "--json", "--verify", "--ops=300",
			   "--size=64K", "--entries=50", "seqwrite",
			   "seqread", "mixed", url("")) == 0, "%s", err);
	ck_assert_str_eq(err, "");
	at = out;
	check_line(&at, "seqwrite", _i, 300);
	check_line(&at, "seqread", _i, 300);
	check_line(&at, "mixed", _i, 300);
	ck_assert_str_eq(at, "\n");
	expect_no_files();
	ck_assert_msg(TOOL("bench", "--ops=100", "--connections=3",
			   "--threads=2", "--entries=50", "lookup", "access",
			   "create", "readdirplus", url("")) == 0, "%s", err);
	ck_assert_str_eq(err, "");
	has(out, "create, ");
	has(out, "3 connections, depth 16\ncalls ");
	has(out, " us mean");
	has(out, "client CPU");
	expect_no_files();
	stop();
}

static unsigned count_of(const char *text, const char *word)
{
	unsigned n = 0;

	for (; (text = strstr(text, word)); text++)
		n++;
	return n;
}

/* The tool's page, in place of its output. */
static void read_page(const char *page)
{
	int fd = open(page, O_RDONLY);
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	free(out);
	out = calloc(1, (size_t)st.st_size + 1);
	ck_assert_int_eq(read(fd, out, (size_t)st.st_size), st.st_size);
	close(fd);
	has(out, "<!DOCTYPE html>");
	has(out, "</html>\n");
	ck_assert_uint_eq(count_of(out, "src="), 0);
	ck_assert_uint_eq(count_of(out, "href="), 0);
	/* The name of the directory is text. */
	has(out, "a&lt;b&amp;c");
}

TEST(all_calls_are_in_a_bar_and_on_a_page)
{
	const char *page;
	double sum = 0;

	start(WAY_TCP);
	page = path(d.dir, "page");
	ck_assert_int_eq(mkdir(path(export, "a<b&c"), 0777), 0);
	ck_assert_msg(TOOL("bench", "--ops=200", "--html", page, "getattr",
			   "create", url("a<b&c")) == 0, "%s", err);
	for (char *at = strstr(out, "create, "); (at = strstr(at, "| "));
	     at += 2)
		sum += strtod(at + 2, NULL);
	ck_assert_double_ge(sum, 99);
	ck_assert_double_le(sum, 101);
	read_page(page);
	ck_assert_uint_eq(count_of(out, "<svg "), 2);
	has(out, "<h2>getattr</h2>");
	ck_assert_int_eq(TOOL("certify", "--html", page, url("a<b&c")), 0);
	read_page(page);
	ck_assert_uint_eq(count_of(out, "<tr><td "), 27);
	has(out, "5 passed, 0 failed, 22 not judged");
	/* It is there until the next one is complete. */
	ck_assert_int_eq(TOOL("bench", "--ops=20", "--html", page, "getattr",
			      url("not-there")), 1);
	read_page(page);
	ck_assert_int_eq(TOOL("bench", "--ops=20", "--html", "/dev/stdout",
			      "getattr", url("")), 0);
	has(out, "</html>\n");
	ck_assert_int_eq(TOOL("bench", "--ops=20", "--html", "/no/where",
			      "getattr", url("")), 1);
	has(err, "/no/where: No such file");
	ck_assert_int_eq(TOOL("ls", "--html", page, url("")), 2);
	stop();
}

/* In a container each run can have the same number. */
TEST(half_a_page_of_a_run_that_was_killed_takes_the_place_of_none)
{
	char command[1024];
	const char *page;

	start(WAY_TCP);
	page = path(d.dir, "page");
	ck_assert_int_eq(mkdir(path(export, "a<b&c"), 0777), 0);
	snprintf(command, sizeof(command), ": >%s.$$.part; exec ./gannet-nfs "
		 "bench --ops=20 --html %s getattr '%s' >/dev/null", page, page,
		 url("a<b&c"));
	ck_assert_int_eq(system(command), 0);
	read_page(page);
	stop();
}

/* An odd number of calls leaves files, which are not to be in the way of the
 * next work's. */
TEST_LOOP(two_works_run_one_after_the_other_in_any_order, 0, WAYS)
{
	static const char *const works[] = { "create", "mixed", "randwrite" };

	start(_i);
	for (unsigned i = 0; i < ARRAY_SIZE(works); i++) {
		for (unsigned j = 0; j < ARRAY_SIZE(works); j++) {
			const char *at;

			ck_assert_msg(TOOL("bench", "--json", "--ops=303",
					   "--size=64K", "--entries=50",
					   works[i], works[j], url("")) == 0,
				      "%s, %s: %s", works[i], works[j], err);
			at = out;
			check_line(&at, works[i], _i, 303);
			check_line(&at, works[j], _i, 303);
			expect_no_files();
		}
	}
	stop();
}

TEST_LOOP(all_works_are_there_without_a_name, 0, WAYS)
{
	const char *at;

	start(_i);
	ck_assert_msg(TOOL("bench", "--json", "--ops=20", "--size=64K",
			   url("")) == 0, "%s", err);
	at = out;
	check_line(&at, "seqwrite", _i, 20);
	check_line(&at, "seqread", _i, 20);
	check_line(&at, "randwrite", _i, 20);
	check_line(&at, "randread", _i, 20);
	check_line(&at, "getattr", _i, 20);
	check_line(&at, "create", _i, 20);
	expect_no_files();
	stop();
}

static double calls_of(const char *procedure)
{
	const json_t *list, *row;
	double n = 0;
	json_t *all;
	size_t i;

	ck_assert_int_eq(ctl(&d, "--json stats"), 0);
	all = json_loads(ctl_out, 0, NULL);
	list = json_object_get(all, "procedures");
	ck_assert(json_is_array(list));
	json_array_foreach(list, i, row) {
		const json_t *name = json_object_get(row, "procedure");

		if (strcmp(json_string_value(name), procedure) == 0)
			n += number(row, "calls");
	}
	json_decref(all);
	return n;
}

TEST_LOOP(calls_are_as_many_as_the_server_counts, 0, WAYS)
{
	start(_i);
	ck_assert_int_eq(TOOL("bench", "--ops=321", "--size=64K", "randread",
			      url("")), 0);
	ck_assert_double_eq(calls_of("READ"), 321);
	/* That filled the file. */
	ck_assert_double_eq(calls_of("WRITE"), 1);
	ck_assert_int_eq(TOOL("bench", "--ops=17", "access", url("")), 0);
	ck_assert_double_eq(calls_of("ACCESS"), 17);
	stop();
}

TEST_LOOP(files_of_others_stay, 0, WAYS)
{
	static const char *const names[] = { "m0", "d0", "c0-0", "big" };
	char last[256];

	start(_i);
	make_file(path(d.dir, "like"), 5000);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		make_file(path(export, names[i]), 5000);
	ck_assert_msg(TOOL("bench", "--ops=200", "--size=64K", "--entries=9",
			   "mixed", url("")) == 0, "%s", err);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		same(path(export, names[i]), path(d.dir, "like"));
	ck_assert_uint_eq(names_in(export, last), ARRAY_SIZE(names));
	stop();
}

/* Runs until it is ended. */
static pid_t run_for_long(const char *work)
{
	pid_t pid = fork();

	if (pid == 0) {
		alarm(300);
		dup2(open("/dev/null", O_RDWR), STDOUT_FILENO);
		execl("./gannet-nfs", "gannet-nfs", "bench", "--quiet",
		      "--time=86400", "--size=64K", "--entries=100000", work,
		      url(""), NULL);
		_exit(127);
	}
	return pid;
}

static void await_name(const char *dir, char name[256])
{
	WAIT_WHILE(names_in(dir, name) == 0);
}

/* While it makes files, and while it uses them. */
static const char *const long_works[] = { "readdirplus", "create" };

TEST_LOOP(an_interruption_removes_the_files, 0, WAYS * 2)
{
	char name[256], more[256];
	int status;
	pid_t pid;

	start(_i / 2);
	pid = run_for_long(long_works[_i % 2]);
	await_name(export, name);
	ck_assert_ptr_nonnull(strstr(name, ".gannet-bench."));
	await_name(path(export, name), more);
	kill(pid, SIGINT);
	kill(pid, SIGINT);	/* as timeout(1) does, at once */
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT,
		      "status %x", status);
	expect_no_files();
	stop();
}

TEST(a_number_of_calls_is_measured_until_the_last_reply)
{
	double least = 1;
	const char *at;
	json_t *line;

	start(WAY_TCP);
	for (int i = 0; i < 50 && least > 0.008; i++) {
		ck_assert_msg(TOOL("bench", "--json", "--ops=1", "getattr",
				   url("")) == 0, "%s", err);
		at = out;
		line = next_line(&at);
		least = MIN(least, number(line, "seconds"));
		json_decref(line);
	}
	ck_assert(least <= 0.008);
	stop();
}

TEST_LOOP(a_rate_bounds_the_calls, 0, WAYS)
{
	const char *at;
	json_t *line;

	start(_i);
	ck_assert_msg(TOOL("bench", "--json", "--rate=200", "--ops=41",
			   "getattr", url("")) == 0, "%s", err);
	at = out;
	line = next_line(&at);
	ck_assert_double_ge(number(line, "seconds"), 40 / 200.);
	ck_assert_double_eq(number(line, "ops"), 41);
	json_decref(line);
	stop();
}

TEST_LOOP(refusals_are_told_in_words, 0, WAYS)
{
	start_with(_i, "ro,insecure");
	ck_assert_int_eq(TOOL("bench", "--ops=1", url("")), 1);
	has(err, "the export is read-only (NFS3ERR_ROFS)");
	ck_assert_int_eq(TOOL("bench", "--ops=1", url("absent")), 1);
	has(err, "NFS3ERR_NOENT");
	ck_assert_int_eq(TOOL("bench", "polish", url("")), 2);
	has(err, "there is no work 'polish'");
	ck_assert_int_eq(TOOL("bench", "--size=9Q", url("")), 2);
	has(err, "--size 9Q: expected a number");
	ck_assert_int_eq(TOOL("bench", "--time=-1", url("")), 2);
	has(err, "--time -1: expected seconds");
	ck_assert_int_eq(TOOL("bench", "--memory", url("")), 2);
	has(err, "--memory needs --ops and --server-pid");
	ck_assert_int_eq(TOOL("bench", "--verify", "--discard", url("")), 2);
	has(err, "can't be verified");
	stop();
}

/* Of a liar at this port. */
static int bench_liar(struct liar *l, const char *work)
{
	char to[64];
	int code;

	liar_start(l);
	snprintf(to, sizeof(to), "tcp://127.0.0.1:%u/e", l->port);
	code = TOOL("bench", "--ops=50", "--size=4K", "--verify",
		    "--timeout=1", "--retries=1", work, to);
	liar_stop(l);
	return code;
}

static const uint32_t fragments[] = { 1, 3, 24, 100, 0 };

TEST_LOOP(replies_are_one_however_they_are_cut, 0, ARRAY_SIZE(fragments))
{
	struct liar l = { .makes = true, .fragment = fragments[_i] };

	start(WAY_TCP);
	ck_assert_msg(bench_liar(&l, "getattr") == 0, "%s", err);
	ck_assert_msg(!strstr(out, "errors"), "%s", out);
	stop();
}

TEST(lies_end_a_run_in_words)
{
	struct liar l = { .makes = true };

	start(WAY_TCP);
	/* It finds none of the names that it made. */
	ck_assert_int_eq(bench_liar(&l, "lookup"), 1);
	has(err, "the first error is the reply to LOOKUP: no such file or "
	    "directory (NFS3ERR_NOENT)");
	has(out, "errors                50\n");
	/* It reads data that was never written. */
	ck_assert_int_eq(bench_liar(&l, "seqread"), 3);
	has(err, "what came is no reply of an NFS server");
	l.mute_procedure = 6;
	ck_assert_int_eq(bench_liar(&l, "seqread"), 3);
	has(err, "Connection timed out");
	l.mute_procedure = 0;
	l.refused = 9;
	ck_assert_int_eq(bench_liar(&l, "getattr"), 1);
	has(err, "access denied (NFS3ERR_ACCES)");
	l.refused = 13;
	ck_assert_int_eq(bench_liar(&l, "getattr"), 1);
	has(err, "could not be removed");
	l = (struct liar){ .denies = true };
	ck_assert_int_ne(bench_liar(&l, "getattr"), 0);
	l = (struct liar){ .mute = true };
	ck_assert_int_eq(bench_liar(&l, "getattr"), 3);
	stop();
}

/* The verdict of a row. */
static const char *verdict_of(const json_t *all, const char *id)
{
	const json_t *rows = json_object_get(all, "rows"), *row;
	size_t i;

	json_array_foreach(rows, i, row) {
		const json_t *has_id = json_object_get(row, "id");
		const json_t *verdict = json_object_get(row, "verdict");

		ck_assert(json_is_string(json_object_get(row, "requirement")));
		ck_assert_uint_gt(json_string_length(
			json_object_get(row, "text")), 0);
		if (strcmp(json_string_value(has_id), id) == 0)
			return json_string_value(verdict);
	}
	ck_abort_msg("there is no row %s", id);
	return NULL;
}

/* Rows that a client can judge at once. */
static const char *const judged[] = { "N-006", "N-010", "N-011", "N-012",
				      "N-016" };

TEST_LOOP(rows_of_the_list_are_judged, 0, WAYS)
{
	json_t *all;

	start(_i);
	ck_assert_msg(TOOL("certify", "--json", "--entries=300",
			   url("")) == 0, "%s", err);
	ck_assert_str_eq(err, "");
	expect_no_files();
	all = json_loads(out, 0, NULL);
	ck_assert_ptr_nonnull(all);
	ck_assert_uint_eq(json_array_size(json_object_get(all, "rows")), 27);
	for (size_t i = 0; i < ARRAY_SIZE(judged); i++)
		ck_assert_msg(strcmp(verdict_of(all, judged[i]), "pass") == 0,
			      "%s in %s", judged[i], out);
	ck_assert_str_eq(verdict_of(all, "N-001"), "not judged");
	ck_assert_str_eq(verdict_of(all, "N-013a"), "not judged");
	has(out, "\"300 are listed");
	has(out, "\"150 are listed");
	json_decref(all);
	ck_assert_int_eq(TOOL("certify", url("")), 0);
	has(out, "N-013a          not judged");
	has(out, ": 5 passed, 0 failed, 22 not judged from here\n");
	expect_no_files();
	stop();
}

static int certify_liar(struct liar *l)
{
	char to[64];
	int code;

	liar_start(l);
	snprintf(to, sizeof(to), "tcp://127.0.0.1:%u/e", l->port);
	code = TOOL("certify", "--timeout=1", "--retries=1", "--entries=20",
		    to);
	liar_stop(l);
	return code;
}

TEST(lies_fail_rows)
{
	struct liar l = { .makes = true };

	start(WAY_TCP);
	ck_assert_msg(certify_liar(&l) == 1, "%s", err);
	has(out, "N-006           FAIL        what is written is read back the "
	    "same: READ: ");
	has(out, "N-010           not judged  ");
	has(out, "N-011           FAIL ");
	has(out, "N-012           FAIL        another client sees ");
	has(out, ": the size is 4096, not 2097153");
	has(out, "N-013a          FAIL        a directory of 1,000,000 ");
	has(out, ": 0 of 20 are listed");
	l.stops = true;
	ck_assert_int_eq(certify_liar(&l), 1);
	has(out, "files is listed: READDIRPLUS: ");
	l = (struct liar){ .refused = 9, .makes = true };
	ck_assert_int_eq(certify_liar(&l), 1);
	has(err, "access denied (NFS3ERR_ACCES)");
	l = (struct liar){ .mute = true };
	ck_assert_int_eq(certify_liar(&l), 3);
	stop();
}
