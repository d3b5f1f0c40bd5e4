/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of authentication flavors.  Pure.
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
#include "rpc/auth.h"

enum { AUTH_GSS = 6, AUTH_TLS = 7 };

static enum rpc_auth_stat check_verf(const struct rpc_auth *auth)
{
	return auth->verf_whole && auth->verf == RPC_AUTH_NONE ?
	       RPC_AUTH_OK : RPC_AUTH_BADVERF;
}

static void set_nobody(struct rpc_cred *cred)
{
	cred->flavor = RPC_AUTH_NONE;
	cred->uid = cred->gid = UINT32_MAX;
	cred->ngids = 0;
}

static enum rpc_auth_stat verify_none(const struct rpc_auth *auth,
				      struct rpc_cred *cred)
{
	set_nobody(cred);
	return check_verf(auth);
}

/* Bytes after the last gid are ignored, as other servers do. */
static enum rpc_auth_stat verify_sys(const struct rpc_auth *auth,
				     struct rpc_cred *cred)
{
	struct xdr_in x;

	xdr_in_init(&x, auth->body.data, auth->body.len);
	xdr_get_u32(&x);				/* stamp */
	xdr_get_opaque(&x, RPC_MAX_MACHINE);
	cred->flavor = RPC_AUTH_SYS;
	cred->uid = xdr_get_u32(&x);
	cred->gid = xdr_get_u32(&x);
	cred->ngids = xdr_get_count(&x, RPC_MAX_GIDS);
	for (uint32_t i = 0; i < cred->ngids; i++)
		cred->gids[i] = xdr_get_u32(&x);
	return xdr_ok(&x) ? check_verf(auth) : RPC_AUTH_BADCRED;
}

static enum rpc_auth_stat verify_gss(const struct rpc_auth *auth,
				     struct rpc_cred *cred)
{
	return RPC_AUTH_REJECTEDCRED;
}

static enum rpc_auth_stat verify_other(const struct rpc_auth *auth,
				       struct rpc_cred *cred)
{
	set_nobody(cred);
	if (auth->proc != 0)
		return RPC_AUTH_REJECTEDCRED;
	return auth->verf_whole ? RPC_AUTH_OK : RPC_AUTH_BADVERF;
}

static enum rpc_auth_stat verify_tls(const struct rpc_auth *auth,
				     struct rpc_cred *cred)
{
	return auth->proc ? RPC_AUTH_BADCRED : verify_other(auth, cred);
}

static rpc_auth_fn *const rows[] = {
	[RPC_AUTH_NONE]	= verify_none,
	[RPC_AUTH_SYS]	= verify_sys,
	[AUTH_GSS]	= verify_gss,
	[AUTH_TLS]	= verify_tls,
};

enum rpc_auth_stat rpc_auth_verify(const struct rpc_auth *auth,
				   struct rpc_cred *cred)
{
	if (auth->flavor < ARRAY_SIZE(rows) && rows[auth->flavor])
		return rows[auth->flavor](auth, cred);
	return verify_other(auth, cred);
}
