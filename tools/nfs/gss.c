/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gss - calls with RPCSEC_GSS are made, and their replies checked.
 *
 * A reply counts only once its checksum is verified.  A refusal has no checksum
 * (RFC 2203 section 5.3.3.3): it can cost a new context, and never leads to a
 * weaker flavor.
 */
#include "tools/nfs/gss.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <gssapi/gssapi_ext.h>
#include <gssapi/gssapi_krb5.h>

#include "lib/thread.h"
#include "lib/util.h"

enum { MSG_DENIED = 1, AUTH_ERROR = 1 };

/* Two checksums, a handle, and the overhead of encryption, for any enctype. */
enum { EXTRA_MAX = 1024 };

static struct gss_context *newest(struct gss_login *l)
{
	return &l->contexts[l->number % 2];
}

/* ---- contexts */

/* Takes the server's token, which is empty at first; the lock is held, or no
 * other thread has the context yet. */
static int step_login(struct gss_login *l, struct xdr_view token)
{
	gss_buffer_desc in = { token.len, (void *)(uintptr_t)token.data };
	OM_uint32 flags = GSS_C_MUTUAL_FLAG | GSS_C_INTEG_FLAG |
			  GSS_C_CONF_FLAG;
	OM_uint32 major, minor, got = 0, ignored;

	gss_release_buffer(&ignored, &l->token);
	l->is_sent = false;
	major = gss_init_sec_context(&minor, GSS_C_NO_CREDENTIAL,
				     &newest(l)->ctx, l->name,
				     (gss_OID)gss_mech_krb5, flags, 0, NULL,
				     &in, NULL, &l->token, &got, NULL);
	if (GSS_ERROR(major))
		return gss_fail(l->host, major, minor, "with the ticket");
	if (major == GSS_S_COMPLETE && (got & flags) != flags)
		return gss_fail(l->host, 0, 0, "a context that proves, signs "
				"and encrypts");
	return major == GSS_S_COMPLETE ? 0 : 1;
}

/* Makes the first token of the newest context. */
static int start_context(struct gss_login *l)
{
	struct gss_context *c = newest(l);
	OM_uint32 minor;
	int err;

	gss_delete_sec_context(&minor, &c->ctx, NULL);
	c->handle_len = c->seq = 0;
	err = step_login(l, (struct xdr_view){ NULL, 0 });
	return err < 0 ? err : 0;
}

int gss_login_begin(struct gss_login *l)
{
	int err;

	mutex_lock(&l->lock);
	l->number++;
	l->usable = false;
	err = start_context(l);
	mutex_unlock(&l->lock);
	return err;
}

int gss_login_begin_again(struct gss_login *l)
{
	int err;

	mutex_lock(&l->lock);
	err = start_context(l);
	mutex_unlock(&l->lock);
	return err;
}

bool gss_login_token(struct gss_login *l, struct nfsc_op *op)
{
	bool more;

	mutex_lock(&l->lock);
	more = !l->usable && l->token.length > 0 && !l->is_sent;
	op->count = (uint32_t)l->token.length;
	mutex_unlock(&l->lock);
	return more;
}

bool gss_login_usable(struct gss_login *l)
{
	bool usable;

	mutex_lock(&l->lock);
	usable = l->usable;
	mutex_unlock(&l->lock);
	return usable;
}

void gss_login_refuse(struct gss_login *l, uint32_t number)
{
	mutex_lock(&l->lock);
	if (number == l->number)
		l->usable = false;
	mutex_unlock(&l->lock);
}

/* ---- calls */

static void put_gss_header(struct xdr_out *x, uint32_t xid,
		       const struct gss_cred *cred)
{
	uint8_t body[RPC_MAX_AUTH];
	struct rpc_header h = { .xid = xid, .prog = RPC_NFS, .vers = 3,
				.flavor = RPCSEC_GSS };
	struct xdr_out c;

	xdr_out_init(&c, body, sizeof(body));
	gss_cred_put(&c, cred);
	h.cred = (struct xdr_view){ body, (uint32_t)xdr_out_len(&c) };
	rpc_header_call_signed(x, &h);
}

