/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait - a waiter when its owner does something else.
 *
 * A waiter whose lock was granted stays until its client has answered the
 * call-back.  Until then we don't know the client's view: the call-back might
 * be under way, or have arrived but its answer got lost.  So
 *
 * - a call of the owner about bytes of such a grant waits while a call-back is
 *   under way: the client might take the lock, and forget it, at that moment,
 *   and would take a late call-back for the grant of its next wait;
 * - a LOCK that covers such a grant, or a part of it, is held by itself: it
 *   stays when the grant is refused or cancelled;
 * - an UNLOCK of all its bytes ends a waiter, granted or not: it implies a
 *   CANCEL;
 * - an UNLOCK of a part of the grant, or a LOCK that shares it, cuts it.  The
 *   client is not called back again: it would take all of it.  The rest stays
 *   the owner's, since the client might have it, unless a CANCEL says
 *   otherwise;
 * - a LOCK that waits for just these bytes makes a waiter of a grant that was
 *   cut.  It is granted again, and the client called back with another cookie,
 *   when nothing is in the way.  A CANCEL is denied then, so that an UNLOCK
 *   also gives back the rest of the grant.
 */
#include "nlm/proc.h"

#include <errno.h>

#include "lib/stats.h"

STAT(nlm_cut, "granted locks that their owners partly unlocked before they "
	      "answered");
STAT(nlm_awaits, "calls that waited for the answer to a call-back");

/* Under nlm->lock. */
static void end_telling(struct nlm_wait *w)
{
	if (w->granted)
		nlm_wait_put(w, NULL);
	nlm_due_end(w);
	w->granted = w->calling = w->told = false;
	w->answer = NLM_WAIT_NONE;
	w->tries = 0;
	w->next_ms = 0;
}

/* Under nlm->lock. */
static void cut(struct nlm_wait *w)
{
	stat_inc(nlm_cut);
	end_telling(w);
	w->cut = true;
	nlm_freed_of(w);
}

void nlm_wait_again(struct nlm_wait *w)
{
	end_telling(w);
	nlm_wait_forget(w);
	w->cut = false;
	w->kept = true;
	nlm_freed_of(w);
	nlm_wait_put(w, &w->file->asleep);
}

void nlm_waits_locked(struct nlm *nlm, struct nlm_hold *h,
		      const struct nlm_span *at, uint32_t state)
{
	struct nlm_wait *w, *next;

	mutex_lock(&nlm->lock);
	w = nlm_grant_next(h->file, h->owner, at, NULL);
	for (; w; w = next) {
		next = nlm_grant_next(h->file, h->owner, at, w);
		if (!nlm_wait_keep(w, at, state)) {
			/* No memory: all of it becomes the owner's. */
			cut(w);
			nlm_wait_free(&nlm->table, w);
		} else if (w->at.exclusive && !at->exclusive) {
			cut(w);
		}
	}
	mutex_unlock(&nlm->lock);
}

/* Under nlm->lock: ends waiters that asked only for bytes of @at. */
static void end_asleep(struct nlm *nlm, struct nlm_file *f,
		       struct nlm_owner *o, const struct nlm_span *at)
{
	struct nlm_wait *w, *next;

	for (w = nlm_asleep_next(f, o, at, NULL); w; w = next) {
		next = nlm_asleep_next(f, o, at, w);
		if (w->at.start >= at->start && w->at.end <= at->end)
			nlm_wait_free(&nlm->table, w);
	}
}

void nlm_waits_unlocked(struct nlm *nlm, struct nlm_file *f,
			struct nlm_owner *o, const struct nlm_span *at)
{
	struct nlm_wait *w, *next;

	mutex_lock(&nlm->lock);
	end_asleep(nlm, f, o, at);
	for (w = nlm_grant_next(f, o, at, NULL); w; w = next) {
		next = nlm_grant_next(f, o, at, w);
		if (!nlm_wait_has_left(w))
			nlm_wait_free(&nlm->table, w);
		else if (!w->cut)
			cut(w);
	}
	mutex_unlock(&nlm->lock);
}

