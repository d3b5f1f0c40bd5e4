/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TEST, LOCK, CANCEL, UNLOCK, and GRANTED as a server sees it.
 *
 * A client repeats calls that get no answer, and blocked clients ask again by
 * themselves.  So each of these is decided by owner and range: a LOCK that
 * waits stays one waiter, one that is held is granted again, an UNLOCK of
 * nothing succeeds.
 */
#include "nlm/proc.h"

#include <errno.h>

#include "lib/clock.h"
#include "lib/stats.h"

STAT(nlm_blocked, "lock requests that had to wait");
STAT(nlm_deadlocks, "lock requests refused because they would deadlock");
STAT(nlm_no_locks, "lock requests refused because there were too many locks");

/* ---- TEST */

static void tell_holder(struct nlm_res *r, const struct nlm_owner *o,
			const struct nlm_span *at)
{
	r->status = NLM4_DENIED;
	r->exclusive = at->exclusive;
	r->off = at->start;
	r->len = at->end == NLM_EOF ? 0 : at->end - at->start + 1;
	r->svid = o->svid;
	r->oh_len = o->oh_len;
	memcpy(r->oh, o->oh, o->oh_len);
}

/* *@own: the locks that the asking owner has in the file, or NULL. */
static bool tell_conflict(struct rpc_call *call, const struct nlm_span *at,
			  struct nlm_hold **own)
{
	const struct nlm_who who = nlm_who_of(call);
	const struct nlm_file *f = nlm_op(call)->file;
	struct nlm *nlm = nlm_op(call)->nlm;
	const struct nlm_range *range;
	const struct nlm_owner *o;

	mutex_lock(&nlm->lock);
	o = nlm_owner_find(&nlm->table, &who);
	*own = o ? nlm_hold_find(f, o) : NULL;
	range = nlm_conflict(f, o, at);
	if (range)
		tell_holder(rpc_res(call), range->hold->owner, &range->at);
	mutex_unlock(&nlm->lock);
	return range != NULL;
}

int nlm_test(struct rpc_call *call)
{
	const struct nlm_args *a = rpc_args(call);
	struct nlm_res *r = rpc_res(call);
	struct nlm_op *op = nlm_op(call);
	struct nlm_file *f = op->file;
	struct nlm_hold *own;
	struct vfs_lock other;
	struct nlm_span at;
	int err = nlm_span_of(a, &at);

	if (err < 0)
		return err;
	nlm_turn_begin(op->nlm, f);
	if (!tell_conflict(call, &at, &own)) {
		err = nlm_foreign_test(f, op->node, own, &at, &other);
		if (err == 1) {
			r->status = NLM4_DENIED;
			r->exclusive = other.exclusive;
			r->off = other.off;
			r->len = other.len;
			r->svid = other.pid;
		}
	}
	nlm_turn_end(f);
	return MIN(err, 0);
}

/* ---- LOCK */

/* All that a call-back needs. */
static void note_client(struct rpc_call *call, struct nlm_wait *w)
{
	const struct nlm_args *a = rpc_args(call);
	const struct xprt *x = call->msg->xprt;

	w->addr = x->peer;
	w->local = x->local;
	w->proto = x->datagram ? IPPROTO_UDP : IPPROTO_TCP;
	w->vers = call->version->vers;
	w->async = call->procnum == NLM_LOCK_MSG;
	w->off = a->off;
	w->len = a->len;
	w->state = a->state;
	w->dropped = false;
	w->fh_len = a->fh.len;
	memcpy(w->fh, a->fh.data, a->fh.len);
}

/* Under nlm->lock: a LOCK that can't be granted now. */
static enum nlm_status wait_for(struct rpc_call *call, struct nlm_owner *o,
				const struct nlm_span *at)
{
	const struct nlm_args *a = rpc_args(call);
	struct nlm_op *op = nlm_op(call);
	struct nlm_table *t = &op->nlm->table;
	struct nlm_wait *w;

	if (!a->block)
		return NLM4_DENIED;
	w = nlm_wait_find(op->file, o, at);
	if (w && (w->granted || w->cut))
		nlm_wait_again(w);
	if (!w && nlm_deadlock(t, op->file, o, at)) {
		stat_inc(nlm_deadlocks);
		return NLM4_DEADLCK;
	}
	if (!w) {
		w = nlm_wait_add(t, op->file, o, at);
		if (!w)
			return NLM4_DENIED_NOLOCKS;
		stat_inc(nlm_blocked);
	}
	note_client(call, w);
	return NLM4_BLOCKED;
}