/* The procedure's number, in the header that begins @x. */
static void set_procedure(struct xdr_out *x, uint32_t procedure)
{
	if (!x->bad)
		xdr_set_word(x->start + 20, procedure);
}

static int add_mic(gss_ctx_id_t ctx, struct xdr_out *x, const void *data,
		   size_t len, bool is_verf)
{
	gss_buffer_desc in = { len, (void *)(uintptr_t)data }, mic;
	OM_uint32 minor;

	if (x->bad)
		return -ENAMETOOLONG;
	if (GSS_ERROR(gss_get_mic(&minor, ctx, GSS_C_QOP_DEFAULT, &in, &mic)))
		return -EKEYREVOKED;
	if (is_verf)
		xdr_put_u32(x, RPCSEC_GSS);
	xdr_put_opaque(x, mic.value, (uint32_t)mic.length);
	gss_release_buffer(&minor, &mic);
	return 0;
}

static int put_encrypted(gss_ctx_id_t ctx, struct xdr_out *x,
			 const uint8_t *plain)
{
	gss_buffer_desc in = { (size_t)(x->p - plain),
			       (void *)(uintptr_t)plain }, out;
	OM_uint32 minor;
	int private;

	if (GSS_ERROR(gss_wrap(&minor, ctx, 1, GSS_C_QOP_DEFAULT, &in,
			       &private, &out)))
		return -EKEYREVOKED;
	x->p -= in.length + 4;
	xdr_put_opaque(x, out.value, (uint32_t)out.length);
	gss_release_buffer(&minor, &out);
	return private ? 0 : -EKEYREVOKED;
}

/* Arguments as integrity and privacy have them (RFC 2203 section 5.3.2). */
static int put_body(struct gss_login *l, struct gss_context *c,
		    struct xdr_out *x, const struct nfsc_op *op)
{
	uint8_t *length = x->p, *plain;

	xdr_put_u32(x, 0);
	plain = x->p;
	xdr_put_u32(x, c->seq);
	nfsc_put_args(x, op);
	if (op->kind == NFS_OP_WRITE)
		xdr_put_fixed(x, op->data, op->count);
	if (x->bad)
		return -ENAMETOOLONG;
	if (l->service == GSS_PRIVACY)
		return put_encrypted(c->ctx, x, plain);
	xdr_set_word(length, (uint32_t)(x->p - plain));
	return add_mic(c->ctx, x, plain, (size_t)(x->p - plain), false);
}

/* A token is sent once: the server can have seen it although no answer came,
 * and refuses it as a replay then. */
static int put_proof(struct gss_login *l, struct xdr_out *x, uint32_t xid)
{
	struct gss_context *c = newest(l);
	const struct gss_cred cred = {
		.version = GSS_VERSION,
		.proc = c->handle_len ? GSS_CONTINUE : GSS_INIT,
		.handle = { c->handle, c->handle_len },
	};

	if (l->is_sent)
		return -EKEYREVOKED;
	l->is_sent = true;
	put_gss_header(x, xid, &cred);
	rpc_auth_put(x, RPC_AUTH_NONE, (struct xdr_view){ NULL, 0 });
	xdr_put_opaque(x, l->token.value, (uint32_t)l->token.length);
	return 0;
}

static int put_data(struct gss_login *l, struct xdr_out *x, uint32_t xid,
		    struct nfsc_op *op)
{
	struct gss_context *c = newest(l);
	struct gss_cred cred = {
		.version = GSS_VERSION, .proc = op->kind == NFS_OP_DISOWN ?
						GSS_DESTROY : GSS_DATA,
		.service = l->service, .handle = { c->handle, c->handle_len },
	};
	int err;

