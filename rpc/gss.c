/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RPCSEC_GSS version 1 (RFC 2203): the calls that make and destroy contexts,
 * and the credentials and verifiers of the others.
 *
 * Operation: verify() runs on the poller and only looks: it finds the context,
 * checks the header's checksum and the number.  INIT and CONTINUE_INIT run in a
 * share of the workers for that, since a mechanism reads files and asks name
 * services; there networks and clients take turns (rpc/work.h), and calls that
 * have a context never wait behind them.
 *
 * Choices where the RFC leaves one:
 *
 * Datagrams are refused, since their address can be forged.  So are versions
 * other than 1, with AUTH_REJECTEDCRED as section 5.2.3.1 says, or AUTH_BADCRED
 * for data (section 5.3.3.3).  A number that came before is dropped before its
 * checksum is computed (section 7.2.2).  A context serves its client at any
 * address: the checksum proves who calls.  A call to destroy a context is not
 * wrapped, whatever its service: other servers and clients do it so.
 */
#include "rpc/gss_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/stats.h"

/* A call of more bytes has its arguments checked by a worker. */
#define UNWRAP_MAX	(32u << 10)
#define WORKERS		8u
/* The memory of a call in progress, without its arguments. */
#define CALL_BYTES	4096u

STAT(gss_made, "contexts of RPCSEC_GSS made");
STAT(gss_not_made, "contexts of RPCSEC_GSS refused");
STAT(gss_crowded, "calls to make contexts dropped because too many of their "
		  "client, or of all, waited");
STAT(gss_no_context, "calls refused because the server has no such context");
STAT(gss_bad_sum, "calls refused because of their header's checksum");
STAT(gss_stale, "calls refused because their context has expired");
STAT(gss_old_seq, "calls dropped because their number came before, or is too "
		  "old");

struct rpc_gss {
	struct rpc_flavor  flavor;
	struct rpc_program init, destroy;
	struct rpc_guard   init_guard, destroy_guard;
	struct gss_table   table;
	const struct gss_mech *mech;	/* borrowed */
	void		  *arg;
	unsigned	   nworkers;
	struct work_class *makers;	/* of contexts */
	struct work_class *openers;	/* of long calls */
};

static struct rpc_gss *gss_of(const struct rpc_flavor *f)
{
	return container_of(f, struct rpc_gss, flavor);
}

/* ---- INIT and CONTINUE_INIT */

static bool get_token(struct xdr_in *x, void *args)
{
	struct xdr_view *token = args;

	*token = xdr_get_opaque(x, GSS_TOKEN_MAX);
	return xdr_ok(x);
}

static void put_init_res(struct xdr_out *x, const void *res)
{
	gss_init_res_put(x, res);
}

static void note_not_made(struct rpc_call *call, const struct gss_accept *a)
{
	stat_inc(gss_not_made);
	xprt_log_limited(call->msg->xprt, LOG_LEVEL_WARN,
			 "no context of RPCSEC_GSS: %s",
			 *a->why ? a->why : "the client's token is refused");
}

static void set_keys(struct gss_context *c, const struct gss_accept *a)
{
	time_t now = clock_coarse_s();

	c->keys = a->keys;
	c->uid = a->uid;
	c->gid = a->gid;
	c->expires = now + (time_t)MIN(a->seconds, (uint32_t)INT32_MAX);
	stat_inc(gss_made);
}

/* The step of @c gave @a, which is not a failure.  False: it came to
 * nothing. */
static bool keep_step(struct rpc_call *call, struct gss_context *c,
		      const struct gss_accept *a, bool is_first)
{
	struct gss_table *t = &((struct rpc_gss *)call->prog->ctx)->table;
	bool is_made = a->major == GSS_COMPLETE;
	void *making = is_made ? NULL : a->making;
	bool kept;

	if (is_made)
		set_keys(c, a);
	kept = is_first ? gss_table_add(t, c, rpc_call_peer(call), making) :
			  gss_table_update(t, c, making);
	if (!kept && making)
		c->mech->abandon(making);
	return kept;
}

/* Every host can send tokens, and faster than they can be read.  The client of
 * a call that is dropped sends it again. */
static int admit_step(struct rpc_call *call)
{
	struct rpc_gss *gss = call->prog->ctx;
	struct gss_call *gc = gss_call_of(call);

	gc->bytes = call->msg->call_len + CALL_BYTES;
	gc->waits = gss_table_wait(&gss->table, rpc_call_peer(call), gc->bytes);
	if (gc->waits)
		return 0;
	stat_inc(gss_crowded);
	return -ECANCELED;
}

