/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stray_call - preloaded, has a program make a system call that it would not.
 *
 * Whenever it has taken SIGUSR1 by sigtimedwait(), the call whose number is in
 * STRAY_CALL is made with the arguments behind it, numbers as well, and its
 * result told to standard error.  "abstract NAME" connects to a socket of that
 * name instead, and "open PATH" opens a file to read and write it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static long connect_abstract(const char *name)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	size_t len = strlen(name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(sun.sun_path + 1, name, len);
	return connect(fd, (struct sockaddr *)&sun, (socklen_t)
		       (offsetof(struct sockaddr_un, sun_path) + 1 + len));
}

static void stray(const char *what)
{
	long arg[6] = { 0 }, ret, nr;
	char *at;

	if (strncmp(what, "abstract ", 9) == 0) {
		ret = connect_abstract(what + 9);
	} else if (strncmp(what, "open ", 5) == 0) {
		ret = open(what + 5, O_RDWR | O_CLOEXEC);
	} else {
		nr = strtol(what, &at, 0);
		for (int i = 0; i < 6 && *at; i++)
			arg[i] = strtol(at, &at, 0);
		ret = syscall(nr, arg[0], arg[1], arg[2], arg[3], arg[4],
			      arg[5]);
	}
	dprintf(STDERR_FILENO, "stray call: %ld %s\n", ret,
		ret < 0 ? strerrorname_np(errno) : "");
}

__attribute__((visibility("default")))
int sigtimedwait(const sigset_t *set, siginfo_t *info,
		 const struct timespec *timeout)
{
	int (*next)(const sigset_t *, siginfo_t *, const struct timespec *) =
		(int (*)(const sigset_t *, siginfo_t *,
			 const struct timespec *))
		dlsym(RTLD_NEXT, "sigtimedwait");
	const char *what = getenv("STRAY_CALL");
	int sig = next(set, info, timeout);

	if (sig == SIGUSR1 && what)
		stray(what);
	return sig;
}
