/* SPDX-License-Identifier: BSD-2-Clause */
/* GETATTR, SETATTR, ACCESS, FSSTAT, FSINFO, PATHCONF. */
#include "nfs3/proc.h"

#include <errno.h>

NFS3_STEP(getattr)
{
	struct nfs3_attr_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);

	r->attr.fsid = op->exp->fs->fsid;
	return op->ops->getattr(&op->ctx, op->node, &r->attr.attr);
}

/* A guard with 10^9 nanoseconds or more is no file's ctime: NOT_SYNC. */
static int check_setattr(const struct vfs_setattr *set)
{
	if (!nfs3_times_ok(set))
		return -EINVAL;
	if ((set->set & VFS_SET_SIZE) && set->size > INT64_MAX)
		return -EFBIG;
	return 0;
}

NFS3_STEP(setattr)
{
	const struct nfs3_setattr_args *a = rpc_args(call);
	struct nfs3_wcc_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);
	int err = check_setattr(&a->attr);

	return err < 0 ? err : op->ops->setattr(&op->ctx, op->node, &a->attr,
						&r->wcc.wcc);
}

#define ACCESS_ALL	(VFS_ACCESS_READ | VFS_ACCESS_LOOKUP | \
			 VFS_ACCESS_MODIFY | VFS_ACCESS_EXTEND | \
			 VFS_ACCESS_DELETE | VFS_ACCESS_EXECUTE)
#define ACCESS_CHANGE	(VFS_ACCESS_MODIFY | VFS_ACCESS_EXTEND | \
			 VFS_ACCESS_DELETE)

NFS3_STEP(access)
{
	const struct nfs3_access_args *a = rpc_args(call);
	uint32_t want = a->access & ACCESS_ALL;
	struct nfs3_access_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);
	int err;

	if (!op->opts.rw)
		want &= ~ACCESS_CHANGE;
	err = op->ops->access(&op->ctx, op->node, want, &r->access,
			      &r->attr.attr);
	r->attr.has = err == 0;
	r->access &= want;
	return err;
}

NFS3_STEP(fsstat)
{
	struct nfs3_fsstat_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);

	return op->ops->statfs(&op->ctx, op->node, &r->st);
}

NFS3_STEP(fsinfo)
{
	struct nfs3_fsinfo_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);

	r->rtmax = op->nfs->rtmax;
	r->wtmax = op->nfs->wtmax;
	r->dtpref = op->nfs->dtpref;
	return op->ops->limits(&op->ctx, op->node, &r->limits);
}

NFS3_STEP(pathconf)
{
	struct nfs3_pathconf_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);

	return op->ops->limits(&op->ctx, op->node, &r->limits);
}
