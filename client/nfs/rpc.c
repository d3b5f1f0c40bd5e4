/* SPDX-License-Identifier: BSD-2-Clause */
/* rpc - the headers of calls and replies (RFC 5531 section 9). */
#include "client/nfs/rpc.h"

#include <errno.h>

#include "lib/util.h"
#include "lib/xdr.h"

enum {
	RPC_VERSION = 2, MSG_CALL = 0, MSG_REPLY = 1, AUTH_SYS = 1,
	VERIFIER_MAX = 400,
};

static void put_auth_sys(struct xdr_out *x, const struct nfsc_config *c)
{
	xdr_put_u32(x, AUTH_SYS);
	xdr_put_u32(x, 20 + 4 * c->ngroups);
	xdr_put_u32(x, 0);		/* stamp */
	xdr_put_u32(x, 0);		/* machine name */
	xdr_put_u32(x, c->uid);
	xdr_put_u32(x, c->gid);
	xdr_put_u32(x, c->ngroups);
	for (unsigned i = 0; i < c->ngroups; i++)
		xdr_put_u32(x, c->groups[i]);
}

void rpc_put_call(struct xdr_out *x, uint32_t xid,
		  const struct rpc_procedure *p, const struct nfsc_config *c)
{
	xdr_put_u32(x, xid);
	xdr_put_u32(x, MSG_CALL);
	xdr_put_u32(x, RPC_VERSION);
	xdr_put_u32(x, p->program);
	xdr_put_u32(x, p->version);
	xdr_put_u32(x, p->number);
	if (c)
		put_auth_sys(x, c);
	else
		xdr_put_u64(x, 0);	/* AUTH_NONE */
	xdr_put_u64(x, 0);		/* verifier: AUTH_NONE */
}

int rpc_get_reply(struct xdr_in *x, uint32_t xid)
{
	static const int errs[] = {
		0, -EPROTONOSUPPORT, -EPROTONOSUPPORT, -EOPNOTSUPP, -EINVAL,
		-EIO,
	};
	uint32_t stat;

	if (xdr_get_u32(x) != xid || xdr_get_u32(x) != MSG_REPLY)
		return -EBADMSG;
	if (xdr_get_bool(x))
		return xdr_ok(x) ? -EACCES : -EBADMSG;
	xdr_get_u32(x);
	xdr_get_opaque(x, VERIFIER_MAX);
	stat = xdr_get_count(x, ARRAY_SIZE(errs) - 1);
	return xdr_ok(x) ? errs[stat] : -EBADMSG;
}

void rpc_put_op(struct xdr_out *x, uint32_t xid, const struct nfsc_op *op,
		const struct nfsc_config *c)
{
	const struct rpc_procedure p = {
		RPC_NFS, 3, nfsc_procedure(op->kind),
	};

	rpc_put_call(x, xid, &p, op->kind == NFS_OP_NULL ? NULL : c);
	nfsc_put_args(x, op);
}

int rpc_get_op(struct xdr_in *x, uint32_t xid, struct nfsc_op *op)
{
	int err = rpc_get_reply(x, xid);

	return err < 0 ? err : nfsc_get_results(x, op);
}
