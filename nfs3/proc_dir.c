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

static int do_lookup(struct nfs3_op *op, struct xdr_view view,
		     struct nfs3_lookup_res *r)
{
	struct vfs_node *found;
	struct vfs_name name;
	int err;

	err = nfs3_check_name(view, &name);
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

NFS3_PROC(lookup)
{
	const struct nfs3_dirop_args *a = args;
	struct nfs3_lookup_res *r = res;
	struct nfs3_op op;
	int err;

	err = nfs3_begin(&op, call, a->fh);
	if (err == 0)
		err = do_lookup(&op, a->name, r);
	return nfs3_end_attr(&op, err, &r->status, &r->dir_attr);
}

static enum rpc_run remove_entry(struct rpc_call *call, const void *args,
				 void *res, bool is_dir)
{
	const struct nfs3_dirop_args *a = args;
	struct nfs3_wcc_res *r = res;
	struct vfs_name name;
	struct nfs3_op op;
	int err;

	err = nfs3_begin_change(&op, call, a->fh);
	if (err == 0)
		err = nfs3_check_name(a->name, &name);
	if (err == 0 && nfs3_is_dot(name))
		err = is_dir ? -EINVAL : -EACCES;
	else if (err == 0 && nfs3_is_dotdot(name))
		err = is_dir ? -EEXIST : -EACCES;
	if (err == 0)
		err = op.ops->remove(&op.ctx, op.node, name, is_dir,
				     &r->wcc.wcc);
	return nfs3_end_wcc(&op, err, &r->status, &r->wcc);
}

NFS3_PROC(remove)
{
	return remove_entry(call, args, res, false);
}

NFS3_PROC(rmdir)
{
	return remove_entry(call, args, res, true);
}

static int do_rename(struct nfs3_op *op, const struct nfs3_rename_args *a,
		     struct vfs_node *to, struct nfs3_rename_res *r)
{
	struct vfs_name from_name, to_name;
	int err;

	err = nfs3_check_name(a->from.name, &from_name);
	if (err == 0)
		err = nfs3_check_name(a->to.name, &to_name);
	if (err < 0)
		return err;
	if (nfs3_is_dot(from_name) || nfs3_is_dotdot(from_name) ||
	    nfs3_is_dot(to_name) || nfs3_is_dotdot(to_name))
		return -EINVAL;
	return op->ops->rename(&op->ctx, op->node, from_name, to, to_name,
			       &r->from_wcc.wcc, &r->to_wcc.wcc);
}

NFS3_PROC(rename)
{
	const struct nfs3_rename_args *a = args;
	struct nfs3_rename_res *r = res;
	struct vfs_node *to = NULL;
	struct nfs3_op op;
	int err;

	err = nfs3_begin_change(&op, call, a->from.fh);
	if (err == 0)
		err = nfs3_open_also(&op, a->to.fh, &to);
	if (err == 0)
		err = do_rename(&op, a, to, r);
	nfs3_post_wcc(&op, to, &r->to_wcc);
	vfs_node_put(to);
	return nfs3_end_wcc(&op, err, &r->status, &r->from_wcc);
}

static int do_link(struct nfs3_op *op, struct xdr_view view,
		   struct vfs_node *dir, struct nfs3_link_res *r)
{
	struct vfs_name name;
	int err;

	err = nfs3_check_name(view, &name);
	if (err < 0)
		return err;
	if (nfs3_is_dot(name) || nfs3_is_dotdot(name))
		return -EEXIST;
	err = op->ops->link(&op->ctx, op->node, dir, name, &r->attr.attr,
			    &r->dir_wcc.wcc);
	r->attr.has = err == 0;
	return err;
}

NFS3_PROC(link)
{
	const struct nfs3_link_args *a = args;
	struct nfs3_link_res *r = res;
	struct vfs_node *dir = NULL;
	struct nfs3_op op;
	int err;

	err = nfs3_begin_change(&op, call, a->fh);
	if (err == 0)
		err = nfs3_open_also(&op, a->link.fh, &dir);
	if (err == 0)
		err = do_link(&op, a->link.name, dir, r);
	nfs3_post_wcc(&op, dir, &r->dir_wcc);
	vfs_node_put(dir);
	return nfs3_end_attr(&op, err, &r->status, &r->attr);
}
