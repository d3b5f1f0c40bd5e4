/* SPDX-License-Identifier: BSD-2-Clause */
/* device - see device.h. */
#include "tools/nfs/device.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PORTS = 8, GIDS = 256 };

/* The line of a file, which can be missing. */
static bool read_sysfs(char out[DEVICE_TEXT], const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static bool read_sysfs(char out[DEVICE_TEXT], const char *fmt, ...)
{
	char path[512];
	va_list ap;
	FILE *f;

	out[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	f = strstr(path, "..") ? NULL : fopen(path, "re");
	if (!f)
		return false;
	if (fgets(out, DEVICE_TEXT, f))
		out[strcspn(out, "\n")] = '\0';
	fclose(f);
	return true;
}

/* The GID of an address: that itself, of IPv4 mapped into IPv6. */
static struct in6_addr gid_of(const struct sockaddr_storage *local)
{
	const struct sockaddr_in6 *six = (const void *)local;
	const struct sockaddr_in *four = (const void *)local;
	struct in6_addr gid = { 0 };

	if (local->ss_family == AF_INET6)
		return six->sin6_addr;
	gid.s6_addr[10] = gid.s6_addr[11] = 0xff;
	memcpy(gid.s6_addr + 12, &four->sin_addr, 4);
	return gid;
}

/* The GID at @index of the port; false: the table ends before. */
static bool read_gid(const char *port, unsigned index,
		     char gid[DEVICE_TEXT], struct in6_addr *addr)
{
	if (!read_sysfs(gid, "%s/gids/%u", port, index))
		return false;
	if (inet_pton(AF_INET6, gid, addr) != 1)
		memset(addr, 0, sizeof(*addr));
	return true;
}

/* Looks for the address in the port's table.  True: it is there by RoCE v2, and
 * no better one is to be found. */
static bool look_through(const char *port, const struct in6_addr *wanted,
			 struct device *d, unsigned number, bool *found)
{
	char gid[DEVICE_TEXT], type[DEVICE_TEXT];
	struct in6_addr addr;

	for (unsigned i = 0; i < GIDS; i++) {
		if (!read_gid(port, i, gid, &addr))
			break;
		if (memcmp(&addr, wanted, sizeof(addr)) != 0)
			continue;
		read_sysfs(type, "%s/gid_attrs/types/%u", port, i);
		if (*found && !strstr(type, "v2"))
			continue;
		*found = true;
		d->port = number;
		d->index = i;
		if (strstr(type, "v2"))
			return true;
	}
	return false;
}

bool device_read(const char *sys, const char *name,
		 const struct sockaddr_storage *local, struct device *out)
{
	struct in6_addr wanted = gid_of(local);
	char port[300];
	bool found = false, best = false;

	*out = (struct device){ .port = 1 };
	for (unsigned i = 1; i <= PORTS && !best; i++) {
		snprintf(port, sizeof(port), "%s/infiniband/%s/ports/%u", sys,
			 name, i);
		best = look_through(port, &wanted, out, i, &found);
	}
	snprintf(port, sizeof(port), "%s/infiniband/%s/ports/%u", sys, name,
		 out->port);
	if (!read_sysfs(out->state, "%s/state", port))
		return false;
	read_sysfs(out->layer, "%s/link_layer", port);
	read_sysfs(out->gid, "%s/gids/%u", port, out->index);
	/* A GID of InfiniBand or iWARP also has a type, which means nothing. */
	if (found)
		read_sysfs(out->type, "%s/gid_attrs/types/%u", port,
			   out->index);
	read_sysfs(out->netdev, "%s/gid_attrs/ndevs/%u", port, out->index);
	if (out->netdev[0])
		read_sysfs(out->mtu, "%s/net/%s/mtu", sys, out->netdev);
	return true;
}
