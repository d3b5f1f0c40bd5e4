/* SPDX-License-Identifier: BSD-2-Clause */
/* The limits of exports in a server that runs: gannetctl(8) changes them and
 * reports their effect, and the server's end waits for none. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/server/ctl_json.h"
#include "tests/unit/runner.h"

#define CLIENT		"*(rw,insecure,no_root_squash"

static struct daemon_run d;
static char exports[160];

static void write_exports(const char *limits)
{
	FILE *f = fopen(exports, "w");

	ck_assert_ptr_nonnull(f);
	fprintf(f, "mem:/a " CLIENT "%s)\nmem:/b " CLIENT ")\n", limits);
	fclose(f);
}

/* A call a second: the work would take minutes. */
static void start(void)
{
	const char *const args[] = { "--exports-file", exports, NULL };

	daemon_prepare(&d);
	snprintf(exports, sizeof(exports), "%s/exports", d.dir);
	write_exports(",client_max_ops=1");
	ck_assert(daemon_start(&d, args));
}

static void stop(void)
{
	daemon_end(&d, SIGTERM);
	ck_assert_int_eq(WEXITSTATUS(d.status), 0);
	daemon_clean(&d);
}

TEST_CASE(.setup = start, .teardown = stop, .timeout = 120);

/* ---- work: 400 calls, 16 at a time */

static pid_t worker;

static void work(const char *way)
{
	char url[128];

	snprintf(url, sizeof(url), "%s://127.0.0.1:%u/a?mountport=%u", way,
		 *way == 't' ? d.tcp_port : d.rdma_port, d.tcp_port);
	worker = fork();
	if (worker == 0) {
		if (!freopen("/dev/null", "w", stdout))
			_exit(126);
		execl("./gannet-nfs", "gannet-nfs", "bench", "getattr",
		      "--ops", "400", url, (char *)NULL);
		_exit(127);
	}
	ck_assert_int_gt(worker, 0);
}

static bool waits(void)
{
	return ctl(&d, "waits") == 0 && strstr(ctl_out, " for limit\n");
}

static bool works(void)
{
	return waitpid(worker, NULL, WNOHANG) == 0;
}

/* All calls were answered, and none with an error. */
static void work_ends(void)
{
	int status;

	ck_assert_int_eq(waitpid(worker, &status, 0), worker);
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}

static const char *const ways[] = { "tcp", "rdma+iwarp" };

TEST_LOOP(gannetctl_takes_a_limit_away_from_calls_that_wait, 0, 2)
{
	work(ways[_i]);
	EVENTUALLY(waits());
	ck_assert(works());
	ctl_says(&d, "exports set /a '" CLIENT ",client_max_ops=0)'", 0,
		 "new: ");
	work_ends();
	ck_assert(!waits());
}

TEST_LOOP(a_reload_changes_the_limits_of_calls_that_wait, 0, 2)
{
	work(ways[_i]);
	EVENTUALLY(waits());
	write_exports(",client_max_ops=100000,max_ops=100000");
	kill(d.pid, SIGHUP);
	work_ends();
}

TEST(a_mistake_in_a_limit_is_refused_with_its_place_and_changes_nothing)
{
	work("tcp");
	EVENTUALLY(waits());
	write_exports(",client_max_ops=many");
	ctl_says(&d, "reload", 1, "exports:1: client_max_ops=many: expected a "
		 "number of calls a second; 0 is no limit");
	ctl_says(&d, "exports set /a '" CLIENT ",max_bytes=1x)'", 1,
		 "max_bytes=1x: expected a number of bytes a second");
	ctl_says(&d, "exports add 'mem:/a h(max_ops=-1)'", 1, "max_ops=-1: ");
	ctl_says(&d, "exports", 0, "client_max_ops=1)");
	ck_assert(waits() && works());
	kill(worker, SIGKILL);
	waitpid(worker, NULL, 0);
}

