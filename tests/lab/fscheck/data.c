/* SPDX-License-Identifier: BSD-2-Clause */
/* data - files of known bytes, and messages about conditions that fail. */
#include "tests/lab/fscheck/fscheck.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool must(bool cond, const char *text, const char *file, int line)
{
	int err = errno;

	if (!cond)
		printf("# %s:%d: %s (errno %d, %s)\n", file, line, text, err,
		       strerror(err));
	return cond;
}

bool failed_with(long result, int err)
{
	if (result != -1)
		printf("# returned %ld\n", result);
	return result == -1 && errno == err;
}

static unsigned char pattern_byte(off_t offset, unsigned seed)
{
	unsigned long x = (unsigned long)offset + seed * 0x9e3779b9UL;

	return (unsigned char)((x * 0x9e3779b97f4a7c15UL) >> 40);
}

void pattern(void *buf, size_t len, off_t offset, unsigned seed)
{
	unsigned char *p = buf;

	for (size_t i = 0; i < len; i++)
		p[i] = pattern_byte(offset + (off_t)i, seed);
}

bool is_pattern(const void *buf, size_t len, off_t offset, unsigned seed)
{
	const unsigned char *p = buf;

	for (size_t i = 0; i < len; i++) {
		if (p[i] == pattern_byte(offset + (off_t)i, seed))
			continue;
		printf("# byte %zu of %zu is wrong\n", i, len);
		return false;
	}
	return true;
}

bool is_zero(const void *buf, size_t len)
{
	const unsigned char *p = buf;

	for (size_t i = 0; i < len; i++)
		if (p[i])
			return false;
	return true;
}

bool put_file(int dir, const char *name, size_t len, unsigned seed)
{
	void *buf = malloc(len + 1);
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	bool done;

	pattern(buf, len, 0, seed);
	done = fd >= 0 && write(fd, buf, len) == (ssize_t)len;
	free(buf);
	return fd >= 0 && close(fd) == 0 && done;
}

bool has_file(int dir, const char *name, size_t len, unsigned seed)
{
	unsigned char *buf = malloc(len + 1);
	int fd = openat(dir, name, O_RDONLY);
	size_t got = 0;
	ssize_t n = fd < 0 ? -1 : 1;
	bool same;

	while (n > 0 && got < len + 1) {
		n = read(fd, buf + got, len + 1 - got);
		if (n > 0)
			got += (size_t)n;
	}
	if (n < 0 || got != len)
		printf("# %s: %zu bytes instead of %zu\n", name, got, len);
	same = n >= 0 && got == len && is_pattern(buf, len, 0, seed);
	free(buf);
	if (fd >= 0)
		close(fd);
	return same;
}
