/* SPDX-License-Identifier: BSD-2-Clause */
/* GETATTR, SETATTR, ACCESS, FSSTAT, FSINFO, PATHCONF. */
#include "nfs3/proc.h"

#include <errno.h>

NFS3_STEP(getattr)
{
	struct nfs3_attr_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);

	r->attr.fsid = op->opts.fsid;
	op->vfs.attr = &r->attr.attr;
	return nfs3_do(op, op->ops->getattr);
}

/* A guard with 10^9 nanoseconds or more matches no file's ctime: NOT_SYNC. */
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

	if (err < 0)
		return err;
	op->vfs.set = &a->attr;
	op->vfs.wcc = &r->wcc.wcc;
	return nfs3_do(op, op->ops->setattr);
}

#define ACCESS_ALL	(VFS_ACCESS_READ | VFS_ACCESS_LOOKUP | \
			 VFS_ACCESS_MODIFY | VFS_ACCESS_EXTEND | \
			 VFS_ACCESS_DELETE | VFS_ACCESS_EXECUTE)
#define ACCESS_CHANGE	(VFS_ACCESS_MODIFY | VFS_ACCESS_EXTEND | \
			 VFS_ACCESS_DELETE)

NFS3_STEP(access)
{
	const struct nfs3_access_args *a = rpc_args(call);
	struct nfs3_access_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);
	int err;

	op->vfs.access.want = a->access & ACCESS_ALL;
	if (!op->opts.rw)
		op->vfs.access.want &= ~ACCESS_CHANGE;
	op->vfs.attr = &r->attr.attr;
	err = nfs3_do(op, op->ops->access);
	if (err < 0)
		return err;
	r->attr.has = true;
	r->access = op->vfs.access.granted & op->vfs.access.want;
	return 0;
}

NFS3_STEP(fsstat)
{
	struct nfs3_fsstat_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);

	op->vfs.statfs = &r->st;
	return nfs3_do(op, op->ops->statfs);
}

NFS3_STEP(fsinfo)
{
	struct nfs3_fsinfo_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);

	r->rtmax = r->rtpref = op->nfs->rtmax;
	r->wtmax = r->wtpref = op->nfs->wtmax;
	r->dtpref = op->nfs->dtpref;
	op->vfs.limits = &r->limits;
	return nfs3_do(op, op->ops->limits);
}

NFS3_STEP(pathconf)
{
	struct nfs3_pathconf_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);

	op->vfs.limits = &r->limits;
	return nfs3_do(op, op->ops->limits);
}
