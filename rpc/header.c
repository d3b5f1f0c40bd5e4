/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RPC call headers off the wire, reply headers onto it.  Pure.
 *
 * Choices where RFC 5531 leaves one:
 *
 * A flavor that is not served is AUTH_REJECTEDCRED, which RFC 2203 section
 * 5.2.3.1 names as the common practice and appendix A asks for AUTH_SHORT.
 * AUTH_TLS on a procedure other than NULL is AUTH_BADCRED (RFC 9289 section
 * 4.1).  Procedure 0 never requires authentication (section 12.1), so it
 * takes every flavor, except RPCSEC_GSS: there the NULL procedure carries the
 * making of a context, and an empty success would be a lie.
 *
 * The body of AUTH_NONE is undefined and ignored, its length bounded.
 * Beside AUTH_SYS the verifier "should have" flavor AUTH_NONE; any other
 * one is AUTH_BADVERF.
 */
#include "rpc/header.h"

enum { CALL = 0, REPLY = 1 };
enum { MSG_ACCEPTED = 0, MSG_DENIED = 1 };
enum { RPC_MISMATCH = 0, AUTH_ERROR = 1 };
enum { AUTH_GSS = 6, AUTH_TLS = 7 };

/* Bytes after the last gid are ignored, as other servers do. */
static bool decode_sys(struct xdr_view body, struct rpc_cred *cred)
{
	struct xdr_in x;

	xdr_in_init(&x, body.data, body.len);
	xdr_get_u32(&x);				/* stamp */
	xdr_get_opaque(&x, RPC_MAX_MACHINE);
	cred->uid = xdr_get_u32(&x);
	cred->gid = xdr_get_u32(&x);
	cred->ngids = xdr_get_count(&x, RPC_MAX_GIDS);
	for (uint32_t i = 0; i < cred->ngids; i++)
		cred->gids[i] = xdr_get_u32(&x);
	return xdr_ok(&x);
}

static enum rpc_auth_stat decode_other(uint32_t flavor, uint32_t proc)
{
	if (proc == 0 && flavor != AUTH_GSS)
		return RPC_AUTH_OK;
	if (flavor == AUTH_TLS)
		return RPC_AUTH_BADCRED;
	return RPC_AUTH_REJECTEDCRED;
}

static enum rpc_auth_stat decode_auth(struct xdr_in *x, uint32_t proc,
				      struct rpc_cred *cred)
{
	enum rpc_auth_stat why = RPC_AUTH_OK;
	uint32_t flavor = xdr_get_u32(x);
	struct xdr_view body = xdr_get_opaque(x, RPC_MAX_AUTH);
	uint32_t verf;

	if (!xdr_ok(x))
		return RPC_AUTH_BADCRED;
	cred->flavor = RPC_AUTH_NONE;
	cred->uid = cred->gid = UINT32_MAX;
	cred->ngids = 0;
	if (flavor == RPC_AUTH_SYS) {
		cred->flavor = RPC_AUTH_SYS;
		if (!decode_sys(body, cred))
			return RPC_AUTH_BADCRED;
	} else if (flavor != RPC_AUTH_NONE) {
		why = decode_other(flavor, proc);
	}
	verf = xdr_get_u32(x);
	xdr_get_opaque(x, RPC_MAX_AUTH);
	if (why != RPC_AUTH_OK)
		return why;
	if (!xdr_ok(x))
		return RPC_AUTH_BADVERF;
	if (verf != RPC_AUTH_NONE && flavor <= RPC_AUTH_SYS)
		return RPC_AUTH_BADVERF;
	return RPC_AUTH_OK;
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
