/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notes the data that was promised to be stable, and checks that it is.
 *
 *   ledger write DIR ACK SECONDS   writes record after record into DIR, and
 * 	each is made safe in one of the ways below.  ACK, a file elsewhere,
 * 	then holds how many are safe.  Ends when a file ACK.stop exists, or
 * 	after SECONDS.
 *   ledger check DIR COUNT	    the first COUNT records are in DIR.
 *
 * Most records go into one file, which is fsynced after each.  Others are
 * separate files: fsynced, only closed, renamed after the fsync, in a new
 * directory, or removed again.  Every fourth file is open with O_SYNC.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RECORD 1000

enum how { APPENDED, SYNCED, CLOSED, RENAMED, IN_DIRECTORY, REMOVED };

static enum how how_of(unsigned long number)
{
	static const enum how turns[10] = {
		SYNCED, APPENDED, APPENDED, RENAMED, APPENDED, CLOSED,
		APPENDED, IN_DIRECTORY, REMOVED, APPENDED,
	};

	return turns[number % 10];
}

static void make_record(char *record, unsigned long number)
{
	memset(record, 'a' + (int)(number % 26), RECORD);
	snprintf(record, RECORD, "%lu", number);
}

/* Where record @number lives when it is safe. */
static void place(char *path, size_t size, const char *dir,
		  unsigned long number, off_t *at)
{
	*at = 0;
	switch (how_of(number)) {
	case APPENDED:
		snprintf(path, size, "%s/ledger", dir);
		*at = (off_t)(number * RECORD);
		break;
	case IN_DIRECTORY:
		snprintf(path, size, "%s/dir.%lu/file", dir, number);
		break;
	default:
		snprintf(path, size, "%s/file.%lu", dir, number);
	}
}

static int write_record(const char *path, off_t at, unsigned long number)
{
	int flags = O_WRONLY | O_CREAT | (number % 4 == 0 ? O_SYNC : 0), fd;
	char record[RECORD];

	make_record(record, number);
	fd = open(path, flags, 0644);
	if (fd < 0 || pwrite(fd, record, RECORD, at) != RECORD ||
	    (how_of(number) != CLOSED && fsync(fd) < 0) || close(fd) < 0)
		return -1;
	return 0;
}

/*
 * A call that is repeated after a restart of the server can find its own work:
 * the name exists already, or is gone.  The check will find out.
 */
static int unless(int expected, int result)
{
	return result < 0 && errno == expected ? 0 : result;
}

static int put(const char *dir, unsigned long number)
{
	char path[4096], other[4200];
	off_t at;
	int rc;

	place(path, sizeof(path), dir, number, &at);
	switch (how_of(number)) {
	case RENAMED:
		snprintf(other, sizeof(other), "%s.new", path);
		rc = write_record(other, at, number);
		if (rc == 0)
			rc = unless(ENOENT, rename(other, path));
		break;
	case IN_DIRECTORY:
		snprintf(other, sizeof(other), "%s/dir.%lu", dir, number);
		rc = unless(EEXIST, mkdir(other, 0755));
		if (rc == 0)
			rc = write_record(path, at, number);
		break;
	case REMOVED:
		rc = write_record(path, at, number);
		if (rc == 0)
			rc = unless(ENOENT, unlink(path));
		break;
	default:
		rc = write_record(path, at, number);
	}
	if (rc < 0)
		perror(path);
	return rc;
}

static int write_records(const char *dir, const char *ack, int seconds)
{
	time_t end = time(NULL) + seconds;
	char stop[4096], text[32];
	unsigned long number = 0;
	int fd, len;

	snprintf(stop, sizeof(stop), "%s.stop", ack);
	fd = open(ack, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0)
		return 1;
	while (time(NULL) < end && access(stop, F_OK) < 0) {
		if (put(dir, number++) < 0)
			return 1;
		len = snprintf(text, sizeof(text), "%-20lu\n", number);
		if (pwrite(fd, text, (size_t)len, 0) != len)
			return 1;
	}
	close(fd);
	printf("# %lu records\n", number);
	return 0;
}

static bool is_there(const char *path, off_t at, unsigned long number)
{
	char want[RECORD], got[RECORD];
	int fd = open(path, O_RDONLY);
	bool same;

	make_record(want, number);
	same = fd >= 0 && pread(fd, got, RECORD, at) == RECORD &&
	       memcmp(want, got, RECORD) == 0;
	if (fd >= 0)
		close(fd);
	return same;
}

static bool is_safe(const char *dir, unsigned long number)
{
	char path[4096];
	off_t at;

	place(path, sizeof(path), dir, number, &at);
	if (how_of(number) == REMOVED)
		return access(path, F_OK) < 0 && errno == ENOENT;
	return is_there(path, at, number);
}

static int check_records(const char *dir, unsigned long count)
{
	unsigned long missing = 0;

	for (unsigned long i = 0; i < count; i++) {
		if (is_safe(dir, i))
			continue;
		if (missing++ < 5)
			printf("# record %lu is not as it was left\n", i);
	}
	printf("# %lu of %lu records are missing\n", missing, count);
	return missing > 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "write"))
		return write_records(argv[2], argv[3], atoi(argv[4]));
	if (argc == 4 && !strcmp(argv[1], "check"))
		return check_records(argv[2], strtoul(argv[3], NULL, 10));
	fprintf(stderr, "ledger write DIR ACK SECONDS | check DIR COUNT\n");
	return 2;
}
