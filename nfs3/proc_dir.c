/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LOOKUP, REMOVE, RMDIR, RENAME, LINK: names that exist.
 *
 * "."  and ".."  are answered here; backends never see them as the name of
 * something to change: sections 3.3.12 to 3.3.15 give the status; where they
 * don't, it is that of other servers.
 */
#include "nfs3/proc.h"

#include <errno.h>
#include <stdlib.h>

/* The directory itself, as a name in it: takes search permission. */
static int lookup_self(struct nfs3_op *op, struct nfs3_lookup_res *r)
{
	int err;

	op->vfs.access.want = VFS_ACCESS_LOOKUP;
	err = nfs3_do(op, op->ops->access);
	if (err < 0)
		return err;
	if (r->attr.attr.type != VFS_DIR)
		return -ENOTDIR;
	if (!(op->vfs.access.granted & VFS_ACCESS_LOOKUP))
		return -EACCES;
	r->dir_attr.attr = r->attr.attr;
	r->dir_attr.has = true;
	op->vfs.out = op->vfs.node;
	vfs_node_get(op->vfs.out);
	return 0;
}

/* Answers with @node of @in, whose rule for the client is @opts.  @in can be
 * another export than the call's, and can hang, while the worker is one of the
 * call's export.  So the reply goes without attributes that would have to be
 * waited for: the client asks for them. */
static int answer_from(struct nfs3_op *op, struct export_tree *in,
		       const struct export_opts *opts, struct vfs_node *node,
		       struct nfs3_lookup_res *r)
{
	struct vfs_op get = { .cred = &op->cred, .node = node,
			      .attr = &r->attr.attr, .nonblock = true };
	struct vfs_handle handle;
	int err = node->fs->ops->getattr(&get);

	if (err < 0 && err != -EAGAIN)
		return err;
	r->attr.has = err == 0;
	r->attr.fsid = opts->fsid;
	node->fs->ops->handle(node, &handle);
	export_fh_make(op->nfs->exports, in, opts, &handle, &r->fh);
	return 0;
}

/* The name leads to another file system: the answer is its root, unless clients
 * must not enter it.  Entering waits for it: -EAGAIN on a poller. */
static int enter_child(struct rpc_call *call, struct nfs3_lookup_res *r)
{
	const struct export_peer peer = nfs3_peer(call);
	struct nfs3_op *op = nfs3_op(call);
	struct vfs_handle dir;
	struct export_opts opts;
	struct vfs_node *root;
	struct export_tree *in;
	int err = -EAGAIN;

	if (call->may_wait) {
		op->ops->handle(op->vfs.node, &dir);
		err = export_enter(op->nfs->exports, op->exp,
				   op->opts.crossmnt, &op->child, &dir, &peer,
				   &in);
	}
	free(op->child.path);
	if (err == -EXDEV)
		return answer_from(op, op->exp, &op->opts, op->vfs.out, r);
	if (err < 0)
		return err;
	err = export_rule_for(op->nfs->exports, in, &peer, &opts);
	if (err == 0)
		err = in->fs->ops->root(in->fs, &root);
	else
		err = -EREMCHG;		/* it went meanwhile */
	if (err == 0) {
		err = answer_from(op, in, &opts, root, r);
		vfs_node_put(root);
	}
	export_put(in);
	return err;
}

/* ".." at the root of a file system below an export. */
static int look_above(struct rpc_call *call, struct nfs3_lookup_res *r)
{
	struct nfs3_op *op = nfs3_op(call);
	struct export_table *t = op->nfs->exports;
	struct vfs_handle dir;
	struct vfs_op open = { .cred = &op->cred, .open.handle = &dir };
	const struct export_peer peer = nfs3_peer(call);
	struct export_opts opts;
	struct export_tree *in;
	uint32_t id;
	int err;

	if (!call->may_wait)
		return -EAGAIN;
	err = export_above(t, op->exp, &id, &dir);
	if (err == 0)
		err = export_reach(t, id, &peer, &in, &opts);
	if (err < 0)
		return err == -EAGAIN || err == -ETIMEDOUT ? -ETIMEDOUT :
							     -ESTALE;
	open.open.fs = in->fs;
	err = in->fs->ops->open_handle(&open);
	if (err == 0) {
		err = answer_from(op, in, &opts, open.out, r);
		vfs_node_put(open.out);
	}
	export_put(in);
	return err;
}

/* Asks the backend.  -EREMCHG: another mount is there by now. */
static int look_up_name(struct rpc_call *call, struct nfs3_lookup_res *r)
{
	struct nfs3_op *op = nfs3_op(call);
	int err;

	op->vfs.lookup.dir_attr = &r->dir_attr.attr;
	op->vfs.lookup.child = &op->child;
	if (!nfs3_has_ended(op)) {
		op->vfs.lookup.has_dir_attr = false;
		op->child = (struct vfs_child){
			.below = !op->opts.crossmnt,
		};
	}
	err = nfs3_do(op, op->ops->lookup);
	if (err == VFS_PENDING)
		return err;
	r->dir_attr.has = op->vfs.lookup.has_dir_attr;
	if (err < 0 || !op->child.path)
		return err;
	err = enter_child(call, r);
	vfs_node_put(op->vfs.out);
	op->vfs.out = NULL;
	return err;
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
	if (nfs3_is_dotdot(op->vfs.name) && op->exp->id != op->exp->top &&
	    nfs3_is_root(op))
		return look_above(call, r);
	if (nfs3_is_dot(op->vfs.name)) {
		err = lookup_self(op, r);
	} else {
		err = look_up_name(call, r);
		if (err == -EREMCHG)
			err = look_up_name(call, r);
	}
	if (err < 0)
		return err == -EREMCHG ? -ETIMEDOUT : err;
	if (!op->vfs.out)		/* answered already */
		return 0;
	r->attr.has = true;
	r->attr.fsid = op->opts.fsid;
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
	op->vfs.to.dir = op->other;
	op->vfs.to.name = to_name;
	op->vfs.to.wcc = &r->to_wcc.wcc;
	return nfs3_do(op, op->ops->rename);
}

int nfs3_end_rename(struct rpc_call *call, int err)
{
	struct nfs3_rename_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);

	nfs3_tell_audit(call, err);
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
	op->vfs.to.dir = op->other;
	op->vfs.to.name = name;
	op->vfs.to.wcc = &r->dir_wcc.wcc;
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

	nfs3_tell_audit(call, err);
	nfs3_post_wcc(call, op->other, &r->dir_wcc);
	vfs_node_put(op->other);
	return nfs3_end_attr(call, err);
}
