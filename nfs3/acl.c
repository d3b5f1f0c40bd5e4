/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NFSACL version 3: the program, and its procedures.
 *
 * Its calls consist of the same steps as NFS's.  The lists of a call lie in
 * separate memory, which the results own: they are too long for a call.  The
 * lists of GETACL become the reply's body.
 *
 * SETACL is cached like SETATTR: a late duplicate would undo later changes.
 */
#include "nfs3/acl.h"

#include <errno.h>
#include <stdlib.h>

_Static_assert(offsetof(struct nfs3_acl_res, attr) ==
	       offsetof(struct nfs3_attr_res, attr), "for nfs3_end_attr()");

/*
 * The common beginning of both procedures: 0, or -errno.  Runs again where the
 * step waits or was suspended.
 */
static int begin_acl(struct rpc_call *call, uint32_t mask)
{
	struct nfs3_acl_res *r = rpc_res(call);

	if (r->acls)
		return 0;
	if (nfs3_op(call)->opts.no_acl)
		return -EOPNOTSUPP;
	if (mask & ~(uint32_t)NFSACL_ALL)
		return -EINVAL;
	r->mask = mask;
	r->acls = malloc(sizeof(*r->acls));
	return r->acls ? 0 : -ENOMEM;
}

static void want(struct vfs_acls *acls, uint32_t mask, uint32_t bits)
{
	for (int kind = 0; kind < VFS_ACL_KINDS; kind++) {
		acls->wanted[kind] = mask & nfs3_acl_bit(kind, bits);
		acls->n[kind] = 0;
	}
}

/* The attributes name the owners, and the mode is the list of a file without
 * one. */
static int getacl_attr(struct rpc_call *call)
{
	const struct nfs3_getacl_args *a = rpc_args(call);
	int err = begin_acl(call, a->mask);

	return err < 0 ? err : nfs3_getattr(call);
}

static int getacl_lists(struct rpc_call *call)
{
	struct nfs3_acl_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);
	struct vfs_acls *acls = r->acls;
	int err = 0;

	r->attr.has = true;
	if (!nfs3_has_ended(op))
		want(acls, r->mask, NFSACL_ACL | NFSACL_ACLCNT);
	op->vfs.attr = NULL;
	op->vfs.acls = acls;
	if (op->ops->getacl)
		err = nfs3_do(op, op->ops->getacl);
	if (err < 0)
		return err;
	if (acls->wanted[VFS_ACL_ACCESS] && acls->n[VFS_ACL_ACCESS] == 0) {
		nfs3_acl_from_mode(r->attr.attr.mode,
				   acls->entry[VFS_ACL_ACCESS]);
		acls->n[VFS_ACL_ACCESS] = 3;
	}
	return rpc_body_get(call, nfs3_acls_size(acls, r->mask));
}

static int getacl_put(struct rpc_call *call)
{
	struct nfs3_acl_res *r = rpc_res(call);
	uint32_t size = (uint32_t)nfs3_acls_size(r->acls, r->mask);
	struct xdr_out x;

	xdr_out_init(&x, rpc_body(call)->data, size);
	nfs3_put_acls(&x, r->acls, r->mask, &r->attr.attr);
	rpc_body_set(call, size, NULL, 0);
	return 0;
}

static int get_lists(const struct nfs3_setacl_args *a, struct vfs_acls *acls)
{
	want(acls, a->mask, NFSACL_ACL);
	for (int kind = 0; kind < VFS_ACL_KINDS; kind++) {
		int n;

		if (!acls->wanted[kind])
			continue;
		if (a->acl[kind].n * (uint64_t)NFSACL_ENTRY_SIZE !=
		    a->acl[kind].entries.len)
			return -EINVAL;
		n = nfs3_acl_from_wire(a->acl[kind].entries,
				       acls->entry[kind]);
		if (n < 0)
			return n;
		acls->n[kind] = (uint32_t)n;
	}
	return 0;
}

static int setacl(struct rpc_call *call)
{
	const struct nfs3_setacl_args *a = rpc_args(call);
	struct nfs3_acl_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);
	int err = begin_acl(call, a->mask);

	if (err == 0 && !op->ops->setacl)
		err = -EOPNOTSUPP;
	if (err == 0 && !nfs3_has_ended(op))
		err = get_lists(a, r->acls);
	if (err < 0)
		return err;
	op->vfs.acls = r->acls;
	return nfs3_do(op, op->ops->setacl);
}

static int end_acl(struct rpc_call *call, int err)
{
	struct nfs3_acl_res *r = rpc_res(call);

	free(r->acls);
	return nfs3_end_attr(call, err);
}

static const struct rpc_proc procs[NFSACL_NPROC] = {
	[NFSACLPROC3_NULL] = {
		.name = "NULL",
		.decode = nfs3_get_void,
	},
	[NFSACLPROC3_GETACL] = {
		.name = "GETACL",
		.decode = nfs3_get_getacl,
		.steps = { nfs3_find_export, nfs3_find_node, getacl_attr,
			   getacl_lists, getacl_put },
		.end = end_acl,
		.encode = nfs3_put_getacl,
		.args_size = sizeof(struct nfs3_getacl_args),
		.res_size = sizeof(struct nfs3_acl_res),
		.state_zeroed = NFS3_OP_ZEROED,
	},
	[NFSACLPROC3_SETACL] = {
		.name = "SETACL",
		.decode = nfs3_get_setacl,
		.steps = { nfs3_find_export, nfs3_find_node, nfs3_check_rw,
			   setacl },
		.end = end_acl,
		.encode = nfs3_put_setacl,
		.args_size = sizeof(struct nfs3_setacl_args),
		.res_size = sizeof(struct nfs3_acl_res),
		.state_zeroed = NFS3_OP_ZEROED,
		.flags = RPC_PROC_CACHED,
	},
};

static int create_acl(const struct program_env *env, struct rpc_program **out)
{
	struct nfs3 *nfs = calloc(1, sizeof(*nfs));

	if (!nfs)
		return -ENOMEM;
	nfs->first_status = NFSACL_STATUS;
	nfs->version.vers = NFSACL_VERSION;
	nfs->version.nproc = NFSACL_NPROC;
	nfs->version.procs = procs;
	nfs->prog.name = "nfs_acl";
	nfs->prog.prog = NFSACL_PROGRAM;
	/* Clients call it on their connection for NFS. */
	nfs->prog.announced = RPC_OVER_TCP;
	nfs3_program_init(nfs, env);
	*out = &nfs->prog;
	return 0;
}

const struct program_row nfs3_acl_row = {
	.create = create_acl, .destroy = nfs3_destroy,
};
