/* SPDX-License-Identifier: BSD-2-Clause */
/* RPCSEC_GSS (RFC 2203) with a mechanism that keeps no secret, and with a
 * client that lies. */
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>

#include "rpc/gss.h"
#include "tests/server/dup_client.h"
#include "tests/server/fake_xprt.h"
#include "tests/server/gss_client.h"
#include "tests/server/gss_xor.h"
#include "tests/server/record_stream.h"
#include "tests/unit/runner.h"
#include "wire/nfs3.h"
#include "wire/record.h"

#define PROVEN_MAX	4u
#define NEW_MAX		8u

static struct rpc_gss *gss;
static struct doors d;
static struct caller c;
static struct gss_client g;
static struct nfs3_fh top;
static uint8_t data[GSS_CLIENT_DATA];
static atomic_uint accepts;

/* All clients share the bound. */
static bool bounds_all;

static void setup(enum door door)
{
	const struct rpc_gss_config config = {
		.mech = &gss_xor, .arg = &accepts,
		.max = bounds_all ? PROVEN_MAX : 0,
		.max_client = bounds_all ? 10 * PROVEN_MAX : PROVEN_MAX,
		.max_client_new = NEW_MAX,
	};

	gss = gss_doors_open(&d, &config, "/mem 127.0.0.1(rw,insecure,"
			     "no_root_squash,sec=krb5p:krb5i:krb5)\n");
	harness_root(&d.srv, "/mem", &top);
	caller_open(&c, &d, door, false);
	gss_client_open(&g, &c, &gss_xor);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + (i >> 9));
}

/* Contexts and their keys are freed. */
static void teardown(void)
{
	bounds_all = false;
	caller_close(&c);
	doors_close(&d);
	rpc_gss_destroy(gss);
	ck_assert_uint_eq(gss_xor_count(), 0);
}

static uint32_t init(uint32_t proc, const struct gss_xor_token *t)
{
	uint8_t token[20];

	g.prog = NFS3_PROGRAM;
	g.vers = 3;
	g.procnum = 0;
	return gss_client_init(&g, proc, gss_xor_put(token, t));
}

static void forget(void)
{
	if (g.keys)
		gss_xor.free(g.keys);
	g.keys = NULL;
	g.handle_len = 0;
	g.seq = 0;
}

/* Makes a context for user @uid, which is good for @seconds. */
static void make(uint32_t uid, uint32_t seconds)
{
	const struct gss_xor_token t = {
		.nonce = 77 + uid, .uid = uid, .gid = uid, .seconds = seconds,
	};

	forget();
	ck_assert_uint_eq(init(GSS_INIT, &t), RPC_SUCCESS);
	ck_assert_uint_eq(g.init.major, GSS_COMPLETE);
	ck_assert(gss_client_take(&g, gss_xor_keys(t.nonce)));
}

static void begin_getattr(void)
{
	gss_client_begin(&g, NFS3_PROGRAM, 3, NFSPROC3_GETATTR);
	xdr_put_opaque(&g.args, top.data, top.len);
}

/* GETATTR of the root: RPC_SUCCESS, or as caller_send(). */
static uint32_t getattr(void)
{
	uint32_t stat;

	begin_getattr();
	stat = gss_client_send(&g);
	if (stat == RPC_SUCCESS)
		ck_assert_uint_eq(xdr_get_u32(&g.res), NFS3_OK);
	return stat;
}

static void begin_create(const char *name)
{
	gss_client_begin(&g, NFS3_PROGRAM, 3, NFSPROC3_CREATE);
	xdr_put_opaque(&g.args, top.data, top.len);
	xdr_put_string(&g.args, name);
	/* GUARDED: a second one that ran would say that the file is there. */
	xdr_put_u32(&g.args, 1);
	for (int i = 0; i < 6; i++)
		xdr_put_u32(&g.args, 0);
}

/* Returns the handle of a new file. */
static struct nfs3_fh create(const char *name)
{
	begin_create(name);
	ck_assert_uint_eq(gss_client_send(&g), RPC_SUCCESS);
	ck_assert_uint_eq(xdr_get_u32(&g.res), NFS3_OK);
	ck_assert(xdr_get_bool(&g.res));
	return harness_get_fh(&g.res);
}

