/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server on a fabric that loses connections at any step, fails steps and
 * posts, and refuses registrations (tests/loop/chance.c), with a client that
 * connects again and sends its calls again: no data is wrong, no change is done
 * twice, nothing is left.  CHANCE_SEEDS in the environment asks for more seeds,
 * CHANCE_FROM for others.
 */
#include "tests/server/harness.h"

#include <arpa/inet.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "wire/nfs3.h"
#include "tests/unit/runner.h"
#include "tests/loop/loop.h"
#include "transport/rpcrdma/requester.h"
#include "transport/rpcrdma/rpcrdma.h"

enum { ROUNDS = 12, DATA = 150000, TRIES = 500 };

static struct harness srv;
static struct fabric fabric;
static struct xprt_listener *listener;
static struct loop *client;
static struct rpcrdma_requester *peer;	/* NULL: none */
static struct nfs3_fh top;
static struct rpcrdma_request req;
static sem_t done;
static uint32_t xid;
static unsigned resent;
static uint8_t call[4096], reply[4096], data[DATA], sink[DATA + 8];
static struct xdr_out out;
static struct xdr_in in;

static void start(uint32_t seed)
{
	/* Each in its turn, then all. */
	struct loop_fabric_options fo = { .seed = seed, .chance = {
		.lose = seed % 5 == 0 || seed % 5 == 4 ? 60 : 0,
		.fail = seed % 5 == 1 || seed % 5 == 4 ? 30 : 0,
		.post = seed % 5 == 2 || seed % 5 == 4 ? 30 : 0,
		.mr = seed % 5 == 3 || seed % 5 == 4 ? 20 : 0,
	} };
	struct harness_config hc = {
		.exports = "/mem 127.0.0.1(rw,secure,no_root_squash)\n",
	};
	struct sockaddr_in addr = { .sin_family = AF_INET };

	log_threshold = LOG_LEVEL_ERR;
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	harness_start(&srv, &hc);
	harness_root(&srv, "/mem", &top);
	ck_assert_int_eq(loop_fabric_create(&fo, &fabric), 0);
	ck_assert_int_eq(rpcrdma_listen(&fabric, &srv.env,
					(struct sockaddr *)&addr, NULL,
					&listener), 0);
	ck_assert_int_eq(loop_create("client", &client), 0);
	ck_assert_int_eq(loop_start(client), 0);
	sem_init(&done, 0, 0);
	resent = 0;
}

static void hang_up(void)
{
	if (peer)
		rpcrdma_requester_destroy(peer);
	peer = NULL;
}

/* The memory of connections that were lost is the server's again. */
static bool all_back(void)
{
	struct loop_fabric_counts n;

	loop_fabric_count(&fabric, &n);
	return n.ends == 0;
}

static void stop(void)
{
	struct loop_fabric_counts n;

	hang_up();
	EVENTUALLY(all_back());
	listener->ops->stop(listener);
	listener->ops->free(listener);
	harness_stop(&srv);
	loop_stop(client);
	loop_destroy(client);
	loop_fabric_count(&fabric, &n);
	ck_assert_uint_eq(n.violations, 0);
	ck_assert_uint_eq(n.mrs, 0);
	ck_assert_uint_eq(n.rnr, 0);
	loop_fabric_destroy(&fabric);
	sem_destroy(&done);
}

static void request_done(struct rpcrdma_request *q)
{
	if (q->status == 0)
		memcpy(reply, q->reply_data,
		       MIN(q->reply_len, (uint32_t)sizeof(reply)));
	sem_post(&done);
}

static void begin(uint32_t proc, const struct nfs3_fh *fh)
{
	const struct rpc_header h = { .xid = ++xid, .prog = NFS3_PROGRAM,
				      .vers = NFS3_VERSION, .proc = proc };
	const struct rpc_auth_sys sys = { .machine = "" };

	memset(&req, 0, sizeof(req));
	xdr_out_init(&out, call, sizeof(call));
	rpc_header_call(&out, &h, &sys);
	xdr_put_opaque(&out, fh->data, fh->len);
}

