/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects of every kind: made, named, changed and removed. */
#include "tests/lab/fscheck/fscheck.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static bool a_created_file_is_on_the_server(void)
{
	struct stat st;

	MUST(put_file(mnt, "f", 12345, 1));
	MUST(has_file(back, "f", 12345, 1));
	MUST(both_stat("f", &st));
	MUST(S_ISREG(st.st_mode) && (st.st_mode & 07777) == 0644);
	return true;
}

static bool a_removed_file_is_gone(void)
{
	struct stat st;

	MUST(put_file(mnt, "f", 100, 1));
	MUST(unlinkat(mnt, "f", 0) == 0);
	MUST_FAIL(fstatat(mnt, "f", &st, 0), ENOENT);
	MUST_FAIL(fstatat(back, "f", &st, 0), ENOENT);
	MUST_FAIL(unlinkat(mnt, "f", 0), ENOENT);
	return true;
}

static bool directories_nest(void)
{
	char path[128] = "d";
	struct stat st;

	for (int i = 0; i < 20; i++) {
		MUST(mkdirat(mnt, path, 0750) == 0);
		MUST(both_stat(path, &st) && st.st_mode == (S_IFDIR | 0750));
		strcat(path, "/d");
	}
	path[strlen(path) - 2] = 0;
	MUST_FAIL(mkdirat(mnt, path, 0750), EEXIST);
	MUST_FAIL(unlinkat(mnt, "d", AT_REMOVEDIR), ENOTEMPTY);
	while (path[0]) {
		MUST(unlinkat(mnt, path, AT_REMOVEDIR) == 0);
		path[strlen(path) - (strlen(path) > 1 ? 2 : 1)] = 0;
	}
	MUST_FAIL(fstatat(back, "d", &st, 0), ENOENT);
	return true;
}

static bool a_file_is_no_directory(void)
{
	struct stat st;

	MUST(put_file(mnt, "f", 1, 1) && mkdirat(mnt, "d", 0755) == 0);
	MUST_FAIL(fstatat(mnt, "f/x", &st, 0), ENOTDIR);
	MUST_FAIL(unlinkat(mnt, "f", AT_REMOVEDIR), ENOTDIR);
	MUST_FAIL(unlinkat(mnt, "d", 0), EISDIR);
	MUST_FAIL(openat(mnt, "d", O_WRONLY), EISDIR);
	MUST_FAIL(openat(mnt, "d/none/x", O_WRONLY | O_CREAT, 0644), ENOENT);
	return true;
}

static bool rename_moves_and_replaces(void)
{
	struct stat before, after;

	MUST(put_file(mnt, "a", 1000, 1) && put_file(mnt, "b", 2000, 2));
	MUST(mkdirat(mnt, "d", 0755) == 0 && both_stat("a", &before));
	MUST(renameat(mnt, "a", mnt, "d/c") == 0);
	MUST(both_stat("d/c", &after) && after.st_ino == before.st_ino);
	MUST(renameat(mnt, "d/c", mnt, "b") == 0);
	MUST(both_stat("b", &after) && after.st_ino == before.st_ino);
	MUST(has_file(back, "b", 1000, 1) && has_file(mnt, "b", 1000, 1));
	MUST_FAIL(renameat(mnt, "d/c", mnt, "x"), ENOENT);
	MUST(renameat(mnt, "b", mnt, "b") == 0);
	return true;
}

static bool rename_of_directories_keeps_the_rules(void)
{
	struct stat st;

	MUST(mkdirat(mnt, "a", 0755) == 0 && mkdirat(mnt, "b", 0755) == 0);
	MUST(put_file(mnt, "a/f", 10, 1) && put_file(mnt, "f", 10, 2));
	MUST(renameat(mnt, "a", mnt, "b") == 0);
	MUST(has_file(mnt, "b/f", 10, 1) && both_stat("b", &st));
	MUST(mkdirat(mnt, "c", 0755) == 0);
	MUST(renameat(mnt, "c", mnt, "b") < 0);
	MUST(errno == ENOTEMPTY || errno == EEXIST);
	MUST_FAIL(renameat(mnt, "b", mnt, "b/f/x"), ENOTDIR);
	MUST_FAIL(renameat(mnt, "b", mnt, "b/x"), EINVAL);
	MUST_FAIL(renameat(mnt, "f", mnt, "b"), EISDIR);
	MUST_FAIL(renameat(mnt, "b", mnt, "f"), ENOTDIR);
	return true;
}