/* On a worker: can wait. */
static int make_step(struct rpc_call *call)
{
	struct rpc_gss *gss = call->prog->ctx;
	struct gss_call *gc = gss_call_of(call);
	struct gss_init_res *res = rpc_res(call);
	struct gss_accept a = { .token = *(struct xdr_view *)rpc_args(call) };

	res->major = gc->is_next ? GSS_NO_CONTEXT : GSS_FAILURE;
	if (!gc->context && !gc->is_next)
		gc->context = gss_context_new(&gss->table);
	if (!gc->context)
		return 0;
	gc->claims = false;
	a.making = gc->context->making;
	gc->context->making = NULL;
	gss->mech->accept(gss->arg, &a);
	res->major = a.major;
	res->minor = a.minor;
	if (a.major != GSS_COMPLETE && a.major != GSS_CONTINUE_NEEDED) {
		note_not_made(call, &a);
		gss_table_remove(&gss->table, gc->context);
		return 0;
	}
	if (!keep_step(call, gc->context, &a, !gc->is_next)) {
		res->major = GSS_FAILURE;
		return 0;
	}
	memcpy(rpc_state(call), a.answer, a.answer_len);
	res->token = (struct xdr_view){ rpc_state(call), a.answer_len };
	res->handle = (struct xdr_view){ gc->context->handle, GSS_HANDLE };
	res->window = gc->seq = GSS_WINDOW;
	gc->is_signed = a.major == GSS_COMPLETE;
	return 0;
}

static struct work_class *leave_control(struct rpc_call *call)
{
	return ((struct rpc_gss *)call->prog->ctx)->makers;
}

_Static_assert(GSS_ANSWER_MAX <= RPC_STATE_SIZE, "room for the answer");
_Static_assert(sizeof(struct gss_init_res) <= RPC_RES_SIZE, "room in a call");

static const struct rpc_version init_version = {
	.vers = GSS_VERSION, .nproc = 1, .procs = &(const struct rpc_proc){
		.name = "INIT", .decode = get_token,
		.steps = { admit_step, rpc_need_worker, make_step },
		.encode = put_init_res, .args_size = sizeof(struct xdr_view),
		.res_size = sizeof(struct gss_init_res),
	},
};

/* ---- DESTROY */

static int destroy(struct rpc_call *call)
{
	struct rpc_gss *gss = call->prog->ctx;

	gss_table_remove(&gss->table, gss_call_of(call)->context);
	return 0;
}

static const struct rpc_version destroy_version = {
	.vers = GSS_VERSION, .nproc = 1, .procs = &(const struct rpc_proc){
		.name = "DESTROY", .steps = { destroy },
	},
};

/* ---- guards */

/* RFC 2203 sections 5.2.3.1 and 5.3.3.2: the checksum of one word. */
static void put_verf(struct rpc_call *call, struct xdr_out *x)
{
	const struct gss_call *gc = gss_call_of(call);
	const struct gss_context *c = gc->context;
	uint8_t mic[GSS_MIC_MAX], word[4];
	struct iovec iov = { word, 4 };
	int n;

	if (!gc->is_signed) {
		rpc_auth_put(x, RPC_AUTH_NONE, (struct xdr_view){ mic, 0 });
		return;
	}
	xdr_set_word(word, gc->seq);
	n = c->mech->sign(c->keys, &iov, 1, mic);
	if (n < 0)
		x->bad = true;
	else
		rpc_auth_put(x, RPCSEC_GSS,
			     (struct xdr_view){ mic, (uint32_t)n });
}

static void release_context(struct rpc_call *call)
{
	struct gss_call *gc = gss_call_of(call);

	if (gc->claims)
		gss_table_disclaim(gc->context->table, gc->context);
	if (gc->context)
		gss_context_put(gc->context);
	if (gc->waits)
		gss_table_waited(gc->waits, gc->bytes);
	*gc = (struct gss_call){ .context = NULL };
}

/* A share of the workers for calls whose arguments take a while to check. */
static struct work_class *opener(struct rpc_call *call)
{
	struct gss_table *t = gss_call_of(call)->context->table;
	const struct rpc_gss *gss = container_of(t, struct rpc_gss, table);

