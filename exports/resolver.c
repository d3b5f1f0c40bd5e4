/* SPDX-License-Identifier: BSD-2-Clause */
/* Host names, netgroups and users as this system knows them. */
#include "exports/export_priv.h"

#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

/* The longest entry of a user. */
#define USER_ENTRY_MAX	((size_t)1 << 20)
/* ... of a group, which names its members. */
#define GROUP_ENTRY_MAX	((size_t)16 << 20)

_Static_assert(sizeof(gid_t) == sizeof(uint32_t), "lists of groups are alike");

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
	int found = !a;

	if (err)
		return err == EAI_NONAME || err == EAI_NODATA ? 0 : -1;
	for (const struct addrinfo *ai = list; a && ai; ai = ai->ai_next) {
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
	/* innetgr() is not thread-safe. */
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	bool in;

	mutex_lock(&lock);
	in = innetgr(group, host, NULL, NULL) == 1;
	mutex_unlock(&lock);
	return in;
}

/* The name of a user and the group that its entry has.  As groups(). */
static int find_user(uint32_t uid, char **name, uint32_t *gid)
{
	struct passwd entry, *found = NULL;
	size_t size = 1024;
	char *buf = NULL, *more;
	int err = ERANGE;

	while (err == ERANGE && size <= USER_ENTRY_MAX) {
		more = realloc(buf, size);
		if (!more)
			break;
		buf = more;
		err = getpwuid_r(uid, &entry, buf, size, &found);
		size *= 2;
	}
	*name = err == 0 && found ? strdup(entry.pw_name) : NULL;
	if (*name)
		*gid = entry.pw_gid;
	free(buf);
	if (err == 0 && found)
		return *name ? 1 : -1;
	/* A source that is down also gives ENOENT. */
	return err == 0 ? 0 : -1;
}

static int system_groups(uint32_t uid, uint32_t **gids, uint32_t *n)
{
	int max = 64, got = -1, told;
	gid_t *list = NULL, *more;
	uint32_t gid = 0;
	char *name;

	told = find_user(uid, &name, &gid);
	while (told == 1 && got < 0) {
		int size = max;

		more = reallocarray(list, (size_t)size, sizeof(*list));
		if (!more)
			break;
		list = more;
		got = getgrouplist(name, gid, list, &max);
		if (got < 0 && max <= size)
			break;			/* no memory */
	}
	free(name);
	if (told == 1 && got < 0)
		told = -1;
	if (told == 1) {
		*gids = list;
		*n = (uint32_t)got;
	} else {
		free(list);
	}
	return told;
}

/* The entry of the group says who its members are. */
static bool lists_member(const struct group *g, const char *name)
{
	for (char **m = g->gr_mem; *m; m++)
		if (strcmp(*m, name) == 0)
			return true;
	return false;
}

static bool system_has_left(uint32_t uid, uint32_t gid)
{
	struct group entry, *found = NULL;
	char *buf = NULL, *more, *name;
	size_t size = 1024;
	uint32_t primary;
	int err = ERANGE;
	bool left = false;

	while (err == ERANGE && size <= GROUP_ENTRY_MAX) {
		more = realloc(buf, size);
		if (!more)
			break;
		buf = more;
		err = getgrgid_r(gid, &entry, buf, size, &found);
		size *= 4;
	}
	if (err == 0 && found) {
		/* Without a name it is no user, and in no group. */
		left = find_user(uid, &name, &primary) == 0;
		if (name)
			left = !lists_member(found, name);
		free(name);
	}
	free(buf);
	return left;
}

const struct resolver resolver_system = {
	.name = system_name,
	.has_addr = system_has_addr,
	.in_netgroup = system_in_netgroup,
	.groups = system_groups,
	.has_left = system_has_left,
	.keep_s = 60,
	.users_keep_s = 300,
	.users_stale_s = 24 * 3600,
	.quiet_s = 10,
	.slow_ms = 5000,
};
