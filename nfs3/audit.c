/* SPDX-License-Identifier: BSD-2-Clause */
/* audit - tells of a call that has ended, see rpc/audit.h. */
#include "nfs3/proc.h"

#include <errno.h>

/* Procedures whose arguments begin with a name in a directory. */
#define WITH_NAME \
	(1u << NFSPROC3_LOOKUP | 1u << NFSPROC3_CREATE | \
	 1u << NFSPROC3_MKDIR | 1u << NFSPROC3_SYMLINK | \
	 1u << NFSPROC3_MKNOD | 1u << NFSPROC3_REMOVE | \
	 1u << NFSPROC3_RMDIR | 1u << NFSPROC3_RENAME)

/* The arguments begin with a handle, and @is_dirop with a name behind it. */
static void set_object(struct rpc_audit_object *o, const struct rpc_call *call,
		       bool is_dirop)
{
	const struct nfs3_dirop_args *a = (const void *)call->args;

	o->fh = a->fh;
	if (is_dirop)
		o->name = a->name;
}

static void set_objects(struct rpc_audit_event *e, struct nfs3_op *op)
{
	const struct nfs3_rename_args *rename = (const void *)e->call->args;
	const struct nfs3_link_args *link = (const void *)e->call->args;

	switch (e->proc) {
	case NFSPROC3_RENAME:
		e->to.fh = rename->to.fh;
		e->to.name = rename->to.name;
		break;
	case NFSPROC3_LINK:
		e->to.fh = link->link.fh;
		e->to.name = link->link.name;
		break;
	}
	set_object(&e->at, e->call, WITH_NAME >> e->proc & 1);
	e->at.node = op->vfs.node;
	e->to.node = op->other;
}

_Static_assert(RPC_AUDIT_ACL == NFSACL_STATUS, "bits of both are one row");

void nfs3_tell(struct rpc_call *call, int err)
{
	const struct nfs3 *nfs = call->prog->ctx;
	struct nfs3_op *op = nfs3_op(call);
	struct rpc_audit_event e = {
		.call = call, .proc = nfs->first_status + call->procnum,
		.exp = op->exp, .cred = op->exp ? &op->cred : NULL,
	};
	uint64_t procs = atomic_load(&nfs->audit->procs);

	/* The client repeats a dropped call.  RENAME and LINK tell before their
	 * second directory is put, and then come here again. */
	if (err == -ECANCELED || op->told || !(procs >> e.proc & 1))
		return;
	op->told = true;
	e.status = nfs3_status_name(nfs3_status(e.proc, err));
	set_objects(&e, op);
	nfs->audit->note(nfs->audit, &e);
}
