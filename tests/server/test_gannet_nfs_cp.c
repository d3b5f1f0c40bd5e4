/* SPDX-License-Identifier: BSD-2-Clause */
/* ./gannet-nfs cp: to and from ./gannetd, and from a liar. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/server/liar.h"
#include "tests/server/tool_run.h"
#include "tests/unit/runner.h"

TEST_CASE(.timeout = 120);

static void has(const char *text, const char *want)
{
	ck_assert_msg(strstr(text, want), "no '%s' in %s", want, text);
}

static struct stat stat_of(const char *name)
{
	struct stat st;

	ck_assert_msg(lstat(name, &st) == 0, "%s is not there", name);
	return st;
}

static bool is_there(const char *name)
{
	struct stat st;

	return lstat(name, &st) == 0;
}

static void set_time(const char *name, time_t sec)
{
	const struct timespec times[2] = { { sec, 5 }, { sec, 123456789 } };

	ck_assert_int_eq(utimensat(AT_FDCWD, name, times, 0), 0);
}

/* t/, t/sub/, t/sub/big, t/empty, t/link, t/.dot */
static void make_source(const char *top)
{
	ck_assert_int_eq(mkdir(path(top, "t"), 0755), 0);
	ck_assert_int_eq(mkdir(path(top, "t/sub"), 0755), 0);
	make_file(path(top, "t/sub/big"), 3000001);
	make_file(path(top, "t/empty"), 0);
	make_file(path(top, "t/.dot"), 77);
	ck_assert_int_eq(symlink("../no/where", path(top, "t/link")), 0);
	chmod(path(top, "t/sub/big"), 0640);
	chmod(path(top, "t/empty"), 04755);
	set_time(path(top, "t/sub/big"), 1000000001);
	set_time(path(top, "t/sub"), 1000000002);
}

static void check_copy(const char *from, const char *to)
{
	char target[64] = "";

	same(path(from, "sub/big"), path(to, "sub/big"));
	same(path(from, ".dot"), path(to, ".dot"));
	ck_assert_int_eq(stat_of(path(to, "empty")).st_size, 0);
	ck_assert_int_eq(readlink(path(to, "link"), target, 63), 11);
	ck_assert_str_eq(target, "../no/where");
}

static void check_kept(const char *to)
{
	struct stat st = stat_of(path(to, "sub/big"));

	ck_assert_int_eq(st.st_mtim.tv_sec, 1000000001);
	ck_assert_int_eq(st.st_mtim.tv_nsec, 123456789);
	ck_assert_uint_eq(st.st_mode & 07777, 0640);
	ck_assert_int_eq(stat_of(path(to, "sub")).st_mtim.tv_sec, 1000000002);
	/* Set-user-ID is not kept. */
	ck_assert_uint_eq(stat_of(path(to, "empty")).st_mode & 07777, 0755);
}

TEST_LOOP(trees_are_copied_in_both_directions, 0, WAYS)
{
	start(_i);
	make_source(d.dir);
	ck_assert_msg(TOOL("cp", "-r", path(d.dir, "t"), url("new")) == 0, "%s",
		      err);
	ck_assert_str_eq(err, "");
	check_copy(path(d.dir, "t"), path(export, "new"));
	ck_assert_int_gt(stat_of(path(export, "new/sub/big")).st_mtime,
			 1000000001);
	/* Below an existing directory; over existing files. */
	ck_assert_int_eq(TOOL("cp", "-rp", path(d.dir, "t/"), url("")), 0);
	ck_assert_msg(TOOL("cp", "-rp", path(d.dir, "t"), url("")) == 1,
		      "a link that is there stays");
	has(err, "/t/link: it is there already");
	check_copy(path(d.dir, "t"), path(export, "t"));
	check_kept(path(export, "t"));
	ck_assert_msg(TOOL("cp", "-r", url("t"), path(d.dir, "back")) == 0,
		      "%s", err);
	check_copy(path(export, "t"), path(d.dir, "back"));
	ck_assert_int_gt(stat_of(path(d.dir, "back/sub/big")).st_mtime,
			 1000000001);
	ck_assert_int_eq(TOOL("cp", "-rp", url("t"), path(d.dir, "back")), 0);
	ck_assert_int_eq(TOOL("cp", "-rp", url("t"), path(d.dir, "back")), 0);
	check_copy(path(export, "t"), path(d.dir, "back/t"));
	check_kept(path(d.dir, "back/t"));
	stop();
}

