/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * op - the steps that procedures begin with, and their ends.
 *
 * A call begins on its poller, which finds the export; all the rest is on a
 * worker of that export, since the backend and the file's turn can make it
 * wait.
 */
#include "nlm/proc.h"

#include <errno.h>

#include "lib/clock.h"
#include "lib/stats.h"
#include "rpc/share.h"

STAT(nlm_grace_refused, "lock requests refused in the grace period, and "
     "reclaims refused after it");
STAT(nlm_reclaim_late, "reclaims left unanswered because they can't be granted "
     "yet");
STAT(nlm_asking_full, "lock requests put off because too many wait for the "
     "status monitor");
STAT(nlm_unmonitored, "locks refused because the status monitor did not accept "
     "the host");

struct work_class *nlm_leave(struct rpc_call *call)
{
	const struct nlm *nlm = call->prog->ctx;
	const struct nlm_op *op = nlm_op(call);

	/* Of other procedures the state is not set. */
	if (!call->proc->state_zeroed)
		return NULL;
	return op->exp ? rpc_share_class(op->exp->user) : nlm->config.names;
}

int nlm_find_export(struct rpc_call *call)
{
	const struct nlm_args *a = rpc_args(call);
	struct nlm_op *op = nlm_op(call);
	struct nlm *nlm = call->prog->ctx;
	struct export_table *t = nlm->config.exports;
	const struct rpc_cred *cred = &call->cred;
	const struct export_peer peer = {
		.addr = rpc_call_peer(call), .flavor = cred->flavor,
		.any_port = call->msg->xprt->any_port,
		.protection = RPC_MTLS,
		.need = EXPORT_LOCKS,
	};
	const struct export_claim who = {
		.none = cred->flavor == RPC_AUTH_NONE, .uid = cred->uid,
		.gid = cred->gid, .ngids = cred->ngids, .gids = cred->gids,
	};
	struct export_opts opts;
	struct export_tree *exp;
	int err;

	op->nlm = nlm;
	err = export_fh_parse(t, a->fh.data, a->fh.len, &op->id, &op->handle);
	if (err < 0)
		return err;
	/* A worker that has to wait for it is of the share for that. */
	err = (call->may_wait ? export_reach : export_find)(t, op->id, &peer,
			&exp, &opts);
	if (err < 0)
		return err;
	/* To give back takes no rights, so the name service isn't asked. */
	if (call->proc->flags & RPC_PROC_GIVES_BACK)
		opts.manage_gids = false;
	err = export_caller_counted(t, &opts, &who, call->may_wait,
				    &op->cred);
	/* That matters only where rights are checked. */
	op->unsure = err == -ETIMEDOUT;
	if (err < 0 && !op->unsure) {
		export_put(exp);
		return err;
	}
	op->exp = exp;
	/* A client that writes with Kerberos locks with AUTH_SYS. */
	op->rw = opts.rw || opts.sec.writes;
	op->auth_nlm = opts.auth_nlm;
	return call->may_wait ? rpc_call_move(call, NULL) : 0;
}

/* The end of @n grace periods in @exp, or in no export.  They begin when the
 * export appears: no client could reclaim in it before. */
static uint64_t end_of_graces(const struct nlm *nlm,
			      const struct export_tree *exp, unsigned n)
{
	return (exp && exp->late_ms ? exp->late_ms : nlm->started) +
	       n * (nlm->config.grace_s * 1000ull);
}

static bool is_in_grace(const struct nlm_op *op)
{
	uint64_t now = clock_ms();

	return now < end_of_graces(op->nlm, op->exp, 1) ||
	       now < atomic_load(&op->nlm->grace_until);
}

/*
 * True: a reclaim that can't be granted yet is to have no answer, since the
 * client would take it for the loss of the lock.  It sends the call again; and
 * Linux reclaims one lock after the other, so the grace period of all exports
 * goes on.
 */
