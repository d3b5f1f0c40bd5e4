/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * grant - call-backs to clients that waited, and answers to asynchronous ones.
 *
 * A granted waiter stays until its client has answered: the lock is held all
 * that time.  A client that refuses it, because its process went away
 * meanwhile, loses it.  A client that doesn't answer is called again, less and
 * less often, and then not at all: perhaps it has heard of its lock, so it
 * keeps that until its host is known to have restarted.
 *
 * A client refuses a lock that no process waits for; it also does so if it took
 * the lock at the first call-back and its answer was lost.  So only a refusal
 * of the first call-back that can have arrived says that the lock was not
 * taken.  Each call-back is sent once, with its own cookie, which matches the
 * answer.
 */
#include "nlm/proc.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/stats.h"
#include "rpc/client.h"

#define CALL_MS		10000u
#define UDP_CALL_MS	3000u	/* a datagram can get lost */
#define LONGEST_MS	30000u
#define TRIES		10u
#define HOST_CALLS	32u	/* at a time */

STAT(nlm_call_backs, "call-backs to clients whose locks were granted");
STAT(nlm_refused, "granted locks that the client no longer wanted");
STAT(nlm_unanswered, "lock messages not answered because too many answers "
     "wait");
STAT(nlm_silent, "clients that did not answer a call-back for their granted "
		 "lock");

/* A call-back under way. */
struct telling {
	struct nlm	*nlm;
	struct nlm_host	*host;	/* stays while host->calling */
	uint64_t	 cookie;
};

static uint64_t grant_of(uint64_t cookie)
{
	return cookie & ~(NLM_CALL_BACKS - 1);
}

/* Under nlm->lock.  NULL: the grant is over. */
static struct nlm_wait *find(struct nlm *nlm, uint64_t cookie)
{
	return nlm_grant_find(nlm->grants, grant_of(cookie));
}

/* Under nlm->lock: the client has answered the call-back with @cookie. */
static void answered(struct nlm *nlm, struct nlm_wait *w, uint64_t cookie,
		     uint32_t status)
{
	if (status != NLM4_DENIED || cookie > w->id + w->first) {
		w->answer = NLM_WAIT_TAKEN;
	} else {
		w->answer = NLM_WAIT_REFUSED;
		stat_inc(nlm_refused);
	}
	nlm_due_end(w);
	nlm_wait_mark(w);
	nlm_file_kick(nlm, w->file);
}

/* True unless the client has surely not acted on the call-back. */
static bool may_have_come(int err)
{
	return err != -EHOSTUNREACH && err != -EBUSY &&
	       err != -EPROTONOSUPPORT && err != -EOPNOTSUPP &&
	       err != -EINVAL && err != -EACCES;
}

/* Under nlm->lock. */
static void not_answered(struct nlm *nlm, struct nlm_wait *w, int err)
{
	uint64_t pause = (uint64_t)nlm->config.call_back_ms << w->tries;

	w->next_ms = clock_ms() + MIN(pause, LONGEST_MS);
	w->told |= may_have_come(err);
	/* The host was not called: others had all places for calls. */
	if (err == -EBUSY || ++w->tries < TRIES) {
		nlm_due_put(w, &nlm->due);
		return;
	}
	stat_inc(nlm_silent);
	log_limited(LOG_LEVEL_WARN, "%s does not answer the call-back for its "
		    "lock; it keeps the lock, since it can have been told of "
		    "it",
		    w->owner->host->name);
	w->answer = NLM_WAIT_TAKEN;
	nlm_wait_mark(w);
	nlm_file_kick(nlm, w->file);
}

/* Says yes or no; a client that answers "come again", as its lock manager has
 * just started, does not. */
static bool is_answer(uint32_t status)
{
	return status == NLM4_GRANTED || status == NLM4_DENIED;
}

/* An answer to another call-back than this one is not to it. */
static bool get_answer(struct xdr_in *results, uint64_t cookie,
		       struct nlm_res_args *res)
{
	if (!nlm_get_res(results, res) || !is_answer(res->status))
		return false;
	return res->cookie.len != sizeof(cookie) ||
	       memcmp(res->cookie.data, &cookie, sizeof(cookie)) == 0;
}

/* On the client's thread. */
static void told_client(void *arg, int err, struct xdr_in *results)
{
	struct telling *t = arg;
	struct nlm *nlm = t->nlm;
	struct nlm_res_args res;
	struct nlm_wait *w;

	mutex_lock(&nlm->lock);
	t->host->calling--;
	nlm_due_next(t->host, &nlm->due);
	pthread_cond_signal(&nlm->wake);
	w = nlm->stops ? NULL : find(nlm, t->cookie);
	if (w && w->answer == NLM_WAIT_NONE) {
		w->calling = false;
		if (err == 0 && !w->async &&
		    get_answer(results, t->cookie, &res))
			answered(nlm, w, t->cookie, res.status);
		else
			not_answered(nlm, w, err);
	}
	mutex_unlock(&nlm->lock);
	nlm_answer_came(nlm, grant_of(t->cookie));
	free(t);
}