TEST_LOOP(single_files_are_copied_and_replaced, 0, WAYS)
{
	start(_i);
	make_file(path(d.dir, "a"), 1000);
	make_file(path(d.dir, "b"), 10);
	ck_assert_msg(TOOL("cp", path(d.dir, "a"), url("x")) == 0, "%s", err);
	same(path(d.dir, "a"), path(export, "x"));
	ck_assert_int_eq(TOOL("cp", path(d.dir, "b"), url("x")), 0);
	same(path(d.dir, "b"), path(export, "x"));
	ck_assert_int_eq(TOOL("cp", url("x"), path(d.dir, "a")), 0);
	same(path(d.dir, "b"), path(d.dir, "a"));
	ck_assert_int_eq(mkdir(path(export, "dir"), 0777), 0);
	ck_assert_int_eq(TOOL("cp", path(d.dir, "a"), path(d.dir, "b"),
			      url("dir")), 0);
	same(path(d.dir, "b"), path(export, "dir/b"));
	ck_assert_int_eq(TOOL("cp", path(d.dir, "a"), path(d.dir, "b"),
			      url("x")), 1);
	has(err, "NFS3ERR_NOTDIR");
	ck_assert_int_eq(TOOL("cp", url("x"), url("dir/b"),
			      path(d.dir, "a")), 1);
	has(err, "Not a directory");
	ck_assert_int_eq(TOOL("cp", url("dir"), d.dir), 1);
	has(err, "a directory, which goes with -r only");
	ck_assert_int_eq(TOOL("cp", d.dir, url("dir")), 1);
	has(err, "a directory, which goes with -r only");
	ck_assert_int_eq(TOOL("cp", path(d.dir, "a"), path(d.dir, "b")), 2);
	ck_assert_int_eq(TOOL("cp", url("a"), url("b")), 2);
	has(err, "has to be a URL, and one a local file");
	stop();
}

TEST_LOOP(fifos_are_left_out_and_the_rest_copied, 0, WAYS)
{
	start(_i);
	make_source(d.dir);
	ck_assert_int_eq(mkfifo(path(d.dir, "t/fifo"), 0666), 0);
	ck_assert_int_eq(TOOL("cp", "-r", path(d.dir, "t"), url("new")), 1);
	has(err, "/t/fifo: left out: ");
	check_copy(path(d.dir, "t"), path(export, "new"));
	ck_assert_int_eq(mkfifo(path(export, "new/a"), 0666), 0);
	ck_assert_int_eq(TOOL("cp", "-r", url("new"), path(d.dir, "back")), 1);
	has(err, "/new/a: left out: ");
	check_copy(path(export, "new"), path(d.dir, "back"));
	/* A local FIFO in the place of a file is not waited for. */
	unlink(path(d.dir, "back/empty"));
	ck_assert_int_eq(mkfifo(path(d.dir, "back/empty"), 0666), 0);
	ck_assert_int_eq(TOOL("cp", url("new/empty"), path(d.dir, "back")), 1);
	has(err, "the copy of ");
	stop();
}

TEST(progress_of_a_tree_is_one_line)
{
	start(WAY_TCP);
	make_source(d.dir);
	ck_assert_int_eq(TOOL("cp", "-r", "--progress", path(d.dir, "t"),
			      url("new")), 0);
	has(err, "2.9 MiB");
	ck_assert_ptr_null(strstr(err, "empty"));
	ck_assert_int_eq(TOOL("cp", "-r", "-q", url("new"),
			      path(d.dir, "back")), 0);
	ck_assert_str_eq(err, "");
	stop();
}

/* ---- a server's lies */

static char outside[128], endless[5001];

