/* SPDX-License-Identifier: BSD-2-Clause */
/* rpc - calls and replies, as the tool's user makes them. */
#include "tools/nfs/rpc.h"

#include <errno.h>
#include <string.h>

#include "lib/xdr.h"
#include "wire/header.h"

void rpc_put_call(struct xdr_out *x, uint32_t xid,
		  const struct rpc_procedure *p, const struct nfsc_config *c)
{
	const struct rpc_header h = { .xid = xid, .prog = p->program,
				      .vers = p->version, .proc = p->number };
	struct rpc_auth_sys sys = { .machine = "" };

	if (c) {
		sys.uid = c->uid;
		sys.gid = c->gid;
		sys.ngids = c->ngroups;
		sys.gids = c->groups;
	}
	rpc_header_call(x, &h, c ? &sys : NULL);
}

int rpc_get_reply(struct xdr_in *x, uint32_t xid)
{
	uint32_t got;
	int err = rpc_header_reply(x, &got, NULL);

	return got == xid ? err : -EBADMSG;
}

size_t rpc_op_room(const struct nfsc_op *op, const struct nfsc_config *c)
{
	size_t room = RPC_CALL_MAX;

	if (c->flavor)
		room += c->flavor->extra;
	if (op->kind == NFS_OP_PROVE ||
	    (op->kind == NFS_OP_WRITE && rpc_op_data(op, c) == 0))
		room += op->count + 4;
	return room;
}

int rpc_put_op(struct xdr_out *x, uint32_t xid, struct nfsc_op *op,
	       const struct nfsc_config *c)
{
	const struct rpc_procedure p = {
		RPC_NFS, 3, nfsc_procedure(op->kind),
	};
	int err = 0;

	if (c->flavor && op->kind != NFS_OP_NULL) {
		err = c->flavor->put(c->flavor, x, xid, op);
	} else {
		rpc_put_call(x, xid, &p, op->kind == NFS_OP_NULL ? NULL : c);
		nfsc_put_args(x, op);
	}
	return err == 0 && x->bad ? -ENAMETOOLONG : err;
}

int rpc_get_op(struct xdr_in *x, uint32_t xid, struct nfsc_op *op,
	       const struct nfsc_config *c)
{
	int err = c->flavor && op->kind != NFS_OP_NULL ?
		  c->flavor->get(c->flavor, x, xid, op) :
		  rpc_get_reply(x, xid);

	return err < 0 || op->kind >= NFS_OP_PROVE ? err :
	       nfsc_get_results(x, op);
}

int rpc_get_data(struct xdr_in *x, struct nfsc_op *op)
{
	struct xdr_view v = xdr_get_fixed(x, op->got);

	if (!xdr_ok(x))
		return -EBADMSG;
	if (v.len > 0)
		memcpy(op->data, v.data, v.len);
	return 0;
}
