/* SPDX-License-Identifier: BSD-2-Clause */
/* NULL, GETATTR, SETATTR, ACCESS, FSSTAT, FSINFO, PATHCONF. */
#include "nfs3/proc.h"

#include <errno.h>

NFS3_PROC(null)
{
	return RPC_DONE;
}

NFS3_PROC(getattr)
{
	const struct nfs3_fh_args *a = args;
	struct nfs3_attr_res *r = res;
	struct nfs3_op op;
	int err;

	err = nfs3_begin(&op, call, a->fh);
	if (err == 0) {
		r->attr.fsid = op.exp->fs->fsid;
		err = op.ops->getattr(&op.ctx, op.node, &r->attr.attr);
	}
	return nfs3_end(&op, err, &r->status);
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

NFS3_PROC(setattr)
{
	const struct nfs3_setattr_args *a = args;
	struct nfs3_wcc_res *r = res;
	struct nfs3_op op;
	int err;

	err = nfs3_begin_change(&op, call, a->fh);
	if (err == 0)
		err = check_setattr(&a->attr);
	if (err == 0)
		err = op.ops->setattr(&op.ctx, op.node, &a->attr, &r->wcc.wcc);
	return nfs3_end_wcc(&op, err, &r->status, &r->wcc);
}

#define ACCESS_ALL	(VFS_ACCESS_READ | VFS_ACCESS_LOOKUP | \
			 VFS_ACCESS_MODIFY | VFS_ACCESS_EXTEND | \
			 VFS_ACCESS_DELETE | VFS_ACCESS_EXECUTE)
#define ACCESS_CHANGE	(VFS_ACCESS_MODIFY | VFS_ACCESS_EXTEND | \
			 VFS_ACCESS_DELETE)

NFS3_PROC(access)
{
	const struct nfs3_access_args *a = args;
	uint32_t want = a->access & ACCESS_ALL;
	struct nfs3_access_res *r = res;
	struct nfs3_op op;
	int err;

	err = nfs3_begin(&op, call, a->fh);
	if (err == 0) {
		if (!op.opts.rw)
			want &= ~ACCESS_CHANGE;
		err = op.ops->access(&op.ctx, op.node, want, &r->access,
				     &r->attr.attr);
		r->attr.has = err == 0;
		r->access &= want;
	}
	return nfs3_end_attr(&op, err, &r->status, &r->attr);
}

NFS3_PROC(fsstat)
{
	const struct nfs3_fh_args *a = args;
	struct nfs3_fsstat_res *r = res;
	struct nfs3_op op;
	int err;

	err = nfs3_begin(&op, call, a->fh);
	if (err == 0)
		err = op.ops->statfs(&op.ctx, op.node, &r->st);
	return nfs3_end_attr(&op, err, &r->status, &r->attr);
}

NFS3_PROC(fsinfo)
{
	const struct nfs3_fh_args *a = args;
	struct nfs3_fsinfo_res *r = res;
	struct nfs3_op op;
	int err;

	err = nfs3_begin(&op, call, a->fh);
	if (err == 0)
		err = op.ops->limits(&op.ctx, op.node, &r->limits);
	r->rtmax = op.nfs->rtmax;
	r->wtmax = op.nfs->wtmax;
	r->dtpref = op.nfs->dtpref;
	return nfs3_end_attr(&op, err, &r->status, &r->attr);
}

NFS3_PROC(pathconf)
{
	const struct nfs3_fh_args *a = args;
	struct nfs3_pathconf_res *r = res;
	struct nfs3_op op;
	int err;

	err = nfs3_begin(&op, call, a->fh);
	if (err == 0)
		err = op.ops->limits(&op.ctx, op.node, &r->limits);
	return nfs3_end_attr(&op, err, &r->status, &r->attr);
}