static struct liar_name lies[] = {
	{ 0, "../up", 0, 1, 1, NULL },
	{ 0, "sub/../../up", 0, 2, 1, NULL },
	{ 0, "up\0", 3, 3, 1, NULL },
	{ 0, "..", 0, 4, 2, NULL },
	{ 4, "up", 0, 5, 1, NULL },
	{ 0, "good", 0, 6, 1, NULL },
	/* One name, twice: a way out, and a directory to go through it. */
	{ 0, "way", 0, 7, 5, outside },
	{ 0, "way", 0, 8, 2, NULL },
	{ 8, "up", 0, 9, 1, NULL },
	{ 0, "file", 0, 10, 5, outside },
	{ 0, "file", 0, 11, 1, NULL },
	{ 0, "loop", 0, 0, 2, NULL },
	{ 0, "deep", 0, LIAR_DEEP, 2, NULL },
	/* Links that no file system has. */
	{ 0, "a", 0, 12, 5, "" },
	{ 0, "b", 0, 13, 5, endless },
};

TEST(a_server_writes_nothing_outside_of_the_copy)
{
	struct liar l = { .names = lies, .nnames = ARRAY_SIZE(lies) };
	char at[128];

	memset(endless, 'x', sizeof(endless) - 1);
	start(WAY_TCP);
	snprintf(outside, sizeof(outside), "%s/outside", d.dir);
	liar_start(&l);
	ck_assert_int_eq(mkdir(outside, 0777), 0);
	ck_assert_int_eq(mkdir(path(d.dir, "in"), 0777), 0);
	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u/e", l.port);
	ck_assert_int_eq(TOOL("cp", "-r", at, path(d.dir, "in")), 1);
	has(err, "/e/../up: the server lists a name that no file can have");
	has(err, "/e/loop: the server has this directory in itself");
	has(err, ": too many directories below another");
	has(err, "/e/a: the server has a link that leads nowhere");
	has(err, "/e/b: the name is too long");
	ck_assert_int_eq(stat_of(path(d.dir, "in/e/good")).st_size, 4);
	ck_assert_uint_eq(stat_of(path(d.dir, "in/e/good")).st_mode & 07000,
			  0);
	ck_assert(!is_there(path(d.dir, "up")));
	ck_assert(!is_there(path(d.dir, "in/up")));
	ck_assert_int_eq(rmdir(outside), 0);
	/* Links that are there already lead out as little. */
	ck_assert_int_eq(mkdir(outside, 0777), 0);
	unlink(path(d.dir, "in/e/good"));
	ck_assert_int_eq(symlink("../../outside/good",
				 path(d.dir, "in/e/good")), 0);
	ck_assert_int_eq(TOOL("cp", "-r", at, path(d.dir, "in")), 1);
	has(err, "the copy of /e/good");
	ck_assert_int_eq(rmdir(outside), 0);
	liar_stop(&l);
	stop();
}

static const struct liar_name one_file[] = {
	{ 0, "file", 0, 1, 1, NULL },
};

TEST(a_file_that_may_not_be_read_replaces_nothing)
{
	struct liar l = { .names = one_file, .nnames = 1, .refused = 6 };
	char at[128];

	liar_start(&l);
	start(WAY_TCP);
	ck_assert_int_eq(mkdir(path(d.dir, "e"), 0777), 0);
	make_file(path(d.dir, "e/file"), 10);
	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u/e", l.port);
	ck_assert_int_eq(TOOL("cp", "-r", at, d.dir), 1);
	has(err, ": access denied (NFS3ERR_ACCES)");
	has(err, "the copy of /e/file is not complete");
	ck_assert_int_eq(stat_of(path(d.dir, "e/file")).st_size, 10);
	liar_stop(&l);
	stop();
}

