/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments and results of the status monitor's protocol.  Pure. */
#include "wire/nsm.h"

static void get_my_id(struct xdr_in *x, struct sm_args *a)
{
	a->my_name = xdr_get_opaque(x, SM_MAXSTRLEN);
	a->prog = xdr_get_u32(x);
	a->vers = xdr_get_u32(x);
	a->proc = xdr_get_u32(x);
}

bool sm_get_name(struct xdr_in *x, void *args)
{
	struct sm_args *a = args;

	a->name = xdr_get_opaque(x, SM_MAXSTRLEN);
	return xdr_ok(x);
}

bool sm_get_mon_id(struct xdr_in *x, void *args)
{
	struct sm_args *a = args;

	a->name = xdr_get_opaque(x, SM_MAXSTRLEN);
	get_my_id(x, a);
	return xdr_ok(x);
}

bool sm_get_mon(struct xdr_in *x, void *args)
{
	struct sm_args *a = args;

	sm_get_mon_id(x, a);
	a->priv = xdr_get_fixed(x, SM_PRIV_SIZE);
	return xdr_ok(x);
}

bool sm_get_my_id(struct xdr_in *x, void *args)
{
	get_my_id(x, args);
	return xdr_ok(x);
}

bool sm_get_notify(struct xdr_in *x, void *args)
{
	struct sm_args *a = args;

	a->name = xdr_get_opaque(x, SM_MAXSTRLEN);
	a->state = xdr_get_u32(x);
	return xdr_ok(x);
}

void sm_put_stat_res(struct xdr_out *x, const void *res)
{
	const struct sm_stat_res *r = res;

	xdr_put_u32(x, r->res);
	xdr_put_u32(x, r->state);
}

void sm_put_state(struct xdr_out *x, const void *res)
{
	const struct sm_stat_res *r = res;

	xdr_put_u32(x, r->state);
}

void sm_put_mon(struct xdr_out *x, const struct sm_call *c)
{
	xdr_put_string(x, c->name);
	xdr_put_string(x, c->my_name);
	xdr_put_u32(x, c->prog);
	xdr_put_u32(x, c->vers);
	xdr_put_u32(x, c->proc);
	if (c->priv)
		xdr_put_fixed(x, c->priv, SM_PRIV_SIZE);
}

void sm_put_notify(struct xdr_out *x, const struct sm_call *c)
{
	xdr_put_string(x, c->name);
	xdr_put_u32(x, c->state);
}

void sm_put_status(struct xdr_out *x, const struct sm_call *c)
{
	sm_put_notify(x, c);
	xdr_put_fixed(x, c->priv, SM_PRIV_SIZE);
}

bool sm_get_stat_res(struct xdr_in *x, struct sm_stat_res *res)
{
	res->res = (enum sm_res)xdr_get_count(x, SM_FAIL);
	res->state = xdr_get_u32(x);
	return xdr_ok(x);
}