	return call->msg->call_len > UNWRAP_MAX ? gss->openers : NULL;
}

static const struct rpc_guard data_guards[GSS_SERVICES + 1] = {
	[GSS_NONE] = { .put_verf = put_verf, .release = release_context },
	[GSS_INTEGRITY] = {
		.unwrap = gss_integrity_unwrap, .unwrap_on = opener,
		.put_verf = put_verf, .wrap = gss_integrity_wrap,
		.release = release_context,
	},
	[GSS_PRIVACY] = {
		.unwrap = gss_privacy_unwrap, .unwrap_on = opener,
		.put_verf = put_verf, .wrap = gss_privacy_wrap,
		.release = release_context,
	},
};

/* ---- credentials */

static void set_user(struct rpc_call *call, uint32_t uid, uint32_t gid)
{
	call->cred.uid = uid;
	call->cred.gid = gid;
	call->cred.ngids = 0;
}

static enum rpc_auth_stat verify_init(struct rpc_gss *gss,
				      const struct rpc_header *h,
				      const struct gss_cred *cred,
				      struct rpc_call *call)
{
	bool is_next = cred->proc == GSS_CONTINUE;
	struct gss_context *c = NULL;

	if (h->proc != 0 || is_next != (cred->handle.len > 0))
		return RPC_AUTH_BADCRED;
	if (!h->verf_whole || h->verf_flavor != RPC_AUTH_NONE || h->verf.len)
		return RPC_AUTH_BADVERF;
	if (is_next)
		c = gss_table_claim(&gss->table, cred->handle);
	*gss_call_of(call) = (struct gss_call){ .context = c,
						.is_next = is_next,
						.claims = c };
	set_user(call, GSS_NO_USER, GSS_NO_USER);
	call->guard = &gss->init_guard;
	return RPC_AUTH_OK;
}

static bool is_signed(const struct gss_context *c, const struct rpc_header *h)
{
	struct xdr_view head = rpc_header_signed(h);
	struct iovec iov = { (void *)(uintptr_t)head.data, head.len };

	return h->verf_whole && h->verf_flavor == RPCSEC_GSS && head.len &&
	       h->verf.len <= GSS_MIC_MAX &&
	       c->mech->check(c->keys, &iov, 1, h->verf);
}

static bool seq_is_new(struct gss_context *c, uint32_t seq)
{
	bool is_new;

	mutex_lock(&c->lock);
	is_new = gss_window_is_new(&c->window, seq);
	mutex_unlock(&c->lock);
	return is_new;
}

static bool take_seq(struct gss_context *c, uint32_t seq)
{
	bool is_new;

	mutex_lock(&c->lock);
	is_new = gss_window_take(&c->window, seq);
	mutex_unlock(&c->lock);
	return is_new;
}

static enum rpc_auth_stat drop_old_seq(void)
{
	stat_inc(gss_old_seq);
	return RPC_AUTH_DROP;
}

/* RFC 2203 section 5.3.3.1. */
static enum rpc_auth_stat check_call(struct gss_table *t, struct gss_context *c,
				     const struct rpc_header *h, uint32_t seq)
{
	if (!seq_is_new(c, seq))
		return drop_old_seq();
	if (!is_signed(c, h)) {
		stat_inc(gss_bad_sum);
		return RPC_GSS_CREDPROBLEM;
	}
	if (seq > GSS_MAXSEQ)
		return RPC_GSS_CTXPROBLEM;
	if (clock_coarse_s() >= c->expires) {
		stat_inc(gss_stale);
		gss_table_remove(t, c);
		return RPC_GSS_CTXPROBLEM;
	}
	if (!take_seq(c, seq))
		return drop_old_seq();
	/* Only calls of one client can be the first ones of a context. */
	if (!atomic_load_explicit(&c->is_used, memory_order_relaxed)) {
		atomic_store_explicit(&c->is_used, true, memory_order_relaxed);
		gss_table_prove(t, c);
	}
	return RPC_AUTH_OK;
}

static enum rpc_auth_stat verify_call(struct rpc_gss *gss,
				      const struct rpc_header *h,
				      const struct gss_cred *cred,
				      struct rpc_call *call)
{
	struct gss_context *c = gss_table_find(&gss->table, cred->handle);
	enum rpc_auth_stat why;