/* One try: the request's status. */
static int attempt(const struct rpcrdma_request *form)
{
	static const struct rpcrdma_requester_options options;

	if (!peer && rpcrdma_requester_create(&fabric,
			(struct sockaddr *)&listener->local, client, &options,
			&peer) < 0) {
		peer = NULL;
		return -ENOMEM;
	}
	req = *form;
	rpcrdma_requester_call(peer, &req);
	wait_sem(&done);
	return req.status;
}

/* Sends the call until it is answered; returns NFS's status, with the cursor
 * behind it. */
static uint32_t ask(void)
{
	struct rpcrdma_request form = req;
	int tries = 0;

	form.call = call;
	form.call_len = (uint32_t)xdr_out_len(&out);
	form.done = request_done;
	while (attempt(&form) < 0) {
		resent++;
		hang_up();
		ck_assert_int_lt(++tries, TRIES);
	}
	xdr_in_init(&in, reply, req.reply_len);
	ck_assert_uint_eq(xdr_get_u32(&in), xid);
	xdr_get_u64(&in);
	xdr_get_u64(&in);
	ck_assert_uint_eq(xdr_get_u32(&in), 0);
	return xdr_get_u32(&in);
}

static void put_name(int i)
{
	char name[16];

	snprintf(name, sizeof(name), "f%04d", i);
	xdr_put_opaque(&out, name, 5);
}

/* Names are made once, with GUARDED: the second time it would fail. */
static struct nfs3_fh make_file(int i)
{
	begin(NFSPROC3_CREATE, &top);
	put_name(i);
	xdr_put_u32(&out, 1);
	for (int k = 0; k < 6; k++)
		xdr_put_u32(&out, 0);
	ck_assert_uint_eq(ask(), NFS3_OK);
	ck_assert(xdr_get_bool(&in));
	return harness_get_fh(&in);
}

static void write_file(const struct nfs3_fh *fh, uint32_t len, int salt)
{
	for (uint32_t i = 0; i < len; i++)
		data[i] = (uint8_t)(i * 11 + (i >> 8) + (uint32_t)salt * 37);
	begin(NFSPROC3_WRITE, fh);
	xdr_put_u64(&out, 0);
	xdr_put_u32(&out, len);
	xdr_put_u32(&out, 2);
	xdr_put_u32(&out, len);
	req.nreads = 1;
	req.read[0].position = (uint32_t)xdr_out_len(&out);
	req.read[0].mem = rpcrdma_memory_at(data, len);
	ck_assert_uint_eq(ask(), NFS3_OK);
}

static void read_file(const struct nfs3_fh *fh, uint32_t len)
{
	memset(sink, 0xee, sizeof(sink));
	begin(NFSPROC3_READ, fh);
	xdr_put_u64(&out, 0);
	xdr_put_u32(&out, len);
	req.nwrites = 1;
	req.write[0] = rpcrdma_memory_at(sink, len);
	ck_assert_uint_eq(ask(), NFS3_OK);
	ck_assert_uint_eq(req.written[0], len);
	ck_assert_mem_eq(sink, data, len);
	ck_assert_uint_eq(sink[len], 0xee);
}

static void remove_file(int i)
{
	begin(NFSPROC3_REMOVE, &top);
	put_name(i);
	ck_assert_uint_eq(ask(), NFS3_OK);
}

TEST_CASE(.timeout = 1200);

TEST(whatever_fails_no_data_is_wrong_nothing_done_twice_nothing_left)
{
	const char *n = getenv("CHANCE_SEEDS"), *f = getenv("CHANCE_FROM");
	uint32_t from = f ? (uint32_t)strtoul(f, NULL, 0) : 1;
	uint32_t seeds = n ? (uint32_t)strtoul(n, NULL, 0) : 5;
	unsigned all = 0;

	for (uint32_t seed = from; seed < from + seeds; seed++) {
		start(seed);
		for (int i = 0; i < ROUNDS; i++) {
			uint32_t len = 1 + (seed * 977 + (uint32_t)i * 12347) %
				       DATA;
			struct nfs3_fh fh = make_file(i);

			write_file(&fh, len, i);
			read_file(&fh, len);
			if (i % 2)
				remove_file(i);
		}
		all += resent;
		stop();
	}
	ck_assert_uint_gt(all, 0);
	printf("# %u seeds, calls sent again %u times\n", seeds, all);
}