TEST(a_file_that_ends_before_its_size_is_reported_and_copied_again)
{
	struct liar l = { .names = one_file, .nnames = 1, .halves = true };
	char at[128];

	liar_start(&l);
	start(WAY_TCP);
	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u/e", l.port);
	ck_assert_int_eq(TOOL("cp", "-r", at, d.dir), 1);
	has(err, "/e/file: the server ended it before its size");
	l.halves = false;
	ck_assert_msg(TOOL("cp", "-r", "--continue", at, d.dir) == 0, "%s",
		      err);
	ck_assert_int_eq(stat_of(path(d.dir, "e/file")).st_size, 4);
	liar_stop(&l);
	stop();
}

static const struct liar_name twice[] = {
	{ 0, "file", 0, 1, 1, NULL },
	{ 0, "file", 0, 1, 1, NULL },
};

TEST(a_file_that_is_listed_twice_is_copied_once)
{
	struct liar l = { .names = twice, .nnames = ARRAY_SIZE(twice) };
	char at[128];

	liar_start(&l);
	start(WAY_TCP);
	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u/e", l.port);
	ck_assert_msg(TOOL("cp", "-r", at, d.dir) == 0, "%s", err);
	ck_assert_str_eq(err, "");
	ck_assert_int_eq(stat_of(path(d.dir, "e/file")).st_size, 4);
	liar_stop(&l);
	stop();
}

/* ---- files at a time */

enum { MANY = 42, SENT = 14, AT_A_TIME = 7, CREATE = 8, READ = 6 };

static struct liar_name many[MANY];
static char many_names[MANY][4];

static void name_many(struct liar *l)
{
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(many_names[i], 4, "f%02u", i);
		many[i] = (struct liar_name){ .name = many_names[i],
					      .object = i + 1, .type = 1 };
	}
	*l = (struct liar){ .names = many, .nnames = MANY,
			    .hold = AT_A_TIME };
	liar_start(l);
	snprintf(base, sizeof(base), "tcp://127.0.0.1:%u/e", l->port);
}

/* Of each file in its turn. */
static void check_messages(unsigned n, const char *which)
{
	const char *at = err;

	for (unsigned i = 0; i < n; i++) {
		at = strstr(at, many_names[i]);
		ck_assert_msg(at && strstr(at, which), "%s: %s", many_names[i],
			      err);
	}
}

TEST(files_are_received_so_many_at_a_time_and_complained_about_in_order)
{
	struct liar l;

	start(WAY_TCP);
	name_many(&l);
	l.held_procedure = READ;
	ck_assert_msg(TOOL("cp", "-r", "--parallel", "7", base, d.dir) == 0,
		      "%s", err);
	ck_assert_uint_eq(l.most_held, AT_A_TIME);
	for (unsigned i = 0; i < MANY; i++) {
		ck_assert_int_eq(stat_of(path(path(d.dir, "e"),
					      many_names[i])).st_size, 4);
	}
	l.refused = READ;
	ck_assert_int_eq(TOOL("cp", "-r", "--parallel", "7", base, d.dir), 1);
	check_messages(MANY, "is not complete");
	/* One at a time, if that is asked for. */
	l.refused = 0;
	l.hold = 1;
	l.most_held = 0;
	ck_assert_int_eq(TOOL("cp", "-r", "--parallel", "1", base, d.dir), 0);
	ck_assert_uint_eq(l.most_held, 1);
	liar_stop(&l);
	stop();
}

/* Exactly as many files as the limit allows. */
TEST(a_server_that_is_silent_gets_no_more_files_than_that)
{
	struct liar l;

	start(WAY_TCP);
	name_many(&l);
	l.held_procedure = READ;
	l.hold = LIAR_HOLD_MAX + 1;
	ck_assert_int_eq(TOOL("cp", "-r", "--parallel", "5", "--retries", "1",
			      "--timeout", "3", base, d.dir), 3);
	ck_assert_uint_eq(l.most_held, 5);
	liar_stop(&l);
	stop();
}