	if (!c) {
		stat_inc(gss_no_context);
		return RPC_GSS_CREDPROBLEM;
	}
	why = check_call(&gss->table, c, h, cred->seq);
	if (why != RPC_AUTH_OK) {
		gss_context_put(c);
		return why;
	}
	*gss_call_of(call) = (struct gss_call){ .context = c, .seq = cred->seq,
						.is_signed = true };
	call->cred.flavor = gss->mech->pseudo[cred->service];
	set_user(call, c->uid, c->gid);
	call->guard = cred->proc == GSS_DESTROY ?
		      &gss->destroy_guard : &data_guards[cred->service];
	return RPC_AUTH_OK;
}

static bool offers(const struct rpc_gss *gss, uint32_t service)
{
	return service <= GSS_SERVICES && gss->mech->pseudo[service];
}

static enum rpc_auth_stat verify(const struct rpc_flavor *self,
				 const struct rpc_header *h,
				 struct rpc_call *call)
{
	struct rpc_gss *gss = gss_of(self);
	struct gss_cred cred;
	bool whole = gss_cred_get(&h->cred, &cred), makes;

	makes = cred.proc == GSS_INIT || cred.proc == GSS_CONTINUE;
	if (call->msg->xprt->datagram)
		return RPC_AUTH_REJECTEDCRED;
	if (cred.version != GSS_VERSION)
		return makes || !whole ? RPC_AUTH_REJECTEDCRED :
					 RPC_AUTH_BADCRED;
	if (!whole || cred.proc > GSS_DESTROY)
		return RPC_AUTH_BADCRED;
	if (makes)
		return verify_init(gss, h, &cred, call);
	if (!offers(gss, cred.service) ||
	    (cred.proc == GSS_DESTROY && h->proc != 0))
		return RPC_AUTH_BADCRED;
	return verify_call(gss, h, &cred, call);
}

static bool wraps(const struct rpc_header *h)
{
	struct gss_cred cred;

	return gss_cred_get(&h->cred, &cred) && cred.proc == GSS_DATA &&
	       cred.service != GSS_NONE;
}

/* ---- the flavor */

/* The calls that the flavor answers in place of a program. */
static void set_control(struct rpc_gss *gss, struct rpc_program *p,
			struct rpc_guard *g, const struct rpc_version *v)
{
	*p = (struct rpc_program){
		.name = "gss", .nversions = 1, .versions = v, .ctx = gss,
		.leave = leave_control,
	};
	*g = (struct rpc_guard){
		.program = p, .put_verf = put_verf, .release = release_context,
	};
}

int rpc_gss_create(const struct rpc_gss_config *config, struct rpc_gss **out)
{
	struct rpc_gss *gss = calloc(1, sizeof(*gss));
	unsigned n = 0;

	if (!gss)
		return -ENOMEM;
	gss->flavor.flavor = RPCSEC_GSS;
	gss->flavor.verify = verify;
	gss->flavor.wraps = wraps;
	for (unsigned i = GSS_SERVICES; i >= GSS_NONE; i--)
		if (config->mech->pseudo[i])
			gss->flavor.mnt[n++] = config->mech->pseudo[i];
	gss->mech = config->mech;
	gss->arg = config->arg;
	gss->nworkers = config->workers ? config->workers : WORKERS;
	set_control(gss, &gss->init, &gss->init_guard, &init_version);
	set_control(gss, &gss->destroy, &gss->destroy_guard, &destroy_version);
	gss_table_init(&gss->table, config);
	*out = gss;
	return 0;
}

const struct rpc_flavor *rpc_gss_flavor(struct rpc_gss *gss)
{
	return &gss->flavor;
}

int rpc_gss_start(struct rpc_gss *gss, struct rpc_server *server)
{
	gss->makers = work_class_create(server, "gss", gss->nworkers);
	gss->openers = work_class_create(server, "gss data", gss->nworkers);
	if (gss->makers && gss->openers)
		return 0;
	rpc_gss_stop(gss);
	return -ENOMEM;
}

void rpc_gss_stop(struct rpc_gss *gss)
{
	if (gss->makers)
		work_class_destroy(gss->makers);
	if (gss->openers)
		work_class_destroy(gss->openers);
	gss->makers = gss->openers = NULL;
}

void rpc_gss_destroy(struct rpc_gss *gss)
{
	if (!gss)
		return;
	gss_table_fini(&gss->table);
	free(gss);
}

unsigned rpc_gss_contexts(struct rpc_gss *gss)
{
	return gss_table_count(&gss->table);
}
