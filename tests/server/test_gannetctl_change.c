/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes by gannetctl(8): of the settings and of the exports. */
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/server/ctl_run.h"
#include "tests/unit/runner.h"

static struct daemon_run d;
static char conf[160], exports[160];

static void setup(void)
{
	daemon_prepare(&d);
	snprintf(conf, sizeof(conf), "%s/g.conf", d.dir);
	snprintf(exports, sizeof(exports), "%s/exports", d.dir);
}

static void teardown(void)
{
	daemon_clean(&d);
}

TEST_CASE(.setup = setup, .teardown = teardown);

static void write_to(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

#define RULE	"mem:/a *(rw,insecure)\n"

static void starts_with(const char *settings)
{
	const char *const args[] = { "--config", conf, "--exports-file",
				     exports, NULL };

	write_to(conf, settings);
	write_to(exports, RULE);
	ck_assert(daemon_start(&d, args));
}

static void starts(void)
{
	starts_with("");
}

static void ends(void)
{
	daemon_end(&d, SIGTERM);
	ck_assert_int_eq(WEXITSTATUS(d.status), 0);
}

static void says(const char *arguments, const char *text)
{
	ctl_says(&d, arguments, 0, text);
}

static void refuses(const char *arguments, const char *text)
{
	ctl_says(&d, arguments, 1, text);
}

/* ---- reload */

TEST(a_reload_answers_which_settings_and_rules_changed)
{
	starts();
	says("reload", "nothing has changed");
	write_to(conf, "[log]\nlevel = debug\n[server]\npollers = 3\n");
	write_to(exports, "mem:/a *(ro,insecure)\n");
	says("reload", "[log] level: 'info' becomes 'debug'\n");
	ck_assert_ptr_nonnull(strstr(ctl_out, "becomes '3' at the next start"));
	ck_assert_ptr_nonnull(strstr(ctl_out, "no more: mem:/a *(rw,"));
	ck_assert_ptr_nonnull(strstr(ctl_out, "new: mem:/a *(ro,"));
	write_to(exports, RULE);
	says("--json reload", "\"change\": \"gone\"");
	ck_assert(daemon_answers(&d));
	ends();
}

TEST(a_reload_with_a_mistake_names_its_place_and_changes_nothing)
{
	starts();
	write_to(conf, "[log]\nlevel = debug\n[server]\nthreads = 0\n");
	write_to(exports, "");
	refuses("reload", "g.conf:4: [server] threads: expected a number");
	ck_assert_ptr_nonnull(strstr(ctl_out, "(nothing has changed)"));
	write_to(conf, "");
	write_to(exports, RULE "\n" "mem:/b *(nonsense)\n");
	refuses("reload", "exports:3: ");
	says("exports", "/a\t*");
	ck_assert_ptr_null(strstr(ctl_out, "/b"));
	write_to(exports, RULE);
	says("reload", "nothing has changed");
	ends();
}

TEST(a_reload_tells_its_warnings)
{
	starts();
	write_to(exports, RULE RULE);
	says("reload", "warning: ");
	ck_assert_ptr_nonnull(strstr(ctl_out, "exports:2: client '*' of '/a' "
				     "is there already"));
	write_to(exports, "");
	says("reload", "warning: ");
	ck_assert_ptr_nonnull(strstr(ctl_out, "there is no export in it; add "
				     "a line"));
	ck_assert_ptr_nonnull(strstr(ctl_out, "no more: mem:/a *(rw,"));
	ends();
}

/* The file is a pipe without a writer: to open it takes for ever, as a
 * directory can on a disk that hangs. */
TEST(a_reload_that_hangs_keeps_only_other_reloads_waiting)
{
	char line[300], link_name[180];
	FILE *f[2];
	int fd;

	starts();
	snprintf(link_name, sizeof(link_name), "%s.pipe", exports);
	ck_assert_int_eq(mkfifo(link_name, 0600), 0);
	ck_assert_int_eq(unlink(exports), 0);
	ck_assert_int_eq(link(link_name, exports), 0);
	snprintf(line, sizeof(line), "./gannetctl --socket %s/state/control "
		 "reload 2>&1", d.dir);
	for (int i = 0; i < 2; i++) {
		f[i] = popen(line, "r");
		ck_assert_ptr_nonnull(f[i]);
	}
	kill(d.pid, SIGHUP);
	says("status", "gannetd ");
	ck_assert(daemon_answers(&d));
	/* This returns when the server waits for it. */
	fd = open(link_name, O_WRONLY);
	ck_assert_int_ge(fd, 0);
	write_to(conf, RULE);
	ck_assert_int_eq(rename(conf, exports), 0);
	write_to(conf, "");
	ck_assert_int_eq(write(fd, RULE, strlen(RULE)), (ssize_t)strlen(RULE));
	close(fd);
	for (int i = 0; i < 2; i++) {
		ck_assert_ptr_nonnull(fgets(line, sizeof(line), f[i]));
		ck_assert_str_eq(line, "nothing has changed\n");
		ck_assert_int_eq(pclose(f[i]), 0);
	}
	ends();
}

TEST(a_server_that_ends_answers_those_that_wait)
{
	char line[300];
	FILE *f[2];

	starts();
	ck_assert_int_eq(unlink(exports), 0);
	ck_assert_int_eq(mkfifo(exports, 0600), 0);
	kill(d.pid, SIGHUP);
	snprintf(line, sizeof(line), "./gannetctl --socket %s/state/control "
		 "reload 2>&1", d.dir);
	for (int i = 0; i < 2; i++) {
		f[i] = popen(line, "r");
		ck_assert_ptr_nonnull(f[i]);
	}
	daemon_end(&d, SIGKILL);
	for (int i = 0; i < 2; i++) {
		ck_assert_ptr_nonnull(fgets(line, sizeof(line), f[i]));
		ck_assert_int_eq(WEXITSTATUS(pclose(f[i])), 1);
	}
}

TEST(reloads_by_signals_and_by_gannetctl_do_not_disturb_each_other)
{
	starts();
	for (int i = 0; i < 20; i++) {
		kill(d.pid, SIGHUP);
		says("reload", "nothing has changed");
	}
	ck_assert(daemon_answers(&d));
	ends();
}

/* ---- exports */

static bool lists(const char *text)
{
	ck_assert_int_eq(ctl(&d, "exports"), 0);
	return strstr(ctl_out, text);
}

TEST(a_rule_is_added_changed_and_removed_until_a_reload)
{
	starts();
	says("exports add 'mem:/b 192.0.2.1(rw) 192.0.2.2'",
	     "new: mem:/b 192.0.2.1(rw,");
	ck_assert_ptr_nonnull(strstr(ctl_out, "new: mem:/b 192.0.2.2(ro,"));
	ck_assert(daemon_logged(&d, "exports: new: mem:/b 192.0.2.1(rw,"));
	ck_assert(lists("/b\t192.0.2.1(rw,"));
	ck_assert(lists("\tgannetctl\n"));
	says("exports set /b '192.0.2.1(ro)'", "new: mem:/b 192.0.2.1(ro,");
	says("exports remove /b 192.0.2.2", "no more: mem:/b 192.0.2.2(ro,");
	ck_assert(daemon_logged(&d, "exports: no more: mem:/b 192.0.2.2(ro,"));
	says("exports set /a '*(ro)'", "new: mem:/a *(ro,");
	says("reload", "no more: mem:/b 192.0.2.1(ro,");
	ck_assert(!lists("/b") && lists("/a\t*(rw,") && !lists("gannetctl"));
	says("exports remove /a", "no more: mem:/a *(rw,");
	ck_assert(!lists("/a"));
	says("reload", "new: mem:/a *(rw,");
	ck_assert(daemon_answers(&d));
	ends();
}

TEST(a_rule_that_is_kept_holds_after_a_reload_and_a_start)
{
	starts();
	says("exports add --keep 'mem:/b 192.0.2.1(rw) 192.0.2.2'", "new: ");
	says("exports add 'mem:/c *'", "new: ");
	says("exports remove /b 192.0.2.1", "no more: ");
	says("exports --keep set /b '192.0.2.2(rw)'",
	     "new: mem:/b 192.0.2.2(rw,");
	says("reload", "no more: mem:/c *(");
	ck_assert_ptr_nonnull(strstr(ctl_out, "new: mem:/b 192.0.2.1(rw,"));
	ck_assert(lists("state/gannetctl.exports:"));
	ends();
	starts();
	ck_assert(lists("/b\t192.0.2.2(rw,") && lists("/b\t192.0.2.1(rw,"));
	says("exports remove --keep /b", "no more: ");
	says("reload", "nothing has changed");
	ck_assert(!lists("/b"));
	ends();
}

/* A reload tells of another state directory, which holds at the next start. */
TEST(rules_that_are_kept_stay_in_the_state_directory_of_the_start)
{
	char text[300];

	d.no_state_dir = true;
	snprintf(text, sizeof(text), "[server]\nstate-dir = %s/state\n",
		 d.dir);
	starts_with(text);
	says("exports add --keep 'mem:/b *'", "new: ");
	snprintf(text, sizeof(text), "[server]\nstate-dir = %s\n", d.dir);
	write_to(conf, text);
	says("reload", "at the next start");
	ck_assert_ptr_null(strstr(ctl_out, "/b"));
	says("exports add --keep 'mem:/c *'", "new: ");
	says("reload", "nothing has changed");
	ck_assert(lists("/b\t*") && lists("/c\t*"));
	ends();
}

TEST(rules_of_other_files_stay_when_those_that_were_kept_are_removed)
{
	starts();
	says("exports add --keep 'mem:/a 192.0.2.1(rw) 192.0.2.2(rw)'",
	     "new: ");
	says("exports add --keep 'mem:/a *(rw,insecure)'", "already");
	says("exports set /a '192.0.2.1(ro)'", "new: ");
	says("exports remove --keep /a '*'", "nothing has changed");
	ck_assert(lists("/a\t*(rw,"));
	says("exports remove --keep /a", "no more: mem:/a 192.0.2.1(ro,");
	ck_assert_ptr_nonnull(strstr(ctl_out, "no more: mem:/a 192.0.2.2(rw,"));
	ck_assert_ptr_null(strstr(ctl_out, "/a *("));
	ck_assert(lists("/a\t*(rw,"));
	says("reload", "nothing has changed");
	ends();
}

TEST(a_change_with_a_mistake_changes_nothing_and_says_why)
{
	char *before;

	starts();
	says("exports", "/a");
	before = strdup(ctl_out);
	refuses("exports add 'mem:/b 192.0.2.1(rw) *(nonsense)'",
		"gannetctl: option 'nonsense' is not known");
	refuses("exports add 'mem:/b *(crosmnt)'", "did you mean 'crossmnt'?");
	refuses("exports set /a '*(no_root_sqash)'",
		"did you mean 'no_root_squash'?");
	refuses("exports add 'b *'", "is not an absolute path");
	refuses("exports add ''", "expected a directory");
	refuses("exports add 'mem:/b *\nmem:/c *'", "more than one line");
	refuses("exports add 'mem:/a *(ro)'", "with other options");
	refuses("exports add '/no/such/directory *'",
		"there is no such directory");
	refuses("exports remove /b", "'/b' is not exported");
	refuses("exports remove /a 192.0.2.9", "no rule for the client");
	refuses("exports remove /a '192.0.2.0/99'", "client");
	refuses("exports set /a '*(nonsense)'", "nonsense");
	refuses("exports set /a '* 192.0.2.1'", "expected one CLIENT");
	refuses("exports set /a ''", "expected one CLIENT");
	refuses("exports set /a '*(fsid=7)'", "can't change here");
	refuses("exports set /b '*'", "'/b' is not exported");
	refuses("exports remove --keep /a", "no such rule is kept in ");
	refuses("exports set --keep /a '*(ro)'", "no such rule is kept in ");
	says("exports", before);
	free(before);
	says("reload", "nothing has changed");
	ctl_says(&d, "exports add", 2, "expected");
	ctl_says(&d, "exports list", 2, "expected");
	ctl_says(&d, "status --keep", 2, "expected");
	ends();
}

TEST(nothing_is_kept_that_the_next_start_would_refuse)
{
	starts();
	says("exports set /a '*(ro)'", "new: ");
	refuses("exports add --keep 'mem:/a *(ro)'", "a start would fail");
	ck_assert_ptr_nonnull(strstr(ctl_out, "(nothing has changed)"));
	says("reload", "new: mem:/a *(rw,");
	ends();
	starts();
	ends();
}

TEST(a_rule_that_can_not_be_kept_does_not_hold)
{
	char file[200];

	starts();
	snprintf(file, sizeof(file), "%s/state/gannetctl.exports.new", d.dir);
	ck_assert_int_eq(mkdir(file, 0700), 0);
	refuses("exports add --keep 'mem:/b *'",
		"gannetctl.exports can't be written: Is a directory");
	ck_assert(!lists("/b"));
	ck_assert_int_eq(rmdir(file), 0);
	says("exports add --keep 'mem:/b *'", "new: ");
	ends();
}

TEST(paths_may_have_any_bytes_that_a_path_may_have)
{
	starts();
	says("exports add --keep '\"mem:/my dir\" *(rw)'", "new: ");
	says("exports remove --keep '/my dir'", "no more: mem:/my\\040dir *");
	says("exports add --keep 'mem:/q\\042\\012z *(rw)'", "new: ");
	says("exports remove --keep '/q\"\nz'", "no more: ");
	says("exports add --keep \"$(printf 'mem:/\\303z *(rw)')\"",
	     "new: mem:/\\303z *(");
	says("--json exports", "\"/\\\\303z\"");
	says("exports remove --keep \"$(printf '/\\303z')\"", "no more: ");
	says("exports add --keep 'mem:/\xc3\xa4 *'", "new: ");
	says("exports remove --keep '/\xc3\xa4'", "no more: ");
	says("reload", "nothing has changed");
	ends();
}

TEST(a_directory_without_clients_is_offered_to_this_machine_alone)
{
	starts();
	says("exports add mem:/b", "new: mem:/b 127.0.0.0/8(ro,");
	ck_assert(!lists("/b\t*"));
	ends();
}

/* Such an export is opened when it is used, and asking for it can take long. */
TEST(a_change_opens_no_other_export_with_a_mountpoint)
{
	char line[200];

	starts();
	snprintf(line, sizeof(line), "exports add '%s *(mountpoint=/)'",
		 d.dir);
	says(line, "new: ");
	says("exports add 'mem:/b *'", "new: ");
	says("reload", "no more: ");
	says("stats", "control_requests");
	ck_assert_ptr_null(strstr(ctl_out, "children_opened"));
	ends();
}

/* ---- odd requests */

TEST(a_request_of_a_mebibyte_is_refused)
{
	const size_t len = 1 << 20;
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char *bytes = malloc(len), answer[300];
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ssize_t n;

	starts();
	memset(bytes, 'x', len);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/state/control", d.dir);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	send(fd, bytes, len, MSG_NOSIGNAL);
	n = recv(fd, answer, sizeof(answer) - 1, 0);
	ck_assert_int_gt(n, 0);
	answer[n] = '\0';
	ck_assert_ptr_nonnull(strstr(answer, "expected one line"));
	close(fd);
	free(bytes);
	says("status", "gannetd ");
	ends();
}

/* ---- the manual */

static char *manual;

static void read_manual(void)
{
	const char *dir = getenv("srcdir");
	size_t len = 200000;
	char name[300];
	FILE *f;

	snprintf(name, sizeof(name), "%s/doc/gannetctl.8.in", dir ? dir : ".");
	f = fopen(name, "r");
	ck_assert_msg(f, "no %s", name);
	manual = calloc(1, len);
	ck_assert_ptr_nonnull(manual);
	ck_assert_uint_lt(fread(manual, 1, len, f), len - 1);
	fclose(f);
}

/* True if a line with a Va macro has the word. */
static bool is_in_manual(const char *word)
{
	size_t len = strlen(word);

	for (const char *at = manual; (at = strstr(at, word)); at += len) {
		const char *line = at, *va;

		while (line > manual && line[-1] != '\n')
			line--;
		va = strstr(line, "Va ");
		if (va && va < at && at[-1] == ' ' && strchr(" \n", at[len]))
			return true;
	}
	return false;
}

static void check_members(const char *command, const json_t *o)
{
	const json_t *v;
	const char *key;
	size_t i;

	json_array_foreach(o, i, v)
		check_members(command, v);
	json_object_foreach((json_t *)(uintptr_t)o, key, v) {
		ck_assert_msg(is_in_manual(key), "%s: gannetctl(8) does not "
			      "name the member %s", command, key);
		/* These are named as SIGUSR1 logs them. */
		if (strcmp(key, "counters") != 0)
			check_members(command, v);
	}
}

TEST(each_member_of_an_answer_is_in_the_manual)
{
	static const char *const asked[] = {
		"status", "exports", "stats", "waits", "clients",
		"latency --by export", "latency --by client", "latency",
		"log-level debug", "disconnect 127.0.0.1", "reload",
		"exports add mem:/b",
	};
	char line[100];
	json_error_t error;
	json_t *o;
	int fd;

	read_manual();
	starts();
	write_to(conf, "[log]\nlevel = debug\n");
	ck_assert(daemon_answers(&d));
	fd = daemon_connect(d.tcp_port);
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		snprintf(line, sizeof(line), "--json %s", asked[i]);
		says(line, "");
		o = json_loads(ctl_out, JSON_DECODE_ANY, &error);
		ck_assert_msg(o, "%s: %s", asked[i], ctl_out);
		ck_assert(json_is_array(o) || json_object_size(o) > 0);
		check_members(asked[i], o);
		json_decref(o);
	}
	close(fd);
	free(manual);
	ends();
}
