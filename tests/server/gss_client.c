/* SPDX-License-Identifier: BSD-2-Clause */
/* gss_client - a client of RPCSEC_GSS that can lie. */
#include "tests/server/gss_client.h"

#include "lib/log.h"
#include "rpc/gss.h"
#include "rpc/gss_mech.h"
#include "tests/unit/runner.h"

struct rpc_gss *gss_doors_open(struct doors *d,
			       const struct rpc_gss_config *config,
			       const char *exports)
{
	static const struct rpc_flavor *flavors[2];
	struct harness_config hc = {
		.exports = exports, .krb5 = true, .flavors = flavors,
	};

	ck_assert_int_eq(rpc_gss_create(config, &hc.gss), 0);
	flavors[0] = rpc_gss_flavor(hc.gss);
	log_threshold = LOG_LEVEL_ERR;
	doors_open(d, &hc);
	return hc.gss;
}

void gss_client_open(struct gss_client *g, struct caller *c,
		     const struct gss_mech *mech)
{
	memset(g, 0, offsetof(struct gss_client, bare));
	g->c = c;
	g->mech = mech;
	g->version = GSS_VERSION;
	g->service = GSS_NONE;
}

static void put_header(struct gss_client *g, struct xdr_out *x)
{
	const struct gss_cred cred = {
		.version = g->version, .proc = g->proc, .seq = g->seq,
		.service = g->service, .handle = { g->handle, g->handle_len },
	};
	uint8_t body[RPC_MAX_AUTH];
	struct rpc_header h = {
		.xid = ++g->c->xid, .prog = g->prog, .vers = g->vers,
		.proc = g->procnum, .flavor = RPCSEC_GSS,
	};
	struct xdr_out c;

	xdr_out_init(&c, body, sizeof(body));
	gss_cred_put(&c, &cred);
	h.cred = (struct xdr_view){ body, (uint32_t)xdr_out_len(&c) };
	xdr_out_init(x, g->call + 4, sizeof(g->call) - 4);
	rpc_header_call_signed(x, &h);
}

static void put_verf(struct gss_client *g, struct xdr_out *x)
{
	struct iovec iov = { x->start, xdr_out_len(x) };
	uint8_t mic[GSS_MIC_MAX];
	int n;

	if (g->no_verf || g->proc == GSS_INIT || g->proc == GSS_CONTINUE) {
		rpc_auth_put(x, g->odd_verf, (struct xdr_view){ mic, 0 });
		return;
	}
	n = g->mech->sign(g->keys, &iov, 1, mic);
	ck_assert_int_gt(n, 0);
	mic[n - 1] ^= g->bad_verf;
	rpc_auth_put(x, g->odd_verf ? g->odd_verf : RPCSEC_GSS,
		     (struct xdr_view){ mic, (uint32_t)n });
}

/* Reads the header of the reply.  As caller_send(). */
static uint32_t exchange(struct gss_client *g, struct xdr_out *x)
{
	uint32_t len;

	ck_assert(!x->bad);
	len = caller_exchange(g->c, g->call, (uint32_t)xdr_out_len(x),
			      g->reply, sizeof(g->reply));
	xdr_in_init(&g->res, g->reply, len);
	ck_assert_uint_eq(xdr_get_u32(&g->res), g->c->xid);
	ck_assert_uint_eq(xdr_get_u32(&g->res), 1);
	if (xdr_get_u32(&g->res) != 0) {
		ck_assert_uint_eq(xdr_get_u32(&g->res), 1);
		return CALLER_DENIED + xdr_get_u32(&g->res);
	}
	g->verf_flavor = xdr_get_u32(&g->res);
	g->verf = xdr_get_opaque(&g->res, RPC_MAX_AUTH);
	return xdr_get_u32(&g->res);
}

static bool signs(struct gss_client *g, uint32_t number)
{
	uint8_t word[4];
	struct iovec iov = { word, 4 };

	xdr_set_word(word, number);
	return g->verf_flavor == RPCSEC_GSS &&
	       g->mech->check(g->keys, &iov, 1, g->verf);
}

uint32_t gss_client_init(struct gss_client *g, uint32_t proc,
			 struct xdr_view token)
{
	uint32_t service = g->service, stat;
	struct xdr_out x;

	g->proc = proc;
	g->service = 0;				/* it is ignored */
	put_header(g, &x);
	put_verf(g, &x);
	xdr_put_opaque(&x, token.data, token.len);
	g->service = service;
	g->proc = GSS_DATA;
	stat = exchange(g, &x);
	if (stat != RPC_SUCCESS)
		return stat;
	ck_assert(gss_init_res_get(&g->res, &g->init));
	ck_assert_uint_eq(xdr_left(&g->res), 0);
	ck_assert_uint_le(g->init.handle.len, sizeof(g->handle));
	memcpy(g->handle, g->init.handle.data, g->init.handle.len);
	g->handle_len = g->init.handle.len;
	return stat;
}

