/* SPDX-License-Identifier: BSD-2-Clause */
/* RPC headers: RFC 5531 sections 8.2, 9, 10 and appendix A; and the ports of
 * programs. */
#include "rpc/auth.h"

#include <stdlib.h>

#include "tests/unit/runner.h"
#include "wire/getport.h"

static uint8_t wire[2048];
static struct xdr_out out;
static struct rpc_header h;
static struct rpc_call call;

static void begin(uint32_t proc)
{
	xdr_out_init(&out, wire, sizeof(wire));
	xdr_put_u32(&out, 0x11223344);	/* xid */
	xdr_put_u32(&out, 0);		/* CALL */
	xdr_put_u32(&out, 2);
	xdr_put_u32(&out, 100003);
	xdr_put_u32(&out, 3);
	xdr_put_u32(&out, proc);
}

static void put_auth(uint32_t flavor, const void *body, uint32_t len)
{
	xdr_put_u32(&out, flavor);
	xdr_put_opaque(&out, body, len);
}

/* Returns the length of the body in @body. */
static uint32_t sys_body(uint8_t *body, uint32_t name_len, uint32_t ngids)
{
	static const uint8_t name[512];
	struct xdr_out x;

	xdr_out_init(&x, body, 1024);
	xdr_put_u32(&x, 99);
	xdr_put_opaque(&x, name, name_len);
	xdr_put_u32(&x, 1001);
	xdr_put_u32(&x, 1002);
	xdr_put_u32(&x, ngids);
	for (uint32_t i = 0; i < ngids; i++)
		xdr_put_u32(&x, 2000 + i);
	return (uint32_t)xdr_out_len(&x);
}

static enum rpc_header_kind verified(struct xdr_in *x)
{
	enum rpc_header_kind kind = rpc_header_decode(x, &h);

	if (kind != RPC_HEADER_CALL)
		return kind;
	h.denied = rpc_auth_verify(rpc_flavors, &h, &call);
	return h.denied ? RPC_HEADER_DENIED : RPC_HEADER_CALL;
}

static enum rpc_header_kind decode_len(size_t len)
{
	/* Exactly as long as the input, for the sanitizer. */
	uint8_t *copy = malloc(len ? len : 1);
	enum rpc_header_kind kind;
	struct xdr_in x;

	memcpy(copy, wire, len);
	xdr_in_init(&x, copy, len);
	kind = verified(&x);
	free(copy);
	return kind;
}

static enum rpc_header_kind decode(void)
{
	return decode_len(xdr_out_len(&out));
}

static void denied(enum rpc_auth_stat why)
{
	ck_assert_int_eq(decode(), RPC_HEADER_DENIED);
	ck_assert_int_eq(h.denied, why);
	ck_assert_uint_eq(h.xid, 0x11223344);
}

static void call_sys(uint32_t name_len, uint32_t ngids)
{
	uint8_t body[1024];

	begin(1);
	put_auth(1, body, sys_body(body, name_len, ngids));
	put_auth(0, NULL, 0);
}

TEST(a_call_is_decoded)
{
	begin(1);
	put_auth(0, NULL, 0);
	put_auth(0, NULL, 0);
	ck_assert_int_eq(decode(), RPC_HEADER_CALL);
	ck_assert_uint_eq(h.xid, 0x11223344);
	ck_assert_uint_eq(h.prog, 100003);
	ck_assert_uint_eq(h.vers, 3);
	ck_assert_uint_eq(h.proc, 1);
	ck_assert_int_eq(call.cred.flavor, RPC_AUTH_NONE);
	ck_assert_uint_eq(call.cred.ngids, 0);
}

