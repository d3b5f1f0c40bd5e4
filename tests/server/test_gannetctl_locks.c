/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gannetctl(8) lists the holders of bytes, and the waiters.  In a separate
 * network: gannetd asks port 111 for the lock manager of a client that waits.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/server/ctl_json.h"
#include "tests/server/net_space.h"
#include "tests/server/nlm_client.h"
#include "tests/unit/runner.h"

static struct daemon_run d;
static int ends_by;			/* the signal */
static char audit[96];
static char dir[96], path[112], fileid[32];
static char handle[64];
static struct nlm_process one, two;

static const struct nlm_bytes head = { 0, 10, true };
static const struct nlm_bytes rest_shared = { 5, 0, false };

static void start(void)
{
	char export[160];
	struct stat st;
	int fd;

	ends_by = SIGTERM;
	daemon_prepare(&d);
	snprintf(audit, sizeof(audit), "%s/audit", d.dir);
	snprintf(dir, sizeof(dir), "%s/export", d.dir);
	snprintf(path, sizeof(path), "%s/file", dir);
	ck_assert_int_eq(mkdir(dir, 0755), 0);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	ck_assert_int_eq(fstat(fd, &st), 0);
	close(fd);
	snprintf(fileid, sizeof(fileid), "%llu",
		 (unsigned long long)st.st_ino);
	snprintf(export, sizeof(export),
		 "%s 127.0.0.1(rw,insecure,no_root_squash)", dir);
	strcpy(d.settings, "[audit]\nexport = /elsewhere\n");
	ck_assert(daemon_start(&d, (const char *const[]){
		"--export", export, "--metrics", "127.0.0.1:0", "--audit",
		audit, NULL }));
	nlmc_open(d.tcp_port);
	one = (struct nlm_process){ "c1", 11, 4, IPPROTO_TCP,
		nlmc_file(d.tcp_port, (int)geteuid(), dir, handle) };
	two = one;
	two.host = "c2";
	two.svid = 22;
}

static void stop(void)
{
	nlmc_close();
	daemon_end(&d, ends_by);
	ck_assert_int_eq(WEXITSTATUS(d.status), 0);
	daemon_clean(&d);
}

TEST_CASE(.setup = start, .teardown = stop);

static void lock_and_wait(void)
{
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, rest_shared, true), NLM4_BLOCKED);
}

static long long number(const json_t *o, const char *key)
{
	ck_assert_msg(json_is_integer(json_object_get(o, key)), "no %s", key);
	return json_integer_value(json_object_get(o, key));
}

static void has_text(const json_t *o, const char *key, const char *text)
{
	const char *is = json_string_value(json_object_get(o, key));

	ck_assert_msg(is && !strcmp(is, text), "%s is %s, not %s", key,
		      is ? is : "nothing", text);
}

/* The first row of this kind; NULL: none. */
static const json_t *row_of(const json_t *answer, const char *kind)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(answer, "rows"), i, row)
		if (!strcmp(json_string_value(json_object_get(row, "kind")),
			    kind))
			return row;
	return NULL;
}

static void is_held_by_one(const json_t *o)
{
	char owner[64] = "";

	/* The handle that nlm_client gives, "11@c1". */
	for (const char *at = "11@c1"; *at; at++)
		sprintf(owner + strlen(owner), "%02x", (unsigned char)*at);
	has_text(o, "client", "127.0.0.1");
	has_text(o, "host", "c1");
	has_text(o, "owner", owner);
	ck_assert_int_eq(number(o, "process"), 11);
	ck_assert_int_eq(number(o, "first"), 0);
	ck_assert_int_eq(number(o, "last"), 9);
	ck_assert(json_is_true(json_object_get(o, "exclusive")));
}

TEST(a_lock_and_its_waiter_are_told_with_file_owner_and_range)
{
	const json_t *row;
	json_t *r;

	lock_and_wait();
	r = ctl_json(&d, "locks");
	ck_assert_int_eq(number(r, "locks"), 1);
	ck_assert_int_eq(number(r, "waits"), 1);
	ck_assert_int_eq(number(r, "hosts"), 2);
	ck_assert_int_eq(number(r, "monitored"), 2);
	ck_assert_uint_eq(json_array_size(json_object_get(r, "rows")), 2);
	row = row_of(r, "lock");
	has_text(row, "export", dir);
	has_text(row, "fileid", fileid);
	is_held_by_one(row);
	row = row_of(r, "wait");
	ck_assert_ptr_eq(row, json_array_get(json_object_get(r, "rows"), 0));
	has_text(row, "fileid", fileid);
	has_text(row, "host", "c2");
	ck_assert_int_eq(number(row, "first"), 5);
	ck_assert(json_is_null(json_object_get(row, "last")));
	ck_assert(json_is_false(json_object_get(row, "exclusive")));
	is_held_by_one(json_object_get(row, "blocked_by"));
	json_decref(r);
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	/* Its lock manager can't be called back, so the grant stays. */
	EVENTUALLY(ctl(&d, "locks") == 0 && strstr(ctl_out, "told of "));
}

