/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was promised to be stable, and whether it is.
 *
 *   ledger write DIR ACK SECONDS   writes record after record into DIR: into
 *	one file, fsynced, every fourth with O_SYNC; every tenth into a new
 *	file.  ACK, a file elsewhere, then holds how many are safe.  Ends when
 *	there is a file ACK.stop, or after SECONDS.
 *   ledger check DIR COUNT	    the first COUNT records are in DIR.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RECORD 1000

static void make_record(char *record, unsigned long number)
{
	memset(record, 'a' + (int)(number % 26), RECORD);
	snprintf(record, RECORD, "%lu", number);
}

/* Where record @number lives. */
static void place(char *path, size_t size, const char *dir,
		  unsigned long number, off_t *at)
{
	if (number % 10 == 0) {
		snprintf(path, size, "%s/file.%lu", dir, number);
		*at = 0;
	} else {
		snprintf(path, size, "%s/ledger", dir);
		*at = (off_t)(number * RECORD);
	}
}

static int put(const char *dir, unsigned long number)
{
	int flags = O_WRONLY | O_CREAT, fd;
	char path[4096], record[RECORD];
	off_t at;

	if (number % 4 == 0)
		flags |= O_SYNC;
	place(path, sizeof(path), dir, number, &at);
	make_record(record, number);
	fd = open(path, flags, 0644);
	if (fd < 0 || pwrite(fd, record, RECORD, at) != RECORD ||
	    fsync(fd) < 0 || close(fd) < 0) {
		perror(path);
		return -1;
	}
	return 0;
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

static int check_records(const char *dir, unsigned long count)
{
	char path[4096], want[RECORD], got[RECORD];
	unsigned long missing = 0;

	for (unsigned long i = 0; i < count; i++) {
		off_t at;
		int fd;

		place(path, sizeof(path), dir, i, &at);
		make_record(want, i);
		fd = open(path, O_RDONLY);
		if (fd < 0 || pread(fd, got, RECORD, at) != RECORD ||
		    memcmp(want, got, RECORD) != 0)
			missing++;
		if (fd >= 0)
			close(fd);
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