TEST(auth_sys_has_up_to_16_groups)
{
	for (uint32_t n = 0; n <= 16; n++) {
		call_sys(7, n);
		ck_assert_int_eq(decode(), RPC_HEADER_CALL);
		ck_assert_int_eq(call.cred.flavor, RPC_AUTH_SYS);
		ck_assert_uint_eq(call.cred.uid, 1001);
		ck_assert_uint_eq(call.cred.gid, 1002);
		ck_assert_uint_eq(call.cred.ngids, n);
		for (uint32_t i = 0; i < n; i++)
			ck_assert_uint_eq(call.cred.gids[i], 2000 + i);
	}
	call_sys(7, 17);
	denied(RPC_AUTH_BADCRED);
}

static enum rpc_auth_stat verify_nothing(const struct rpc_flavor *self,
					 const struct rpc_header *header,
					 struct rpc_call *of)
{
	return RPC_AUTH_OK;
}

TEST(a_flavor_that_names_no_pseudo_flavor_is_unknown_to_exports)
{
	const struct rpc_flavor row = { .flavor = 1, .verify = verify_nothing };
	const struct rpc_flavor *const rows[] = { &row, NULL };

	call_sys(7, 0);
	ck_assert_int_eq(decode(), RPC_HEADER_CALL);
	ck_assert_int_eq(call.cred.flavor, RPC_AUTH_SYS);
	ck_assert_int_eq(rpc_auth_verify(rows, &h, &call), RPC_AUTH_OK);
	ck_assert_int_eq(call.cred.flavor, RPC_AUTH_UNKNOWN);
}

TEST(a_machine_name_has_up_to_255_bytes)
{
	call_sys(255, 16);
	ck_assert_int_eq(decode(), RPC_HEADER_CALL);
	call_sys(256, 16);
	denied(RPC_AUTH_BADCRED);
}

TEST(a_truncated_auth_sys_body_is_badcred)
{
	uint8_t body[1024];
	uint32_t len = sys_body(body, 5, 3);

	for (uint32_t cut = 0; cut < len; cut++) {
		begin(1);
		put_auth(1, body, cut);
		put_auth(0, NULL, 0);
		denied(RPC_AUTH_BADCRED);
	}
}

TEST(an_auth_body_has_up_to_400_bytes)
{
	static const uint8_t body[404];

	begin(0);
	put_auth(0, body, 400);
	put_auth(0, body, 400);
	ck_assert_int_eq(decode(), RPC_HEADER_CALL);
	begin(0);
	put_auth(0, body, 401);
	put_auth(0, NULL, 0);
	denied(RPC_AUTH_BADCRED);
	begin(0);
	put_auth(0, NULL, 0);
	put_auth(0, body, 401);
	denied(RPC_AUTH_BADVERF);
}

TEST(a_flavor_not_served_is_rejectedcred)
{
	static const uint32_t flavors[] = { 2, 3, 4, 5, 6, 8, 390003,
					    UINT32_MAX };

	for (unsigned i = 0; i < ARRAY_SIZE(flavors); i++) {
		begin(1);
		put_auth(flavors[i], "abcd", 4);
		put_auth(flavors[i], "abcd", 4);
		denied(RPC_AUTH_REJECTEDCRED);
	}
}

TEST(null_takes_any_flavor_but_gss)
{
	static const uint32_t flavors[] = { 2, 3, 4, 5, 8, UINT32_MAX };

	for (unsigned i = 0; i < ARRAY_SIZE(flavors); i++) {
		begin(0);
		put_auth(flavors[i], "abcd", 4);
		put_auth(flavors[i], "abcd", 4);
		ck_assert_int_eq(decode(), RPC_HEADER_CALL);
		ck_assert_int_eq(call.cred.flavor, RPC_AUTH_NONE);
	}
	begin(0);
	put_auth(6, "abcd", 4);
	put_auth(0, NULL, 0);
	denied(RPC_AUTH_REJECTEDCRED);
}

/* RFC 9289 section 4.1. */
TEST(auth_tls_beside_null_is_badcred)
{
	begin(1);
	put_auth(7, NULL, 0);
	put_auth(0, NULL, 0);
	denied(RPC_AUTH_BADCRED);
}

