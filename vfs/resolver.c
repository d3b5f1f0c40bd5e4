/* SPDX-License-Identifier: BSD-2-Clause */
/* Host names and netgroups as this system knows them. */
#include "vfs/export_priv.h"

#include <netdb.h>
#include <string.h>

static socklen_t to_sockaddr(const struct addr *a,
			     struct sockaddr_storage *ss)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };

	if (a->family == AF_INET) {
		memcpy(&in.sin_addr, a->bytes, 4);
		memcpy(ss, &in, sizeof(in));
		return sizeof(in);
	}
	memcpy(&in6.sin6_addr, a->bytes, 16);
	memcpy(ss, &in6, sizeof(in6));
	return sizeof(in6);
}

static int system_name(const struct addr *a, char *name, size_t size)
{
	struct sockaddr_storage ss;
	socklen_t len = to_sockaddr(a, &ss);

	return getnameinfo((struct sockaddr *)&ss, len, name,
			   (socklen_t)size, NULL, 0, NI_NAMEREQD);
}

static int system_has_addr(const char *name, const struct addr *a)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;
	int err = getaddrinfo(name, NULL, &hints, &list);
	int found = 0;

	if (err)
		return err == EAI_NONAME || err == EAI_NODATA ? 0 : -1;
	for (const struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		struct addr b;
		unsigned port;

		addr_from_sockaddr(ai->ai_addr, &b, &port);
		if (addr_equal(a, &b))
			found = 1;
	}
	freeaddrinfo(list);
	return found;
}

static bool system_in_netgroup(const char *group, const char *host)
{
	/* innetgr() is not for several threads at once. */
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	bool in;

	mutex_lock(&lock);
	in = innetgr(group, host, NULL, NULL) == 1;
	mutex_unlock(&lock);
	return in;
}

const struct resolver resolver_system = {
	.name = system_name,
	.has_addr = system_has_addr,
	.in_netgroup = system_in_netgroup,
	.keep_s = 60,
};