/* Milliseconds of the only lock. */
static long long held_ms(void)
{
	json_t *r = ctl_json(&d, "locks");
	long long ms = number(row_of(r, "lock"), "ms");

	json_decref(r);
	return ms;
}

TEST(the_time_of_a_lock_runs_from_its_first_bytes)
{
	const struct nlm_bytes next = { 10, 10, true };

	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	EVENTUALLY(held_ms() >= 300);
	/* Asked for again, made longer, made shorter. */
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	ck_assert_int_ge(held_ms(), 300);
	ck_assert_uint_eq(nlmc_lock(&one, next, false), NLM4_GRANTED);
	ck_assert_int_ge(held_ms(), 300);
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	ck_assert_int_ge(held_ms(), 300);
}

TEST(a_waiter_for_a_local_process_is_told_as_such)
{
	struct flock f = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	const json_t *row;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	json_t *r;

	ck_assert_int_eq(fcntl(fd, F_SETLK, &f), 0);
	ck_assert_uint_eq(nlmc_lock(&one, head, true), NLM4_BLOCKED);
	r = ctl_json(&d, "locks");
	row = row_of(r, "wait");
	ck_assert(json_is_null(json_object_get(row, "blocked_by")));
	json_decref(r);
	ctl_says(&d, "locks", 0, "in the way: no client's lock");
	close(fd);
}

TEST(shares_are_told)
{
	json_t *r;

	one.vers = 3;
	ck_assert_uint_eq(nlmc_share(&one, 2, 1), NLM4_GRANTED);
	r = ctl_json(&d, "locks");
	ck_assert_int_eq(number(r, "shares"), 1);
	has_text(row_of(r, "share"), "access", "read");
	has_text(row_of(r, "share"), "deny", "write");
	has_text(row_of(r, "share"), "host", "c1");
	json_decref(r);
	ctl_says(&d, "locks", 0, "a share: access read, deny write");
}

TEST(people_read_who_is_in_whose_way)
{
	lock_and_wait();
	ctl_says(&d, "locks", 0, "1 locks, 1 waits, 0 shares of 2 hosts, 2 of "
		 "them monitored\n");
	ctl_says(&d, "locks", 0, "c1 (127.0.0.1), process 11 has held for ");
	ctl_says(&d, "locks", 0, "c2 (127.0.0.1), process 22 has waited ");
	ctl_says(&d, "locks", 0, "bytes 5 to the end, shared; in the way: c1 "
		 "(127.0.0.1), process 11, with bytes 0 to 9\n");
	ck_assert_ptr_nonnull(strstr(ctl_out, fileid));
}

/* The line @n of the audit, or NULL: it is not there, or not whole. */
static json_t *audit_line(unsigned n)
{
	FILE *f = fopen(audit, "r");
	json_t *line = NULL;

	for (unsigned i = 0; f && i <= n; i++) {
		json_decref(line);
		line = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL);
	}
	if (f)
		fclose(f);
	return line;
}

/* Waits for the line @n, from 0 on, of the audit: this user had so much of the
 * client ended, of the host @name or of all. */
static void is_noted(unsigned n, const char *name, long long locks,
		     long long waits)
{
	json_t *o = NULL;

	EVENTUALLY((o = audit_line(n)));
	has_text(o, "proc", "locks release");
	has_text(o, "client", "127.0.0.1");
	ck_assert_int_eq(number(o, "uid"), geteuid());
	ck_assert_int_eq(number(o, "locks"), locks);
	ck_assert_int_eq(number(o, "waits"), waits);
	if (name)
		has_text(o, "host", name);
	else
		ck_assert_ptr_null(json_object_get(o, "host"));
	json_decref(o);
}

