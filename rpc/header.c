/* SPDX-License-Identifier: BSD-2-Clause */
/* RPC call headers off the wire, reply headers onto it.  Pure. */
#include "rpc/header.h"

#include "rpc/auth.h"

enum { CALL = 0, REPLY = 1 };
enum { MSG_ACCEPTED = 0, MSG_DENIED = 1 };
enum { RPC_MISMATCH = 0, AUTH_ERROR = 1 };

static enum rpc_auth_stat decode_auth(struct xdr_in *x, uint32_t proc,
				      struct rpc_cred *cred)
{
	struct rpc_auth auth;

	auth.proc = proc;
	auth.flavor = xdr_get_u32(x);
	auth.body = xdr_get_opaque(x, RPC_MAX_AUTH);
	if (!xdr_ok(x))
		return RPC_AUTH_BADCRED;
	auth.verf = xdr_get_u32(x);
	xdr_get_opaque(x, RPC_MAX_AUTH);
	auth.verf_whole = xdr_ok(x);
	return rpc_auth_verify(&auth, cred);
}

enum rpc_header_kind rpc_header_decode(struct xdr_in *x, struct rpc_header *h,
				       struct rpc_cred *cred)
{
	uint32_t type, vers;

	h->xid = xdr_get_u32(x);
	type = xdr_get_u32(x);
	vers = xdr_get_u32(x);
	if (!xdr_ok(x))
		return RPC_HEADER_SHORT;
	if (type != CALL)
		return RPC_HEADER_NOT_CALL;
	if (vers != RPC_VERSION)
		return RPC_HEADER_MISMATCH;
	h->prog = xdr_get_u32(x);
	h->vers = xdr_get_u32(x);
	h->proc = xdr_get_u32(x);
	if (!xdr_ok(x))
		return RPC_HEADER_SHORT;
	h->denied = decode_auth(x, h->proc, cred);
	return h->denied == RPC_AUTH_OK ? RPC_HEADER_CALL : RPC_HEADER_DENIED;
}

void rpc_header_accepted(struct xdr_out *x, uint32_t xid,
			 enum rpc_accept_stat stat)
{
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