TEST(files_are_sent_so_many_at_a_time_and_complained_about_in_order)
{
	const char *args[SENT + 5] = { "cp", "--parallel", "7" };
	struct liar l;

	start(WAY_TCP);
	name_many(&l);
	for (unsigned i = 0; i < SENT; i++) {
		args[3 + i] = path(d.dir, many_names[i]);
		make_file(args[3 + i], 10);
	}
	args[3 + SENT] = base;
	l.held_procedure = l.refused = CREATE;
	ck_assert_int_eq(tool(args, NULL), 1);
	ck_assert_uint_eq(l.most_held, AT_A_TIME);
	check_messages(SENT, "there is no complete copy of it");
	liar_stop(&l);
	stop();
}

TEST(the_last_one_of_two_sources_with_one_name_is_there)
{
	start(WAY_TCP);
	ck_assert_int_eq(mkdir(path(d.dir, "a"), 0777), 0);
	ck_assert_int_eq(mkdir(path(d.dir, "b"), 0777), 0);
	make_file(path(d.dir, "a/x"), 3000000);
	make_file(path(d.dir, "b/x"), 10);
	ck_assert_msg(TOOL("cp", path(d.dir, "a/x"), path(d.dir, "b/x"),
			   url("")) == 0, "%s", err);
	same(path(d.dir, "b/x"), path(export, "x"));
	stop();
}

/* A server that has taken the bytes, and has others. */
TEST(a_copy_that_is_read_back_otherwise_is_an_error)
{
	struct liar l = { .makes = true, .finds = true };
	char at[64];

	start(WAY_TCP);
	liar_start(&l);
	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u/e", l.port);
	make_file(path(d.dir, "true"), 4);
	ck_assert_msg(TOOL("cp", path(d.dir, "true"), at) == 0, "%s", err);
	ck_assert_int_eq(TOOL("cp", "--checksum", path(d.dir, "true"), at), 1);
	has(err, "/true: the copy differs from it\n");
	liar_stop(&l);
	stop();
}

TEST(times_that_nfs_does_not_have_are_not_kept)
{
	start(WAY_TCP);
	make_file(path(d.dir, "old"), 10);
	set_time(path(d.dir, "old"), -1);
	if (stat_of(path(d.dir, "old")).st_mtime == -1) {
		ck_assert_int_eq(TOOL("cp", "-p", path(d.dir, "old"),
				      url("x")), 1);
		has(err, "/old: its time of the last change is before 1970 or "
		    "after 2106, and not kept\n");
		ck_assert_ptr_null(strstr(err, "left out"));
		ck_assert_uint_eq(stat_of(path(export, "x")).st_mode & 0777,
				  stat_of(path(d.dir, "old")).st_mode & 0777);
		ck_assert_int_gt(stat_of(path(export, "x")).st_mtime,
				 1000000000);
	}
	stop();
}

TEST(a_name_in_the_progress_does_nothing_to_a_terminal)
{
	start(WAY_TCP);
	make_file(path(d.dir, "\033[2J\n"), 10);
	ck_assert_int_eq(TOOL("cp", "--progress", path(d.dir, "\033[2J\n"),
			      url("x")), 0);
	has(err, "10 B");
	ck_assert_ptr_null(strchr(err, '\033'));
	stop();
}

TEST_LOOP(a_progress_has_a_total_and_the_time_left, 0, WAYS)
{
	start(_i);
	make_source(d.dir);
	ck_assert_int_eq(TOOL("cp", "-r", "--progress", path(d.dir, "t"),
			      url("new")), 0);
	has(err, "100% 2.9 MiB");
	has(err, " 00:00 ");
	ck_assert_int_eq(TOOL("cp", "-r", "--progress", url("new"),
			      path(d.dir, "back")), 0);
	has(err, "100% 2.9 MiB");
	has(err, " 00:00 ");
	/* Files that stay are of the share. */
	ck_assert_int_eq(TOOL("cp", "-r", "--progress", "--continue",
			      url("new"), path(d.dir, "back")), 0);
	ck_assert_int_eq(TOOL("cp", "-r", "--progress", "--continue",
			      url("new"), path(d.dir, "back")), 0);
	has(err, "100% 2.9 MiB");
	stop();
}

