/* SPDX-License-Identifier: BSD-2-Clause */
/* state - the directory of the files that outlive one server's process. */
#include "daemon/serve/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/log.h"

/* Makes @dir and its parents. */
static int make_state_dir(const char *dir)
{
	char path[4096];

	if (strlen(dir) >= sizeof(path))
		return -ENAMETOOLONG;
	strcpy(path, dir);
	for (char *p = path + 1; *p; p++)
		if (*p == '/') {
			*p = '\0';
			if (mkdir(path, 0755) && errno != EEXIST)
				return -errno;
			*p = '/';
		}
	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	return 0;
}

int state_dir_open(const char *dir, int *lock)
{
	char path[4200];
	struct stat st;
	int fd, err = make_state_dir(dir);

	if (err)
		return err;
	if (stat(dir, &st) == 0 && st.st_mode & S_IWOTH)
		log_warn("state directory %s: every user of this machine may "
			 "write to it, and can make the server export "
			 "anything: chmod go-w", dir);
	snprintf(path, sizeof(path), "%s/lock", dir);
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	/* Two servers would hand out handles from tables that the other one
	 * changes without their knowledge. */
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		err = errno == EWOULDBLOCK ? -EBUSY : -errno;
		close(fd);
		return err;
	}
	*lock = fd;
	return 0;
}
