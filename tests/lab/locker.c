/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Takes a lock as a program of a client's does:
 *
 *	locker KIND MODE HOW FILE [START LENGTH]
 *
 * KIND is posix, ofd or flock; MODE read or write; HOW try (fails if another
 * has it), wait, or hold: waits, and keeps it until standard input has a byte
 * or ends.
 * Prints "locked" or "refused ERROR", and "unlocked" when it is no longer held;
 * status 0 or 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

struct want {
	const char *kind;
	bool	 writes, waits;
	off_t	 start, len;
};

static int take(int fd, const struct want *w)
{
	struct flock f = {
		.l_type = w->writes ? F_WRLCK : F_RDLCK,
		.l_whence = SEEK_SET, .l_start = w->start, .l_len = w->len,
	};

	if (!strcmp(w->kind, "flock"))
		return flock(fd, (w->writes ? LOCK_EX : LOCK_SH) |
			     (w->waits ? 0 : LOCK_NB));
	if (!strcmp(w->kind, "ofd"))
		return fcntl(fd, w->waits ? F_OFD_SETLKW : F_OFD_SETLK, &f);
	return fcntl(fd, w->waits ? F_SETLKW : F_SETLK, &f);
}

int main(int argc, char **argv)
{
	struct want w = { 0 };
	char byte;
	int fd;

	if (argc != 5 && argc != 7)
		return 2;
	w.kind = argv[1];
	w.writes = !strcmp(argv[2], "write");
	w.waits = strcmp(argv[3], "try") != 0;
	if (argc == 7) {
		w.start = atol(argv[5]);
		w.len = atol(argv[6]);
	}
	fd = open(argv[4], O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0 || take(fd, &w) < 0) {
		printf("refused %s\n", strerrorname_np(errno));
		return 1;
	}
	puts("locked");
	fflush(stdout);
	if (!strcmp(argv[3], "hold") && read(STDIN_FILENO, &byte, 1) < 0)
		return 1;
	close(fd);
	puts("unlocked");
	return 0;
}