/* The same: "MUST be zero", "MUST be an AUTH_NONE verifier of length zero". */
TEST(auth_tls_has_an_empty_credential_and_verifier)
{
	begin(0);
	put_auth(7, "abcd", 4);
	put_auth(0, NULL, 0);
	denied(RPC_AUTH_BADCRED);
	begin(0);
	put_auth(7, NULL, 0);
	put_auth(0, "abcd", 4);
	denied(RPC_AUTH_BADVERF);
	begin(0);
	put_auth(7, NULL, 0);
	put_auth(1, NULL, 0);
	denied(RPC_AUTH_BADVERF);
}

TEST(a_verifier_other_than_none_is_badverf)
{
	uint8_t body[1024];

	for (uint32_t flavor = 0; flavor < 2; flavor++) {
		begin(1);
		put_auth(flavor, body, sys_body(body, 5, 1));
		put_auth(1, NULL, 0);
		denied(RPC_AUTH_BADVERF);
	}
}

TEST(every_truncation_is_refused)
{
	size_t len, cred_at = 24, verf_at;

	call_sys(7, 5);
	len = xdr_out_len(&out);
	verf_at = len - 8;
	for (size_t cut = 0; cut < len; cut++) {
		enum rpc_header_kind kind = decode_len(cut);

		if (cut < cred_at) {
			ck_assert_int_eq(kind, RPC_HEADER_SHORT);
			continue;
		}
		ck_assert_int_eq(kind, RPC_HEADER_DENIED);
		ck_assert_int_eq(h.denied, cut < verf_at ? RPC_AUTH_BADCRED :
							   RPC_AUTH_BADVERF);
	}
}

TEST(a_reply_is_not_a_call)
{
	begin(1);
	wire[7] = 1;
	ck_assert_int_eq(decode(), RPC_HEADER_NOT_CALL);
	wire[4] = 0x80;
	ck_assert_int_eq(decode(), RPC_HEADER_NOT_CALL);
}

TEST(another_version_needs_no_more_of_the_header)
{
	begin(1);
	wire[11] = 3;
	ck_assert_int_eq(decode_len(12), RPC_HEADER_MISMATCH);
	ck_assert_uint_eq(h.xid, 0x11223344);
}

/* A cursor that stands behind the verifier is where the arguments are. */
TEST(the_arguments_come_next)
{
	struct xdr_in x;

	call_sys(6, 2);
	xdr_put_u32(&out, 0xfeed);
	xdr_in_init(&x, wire, xdr_out_len(&out));
	ck_assert_int_eq(verified(&x), RPC_HEADER_CALL);
	ck_assert_uint_eq(xdr_get_u32(&x), 0xfeed);
	ck_assert_uint_eq(xdr_left(&x), 0);
}

TEST(our_calls_decode_as_they_were_made)
{
	const struct rpc_header mine = { .xid = 7, .prog = 100021, .vers = 4,
					 .proc = 10 };
	static const uint32_t gids[] = { 8, 9 };
	const struct rpc_auth_sys sys = {
		.machine = "server", .uid = 5, .gid = 6, .ngids = 2,
		.gids = gids,
	};
	struct xdr_in x;

	xdr_out_init(&out, wire, sizeof(wire));
	rpc_header_call(&out, &mine, &sys);
	ck_assert(!out.bad);
	xdr_in_init(&x, wire, xdr_out_len(&out));
	ck_assert_int_eq(verified(&x), RPC_HEADER_CALL);
	ck_assert_uint_eq(xdr_left(&x), 0);
	ck_assert_uint_eq(h.xid, 7);
	ck_assert_uint_eq(h.prog, 100021);
	ck_assert_uint_eq(h.proc, 10);
	ck_assert_uint_eq(call.cred.uid, 5);
	ck_assert_uint_eq(call.cred.gid, 6);
	ck_assert_uint_eq(call.cred.ngids, 2);
	ck_assert_mem_eq(call.cred.gids, gids, sizeof(gids));
}