/* The node is the file's as long as anyone has or wants a lock there. */
static void keep_node(struct nlm_op *op)
{
	if (op->file->node)
		return;
	vfs_node_get(op->node);
	op->file->node = op->node;
}

/* Gets the hold that is to have the lock.  NULL: the status says why. */
static struct nlm_hold *begin_lock(struct rpc_call *call,
				   const struct nlm_span *at,
				   enum nlm_status *status)
{
	const struct nlm_who who = nlm_who_of(call);
	struct nlm_op *op = nlm_op(call);
	struct nlm *nlm = op->nlm;
	struct nlm_hold *h = NULL;
	struct nlm_owner *o;

	*status = NLM4_DENIED_NOLOCKS;
	mutex_lock(&nlm->lock);
	o = nlm_owner_get(&nlm->table, &who);
	if (o) {
		o->host->used_ms = clock_ms();
		if (nlm_is_outlived(call, o->host))
			/* A process that is there asks again. */
			*status = NLM4_DENIED_GRACE_PERIOD;
		else if (nlm_conflict(op->file, o, at))
			*status = wait_for(call, o, at);
		else
			h = nlm_hold_make(nlm, op->file, o);
		nlm_owner_tidy(&nlm->table, o);
	}
	mutex_unlock(&nlm->lock);
	return h;
}

/* The lock is held, and the client hears it: it is not to be called back. */
static void end_wait(struct nlm *nlm, struct nlm_hold *h,
		     const struct nlm_span *at)
{
	struct nlm_wait *w;

	mutex_lock(&nlm->lock);
	w = nlm_wait_find(h->file, h->owner, at);
	mutex_unlock(&nlm->lock);
	if (w)
		nlm_wait_end(nlm, w);
}

/* A lock that is not of this server is in the way. */
static enum nlm_status wait_foreign(struct rpc_call *call, struct nlm_hold *h,
				    const struct nlm_span *at)
{
	struct nlm *nlm = nlm_op(call)->nlm;
	enum nlm_status status;

	mutex_lock(&nlm->lock);
	status = wait_for(call, h->owner, at);
	/* The thread is awake, for the file, and tries it once a second. */
	if (status == NLM4_BLOCKED)
		nlm_wait_put(nlm_wait_find(h->file, h->owner, at),
			     &h->file->foreign);
	mutex_unlock(&nlm->lock);
	return status;
}

/* True: the host's locks were ended while the backend locked, and the next turn
 * also ends this one. */
static bool ended_meanwhile(struct rpc_call *call, const struct nlm_hold *h)
{
	struct nlm *nlm = nlm_op(call)->nlm;
	bool is;

	mutex_lock(&nlm->lock);
	is = nlm_was_ended(call, h->owner->host);
	mutex_unlock(&nlm->lock);
	return is;
}

/* In the file's turn. */
static int lock(struct rpc_call *call, const struct nlm_span *at,
		enum nlm_status *status)
{
	const struct nlm_args *a = rpc_args(call);
	struct nlm *nlm = nlm_op(call)->nlm;
	struct nlm_hold *h = begin_lock(call, at, status);
	int err;

	/* Don't answer a reclaim, so that the client repeats it: it might be
	 * from another host than the one whose locks were ended. */
	if (!h)
		return *status == NLM4_DENIED_GRACE_PERIOD ? -ETIMEDOUT : 0;
	err = nlm_hold_set(nlm, h, at, a->state, a->reclaim);
	if (err == 0 && ended_meanwhile(call, h)) {
		*status = NLM4_DENIED_GRACE_PERIOD;
		err = -ETIMEDOUT;
	} else if (err == 0) {
		*status = NLM4_GRANTED;
		end_wait(nlm, h, at);
		nlm_waits_locked(nlm, h, at, a->state);
	} else if (err == 1) {
		*status = wait_foreign(call, h, at);
	}
	nlm_hold_tidy(nlm, h);
	return MIN(err, 0);
}