static bool put_off(struct nlm *nlm, const struct export_tree *exp)
{
	uint64_t now = clock_ms(), end = end_of_graces(nlm, exp, NLM_PATIENCE);
	uint64_t until = MIN(now + nlm->config.grace_s * 1000ull, end);
	uint64_t old = atomic_load(&nlm->grace_until);

	if (now >= end)
		return false;
	stat_inc(nlm_reclaim_late);
	/* A grace period that is over does not begin again: other clients can
	 * have taken locks since. */
	while (old > now && old < until &&
	       !atomic_compare_exchange_weak(&nlm->grace_until, &old, until))
		;
	return true;
}

int nlm_check_grace(struct rpc_call *call)
{
	const struct nlm_args *a = rpc_args(call);

	if (is_in_grace(nlm_op(call)) == a->reclaim)
		return 0;
	stat_inc(nlm_grace_refused);
	return a->reclaim ? -ETIME : -ETIMEDOUT;
}

/* ---- monitoring */

/* The log has the name. */
static bool valid_name(struct xdr_view name)
{
	for (uint32_t i = 0; i < name.len; i++)
		if (name.data[i] < ' ' || name.data[i] == 0x7f)
			return false;
	return name.len > 0 && name.len <= NLM_NAME_MAX;
}

/*
 * Counts the call's host, which the sweep must not forget before the call has
 * ended: a file system can take longer to answer than an idle host is kept.
 * The call is counted before the status monitor is asked.  Otherwise another
 * call of the same host could end, and the host leave the list, between the
 * monitor's answer and this call's lock.
 */
int nlm_keep_host(struct rpc_call *call)
{
	const struct nlm_args *a = rpc_args(call);
	const struct nlm_who who = nlm_who_of(call);
	struct nlm_op *op = nlm_op(call);
	struct nlm *nlm = op->nlm;

	/* nlm_find_file() refuses a bad name. */
	if (op->host || !valid_name(a->name))
		return 0;
	mutex_lock(&nlm->lock);
	op->host = nlm_host_get(&nlm->table, &who);
	if (op->host) {
		op->host->locking++;
		/* The thread sleeps until the first file or host. */
		if (nlm->table.hosts == 1 && nlm->table.files == 0)
			pthread_cond_signal(&nlm->wake);
	}
	mutex_unlock(&nlm->lock);
	return op->host ? 0 : -ENOLCK;
}

static void let_host_go(struct nlm_op *op)
{
	if (!op->host)
		return;
	mutex_lock(&op->nlm->lock);
	op->host->locking--;
	mutex_unlock(&op->nlm->lock);
}

bool nlm_was_ended(struct rpc_call *call, const struct nlm_host *host)
{
	const struct nlm_args *a = rpc_args(call);

	return rpc_call_started(call) <= host->restart_ns &&
	       (!host->restart_state || a->state != host->restart_state);
}

bool nlm_is_outlived(struct rpc_call *call, const struct nlm_host *host)
{
	const struct nlm_args *a = rpc_args(call);
	const struct nlm *nlm = nlm_op(call)->nlm;

	return nlm_table_is_outlived(&nlm->table, host, rpc_call_started(call),
				     a->state) || nlm_was_ended(call, host);
}

static bool is_monitored(const struct nlm_op *op)
{
	bool is;

	mutex_lock(&op->nlm->lock);
	is = op->host->monitored;
	mutex_unlock(&op->nlm->lock);
	return is;
}

static void note_monitored(const struct nlm_op *op)
{
	mutex_lock(&op->nlm->lock);
	nlm_host_monitored(&op->nlm->table, op->host);
	op->host->used_ms = clock_ms();
	mutex_unlock(&op->nlm->lock);
}

/* False: too many calls wait for the status monitor. */
static bool begin_asking(struct nlm *nlm)
{
	if (atomic_fetch_add(&nlm->asking, 1) < nlm->config.max_asking)
		return true;
	atomic_fetch_sub(&nlm->asking, 1);
	stat_inc(nlm_asking_full);
	return false;
}

/*
 * Before the status monitor has the call: it can answer at once.
 *
 * A datagram that is given up is sent again, and waits from the start: so a
 * monitor that is slow would never answer it in time.  But the source of a
 * datagram can be forged.  So only datagrams that came first, up to a quarter
 * of the calls at the monitor, keep their places when others need them.
 */