TEST(excluded_names_are_left_out_both_ways)
{
	start(WAY_TCP);
	make_source(d.dir);
	ck_assert_int_eq(TOOL("cp", "-r", "--exclude", "s?b", "--exclude",
			      "*.dot", path(d.dir, "t"), url("new")), 0);
	ck_assert(!is_there(path(export, "new/sub")));
	ck_assert(!is_there(path(export, "new/.dot")));
	ck_assert(is_there(path(export, "new/empty")));
	ck_assert_int_eq(mkdir(path(export, "new/sub"), 0755), 0);
	make_file(path(export, "new/sub/big"), 10);
	ck_assert_int_eq(TOOL("cp", "-r", "--exclude", "b*", url("new"),
			      path(d.dir, "back")), 0);
	ck_assert(is_there(path(d.dir, "back/sub")));
	ck_assert(!is_there(path(d.dir, "back/sub/big")));
	ck_assert(is_there(path(d.dir, "back/empty")));
	ck_assert_int_eq(TOOL("cp", "-r", "--exclude", "a/b", url("new"),
			      path(d.dir, "back")), 2);
	stop();
}

TEST(a_dry_run_names_the_files_and_changes_nothing)
{
	start(WAY_TCP);
	make_source(d.dir);
	ck_assert_int_eq(TOOL("cp", "-r", "--dry-run", path(d.dir, "t"),
			      url("new")), 0);
	has(out, "/t/sub/big\n");
	has(out, "/t/link\n");
	ck_assert(!is_there(path(export, "new")));
	ck_assert_int_eq(TOOL("cp", "-r", path(d.dir, "t"), url("new")), 0);
	ck_assert_int_eq(TOOL("cp", "-r", "--dry-run", url("new"),
			      path(d.dir, "back")), 0);
	has(out, "/new/sub/big\n");
	ck_assert(!is_there(path(d.dir, "back")));
	ck_assert_int_eq(TOOL("cp", "-r", url("new"), path(d.dir, "back")), 0);
	make_file(path(export, "new/more"), 10);
	ck_assert_int_eq(TOOL("cp", "-r", "--dry-run", "--continue",
			      url("new"), d.dir), 0);
	has(out, "/new/sub/big\n");
	ck_assert_int_eq(TOOL("cp", "-r", url("new"), d.dir), 0);
	make_file(path(export, "new/more"), 11);
	ck_assert_int_eq(TOOL("cp", "-r", "--dry-run", "--continue",
			      url("new"), d.dir), 0);
	has(out, "/new/more\n");
	ck_assert_ptr_null(strstr(out, "big"));
	ck_assert_int_eq(stat_of(path(d.dir, "new/more")).st_size, 10);
	stop();
}

TEST(an_option_that_a_command_does_not_have_is_refused)
{
	start(WAY_TCP);
	make_file(path(export, "a"), 10);
	ck_assert_int_eq(TOOL("rm", "--dry-run", url("a")), 2);
	has(err, "rm has no --dry-run");
	ck_assert(is_there(path(export, "a")));
	ck_assert_int_eq(TOOL("rm", "--exclude", "a", url("a")), 2);
	ck_assert(is_there(path(export, "a")));
	ck_assert_int_eq(TOOL("get", "--continue", url("a"), d.dir), 2);
	ck_assert_int_eq(TOOL("tree", "--json", url("")), 2);
	has(err, "tree has no --json");
	ck_assert_str_eq(out, "");
	stop();
}

TEST(a_replaced_file_keeps_its_mode)
{
	struct stat st;

	start(WAY_TCP);
	make_file(path(export, "a"), 1000);
	make_file(path(d.dir, "a"), 10);
	ck_assert_int_eq(chmod(path(d.dir, "a"), 0604), 0);
	ck_assert_int_eq(TOOL("cp", url("a"), path(d.dir, "a")), 0);
	ck_assert_int_eq(stat(path(d.dir, "a"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0604);
	ck_assert_int_eq(chmod(path(export, "a"), 0640), 0);
	ck_assert_int_eq(TOOL("cp", path(d.dir, "a"), url("a")), 0);
	ck_assert_int_eq(stat(path(export, "a"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0640);
	stop();
}
