/* SPDX-License-Identifier: BSD-2-Clause */
/* The clients of an export, as exports(5) names them.  Pure. */
#include "exports/export_priv.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <endian.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* An IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2) is IPv4. */
static void unmap(struct addr *a)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (a->family != AF_INET6 || memcmp(a->bytes, mapped, 12) != 0)
		return;
	a->family = AF_INET;
	memcpy(a->bytes, a->bytes + 12, 4);
	memset(a->bytes + 4, 0, 12);
}

void addr_from_sockaddr(const struct sockaddr *sa, struct addr *a,
			unsigned *port)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	memset(a, 0, sizeof(*a));
	*port = 0;
	switch (sa->sa_family) {
	case AF_INET:
		memcpy(&in, sa, sizeof(in));
		a->family = AF_INET;
		memcpy(a->bytes, &in.sin_addr, 4);
		*port = ntohs(in.sin_port);
		break;
	case AF_INET6:
		memcpy(&in6, sa, sizeof(in6));
		a->family = AF_INET6;
		memcpy(a->bytes, &in6.sin6_addr, 16);
		*port = ntohs(in6.sin6_port);
		unmap(a);
		break;
	}
}

bool addr_equal(const struct addr *a, const struct addr *b)
{
	return a->family == b->family && memcmp(a->bytes, b->bytes, 16) == 0;
}

/* The bits in which eight bytes differ, the first one's the highest. */
static uint64_t differing(const uint8_t *a, const uint8_t *b)
{
	uint64_t x, y;

	memcpy(&x, a, 8);
	memcpy(&y, b, 8);
	return be64toh(x ^ y);
}

bool addr_in_prefix(const struct addr *a, const struct addr *net,
		    unsigned bits)
{
	uint64_t first = differing(a->bytes, net->bytes);

	if (a->family != net->family)
		return false;
	if (bits <= 64)
		return bits == 0 || first >> (64 - bits) == 0;
	return first == 0 && differing(a->bytes + 8, net->bytes + 8) >>
			     (128 - bits) == 0;
}

static bool parse_addr(const char *s, struct addr *a)
{
	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET, s, a->bytes) == 1) {
		a->family = AF_INET;
		return true;
	}
	if (inet_pton(AF_INET6, s, a->bytes) == 1) {
		a->family = AF_INET6;
		return true;
	}
	return false;
}

/* Turns "255.255.252.0" into 22.  False if the mask is not ones, then zeros. */
static bool parse_netmask(const char *s, unsigned *bits)
{
	struct in_addr in;
	uint32_t mask;

	if (inet_pton(AF_INET, s, &in) != 1)
		return false;
	mask = ntohl(in.s_addr);
	*bits = mask ? 32 - (unsigned)__builtin_ctz(mask) : 0;
	return (mask | (mask - 1)) == UINT32_MAX || mask == 0;
}

/* Bits past the prefix do not count, so they need not be zero. */
static const char *parse_network(struct client *c, const char *slash)
{
	char *host = strndup(c->text, (size_t)(slash - c->text));
	bool ok = host && parse_addr(host, &c->addr);
	unsigned max = c->addr.family == AF_INET ? 32 : 128;

	free(host);
	if (!ok)
		return "is not a network: expected ADDRESS/LENGTH or "
		       "ADDRESS/NETMASK";
	if (c->addr.family == AF_INET && strchr(slash, '.')) {
		if (!parse_netmask(slash + 1, &c->bits))
			return "has a bad netmask: expected one such as "
			       "255.255.252.0";
	} else if (!export_parse_number(slash + 1, max, &c->bits)) {
		return max == 32 ? "has a bad prefix length: expected 0 to 32"
				 : "has a bad prefix length: expected 0 to 128";
	}
	if (c->addr.family == AF_INET6 && c->bits >= 96) {
		unmap(&c->addr);
		if (c->addr.family == AF_INET)
			c->bits -= 96;
	}
	c->kind = CLIENT_NETWORK;
	c->by_address = true;
	return NULL;
}

static bool is_host_name(const char *s)
{
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("-._", *s))
			return false;
	return true;
}

/* No host name's last label is all digits (RFC 1123 section 2.1), so this is a
 * malformed address. */
static bool is_numeric(const char *s)
{
	return s[strspn(s, "0123456789.")] == '\0';
}

static const char *parse_wildcard(struct client *c)
{
	const char *open = strchr(c->text, '[');

	if (c->text[0] == '[' && strchr(c->text, ':'))
		return "is not understood: IPv6 addresses are written "
		       "without brackets";
	if (open && !strchr(open, ']'))
		return "has a '[' without a ']'";
	if (strchr(c->text, '/'))
		return "is not understood: a network has no wildcards";
	if (strpbrk(c->text, "0123456789") &&
	    c->text[strspn(c->text, "0123456789.*?")] == '\0')
		return "is not understood: addresses have no wildcards; "
		       "write a network such as 192.0.2.0/24";
	c->kind = CLIENT_WILDCARD;
	return NULL;
}

const char *client_parse(struct client *c)
{
	const char *slash = strchr(c->text, '/');

	c->by_address = false;
	/* MNTNAMLEN, RFC 1813 section 5.1.1: a client that gets more from
	 * EXPORT lists nothing. */
	if (strlen(c->text) > 255)
		return "is longer than 255 bytes, which clients can't list";
	if (strcmp(c->text, "*") == 0) {
		c->kind = CLIENT_ANYONE;
		return NULL;
	}
	if (strncmp(c->text, "gss/", 4) == 0)
		return "is not supported: there is no Kerberos";
	if (c->text[0] == '@') {
		c->kind = CLIENT_NETGROUP;
		return c->text[1] ? NULL : "is not a netgroup: expected @NAME";
	}
	if (strpbrk(c->text, "*?["))
		return parse_wildcard(c);
	if (slash)
		return parse_network(c, slash);
	c->kind = CLIENT_HOST;
	if (parse_addr(c->text, &c->addr)) {
		unmap(&c->addr);
		c->by_address = true;
		c->bits = c->addr.family == AF_INET ? 32 : 128;
		return NULL;
	}
	if (is_numeric(c->text))
		return "is not an address: expected four numbers, each 0 to "
		       "255";
	return is_host_name(c->text) ? NULL :
	       "is neither a host name, an address, a network, a wildcard "
	       "nor a netgroup";
}

bool client_same(const struct client *a, const struct client *b)
{
	if (a->kind != b->kind || a->by_address != b->by_address)
		return false;
	if (!a->by_address)
		return strcasecmp(a->text, b->text) == 0;
	return a->bits == b->bits &&
	       addr_in_prefix(&a->addr, &b->addr, a->bits);
}

bool client_match_name(const struct client *c, const char *name)
{
	if (c->kind == CLIENT_WILDCARD)
		return fnmatch(c->text, name, FNM_CASEFOLD | FNM_NOESCAPE)
		       == 0;
	return strcasecmp(c->text, name) == 0;
}
