/* SPDX-License-Identifier: BSD-2-Clause */
/* addr - socket addresses. */
#include "transport/addr.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "lib/hash.h"
#include "lib/network.h"

socklen_t xprt_addr_len(const struct sockaddr *sa)
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

void xprt_addr_copy(struct sockaddr_storage *to, const struct sockaddr *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, from, xprt_addr_len(from));
}

const char *xprt_host_text(const struct in6_addr *host,
			   char text[INET6_ADDRSTRLEN])
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(host);

	return inet_ntop(v4 ? AF_INET : AF_INET6, &host->s6_addr[v4 ? 12 : 0],
			 text, INET6_ADDRSTRLEN);
}

/* Both families have the port at the same place. */
uint16_t xprt_addr_port(const struct sockaddr_storage *ss)
{
	return ntohs(((const struct sockaddr_in *)ss)->sin_port);
}

void xprt_addr_set_port(struct sockaddr_storage *ss, uint16_t port)
{
	((struct sockaddr_in *)ss)->sin_port = htons(port);
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

bool xprt_addr_same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	const struct in6_addr one = xprt_addr_host(a), two = xprt_addr_host(b);

	return memcmp(&one, &two, sizeof(one)) == 0;
}

bool xprt_addr_is_loopback(const struct sockaddr *sa)
{
	const struct in6_addr host = xprt_addr_host(sa);

	return IN6_IS_ADDR_LOOPBACK(&host) ||
	       (IN6_IS_ADDR_V4MAPPED(&host) &&
		host.s6_addr[12] == IN_LOOPBACKNET);
}

static struct in6_addr prefix_of(const struct in6_addr *host, unsigned len)
{
	struct in6_addr prefix = *host;

	if (!IN6_IS_ADDR_V4MAPPED(host))
		memset(&prefix.s6_addr[len], 0, sizeof(prefix) - len);
	return prefix;
}

struct in6_addr xprt_addr_network(const struct in6_addr *host)
{
	return prefix_of(host, NETWORK_BYTES);
}

struct in6_addr xprt_addr_site(const struct in6_addr *host)
{
	return prefix_of(host, SITE_BYTES);
}

bool xprt_addr_same_site(const struct in6_addr *a, const struct in6_addr *b)
{
	const struct in6_addr one = xprt_addr_site(a);
	const struct in6_addr two = xprt_addr_site(b);

	return memcmp(&one, &two, sizeof(one)) == 0;
}

uint64_t xprt_addr_hash(const struct in6_addr *host)
{
	return hash_addr(host->s6_addr);
}
