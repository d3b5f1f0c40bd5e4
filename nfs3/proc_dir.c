/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LOOKUP, REMOVE, RMDIR, RENAME, LINK: names that exist.
 *
 * "." and ".." are answered here, so that backends never see them as the name
 * of something to change: sections 3.3.12 to 3.3.15 give the status; where they
 * don't, it is that of other servers.
 */
#include "nfs3/proc.h"

#include <errno.h>

/* The directory itself, as a name in it: takes search permission. */
static int lookup_self(struct nfs3_op *op, struct nfs3_lookup_res *r)
{
	int err;

	op->vfs.want = VFS_ACCESS_LOOKUP;
	err = nfs3_do(op, op->ops->access);
	if (err < 0)
		return err;
	if (r->attr.attr.type != VFS_DIR)
		return -ENOTDIR;
	if (!(op->vfs.granted & VFS_ACCESS_LOOKUP))
		return -EACCES;
	r->dir_attr.attr = r->attr.attr;
	r->dir_attr.has = true;
	op->vfs.out = op->vfs.node;
	vfs_node_get(op->vfs.out);
	return 0;
}

NFS3_STEP(lookup)
{
	const struct nfs3_dirop_args *a = rpc_args(call);
	struct nfs3_lookup_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);
	int err;

	err = nfs3_check_name(a->name, &op->vfs.name);
	if (err < 0)
		return err;
	op->vfs.attr = &r->attr.attr;
	if (nfs3_is_dot(op->vfs.name)) {
		err = lookup_self(op, r);
	} else {
		op->vfs.dir_attr = &r->dir_attr.attr;
		op->vfs.has_dir_attr = false;
		err = nfs3_do(op, op->ops->lookup);
		if (err != VFS_PENDING)
			r->dir_attr.has = op->vfs.has_dir_attr;
	}
	if (err < 0)
		return err;
	r->attr.has = true;
	r->attr.fsid = op->exp->fs->fsid;
	nfs3_make_fh(op, op->vfs.out, &r->fh);
	vfs_node_put(op->vfs.out);
	return 0;
}

static int remove_entry(struct rpc_call *call, bool is_dir)
{
	const struct nfs3_dirop_args *a = rpc_args(call);
	struct nfs3_wcc_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);
	struct vfs_name *name = &op->vfs.name;
	int err;

	err = nfs3_check_name(a->name, name);
	if (err < 0)
		return err;
	if (nfs3_is_dot(*name))
		return is_dir ? -EINVAL : -EACCES;
	if (nfs3_is_dotdot(*name))
		return is_dir ? -EEXIST : -EACCES;
	op->vfs.is_dir = is_dir;
	op->vfs.wcc = &r->wcc.wcc;
	return nfs3_do(op, op->ops->remove);
}

NFS3_STEP(remove)
{
	return remove_entry(call, false);
}

NFS3_STEP(rmdir)
{
	return remove_entry(call, true);
}

NFS3_STEP(rename)
{
	const struct nfs3_rename_args *a = rpc_args(call);
	struct nfs3_rename_res *r = rpc_res(call);
	struct vfs_name from_name, to_name;
	struct nfs3_op *op = nfs3_op(call);
	int err;

	err = nfs3_open_other(op, a->to.fh);
	if (err == 0)
		err = nfs3_check_name(a->from.name, &from_name);
	if (err == 0)
		err = nfs3_check_name(a->to.name, &to_name);
	if (err < 0)
		return err;
	if (nfs3_is_dot(from_name) || nfs3_is_dotdot(from_name) ||
	    nfs3_is_dot(to_name) || nfs3_is_dotdot(to_name))
		return -EINVAL;
	op->vfs.name = from_name;
	op->vfs.wcc = &r->from_wcc.wcc;
	op->vfs.to = op->other;
	op->vfs.to_name = to_name;
	op->vfs.to_wcc = &r->to_wcc.wcc;
	return nfs3_do(op, op->ops->rename);
}

int nfs3_end_rename(struct rpc_call *call, int err)
{
	struct nfs3_rename_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);

	nfs3_post_wcc(call, op->other, &r->to_wcc);
	vfs_node_put(op->other);
	return nfs3_end_wcc(call, err);
}

NFS3_STEP(link)
{
	const struct nfs3_link_args *a = rpc_args(call);
	struct nfs3_link_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);
	struct vfs_name name;
	int err;

	err = nfs3_open_other(op, a->link.fh);
	if (err == 0)
		err = nfs3_check_name(a->link.name, &name);
	if (err < 0)
		return err;
	if (nfs3_is_dot(name) || nfs3_is_dotdot(name))
		return -EEXIST;
	op->vfs.attr = &r->attr.attr;
	op->vfs.to = op->other;
	op->vfs.to_name = name;
	op->vfs.to_wcc = &r->dir_wcc.wcc;
	err = nfs3_do(op, op->ops->link);
	if (err < 0)
		return err;
	r->attr.has = true;
	return 0;
}

int nfs3_end_link(struct rpc_call *call, int err)
{
	struct nfs3_link_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);

	nfs3_post_wcc(call, op->other, &r->dir_wcc);
	vfs_node_put(op->other);
	return nfs3_end_attr(call, err);
}
