/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages of RPCSEC_GSS (RFC 2203). */
#include "wire/gss.h"

bool gss_cred_get(const struct xdr_view *body, struct gss_cred *c)
{
	struct xdr_in x;

	xdr_in_init(&x, body->data, body->len);
	c->version = xdr_get_u32(&x);
	xdr_get_three(&x, &c->proc, &c->seq, &c->service);
	c->handle = xdr_get_opaque(&x, RPC_MAX_AUTH);
	if (xdr_ok(&x) && xdr_left(&x) == 0)
		return true;
	c->proc = c->seq = c->service = 0;
	c->handle = (struct xdr_view){ NULL, 0 };
	return false;
}

void gss_cred_put(struct xdr_out *x, const struct gss_cred *c)
{
	xdr_put_u32(x, c->version);
	xdr_put_u32(x, c->proc);
	xdr_put_u32(x, c->seq);
	xdr_put_u32(x, c->service);
	xdr_put_opaque(x, c->handle.data, c->handle.len);
}

void gss_init_res_put(struct xdr_out *x, const struct gss_init_res *r)
{
	xdr_put_opaque(x, r->handle.data, r->handle.len);
	xdr_put_u32(x, r->major);
	xdr_put_u32(x, r->minor);
	xdr_put_u32(x, r->window);
	xdr_put_opaque(x, r->token.data, r->token.len);
}

bool gss_init_res_get(struct xdr_in *x, struct gss_init_res *r)
{
	r->handle = xdr_get_opaque(x, RPC_MAX_AUTH);
	xdr_get_three(x, &r->major, &r->minor, &r->window);
	r->token = xdr_get_opaque(x, UINT16_MAX);
	return xdr_ok(x);
}