TEST(the_locks_of_one_client_are_released)
{
	struct nlm_process three = two;
	const struct nlm_bytes later = { 100, 10, true };

	three.host = "c3";
	three.svid = 33;
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&three, later, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&one, later, true), NLM4_BLOCKED);
	ctl_says(&d, "locks release", 2, "see gannetctl --help");
	ctl_says(&d, "locks release c1", 1, "expected an IPv4 or IPv6 address");
	ctl_says(&d, "locks release 127.0.0.1 c2", 1, "no such client");
	ctl_says(&d, "locks release 127.0.0.2", 1, "no such client");
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_DENIED);
	ctl_says(&d, "locks release 127.0.0.1 c1", 0, "127.0.0.1: 1 locks, 1 "
		 "waits, 0 shares of 1 hosts ended\n");
	is_noted(0, "c1", 1, 1);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_GRANTED);
	/* The lock of another host at the address stays. */
	ck_assert_uint_eq(nlmc_lock(&two, later, false), NLM4_DENIED);
	ctl_says(&d, "--json locks release 127.0.0.1", 0, "\"locks\": 2");
	is_noted(1, NULL, 2, 0);
	ck_assert_uint_eq(nlmc_lock(&one, later, false), NLM4_GRANTED);
}

/* ---- the end */

/* A socket of @type at port 111, which is never read. */
static int silent_rpcbind(int type)
{
	const struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons(111),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	if (type == SOCK_STREAM)
		ck_assert_int_eq(listen(fd, 8), 0);
	return fd;
}

static void *unlock_two(void *status)
{
	*(uint32_t *)status = nlmc_unlock(&two, rest_shared);
	return NULL;
}

/* The client's locks end with the server, so it asks the next one. */
TEST(a_server_that_ends_waits_for_no_answer_to_a_call_back)
{
	int fds[] = { silent_rpcbind(SOCK_STREAM), silent_rpcbind(SOCK_DGRAM) };
	struct pollfd asked[] = { { fds[0], POLLIN, 0 },
				  { fds[1], POLLIN, 0 } };
	uint32_t status = NLM4_GRANTED;
	pthread_t thread;

	lock_and_wait();
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	/* Before it is called back, an UNLOCK ends its wait and has the
	 * answer. */
	EVENTUALLY(poll(asked, 2, 0) > 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, unlock_two, &status), 0);
	EVENTUALLY(ctl(&d, "waits") == 0 &&
		   strstr(ctl_out, "the answer to a call-back"));
	ck_assert_int_eq(kill(d.pid, SIGTERM), 0);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(status, NLM4_DENIED_GRACE_PERIOD);
	close(fds[0]);
	close(fds[1]);
	/* A signal that does nothing: the second SIGTERM would hurry. */
	ends_by = 0;
}

/* Expects @text, and that a terminal shows all of the output: ASCII. */
static void shows_plain(const char *arguments, const char *text)
{
	ctl_says(&d, arguments, 0, text);
	for (const char *at = ctl_out; *at; at++)
		ck_assert_msg((*at >= ' ' && *at != 0x7f) || *at == '\n',
			      "%s: byte %02x", arguments, (unsigned char)*at);
}

TEST(a_name_of_a_client_commands_no_terminal)
{
	char below[128], file[136], shown[160], told[64];
	int fd;

	/* ESC [ 2 J and a line; CSI as one character, and right to left. */
	snprintf(below, sizeof(below), "%s/d\033[2J\nline", dir);
	snprintf(file, sizeof(file), "%s/file", below);
	ck_assert_int_eq(mkdir(below, 0755), 0);
	fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	ck_assert_int_ge(fd, 0);
	close(fd);
	one.fh = nlmc_file(d.tcp_port, (int)geteuid(), below, handle);
	snprintf(shown, sizeof(shown), "  mounted %s/d\\033[2J\\012line\n",
		 dir);
	shows_plain("clients", shown);
	one.host = "c\302\2332J\342\200\256d";
	ck_assert_uint_eq(nlmc_lock_unwatched(&one, head), NLM4_GRANTED);
	snprintf(told, sizeof(told), " c\\302\\2332J\\342\\200\\256d (");
	shows_plain("locks", told);
	/* A letter with an accent stays as it is. */
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	one.host = "c\303\251";
	ck_assert_uint_eq(nlmc_lock_unwatched(&one, head), NLM4_GRANTED);
	ctl_says(&d, "locks", 0, " c\303\251 (127.0.0.1)");
}

TEST(an_answer_has_no_more_rows_than_asked_for)
{
	json_t *r;

	lock_and_wait();
	r = ctl_json(&d, "locks 1");
	ck_assert_int_eq(number(r, "locks"), 1);
	ck_assert_uint_eq(json_array_size(json_object_get(r, "rows")), 1);
	ck_assert_ptr_nonnull(row_of(r, "wait"));
	json_decref(r);
	ctl_says(&d, "locks 1", 0, "1 more are not shown");
	ctl_says(&d, "locks 0", 0, "2 more are not shown");
	ctl_says(&d, "locks 1001", 1, "expected a number up to 1000");
	ctl_says(&d, "locks x", 1, "expected a number up to 1000");
	ctl_says(&d, "locks 1 2", 2, "see gannetctl --help");
	ctl_says(&d, "lokcs", 2, "did you mean 'locks'?");
	ctl_says(&d, "padlocks", 2, "no such command: see gannetctl --help");
}

