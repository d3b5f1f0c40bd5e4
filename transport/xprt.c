/* SPDX-License-Identifier: BSD-2-Clause */
/* xprt - what all transports have. */
#include "transport/xprt.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static socklen_t addr_len(const struct sockaddr *sa)
{
	switch (sa->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return sizeof(sa->sa_family);
	}
}

char *xprt_addr_text(const struct sockaddr *sa, char *out, size_t size)
{
	char ip[INET6_ADDRSTRLEN] = "?";

	if (sa->sa_family == AF_INET) {
		struct sockaddr_in sin;

		memcpy(&sin, sa, sizeof(sin));
		inet_ntop(AF_INET, &sin.sin_addr, ip, sizeof(ip));
		snprintf(out, size, "%s:%u", ip, ntohs(sin.sin_port));
	} else if (sa->sa_family == AF_INET6) {
		struct sockaddr_in6 sin6;

		memcpy(&sin6, sa, sizeof(sin6));
		inet_ntop(AF_INET6, &sin6.sin6_addr, ip, sizeof(ip));
		snprintf(out, size, "[%s]:%u", ip, ntohs(sin6.sin6_port));
	} else {
		snprintf(out, size, "family %u", sa->sa_family);
	}
	return out;
}

struct in6_addr xprt_addr_host(const struct sockaddr *sa)
{
	struct in6_addr addr = { 0 };

	if (sa->sa_family == AF_INET6) {
		addr = ((const struct sockaddr_in6 *)sa)->sin6_addr;
	} else if (sa->sa_family == AF_INET) {
		addr.s6_addr[10] = addr.s6_addr[11] = 0xff;
		memcpy(&addr.s6_addr[12],
		       &((const struct sockaddr_in *)sa)->sin_addr, 4);
	}
	return addr;
}

/* Addresses of one network should not have the same. */
static uint8_t flow_of(const struct sockaddr *peer)
{
	struct in6_addr addr = xprt_addr_host(peer);
	uint32_t hash = 0;

	for (unsigned i = 0; i < sizeof(addr.s6_addr); i++)
		hash = hash * 31 + addr.s6_addr[i];
	return (uint8_t)(1 + hash % (POOL_FLOWS - 1));
}

void xprt_init(struct xprt *x, const struct xprt_ops *ops,
	       struct xprt_sink *sink, struct loop *loop, struct pool *pool,
	       const struct sockaddr *peer, const struct sockaddr *local)
{
	char addr[64];

	memset(x, 0, sizeof(*x));
	x->ops = ops;
	ref_init(&x->ref);
	x->sink = sink;
	x->loop = loop;
	x->pool = pool;
	x->flow = flow_of(peer);
	memcpy(&x->peer, peer, addr_len(peer));
	memcpy(&x->local, local, addr_len(local));
	snprintf(x->name, sizeof(x->name), "%s %s", ops->name,
		 xprt_addr_text(peer, addr, sizeof(addr)));
}
