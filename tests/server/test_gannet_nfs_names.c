/* SPDX-License-Identifier: BSD-2-Clause */
/* ./gannet-nfs: mv, ln, touch, chmod and du. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

	ck_assert_msg(lstat(path(export, name), &st) == 0, "%s is not there",
		      name);
	return st;
}

static bool is_there(const char *name)
{
	struct stat st;

	return lstat(path(export, name), &st) == 0;
}

/* a, b, dir/ */
static void make_three(void)
{
	make_file(path(export, "a"), 100);
	make_file(path(export, "b"), 200);
	ck_assert_int_eq(mkdir(path(export, "dir"), 0755), 0);
}

TEST_LOOP(files_are_renamed_and_moved_below_a_directory, 0, WAYS)
{
	ino_t a, b;

	start(_i);
	make_three();
	a = stat_of("a").st_ino;
	b = stat_of("b").st_ino;
	ck_assert_msg(TOOL("mv", url("a"), url("new")) == 0, "%s", err);
	ck_assert(!is_there("a"));
	ck_assert_uint_eq(stat_of("new").st_ino, a);
	ck_assert_msg(TOOL("mv", url("new"), url("b"), url("dir")) == 0, "%s",
		      err);
	ck_assert_uint_eq(stat_of("dir/new").st_ino, a);
	ck_assert_uint_eq(stat_of("dir/b").st_ino, b);
	/* A file in its place is replaced. */
	ck_assert_int_eq(TOOL("mv", "-f", url("dir/b"), url("dir/new")), 0);
	ck_assert_uint_eq(stat_of("dir/new").st_ino, b);
	ck_assert(!is_there("dir/b"));
	/* A directory moves as a file does, and not into itself. */
	ck_assert_int_eq(TOOL("mv", url("dir"), url("other")), 0);
	ck_assert_uint_eq(stat_of("other/new").st_ino, b);
	ck_assert_int_eq(TOOL("mv", url("other"), url("other")), 1);
	ck_assert_uint_eq(stat_of("other/new").st_ino, b);
	stop();
}

TEST(a_move_to_a_link_replaces_the_link)
{
	start(WAY_TCP);
	make_three();
	ck_assert_int_eq(symlink("b", path(export, "link")), 0);
	ck_assert_int_eq(symlink("dir", path(export, "way")), 0);
	ck_assert_msg(TOOL("mv", url("a"), url("link")) == 0, "%s", err);
	ck_assert(!is_there("a"));
	ck_assert(S_ISREG(stat_of("link").st_mode));
	ck_assert_int_eq(stat_of("link").st_size, 100);
	ck_assert_int_eq(stat_of("b").st_size, 200);
	ck_assert_msg(TOOL("mv", url("link"), url("way")) == 0, "%s", err);
	ck_assert_int_eq(stat_of("dir/link").st_size, 100);
	/* No link is made where another one leads. */
	ck_assert_int_eq(symlink("none", path(export, "gap")), 0);
	ck_assert_int_eq(TOOL("ln", url("b"), url("gap")), 1);
	has(err, "NFS3ERR_EXIST");
	ck_assert_int_eq(TOOL("ln", "-s", "x", url("gap")), 1);
	ck_assert(!is_there("none"));
	stop();
}

TEST(a_file_is_not_moved_or_linked_to_itself)
{
	start(WAY_TCP);
	make_three();
	ck_assert_int_eq(TOOL("ln", url("a"), url("a2")), 0);
	ck_assert_int_eq(TOOL("ln", url("a"), url("a2")), 1);
	has(err, "NFS3ERR_EXIST");
	ck_assert_int_eq(TOOL("mv", url("a"), url("a2")), 1);
	has(err, "the same file as");
	ck_assert_int_eq(TOOL("mv", url("a"), url("a")), 1);
	ck_assert(is_there("a") && is_there("a2"));
	stop();
}

