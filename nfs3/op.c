/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One call on one export: the caller, the file, the outcome.
 *
 * Ownership: an op counts the export, the caller's groups and the node from
 * the steps that find them to the end; the results hold copies only.  On a
 * poller an op does not count the export and the groups, because all pollers
 * would write to one count; it is an RCU section instead.  A call that leaves
 * the poller counts them, and takes all it has found with it.
 *
 * On a poller (call->may_wait is false) nothing here or in a backend waits:
 * -EAGAIN comes up through every layer, and a worker goes on with the step that
 * it comes from.
 */
#include "nfs3/proc.h"

#include <errno.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/rcu.h"
#include "rpc/limit.h"
#include "rpc/share.h"

/* One of so many calls of a thread has the operations of its backend timed. */
#define SAMPLE	64u

static _Thread_local unsigned calls_begun;

/*
 * Finds the export; on a poller, without waiting.  A worker comes here only to
 * ask the name service for the caller, or to open the export, in the share for
 * that; then the call goes on in its export's.
 */
static int find_export(struct rpc_call *call, struct nfs3_op *op)
{
	struct export_table *t = op->nfs->exports;
	struct export_peer peer = nfs3_peer(call);
	const struct rpc_cred *cred = &call->cred;
	const struct export_claim who = {
		.none = cred->flavor == RPC_AUTH_NONE, .uid = cred->uid,
		.gid = cred->gid, .ngids = cred->ngids, .gids = cred->gids,
	};
	const struct rpc_share *share;
	struct export_tree *exp;
	int err;

	/* A client that mounts might lack the credentials for its user's flavor
	 * (RFC 2623 section 2.3.2). */
	if (call->prog->prog == NFS3_PROGRAM &&
	    (call->procnum == NFSPROC3_GETATTR ||
	     call->procnum == NFSPROC3_FSINFO))
		peer.need = EXPORT_MOUNTS;
	op->borrowed = !call->may_wait;
	if (op->borrowed) {
		rcu_enter();
		err = export_borrow(t, op->id, &peer, &exp, &op->opts);
		if (err == 0)
			err = export_caller(t, &op->opts, &who, &op->cred);
	} else {
		err = export_reach(t, op->id, &peer, &exp, &op->opts);
		if (err == 0) {
			err = export_caller_counted(t, &op->opts, &who, true,
						    &op->cred);
			if (err < 0)
				export_put(exp);
		}
	}
	if (err == 0) {
		op->exp = exp;
		share = exp->user;
		call->by_export = share ? share->account : NULL;
	}
	return err == -EKEYREJECTED ? RPC_TOO_WEAK : err;
}

/* True if the backend has forgotten the operation. */
static bool cancel(struct rpc_call *call)
{
	struct nfs3_op *op = nfs3_op(call);

	return op->ops->cancel(&op->vfs);
}

static bool give(struct vfs_op *vfs)
{
	struct nfs3_op *op = container_of(vfs, struct nfs3_op, vfs);
	struct rpc_call *call = rpc_state_call(op);

	return rpc_call_suspend(call, op->ops->name,
				op->ops->cancel ? cancel : NULL,
				rpc_this_step(call));
}

static void ended(struct vfs_op *vfs, int result)
{
	struct nfs3_op *op = container_of(vfs, struct nfs3_op, vfs);

	op->odd |= NFS3_ENDED;
	op->result = result;
	rpc_call_resume(rpc_state_call(op));
}

static void count_operation(const struct nfs3_op *op, int n, uint64_t ns)
{
	const struct account_event e = {
		.ns = ns, .bucket = histogram_bucket(ns), .failed = n < 0,
	};
	const struct rpc_share *share = op->exp ? op->exp->user : NULL;

	/* A worker does again an operation that would have waited. */
	if (share && share->backend && !(n == -EAGAIN && op->vfs.nonblock))
		account_add(share->backend, e);
}

/* An operation that ends later is a wait, and no time of the backend. */
static int do_timed(struct nfs3_op *op, vfs_op_fn *fn)
{
	struct rpc_call *call = rpc_state_call(op);
	uint64_t before = clock_ns(), ns;
	int n;

	PROBE(backend_begin, call->msg, fn);
	n = fn(&op->vfs);
	PROBE(backend_end, n);
	if (n == VFS_PENDING)
		return n;
	ns = clock_ns() - before;
	if (call->timed)
		rpc_call_took(call, ns);
	if (op->odd & NFS3_SAMPLED)
		count_operation(op, n, ns);
	return n;
}

