/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of authentication flavors; the protection of replies.
 *
 * Choices where RFC 5531 leaves one:
 *
 * A flavor that is not served is AUTH_REJECTEDCRED, which RFC 2203 section
 * 5.2.3.1 names as the common practice and appendix A asks for AUTH_SHORT.
 * AUTH_TLS on a procedure other than NULL is AUTH_BADCRED (RFC 9289 section
 * 4.1).  Procedure 0 never requires authentication (section 12.1), so it
 * takes every flavor, except RPCSEC_GSS: there the NULL procedure carries the
 * making of a context, and an empty success would be a lie; and AUTH_TLS where
 * the transport has TLS, and it is too late for it.  Where the transport has
 * none, AUTH_TLS is a flavor like others, and STARTTLS is not in the reply.
 *
 * The body of AUTH_NONE is undefined and ignored, its length bounded.  With
 * AUTH_SYS the verifier "should have" flavor AUTH_NONE; any other flavor is
 * AUTH_BADVERF.
 */
#include "rpc/auth.h"

#include <errno.h>

#include "lib/log.h"

enum { AUTH_GSS = 6, AUTH_TLS = 7 };

/* Where the parts of an accepted reply are before it is protected. */
enum { AT_REPLY_STAT = 8, AT_VERF = 12, VERF_NONE = 8, AT_STAT = 20,
       AT_RESULTS = 24 };

static enum rpc_auth_stat check_verf(const struct rpc_header *h)
{
	return h->verf_whole && h->verf_flavor == RPC_AUTH_NONE ?
	       RPC_AUTH_OK : RPC_AUTH_BADVERF;
}

static void set_nobody(struct rpc_cred *cred)
{
	cred->flavor = RPC_AUTH_NONE;
	cred->uid = cred->gid = UINT32_MAX;
	cred->ngids = 0;
}

static enum rpc_auth_stat verify_none(const struct rpc_flavor *self,
				      const struct rpc_header *h,
				      struct rpc_call *call)
{
	set_nobody(&call->cred);
	return check_verf(h);
}

static enum rpc_auth_stat verify_sys(const struct rpc_flavor *self,
				     const struct rpc_header *h,
				     struct rpc_call *call)
{
	struct rpc_cred *cred = &call->cred;

	cred->flavor = RPC_AUTH_SYS;
	return rpc_auth_sys_get(&h->cred, &cred->uid, &cred->gid, &cred->ngids,
				cred->gids) ? check_verf(h) : RPC_AUTH_BADCRED;
}

static enum rpc_auth_stat verify_gss(const struct rpc_flavor *self,
				     const struct rpc_header *h,
				     struct rpc_call *call)
{
	return RPC_AUTH_REJECTEDCRED;
}

static enum rpc_auth_stat verify_other(const struct rpc_header *h,
				       struct rpc_call *call)
{
	set_nobody(&call->cred);
	if (h->proc != 0)
		return RPC_AUTH_REJECTEDCRED;
	return h->verf_whole ? RPC_AUTH_OK : RPC_AUTH_BADVERF;
}

static void put_starttls(struct rpc_call *call, struct xdr_out *x)
{
	xdr_put_u32(x, RPC_AUTH_NONE);
	xdr_put_opaque(x, "STARTTLS", 8);
}

static const struct rpc_guard starttls = { .put_verf = put_starttls };

/* RFC 9289 section 4.1. */
static enum rpc_auth_stat verify_tls(const struct rpc_flavor *self,
				     const struct rpc_header *h,
				     struct rpc_call *call)
{
	struct xprt *x;
	int err;

	if (h->proc || h->cred.len > 0)
		return RPC_AUTH_BADCRED;
	if (check_verf(h) != RPC_AUTH_OK || h->verf.len > 0)
		return RPC_AUTH_BADVERF;
	x = call->msg->xprt;
	err = x->ops->start_tls ? x->ops->start_tls(x) : -EOPNOTSUPP;
	if (err == -EOPNOTSUPP)
		return verify_other(h, call);
	set_nobody(&call->cred);
	if (err)
		return err == -EUSERS ? RPC_AUTH_DROP : RPC_AUTH_BADCRED;
	call->guard = &starttls;
	return RPC_AUTH_OK;
}

static const struct rpc_flavor sys = {
	.flavor = RPC_AUTH_SYS, .mnt = { RPC_AUTH_SYS }, .verify = verify_sys,
};
static const struct rpc_flavor none = {
	.flavor = RPC_AUTH_NONE, .verify = verify_none,
};
static const struct rpc_flavor gss = {
	.flavor = AUTH_GSS, .verify = verify_gss,
};
static const struct rpc_flavor tls = {
	.flavor = AUTH_TLS, .verify = verify_tls,
};

