/* SPDX-License-Identifier: BSD-2-Clause */
/* ./gannet-nfs cp, killed in the middle and continued. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/server/tool_run.h"
#include "tests/unit/pause.h"
#include "tests/unit/runner.h"

TEST_CASE(.timeout = 180);

enum { FILES = 12, BYTES = 1 << 20, KILLS = 3 };

static const char *file_of(const char *top, unsigned i)
{
	char name[32];

	snprintf(name, sizeof(name), "%s%u", i % 3 ? "sub/" : "", i);
	return path(top, name);
}

static void make_tree(const char *top)
{
	ck_assert_int_eq(mkdir(top, 0755), 0);
	ck_assert_int_eq(mkdir(path(top, "sub"), 0755), 0);
	for (unsigned i = 0; i < FILES; i++)
		make_file(file_of(top, i), BYTES / (i + 1) + i);
}

static bool is_part(const char *name)
{
	return strncmp(name, ".gannet-", 8) == 0;
}

/* The bytes of all files in a directory, and how many are parts. */
static uint64_t bytes_in(const char *dir, unsigned *parts)
{
	uint64_t sum = 0;
	struct dirent *e;
	struct stat st;
	DIR *list = opendir(dir);

	while (list && (e = readdir(list))) {
		if (fstatat(dirfd(list), e->d_name, &st,
			    AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
			continue;
		sum += (uint64_t)st.st_size;
		*parts += is_part(e->d_name);
	}
	if (list)
		closedir(list);
	return sum;
}

static uint64_t bytes_of(const char *top, unsigned *parts)
{
	char sub[600];

	*parts = 0;
	snprintf(sub, sizeof(sub), "%s/sub", top);
	return bytes_in(top, parts) + bytes_in(sub, parts);
}

/* Sends the tool a signal as soon as the copy has so many bytes. */
static pid_t signal_after(const char *from, const char *to, const char *copy,
			  uint64_t bytes, int signal)
{
	const char *argv[] = { "gannet-nfs", "cp", "-rq", "--continue", "-b",
			       "512", "--depth", "2", from, to, NULL };
	siginfo_t over = { 0 };
	pid_t pid = fork();
	unsigned parts;

	if (pid == 0) {
		execv("./gannet-nfs", (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	ck_assert(AWAIT(bytes_of(copy, &parts) >= bytes ||
			waitid(P_PID, (id_t)pid, &over, WEXITED | WNOHANG |
			       WNOWAIT) < 0 || over.si_pid == pid));
	kill(pid, signal);
	return pid;
}

/* True: it was not over before. */
static bool kill_after(const char *from, const char *to, const char *copy,
		       uint64_t bytes)
{
	pid_t pid = signal_after(from, to, copy, bytes, SIGKILL);
	int status;

	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status);
}

/* A file that has its name is whole, at any time. */
static unsigned check_named(const char *from, const char *copy, ino_t ino[])
{
	unsigned n = 0;
	struct stat st;

	for (unsigned i = 0; i < FILES; i++) {
		ino[i] = 0;
		if (stat(file_of(copy, i), &st) < 0)
			continue;
		same(file_of(from, i), file_of(copy, i));
		ino[i] = st.st_ino;
		n++;
	}
	return n;
}

static void check_untouched(const char *copy, const ino_t ino[])
{
	struct stat st;

	for (unsigned i = 0; i < FILES; i++) {
		ck_assert_int_eq(stat(file_of(copy, i), &st), 0);
		if (ino[i])
			ck_assert_msg(st.st_ino == ino[i],
				      "%u was copied twice", i);
	}
}

/* path() and url() have their texts for a while only. */
static const char *keep(const char *text)
{
	static char kept[8][600];
	static unsigned i;

	i = (i + 1) % ARRAY_SIZE(kept);
	snprintf(kept[i], sizeof(kept[0]), "%s", text);
	return kept[i];
}

static void kill_and_continue(const char *from, const char *copy,
			      const char *source, const char *target)
{
	unsigned parts, seed = (unsigned)getpid();
	uint64_t all = bytes_of(from, &parts);
	ino_t ino[FILES] = { 0 };

	for (unsigned i = 0; i < KILLS; i++) {
		uint64_t at = all * i / KILLS +
			      (uint64_t)rand_r(&seed) % (all / KILLS);

		kill_after(source, target, copy, at);
		check_named(from, copy, ino);
	}
	ck_assert_msg(TOOL("cp", "-r", "--continue", source, target) == 0,
		      "%s", err);
	ck_assert_uint_eq(check_named(from, copy, (ino_t[FILES]){ 0 }), FILES);
	check_untouched(copy, ino);
	ck_assert_uint_eq(bytes_of(copy, &parts), all);
	ck_assert_uint_eq(parts, 0);
}

TEST_LOOP(a_tree_that_is_fetched_survives_kills, 0, WAYS)
{
	start(_i);
	make_tree(path(export, "t"));
	ck_assert_int_eq(mkdir(path(d.dir, "in"), 0755), 0);
	kill_and_continue(keep(path(export, "t")), keep(path(d.dir, "in/t")),
			  keep(url("t")), keep(path(d.dir, "in")));
	stop();
}

TEST_LOOP(a_tree_that_is_sent_survives_kills, 0, WAYS)
{
	start(_i);
	make_tree(path(d.dir, "t"));
	kill_and_continue(keep(path(d.dir, "t")), keep(path(export, "t")),
			  keep(path(d.dir, "t")), keep(url("")));
	stop();
}

TEST(a_link_that_was_sent_is_complete)
{
	start(WAY_TCP);
	ck_assert_int_eq(mkdir(path(d.dir, "t"), 0755), 0);
	ck_assert_int_eq(symlink("a", path(d.dir, "t/link")), 0);
	ck_assert_int_eq(TOOL("cp", "-r", path(d.dir, "t"), url("")), 0);
	ck_assert_msg(TOOL("cp", "-r", "--continue", path(d.dir, "t"),
			   url("")) == 0, "%s", err);
	/* A link to another path stays, and cp reports it. */
	unlink(path(d.dir, "t/link"));
	ck_assert_int_eq(symlink("b", path(d.dir, "t/link")), 0);
	ck_assert_int_eq(TOOL("cp", "-r", "--continue", path(d.dir, "t"),
			      url("")), 1);
	stop();
}

static ino_t part_in(const char *dir, char *name)
{
	struct dirent *e;
	DIR *list = opendir(dir);
	ino_t ino = 0;

	while (list && (e = readdir(list)))
		if (is_part(e->d_name)) {
			ino = e->d_ino;
			snprintf(name, 64, "%.63s", e->d_name);
		}
	if (list)
		closedir(list);
	return ino;
}

/* in/one, of which a part is there. */
static ino_t cut_one(char *name)
{
	ck_assert_int_eq(mkdir(path(export, "t"), 0755), 0);
	ck_assert_int_eq(mkdir(path(d.dir, "t"), 0755), 0);
	make_file(path(export, "t/one"), 32 << 20);
	ck_assert(kill_after(url("t"), d.dir, path(d.dir, "t"), 300000));
	return part_in(path(d.dir, "t"), name);
}

TEST(a_part_is_received_to_its_end)
{
	char name[64] = "", was[5], is[5];
	struct stat st;
	int fd;

	start(WAY_TCP);
	ck_assert_uint_ne(cut_one(name), 0);
	/* Only missing bytes come: existing ones stay. */
	fd = open(path(d.dir, path("t", name)), O_RDWR);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_ge(st.st_size, 300000);
	ck_assert_int_eq(pread(fd, was, 5, 100), 5);
	ck_assert_int_eq(pwrite(fd, "other", 5, 100), 5);
	ck_assert_int_eq(TOOL("cp", "-r", "--continue", url("t"), d.dir), 0);
	ck_assert_int_eq(pread(fd, is, 5, 100), 5);
	ck_assert_int_eq(memcmp(is, "other", 5), 0);
	ck_assert_int_eq(pwrite(fd, was, 5, 100), 5);
	close(fd);
	same(path(export, "t/one"), path(d.dir, "t/one"));
	stop();
}

enum { SAME, OTHER_WITHIN, OTHER_START, OTHER_NAME, OTHER_USER, PARTS };

/* The part, before it is continued. */
static void change_part(int fd, const char *part, int how)
{
	switch (how) {
	case OTHER_WITHIN:
		ck_assert_int_eq(pwrite(fd, "other", 5, 200000), 5);
		break;
	case OTHER_START:
		ck_assert_int_eq(pwrite(fd, "other", 5, 0), 5);
		break;
	case OTHER_NAME:
		ck_assert_int_eq(link(part, path(export, "second")), 0);
		break;
	case OTHER_USER:
		ck_assert_int_eq(fchown(fd, 12345, 12345), 0);
		break;
	}
}

TEST_LOOP(a_part_is_sent_to_its_end_from_where_it_differs, 0, PARTS)
{
	char name[64] = "", part[600];
	struct stat was, is;
	int fd;

	if (_i == OTHER_USER && geteuid() != 0)
		return;
	start(WAY_TCP);
	ck_assert_int_eq(mkdir(path(d.dir, "t"), 0755), 0);
	make_file(path(d.dir, "t/one"), 32 << 20);
	ck_assert(kill_after(path(d.dir, "t"), url(""), path(export, "t"),
			     300000));
	ck_assert_uint_ne(part_in(path(export, "t"), name), 0);
	snprintf(part, sizeof(part), "%s/t/%s", export, name);
	/* While it is open no other file gets its number. */
	fd = open(part, O_RDWR);
	change_part(fd, part, _i);
	ck_assert_msg(TOOL("cp", "-r", "--continue", path(d.dir, "t"),
			   url("")) == 0, "%s", err);
	same(path(d.dir, "t/one"), path(export, "t/one"));
	ck_assert_int_eq(stat(path(export, "t/one"), &is), 0);
	ck_assert_int_eq(fstat(fd, &was), 0);
	ck_assert_int_eq(is.st_ino == was.st_ino, _i <= OTHER_WITHIN);
	close(fd);
	stop();
}

TEST_LOOP(a_complete_copy_with_other_bytes_is_found_by_checksum, 0, 2)
{
	char from[600], to[600], copy[600];
	struct timespec old[2];
	struct stat st;
	int fd;

	start(WAY_TCP);
	ck_assert_int_eq(mkdir(path(export, "t"), 0755), 0);
	ck_assert_int_eq(mkdir(path(d.dir, "t"), 0755), 0);
	snprintf(from, sizeof(from), "%s", _i ? url("t/one") :
		 path(d.dir, "t/one"));
	snprintf(to, sizeof(to), "%s", _i ? path(d.dir, "t") : url("t"));
	snprintf(copy, sizeof(copy), "%s/one", path(_i ? d.dir : export, "t"));
	make_file(path(_i ? export : d.dir, "t/one"), 3000000);
	ck_assert_msg(TOOL("cp", "-p", "--checksum", from, to) == 0, "%s",
		      err);
	ck_assert_int_eq(stat(copy, &st), 0);
	old[0] = st.st_atim;
	old[1] = st.st_mtim;
	fd = open(copy, O_WRONLY);
	ck_assert_int_eq(pwrite(fd, "other", 5, 2999990), 5);
	ck_assert_int_eq(futimens(fd, old), 0);
	close(fd);
	/* Size and time don't show it. */
	ck_assert_int_eq(TOOL("cp", "-p", "--continue", from, to), 0);
	ck_assert_str_eq(err, "");
	ck_assert_msg(TOOL("cp", "-p", "--continue", "--checksum", from, to) ==
		      0, "%s", err);
	ck_assert_msg(strstr(err, "one: its earlier copy differs"), "%s", err);
	same(path(export, "t/one"), path(d.dir, "t/one"));
	ck_assert_int_eq(TOOL("cp", "-p", "--continue", "--checksum", from,
			      to), 0);
	ck_assert_str_eq(err, "");
	stop();
}

/* The same command again goes into the copy that the first one has made, unless
 * it has -T. */
TEST_LOOP(the_same_command_continues_a_copy_with_its_own_name, 0, 2)
{
	char from[600], to[600], copy[600];

	start(WAY_TCP);
	make_tree(path(_i ? export : d.dir, "t"));
	snprintf(from, sizeof(from), "%s", _i ? url("t") : path(d.dir, "t"));
	snprintf(to, sizeof(to), "%s", _i ? path(d.dir, "u") : url("u"));
	snprintf(copy, sizeof(copy), "%s/u", _i ? d.dir : export);
	ck_assert(kill_after(from, to, copy, 300000));
	ck_assert_msg(TOOL("cp", "-rT", "--continue", from, to) == 0, "%s",
		      err);
	ck_assert_str_eq(err, "");
	for (unsigned i = 0; i < FILES; i++)
		same(file_of(path(_i ? export : d.dir, "t"), i),
		     file_of(copy, i));
	ck_assert_int_ne(access(path(copy, "t"), F_OK), 0);
	/* Without it the user is told, once. */
	ck_assert_int_eq(TOOL("cp", "-r", "--continue", from, to), 0);
	ck_assert_msg(strstr(err, " has no t to continue"), "%s", err);
	ck_assert_int_eq(TOOL("cp", "-r", "--continue", from, to), 0);
	ck_assert_str_eq(err, "");
	stop();
}

TEST(a_directory_of_a_copy_that_was_killed_has_its_mode)
{
	struct stat there, here;

	start(WAY_TCP);
	ck_assert_int_eq(mkdir(path(export, "t"), 0755), 0);
	make_file(path(export, "t/one"), 32 << 20);
	ck_assert(kill_after(url("t"), d.dir, path(d.dir, "t"), 300000));
	ck_assert_int_eq(TOOL("cp", "-r", "--continue", url("t"), d.dir), 0);
	ck_assert_int_eq(stat(path(export, "t"), &there), 0);
	ck_assert_int_eq(stat(path(d.dir, "t"), &here), 0);
	ck_assert_uint_eq(here.st_mode, there.st_mode);
	stop();
}

TEST(a_part_of_what_the_source_was_is_not_continued)
{
	char name[64] = "";
	struct stat st;
	ino_t ino;
	int fd;

	start(WAY_TCP);
	ino = cut_one(name);
	ck_assert_uint_ne(ino, 0);
	fd = open(path(export, "t/one"), O_WRONLY);
	ck_assert_int_eq(pwrite(fd, "other", 5, 100), 5);
	close(fd);
	ck_assert_int_eq(TOOL("cp", "-r", "--continue", url("t"), d.dir), 0);
	same(path(export, "t/one"), path(d.dir, "t/one"));
	ck_assert_int_eq(stat(path(d.dir, "t/one"), &st), 0);
	ck_assert_uint_ne(st.st_ino, ino);
	stop();
}

TEST(a_part_that_another_process_writes_is_left_alone)
{
	char name[64] = "";
	struct stat st;
	int fd;

	start(WAY_TCP);
	ck_assert_uint_ne(cut_one(name), 0);
	fd = open(path(d.dir, path("t", name)), O_RDONLY);
	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	ck_assert_int_eq(TOOL("cp", "-r", url("t"), d.dir), 1);
	ck_assert_msg(strstr(err, "/t/one") && strstr(err, "busy"), "%s", err);
	ck_assert_int_ne(stat(path(d.dir, "t/one"), &st), 0);
	close(fd);
	ck_assert_int_eq(TOOL("cp", "-r", url("t"), d.dir), 0);
	same(path(export, "t/one"), path(d.dir, "t/one"));
	stop();
}

TEST(a_part_with_a_second_name_or_behind_a_link_is_not_written)
{
	char name[64] = "";
	struct stat st;
	const char *part;

	start(WAY_TCP);
	ck_assert_uint_ne(cut_one(name), 0);
	part = path(d.dir, path("t", name));
	make_file(path(d.dir, "mine"), 100);
	unlink(part);
	ck_assert_int_eq(link(path(d.dir, "mine"), part), 0);
	ck_assert_int_eq(TOOL("cp", "-r", url("t"), d.dir), 1);
	unlink(part);
	ck_assert_int_eq(symlink("../mine", part), 0);
	ck_assert_int_eq(TOOL("cp", "-r", "--continue", url("t"), d.dir), 1);
	ck_assert_int_eq(stat(path(d.dir, "mine"), &st), 0);
	ck_assert_int_eq(st.st_size, 100);
	stop();
}

static void replace_both_ways(const char *from, const char *to,
			      const char *source, const char *target)
{
	const struct timespec old[2] = { { 1000, 0 }, { 1000, 0 } };

	make_file(from, 1000);
	ck_assert_int_eq(TOOL("cp", "--continue", source, target), 0);
	/* As long, and different: put in its place, and with an old time. */
	make_file(path(d.dir, "other"), 1001);
	ck_assert_int_eq(truncate(path(d.dir, "other"), 1000), 0);
	ck_assert_int_eq(rename(path(d.dir, "other"), from), 0);
	ck_assert_int_eq(utimensat(AT_FDCWD, from, old, 0), 0);
	ck_assert_int_eq(TOOL("cp", "--continue", source, target), 0);
	same(from, to);
	ck_assert_int_eq(TOOL("cp", "-p", "--continue", source, target), 0);
	same(from, to);
}

TEST(a_source_that_changed_is_copied_again)
{
	start(WAY_TCP);
	replace_both_ways(path(export, "a"), path(d.dir, "a"), url("a"),
			  path(d.dir, "a"));
	replace_both_ways(path(d.dir, "b"), path(export, "b"),
			  path(d.dir, "b"), url("b"));
	stop();
}

/* Stops a copy before @first bytes, the length of a file, are there.  A busy
 * machine can do so too late: then all is copied again. */
static pid_t stop_within(const char *source, const char *target,
			 const char *copy, uint64_t first)
{
	char command[640];
	unsigned parts;
	int status;
	pid_t pid;

	snprintf(command, sizeof(command), "rm -r '%s'", copy);
	for (;;) {
		pid = signal_after(source, target, copy, 300000, SIGSTOP);
		ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
		if (WIFSTOPPED(status) && bytes_of(copy, &parts) < first)
			return pid;
		if (WIFSTOPPED(status) && kill(pid, SIGKILL) == 0)
			waitpid(pid, &status, 0);
		ck_assert_int_eq(system(command), 0);
	}
}

/* Changes the beginning of @from/one when that is copied already, or puts
 * @other in its place. */
static void change_within(const char *from, const char *copy,
			  const char *source, const char *target,
			  const char *other)
{
	const struct timespec old[2] = { { 1000, 0 }, { 1000, 0 } };
	int fd, status;
	pid_t pid;

	ck_assert_int_eq(mkdir(from, 0755), 0);
	make_file(path(from, "one"), 2 << 20);
	ck_assert_int_eq(utimensat(AT_FDCWD, path(from, "one"), old, 0), 0);
	pid = stop_within(source, target, copy, 2 << 20);
	fd = open(other ? other : path(from, "one"), O_WRONLY);
	ck_assert_int_eq(pwrite(fd, "other", 5, 100), 5);
	close(fd);
	ck_assert(!other || rename(other, path(from, "one")) == 0);
	kill(pid, SIGCONT);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	ck_assert_msg(TOOL("cp", "-r", "--continue", source, target) == 0,
		      "%s", err);
	same(path(from, "one"), path(copy, "one"));
}

TEST_LOOP(a_source_that_changes_within_a_copy_fails_and_is_copied_again,
	  0, WAYS)
{
	start(_i);
	ck_assert_int_eq(mkdir(path(d.dir, "in"), 0755), 0);
	change_within(keep(path(export, "t")), keep(path(d.dir, "in/t")),
		      keep(url("t")), keep(path(d.dir, "in")), NULL);
	change_within(keep(path(d.dir, "u")), keep(path(export, "u")),
		      keep(path(d.dir, "u")), keep(url("")), NULL);
	make_file(path(d.dir, "other"), 2 << 20);
	change_within(keep(path(d.dir, "v")), keep(path(export, "v")),
		      keep(path(d.dir, "v")), keep(url("")),
		      keep(path(d.dir, "other")));
	stop();
}

/* Its attributes are listed, and then it has to wait for the copies of two
 * large files, which take all the memory. */
TEST(a_source_that_changes_before_its_copy_begins_is_copied_again)
{
	int fd, status;
	pid_t pid;

	start(WAY_TCP);
	ck_assert_int_eq(mkdir(path(export, "t"), 0755), 0);
	ck_assert_int_eq(mkdir(path(d.dir, "in"), 0755), 0);
	make_file(path(export, "t/a"), 8 << 20);
	make_file(path(export, "t/aa"), 8 << 20);
	make_file(path(export, "t/b"), 1000);
	pid = stop_within(keep(url("t")), keep(path(d.dir, "in")),
			  keep(path(d.dir, "in/t")), 8 << 20);
	fd = open(path(export, "t/b"), O_WRONLY);
	ck_assert_int_eq(pwrite(fd, "other", 5, 100), 5);
	close(fd);
	kill(pid, SIGCONT);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 1);
	ck_assert_int_eq(TOOL("cp", "-r", "--continue", "--dry-run", url("t"),
			      path(d.dir, "in")), 0);
	ck_assert_msg(strstr(out, "/t/b\n"), "%s", out);
	stop();
}

/* A disk that is full in the middle: RLIMIT_FSIZE says so for the local one. */
TEST(a_copy_that_fails_leaves_what_was_there)
{
	char name[64] = "";
	char command[1500];

	start(WAY_TCP);
	make_file(path(export, "a"), 3 << 20);
	make_file(path(d.dir, "a"), 10);
	make_file(path(d.dir, "ten"), 10);
	snprintf(command, sizeof(command), "trap '' XFSZ; ulimit -f 1000; "
		 "./gannet-nfs cp '%s' '%s' 2>/dev/null", url("a"),
		 path(d.dir, "a"));
	ck_assert_int_eq(WEXITSTATUS(system(command)), 1);
	same(path(d.dir, "ten"), path(d.dir, "a"));
	ck_assert_uint_eq(part_in(d.dir, name), 0);
	stop();
}

/* The last that begins takes the part, and the others do not take it away. */
TEST(copies_of_one_file_at_once_leave_one_whole)
{
	char name[64] = "", command[3000];
	int n = 0;

	start(WAY_TCP);
	make_file(path(d.dir, "a"), 8 << 20);
	for (int i = 0; i < 4; i++)
		n += snprintf(command + n, sizeof(command) - (size_t)n,
			      "(./gannet-nfs cp -q -b 4096 '%s' '%s' "
			      "2>/dev/null && : > '%s/done') & ",
			      path(d.dir, "a"), url("x"), d.dir);
	snprintf(command + n, sizeof(command) - (size_t)n, "wait");
	ck_assert_int_eq(system(command), 0);
	ck_assert_int_eq(access(path(d.dir, "done"), F_OK), 0);
	same(path(d.dir, "a"), path(export, "x"));
	ck_assert_uint_eq(part_in(export, name), 0);
	stop();
}