	if (c->seq + 1 >= GSS_MAXSEQ)
		l->usable = false;
	/* 0: the caller then refuses no context, as the next one can be in
	 * the making. */
	op->context = l->usable ? l->number : 0;
	if (!l->usable)
		return -EKEYREVOKED;
	op->number = cred.seq = ++c->seq;
	put_gss_header(x, xid, &cred);
	set_procedure(x, nfsc_procedure(op->kind));
	err = add_mic(c->ctx, x, x->start, xdr_out_len(x), true);
	if (err < 0 || op->kind == NFS_OP_DISOWN)
		return err;
	if (l->flavor.wraps)
		return put_body(l, c, x, op);
	nfsc_put_args(x, op);
	return 0;
}

static int put_gss_call(struct nfsc_flavor *f, struct xdr_out *x, uint32_t xid,
		    struct nfsc_op *op)
{
	struct gss_login *l = container_of(f, struct gss_login, flavor);
	int err;

	mutex_lock(&l->lock);
	err = op->kind == NFS_OP_PROVE ? put_proof(l, x, xid) :
					 put_data(l, x, xid, op);
	mutex_unlock(&l->lock);
	return err;
}

/* ---- replies */

/* True if the server refuses the context, and would take another. */
static bool is_refusal(struct xdr_in x)
{
	uint32_t stat;

	xdr_get_u32(&x);
	xdr_get_u32(&x);
	if (xdr_get_u32(&x) != MSG_DENIED || xdr_get_u32(&x) != AUTH_ERROR)
		return false;
	stat = xdr_get_u32(&x);
	return xdr_ok(&x) &&
	       (stat == RPC_GSS_CREDPROBLEM || stat == RPC_GSS_CTXPROBLEM);
}

static bool check_mic(gss_ctx_id_t ctx, const void *data, size_t len,
		      struct xdr_view mic)
{
	gss_buffer_desc in = { len, (void *)(uintptr_t)data };
	gss_buffer_desc sum = { mic.len, (void *)(uintptr_t)mic.data };
	OM_uint32 minor;

	return gss_verify_mic(&minor, ctx, &in, &sum, NULL) == GSS_S_COMPLETE;
}

static bool check_reply_verf(gss_ctx_id_t ctx,
			     const struct rpc_opaque_auth *verf,
			     uint32_t number)
{
	uint8_t word[4];

	xdr_set_word(word, number);
	return verf->flavor == RPCSEC_GSS &&
	       check_mic(ctx, word, sizeof(word), verf->body);
}

/* Decrypts where it is. */
static bool decrypt(gss_ctx_id_t ctx, struct xdr_view *body)
{
	gss_iov_buffer_desc iov[2] = {
		{ .type = GSS_IOV_BUFFER_TYPE_STREAM, .buffer = {
			body->len, (void *)(uintptr_t)body->data } },
		{ .type = GSS_IOV_BUFFER_TYPE_DATA },
	};
	OM_uint32 minor;
	int private;

	if (gss_unwrap_iov(&minor, ctx, &private, NULL, iov, 2) !=
	    GSS_S_COMPLETE || !private)
		return false;
	*body = (struct xdr_view){ iov[1].buffer.value,
				   (uint32_t)iov[1].buffer.length };
	return true;
}

/* Makes @x the bare results (section 5.3.3.4). */
static int open_results(struct gss_login *l, struct gss_context *c,
		     struct xdr_in *x, uint32_t number)
{
	struct xdr_view body = xdr_get_opaque(x, UINT32_MAX), mic;
	bool good;

	if (l->service == GSS_INTEGRITY) {
		mic = xdr_get_opaque(x, EXTRA_MAX);
		good = xdr_ok(x) &&
		       check_mic(c->ctx, body.data, body.len, mic);
	} else {
		good = xdr_ok(x) && decrypt(c->ctx, &body);
	}
	if (!good)
		return -EBADMSG;
	xdr_in_init(x, body.data, body.len);
	return xdr_get_u32(x) == number && xdr_ok(x) ? 0 : -EBADMSG;
}