static void list_asking(struct rpc_call *call)
{
	struct nlm_op *op = nlm_op(call);
	struct nlm *nlm = op->nlm;

	mutex_lock(&nlm->await_lock);
	cds_list_add_tail(&op->awaiting, &nlm->asks);
	op->keeps = call->msg->xprt->datagram &&
		    nlm->kept < nlm->config.max_asking / 4;
	nlm->kept += op->keeps;
	mutex_unlock(&nlm->await_lock);
}

static void end_asking(struct rpc_call *call)
{
	struct nlm_op *op = nlm_op(call);

	mutex_lock(&op->nlm->await_lock);
	cds_list_del(&op->awaiting);
	op->nlm->kept -= op->keeps;
	mutex_unlock(&op->nlm->await_lock);
	atomic_fetch_sub(&op->nlm->asking, 1);
}

static bool cancel_asking(struct rpc_call *call)
{
	const struct nlm_op *op = nlm_op(call);
	const struct nlm_config *c = &op->nlm->config;
	const struct nlm_monitor *m = &c->monitor;

	if (op->keeps && clock_ns() <
	    rpc_call_started(call) + c->asking_ms * NS_PER_MS)
		return false;
	if (!m->forget || !m->forget(m->nsm, call))
		return false;
	end_asking(call);
	return true;
}

static void monitor_done(void *arg, int err)
{
	struct rpc_call *call = arg;

	end_asking(call);
	nlm_op(call)->monitor_err = err;
	rpc_call_resume(call);
}

/* Ends the calls that the status monitor isn't answering right now: a call on
 * the list lives as long as the lock is held. */
static void end_asks(struct nlm *nlm)
{
	const struct nlm_monitor *m = &nlm->config.monitor;
	struct nlm_op *op, *next;
	CDS_LIST_HEAD(done);

	mutex_lock(&nlm->await_lock);
	cds_list_for_each_entry_safe(op, next, &nlm->asks, awaiting)
		if (m->forget && m->forget(m->nsm, rpc_state_call(op)))
			cds_list_move(&op->awaiting, &done);
	mutex_unlock(&nlm->await_lock);
	cds_list_for_each_entry_safe(op, next, &done, awaiting)
		monitor_done(rpc_state_call(op), -ECANCELED);
}

/*
 * A call-back, or an rpc.statd that hangs, can take longer than a server has
 * for its end.  Its locks end with it, so clients repeat the calls about their
 * bytes, to the next server: LOCK and UNLOCK, of clients that are there; after
 * a CANCEL nothing is left.
 */
void nlm_ending(struct rpc_program *prog)
{
	nlm_end_awaits(prog->ctx);
	end_asks(prog->ctx);
}

/* The answer of the status monitor. */
static int act_on_answer(struct rpc_call *call)
{
	const struct nlm_op *op = nlm_op(call);

	if (op->monitor_err == 0) {
		note_monitored(op);
		return 0;
	}
	/* The server ends.  The next one can ask again. */
	if (op->monitor_err == -ECANCELED)
		return -ETIMEDOUT;
	stat_inc(nlm_unmonitored);
	return -ENOLCK;
}

int nlm_monitor_host(struct rpc_call *call)
{
	const struct nlm_args *a = rpc_args(call);
	struct nlm_op *op = nlm_op(call);
	struct nlm *nlm = op->nlm;
	const struct nlm_monitor *m = &nlm->config.monitor;
	char name[NLM_NAME_MAX + 1];
	const struct rpc_host host = { name, rpc_call_peer(call),
				       rpc_call_local(call) };

	if (nlm_keep_host(call) < 0)
		return -ENOLCK;
	if (!m->monitor || !op->host)
		return 0;
	if (is_monitored(op))
		return 0;
	memcpy(name, a->name.data, a->name.len);
	name[a->name.len] = '\0';
	if (!begin_asking(nlm))
		return -ETIMEDOUT;
	list_asking(call);
	if (!rpc_call_suspend(call, "the status monitor", cancel_asking,
			      act_on_answer)) {
		end_asking(call);
		return -ETIMEDOUT;
	}
	m->monitor(m->nsm, &host, monitor_done, call);
	/* The end of the server has not found it before that. */
	if (nlm_is_ending(nlm))
		end_asks(nlm);
	return RPC_PENDING;
}