static void write_data(const struct nfs3_fh *fh, uint32_t len)
{
	gss_client_begin(&g, NFS3_PROGRAM, 3, NFSPROC3_WRITE);
	xdr_put_opaque(&g.args, fh->data, fh->len);
	xdr_put_u64(&g.args, 0);
	xdr_put_u32(&g.args, len);
	xdr_put_u32(&g.args, 0);
	xdr_put_opaque(&g.args, data, len);
	ck_assert_uint_eq(gss_client_send(&g), RPC_SUCCESS);
	ck_assert_uint_eq(xdr_get_u32(&g.res), NFS3_OK);
}

static void read_data(const struct nfs3_fh *fh, uint32_t len)
{
	gss_client_begin(&g, NFS3_PROGRAM, 3, NFSPROC3_READ);
	xdr_put_opaque(&g.args, fh->data, fh->len);
	xdr_put_u64(&g.args, 0);
	xdr_put_u32(&g.args, len);
	ck_assert_uint_eq(gss_client_send(&g), RPC_SUCCESS);
	ck_assert_uint_eq(xdr_get_u32(&g.res), NFS3_OK);
	xdr_get_fixed(&g.res, 88 + 8);
	ck_assert_uint_eq(xdr_get_u32(&g.res), len);
	ck_assert_mem_eq(xdr_get_fixed(&g.res, len).data, data, len);
	ck_assert_uint_eq(xdr_left(&g.res), 0);
}

TEST_LOOP(each_service_moves_data_over_each_transport, 0, 3 * NDOORS)
{
	static const uint32_t lens[] = { 1, 700, 5001, GSS_CLIENT_DATA };
	struct nfs3_fh fh;

	setup(_i / 3);
	make(0, 100);
	g.service = GSS_NONE + (uint32_t)_i % 3;
	fh = create("f");
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		write_data(&fh, lens[i]);
		read_data(&fh, lens[i]);
	}
	ck_assert_uint_eq(gss_client_destroy(&g), RPC_SUCCESS);
	forget();
	teardown();
}

TEST(a_call_acts_as_the_user_of_its_context)
{
	setup(DOOR_TCP);
	make(1234, 100);
	begin_create("x");
	/* The root belongs to user 0. */
	ck_assert_uint_eq(gss_client_send(&g), RPC_SUCCESS);
	ck_assert_uint_eq(xdr_get_u32(&g.res), NFS3ERR_ACCES);
	forget();
	teardown();
}

static uint8_t long_token[GSS_TOKEN_MAX + 4];

TEST(a_context_is_made_in_as_many_steps_as_its_mechanism_needs)
{
	struct gss_xor_token t = { .nonce = 5, .seconds = 100, .steps = 2 };

	setup(DOOR_TCP);
	ck_assert_uint_eq(init(GSS_INIT, &t), RPC_SUCCESS);
	/* A step that is refused before it is made can come again. */
	ck_assert_uint_eq(gss_client_init(&g, GSS_CONTINUE,
		(struct xdr_view){ long_token, sizeof(long_token) }),
		RPC_GARBAGE_ARGS);
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(g.init.major, GSS_CONTINUE_NEEDED);
		ck_assert_uint_eq(g.verf_flavor, RPC_AUTH_NONE);
		ck_assert_uint_eq(g.init.token.len, 4);
		ck_assert_uint_eq(init(GSS_CONTINUE, &t), RPC_SUCCESS);
	}
	ck_assert_uint_eq(g.init.major, GSS_COMPLETE);
	ck_assert(gss_client_take(&g, gss_xor_keys(5)));
	ck_assert_uint_eq(getattr(), RPC_SUCCESS);
	/* The context is made: it takes no further step. */
	ck_assert_uint_eq(init(GSS_CONTINUE, &t), RPC_SUCCESS);
	ck_assert_uint_eq(g.init.major, GSS_NO_CONTEXT);
	forget();
	teardown();
}