TEST(an_export_s_own_limit_is_told_and_can_be_taken_away)
{
	ctl_says(&d, "exports add '/c 127.0.0.1(max_ops=7)'", 1, "/c");
	ctl_says(&d, "exports add 'mem:/c h(max_ops=7) g'", 0, "max_ops=7");
	ctl_says(&d, "exports set /c 'g(rw)'", 0, "max_ops=7)");
	ctl_says(&d, "exports set /c 'g(max_ops=8,max_bytes=2m)'", 0,
		 "max_ops=8,max_bytes=2m)");
	ctl_says(&d, "exports", 0, "sec=sys,max_ops=8,max_bytes=2m)");
	ctl_says(&d, "exports set /c 'g(max_ops=0,max_bytes=0)'", 0, "new: ");
	ctl(&d, "exports");
	ck_assert_ptr_null(strstr(ctl_out, "=8"));
}

/* ---- ends */

TEST_LOOP(the_end_waits_for_no_limit, 0, 2)
{
	work(ways[_i]);
	EVENTUALLY(waits());
	daemon_end(&d, SIGTERM);
	ck_assert_int_eq(WEXITSTATUS(d.status), 0);
	kill(worker, SIGKILL);
	waitpid(worker, NULL, 0);
	ck_assert(daemon_start(&d, (const char *const[]){
		"--exports-file", exports, NULL }));
}

TEST_LOOP(a_drain_waits_for_no_limit, 0, 2)
{
	work(ways[_i]);
	EVENTUALLY(waits());
	ctl_says(&d, "drain --timeout 60", 0, "");
	ctl_says(&d, "status", 0, "drained");
	ctl_says(&d, "resume", 0, "");
	kill(worker, SIGKILL);
	waitpid(worker, NULL, 0);
}

TEST_LOOP(disconnect_waits_for_no_limit, 0, 2)
{
	work(ways[_i]);
	EVENTUALLY(waits());
	kill(worker, SIGSTOP);
	ctl_says(&d, "disconnect 127.0.0.1", 0, "");
	EVENTUALLY(!waits());
	kill(worker, SIGKILL);
	waitpid(worker, NULL, 0);
}

/* ---- callers that were held back */

static void was_held(const json_t *row, bool is)
{
	json_int_t n = json_integer_value(json_object_get(row, "held_back"));
	json_int_t ns = json_integer_value(json_object_get(row,
							   "held_back_ns"));

	ck_assert(json_is_integer(json_object_get(row, "held_back_ns")));
	ck_assert(is ? n >= 300 && ns > 0 : n == 0 && ns == 0);
}

TEST(clients_latency_and_exports_tell_what_was_held_back)
{
	const json_t *row;
	json_t *r;

	ctl_says(&d, "exports set /a '" CLIENT ",client_max_ops=200)'", 0, "");
	work("tcp");
	work_ends();
	r = ctl_json(&d, "clients");
	was_held(ctl_row(r, "address", "127.0.0.1"), true);
	json_decref(r);
	r = ctl_json(&d, "latency --by export");
	was_held(ctl_row(json_object_get(r, "rows"), "name", "/a"), true);
	json_decref(r);
	r = ctl_json(&d, "latency --by procedure");
	was_held(ctl_row(json_object_get(r, "rows"), "name", "nfs3 GETATTR"),
		 true);
	json_decref(r);
	r = ctl_json(&d, "exports");
	ctl_manual_has(r);
	row = ctl_row(r, "path", "/a");
	was_held(row, true);
	was_held(ctl_row(r, "path", "/b"), false);
	ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(
		json_object_get(row, "rules"), 0), "client_max_ops")), 200);
	ck_assert_int_eq(json_integer_value(json_object_get(row, "max_ops")),
			 0);
	json_decref(r);
	ctl_says(&d, "exports", 0, "limits held calls back ");
	ctl_says(&d, "clients", 0, "limits held calls back ");
}

TEST(top_tells_what_is_held_back)
{
	bool told = false;

	ctl_says(&d, "exports set /a '" CLIENT ",client_max_ops=200)'", 0, "");
	work("tcp");
	EVENTUALLY(waits());
	ctl_says(&d, "top --by export --count 1 --interval 0.2", 0, "held/s");
	ctl_says(&d, "--json top --by client --count 3 --interval 0.2", 0,
		 "\"held_back\":");
	for (const char *at = ctl_out; (at = strstr(at, "\"held_back\":"));
	     at++)
		told |= atoi(at + strlen("\"held_back\":")) > 0;
	ck_assert(told);
	work_ends();
}
