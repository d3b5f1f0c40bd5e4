/* SPDX-License-Identifier: BSD-2-Clause */
/* listener - who listens at a TCP port of this machine. */
#include "nsm/listener.h"

#include <stdio.h>

#define LISTENS	0x0au		/* TCP_LISTEN, as the kernel prints it */

struct check {
	uint16_t port;
	bool	 (*trusts)(uid_t uid);
	bool	 found;
	uid_t	 wrong;			/* (uid_t)-1: none so far */
};

/* One of the kernel's tables, which has the sockets that listen first. */
static void check_table(const char *path, struct check *c)
{
	FILE *f = fopen(path, "re");
	unsigned port, state, uid;
	char line[512];

	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*u: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x "
			   "%*x:%*x %*x:%*x %*x %u", &port, &state, &uid) != 3)
			continue;		/* the headings */
		if (state != LISTENS)
			break;
		if (port != c->port)
			continue;
		c->found = true;
		if (!c->trusts(uid))
			c->wrong = uid;
	}
	fclose(f);
}

bool nsm_listener_check(uint16_t port, bool (*trusts)(uid_t uid),
			uid_t *wrong)
{
	struct check c = { .port = port, .trusts = trusts,
			   .wrong = (uid_t)-1 };

	check_table("/proc/self/net/tcp", &c);
	check_table("/proc/self/net/tcp6", &c);
	*wrong = c.wrong;
	return c.found && c.wrong == (uid_t)-1;
}