TEST(the_list_ends_at_a_thousand)
{
	json_t *r;

	for (unsigned i = 0; i < 1001; i++) {
		const struct nlm_bytes b = { 2 * i, 1, false };

		ck_assert_uint_eq(nlmc_lock(&one, b, false), NLM4_GRANTED);
	}
	r = ctl_json(&d, "locks");
	ck_assert_int_eq(number(r, "locks"), 1001);
	ck_assert_uint_eq(json_array_size(json_object_get(r, "rows")), 1000);
	json_decref(r);
}

TEST(the_manual_names_each_member)
{
	json_t *r;

	lock_and_wait();
	two.vers = 3;
	ck_assert_uint_eq(nlmc_share(&two, 2, 1), NLM4_GRANTED);
	r = ctl_json(&d, "locks");
	ck_assert_ptr_nonnull(row_of(r, "share"));
	ctl_manual_has(r);
	json_decref(r);
}

/* The server's answer to GET @from. */
static const char *page(const char *from)
{
	static char out[1 << 20];
	char request[64];
	int len = snprintf(request, sizeof(request),
			   "GET %s HTTP/1.0\r\n\r\n", from);

	daemon_fetch(daemon_web_port(&d), request, (size_t)len, out,
		     sizeof(out));
	ck_assert_msg(strstr(out, " 200 "), "%.300s", out);
	return out;
}

TEST(metrics_and_the_status_page_have_locks_where_they_are_built)
{
	if (system("./gannetd --version | grep -q 'no metrics'") == 0)
		return;
	lock_and_wait();
	ck_assert_ptr_nonnull(strstr(page("/metrics"),
				     "\ngannet_locks_held 1\n"));
	ck_assert_ptr_nonnull(strstr(page("/metrics"),
				     "\ngannet_locks_waiting 1\n"));
	ck_assert_ptr_nonnull(strstr(page("/metrics"),
				     "\ngannet_lock_hosts_monitored 2\n"));
	ck_assert_ptr_nonnull(strstr(page("/status.json"),
				     "\"locks\":1,\"waits\":1,"));
}

/* @o has these members, of a string with blanks between, in any order. */
static void has_only(const json_t *o, const char *members)
{
	char text[256], *rest = text, *name;
	size_t n = 0;

	ck_assert(json_is_object(o));
	snprintf(text, sizeof(text), "%s", members);
	for (; (name = strsep(&rest, " ")); n++)
		ck_assert_msg(json_object_get(o, name), "no %s", name);
	ck_assert_uint_eq(json_object_size(o), n);
}

static const json_t *first_of(const json_t *o, const char *name)
{
	const json_t *list = json_object_get(o, name);

	ck_assert_uint_gt(json_array_size(list), 0);
	return json_array_get(list, 0);
}

/* The table "Who may know what" of SECURITY.md. */
TEST(the_status_page_has_what_every_local_user_may_know_and_no_more)
{
	json_t *o, *locks;

	if (system("./gannetd --version | grep -q 'no metrics'") == 0)
		return;
	lock_and_wait();
	o = json_loads(strstr(page("/status.json"), "{\"status\":"), 0, NULL);
	ck_assert_ptr_nonnull(o);
	has_only(o, "status exports stats waits clients latency locks");
	has_only(json_object_get(o, "status"), "version state calls pid "
		 "uptime_s listeners memory");
	has_only(first_of(o, "exports"), "path kind away clients held_back "
		 "held_back_ns");
	has_only(json_object_get(o, "locks"), "locks waits shares");
	has_only(json_object_get(o, "stats"), "counters procedures");
	has_only(json_object_get(o, "waits"), "workers calls");
	has_only(json_object_get(o, "latency"), "by rows");
	has_only(first_of(o, "clients"), "address calls failed bytes_read "
		 "bytes_written ns held_back held_back_ns p50_ns p99_ns "
		 "p999_ns first_seen_s last_seen_s udp connections "
		 "transports paths");
	json_decref(o);
	/* The control socket has the rest. */
	locks = ctl_json(&d, "locks");
	ck_assert_ptr_nonnull(json_object_get(first_of(locks, "rows"),
					      "owner"));
	json_decref(locks);
	o = ctl_json(&d, "status");
	ck_assert_ptr_nonnull(json_object_get(o, "state_dir"));
	json_decref(o);
	o = ctl_json(&d, "exports");
	ck_assert_ptr_nonnull(json_object_get(json_array_get(o, 0), "rules"));
	json_decref(o);
}

int main(void)
{
	return net_space_run_tests();
}
