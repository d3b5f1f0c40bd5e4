/* SPDX-License-Identifier: BSD-2-Clause */
/* A flavor of authentication that protects calls and replies, over every
 * transport: xor_flavor.h. */
#include "tests/server/doors.h"

#include <stdio.h>
#include <sys/socket.h>

#include "wire/nfs3.h"
#include "tests/server/dup_client.h"
#include "tests/server/xor_flavor.h"
#include "tests/unit/runner.h"
#include "vfs/posix/posix.h"
#include "wire/record.h"

#define LEN		(200u << 10)
#define BUF		(LEN + 4096)
#define MOUNT		100005

/* One line of a list: */
static const struct rpc_flavor *const flavors[] = { &xor_flavor, NULL };

static struct doors d;
static struct caller c;
static struct nfs3_fh top;
static char dir[32];
static uint32_t key, seq;

/* The call being made, and its results. */
static uint32_t prog, proc;
static unsigned more;		/* words behind wrapped arguments */
static uint8_t bare[BUF], call[BUF], reply[BUF], data[LEN];
static struct xdr_out args;
static struct xdr_in res;

static void setup(enum door door)
{
	struct harness_config hc = { .backend = &posix_vfs_ops,
				     .flavors = flavors, .krb5 = true };
	char exports[128];

	strcpy(dir, "/tmp/gannet-flavor.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(exports, sizeof(exports), "posix,async:%s 127.0.0.1(rw,"
		 "insecure,no_root_squash,sec=krb5p:krb5i:krb5)\n", dir);
	hc.exports = exports;
	doors_open(&d, &hc);
	harness_root(&d.srv, dir, &top);
	caller_open(&c, &d, door, false);
	for (size_t i = 0; i < LEN; i++)
		data[i] = (uint8_t)(i * 7 + (i >> 9));
	seq = more = 0;
}

static void teardown(void)
{
	char text[64];

	caller_close(&c);
	doors_close(&d);
	ck_assert_uint_eq(xor_held(), 0);
	snprintf(text, sizeof(text), "rm -rf %s", dir);
	ck_assert_int_eq(system(text), 0);
}

/* Puts the header; @key signs it. */
static void put_header(struct xdr_out *x, enum xor_kind kind, uint32_t session)
{
	const uint32_t cred[] = { htobe32(kind), htobe32(session),
				  htobe32(seq) };
	const struct rpc_header h = {
		.xid = c.xid, .prog = prog, .vers = 3, .proc = proc,
		.flavor = XOR_FLAVOR,
		.cred = { (const uint8_t *)cred, sizeof(cred) },
	};
	uint32_t sum;

	xdr_out_init(x, call + 4, sizeof(call) - 4);
	rpc_header_call_signed(x, &h);
	sum = htobe32(xor_sign(key, (struct xdr_view){
		call + 4, (uint32_t)xdr_out_len(x) }));
	rpc_auth_put(x, XOR_FLAVOR,
		     (struct xdr_view){ (const uint8_t *)&sum, 4 });
}

/* Sends the call.  Returns as caller_send(), with @res behind the header. */
static uint32_t send_call(struct xdr_out *x)
{
	uint32_t len;

	ck_assert(!x->bad);
	len = caller_exchange(&c, call, (uint32_t)xdr_out_len(x), reply,
			      sizeof(reply));
	xdr_in_init(&res, reply, len);
	ck_assert_uint_eq(xdr_get_u32(&res), c.xid);
	ck_assert_uint_eq(xdr_get_u32(&res), 1);
	if (xdr_get_u32(&res) != 0) {
		ck_assert_uint_eq(xdr_get_u32(&res), 1);
		return CALLER_DENIED + xdr_get_u32(&res);
	}
	ck_assert_uint_eq(xdr_get_u32(&res), XOR_FLAVOR);
	ck_assert_uint_eq(xdr_get_u32(&res), 4);
	ck_assert_uint_eq(xdr_get_u32(&res), xor_answer(key, seq));
	return xdr_get_u32(&res);
}

static uint32_t ask_for_session(uint32_t nonce)
{
	struct xdr_out x;

	c.xid++;
	prog = NFS3_PROGRAM;
	proc = 0;
	seq = 0;
	key = xor_key(nonce);
	put_header(&x, XOR_INIT, 0);
	xdr_put_u32(&x, nonce);
	return send_call(&x);
}

static void make_session(uint32_t nonce)
{
	ck_assert_uint_eq(ask_for_session(nonce), RPC_SUCCESS);
	ck_assert_uint_eq(xdr_get_u32(&res), XOR_SESSION);
	ck_assert_uint_eq(xdr_left(&res), 0);
}

static void begin(uint32_t to, uint32_t procnum)
{
	c.xid++;
	prog = to;
	proc = procnum;
	xdr_out_init(&args, bare + 4, sizeof(bare) - 4);
}

static void wrap_args(struct xdr_out *x)
{
	uint32_t len = (uint32_t)xdr_out_len(&args) + 4, word = htobe32(++seq);
	struct xor_stream s = { .key = key };
	uint8_t *p;

	put_header(x, XOR_DATA, XOR_SESSION);
	xdr_put_u32(x, len);
	memcpy(bare, &word, 4);
	p = x->p;
	xdr_put_fixed(x, bare, len);
	xor_run(&s, p, len, true);
	xdr_put_u32(x, s.sum);
	for (unsigned i = 0; i < more; i++)
		xdr_put_u32(x, 0);
}

/* Sends the call whose arguments are in @args; the results are in @res. */
static uint32_t finish(void)
{
	struct xor_stream s = { .key = key };
	struct xdr_view v;
	struct xdr_out x;
	uint32_t stat;

	wrap_args(&x);
	stat = send_call(&x);
	if (stat != RPC_SUCCESS)
		return stat;
	v = xdr_get_opaque(&res, BUF);
	xor_run(&s, (uint8_t *)(uintptr_t)v.data, v.len, false);
	ck_assert_uint_eq(xdr_get_u32(&res), s.sum);
	ck_assert_uint_eq(xdr_left(&res), 0);
	xdr_in_init(&res, v.data, v.len);
	ck_assert_uint_eq(xdr_get_u32(&res), seq);
	return stat;
}

static uint32_t status(void)
{
	ck_assert_uint_eq(finish(), RPC_SUCCESS);
	return xdr_get_u32(&res);
}

static void put_fh(const struct nfs3_fh *fh)
{
	xdr_put_opaque(&args, fh->data, fh->len);
}

/* GUARDED: a second one that ran would say that the file is there. */
static void begin_create(const char *name)
{
	begin(NFS3_PROGRAM, NFSPROC3_CREATE);
	put_fh(&top);
	xdr_put_opaque(&args, name, (uint32_t)strlen(name));
	xdr_put_u32(&args, 1);
	for (int i = 0; i < 6; i++)
		xdr_put_u32(&args, 0);
}

static struct nfs3_fh created(void)
{
	ck_assert(xdr_get_bool(&res));
	return harness_get_fh(&res);
}

static struct nfs3_fh make_file(const char *name)
{
	begin_create(name);
	ck_assert_uint_eq(status(), NFS3_OK);
	return created();
}

static void begin_read(const struct nfs3_fh *fh, uint32_t count)
{
	begin(NFS3_PROGRAM, NFSPROC3_READ);
	put_fh(fh);
	xdr_put_u64(&args, 0);
	xdr_put_u32(&args, count);
}

/* The data is in a buffer of the pool, in and out. */
TEST_LOOP(data_is_wrapped_both_ways, 0, NDOORS)
{
	static const uint32_t lens[] = { 1, 700, 5001, LEN };
	struct nfs3_fh fh;

	setup(_i);
	make_session(12345);
	fh = make_file("f");
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		begin(NFS3_PROGRAM, NFSPROC3_WRITE);
		put_fh(&fh);
		xdr_put_u64(&args, 0);
		xdr_put_u32(&args, lens[i]);
		xdr_put_u32(&args, VFS_UNSTABLE);
		xdr_put_opaque(&args, data, lens[i]);
		ck_assert_uint_eq(status(), NFS3_OK);
		begin_read(&fh, lens[i]);
		ck_assert_uint_eq(status(), NFS3_OK);
		xdr_get_fixed(&res, 88 + 8);
		ck_assert_uint_eq(xdr_get_u32(&res), lens[i]);
		ck_assert_mem_eq(xdr_get_fixed(&res, lens[i]).data, data,
				 lens[i]);
		ck_assert_uint_eq(xdr_left(&res), 0);
	}
	teardown();
}