TEST(a_context_that_is_not_complete_serves_no_call)
{
	struct gss_xor_token t = { .nonce = 5, .seconds = 100, .steps = 1 };

	setup(DOOR_TCP);
	ck_assert_uint_eq(init(GSS_INIT, &t), RPC_SUCCESS);
	g.keys = gss_xor_keys(5);
	ck_assert_uint_eq(getattr(), CALLER_DENIED + RPC_GSS_CREDPROBLEM);
	forget();
	teardown();
}

/* RFC 2203 section 5.2.3.1: no handle, no token. */
TEST(a_bad_token_makes_no_context)
{
	struct gss_xor_token bad = { .nonce = 0 };
	struct gss_xor_token t = { .nonce = 5, .steps = 1 };

	setup(DOOR_TCP);
	ck_assert_uint_eq(init(GSS_INIT, &bad), RPC_SUCCESS);
	ck_assert_uint_eq(g.init.major, GSS_DEFECTIVE_TOKEN);
	ck_assert_uint_eq(g.init.minor, 17);
	ck_assert_uint_eq(g.init.handle.len + g.init.token.len, 0);
	ck_assert_uint_eq(g.verf_flavor, RPC_AUTH_NONE);
	ck_assert_uint_eq(init(GSS_INIT, &t), RPC_SUCCESS);
	ck_assert_uint_eq(init(GSS_CONTINUE, &bad), RPC_SUCCESS);
	ck_assert_uint_eq(g.init.major, GSS_DEFECTIVE_TOKEN);
	ck_assert_uint_eq(rpc_gss_contexts(gss), 0);
	ck_assert_uint_eq(stats_sum_by_name("gss_not_made"), 2);
	teardown();
}

TEST(a_call_with_a_changed_header_is_refused)
{
	setup(DOOR_TCP);
	make(0, 100);
	g.bad_verf = true;
	ck_assert_uint_eq(getattr(), CALLER_DENIED + RPC_GSS_CREDPROBLEM);
	g.bad_verf = false;
	g.no_verf = true;
	ck_assert_uint_eq(getattr(), CALLER_DENIED + RPC_GSS_CREDPROBLEM);
	g.no_verf = false;
	/* Their numbers were not taken. */
	g.seq = 0;
	ck_assert_uint_eq(getattr(), RPC_SUCCESS);
	g.handle[3] ^= 1;
	ck_assert_uint_eq(getattr(), CALLER_DENIED + RPC_GSS_CREDPROBLEM);
	forget();
	teardown();
}

TEST(a_verifier_is_of_the_flavor_that_is_due)
{
	const struct gss_xor_token t = { .nonce = 5, .seconds = 100 };

	setup(DOOR_TCP);
	g.odd_verf = RPC_AUTH_SYS;
	ck_assert_uint_eq(init(GSS_INIT, &t), CALLER_DENIED + RPC_AUTH_BADVERF);
	ck_assert_uint_eq(atomic_load(&accepts), 0);
	g.odd_verf = 0;
	make(0, 100);
	g.odd_verf = RPC_AUTH_SYS;
	ck_assert_uint_eq(getattr(), CALLER_DENIED + RPC_GSS_CREDPROBLEM);
	forget();
	teardown();
}

/* The checksum is right: it is of too few bytes for the number, and the padding
 * completes it. */
TEST_LOOP(a_body_without_a_number_is_garbage, GSS_INTEGRITY, GSS_PRIVACY + 1)
{
	setup(DOOR_TCP);
	make(0, 100);
	g.service = (uint32_t)_i;
	for (uint32_t len = 0; len < 4; len++) {
		gss_client_begin(&g, NFS3_PROGRAM, 3, NFSPROC3_NULL);
		g.args.p = g.args.start + len;
		g.seq = 256 * (len + 1) - 1;
		ck_assert_uint_eq(gss_client_send(&g), RPC_GARBAGE_ARGS);
	}
	ck_assert_uint_eq(stats_sum_by_name("gss_bad_args"), 4);
	forget();
	teardown();
}