static size_t put_args(const struct nlm_wait *w, uint64_t cookie,
		       uint8_t *bytes, size_t size)
{
	const struct nlm_owner *o = w->owner;
	const struct nlm_args a = {
		.cookie = { (const uint8_t *)&cookie, sizeof(cookie) },
		.name = xdr_text(o->host->name),
		.fh = { w->fh, w->fh_len },
		.oh = { o->oh, o->oh_len },
		.svid = o->svid, .off = w->off, .len = w->len,
		.exclusive = w->at.exclusive,
	};
	struct xdr_out x;

	xdr_out_init(&x, bytes, size);
	nlm_put_args(&x, &a, NLM_GRANTED, w->vers == 4);
	return xdr_out_len(&x);
}

/* To the lock manager of the host that @addr is of, wherever that listens. */
static void set_to(struct rpc_client_to *to,
		   const struct sockaddr_storage *addr,
		   const struct sockaddr_storage *local)
{
	to->addr = *addr;
	to->from = *local;
	xprt_addr_set_port(&to->addr, 0);
	to->prog = NLM_PROGRAM;
	to->timeout_ms = CALL_MS;
}

static void call_back(struct nlm *nlm, struct nlm_wait *w)
{
	uint8_t bytes[RPC_CLIENT_ARGS_MAX];
	struct rpc_client_to to = {
		.proto = w->proto, .vers = w->vers,
		.proc = w->async ? NLM_GRANTED_MSG : NLM_GRANTED,
	};
	const uint64_t cookie = w->id + w->tries;
	struct telling *t = malloc(sizeof(*t));
	int err = -ENOMEM;

	set_to(&to, &w->addr, &w->local);
	to.once = true;
	if (nlm->config.told_ms)
		to.timeout_ms = nlm->config.told_ms;
	else if (w->proto == IPPROTO_UDP)
		to.timeout_ms = UDP_CALL_MS;
	if (!w->told)
		w->first = w->tries;
	if (t) {
		*t = (struct telling){ nlm, w->owner->host, cookie };
		err = rpc_client_call(nlm->config.client, &to, bytes,
				      put_args(w, cookie, bytes,
					       sizeof(bytes)),
				      told_client, t);
	}
	stat_inc(nlm_call_backs);
	w->calling = err == 0;
	w->owner->host->calling += err == 0;
	if (err < 0) {
		free(t);
		not_answered(nlm, w, -EBUSY);
	}
}

uint64_t nlm_call_back(struct nlm *nlm, uint64_t now)
{
	struct nlm_wait *w;

	if (!nlm->config.client)
		return UINT64_MAX;
	while ((w = nlm_due_first(nlm->due, now))) {
		nlm_due_behind(w);
		if (w->owner->host->calling >= HOST_CALLS)
			continue;
		cds_list_del_init(&w->behind);
		call_back(nlm, w);
	}
	w = nlm_due_first(nlm->due, UINT64_MAX - 1);
	return w ? w->next_ms : UINT64_MAX;
}

int nlm_granted_res(struct rpc_call *call)
{
	const struct nlm_res_args *a = rpc_args(call);
	struct nlm *nlm = call->prog->ctx;
	struct nlm_wait *w;
	uint64_t cookie;

	if (a->cookie.len != sizeof(cookie) || !is_answer(a->status))
		return 0;
	memcpy(&cookie, a->cookie.data, sizeof(cookie));
	mutex_lock(&nlm->lock);
	w = find(nlm, cookie);
	if (w && w->answer == NLM_WAIT_NONE &&
	    xprt_addr_same_host((struct sockaddr *)&w->addr,
				rpc_call_peer(call)))
		answered(nlm, w, cookie, a->status);
	mutex_unlock(&nlm->lock);
	nlm_answer_came(nlm, grant_of(cookie));
	return 0;
}

static void res_is_sent(void *arg, int err, struct xdr_in *results)
{
	struct nlm *nlm = arg;

	atomic_fetch_sub(&nlm->answering, 1);
}

/* Many clients don't reply to these calls.  So they end when they were sent,
 * and one to a host that can't be found takes its place for a short time only:
 * a datagram's source can be forged. */
static void call_with_res(struct nlm *nlm, const struct rpc_client_to *to,
			  const struct xdr_out *out)
{
	if (atomic_fetch_add(&nlm->answering, 1) < nlm->config.max_answering &&
	    rpc_client_call(nlm->config.client, to, out->start,
			    xdr_out_len(out), res_is_sent, nlm) == 0)
		return;
	/* The client repeats a call that gets no answer. */
	atomic_fetch_sub(&nlm->answering, 1);
	stat_inc(nlm_unanswered);
}

void nlm_send_res(struct rpc_call *call)
{
	struct nlm *nlm = call->prog->ctx;
	const struct xprt *x = call->msg->xprt;
	bool wide = call->version->vers == 4;
	uint8_t bytes[RPC_CLIENT_ARGS_MAX];
	struct rpc_client_to to = {
		.proto = x->datagram ? IPPROTO_UDP : IPPROTO_TCP,
		.vers = call->version->vers,
		.proc = call->procnum + NLM_MSG_TO_RES,
	};
	struct xdr_out out;

	if (!nlm->config.client)
		return;
	xdr_out_init(&out, bytes, sizeof(bytes));
	if (call->procnum == NLM_TEST_MSG)
		(wide ? nlm_put_test4 : nlm_put_test1)(&out, rpc_res(call));
	else
		(wide ? nlm_put_res4 : nlm_put_res1)(&out, rpc_res(call));
	set_to(&to, &x->peer, &x->local);
	to.one_way = true;
	to.timeout_ms = nlm->config.answer_ms;
	call_with_res(nlm, &to, &out);
}