/* RFC 2203 section 5.3.3.4.1. */
TEST_LOOP(a_reply_that_cannot_be_signed_is_denied, 0, NDOORS)
{
	struct nfs3_fh fh;

	setup(_i);
	make_session(1);
	fh = make_file("f");
	ck_assert_uint_eq(ask_for_session(XOR_NONCE_NO_SIGN),
			  CALLER_DENIED + RPC_GSS_CTXPROBLEM);
	begin_read(&fh, LEN);
	ck_assert_uint_eq(finish(), CALLER_DENIED + RPC_GSS_CTXPROBLEM);
	ck_assert_uint_eq(xdr_left(&res), 0);
	make_session(1);
	make_file("g");
	teardown();
}

/* RFC 8166 section 6.1.  The words decode as the arguments of a WRITE, up to
 * its data. */
TEST(no_part_of_wrapped_arguments_comes_in_a_read_chunk)
{
	static const enum xor_kind kinds[] = { XOR_INIT, XOR_DATA };
	struct xprt_sink *sink;
	struct xdr_out x;
	uint32_t len;

	setup(DOOR_TCP);
	sink = rpc_server_sink(d.srv.server);
	prog = NFS3_PROGRAM;
	proc = NFSPROC3_WRITE;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		put_header(&x, kinds[i], XOR_SESSION);
		xdr_put_opaque(&x, top.data, top.len);
		xdr_put_u64(&x, 0);
		xdr_put_u32(&x, 4000);
		xdr_put_u32(&x, VFS_UNSTABLE);
		xdr_put_u32(&x, 4000);
		len = (uint32_t)xdr_out_len(&x);
		ck_assert_int_eq(sink->read_chunk_ok(sink, call + 4, len, len),
				 kinds[i] == XOR_INIT);
	}
	teardown();
}

