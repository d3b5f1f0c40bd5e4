/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * share - SHARE and UNSHARE: the access that an open file's owner has, and the
 * access that it denies to others.  Only owners of shares see them.  No status
 * monitor watches these hosts; they send FREE_ALL when they start.
 */
#include "nlm/proc.h"

#include <errno.h>

/* The state that the host's monitor was in when the call came.  SHARE has none,
 * but an earlier LOCK can: then a late notice of it ends only earlier shares.
 * 0: not known. */
static uint32_t state_of(const struct rpc_call *call, const struct nlm_host *h)
{
	return h->unsure || rpc_call_started(call) < h->heard_ns ? 0 : h->state;
}

/* Under nlm->lock. */
static enum nlm_status share(struct rpc_call *call, struct nlm_owner *o)
{
	const struct nlm_args *a = rpc_args(call);
	struct nlm_op *op = nlm_op(call);
	struct nlm_share *s;

	if (nlm_share_conflict(op->file, o, a->mode, a->access))
		return NLM4_DENIED;
	s = nlm_share_find(op->file, o);
	if (!s)
		s = nlm_share_add(&op->nlm->table, op->file, o);
	if (!s)
		return NLM4_DENIED_NOLOCKS;
	s->state = state_of(call, o->host);
	s->mode = a->mode;
	s->access = a->access;
	return NLM4_GRANTED;
}

int nlm_share(struct rpc_call *call)
{
	const struct nlm_who who = nlm_who_of(call);
	struct nlm_res *r = rpc_res(call);
	struct nlm_op *op = nlm_op(call);
	struct nlm *nlm = op->nlm;
	struct nlm_owner *o;
	int err = 0;

	r->status = NLM4_DENIED_NOLOCKS;
	nlm_turn_begin(nlm, op->file);
	mutex_lock(&nlm->lock);
	o = nlm_owner_get(&nlm->table, &who);
	if (o) {
		/* As in LOCK: a process that is there asks again. */
		if (nlm_is_outlived(call, o->host))
			err = -ETIMEDOUT;
		else
			r->status = share(call, o);
		nlm_owner_tidy(&nlm->table, o);
	}
	mutex_unlock(&nlm->lock);
	nlm_turn_end(op->file);
	return err;
}

int nlm_unshare(struct rpc_call *call)
{
	const struct nlm_who who = nlm_who_of(call);
	struct nlm_op *op = nlm_op(call);
	struct nlm *nlm = op->nlm;
	struct nlm_share *s = NULL;
	struct nlm_owner *o;

	nlm_turn_begin(nlm, op->file);
	mutex_lock(&nlm->lock);
	o = nlm_owner_find(&nlm->table, &who);
	if (o)
		s = nlm_share_find(op->file, o);
	if (s) {
		nlm_share_free(&nlm->table, s);
		nlm_owner_tidy(&nlm->table, o);
	}
	mutex_unlock(&nlm->lock);
	nlm_turn_end(op->file);
	return 0;
}