TEST(a_move_that_cannot_be_leaves_everything)
{
	start(WAY_TCP);
	make_three();
	ck_assert_int_eq(TOOL("mv", url("nothing"), url("x")), 1);
	has(err, "NFS3ERR_NOENT");
	ck_assert_int_eq(TOOL("mv", url("a"), url("b"), url("x")), 1);
	ck_assert_int_eq(TOOL("mv", url("a"), url("dir"), url("b")), 1);
	has(err, "NFS3ERR_NOTDIR");
	/* A directory does not go into itself: both are named. */
	ck_assert_int_eq(TOOL("mv", url("dir"), url("dir/x")), 1);
	has(err, url("dir"));
	has(err, url("dir/x"));
	ck_assert_int_eq(TOOL("mv", url("a"), "192.0.2.1:/x"), 2);
	has(err, "not on the server of");
	ck_assert_int_eq(TOOL("mv", url("a"), "local"), 2);
	ck_assert(is_there("a") && is_there("b") && is_there("dir"));
	ck_assert(!is_there("x"));
	stop();
}

TEST_LOOP(links_of_both_kinds_are_made, 0, WAYS)
{
	char text[16] = "";

	start(_i);
	make_three();
	ck_assert_msg(TOOL("ln", url("a"), url("a2")) == 0, "%s", err);
	ck_assert_uint_eq(stat_of("a2").st_ino, stat_of("a").st_ino);
	ck_assert_int_eq(TOOL("ln", url("a"), url("b"), url("dir")), 0);
	ck_assert_uint_eq(stat_of("dir/b").st_ino, stat_of("b").st_ino);
	ck_assert_int_eq(TOOL("ln", url("a"), url("b")), 1);
	has(err, "NFS3ERR_EXIST");
	ck_assert_uint_ne(stat_of("a").st_ino, stat_of("b").st_ino);
	ck_assert_int_eq(TOOL("ln", url("dir"), url("dir2")), 1);
	ck_assert_int_eq(TOOL("ln", "-s", "no/where", url("link")), 0);
	ck_assert_int_eq(readlink(path(export, "link"), text, 15), 8);
	ck_assert_str_eq(text, "no/where");
	ck_assert_int_eq(TOOL("ln", "-s", "../up", url("dir")), 0);
	ck_assert_int_eq(readlink(path(export, "dir/up"), text, 15), 5);
	ck_assert_int_eq(TOOL("ln", "-s", "../far//", url("dir")), 0);
	ck_assert_int_eq(readlink(path(export, "dir/far"), text, 15), 8);
	ck_assert_int_eq(TOOL("ln", "-s", "x", url("a")), 1);
	ck_assert(S_ISREG(stat_of("a").st_mode));
	stop();
}

TEST_LOOP(touch_sets_times_and_makes_files, 0, WAYS)
{
	const struct timespec old[2] = { { 1000, 0 }, { 1000, 0 } };
	struct stat st;

	start(_i);
	make_three();
	ck_assert_int_eq(chmod(path(export, "a"), 0640), 0);
	ck_assert_int_eq(utimensat(AT_FDCWD, path(export, "a"), old, 0), 0);
	ck_assert_msg(TOOL("touch", url("a"), url("new")) == 0, "%s", err);
	st = stat_of("a");
	ck_assert_int_gt(st.st_mtime, 1000000000);
	ck_assert_int_gt(st.st_atime, 1000000000);
	ck_assert_int_eq(st.st_size, 100);
	ck_assert_uint_eq(st.st_mode & 07777, 0640);
	ck_assert_int_eq(stat_of("new").st_size, 0);
	ck_assert_uint_eq(stat_of("new").st_mode & 0111, 0);
	ck_assert_int_eq(TOOL("touch", url("no/where")), 1);
	stop();
}