TEST_LOOP(a_changed_call_is_refused, 0, NDOORS)
{
	struct xdr_out x;

	setup(_i);
	make_session(1);
	begin_create("f");
	wrap_args(&x);
	x.p[-20] ^= 1;
	ck_assert_uint_eq(send_call(&x), RPC_GARBAGE_ARGS);
	wrap_args(&x);
	call[4 + 5 * 4 + 3] ^= 1;		/* the procedure */
	ck_assert_uint_eq(send_call(&x), CALLER_DENIED + RPC_AUTH_REJECTEDVERF);
	put_header(&x, XOR_DATA, XOR_SESSION + 1);
	ck_assert_uint_eq(send_call(&x), CALLER_DENIED + RPC_AUTH_REJECTEDCRED);
	make_file("f");
	teardown();
}

/* Sends the call in @args with the number that follows, and takes no reply. */
static void send_only(void)
{
	struct xdr_out x;

	wrap_args(&x);
	record_put_mark(call, xdr_out_len(&x));
	ck_assert_int_eq(send(c.fd, call, xdr_out_len(&x) + 4, 0),
			 (ssize_t)xdr_out_len(&x) + 4);
}

/* RFC 2203 section 5.3.3.4.4.  With a body, and without one. */
TEST(results_that_cannot_be_wrapped_are_not_sent)
{
	struct nfs3_fh fh;

	setup(DOOR_TCP);
	make_session(1);
	fh = make_file("f");
	make_session(XOR_NONCE_NO_WRAP);
	begin_read(&fh, LEN);
	send_only();
	begin_create("g");
	send_only();
	EVENTUALLY(stats_sum_by_name("rpc_dropped") == 2);
	make_session(1);
	make_file("h");
	ck_assert_uint_eq(xor_held(), 0);
	teardown();
}

/* The cache of replies has the call and its results as they are unwrapped.  The
 * second time the call can have more bytes around it. */
TEST_LOOP(a_call_sent_again_is_answered_under_its_new_number, 0, 2)
{
	char path[64];
	uint32_t xid;

	setup(DOOR_TCP);
	make_session(1);
	begin_create("f");
	snprintf(path, sizeof(path), "%s/f", dir);
	dup_deafen(c.fd);
	send_only();
	EVENTUALLY(access(path, F_OK) == 0 && rpc_busy() == 0);
	dup_reset(c.fd);
	xid = c.xid;
	caller_open(&c, &d, DOOR_TCP, false);
	c.xid = xid;
	more = _i * 5;
	ck_assert_uint_eq(status(), NFS3_OK);
	created();
	ck_assert_uint_eq(stats_sum_by_name("drc_hits"), 1);
	teardown();
}

TEST(a_call_with_an_old_number_gets_no_reply)
{
	setup(DOOR_TCP);
	make_session(1);
	make_file("f");
	seq--;
	begin_create("g");
	send_only();
	make_file("g");
	ck_assert_uint_eq(stats_sum_by_name("rpc_dropped"), 1);
	teardown();
}

TEST(mnt_lists_the_flavors_of_the_rule_that_the_table_has)
{
	setup(DOOR_TCP);
	make_session(1);
	begin(MOUNT, 1);
	xdr_put_opaque(&args, dir, (uint32_t)strlen(dir));
	ck_assert_uint_eq(status(), 0);
	xdr_get_opaque(&res, NFS3_FHSIZE);
	ck_assert_uint_eq(xdr_get_u32(&res), 2);
	ck_assert_uint_eq(xdr_get_u32(&res), RPC_AUTH_KRB5I);
	ck_assert_uint_eq(xdr_get_u32(&res), RPC_AUTH_KRB5);
	ck_assert_uint_eq(xdr_left(&res), 0);
	teardown();
}
