/* SPDX-License-Identifier: BSD-2-Clause */
/* listener - who listens at a port of this machine. */
#include "rpc/listener.h"

#include <netinet/in.h>
#include <stdio.h>

#include "transport/addr.h"

/* The state of a socket without a peer, as the kernel prints it. */
#define TCP_LISTENS	0x0au

struct check {
	const struct sockaddr_storage *at;
	bool	 udp;
	bool	 (*trusts)(uid_t uid);
	uid_t	 *wrong;
};

/* Looks into one of the kernel's tables.  The listeners of TCP have the
 * listening sockets first, and can lag far behind them. */
static enum rpc_listener check_table(const struct check *c, const char *path)
{
	enum rpc_listener found = RPC_LISTENER_NONE;
	unsigned port, state, uid;
	FILE *f = fopen(path, "re");
	char line[512];

	if (!f)
		return RPC_LISTENER_UNKNOWN;
	while (found != RPC_LISTENER_WRONG && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*u: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x "
			   "%*x:%*x %*x:%*x %*x %u", &port, &state, &uid) != 3)
			continue;		/* the headings */
		if (!c->udp && state != TCP_LISTENS)
			break;
		if (port != xprt_addr_port(c->at))
			continue;
		found = c->trusts(uid) ? RPC_LISTENER_TRUSTED :
					 RPC_LISTENER_WRONG;
		*c->wrong = uid;
	}
	fclose(f);
	return found;
}

enum rpc_listener rpc_listener_check(int proto,
				     const struct sockaddr_storage *at,
				     bool (*trusts)(uid_t uid), uid_t *wrong)
{
	const struct check c = { at, proto == IPPROTO_UDP, trusts, wrong };
	const char *six = c.udp ? "/proc/self/net/udp6" : "/proc/self/net/tcp6";
	enum rpc_listener both, found;

	if (at->ss_family == AF_INET6)
		return check_table(&c, six);
	found = check_table(&c, c.udp ? "/proc/self/net/udp" :
					"/proc/self/net/tcp");
	if (found != RPC_LISTENER_NONE)
		return found;
	/* The machine can be without IPv6. */
	both = check_table(&c, six);
	return both == RPC_LISTENER_UNKNOWN ? found : both;
}
