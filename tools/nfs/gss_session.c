/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gss_session - a session whose calls have RPCSEC_GSS, on a session of either
 * transport.
 *
 * Operation: an operation waits for a context, or is with the session below.
 * When the server refuses a context (it was restarted, the ticket expired), the
 * operation waits for the next one, which wait() makes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "tools/nfs/gss.h"
#include "tools/nfs/sec.h"

enum { REFUSALS = 3, CLOSE_MS = 2000,
       LOST_MAX = 10 };	/* tokens without an answer, one after the other */

struct session {
	struct nfsc_session  base;
	struct nfsc_session *below;
	struct gss_login     login;
	char		     host[256];
	struct nfsc_op	     proof;	/* which makes a context */
	bool		     proving;	/* and is under way */
	unsigned	     lost;	/* tokens, since the last answer */
	bool		     answers;	/* the last one had an answer */
	struct cds_list_head waiting;	/* for a context */
	struct cds_list_head done;
};

static void finish_gss_op(struct session *s, struct nfsc_op *op, int err)
{
	op->repeats = false;
	op->err = err;
	cds_list_add_tail(&op->link, &s->done);
}

/* There was no context for @op, or the server refused it. */
static void take_refusal(struct session *s, struct nfsc_op *op)
{
	gss_login_refuse(&s->login, op->context);
	op->repeats = true;
	if (op->context == 0 || ++op->refusals <= REFUSALS)
		cds_list_add_tail(&op->link, &s->waiting);
	else
		finish_gss_op(s, op, gss_fail(s->host, GSS_S_NO_CONTEXT, 0,
					      NULL));
}

static void submit_or_finish(struct session *s, struct nfsc_op *op)
{
	int err = session_submit(s->below, op);

	if (err == -EKEYREVOKED)
		take_refusal(s, op);
	else if (err < 0)
		finish_gss_op(s, op, err);
}

/* The context is made, or with @err it failed. */
static void end_proof(struct session *s, int err)
{
	struct cds_list_head list;
	struct nfsc_op *op, *next;

	CDS_INIT_LIST_HEAD(&list);
	cds_list_splice(&s->waiting, &list);
	CDS_INIT_LIST_HEAD(&s->waiting);
	cds_list_for_each_entry_safe(op, next, &list, link) {
		cds_list_del(&op->link);
		if (err < 0)
			finish_gss_op(s, op, err);
		else
			submit_or_finish(s, op);
	}
}

/* Sends the login's token. */
static int send_token(struct session *s)
{
	int err;

	s->proof = (struct nfsc_op){ .kind = NFS_OP_PROVE };
	if (!gss_login_token(&s->login, &s->proof))
		return gss_fail(s->host, 0, 0, "a server that answers with a "
				"token");
	err = session_submit(s->below, &s->proof);
	s->proving = err == 0;
	return err;
}

/* The proof ended with @err.  0: another token is to be sent. */
static int judge_proof(struct session *s, int err)
{
	/* Its connection ended before the answer came. */
	if (err == -EKEYREVOKED)
		return s->lost++ < LOST_MAX ?
		       gss_login_begin_again(&s->login) : -ENOTCONN;
	s->lost = 0;
	return err;
}

/* The operations that wait get a context, or end. */
static void renew(struct session *s)
{
	int err = 0;

	if (!gss_login_usable(&s->login)) {
		err = gss_login_begin(&s->login);
		if (err == 0)
			err = send_token(s);
	}
	if (!s->proving)
		end_proof(s, err);
}

static void take_proof(struct session *s)
{
	int err = judge_proof(s, s->proof.err);

	s->proving = false;
	if (err == 0 && !gss_login_usable(&s->login))
		err = send_token(s);
	if (!s->proving)
		end_proof(s, err);
}

/* An operation that comes from below. */
static void take_from_below(struct session *s, struct nfsc_op *op)
{
	s->answers = op->err == 0 || op->err == -EKEYREVOKED;
	if (op == &s->proof)
		take_proof(s);
	else if (op->err == -EKEYREVOKED)
		take_refusal(s, op);
	else
		finish_gss_op(s, op, op->err);
}

static struct nfsc_op *take_gss_done(struct session *s)
{
	struct nfsc_op *op;

	if (cds_list_empty(&s->done))
		return NULL;
	op = cds_list_first_entry(&s->done, struct nfsc_op, link);
	cds_list_del(&op->link);
	return op;
}

/* ---- the session */

static struct session *above_of(struct nfsc_session *base)
{
	return container_of(base, struct session, base);
}

static int submit_gss(struct nfsc_session *base, struct nfsc_op *op)
{
	struct session *s = above_of(base);

	op->refusals = 0;
	op->repeats = false;
	op->err = 0;
	if (!cds_list_empty(&s->waiting) || !gss_login_usable(&s->login))
		cds_list_add_tail(&op->link, &s->waiting);
	else
		submit_or_finish(s, op);
	return 0;
}

static struct nfsc_op *wait_gss(struct nfsc_session *base)
{
	struct session *s = above_of(base);
	struct nfsc_op *op;

	while (!(op = take_gss_done(s))) {
		if (!s->proving && !cds_list_empty(&s->waiting))
			renew(s);
		else
			take_from_below(s, session_wait(s->below));
	}
	return op;
}