static bool hard_links_are_one_file(void)
{
	struct stat a, b;

	MUST(put_file(mnt, "a", 777, 1) && mkdirat(mnt, "d", 0755) == 0);
	MUST(linkat(mnt, "a", mnt, "d/b", 0) == 0);
	MUST(both_stat("a", &a) && both_stat("d/b", &b));
	MUST(a.st_ino == b.st_ino && a.st_nlink == 2 && b.st_nlink == 2);
	MUST_FAIL(linkat(mnt, "a", mnt, "d/b", 0), EEXIST);
	MUST_FAIL(linkat(mnt, "d", mnt, "e", 0), EPERM);
	MUST(unlinkat(mnt, "a", 0) == 0);
	MUST(both_stat("d/b", &b) && b.st_nlink == 1);
	MUST(has_file(mnt, "d/b", 777, 1));
	return true;
}

static bool symlinks_say_what_they_were_told(void)
{
	char text[1024], got[2048];
	struct stat st;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	MUST(symlinkat("f", mnt, "s") == 0 && put_file(mnt, "f", 321, 1));
	MUST(has_file(mnt, "s", 321, 1));
	MUST(symlinkat(text, mnt, "long") == 0);
	MUST(readlinkat(mnt, "long", got, sizeof(got)) == 1023);
	MUST(memcmp(got, text, 1023) == 0);
	MUST(readlinkat(back, "long", got, sizeof(got)) == 1023);
	MUST(symlinkat("../no/such\nthing", mnt, "dangling") == 0);
	MUST_FAIL(fstatat(mnt, "dangling", &st, 0), ENOENT);
	MUST(both_stat("dangling", &st) && S_ISLNK(st.st_mode));
	MUST_FAIL(symlinkat("x", mnt, "f"), EEXIST);
	MUST_FAIL(readlinkat(mnt, "f", got, sizeof(got)), EINVAL);
	return true;
}

static bool special_files_are_made(void)
{
	struct stat st;

	MUST(mkfifoat(mnt, "p", 0640) == 0);
	MUST(both_stat("p", &st) && st.st_mode == (S_IFIFO | 0640));
	MUST(mknodat(mnt, "s", S_IFSOCK | 0600, 0) == 0);
	MUST(both_stat("s", &st) && st.st_mode == (S_IFSOCK | 0600));
	MUST(mknodat(mnt, "c", S_IFCHR | 0600, makedev(240, 70000)) == 0);
	MUST(both_stat("c", &st) && st.st_rdev == makedev(240, 70000));
	MUST(mknodat(mnt, "b", S_IFBLK | 0600, makedev(7, 255)) == 0);
	MUST(both_stat("b", &st) && st.st_rdev == makedev(7, 255));
	MUST_FAIL(mkfifoat(mnt, "p", 0640), EEXIST);
	MUST(unlinkat(mnt, "p", 0) == 0 && unlinkat(mnt, "c", 0) == 0);
	return true;
}

static bool chmod_sets_every_bit(void)
{
	static const mode_t modes[] = { 0, 0777, 04755, 02755, 01777, 06711 };
	struct stat st;

	MUST(put_file(mnt, "f", 1, 1) && mkdirat(mnt, "d", 0755) == 0);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		MUST(fchmodat(mnt, "f", modes[i], 0) == 0);
		MUST(both_stat("f", &st) && (st.st_mode & 07777) == modes[i]);
		MUST(fchmodat(mnt, "d", modes[i], 0) == 0);
		MUST(both_stat("d", &st) && (st.st_mode & 07777) == modes[i]);
	}
	return true;
}

