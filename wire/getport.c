/* SPDX-License-Identifier: BSD-2-Clause */
/* getport - the question for a program's port, and its answer.  Pure. */
#include "wire/getport.h"

#include <netinet/in.h>

#include "wire/portmap.h"

#define UADDR_MAX	128

void getport_put(struct xdr_out *x, const struct getport *g)
{
	const struct portmap_args a = {
		.prog = g->prog, .vers = g->vers, .proto = (uint32_t)g->proto,
		.netid = xdr_text(g->proto == IPPROTO_TCP ? "tcp6" : "udp6"),
		.addr = xdr_text(""), .owner = xdr_text(""),
	};

	if (g->family == AF_INET6)
		portmap_put_rpcb(x, &a);
	else
		portmap_put_pmap(x, &a);
}

/* A decimal byte that ends at @end, after a dot; *@p moves to the dot. */
static bool byte_before(const char *text, const char **p, uint32_t *out)
{
	uint32_t digit = 1, sum = 0, n = 0;
	const char *at = *p;

	while (at > text && at[-1] >= '0' && at[-1] <= '9' && n++ < 3) {
		sum += (uint32_t)(*--at - '0') * digit;
		digit *= 10;
	}
	if (n == 0 || n > 3 || sum > 255 || at == text || at[-1] != '.')
		return false;
	*p = at - 1;
	*out = sum;
	return true;
}

bool getport_uaddr(const char *text, uint32_t len, uint16_t *port)
{
	const char *p = text + len;
	uint32_t low, high;

	if (!byte_before(text, &p, &low) || !byte_before(text, &p, &high))
		return false;
	*port = (uint16_t)(high << 8 | low);
	return true;
}

bool getport_get(struct xdr_in *x, const struct getport *g, uint16_t *port)
{
	struct xdr_view v;

	*port = 0;
	if (g->family != AF_INET6) {
		*port = (uint16_t)xdr_get_count(x, 65535);
		return xdr_ok(x);
	}
	v = xdr_get_opaque(x, UADDR_MAX);
	if (!xdr_ok(x))
		return false;
	return v.len == 0 || getport_uaddr((const char *)v.data, v.len, port);
}
