/* SPDX-License-Identifier: BSD-2-Clause */
/* The port mapper's arguments and results.  Pure. */
#include "wire/portmap.h"

#define NETID_MAX	64
#define STRING_MAX	256

bool portmap_get_pmap(struct xdr_in *x, void *args)
{
	struct portmap_args *a = args;

	a->prog = xdr_get_u32(x);
	a->vers = xdr_get_u32(x);
	a->proto = xdr_get_u32(x);
	a->port = xdr_get_u32(x);
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

void portmap_put_pmap(struct xdr_out *x, const struct portmap_args *a)
{
	xdr_put_u32(x, a->prog);
	xdr_put_u32(x, a->vers);
	xdr_put_u32(x, a->proto);
	xdr_put_u32(x, a->port);
}

void portmap_put_rpcb(struct xdr_out *x, const struct portmap_args *a)
{
	xdr_put_u32(x, a->prog);
	xdr_put_u32(x, a->vers);
	xdr_put_opaque(x, a->netid.data, a->netid.len);
	xdr_put_opaque(x, a->addr.data, a->addr.len);
	xdr_put_opaque(x, a->owner.data, a->owner.len);
}

void portmap_put_word(struct xdr_out *x, const void *res)
{
	const struct portmap_res *r = res;

	xdr_put_u32(x, r->word);
}

void portmap_put_uaddr(struct xdr_out *x, const void *res)
{
	const struct portmap_res *r = res;

	xdr_put_string(x, r->uaddr);
}