int nfs3_do_oddly(struct nfs3_op *op, vfs_op_fn *fn)
{
	if (!(op->odd & NFS3_ENDED))
		return do_timed(op, fn);
	op->odd &= (uint8_t)~NFS3_ENDED;
	return op->result;
}

static const struct vfs_later later = { .give = give, .end = ended };

/* Clients of the server whose place this one took have its handles. */
static void log_foreign(struct rpc_call *call)
{
	if (export_refusal_is_new(nfs3_op(call)->nfs->exports,
				  rpc_call_peer(call), "a handle"))
		log_limited(LOG_LEVEL_WARN, "%s refused: another server made "
			    "its filehandle, or one with another key; unmount "
			    "it there and mount it again",
			    call->msg->xprt->name);
}

int nfs3_find_export(struct rpc_call *call)
{
	const struct nfs3_fh_args *a = rpc_args(call); /* the first of all */
	struct nfs3_op *op = nfs3_op(call);
	int err;

	if (likely(!op->nfs)) {
		op->nfs = call->prog->ctx;
		if (unlikely(call->timed))
			op->odd = NFS3_TIMED;
		if (unlikely(calls_begun++ % SAMPLE == 0))
			op->odd |= NFS3_SAMPLED;
		err = export_fh_parse(op->nfs->exports, a->fh.data, a->fh.len,
				      &op->id, &op->handle);
		if (err == -EBADMSG)
			log_foreign(call);
		if (err < 0)
			return err;
	}
	err = find_export(call, op);
	if (err < 0)
		return err;
	op->ops = op->exp->fs->ops;
	op->vfs.cred = &op->cred;
	op->vfs.nonblock = !call->may_wait;
	op->vfs.later = &later;
	return call->may_wait ? rpc_call_move(call, NULL) : 0;
}

/* Opens the node of op->handle; inlined as nfs3_do() is. */
__attribute__((always_inline))
static inline int open_node(struct nfs3_op *op, struct vfs_node **out)
{
	int err;

	op->vfs.open.fs = op->exp->fs;
	op->vfs.open.handle = &op->handle;
	err = nfs3_do(op, op->exp->fs->ops->open_handle);
	if (err == 0)
		*out = op->vfs.out;
	return err;
}

/* Looks up the limits of now: a call that waited can run again because they
 * changed. */
static void look_up_limits(struct rpc_call *call, struct nfs3_op *op)
{
	struct export_opts now = { .limited = false };
	struct export_peer peer = nfs3_peer(call);
	struct export_tree *exp;
	int err;

	/* A caller that mounts has them as well. */
	peer.need = EXPORT_LOCKS;
	err = export_find(op->nfs->exports, op->id, &peer, &exp, &now);

	if (err == 0)
		export_put(exp);
	if (err == -EAGAIN)
		return;
	op->opts.limited = now.limited;
	op->opts.max = now.max;
	op->opts.client_max = now.client_max;
}

/* The most data that the call moves. */
static uint64_t most_bytes(struct rpc_call *call)
{
	const struct nfs3_op *op = nfs3_op(call);
	const struct nfs3_read_args *r = rpc_args(call);
	const struct nfs3_write_args *w = rpc_args(call);

	if (call->prog->prog != NFS3_PROGRAM)
		return 0;
	switch (call->procnum) {
	case NFSPROC3_READ:
		return MIN(r->count, op->nfs->rtmax);
	case NFSPROC3_WRITE:
		return MIN(w->len, op->nfs->wtmax);
	default:
		return 0;
	}
}

/* As rpc_call_limit(). */
static int keep_to_limits(struct rpc_call *call, struct nfs3_op *op)
{
	const struct rpc_share *share;

	if (rpc_call_has_passed(call))
		return 0;
	if (call->may_wait)
		look_up_limits(call, op);
	share = op->exp->user;
	if (!op->opts.limited || !share || !share->limit)
		return 0;
	return rpc_call_limit(call, share->limit, &op->opts.max,
			      &op->opts.client_max, most_bytes(call));
}

