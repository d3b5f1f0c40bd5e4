/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of RPCSEC_GSS, with the mechanism that keeps no secret.  The first byte
 * of the input chooses the meaning of the rest: all bytes behind the flavor of
 * the credential; or the arguments of a call in an existing context, as they
 * are on the wire, or bare, to be protected.  The second byte says where the
 * message is cut in two segments, as an RDMA transport can deliver it.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/log.h"
#include "rpc/gss.h"
#include "tests/server/fake_program.h"
#include "tests/server/fake_xprt.h"
#include "tests/server/gss_xor.h"

#define INPUT_MAX	65536u
#define TEST_VERS	4u
#define NONCE		7u

/* Of the first byte; a service of 0: all bytes are the input's. */
enum { SERVICE = 3, IS_BARE = 4, PROC_SHIFT = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const struct rpc_flavor *flavors[RPC_FLAVORS_MAX];
static struct rpc_server *server;
static struct fake_xprt conn;
static uint8_t message[INPUT_MAX + 2048];
static uint8_t bare[INPUT_MAX + 256];
static uint8_t handle[RPC_MAX_AUTH];
static struct gss_cred cred = { .version = GSS_VERSION };
static uint32_t xid;
static void *keys;

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* All up to the verifier. */
static void put_head(struct xdr_out *x, uint32_t proc)
{
	struct rpc_header h = {
		.xid = ++xid, .prog = TEST_PROG, .vers = TEST_VERS,
		.proc = proc, .flavor = RPCSEC_GSS,
	};
	uint8_t body[RPC_MAX_AUTH];
	struct xdr_out c;

	xdr_out_init(&c, body, sizeof(body));
	gss_cred_put(&c, &cred);
	h.cred = (struct xdr_view){ body, (uint32_t)xdr_out_len(&c) };
	xdr_out_init(x, message, sizeof(message));
	rpc_header_call_signed(x, &h);
}

static void put_verf(struct xdr_out *x)
{
	struct iovec iov = { x->start, xdr_out_len(x) };
	uint8_t mic[GSS_MIC_MAX];

	rpc_auth_put(x, RPCSEC_GSS, (struct xdr_view){
		mic, (uint32_t)gss_xor.sign(keys, &iov, 1, mic) });
}

static void put_bytes(struct xdr_out *x, const uint8_t *data, size_t len)
{
	if (len)
		memcpy(x->p, data, len);
	x->p += len;
}

/* The arguments, as a client protects them. */
static void put_args(struct xdr_out *x, const uint8_t *data, size_t len)
{
	uint8_t *p = bare + GSS_FRONT_MAX, mic[GSS_MIC_MAX];
	struct iovec iov = { p, 4 + len };
	uint32_t all = 4 + (uint32_t)len, front = gss_xor.front, n;

	xdr_set_word(p, cred.seq);
	if (len)
		memcpy(p + 4, data, len);
	if (cred.service == GSS_INTEGRITY) {
		n = (uint32_t)gss_xor.sign(keys, &iov, 1, mic);
		xdr_put_opaque(x, p, all);
		xdr_put_opaque(x, mic, n);
	} else if (cred.service == GSS_PRIVACY) {
		n = (uint32_t)gss_xor.wrap(keys, &iov, 1, p - front, p + all);
		xdr_put_opaque(x, p - front, front + all + n);
	} else {
		put_bytes(x, data, len);
	}
}

/* Sends the message in two pieces, and checks that the reply has a form of RFC
 * 5531 section 9.  Leaves @x behind the reply's header.  NULL: no reply, or an
 * error. */
static struct fake_call *exchange(const struct xdr_out *out, uint32_t cut,
				  struct xdr_in *x)
{
	uint32_t len = (uint32_t)xdr_out_len(out), is = 0;
	const struct xdr_seg segs[2] = {
		{ out->start, cut }, { out->start + cut, len - cut },
	};
	struct xprt_sink *sink = rpc_server_sink(server);
	struct fake_call *c;
	int err = -1;

