/* SPDX-License-Identifier: BSD-2-Clause */
/* RPCSEC_GSS over RDMA: chunks, and replies around each bound (RFC 8166 section
 * 6.1, 8.2.2). */
#include "rpc/gss.h"
#include "tests/server/gss_client.h"
#include "tests/server/gss_xor.h"
#include "tests/unit/runner.h"
#include "transport/rpcrdma/proto.h"
#include "wire/nfs3.h"

enum { FILE_LEN = 9001, INLINE = 4096, SINK = 16384 };

static struct rpc_gss *gss;
static struct doors d;
static struct caller c;
static struct gss_client g;
static struct nfs3_fh top, file;
static uint8_t data[FILE_LEN], sink[SINK];

static void begin_write(uint32_t len)
{
	gss_client_nfs(&g, NFSPROC3_WRITE, &file);
	xdr_put_u64(&g.args, 0);
	xdr_put_u32(&g.args, len);
	xdr_put_u32(&g.args, 0);
	xdr_put_u32(&g.args, len);
}

/* A context of root, and a file with the data. */
static void setup(enum door door)
{
	static const struct rpc_gss_config config = { .mech = &gss_xor };
	const struct gss_xor_token t = { .nonce = 5, .seconds = 100 };
	uint8_t token[20];

	gss = gss_doors_open(&d, &config, "/mem 127.0.0.1(rw,insecure,"
			     "no_root_squash,sec=krb5p:krb5i:krb5)\n");
	harness_root(&d.srv, "/mem", &top);
	caller_open(&c, &d, door, false);
	gss_client_open(&g, &c, &gss_xor);
	g.prog = NFS3_PROGRAM;
	g.vers = 3;
	ck_assert_uint_eq(gss_client_init(&g, GSS_INIT, gss_xor_put(token, &t)),
			  RPC_SUCCESS);
	ck_assert(gss_client_take(&g, gss_xor_keys(t.nonce)));
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + (i >> 9));
	gss_client_nfs(&g, NFSPROC3_CREATE, &top);
	xdr_put_string(&g.args, "f");
	for (int i = 0; i < 7; i++)
		xdr_put_u32(&g.args, 0);
	gss_client_ok(&g);
	ck_assert(xdr_get_bool(&g.res));
	file = harness_get_fh(&g.res);
	begin_write(FILE_LEN);
	xdr_put_fixed(&g.args, data, FILE_LEN);
	gss_client_ok(&g);
}

static void teardown(void)
{
	gss_xor.free(g.keys);
	caller_close(&c);
	doors_close(&d);
	rpc_gss_destroy(gss);
	ck_assert_uint_eq(gss_xor_count(), 0);
}

static void begin_read(uint32_t len)
{
	gss_client_nfs(&g, NFSPROC3_READ, &file);
	xdr_put_u64(&g.args, 0);
	xdr_put_u32(&g.args, len);
}

/* Reads @len bytes, which are in the reply, or in the sink. */
static void read_data(uint32_t len, bool reduced)
{
	begin_read(len);
	gss_client_ok(&g);
	xdr_get_fixed(&g.res, 88 + 8);
	ck_assert_uint_eq(xdr_get_u32(&g.res), len);
	ck_assert_mem_eq(reduced ? sink : xdr_get_fixed(&g.res, len).data, data,
			 len);
	ck_assert_uint_eq(xdr_left(&g.res), 0);
}

/* Only results in clear are. */
TEST_LOOP(results_that_are_wrapped_are_not_reduced, 3 * DOOR_IWARP, 3 * NDOORS)
{
	uint32_t service = GSS_NONE + (uint32_t)_i % 3;

	setup((enum door)(_i / 3));
	g.service = service;
	for (uint32_t len = 1000; len <= FILE_LEN; len += 4001) {
		memset(sink, 0xee, sizeof(sink));
		c.write = rpcrdma_memory_at(sink, sizeof(sink));
		read_data(len, service == GSS_NONE);
		ck_assert_uint_eq(c.req.written[0],
				  service == GSS_NONE ? len : 0);
		for (size_t i = c.req.written[0]; i < sizeof(sink); i++)
			ck_assert_uint_eq(sink[i], 0xee);
		ck_assert_uint_eq(c.req.nomsg,
				  service != GSS_NONE && len > INLINE);
	}
	teardown();
}

/* The transport looks at it before it reads any. */
TEST(no_part_of_wrapped_arguments_is_reduced)
{
	struct xprt_sink *to;
	uint32_t len;

	setup(DOOR_LOOP);
	to = rpc_server_sink(d.srv.server);
	for (uint32_t s = GSS_NONE; s <= GSS_PRIVACY; s++) {
		/* The words decode as a WRITE's in any case. */
		g.service = GSS_NONE;
		begin_write(4000);
		len = gss_client_make(&g);
		/* Behind xid, type, three numbers, procedure and flavor. */
		xdr_set_word(g.call + 4 + 28 + 16, s);
		ck_assert_uint_eq(to->read_chunk_ok(to, g.call + 4, len, len),
				  s == GSS_NONE);
	}
	teardown();
}

/* Reads @len bytes with a Reply chunk of @room.  As caller_try(). */
static int try_read(uint32_t len, uint32_t room)
{
	uint32_t n;

	begin_read(len);
	n = gss_client_make(&g);
	return caller_try(&c, g.call, n, g.reply, room);
}

/* Inline up to the bound with its wrapping, and then by the Reply chunk, which
 * has to hold the wrapping as well. */
TEST_LOOP(a_wrapped_reply_goes_where_it_fits, 3 * DOOR_IWARP, 3 * NDOORS)
{
	uint32_t len, most;
	bool nomsg = false;

	setup((enum door)(_i / 3));
	g.service = GSS_NONE + (uint32_t)_i % 3;
	for (len = INLINE - 400; len <= INLINE; len++) {
		read_data(len, false);
		/* RDMA's header: seven words, and of the Reply chunk that is
		 * not used the number of segments, and one of four words. */
		most = INLINE - 4 * (7 + 1 + 4);
		ck_assert_uint_eq(c.req.nomsg, c.req.reply_len > most);
		nomsg |= c.req.nomsg;
		ck_assert(nomsg == c.req.nomsg);
	}
	ck_assert(nomsg);
	read_data(len, false);
	most = c.req.reply_len;
	ck_assert_int_eq(try_read(len, most), 0);
	ck_assert_int_eq(try_read(len, most - 4), -EREMOTEIO);
	ck_assert_uint_eq(c.req.errcode, RPCRDMA_ERR_CHUNK);
	/* The context goes on. */
	read_data(len, false);
	teardown();
}