TEST_LOOP(chmod_sets_a_mode_and_nothing_else, 0, WAYS)
{
	const struct timespec old[2] = { { 1000, 0 }, { 1000, 0 } };

	start(_i);
	make_three();
	ck_assert_int_eq(utimensat(AT_FDCWD, path(export, "a"), old, 0), 0);
	ck_assert_msg(TOOL("chmod", "604", url("a"), url("dir")) == 0, "%s",
		      err);
	ck_assert_uint_eq(stat_of("a").st_mode & 07777, 0604);
	ck_assert_uint_eq(stat_of("dir").st_mode & 07777, 0604);
	ck_assert_int_eq(stat_of("a").st_mtime, 1000);
	ck_assert_int_eq(TOOL("chmod", "u+x", url("a")), 2);
	has(err, "expected an octal mode");
	ck_assert_int_eq(TOOL("chmod", "10000", url("a")), 2);
	ck_assert_int_eq(TOOL("chmod", "600", url("nothing")), 1);
	ck_assert_uint_eq(stat_of("a").st_mode & 07777, 0604);
	chmod(path(export, "dir"), 0755);
	stop();
}

/* As it is on the disk: some file systems know only then. */
static unsigned long long blocks(const char *name)
{
	int fd = open(path(export, name), O_RDONLY);

	ck_assert_int_eq(fsync(fd), 0);
	close(fd);
	return (unsigned long long)stat_of(name).st_blocks;
}

TEST_LOOP(du_adds_up_a_tree_and_counts_a_file_once, 0, WAYS)
{
	unsigned long long one, whole;
	char line[400];

	start(_i);
	make_three();
	make_file(path(export, "dir/big"), 100000);
	ck_assert_int_eq(link(path(export, "dir/big"),
			      path(export, "dir/again")), 0);
	one = blocks("dir") + blocks("dir/big");
	whole = one + blocks("") + blocks("a") + blocks("b");
	ck_assert_msg(TOOL("du", url("")) == 0, "%s", err);
	snprintf(line, sizeof(line), "%llu\t%s/dir\n%llu\t%s\n",
		 (one + 1) / 2, export, (whole + 1) / 2, export);
	ck_assert_str_eq(out, line);
	ck_assert_int_eq(TOOL("du", "-s", url("")), 0);
	snprintf(line, sizeof(line), "%llu\t%s\n", (whole + 1) / 2, export);
	ck_assert_str_eq(out, line);
	/* Deeper directories count, and have no line. */
	ck_assert_int_eq(TOOL("du", "-d", "0", url("")), 0);
	ck_assert_str_eq(out, line);
	ck_assert_int_eq(TOOL("du", "-a", "--max-depth", "1", url("")), 0);
	has(out, "/a\n");
	has(out, "/dir\n");
	ck_assert_ptr_null(strstr(out, "/dir/"));
	ck_assert_int_eq(TOOL("du", "-h", url("dir/big")), 0);
	has(out, "K\t");
	stop();
}

/* A walk enters 256 directories in one another, and looks at files in the
 * last. */
TEST(du_counts_files_in_the_deepest_directory)
{
	char at[1024], name[1032], again[1032];
	size_t len;

	start(WAY_TCP);
	len = (size_t)snprintf(at, sizeof(at), "%s", export);
	for (int i = 0; i < 256; i++) {
		strcpy(at + len, "/d");
		len += 2;
		ck_assert_int_eq(mkdir(at, 0755), 0);
	}
	snprintf(name, sizeof(name), "%s/a", at);
	snprintf(again, sizeof(again), "%s/b", at);
	make_file(name, 100000);
	ck_assert_int_eq(link(name, again), 0);
	ck_assert_msg(TOOL("du", "-s", url("")) == 0, "%s", err);
	stop();
}

TEST(options_of_other_commands_are_refused)
{
	start(WAY_TCP);
	make_three();
	ck_assert_int_eq(TOOL("mv", "-s", url("a"), url("x")), 2);
	has(err, "mv has no -s");
	ck_assert_int_eq(TOOL("du", "--symbolic", url("")), 2);
	has(err, "du has no --symbolic");
	ck_assert_int_eq(TOOL("ln", "--summarize", url("a"), url("x")), 2);
	ck_assert_int_eq(TOOL("touch", "-f", url("x")), 2);
	has(err, "touch has no --force");
	ck_assert_int_eq(TOOL("du", "--json", url("")), 2);
	ck_assert(is_there("a") && !is_there("x"));
	stop();
}
