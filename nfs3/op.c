/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One call on one export: the caller, the file, the outcome.
 *
 * Ownership: an op counts the export and the node from begin to end; the
 * results hold copies only.  On a poller an op does not count the export,
 * because all pollers would write to one count; it is an RCU section instead.
 *
 * On a poller (call->may_block is false) nothing here or in a backend
 * waits: -EAGAIN comes up through every layer, and end turns it into
 * RPC_BLOCKS.  The call then runs again from the start on a worker.
 */
#include "nfs3/proc.h"

#include <errno.h>

#include "lib/rcu.h"

/* Finds the export; on a poller, without waiting. */
static int find_export(struct nfs3_op *op, uint32_t id)
{
	struct xprt *x = op->call->msg->xprt;
	const struct sockaddr *peer = rpc_call_peer(op->call);
	struct export_table *t = op->nfs->exports;
	int err;

	if (op->borrowed)
		return export_borrow(t, id, peer, x->any_port, &op->exp,
				     &op->opts);
	err = export_find(t, id, peer, x->any_port, &op->exp, &op->opts);
	if (err != -EAGAIN)
		return err;
	export_resolve(t, peer);
	return export_find(t, id, peer, x->any_port, &op->exp, &op->opts);
}

int nfs3_begin(struct nfs3_op *op, struct rpc_call *call, struct xdr_view fh)
{
	const struct rpc_cred *cred = &call->cred;
	struct vfs_handle handle;
	uint32_t id;
	int err;

	op->nfs = call->prog->ctx;
	op->call = call;
	op->exp = NULL;
	op->node = NULL;
	op->no_buffer = false;
	op->borrowed = !call->may_block;
	if (op->borrowed)
		rcu_enter();
	if (unlikely(call->sent_back))
		return -ETIMEDOUT;	/* JUKEBOX */

	err = export_fh_parse(op->nfs->exports, fh.data, fh.len, &id, &handle);
	if (err < 0)
		return err;
	err = find_export(op, id);
	if (err < 0) {
		op->exp = NULL;
		return err;
	}
	op->ops = op->exp->fs->ops;
	export_squash(&op->opts, cred->flavor == RPC_AUTH_NONE, cred->uid,
		      cred->gid, cred->gids, cred->ngids, &op->cred);
	op->ctx.cred = &op->cred;
	op->ctx.nonblock = !call->may_block;
	return op->ops->open_handle(&op->ctx, op->exp->fs, &handle, &op->node);
}

int nfs3_begin_change(struct nfs3_op *op, struct rpc_call *call,
		      struct xdr_view fh)
{
	int err = nfs3_begin(op, call, fh);

	if (err == 0 && !op->opts.rw)
		err = -EROFS;
	return err;
}

int nfs3_open_also(struct nfs3_op *op, struct xdr_view fh,
		   struct vfs_node **out)
{
	struct vfs_handle handle;
	uint32_t id;
	int err;

	err = export_fh_parse(op->nfs->exports, fh.data, fh.len, &id, &handle);
	if (err < 0)
		return err;
	if (id != op->exp->id)
		return -EXDEV;
	return op->ops->open_handle(&op->ctx, op->exp->fs, &handle, out);
}

bool nfs3_must_block(const struct nfs3_op *op, int err)
{
	return err == -EAGAIN && !op->call->may_block;
}

enum rpc_run nfs3_end(struct nfs3_op *op, int err, enum nfsstat3 *status)
{
	enum nfs3_procnum proc = op->call->procnum;

	vfs_node_put(op->node);
	if (op->borrowed)
		rcu_exit();
	else if (op->exp)
		export_put(op->exp);
	if (op->no_buffer)
		return RPC_NO_BUFFER;
	if (nfs3_must_block(op, err))
		return RPC_BLOCKS;
	*status = nfs3_status(proc, err);
	if (*status != NFS3_OK)
		nfs3_status_count(proc, *status);
	return RPC_DONE;
}

/*
 * An error from the incidental getattr leaves the attributes out: the reply
 * tells of the operation itself (section 2.5, post_op_attr).
 */
enum rpc_run nfs3_end_attr(struct nfs3_op *op, int err,
			   enum nfsstat3 *status, struct nfs3_attr *attr)
{
	if (op->node && !op->no_buffer && !nfs3_must_block(op, err)) {
		attr->fsid = op->exp->fs->fsid;
		if (!attr->has)
			attr->has = op->ops->getattr(&op->ctx, op->node,
						     &attr->attr) == 0;
	}
	return nfs3_end(op, err, status);
}

void nfs3_post_wcc(struct nfs3_op *op, struct vfs_node *node,
		   struct nfs3_wcc *wcc)
{
	if (!node)
		return;
	wcc->fsid = op->exp->fs->fsid;
	if (!wcc->wcc.has_after)
		wcc->wcc.has_after = op->ops->getattr(&op->ctx, node,
						      &wcc->wcc.after) == 0;
}

enum rpc_run nfs3_end_wcc(struct nfs3_op *op, int err, enum nfsstat3 *status,
			  struct nfs3_wcc *wcc)
{
	if (!nfs3_must_block(op, err))
		nfs3_post_wcc(op, op->node, wcc);
	return nfs3_end(op, err, status);
}

void nfs3_make_fh(struct nfs3_op *op, struct vfs_node *node,
		  struct export_fh *fh)
{
	struct vfs_handle handle;

	op->ops->handle(node, &handle);
	export_fh_make(op->nfs->exports, op->exp, &handle, fh);
}

/* Section 3.2 wants ACCES for an empty name, and for a name with characters
 * that this server can't store. */
int nfs3_check_name(struct xdr_view view, struct vfs_name *name)
{
	int err;

	name->s = (const char *)view.data;
	name->len = view.len;
	err = vfs_name_check(name->s, name->len);
	return err == -EINVAL ? -EACCES : err;
}

bool nfs3_is_dot(struct vfs_name name)
{
	return name.len == 1 && name.s[0] == '.';
}

bool nfs3_is_dotdot(struct vfs_name name)
{
	return name.len == 2 && name.s[0] == '.' && name.s[1] == '.';
}

static bool time_ok(const struct timespec *t)
{
	return t->tv_nsec < 1000000000;
}

bool nfs3_times_ok(const struct vfs_setattr *set)
{
	return (!(set->set & VFS_SET_ATIME) || time_ok(&set->atime)) &&
	       (!(set->set & VFS_SET_MTIME) || time_ok(&set->mtime));
}