/* Takes a step of the newest context.  The verifier covers the window. */
static int get_proof(struct gss_login *l, struct xdr_in *x, uint32_t xid)
{
	struct gss_context *c = newest(l);
	struct rpc_opaque_auth verf;
	struct gss_init_res res;
	uint32_t got;
	int err = rpc_header_reply(x, &got, &verf);

	if (err == -EACCES)
		return gss_fail(l->host, 0, 0, "a server that takes Kerberos");
	if (err < 0 || got != xid)
		return err < 0 ? err : -EBADMSG;
	if (!gss_init_res_get(x, &res) || res.handle.len > GSS_HANDLE_MAX)
		return -EBADMSG;
	memcpy(c->handle, res.handle.data, res.handle.len);
	c->handle_len = res.handle.len;
	if (res.token.len > 0)
		err = step_login(l, res.token);
	else
		err = 1;
	if (res.major > GSS_CONTINUE_NEEDED)
		return err < 0 ? err :
		       gss_fail(l->host, res.major, res.minor, NULL);
	if (err < 0 || res.major == GSS_CONTINUE_NEEDED)
		return MIN(err, 0);
	if (err > 0 || !check_reply_verf(c->ctx, &verf, res.window))
		return gss_fail(l->host, 0, 0, "a server that proves itself");
	l->usable = true;
	return 0;
}

static int get_data(struct gss_login *l, struct xdr_in *x, uint32_t xid,
		    const struct nfsc_op *op)
{
	struct gss_context *c = &l->contexts[op->context % 2];
	struct rpc_opaque_auth verf;
	uint32_t got;
	int err;

	if (is_refusal(*x))
		return -EKEYREVOKED;
	err = rpc_header_reply(x, &got, &verf);
	if (err == -EBADMSG || err == -EACCES || got != xid)
		return got == xid ? err : -EBADMSG;
	if (l->number - op->context > 1 ||
	    !check_reply_verf(c->ctx, &verf, op->number))
		return -EBADMSG;
	if (err < 0 || !l->flavor.wraps || op->kind == NFS_OP_DISOWN)
		return err;
	return open_results(l, c, x, op->number);
}

static int get_gss_reply(struct nfsc_flavor *f, struct xdr_in *x, uint32_t xid,
		     struct nfsc_op *op)
{
	struct gss_login *l = container_of(f, struct gss_login, flavor);
	int err;

	mutex_lock(&l->lock);
	err = op->kind == NFS_OP_PROVE ? get_proof(l, x, xid) :
					 get_data(l, x, xid, op);
	mutex_unlock(&l->lock);
	return err;
}

/* ---- logins */

int gss_login_open(struct gss_login *l, uint32_t service, const char *host)
{
	char text[300];
	gss_buffer_desc name = { 0, text };
	OM_uint32 major, minor;

	memset(l, 0, sizeof(*l));
	l->flavor = (struct nfsc_flavor){
		.wraps = service != GSS_NONE, .extra = EXTRA_MAX,
		.put = put_gss_call, .get = get_gss_reply,
	};
	l->service = service;
	l->host = host;
	pthread_mutex_init(&l->lock, NULL);
	name.length = (size_t)snprintf(text, sizeof(text), "nfs@%s", host);
	major = gss_import_name(&minor, &name, GSS_C_NT_HOSTBASED_SERVICE,
				&l->name);
	if (!GSS_ERROR(major))
		return 0;
	gss_login_close(l);
	return gss_fail(host, major, minor, "with the server's name");
}

void gss_login_close(struct gss_login *l)
{
	OM_uint32 minor;

	gss_release_buffer(&minor, &l->token);
	for (unsigned i = 0; i < ARRAY_SIZE(l->contexts); i++)
		gss_delete_sec_context(&minor, &l->contexts[i].ctx, NULL);
	gss_release_name(&minor, &l->name);
	pthread_mutex_destroy(&l->lock);
}