static struct nfsc_op *look_gss(struct nfsc_session *base)
{
	struct session *s = above_of(base);
	struct nfsc_op *op = take_gss_done(s);

	if (op)
		return op;
	if (!s->proving && !cds_list_empty(&s->waiting))
		renew(s);
	op = session_look(s->below);
	if (op)
		take_from_below(s, op);
	return take_gss_done(s);
}

static bool poll_gss(struct nfsc_session *base, struct pollfd *p)
{
	return session_poll(above_of(base)->below, p);
}

static void redial_gss(struct nfsc_session *base)
{
	session_redial(above_of(base)->below);
}

/* The server need not keep the context until it expires.  Nothing waits long
 * for it to say that it does not, nor connects again. */
static void close_gss(struct nfsc_session *base)
{
	struct session *s = above_of(base);
	struct nfsc_op op = { .kind = NFS_OP_DISOWN };

	s->below->config.timeout_ms = MIN(s->below->config.timeout_ms,
					  (uint32_t)CLOSE_MS);
	s->below->config.retries = 0;
	if (s->answers && gss_login_usable(&s->login))
		session_do(s->below, &op);
	session_close(s->below);
	gss_login_close(&s->login);
	free(s);
}

static void *keep_gss(struct nfsc_session *base, void *mem, size_t len,
		      enum nfsc_kind kind)
{
	return session_keep(above_of(base)->below, mem, len, kind);
}

static void release_gss(struct nfsc_session *base, void *kept)
{
	session_release(above_of(base)->below, kept);
}

static int peer_of_gss(struct nfsc_session *base, struct sockaddr_storage *out)
{
	struct nfsc_session *below = above_of(base)->below;

	return below->ops->peer(below, out);
}

static void info_below(struct nfsc_session *base,
		       struct gannet_rpcrdma_info *out)
{
	struct nfsc_session *below = above_of(base)->below;

	below->ops->rdma(below, out);
}

static const struct nfsc_session_ops ops_tcp = {
	.submit = submit_gss, .wait = wait_gss, .look = look_gss,
	.poll = poll_gss, .redial = redial_gss, .close = close_gss,
	.peer = peer_of_gss,
};

static const struct nfsc_session_ops ops_rdma = {
	.submit = submit_gss, .wait = wait_gss, .look = look_gss,
	.poll = poll_gss, .redial = redial_gss, .close = close_gss,
	.keep = keep_gss, .release = release_gss,
	.peer = peer_of_gss, .rdma = info_below,
};

/* Makes the first context. */
static int prove(struct session *s)
{
	int err = gss_login_begin(&s->login);

	while (err == 0 && !gss_login_usable(&s->login)) {
		err = send_token(s);
		if (err == 0)
			err = judge_proof(s, session_wait(s->below)->err);
		s->proving = false;
	}
	s->answers = err == 0;
	return err;
}

static int open_gss(const struct nfsc_url *url, const struct nfsc_config *c,
		    uint32_t service, struct nfsc_session **out)
{
	struct session *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	memcpy(s->host, url->host, sizeof(s->host));
	CDS_INIT_LIST_HEAD(&s->waiting);
	CDS_INIT_LIST_HEAD(&s->done);
	err = gss_login_open(&s->login, service, s->host);
	if (err < 0) {
		free(s);
		return err;
	}
	s->base.config = *c;
	s->base.config.sec = NULL;
	s->base.config.flavor = &s->login.flavor;
	err = nfsc_session_open(url, &s->base.config, &s->below);
	if (err < 0) {
		gss_login_close(&s->login);
		free(s);
		return err;
	}
	s->base.config = s->below->config;
	s->base.ops = s->below->ops->rdma ? &ops_rdma : &ops_tcp;
	err = prove(s);
	if (err < 0)
		close_gss(&s->base);
	else
		*out = &s->base;
	return err;
}

static int open_krb5(const struct nfsc_url *url, const struct nfsc_config *c,
		     struct nfsc_session **out)
{
	return open_gss(url, c, GSS_NONE, out);
}

static int open_krb5i(const struct nfsc_url *url, const struct nfsc_config *c,
		      struct nfsc_session **out)
{
	return open_gss(url, c, GSS_INTEGRITY, out);
}

static int open_krb5p(const struct nfsc_url *url, const struct nfsc_config *c,
		      struct nfsc_session **out)
{
	return open_gss(url, c, GSS_PRIVACY, out);
}

static const struct nfsc_sec secs[] = {
	{ RPC_AUTH_KRB5, open_krb5 },
	{ RPC_AUTH_KRB5I, open_krb5i },
	{ RPC_AUTH_KRB5P, open_krb5p },
};

int nfsc_sec_find(const char *name, const struct nfsc_sec **sec)
{
	*sec = NULL;
	if (strcmp(name, "sys") == 0)
		return 0;
	for (unsigned i = 0; i < ARRAY_SIZE(secs); i++)
		if (strcmp(name, nfsc_flavor_name(secs[i].flavor)) == 0)
			*sec = &secs[i];
	return *sec ? 0 : -EINVAL;
}
