/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WRITE whose data comes in pieces, as Read chunks make them, to a backend
 * that takes more or less of it at a time.
 */
#include <stdlib.h>

#include "lib/log.h"
#include "wire/nfs3.h"
#include "tests/server/fake_xprt.h"
#include "tests/server/fault_vfs.h"
#include "tests/server/harness.h"
#include "tests/server/late_vfs.h"
#include "tests/unit/runner.h"

#define WTMAX		8192

static struct harness srv;
static struct fake_xprt conn;
static struct nfs3_fh fh;
static uint8_t data[16384];
static uint8_t head[512];
static struct xdr_out out;
static struct fake_call *answer;
static struct xdr_in in;

static void setup(void)
{
	struct harness_config c = {
		.backend = &fault_vfs_ops,
		.exports = "/mem *(rw,insecure,no_root_squash)\n",
		.nfs3 = { .wtmax = WTMAX, .rtmax = 65536 },
	};

	log_threshold = LOG_LEVEL_ERR;
	fault_init();
	harness_start(&srv, &c);
	fake_xprt_init(&conn, rpc_server_sink(srv.server), srv.pool,
		       "192.0.2.1", 1023);
	harness_root(&srv, "/mem", &fh);
}

static void teardown(void)
{
	harness_stop(&srv);
}

static void begin(uint32_t proc)
{
	static const uint32_t words[] = { 0, 2, NFS3_PROGRAM, NFS3_VERSION };
	static const uint32_t auth[] = { 1, 20, 0, 0, 0, 0, 0, 0, 0 };
	static uint32_t xid;

	xdr_out_init(&out, head, sizeof(head));
	xdr_put_u32(&out, ++xid);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		xdr_put_u32(&out, words[i]);
	xdr_put_u32(&out, proc);
	for (size_t i = 0; i < ARRAY_SIZE(auth); i++)
		xdr_put_u32(&out, auth[i]);
	xdr_put_opaque(&out, fh.data, fh.len);
}

/* Sends the head and @n more segments; returns the status. */
static uint32_t ask(const struct xdr_seg *more, uint32_t n)
{
	struct xdr_seg segs[MSG_MAX_SEGS];

	segs[0] = (struct xdr_seg){ head, (uint32_t)xdr_out_len(&out) };
	for (uint32_t i = 0; i < n; i++)
		segs[1 + i] = more[i];
	answer = fake_send_segs(&conn, segs, 1 + n);
	fake_wait(answer);
	ck_assert(!answer->dropped);
	xdr_in_init(&in, answer->reply, answer->len);
	xdr_get_fixed(&in, 20);
	ck_assert_uint_eq(xdr_get_u32(&in), RPC_SUCCESS);
	return xdr_get_u32(&in);
}

static void make_file(void)
{
	begin(NFSPROC3_CREATE);
	xdr_put_opaque(&out, "f", 1);
	for (int i = 0; i < 7; i++)
		xdr_put_u32(&out, 0);
	ck_assert_uint_eq(ask(NULL, 0), NFS3_OK);
	ck_assert(xdr_get_bool(&in));
	fh = harness_get_fh(&in);
	fake_free(answer);
}

static void fill(unsigned salt)
{
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(salt * 101 + i * 3 + (i >> 7));
}

/* @len bytes in @n pieces, of which the first is @first long. */
static void write_pieces(uint32_t len, uint32_t n, uint32_t first)
{
	uint32_t each = n > 1 ? (len - first) / (n - 1) & ~3u : 0;
	struct xdr_seg segs[MSG_MAX_SEGS];
	uint32_t at = 0;

	begin(NFSPROC3_WRITE);
	xdr_put_u64(&out, 0);
	xdr_put_u32(&out, len);
	xdr_put_u32(&out, VFS_UNSTABLE);
	xdr_put_u32(&out, len);
	for (uint32_t i = 0; i < n; i++) {
		segs[i].data = data + at;
		segs[i].len = i == 0 ? first : each;
		if (i == n - 1)
			segs[i].len = len + xdr_pad(len) - at;
		at += segs[i].len;
	}
	ck_assert_uint_eq(ask(segs, n), NFS3_OK);
	if (xdr_get_bool(&in))
		xdr_get_fixed(&in, 24);
	if (xdr_get_bool(&in))
		xdr_get_fixed(&in, 84);
	ck_assert_uint_eq(xdr_get_u32(&in), MIN(len, (uint32_t)WTMAX));
	fake_free(answer);
}

/* It begins with @len bytes of data. */
static void expect_file(uint32_t len)
{
	struct xdr_view v;

	begin(NFSPROC3_READ);
	xdr_put_u64(&out, 0);
	xdr_put_u32(&out, len);
	ck_assert_uint_eq(ask(NULL, 0), NFS3_OK);
	xdr_get_fixed(&in, 88);
	ck_assert_uint_eq(xdr_get_u32(&in), len);
	xdr_get_bool(&in);
	v = xdr_get_opaque(&in, 65536);
	ck_assert_uint_eq(v.len, len);
	ck_assert_mem_eq(v.data, data, len);
	fake_free(answer);
}

static void try_lengths(uint32_t len, uint32_t n)
{
	static const uint32_t firsts[] = { 4, 8, 1000, 8192 };
	static const uint32_t takes[] = { 0, 4, 5, 999, 1000, 1001, 8192 };
	static unsigned salt;

	for (size_t f = 0; f < ARRAY_SIZE(firsts); f++)
		for (size_t t = 0; t < ARRAY_SIZE(takes); t++) {
			/* Each late operation starts a thread: do without
			 * the pieces that are many. */
			if (late_is() && takes[t] > 0 && takes[t] < 999)
				continue;
			fill(++salt);
			fault_write(takes[t], 0, 0);
			write_pieces(len, n, MIN(firsts[f], len & ~3u));
			expect_file(MIN(len, (uint32_t)WTMAX));
		}
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST_LOOP(pieces_make_the_whole, 1, MSG_MAX_SEGS)
{
	static const uint32_t lens[] = { 40, 4099, WTMAX, WTMAX + 1, 16000 };

	make_file();
	for (size_t l = 0; l < ARRAY_SIZE(lens); l++)
		try_lengths(lens[l], (uint32_t)_i);
}