static bool chown_sets_either_or_both(void)
{
	struct stat st;

	MUST(put_file(mnt, "f", 1, 1) && symlinkat("f", mnt, "s") == 0);
	MUST(fchownat(mnt, "f", 1234, 5678, 0) == 0);
	MUST(both_stat("f", &st) && st.st_uid == 1234 && st.st_gid == 5678);
	MUST(fchownat(mnt, "f", (uid_t)-1, 4242, 0) == 0);
	MUST(both_stat("f", &st) && st.st_uid == 1234 && st.st_gid == 4242);
	MUST(fchownat(mnt, "f", 4000000000u, (gid_t)-1, 0) == 0);
	MUST(both_stat("f", &st) && st.st_uid == 4000000000u);
	MUST(fchownat(mnt, "s", 99, 98, AT_SYMLINK_NOFOLLOW) == 0);
	MUST(both_stat("s", &st) && st.st_uid == 99 && st.st_gid == 98);
	return true;
}

static bool times_are_set_to_the_nanosecond(void)
{
	struct timespec ts[2] = { { 1000000001, 123456789 },
				  { 2000000002, 987654321 } };
	struct stat st, sb;

	MUST(put_file(mnt, "f", 1, 1) && both_stat("f", &sb));
	MUST(utimensat(mnt, "f", ts, 0) == 0 && both_stat("f", &st));
	MUST(st.st_mtim.tv_sec == 2000000002);
	MUST(st.st_mtim.tv_nsec == 987654321);
	MUST(fstatat(back, "f", &sb, 0) == 0);
	MUST(sb.st_atim.tv_sec == 1000000001);
	MUST(sb.st_atim.tv_nsec == 123456789);
	ts[0].tv_nsec = UTIME_OMIT;
	ts[1].tv_nsec = UTIME_NOW;
	MUST(utimensat(mnt, "f", ts, 0) == 0 && both_stat("f", &st));
	MUST(st.st_mtim.tv_sec != 2000000002);
	MUST(fstatat(back, "f", &sb, 0) == 0);
	MUST(sb.st_atim.tv_sec == 1000000001);
	return true;
}

static bool truncate_shortens_and_lengthens(void)
{
	static const off_t sizes[] = { 5000, 4096, 4095, 100, 9000, 0,
				       1048577, 1 };
	char buf[4096];
	struct stat st;
	int fd;

	MUST(put_file(mnt, "f", 10000, 1));
	fd = openat(mnt, "f", O_RDWR);
	MUST(fd >= 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		MUST(ftruncate(fd, sizes[i]) == 0 && both_stat("f", &st));
		MUST(st.st_size == sizes[i]);
	}
	MUST(ftruncate(fd, 4096) == 0);
	MUST(pread(fd, buf, 4096, 0) == 4096 && is_zero(buf + 1, 4095));
	close(fd);
	fd = openat(back, "f", O_RDONLY);
	MUST(pread(fd, buf, 4096, 0) == 4096 && is_zero(buf + 1, 4095));
	close(fd);
	fd = openat(mnt, "f", O_WRONLY | O_TRUNC);
	MUST(fd >= 0 && both_stat("f", &st) && st.st_size == 0);
	close(fd);
	return true;
}

static bool new_objects_take_the_callers_mode(void)
{
	struct stat st;
	int fd;

	umask(0);
	fd = openat(mnt, "f", O_WRONLY | O_CREAT, 04671);
	MUST(fd >= 0 && both_stat("f", &st) && (st.st_mode & 07777) == 04671);
	close(fd);
	fd = openat(mnt, "x", O_WRONLY | O_CREAT | O_EXCL, 0604);
	MUST(fd >= 0 && both_stat("x", &st) && (st.st_mode & 07777) == 0604);
	close(fd);
	MUST(mkdirat(mnt, "d", 0703) == 0);
	MUST(both_stat("d", &st) && (st.st_mode & 07777) == 0703);
	return true;
}

#define CHECK(f) { #f, f, 0 }
const struct fscheck tree_checks[] = {
	CHECK(a_created_file_is_on_the_server),
	CHECK(a_removed_file_is_gone),
	CHECK(directories_nest),
	CHECK(a_file_is_no_directory),
	CHECK(rename_moves_and_replaces),
	CHECK(rename_of_directories_keeps_the_rules),
	CHECK(hard_links_are_one_file),
	CHECK(symlinks_say_what_they_were_told),
	CHECK(special_files_are_made),
	CHECK(chmod_sets_every_bit),
	CHECK(chown_sets_either_or_both),
	CHECK(times_are_set_to_the_nanosecond),
	CHECK(truncate_shortens_and_lengthens),
	CHECK(new_objects_take_the_callers_mode),
	{ .name = NULL },
};