TEST(our_calls_without_a_credential_decode_too)
{
	const struct rpc_header mine = { .xid = 7, .prog = 100003, .vers = 3 };
	struct xdr_in x;

	xdr_out_init(&out, wire, sizeof(wire));
	rpc_header_call(&out, &mine, NULL);
	xdr_in_init(&x, wire, xdr_out_len(&out));
	ck_assert_int_eq(verified(&x), RPC_HEADER_CALL);
	ck_assert_uint_eq(xdr_left(&x), 0);
	ck_assert_int_eq(call.cred.flavor, RPC_AUTH_NONE);
}

static int reply_error(size_t len)
{
	uint32_t xid;
	struct xdr_in x;

	xdr_in_init(&x, wire, len);
	return rpc_header_reply(&x, &xid, NULL);
}

TEST(every_truncated_reply_is_malformed)
{
	xdr_out_init(&out, wire, sizeof(wire));
	rpc_header_accepted(&out, 7, RPC_SUCCESS);
	for (size_t len = 0; len < xdr_out_len(&out); len++)
		ck_assert_int_eq(reply_error(len), -EBADMSG);
	ck_assert_int_eq(reply_error(xdr_out_len(&out)), 0);
}

TEST(an_accepted_header_without_room_is_not_begun)
{
	uint8_t room[20];
	uint8_t before[sizeof(room)] = { 0 };

	memset(room, 0, sizeof(room));
	xdr_out_init(&out, room, sizeof(room));
	rpc_header_accepted(&out, 7, RPC_SUCCESS);
	ck_assert(out.bad);
	ck_assert_uint_eq(xdr_out_len(&out), 0);
	ck_assert_mem_eq(room, before, sizeof(room));
}

TEST(a_verifier_of_any_flavor_is_returned)
{
	struct rpc_opaque_auth verf;
	struct xdr_in x;
	uint32_t xid;

	xdr_out_init(&out, wire, sizeof(wire));
	xdr_put_u32(&out, 7);
	xdr_put_u32(&out, 1);			/* REPLY */
	xdr_put_u32(&out, 0);			/* MSG_ACCEPTED */
	rpc_auth_put(&out, 6, xdr_text("a sum"));
	xdr_put_u32(&out, RPC_SUCCESS);
	xdr_in_init(&x, wire, xdr_out_len(&out));
	ck_assert_int_eq(rpc_header_reply(&x, &xid, &verf), 0);
	ck_assert_uint_eq(xid, 7);
	ck_assert_uint_eq(verf.flavor, 6);
	ck_assert_uint_eq(verf.body.len, 5);
	ck_assert_mem_eq(verf.body.data, "a sum", 5);
	ck_assert_uint_eq(xdr_left(&x), 0);
}

TEST(a_denied_reply_is_eacces)
{
	xdr_out_init(&out, wire, sizeof(wire));
	rpc_header_denied(&out, 7, RPC_AUTH_TOOWEAK);
	ck_assert_int_eq(reply_error(xdr_out_len(&out)), -EACCES);
}

TEST(a_call_is_no_reply)
{
	begin(1);
	ck_assert_int_eq(reply_error(xdr_out_len(&out)), -EBADMSG);
}

TEST(universal_addresses_end_with_a_port)
{
	static const struct {
		const char *text;
		bool ok;
		uint16_t port;
	} r[] = {
		{ "192.0.2.7.8.1", true, 2049 }, { "::.0.111", true, 111 },
		{ "2001:db8::7.78.81", true, 20049 }, { "", false, 0 },
		{ "8.1", false, 0 }, { ".8.", false, 0 },
		{ "::.256.1", false, 0 }, { "::.0001.1", false, 0 },
		{ "::.1.1000", false, 0 }, { "::.-1.1", false, 0 },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(r); i++) {
		uint16_t port = 0;

		ck_assert_int_eq(getport_uaddr(r[i].text,
					       (uint32_t)strlen(r[i].text),
					       &port), r[i].ok);
		ck_assert_uint_eq(port, r[i].port);
	}
}
