/* SPDX-License-Identifier: BSD-2-Clause */
/* codec - the port mapper's arguments and results.  Pure. */
#include "portmap/proto.h"

#define NETID_MAX	64
#define STRING_MAX	256

bool portmap_get_pmap(struct xdr_in *x, void *args)
{
	struct portmap_args *a = args;

	a->prog = xdr_get_u32(x);
	a->vers = xdr_get_u32(x);
	a->proto = xdr_get_u32(x);
	xdr_get_u32(x);				/* a port */
	return xdr_ok(x);
}

bool portmap_get_rpcb(struct xdr_in *x, void *args)
{
	struct portmap_args *a = args;

	a->prog = xdr_get_u32(x);
	a->vers = xdr_get_u32(x);
	a->netid = xdr_get_opaque(x, NETID_MAX);
	a->addr = xdr_get_opaque(x, STRING_MAX);
	a->owner = xdr_get_opaque(x, STRING_MAX);
	return xdr_ok(x);
}

void portmap_put_word(struct xdr_out *x, const void *res)
{
	const struct portmap_res *r = res;

	xdr_put_u32(x, r->word);
}

void portmap_put_uaddr(struct xdr_out *x, const void *res)
{
	const struct portmap_res *r = res;

	xdr_put_opaque(x, r->uaddr, (uint32_t)strlen(r->uaddr));
}