/* ---- the file */

/* As knfsd: a lock of either kind needs permission to read, or ownership; the
 * latter only where modes decide who can open a file.  With no_auth_nlm the
 * call's credential does not matter.  A reclaim for which the known ids do is
 * not put off until the grace period is over. */
static int check_access(struct nlm_op *op, const struct nlm_args *a)
{
	const struct vfs_ops *ops = op->node->fs->ops;
	struct vfs_attr attr;
	struct vfs_op get = { .cred = &op->cred, .node = op->node,
			      .attr = &attr };
	int err;

	if (a->exclusive && !op->rw)
		return -EROFS;
	err = ops->getattr(&get);
	if (err == 0)
		op->fileid = attr.fileid;
	if (err == 0 && attr.type != VFS_REG)
		err = -EINVAL;
	if (err < 0 || !op->auth_nlm)
		return err;
	if (op->unsure && !a->reclaim)
		return -ETIMEDOUT;
	get.attr = NULL;
	get.access.want = VFS_ACCESS_READ | VFS_ACCESS_OPEN;
	get.access.granted = 0;
	err = ops->access(&get);
	if (err < 0 || get.access.granted & VFS_ACCESS_READ)
		return err;
	return attr.uid == op->cred.uid &&
	       !(get.access.granted & VFS_ACCESS_OPEN) ?
	       0 : op->unsure ? -ETIMEDOUT : -EACCES;
}

int nlm_find_file(struct rpc_call *call)
{
	const struct nlm_args *a = rpc_args(call);
	struct nlm_op *op = nlm_op(call);
	struct vfs_op vfs = { .cred = &op->cred, .open.fs = op->exp->fs,
			      .open.handle = &op->handle };
	int err;

	if (!valid_name(a->name))
		return -EINVAL;
	err = op->exp->fs->ops->open_handle(&vfs);
	if (err < 0)
		return err;
	op->node = vfs.out;
	err = check_access(op, a);
	if (err < 0)
		return err;
	op->file = nlm_file_get(op->nlm, op->exp, &op->handle,
				&op->fileid);
	return op->file ? 0 : -ENOLCK;
}

int nlm_find_held(struct rpc_call *call)
{
	struct nlm_op *op = nlm_op(call);

	op->file = nlm_file_get(op->nlm, op->exp, &op->handle, NULL);
	/* The file has no locks: done. */
	return op->file ? 0 : RPC_DONE;
}

static void release(struct nlm_op *op)
{
	let_host_go(op);
	if (op->file)
		nlm_file_put(op->nlm, op->file);
	vfs_node_put(op->node);
	if (op->exp) {
		export_caller_put(&op->cred);
		export_put(op->exp);
	}
}

int nlm_end(struct rpc_call *call, int err)
{
	const struct nlm_args *a = rpc_args(call);
	struct nlm_res *r = rpc_res(call);
	bool silent = err == -ETIMEDOUT && a->reclaim &&
		      put_off(call->prog->ctx, nlm_op(call)->exp);

	release(nlm_op(call));
	if (silent)
		return -ECANCELED;
	r->cookie = a->cookie;
	if (err < 0)
		r->status = nlm_status(err);
	call->failed = err < 0;
	return 0;
}

/* No export is for the caller, or it has no handle. */
static bool is_stranger(const struct nlm_op *op, int err)
{
	return !op->exp && (err == -EACCES || err == -EBADMSG);
}

int nlm_end_msg(struct rpc_call *call, int err)
{
	if (nlm_end(call, err) < 0)
		return -ECANCELED;
	/* A call to whatever address a datagram says it is from would trouble
	 * third parties, and take the places of other calls. */
	if (err != -ECANCELED && !is_stranger(nlm_op(call), err))
		nlm_send_res(call);
	return 0;
}
