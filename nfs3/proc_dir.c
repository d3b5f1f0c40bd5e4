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
static int lookup_self(struct nfs3_op *op, struct nfs3_lookup_res *r,
		       struct vfs_node **out)
{
	uint32_t granted = 0;
	int err;

	err = op->ops->access(&op->ctx, op->node, VFS_ACCESS_LOOKUP, &granted,
			      &r->attr.attr);
	if (err < 0)
		return err;
	if (r->attr.attr.type != VFS_DIR)
		return -ENOTDIR;
	if (!(granted & VFS_ACCESS_LOOKUP))
		return -EACCES;
	r->dir_attr.attr = r->attr.attr;
	r->dir_attr.has = true;
	vfs_node_get(op->node);
	*out = op->node;
	return 0;
}

NFS3_STEP(lookup)
{
	const struct nfs3_dirop_args *a = rpc_args(call);
	struct nfs3_lookup_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);
	struct vfs_node *found;
	struct vfs_name name;
	int err;

	err = nfs3_check_name(a->name, &name);
	if (err < 0)
		return err;
	if (nfs3_is_dot(name))
		err = lookup_self(op, r, &found);
	else
		err = op->ops->lookup(&op->ctx, op->node, name, &found,
				      &r->attr.attr, &r->dir_attr.attr,
				      &r->dir_attr.has);
	if (err < 0)
		return err;
	r->attr.has = true;
	r->attr.fsid = op->exp->fs->fsid;
	nfs3_make_fh(op, found, &r->fh);
	vfs_node_put(found);
	return 0;
}

static int remove_entry(struct rpc_call *call, bool is_dir)
{
	const struct nfs3_dirop_args *a = rpc_args(call);
	struct nfs3_wcc_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);
	struct vfs_name name;
	int err;

	err = nfs3_check_name(a->name, &name);
	if (err < 0)
		return err;
	if (nfs3_is_dot(name))
		return is_dir ? -EINVAL : -EACCES;
	if (nfs3_is_dotdot(name))
		return is_dir ? -EEXIST : -EACCES;
	return op->ops->remove(&op->ctx, op->node, name, is_dir, &r->wcc.wcc);
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
	return op->ops->rename(&op->ctx, op->node, from_name, op->other,
			       to_name, &r->from_wcc.wcc, &r->to_wcc.wcc);
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
	err = op->ops->link(&op->ctx, op->node, op->other, name,
			    &r->attr.attr, &r->dir_wcc.wcc);
	r->attr.has = err == 0;
	return err;
}

int nfs3_end_link(struct rpc_call *call, int err)
{
	struct nfs3_link_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);

	nfs3_post_wcc(call, op->other, &r->dir_wcc);
	vfs_node_put(op->other);
	return nfs3_end_attr(call, err);
}