/* Zeros that all calls share stand for the bytes that were not kept: they can't
 * be decrypted. */
TEST(the_body_of_a_call_that_is_too_long_is_not_looked_at)
{
	static uint8_t rest[MSG_MAX_TAKEN - 1024];
	uint32_t len, body, more = sizeof(rest);

	setup(DOOR_TCP);
	make(0, 100);
	g.service = GSS_PRIVACY;
	begin_getattr();
	len = gss_client_make(&g);
	/* The last of the call, with 14 bytes of the mechanism. */
	body = (uint32_t)xdr_out_len(&g.args) + 14;
	body += xdr_pad(body);
	xdr_set_word(g.call + 4 + len - body - 4, body + more);
	record_put_mark(g.call, len + more);
	ck_assert_int_eq(send(c.fd, g.call, len + 4, MSG_MORE),
			 (ssize_t)len + 4);
	ck_assert_int_eq(send(c.fd, rest, more, 0), (ssize_t)more);
	EVENTUALLY(stats_sum_by_name("rpc_garbage") == 1);
	ck_assert_uint_eq(stats_sum_by_name("gss_bad_args"), 0);
	forget();
	teardown();
}

static void expect_denied(struct fake_xprt *f, uint32_t len)
{
	static const uint32_t denied[] = { 1, 1, 1, RPC_AUTH_REJECTEDCRED };
	struct fake_call *call = fake_send(f, g.call + 4, len);

	fake_wait(call);
	ck_assert_uint_eq(call->len, 20);
	for (size_t i = 0; i < ARRAY_SIZE(denied); i++)
		ck_assert_uint_eq(xdr_word(call->reply + 4 + 4 * i), denied[i]);
	fake_free(call);
}

/* Their address can be forged. */
TEST(datagrams_are_refused)
{
	struct fake_xprt udp;

	setup(DOOR_TCP);
	fake_xprt_init(&udp, d.srv.env.sink, d.srv.pool, "127.0.0.1", 700);
	udp.x.datagram = true;
	make(0, 100);
	begin_getattr();
	expect_denied(&udp, gss_client_make(&g));
	g.seq = 0;
	ck_assert_uint_eq(getattr(), RPC_SUCCESS);
	g.proc = GSS_INIT;
	g.handle_len = 0;
	begin_getattr();
	g.procnum = 0;
	expect_denied(&udp, gss_client_make(&g));
	g.proc = GSS_DATA;
	ck_assert_uint_eq(atomic_load(&accepts), 1);
	forget();
	teardown();
}

TEST_LOOP(a_call_with_a_changed_body_is_garbage, GSS_INTEGRITY, GSS_PRIVACY + 1)
{
	setup(DOOR_TCP);
	make(0, 100);
	g.service = (uint32_t)_i;
	g.bad_body = true;
	ck_assert_uint_eq(getattr(), RPC_GARBAGE_ARGS);
	g.bad_body = false;
	g.more_seq = 1;
	ck_assert_uint_eq(getattr(), RPC_GARBAGE_ARGS);
	g.more_seq = 0;
	ck_assert_uint_eq(getattr(), RPC_SUCCESS);
	forget();
	teardown();
}

TEST(a_destroyed_context_is_gone)
{
	setup(DOOR_TCP);
	make(0, 100);
	ck_assert_uint_eq(getattr(), RPC_SUCCESS);
	g.bad_verf = true;
	ck_assert_uint_eq(gss_client_destroy(&g),
			  CALLER_DENIED + RPC_GSS_CREDPROBLEM);
	g.bad_verf = false;
	ck_assert_uint_eq(gss_client_destroy(&g), RPC_SUCCESS);
	ck_assert_uint_eq(rpc_gss_contexts(gss), 0);
	ck_assert_uint_eq(getattr(), CALLER_DENIED + RPC_GSS_CREDPROBLEM);
	ck_assert_uint_eq(gss_client_destroy(&g),
			  CALLER_DENIED + RPC_GSS_CREDPROBLEM);
	forget();
	teardown();
}