/* Compare handles: a backend can have two nodes of the root, but one handle. */
bool nfs3_is_root(const struct nfs3_op *op)
{
	struct vfs_handle a, b;
	struct vfs_node *root;

	if (op->exp->fs->ops->root(op->exp->fs, &root) < 0)
		return false;
	root->fs->ops->handle(root, &a);
	op->vfs.node->fs->ops->handle(op->vfs.node, &b);
	vfs_node_put(root);
	return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

int nfs3_find_node(struct rpc_call *call)
{
	struct nfs3_op *op = nfs3_op(call);
	int err;

	if (unlikely(op->opts.limited)) {
		err = keep_to_limits(call, op);
		if (err)
			return err;
	}
	err = open_node(op, &op->vfs.node);
	if (err < 0)
		return err;
	op->ops = op->vfs.node->fs->ops;
	if (unlikely(op->opts.is_weak) && !nfs3_is_root(op))
		return RPC_TOO_WEAK;
	return 0;
}

int nfs3_check_rw(struct rpc_call *call)
{
	return nfs3_op(call)->opts.rw ? 0 : -EROFS;
}

/*
 * A call goes on in the share of its export, which it counts, and so the share.
 * Calls that query a name service have a separate share: a service that does
 * not answer must not stop other calls.
 */
struct work_class *nfs3_leave(struct rpc_call *call)
{
	struct nfs3_op *op = nfs3_op(call);

	if (op->borrowed) {
		if (op->exp) {
			ref_get(&op->exp->ref);
			export_caller_hold(&op->cred);
		}
		op->borrowed = false;
		rcu_exit();
	}
	op->vfs.nonblock = false;
	return op->exp ? rpc_share_class(op->exp->user) : op->nfs->names;
}

int nfs3_open_other(struct nfs3_op *op, struct xdr_view fh)
{
	uint32_t id;
	int err;

	if (op->other)
		return 0;
	err = export_fh_parse(op->nfs->exports, fh.data, fh.len, &id,
			      &op->handle);
	if (err < 0)
		return err;
	if (!export_same_id(op->nfs->exports, id, op->id))
		return -EXDEV;
	err = open_node(op, &op->other);
	return err == 0 && op->other->fs != op->vfs.node->fs ? -EXDEV : err;
}

int nfs3_end(struct rpc_call *call, int err)
{
	const struct nfs3 *nfs = call->prog->ctx;
	enum nfsstat3 *status = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);

	nfs3_tell_audit(call, err);
	vfs_node_put(op->vfs.node);
	if (op->borrowed) {
		rcu_exit();
	} else if (op->exp) {
		export_caller_put(&op->cred);
		export_put(op->exp);
	}
	*status = NFS3_OK;
	if (unlikely(err)) {
		*status = nfs3_status(nfs->first_status + call->procnum, err);
		nfs3_status_count(*status);
		call->failed = true;
	}
	return 0;
}

/* Gets attributes that are incidental: without them the reply still tells of
 * the operation itself (section 2.5, post_op_attr). */
static bool get_attr(struct rpc_call *call, struct vfs_node *node,
		     struct vfs_attr *attr)
{
	struct nfs3_op *op = nfs3_op(call);
	/* A call that is sent back was on its way to a worker. */
	struct vfs_op get = { .cred = &op->cred, .node = node, .attr = attr,
			      .nonblock = !call->may_wait };

	return node->fs->ops->getattr(&get) == 0;
}

int nfs3_end_attr(struct rpc_call *call, int err)
{
	struct nfs3_attr_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);

	if (op->vfs.node) {
		r->attr.fsid = op->opts.fsid;
		if (!r->attr.has)
			r->attr.has = get_attr(call, op->vfs.node,
					       &r->attr.attr);
	}
	return nfs3_end(call, err);
}

void nfs3_post_wcc(struct rpc_call *call, struct vfs_node *node,
		   struct nfs3_wcc *wcc)
{
	if (!node)
		return;
	wcc->fsid = nfs3_op(call)->opts.fsid;
	if (!wcc->wcc.has_after)
		wcc->wcc.has_after = get_attr(call, node, &wcc->wcc.after);
}

int nfs3_end_wcc(struct rpc_call *call, int err)
{
	struct nfs3_wcc_res *r = rpc_res(call);

	nfs3_post_wcc(call, nfs3_op(call)->vfs.node, &r->wcc);
	return nfs3_end(call, err);
}

void nfs3_make_fh(struct nfs3_op *op, struct vfs_node *node,
		  struct nfs3_fh *fh)
{
	struct vfs_handle handle;

	node->fs->ops->handle(node, &handle);
	export_fh_make(op->nfs->exports, op->exp, &op->opts, &handle, fh);
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
