/* SPDX-License-Identifier: BSD-2-Clause */
/* listener - who listens at a port of this machine. */
#include "rpc/listener.h"

#include <netinet/in.h>
#include <stdio.h>

/* The states of sockets without a peer, as the kernel prints them. */
#define TCP_LISTENS	0x0au
#define UDP_LISTENS	0x07u

struct check {
	uint16_t port;
	unsigned state;
	bool	 (*trusts)(uid_t uid);
	bool	 found;
	uid_t	 wrong;			/* (uid_t)-1: none so far */
};

/* One of the kernel's tables.  Those of TCP have the sockets that listen
 * first, and may be long behind them. */
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
		if (state != c->state && c->state == TCP_LISTENS)
			break;
		if (state != c->state || port != c->port)
			continue;
		c->found = true;
		if (!c->trusts(uid))
			c->wrong = uid;
	}
	fclose(f);
}

bool rpc_listener_check(int proto, uint16_t port, bool (*trusts)(uid_t uid),
			uid_t *wrong)
{
	bool udp = proto == IPPROTO_UDP;
	struct check c = { .port = port, .trusts = trusts,
			   .state = udp ? UDP_LISTENS : TCP_LISTENS,
			   .wrong = (uid_t)-1 };

	check_table(udp ? "/proc/self/net/udp" : "/proc/self/net/tcp", &c);
	check_table(udp ? "/proc/self/net/udp6" : "/proc/self/net/tcp6", &c);
	*wrong = c.wrong;
	return c.found && c.wrong == (uid_t)-1;
}
