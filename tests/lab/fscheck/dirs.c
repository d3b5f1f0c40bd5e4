/* SPDX-License-Identifier: BSD-2-Clause */
/* Names and directories, small and large. */
#include "tests/lab/fscheck/fscheck.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MANY 10000

static bool names_are_bytes(void)
{
	static const char *const names[] = {
		"-", " ", "...", "a\nb", "\xff\xfe\x80", "\xc3\xa4\xe2\x82\xac",
		"\\", "*", "a b\tc", ".hidden",
	};
	struct stat st;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		MUST(put_file(mnt, names[i], i, 1));
		MUST(both_stat(names[i], &st) && st.st_size == (off_t)i);
		MUST(unlinkat(mnt, names[i], 0) == 0);
	}
	return true;
}

static bool a_name_has_up_to_255_bytes(void)
{
	char name[257];
	struct stat st;

	memset(name, 'n', 256);
	name[255] = 0;
	MUST(put_file(mnt, name, 5, 1) && both_stat(name, &st));
	name[255] = 'n';
	name[256] = 0;
	MUST_FAIL(openat(mnt, name, O_CREAT | O_WRONLY, 0644), ENAMETOOLONG);
	return true;
}

static bool dot_and_dot_dot_are_listed_once(void)
{
	int dots = 0, others = 0;
	struct dirent *e;
	DIR *d;

	MUST(put_file(mnt, "f", 1, 1));
	d = opendir(mnt_path);
	MUST(d);
	while ((e = readdir(d)))
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			dots++;
		else
			others++;
	closedir(d);
	MUST(dots == 2 && others == 1);
	return true;
}

static bool statvfs_is_the_servers(void)
{
	unsigned long blocks;
	struct statvfs a, b;

	MUST(fstatvfs(mnt, &a) == 0 && fstatvfs(back, &b) == 0);
	/* The client counts in blocks of a transfer's size, rounded up. */
	blocks = b.f_blocks * b.f_frsize / a.f_frsize;
	MUST(a.f_blocks == blocks || a.f_blocks == blocks + 1);
	MUST(a.f_files == b.f_files && a.f_namemax == 255);
	MUST(a.f_bavail > 0 && a.f_bavail <= a.f_blocks);
	return true;
}

/* Every one of f0 to f<n-1> whose bit is set in @want, once. */
static bool listed_once(bool also_stat, int step)
{
	char *seen = calloc(MANY, 1);
	struct dirent *e;
	struct stat st;
	int i, n = 0;
	DIR *d;

	d = opendir(mnt_path);
	MUST(seen && d);
	while ((errno = 0, e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		i = atoi(e->d_name + 1);
		MUST(i >= 0 && i < MANY && !seen[i]);
		seen[i] = 1;
		n++;
		if (also_stat && i % 10 == 0)
			MUST(fstatat(mnt, e->d_name, &st, 0) == 0 &&
			     st.st_size == i % 97);
	}
	MUST(errno == 0);
	closedir(d);
	for (i = 0; i < MANY; i += step)
		MUST(seen[i]);
	MUST(n == MANY / step);
	free(seen);
	return true;
}

static bool fill(int dir)
{
	static const char bytes[97];
	char name[16];

	for (int i = 0; i < MANY; i++) {
		int fd;

		snprintf(name, sizeof(name), "f%d", i);
		fd = openat(dir, name, O_WRONLY | O_CREAT, 0644);
		MUST(fd >= 0);
		MUST(write(fd, bytes, i % 97) == i % 97);
		MUST(close(fd) == 0);
	}
	return true;
}

static bool ten_thousand_files_are_listed(void)
{
	return fill(back) && listed_once(true, 1);
}

/* Half of them go while they are listed: none is missed, none comes twice. */
static bool a_directory_shrinks_while_it_is_listed(void)
{
	struct dirent *e;
	int n = 0;
	DIR *d;

	MUST(fill(back));
	d = opendir(mnt_path);
	MUST(d);
	while ((errno = 0, e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		n++;
		if (atoi(e->d_name + 1) % 2)
			MUST(unlinkat(back, e->d_name, 0) == 0);
	}
	MUST(errno == 0 && n == MANY);
	closedir(d);
	/* The client can list from its cache; a change makes it ask again. */
	MUST(put_file(mnt, ".new", 0, 0) && unlinkat(mnt, ".new", 0) == 0);
	return listed_once(false, 2);
}

static bool a_thousand_files_are_made_and_removed(void)
{
	char name[16];
	struct stat st;

	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		MUST(mknodat(mnt, name, S_IFREG | 0644, 0) == 0);
	}
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		MUST(fstatat(back, name, &st, 0) == 0);
		MUST(unlinkat(mnt, name, 0) == 0);
	}
	MUST(unlinkat(AT_FDCWD, mnt_path, AT_REMOVEDIR) == 0);
	return true;
}

#define CHECK(f) { #f, f, 0 }
const struct fscheck name_checks[] = {
	CHECK(names_are_bytes),
	CHECK(a_name_has_up_to_255_bytes),
	CHECK(dot_and_dot_dot_are_listed_once),
	CHECK(statvfs_is_the_servers),
	CHECK(a_thousand_files_are_made_and_removed),
	{ .name = NULL },
};

const struct fscheck dir_checks[] = {
	CHECK(ten_thousand_files_are_listed),
	CHECK(a_directory_shrinks_while_it_is_listed),
	{ .name = NULL },
};
