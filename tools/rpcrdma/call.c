/* SPDX-License-Identifier: BSD-2-Clause */
/* call - starts calls, ends them, and cancels them. */
#include "tools/rpcrdma/client.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/thread.h"
#include "lib/util.h"

/* On the loop, without the lock.  @q has the reply. */
static void finish_user(struct gannet_rpcrdma_call *user,
			const struct rpcrdma_request *q, int status)
{
	user->status = status;
	user->errcode = q->errcode;
	user->reply = q->reply_data;
	user->reply_len = q->reply_len;
	for (unsigned i = 0; i < user->nsinks; i++)
		user->written[i] = q->written[i];
	client_count_calls(user, -1);
	user->done(user);
}

/* On the loop, without the lock. */
static void finish_client_call(struct client_call *call, int status)
{
	if (call->user)
		finish_user(call->user, &call->q, status);
	free(call);
}

/*
 * With the lock: true if a call that came back without a reply waits to be sent
 * again.  Only a call that went out counts as sent once more.
 */
static bool may_wait(const struct gannet_rpcrdma *c,
		     const struct client_call *call)
{
	const unsigned most = call->once ? 0 : c->options.resends;

	/* A cancelled one may be without its user. */
	return !call->cancelled && !c->closing && c->state != CLIENT_DEAD &&
	       !(c->options.flags & GANNET_RPCRDMA_NO_RECONNECT) &&
	       call->user->sends <= most;
}

static void request_done(struct rpcrdma_request *q)
{
	struct client_call *call = container_of(q, struct client_call, q);
	struct gannet_rpcrdma *c = call->c;
	int status = q->status;
	bool sent = atomic_load(&q->sent);
	bool again = false;

	mutex_lock(&c->lock);
	cds_list_del(&call->link);
	if (call->user)
		call->user->sends += sent;
	/* is_closed() comes later: a call that done() starts must not go to the
	 * connection that ended. */
	if (status == -ENOTCONN && c->state == CLIENT_UP)
		c->state = CLIENT_DOWN;
	if (status != -ENOTCONN) {
		c->failures = 0;
	} else if (may_wait(c, call)) {
		again = true;
		c->info.resends += sent;
		cds_list_add_tail(&call->link, &c->waiting);
	} else if (c->closing || call->cancelled) {
		status = -ECANCELED;
	}
	mutex_unlock(&c->lock);
	if (!again)
		finish_client_call(call, status);
}

/* With the lock. */
static void give_call(struct gannet_rpcrdma *c, struct client_call *call)
{
	atomic_store(&call->q.sent, 0);
	cds_list_add_tail(&call->link, &c->given);
	rpcrdma_requester_call(c->r, &call->q);
}

int gannet_rpcrdma_call(struct gannet_rpcrdma *c,
			struct gannet_rpcrdma_call *user)
{
	struct client_call *call;
	int err = client_check_size(user, user->size, CALL_FIRST,
				    sizeof(*user));

	if (err < 0)
		return err;
	if (user->nsources > GANNET_RPCRDMA_SOURCES ||
	    user->nsinks > GANNET_RPCRDMA_SINKS || user->msg_len < 4 ||
	    !user->done)
		return -EINVAL;
	call = calloc(1, sizeof(*call));
	if (!call)
		return -ENOMEM;
	call->c = c;
	call->user = user;
	call->once = user->size > CALL_FIRST && user->once;
	call->q.done = request_done;
	err = client_take_call(call);
	if (err < 0) {
		free(call);
		return err;
	}
	user->sends = 0;
	client_count_calls(user, 1);
	mutex_lock(&c->lock);
	if (c->closing || c->state == CLIENT_DEAD) {
		err = -ENOTCONN;
	} else if (c->state == CLIENT_UP) {
		give_call(c, call);
	} else {
		cds_list_add_tail(&call->link, &c->waiting);
		pthread_cond_broadcast(&c->wake);
	}
	mutex_unlock(&c->lock);
	if (err < 0) {
		client_count_calls(user, -1);
		free(call);
	}
	return err;
}

/* ---- cancelling */

static struct client_call *named_call(struct cds_list_head *list,
				     const struct gannet_rpcrdma_call *user)
{
	struct client_call *call;

	cds_list_for_each_entry(call, list, link)
		if (call->user && call->user == user)
			return call;
	return NULL;
}

/*
 * With the lock, on the loop: takes a cancelled call whose memory is, or now
 * becomes, its user's again; NULL: no such call.  One that is with the
 * requester stays there, without its user; @ended gets one that waited.
 */
static struct gannet_rpcrdma_call *take_cancelled(struct gannet_rpcrdma *c,
						  struct client_call **ended)
{
	struct gannet_rpcrdma_call *user;
	struct client_call *call;

	*ended = NULL;
	cds_list_for_each_entry(call, &c->waiting, link)
		if (call->cancelled) {
			cds_list_del(&call->link);
			*ended = call;
			return call->user;
		}
	cds_list_for_each_entry(call, &c->given, link) {
		user = call->user;
		if (!user || !call->cancelled || !c->r ||
		    !rpcrdma_requester_revoke(c->r, &call->q))
			continue;
		call->user = NULL;
		user->sends += atomic_load(&call->q.sent) != 0;
		return user;
	}
	return NULL;
}

static void end_cancelled(struct loop_task *t)
{
	static const struct rpcrdma_request no_reply;
	struct gannet_rpcrdma *c = container_of(t, struct gannet_rpcrdma,
						cancel);
	struct gannet_rpcrdma_call *user;
	struct client_call *ended;

	mutex_lock(&c->lock);
	c->cancelling = false;
	while ((user = take_cancelled(c, &ended))) {
		mutex_unlock(&c->lock);
		free(ended);
		finish_user(user, &no_reply, -ECANCELED);
		mutex_lock(&c->lock);
	}
	mutex_unlock(&c->lock);
}

int gannet_rpcrdma_cancel(struct gannet_rpcrdma *c,
			  const struct gannet_rpcrdma_call *user)
{
	struct client_call *call;

	mutex_lock(&c->lock);
	call = named_call(&c->given, user);
	if (!call)
		call = named_call(&c->waiting, user);
	if (call)
		call->cancelled = true;
	if (call && !c->cancelling) {
		c->cancelling = true;
		loop_post(c->loop, &c->cancel, end_cancelled);
	}
	mutex_unlock(&c->lock);
	return call ? 0 : -ENOENT;
}

/* ---- for the manager */

uint32_t gannet_rpcrdma_xid(struct gannet_rpcrdma *c)
{
	return atomic_fetch_add(&c->xid, 1);
}

void client_give_waiting(struct gannet_rpcrdma *c)
{
	struct client_call *call, *next;

	cds_list_for_each_entry_safe(call, next, &c->waiting, link) {
		cds_list_del(&call->link);
		give_call(c, call);
	}
}

void client_fail_waiting(void *arg)
{
	struct gannet_rpcrdma *c = arg;
	struct cds_list_head list;
	struct client_call *call, *next;
	int err;

	CDS_INIT_LIST_HEAD(&list);
	mutex_lock(&c->lock);
	cds_list_splice(&c->waiting, &list);
	CDS_INIT_LIST_HEAD(&c->waiting);
	err = c->closing ? -ECANCELED : -ENOTCONN;
	mutex_unlock(&c->lock);
	cds_list_for_each_entry_safe(call, next, &list, link)
		finish_client_call(call, err);
}
