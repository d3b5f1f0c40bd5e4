/* SPDX-License-Identifier: BSD-2-Clause */
/* file - small files that are read or written as a whole. */
#include "lib/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

static int write_all(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		}
	}
	return fsync(fd) < 0 ? -errno : 0;
}

int file_replace(int dir, const char *name, const char *text, size_t len)
{
	char temp[PATH_MAX];
	int fd, err;

	if (snprintf(temp, sizeof(temp), "%s.new", name) >= PATH_MAX)
		return -ENAMETOOLONG;
	fd = openat(dir, temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC |
		    O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	err = write_all(fd, text, len);
	if (close(fd) < 0 && err == 0)
		err = -errno;
	if (err == 0 && renameat(dir, temp, dir, name) < 0)
		err = -errno;
	return err;
}

int file_read(FILE *in, size_t max, char **out, size_t *len)
{
	size_t cap = 4096, n = 0, got;
	char *text = malloc(cap), *more;
	int err = -ENOMEM;

	while (text && (got = fread(text + n, 1, cap - n, in)) > 0) {
		n += got;
		if (n < cap)
			continue;
		err = n >= max ? -EFBIG : -ENOMEM;
		more = n >= max ? NULL : realloc(text, cap *= 2);
		if (!more)
			goto fail;
		text = more;
	}
	if (!text)
		return -ENOMEM;
	err = -EIO;
	if (ferror(in))
		goto fail;
	*out = text;
	*len = n;
	return 0;

fail:
	free(text);
	return err;
}