int nlm_lock(struct rpc_call *call)
{
	const struct nlm_args *a = rpc_args(call);
	struct nlm_res *r = rpc_res(call);
	struct nlm_op *op = nlm_op(call);
	struct nlm_span at;
	int err = nlm_span_of(a, &at);

	if (err < 0)
		return err;
	/* The turn ends the locks that this finds to be of no process. */
	nlm_hear_state(call);
	nlm_turn_begin(op->nlm, op->file);
	/* If the grace period has ended while the call waited for the status
	 * monitor, the disk or the turn, another client can have had the lock
	 * since then. */
	err = nlm_check_grace(call);
	if (err == 0) {
		keep_node(op);
		err = lock(call, &at, &r->status);
	}
	nlm_turn_end(op->file);
	if (err == -ENOLCK || r->status == NLM4_DENIED_NOLOCKS)
		stat_inc(nlm_no_locks);
	return err;
}

/* ---- CANCEL */

/* Returns the waiter; or sets the status.  A lock that was granted is not
 * cancelled: after DENIED a client unlocks its bytes.  That is also the answer
 * where a part of it was unlocked since; which LOCK the rest is of is not
 * known.  Of a request that is nowhere, nothing is left to do. */
static struct nlm_wait *find_wait(struct rpc_call *call,
				  const struct nlm_span *at,
				  enum nlm_status *status)
{
	const struct nlm_who who = nlm_who_of(call);
	const struct nlm_file *f = nlm_op(call)->file;
	struct nlm *nlm = nlm_op(call)->nlm;
	const struct nlm_owner *o;
	struct nlm_wait *w = NULL;

	mutex_lock(&nlm->lock);
	o = nlm_owner_find(&nlm->table, &who);
	if (o) {
		w = nlm_wait_find(f, o, at);
		if (!w && nlm_hold_has_any(f, o, at))
			*status = NLM4_DENIED;
	}
	mutex_unlock(&nlm->lock);
	return w;
}

int nlm_cancel(struct rpc_call *call)
{
	const struct nlm_args *a = rpc_args(call);
	struct nlm_res *r = rpc_res(call);
	struct nlm_op *op = nlm_op(call);
	struct nlm_wait *w;
	struct nlm_span at;
	int err = nlm_span_of(a, &at);

	if (err < 0)
		return err;
	nlm_turn_begin(op->nlm, op->file);
	w = find_wait(call, &at, &r->status);
	if (w) {
		if (w->kept)
			r->status = NLM4_DENIED;
		/* Granted, and the client has not said yes: the call-back and
		 * the CANCEL have crossed. */
		nlm_wait_undo(op->nlm, w);
	}
	nlm_turn_end(op->file);
	return 0;
}

/* ---- UNLOCK */

/* In the file's turn. */
static int unlock(struct nlm *nlm, struct nlm_file *f, struct nlm_owner *o,
		  const struct nlm_span *at)
{
	struct nlm_hold *h;
	int err = 0;

	mutex_lock(&nlm->lock);
	h = nlm_hold_find(f, o);
	if (h && !nlm_may_clear(&nlm->table, h, at))
		err = -ENOLCK;
	mutex_unlock(&nlm->lock);
	if (h && err == 0)
		err = nlm_hold_clear(nlm, h, at);
	if (err < 0)
		return err;
	nlm_waits_unlocked(nlm, f, o, at);
	if (h)
		nlm_hold_tidy(nlm, h);
	return 0;
}

int nlm_unlock(struct rpc_call *call)
{
	const struct nlm_args *a = rpc_args(call);
	const struct nlm_who who = nlm_who_of(call);
	struct nlm_op *op = nlm_op(call);
	struct nlm *nlm = op->nlm;
	struct nlm_owner *o;
	struct nlm_span at;
	int err = nlm_span_of(a, &at);

	if (err < 0)
		return err;
	nlm_turn_begin(nlm, op->file);
	mutex_lock(&nlm->lock);
	o = nlm_owner_find(&nlm->table, &who);
	/* Its locks in other files can end meanwhile. */
	if (o)
		o->pins++;
	mutex_unlock(&nlm->lock);
	if (o) {
		err = unlock(nlm, op->file, o, &at);
		mutex_lock(&nlm->lock);
		o->pins--;
		nlm_owner_tidy(&nlm->table, o);
		mutex_unlock(&nlm->lock);
	}
	nlm_turn_end(op->file);
	if (err == -ENOLCK)
		stat_inc(nlm_no_locks);
	return err;
}

/* ---- GRANTED */

/* This is a server: it never waits for another server's locks. */
int nlm_granted(struct rpc_call *call)
{
	const struct nlm_args *a = rpc_args(call);
	struct nlm_res *r = rpc_res(call);

	r->cookie = a->cookie;
	r->status = NLM4_DENIED;
	return 0;
}