/* ---- the answer to a call-back is waited for */

/* Under nlm->lock: the grant of which a call-back, about bytes of @at, is under
 * way; 0: no such grant. */
static uint64_t awaited_grant(struct rpc_call *call, const struct nlm_span *at)
{
	const struct nlm_who who = nlm_who_of(call);
	const struct nlm_op *op = nlm_op(call);
	const struct nlm_owner *o = nlm_owner_find(&op->nlm->table, &who);
	const struct nlm_wait *w = NULL;

	while (o && (w = nlm_grant_next(op->file, o, at, w)))
		if (w->calling && w->answer == NLM_WAIT_NONE)
			return w->id;
	return 0;
}

static bool cancel_await(struct rpc_call *call)
{
	struct nlm_op *op = nlm_op(call);
	bool waits;

	/* UNLOCK and CANCEL take effect though their connection has ended: the
	 * client might not live to send them again.  A call-back ends in
	 * seconds. */
	if (!call->msg->xprt->datagram &&
	    call->proc->flags & RPC_PROC_GIVES_BACK)
		return false;
	mutex_lock(&op->nlm->await_lock);
	waits = op->awaits;
	if (waits)
		cds_list_del(&op->awaiting);
	op->awaits = false;
	mutex_unlock(&op->nlm->await_lock);
	return waits;
}

/* The call is suspended.  False: the answer has come meanwhile, or the server
 * ends. */
static bool list_await(struct rpc_call *call, const struct nlm_span *at)
{
	struct nlm_op *op = nlm_op(call);
	struct nlm *nlm = op->nlm;
	bool waits;

	mutex_lock(&nlm->lock);
	op->awaited = awaited_grant(call, at);
	mutex_lock(&nlm->await_lock);
	waits = op->awaited != 0 && !nlm->ending;
	op->awaits = waits;
	if (waits)
		cds_list_add_tail(&op->awaiting, &nlm->awaiting);
	mutex_unlock(&nlm->await_lock);
	mutex_unlock(&nlm->lock);
	return waits;
}

bool nlm_is_ending(struct nlm *nlm)
{
	bool is;

	mutex_lock(&nlm->await_lock);
	is = nlm->ending;
	mutex_unlock(&nlm->await_lock);
	return is;
}

int nlm_await_answer(struct rpc_call *call)
{
	struct nlm *nlm = nlm_op(call)->nlm;
	struct nlm_span at;
	bool under_way;

	if (nlm_span_of(rpc_args(call), &at) < 0)
		return 0;		/* the next step says so */
	mutex_lock(&nlm->lock);
	under_way = awaited_grant(call, &at) != 0;
	mutex_unlock(&nlm->lock);
	if (!under_way)
		return 0;
	if (nlm_is_ending(nlm) ||
	    !rpc_call_suspend(call, "the answer to a call-back", cancel_await,
			      nlm_await_answer))
		return -ETIMEDOUT;
	stat_inc(nlm_awaits);
	/* The call can be over by the time that this returns. */
	if (!list_await(call, &at))
		rpc_call_resume(call);
	return RPC_PENDING;
}

/* The calls that wait for the answer about the grant @id, or all, go on. */
static void end_awaits(struct nlm *nlm, uint64_t id, bool all)
{
	struct nlm_op *op, *next;
	CDS_LIST_HEAD(done);

	mutex_lock(&nlm->await_lock);
	nlm->ending |= all;
	cds_list_for_each_entry_safe(op, next, &nlm->awaiting, awaiting)
		if (all || op->awaited == id) {
			cds_list_move(&op->awaiting, &done);
			op->awaits = false;
		}
	mutex_unlock(&nlm->await_lock);
	cds_list_for_each_entry_safe(op, next, &done, awaiting)
		rpc_call_resume(rpc_state_call(op));
}

void nlm_answer_came(struct nlm *nlm, uint64_t id)
{
	end_awaits(nlm, id, false);
}

void nlm_end_awaits(struct nlm *nlm)
{
	end_awaits(nlm, 0, true);
}