const struct rpc_flavor *const rpc_flavors[] = {
	&sys, &none, &gss, &tls, NULL
};

void rpc_flavors_with(const struct rpc_flavor *f,
		      const struct rpc_flavor *out[RPC_FLAVORS_MAX])
{
	unsigned i = 0;

	for (; rpc_flavors[i]; i++)
		out[i] = rpc_flavors[i]->flavor == f->flavor ? f :
			 rpc_flavors[i];
	out[i] = NULL;
}

enum rpc_auth_stat rpc_auth_verify(const struct rpc_flavor *const *flavors,
				   const struct rpc_header *h,
				   struct rpc_call *call)
{
	/* Rights are given by it: a row that does not set it gives none. */
	call->cred.flavor = RPC_AUTH_UNKNOWN;
	for (; *flavors; flavors++)
		if ((*flavors)->flavor == h->flavor)
			return (*flavors)->verify(*flavors, h, call);
	return verify_other(h, call);
}

bool rpc_auth_wraps(const struct rpc_flavor *const *flavors,
		    const struct rpc_header *h)
{
	while (*flavors && (*flavors)->flavor != h->flavor)
		flavors++;
	return *flavors && (*flavors)->wraps && (*flavors)->wraps(h);
}

static uint32_t head_word(const struct msg *m, unsigned at)
{
	return xdr_word(m->head + at);
}

/* Puts the verifier in the place of AUTH_NONE's, and the rest around the
 * results.  False: no room. */
static bool insert_verf(struct msg *m, const struct xdr_out *verf,
			const struct rpc_wrapping *w)
{
	uint32_t nverf = (uint32_t)xdr_out_len(verf);
	uint32_t nbefore = (uint32_t)xdr_out_len(&w->before);
	uint32_t nafter = (uint32_t)xdr_out_len(&w->after);
	uint32_t more = nverf - VERF_NONE + nbefore;
	uint8_t *stat = m->head + AT_VERF + nverf;

	if (w->before.bad || w->after.bad ||
	    m->head_len + m->tail_len + more + nafter > MSG_HEAD_SIZE)
		return false;
	memmove(stat + 4 + nbefore, m->head + AT_RESULTS,
		m->head_len - AT_RESULTS + m->tail_len);
	memmove(stat, m->head + AT_STAT, 4);
	memcpy(m->head + AT_VERF, verf->start, nverf);
	memcpy(stat + 4, w->before.start, nbefore);
	m->head_len += more;
	memcpy(m->head + m->head_len + m->tail_len, w->after.start, nafter);
	m->tail_len += nafter;
	return true;
}

/* Makes an error of the reply, which has no results then. */
static void deny_reply(struct rpc_call *call)
{
	struct msg *m = call->msg;
	struct xdr_out x;

	if (m->body)
		buf_put(m->body);
	else if (m->body_len)
		pipe_put(m->pipe);
	m->tail_len = m->body_len = 0;
	m->body = NULL;
	m->pipe = NULL;
	xdr_out_init(&x, m->head, MSG_HEAD_SIZE);
	rpc_header_denied(&x, call->xid, RPC_GSS_CTXPROBLEM);
	m->head_len = (uint32_t)xdr_out_len(&x);
}

/* The reply is an accepted one. */
static bool protect(struct rpc_call *call)
{
	uint8_t verf[8 + RPC_MAX_AUTH], before[RPC_WRAP_MAX],
		after[RPC_WRAP_MAX];
	const struct rpc_guard *g = call->guard;
	struct msg *m = call->msg;
	struct rpc_wrapping w = { .iov = {
		{ m->head + AT_RESULTS, m->head_len - AT_RESULTS },
		{ m->body ? m->body->data : NULL, m->body ? m->body_len : 0 },
		{ m->head + m->head_len, m->tail_len },
	} };
	struct xdr_out x;

	xdr_out_init(&w.before, before, sizeof(before));
	xdr_out_init(&w.after, after, sizeof(after));
	xdr_out_init(&x, verf, sizeof(verf));
	g->put_verf(call, &x);
	if (x.bad) {
		deny_reply(call);
		return true;
	}
	if (g->wrap && head_word(m, AT_STAT) == RPC_SUCCESS) {
		m->body_ddp = false;
		if (!g->wrap(call, &w))
			return false;
	}
	return insert_verf(m, &x, &w);
}

bool rpc_auth_protect(struct rpc_call *call)
{
	bool ok = head_word(call->msg, AT_REPLY_STAT) != 0 || protect(call);

	if (!ok)
		xprt_log_limited(call->msg->xprt, LOG_LEVEL_ERR,
				 "results can't be protected, and are not "
				 "sent");
	rpc_auth_release(call);
	return ok;
}

void rpc_auth_release(struct rpc_call *call)
{
	if (call->guard && call->guard->release)
		call->guard->release(call);
}
