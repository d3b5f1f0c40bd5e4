/* SPDX-License-Identifier: BSD-2-Clause */
/* file - the file of the list. */
#include "nsm/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/file.h"

#define FILE_MAX	((size_t)4 << 20)

static int open_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Reads all of @fd, which ends at @size or before. */
static int read_all(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while (len < size) {
		n = read(fd, text + len, size - len);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			break;
		len += n > 0 ? (size_t)n : 0;
	}
	text[len] = '\0';
	return 0;
}

int nsm_file_read(const char *dir, char **out)
{
	int at = open_dir(dir), fd, err = 0;
	struct stat st = { 0 };
	char *text;

	if (at < 0)
		return at;
	fd = openat(at, "nsm", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT)
		err = -errno;
	close(at);
	if (fd >= 0 && fstat(fd, &st) < 0)
		err = -errno;
	if (!err && (size_t)st.st_size > FILE_MAX)
		err = -EFBIG;
	text = err ? NULL : malloc((size_t)st.st_size + 1);
	if (!err && !text)
		err = -ENOMEM;
	if (text)
		*text = '\0';
	if (!err && fd >= 0)
		err = read_all(fd, text, (size_t)st.st_size);
	if (fd >= 0)
		close(fd);
	if (err)
		free(text);
	else
		*out = text;
	return err;
}

int nsm_file_replace(const char *dir, const char *text, size_t len)
{
	int at = open_dir(dir), err;

	if (at < 0)
		return at;
	err = file_replace(at, "nsm", text, len);
	if (!err && fsync(at) < 0)
		err = -errno;
	close(at);
	return err;
}
