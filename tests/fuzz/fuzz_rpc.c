/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RPC calls of any bytes, to a program that takes every path through the
 * dispatcher.  The first byte says where the message is cut in two segments, as
 * an RDMA transport can deliver it.
 */
#include <stdlib.h>

#include "lib/log.h"
#include "tests/server/fake_program.h"
#include "tests/server/fake_xprt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static struct rpc_server *server;
static struct fake_xprt conn;

static void start(void)
{
	struct rpc_server_config config = {
		.nworkers = 2,
		.drc_bytes = 64 << 10,
	};

	log_threshold = LOG_LEVEL_ERR;
	test_late.at_once = true;	/* no other thread resumes a call */
	if (pool_create(64u << 20, &config.pool) ||
	    rpc_server_create(&config, &server) ||
	    rpc_server_add(server, &test_program))
		abort();
	fake_xprt_init(&conn, rpc_server_sink(server), config.pool,
		       "2001:db8::1", 1023);
}

/* A reply, to this xid, of a form that RFC 5531 section 9 has. */
static void check_reply(const struct fake_call *c, uint32_t xid)
{
	uint32_t stat = reply_word(c, 2);

	if (c->len < 20 || c->len % 4)
		abort();
	if (reply_word(c, 0) != xid || reply_word(c, 1) != 1 || stat > 1)
		abort();
	if (stat == 0 && (reply_word(c, 5) > 5 || c->len < 24))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct xprt_sink *sink;
	struct xdr_seg segs[2];
	struct fake_call *c;
	uint32_t cut, xid;

	if (!server)
		start();
	if (len < 1 || len > 65536)
		return 0;
	cut = MIN((uint32_t)data[0] * 4, (uint32_t)(len - 1) & ~3u);
	data++;
	len--;
	sink = rpc_server_sink(server);
	sink->read_chunk_ok(sink, data, (uint32_t)len, cut);
	segs[0].data = data;
	segs[0].len = cut;
	segs[1].data = data + cut;
	segs[1].len = (uint32_t)len - cut;
	c = fake_send_segs(&conn, segs, 2);
	fake_wait(c);
	if (!c->dropped) {
		memcpy(&xid, data, 4);
		check_reply(c, be32toh(xid));
	}
	fake_free(c);
	return 0;
}
