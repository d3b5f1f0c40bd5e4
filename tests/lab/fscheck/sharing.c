/* SPDX-License-Identifier: BSD-2-Clause */
/* More than one process at a file; and both ends of the mount at one. */
#include "tests/lab/fscheck/fscheck.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WRITERS 4
#define RECORDS 50

/* Runs @child in WRITERS processes; how many of them returned true. */
static int in_parallel(bool (*child)(int))
{
	int status, held = 0;

	fflush(stdout);
	for (int i = 0; i < WRITERS; i++)
		if (fork() == 0)
			_exit(child(i) ? 0 : 1);
	while (wait(&status) > 0)
		held += WIFEXITED(status) && WEXITSTATUS(status) == 0;
	return held;
}

static bool create_exclusively(int who)
{
	int fd = openat(mnt, "f", O_WRONLY | O_CREAT | O_EXCL, 0644);

	return fd >= 0 && write(fd, &who, 1) == 1 && close(fd) == 0;
}

static bool exclusive_create_has_one_winner(void)
{
	struct stat st;

	for (int i = 0; i < 10; i++) {
		MUST(in_parallel(create_exclusively) == 1);
		MUST(both_stat("f", &st) && st.st_size == 1);
		MUST_FAIL(openat(mnt, "f", O_WRONLY | O_CREAT | O_EXCL, 0644),
			  EEXIST);
		MUST(unlinkat(mnt, "f", 0) == 0);
	}
	return true;
}

static bool make_and_take_away(int who)
{
	char name[16], to[16];

	for (int i = 0; i < RECORDS; i++) {
		snprintf(name, sizeof(name), "w%d.%d", who, i);
		snprintf(to, sizeof(to), "x%d.%d", who, i);
		if (!put_file(mnt, name, (size_t)i * 7, (unsigned)who) ||
		    renameat(mnt, name, mnt, to) < 0 ||
		    !has_file(mnt, to, (size_t)i * 7, (unsigned)who) ||
		    unlinkat(mnt, to, 0) < 0)
			return false;
	}
	return true;
}

static bool processes_share_a_directory(void)
{
	MUST(in_parallel(make_and_take_away) == WRITERS);
	MUST(unlinkat(AT_FDCWD, mnt_path, AT_REMOVEDIR) == 0);
	return true;
}

static bool append_records(int who)
{
	int fd = openat(mnt, "log", O_WRONLY | O_APPEND | O_CREAT, 0644);
	char record[101];

	memset(record, 'a' + who, sizeof(record));
	for (int i = 0; i < RECORDS; i++)
		if (write(fd, record, sizeof(record)) != sizeof(record))
			return false;
	return close(fd) == 0;
}

static bool appended_records_stay_whole(void)
{
	int count[WRITERS] = { 0 };
	char record[101];
	int fd;

	MUST(in_parallel(append_records) == WRITERS);
	fd = openat(back, "log", O_RDONLY);
	MUST(fd >= 0);
	for (int i = 0; i < WRITERS * RECORDS; i++) {
		MUST(read(fd, record, sizeof(record)) == sizeof(record));
		MUST(record[0] >= 'a' && record[0] < 'a' + WRITERS);
		for (size_t k = 1; k < sizeof(record); k++)
			MUST(record[k] == record[0]);
		count[record[0] - 'a']++;
	}
	MUST(read(fd, record, 1) == 0);
	for (int i = 0; i < WRITERS; i++)
		MUST(count[i] == RECORDS);
	return true;
}

/* Each writer has every fourth block; O_DIRECT keeps their pages apart. */
static bool write_blocks(int who)
{
	static char buf[16384];
	int fd = openat(mnt, "f", O_WRONLY | O_DIRECT);
	off_t at;

	for (int i = who; i < WRITERS * 16; i += WRITERS) {
		at = (off_t)i * (off_t)sizeof(buf);
		pattern(buf, sizeof(buf), at, 12);
		if (pwrite(fd, buf, sizeof(buf), at) != sizeof(buf))
			return false;
	}
	return close(fd) == 0;
}

static bool processes_share_a_file(void)
{
	MUST(put_file(mnt, "f", 0, 0));
	MUST(in_parallel(write_blocks) == WRITERS);
	MUST(has_file(back, "f", (size_t)WRITERS * 16 * 16384, 12));
	MUST(has_file(mnt, "f", (size_t)WRITERS * 16 * 16384, 12));
	return true;
}

static bool an_open_sees_what_was_closed_before(void)
{
	struct stat st;

	for (unsigned i = 1; i < 6; i++) {
		MUST(put_file(back, "f", 5000 + i, i));
		MUST(has_file(mnt, "f", 5000 + i, i));
		MUST(put_file(mnt, "f", 3000 + i, i + 10));
		MUST(has_file(back, "f", 3000 + i, i + 10));
		MUST(both_stat("f", &st));
	}
	return true;
}

/* A handle is of the file, not of the path it was found by. */
static bool a_handle_survives_a_rename_on_the_server(void)
{
	char buf[100];
	int fd;

	MUST(mkdirat(back, "d", 0755) == 0 && put_file(back, "d/f", 100, 13));
	fd = openat(mnt, "d/f", O_RDWR | O_DIRECT);
	MUST(fd >= 0 && mkdirat(back, "e", 0755) == 0);
	MUST(renameat(back, "d/f", back, "e/g") == 0);
	MUST(unlinkat(back, "d", AT_REMOVEDIR) == 0);
	MUST(pread(fd, buf, 100, 0) == 100 && is_pattern(buf, 100, 0, 13));
	MUST(pwrite(fd, "moved", 5, 0) == 5 && fsync(fd) == 0);
	MUST(pread(fd, buf, 5, 0) == 5 && memcmp(buf, "moved", 5) == 0);
	MUST(close(fd) == 0);
	return true;
}

#define CHECK(f) { #f, f, 0 }
const struct fscheck sharing_checks[] = {
	CHECK(exclusive_create_has_one_winner),
	CHECK(processes_share_a_directory),
	CHECK(appended_records_stay_whole),
	CHECK(processes_share_a_file),
	CHECK(an_open_sees_what_was_closed_before),
	CHECK(a_handle_survives_a_rename_on_the_server),
	{ .name = NULL },
};