bool gss_client_take(struct gss_client *g, void *keys)
{
	g->keys = keys;
	return signs(g, g->init.window);
}

void gss_client_begin(struct gss_client *g, uint32_t prog, uint32_t vers,
		      uint32_t procnum)
{
	g->prog = prog;
	g->vers = vers;
	g->procnum = procnum;
	xdr_out_init(&g->args, g->bare + 64, sizeof(g->bare) - 128);
	xdr_put_u32(&g->args, 0);
}

static void put_integrity(struct gss_client *g, struct xdr_out *x)
{
	uint32_t len = (uint32_t)xdr_out_len(&g->args);
	struct iovec iov = { g->args.start, len };
	uint8_t mic[GSS_MIC_MAX];
	int n = g->mech->sign(g->keys, &iov, 1, mic);

	ck_assert_int_gt(n, 0);
	mic[0] ^= g->bad_body;
	xdr_put_opaque(x, g->args.start, len);
	xdr_put_opaque(x, mic, (uint32_t)n);
}

static void put_privacy(struct gss_client *g, struct xdr_out *x)
{
	uint32_t front = g->mech->front;
	size_t len = xdr_out_len(&g->args);
	struct iovec iov = { g->args.start, len };
	uint8_t back[GSS_BACK_MAX];
	int n = g->mech->wrap(g->keys, &iov, 1, g->args.start - front, back);

	ck_assert_int_ge(n, 0);
	memcpy(g->args.p, back, (size_t)n);
	g->args.p[-1] ^= g->bad_body;
	xdr_put_opaque(x, g->args.start - front,
		       front + (uint32_t)len + (uint32_t)n);
}

uint32_t gss_client_make(struct gss_client *g)
{
	struct xdr_out x;

	g->seq++;
	put_header(g, &x);
	put_verf(g, &x);
	xdr_set_word(g->args.start, g->seq + g->more_seq);
	if (g->proc != GSS_DATA)
		;
	else if (g->service == GSS_INTEGRITY)
		put_integrity(g, &x);
	else if (g->service == GSS_PRIVACY)
		put_privacy(g, &x);
	else
		xdr_put_fixed(&x, g->args.start + 4,
			      (uint32_t)xdr_out_len(&g->args) - 4);
	ck_assert(!x.bad);
	return (uint32_t)xdr_out_len(&x);
}

/* Makes g->res the bare results. */
static void open_results(struct gss_client *g)
{
	struct xdr_view body = xdr_get_opaque(&g->res, GSS_CLIENT_BUF), mic;
	struct iovec iov = { (void *)(uintptr_t)body.data, body.len };

	if (g->service == GSS_INTEGRITY) {
		mic = xdr_get_opaque(&g->res, GSS_MIC_MAX);
		ck_assert(g->mech->check(g->keys, &iov, 1, mic));
	} else {
		ck_assert_int_eq(g->mech->unwrap(g->keys, &iov, 1), 1);
	}
	ck_assert(xdr_ok(&g->res));
	ck_assert_uint_eq(xdr_left(&g->res), 0);
	xdr_in_init(&g->res, iov.iov_base, iov.iov_len);
	ck_assert_uint_eq(xdr_get_u32(&g->res), g->seq);
}

uint32_t gss_client_send(struct gss_client *g)
{
	struct xdr_out x;
	uint32_t stat;

	xdr_out_init(&x, g->call + 4, sizeof(g->call) - 4);
	x.p += gss_client_make(g);
	stat = exchange(g, &x);
	if (stat >= CALLER_DENIED)
		return stat;
	ck_assert(signs(g, g->seq));
	if (stat == RPC_SUCCESS && g->proc == GSS_DATA &&
	    g->service != GSS_NONE)
		open_results(g);
	return stat;
}

void gss_client_nfs(struct gss_client *g, uint32_t procnum,
		    const struct nfs3_fh *fh)
{
	gss_client_begin(g, NFS3_PROGRAM, NFS3_VERSION, procnum);
	xdr_put_opaque(&g->args, fh->data, fh->len);
}

void gss_client_ok(struct gss_client *g)
{
	ck_assert_uint_eq(gss_client_send(g), RPC_SUCCESS);
	ck_assert_uint_eq(xdr_get_u32(&g->res), NFS3_OK);
}

uint32_t gss_client_destroy(struct gss_client *g)
{
	uint32_t stat;

	gss_client_begin(g, g->prog, g->vers, 0);
	g->proc = GSS_DESTROY;
	stat = gss_client_send(g);
	g->proc = GSS_DATA;
	return stat;
}