/* Sends the call, with number @seq, and takes no reply. */
static void send_only(uint32_t seq)
{
	uint32_t len;

	g.seq = seq - 1;
	len = gss_client_make(&g);
	record_put_mark(g.call, len);
	ck_assert_int_eq(send(c.fd, g.call, len + 4, 0), (ssize_t)len + 4);
}

TEST(a_number_that_came_before_gets_no_reply)
{
	static const uint32_t old[] = { 5000, 4500, 1, 5000 - 1024 };

	setup(DOOR_TCP);
	make(0, 100);
	g.seq = 4499;
	ck_assert_uint_eq(getattr(), RPC_SUCCESS);
	g.seq = 4999;
	ck_assert_uint_eq(getattr(), RPC_SUCCESS);
	for (size_t i = 0; i < ARRAY_SIZE(old); i++) {
		begin_getattr();
		send_only(old[i]);
		EVENTUALLY(stats_sum_by_name("gss_old_seq") == i + 1);
	}
	g.seq = 4500;
	ck_assert_uint_eq(getattr(), RPC_SUCCESS);
	ck_assert_uint_eq(stats_sum_by_name("rpc_dropped"), ARRAY_SIZE(old));
	forget();
	teardown();
}

TEST(numbers_end_at_maxseq)
{
	setup(DOOR_TCP);
	make(0, 100);
	g.seq = GSS_MAXSEQ - 1;
	ck_assert_uint_eq(getattr(), RPC_SUCCESS);
	ck_assert_uint_eq(getattr(), CALLER_DENIED + RPC_GSS_CTXPROBLEM);
	g.seq = GSS_MAXSEQ - 3;
	ck_assert_uint_eq(getattr(), RPC_SUCCESS);
	forget();
	teardown();
}

TEST(an_expired_context_is_a_problem_of_the_context)
{
	setup(DOOR_TCP);
	make(0, 0);
	g.bad_verf = true;
	ck_assert_uint_eq(getattr(), CALLER_DENIED + RPC_GSS_CREDPROBLEM);
	g.bad_verf = false;
	ck_assert_uint_eq(getattr(), CALLER_DENIED + RPC_GSS_CTXPROBLEM);
	ck_assert_uint_eq(rpc_gss_contexts(gss), 0);
	make(0, 100);
	ck_assert_uint_eq(getattr(), RPC_SUCCESS);
	forget();
	teardown();
}

/* Anybody who saw an INIT can repeat it. */
TEST(contexts_without_a_call_push_out_no_other)
{
	const struct gss_xor_token t = { .nonce = 9, .seconds = 100,
					 .steps = 1 };
	uint8_t mine[16];

	setup(DOOR_TCP);
	make(0, 100);
	ck_assert_uint_eq(getattr(), RPC_SUCCESS);
	memcpy(mine, g.handle, sizeof(mine));
	for (int i = 0; i < 50; i++) {
		struct gss_xor_token more = t;

		more.steps = (uint32_t)i % 2;
		g.handle_len = 0;
		ck_assert_uint_eq(init(GSS_INIT, &more), RPC_SUCCESS);
	}
	ck_assert_uint_eq(rpc_gss_contexts(gss), NEW_MAX + 1);
	memcpy(g.handle, mine, sizeof(mine));
	ck_assert_uint_eq(getattr(), RPC_SUCCESS);
	forget();
	teardown();
}

TEST_LOOP(the_least_recently_used_context_makes_room, 0, 2)
{
	static uint8_t handles[PROVEN_MAX + 1][16];

	bounds_all = _i;
	setup(DOOR_TCP);
	for (unsigned i = 0; i <= PROVEN_MAX; i++) {
		make(0, 100);
		memcpy(handles[i], g.handle, sizeof(handles[i]));
		ck_assert_uint_eq(getattr(), RPC_SUCCESS);
		if (i == 0)
			continue;
		memcpy(g.handle, handles[0], sizeof(handles[0]));
		g.seq = 10 * i;
		ck_assert_uint_eq(getattr(), RPC_SUCCESS);
	}
	ck_assert_uint_eq(rpc_gss_contexts(gss), PROVEN_MAX);
	memcpy(g.handle, handles[1], sizeof(handles[1]));
	ck_assert_uint_eq(getattr(), CALLER_DENIED + RPC_GSS_CREDPROBLEM);
	memcpy(g.handle, handles[0], sizeof(handles[0]));
	g.seq = 100;
	ck_assert_uint_eq(getattr(), RPC_SUCCESS);
	forget();
	teardown();
}

