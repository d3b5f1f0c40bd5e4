/* SPDX-License-Identifier: BSD-2-Clause */
/* RPC call and reply headers off the wire and onto it.  Pure. */
#include "wire/header.h"

#include <errno.h>

enum { CALL = 0, REPLY = 1 };
enum { MSG_ACCEPTED = 0, MSG_DENIED = 1 };
enum { RPC_MISMATCH = 0, AUTH_ERROR = 1 };
enum { ACCEPTED_SIZE = 24 };

enum rpc_header_kind rpc_header_decode(struct xdr_in *x, struct rpc_header *h)
{
	uint32_t type, vers;

	h->start = x->p;
	xdr_get_three(x, &h->xid, &type, &vers);
	if (!xdr_ok(x))
		return RPC_HEADER_SHORT;
	if (type != CALL)
		return RPC_HEADER_NOT_CALL;
	if (vers != RPC_VERSION)
		return RPC_HEADER_MISMATCH;
	xdr_get_three(x, &h->prog, &h->vers, &h->proc);
	if (!xdr_ok(x))
		return RPC_HEADER_SHORT;
	h->flavor = xdr_get_u32(x);
	h->cred = xdr_get_opaque(x, RPC_MAX_AUTH);
	if (!xdr_ok(x)) {
		h->denied = RPC_AUTH_BADCRED;
		return RPC_HEADER_DENIED;
	}
	h->verf_flavor = xdr_get_u32(x);
	h->verf = xdr_get_opaque(x, RPC_MAX_AUTH);
	h->verf_whole = xdr_ok(x);
	return RPC_HEADER_CALL;
}

bool rpc_auth_sys_get(const struct xdr_view *body, uint32_t *uid, uint32_t *gid,
		      uint32_t *ngids, uint32_t *gids)
{
	struct xdr_in x;

	xdr_in_init(&x, body->data, body->len);
	xdr_get_u32(&x);				/* stamp */
	xdr_get_opaque(&x, RPC_MAX_MACHINE);
	xdr_get_three(&x, uid, gid, ngids);
	if (unlikely(*ngids > RPC_MAX_GIDS)) {
		*ngids = 0;
		return false;
	}
	for (uint32_t i = 0; i < *ngids; i++)
		gids[i] = xdr_get_u32(&x);
	return xdr_ok(&x);
}

static void put_auth_sys(struct xdr_out *x, const struct rpc_auth_sys *sys)
{
	uint32_t len = (uint32_t)strnlen(sys->machine, RPC_MAX_MACHINE);

	xdr_put_u32(x, RPC_AUTH_SYS);
	xdr_put_u32(x, 20 + len + xdr_pad(len) + 4 * sys->ngids);
	xdr_put_u32(x, 0);			/* stamp */
	xdr_put_opaque(x, sys->machine, len);
	xdr_put_u32(x, sys->uid);
	xdr_put_u32(x, sys->gid);
	xdr_put_u32(x, sys->ngids);
	for (uint32_t i = 0; i < sys->ngids; i++)
		xdr_put_u32(x, sys->gids[i]);
}

static void put_auth_none(struct xdr_out *x)
{
	xdr_put_u32(x, RPC_AUTH_NONE);
	xdr_put_u32(x, 0);
}

void rpc_auth_put(struct xdr_out *x, uint32_t flavor, struct xdr_view body)
{
	xdr_put_u32(x, flavor);
	xdr_put_opaque(x, body.data, body.len);
}

static void put_call(struct xdr_out *x, const struct rpc_header *h)
{
	xdr_put_u32(x, h->xid);
	xdr_put_u32(x, CALL);
	xdr_put_u32(x, RPC_VERSION);
	xdr_put_u32(x, h->prog);
	xdr_put_u32(x, h->vers);
	xdr_put_u32(x, h->proc);
}

void rpc_header_call_signed(struct xdr_out *x, const struct rpc_header *h)
{
	put_call(x, h);
	rpc_auth_put(x, h->flavor, h->cred);
}

void rpc_header_call(struct xdr_out *x, const struct rpc_header *h,
		     const struct rpc_auth_sys *sys)
{
	put_call(x, h);
	if (sys)
		put_auth_sys(x, sys);
	else
		put_auth_none(x);
	put_auth_none(x);			/* verifier */
}

static int accepted_error(uint32_t stat)
{
	switch (stat) {
	case RPC_SUCCESS:
		return 0;
	case RPC_PROG_UNAVAIL:
	case RPC_PROG_MISMATCH:
		return -EPROTONOSUPPORT;
	case RPC_PROC_UNAVAIL:
		return -EOPNOTSUPP;
	case RPC_GARBAGE_ARGS:
		return -EINVAL;
	case RPC_SYSTEM_ERR:
		return -EIO;
	default:
		return -EBADMSG;
	}
}

int rpc_header_reply(struct xdr_in *x, uint32_t *xid,
		     struct rpc_opaque_auth *verf)
{
	struct rpc_opaque_auth ignored;
	uint32_t type, reply;
	int err;

	*xid = xdr_get_u32(x);
	type = xdr_get_u32(x);
	reply = xdr_get_u32(x);
	if (type != REPLY || reply > MSG_DENIED)
		xdr_set_bad(x);
	if (reply == MSG_DENIED)
		return xdr_ok(x) ? -EACCES : -EBADMSG;
	verf = verf ? verf : &ignored;
	verf->flavor = xdr_get_u32(x);
	verf->body = xdr_get_opaque(x, RPC_MAX_AUTH);
	err = accepted_error(xdr_get_u32(x));
	return xdr_ok(x) ? err : -EBADMSG;
}

/* Reserves room once, instead of a check for every word. */
void rpc_header_accepted(struct xdr_out *out, uint32_t xid,
			 enum rpc_accept_stat stat)
{
	uint8_t *room = xdr_reserve(out, ACCEPTED_SIZE);
	struct xdr_out in, *x = &in;

	if (unlikely(!room))
		return;
	xdr_out_init(x, room, ACCEPTED_SIZE);
	xdr_put_u32(x, xid);
	xdr_put_u32(x, REPLY);
	xdr_put_u32(x, MSG_ACCEPTED);
	xdr_put_u32(x, RPC_AUTH_NONE);		/* verifier */
	xdr_put_u32(x, 0);
	xdr_put_u32(x, stat);
}

void rpc_header_prog_mismatch(struct xdr_out *x, uint32_t xid, uint32_t low,
			      uint32_t high)
{
	rpc_header_accepted(x, xid, RPC_PROG_MISMATCH);
	xdr_put_u32(x, low);
	xdr_put_u32(x, high);
}

static void put_denied(struct xdr_out *x, uint32_t xid, uint32_t stat)
{
	xdr_put_u32(x, xid);
	xdr_put_u32(x, REPLY);
	xdr_put_u32(x, MSG_DENIED);
	xdr_put_u32(x, stat);
}

void rpc_header_rpc_mismatch(struct xdr_out *x, uint32_t xid)
{
	put_denied(x, xid, RPC_MISMATCH);
	xdr_put_u32(x, RPC_VERSION);
	xdr_put_u32(x, RPC_VERSION);
}

void rpc_header_denied(struct xdr_out *x, uint32_t xid,
		       enum rpc_auth_stat why)
{
	put_denied(x, xid, AUTH_ERROR);
	xdr_put_u32(x, why);
}
