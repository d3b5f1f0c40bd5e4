/* SPDX-License-Identifier: BSD-2-Clause */
/* net_space - a network of the test's own, with loopback alone. */
#include "tests/server/net_space.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/runner.h"

bool net_space_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) > 0;

	if (fd >= 0)
		close(fd);
	return ok;
}

bool net_space_raise_loopback(void)
{
	struct ifreq ifr = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool up;

	ifr.ifr_flags = IFF_UP | IFF_RUNNING;
	up = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &ifr) == 0;
	if (fd >= 0)
		close(fd);
	return up;
}

/* The user stays who it is: the server that the test starts is no root. */
static bool enter_user_space(void)
{
	char uids[64], gids[64];

	snprintf(uids, sizeof(uids), "%u %u 1", geteuid(), geteuid());
	snprintf(gids, sizeof(gids), "%u %u 1", getegid(), getegid());
	return unshare(CLONE_NEWUSER) == 0 &&
		net_space_write("/proc/self/uid_map", uids) &&
		net_space_write("/proc/self/setgroups", "deny") &&
		net_space_write("/proc/self/gid_map", gids);
}

int net_space_run_tests(void)
{
	if ((geteuid() != 0 && !enter_user_space()) ||
	    unshare(CLONE_NEWNET) < 0 || !net_space_raise_loopback()) {
		printf("skipped: may have no network of its own\n");
		return 77;
	}
	return run_tests();
}