static uint32_t try_init(uint32_t proc)
{
	const struct gss_xor_token t = { .nonce = 5, .seconds = 100 };

	return init(proc, &t);
}

TEST(a_bad_credential_is_refused)
{
	setup(DOOR_TCP);
	g.version = 2;				/* RFC 5403 */
	ck_assert_uint_eq(try_init(GSS_INIT),
			  CALLER_DENIED + RPC_AUTH_REJECTEDCRED);
	g.version = 1;
	make(0, 100);
	g.version = 2;
	ck_assert_uint_eq(getattr(), CALLER_DENIED + RPC_AUTH_BADCRED);
	g.version = 1;
	for (uint32_t service = 0; service < 6; service++) {
		g.service = service;
		if (service < GSS_NONE || service > GSS_PRIVACY)
			ck_assert_uint_eq(getattr(),
					  CALLER_DENIED + RPC_AUTH_BADCRED);
	}
	g.service = GSS_NONE;
	g.proc = 4;
	ck_assert_uint_eq(getattr(), CALLER_DENIED + RPC_AUTH_BADCRED);
	g.proc = GSS_DESTROY;			/* of a procedure but NULL */
	ck_assert_uint_eq(getattr(), CALLER_DENIED + RPC_AUTH_BADCRED);
	g.proc = GSS_INIT;
	g.handle_len = 0;
	ck_assert_uint_eq(getattr(), CALLER_DENIED + RPC_AUTH_BADCRED);
	g.proc = GSS_DATA;
	g.handle_len = 16;
	ck_assert_uint_eq(try_init(GSS_INIT), CALLER_DENIED + RPC_AUTH_BADCRED);
	g.handle_len = 0;
	ck_assert_uint_eq(try_init(GSS_CONTINUE),
			  CALLER_DENIED + RPC_AUTH_BADCRED);
	g.handle_len = 1;
	ck_assert_uint_eq(try_init(GSS_CONTINUE), RPC_SUCCESS);
	ck_assert_uint_eq(g.init.major, GSS_NO_CONTEXT);
	forget();
	teardown();
}

TEST(tokens_are_bounded)
{
	setup(DOOR_TCP);
	g.prog = NFS3_PROGRAM;
	g.vers = 3;
	ck_assert_uint_eq(gss_client_init(&g, GSS_INIT,
		(struct xdr_view){ long_token, sizeof(long_token) }),
		RPC_GARBAGE_ARGS);
	ck_assert_uint_eq(atomic_load(&accepts), 0);
	ck_assert_uint_eq(gss_client_init(&g, GSS_INIT,
		(struct xdr_view){ long_token, GSS_TOKEN_MAX }), RPC_SUCCESS);
	ck_assert_uint_eq(atomic_load(&accepts), 1);
	teardown();
}

/* The cache of replies knows a call by its bare arguments. */
TEST_LOOP(a_call_sent_again_is_answered_under_its_new_number, GSS_NONE,
	  GSS_PRIVACY + 1)
{
	uint64_t calls;
	uint32_t xid;

	setup(DOOR_TCP);
	make(0, 100);
	g.service = (uint32_t)_i;
	begin_create("f");
	xid = c.xid;
	calls = stats_sum_by_name("rpc_calls");
	dup_deafen(c.fd);
	send_only(5);
	EVENTUALLY(stats_sum_by_name("rpc_calls") == calls + 1 &&
		   rpc_busy() == 0);
	dup_reset(c.fd);
	caller_open(&c, &d, DOOR_TCP, false);
	c.xid = xid;
	create("f");
	ck_assert_uint_eq(stats_sum_by_name("drc_hits"), 1);
	forget();
	teardown();
}