	sink->read_chunk_ok(sink, out->start, len, cut);
	c = fake_send_segs(&conn, segs, 2);
	fake_wait(c);
	if (!c->dropped) {
		xdr_in_init(x, c->reply, c->len);
		err = rpc_header_reply(x, &is, NULL);
		must(err != -EBADMSG && is == xdr_word(out->start) &&
		     c->len % 4 == 0);
	}
	if (err == 0)
		return c;
	fake_free(c);
	return NULL;
}

static void make_context(void)
{
	const struct gss_xor_token t = { .nonce = NONCE, .uid = 1, .gid = 1,
					 .seconds = UINT32_MAX };
	struct gss_init_res res;
	struct fake_call *c;
	uint8_t token[20];
	struct xdr_view v;
	struct xdr_out x;
	struct xdr_in in;

	cred.proc = GSS_INIT;
	put_head(&x, 0);
	rpc_auth_put(&x, RPC_AUTH_NONE, (struct xdr_view){ token, 0 });
	v = gss_xor_put(token, &t);
	xdr_put_opaque(&x, v.data, v.len);
	c = exchange(&x, (uint32_t)xdr_out_len(&x), &in);
	must(c && gss_init_res_get(&in, &res) && res.major == GSS_COMPLETE);
	memcpy(handle, res.handle.data, res.handle.len);
	cred.handle = (struct xdr_view){ handle, res.handle.len };
	fake_free(c);
	keys = gss_xor_keys(NONCE);
	/* A first call: then no other context pushes it out. */
	cred.proc = GSS_DATA;
	cred.service = GSS_NONE;
	cred.seq = 1;
	put_head(&x, 0);
	put_verf(&x);
	c = exchange(&x, (uint32_t)xdr_out_len(&x), &in);
	must(c != NULL);
	fake_free(c);
}

static void start(void)
{
	const struct rpc_gss_config gc = { .mech = &gss_xor };
	struct rpc_server_config config = {
		.nworkers = 2, .drc_bytes = 64 << 10, .flavors = flavors,
	};
	struct rpc_gss *gss;

	log_threshold = LOG_LEVEL_ERR;
	test_late.at_once = true;	/* no other thread resumes a call */
	must(rpc_gss_create(&gc, &gss) == 0);
	rpc_flavors_with(rpc_gss_flavor(gss), flavors);
	must(pool_create(64u << 20, &config.pool) == 0 &&
	     rpc_server_create(&config, &server) == 0 &&
	     rpc_server_add(server, &test_program) == 0 &&
	     rpc_gss_start(gss, server) == 0);
	fake_xprt_init(&conn, rpc_server_sink(server), config.pool,
		       "2001:db8::1", 1023);
	make_context();
}

/* Begins the message with the fields that the input does not choose. */
static void put_begin(struct xdr_out *x, uint32_t proc)
{
	if (cred.service) {
		cred.seq++;
		put_head(x, proc);
		put_verf(x);
		return;
	}
	put_head(x, proc);
	x->p = x->start + 28;		/* behind the flavor */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint32_t cut, behind;
	struct fake_call *c;
	struct xdr_out x;
	struct xdr_in in;

	if (!server)
		start();
	if (len < 2 || len > INPUT_MAX)
		return 0;
	cred.service = data[0] & SERVICE;
	put_begin(&x, data[0] >> PROC_SHIFT);
	behind = (uint32_t)xdr_out_len(&x);
	if (cred.service && data[0] & IS_BARE)
		put_args(&x, data + 2, len - 2);
	else
		put_bytes(&x, data + 2, len - 2);
	must(!x.bad);
	cut = MIN(behind + data[1] * 4u, (uint32_t)xdr_out_len(&x) & ~3u);
	c = exchange(&x, cut, &in);
	if (c)
		fake_free(c);
	return 0;
}
