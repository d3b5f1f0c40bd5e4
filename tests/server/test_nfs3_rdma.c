/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NFS version 3 over RPC-over-RDMA: RFC 8267 section 4.  On the loop fabric,
 * each test in order and under three seeds out of it.
 */
#include "tests/server/harness.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "wire/nfs3.h"
#include "tests/unit/runner.h"
#include "tests/loop/loop.h"
#include "transport/rpcrdma/requester.h"
#include "transport/rpcrdma/rpcrdma.h"

#define MIB		(1u << 20)
#define SEEDS		4
#define POST_ATTR	88

static struct harness srv;
static struct fabric fabric;
static struct xprt_listener *listener;
static struct rpcrdma_requester *peer;
static struct loop *client;
static struct nfs3_fh top;
static sem_t connected, done;

static uint8_t call[16384], reply_buf[16384];
static uint8_t *data, *sink;		/* each MIB and some */
static struct xdr_out out;
static struct xdr_in in;
static struct rpcrdma_request req;
static uint32_t xid, pad_align;

static void connect_done(void *arg)
{
	sem_post(&connected);
}

static void request_done(struct rpcrdma_request *r)
{
	if (r->status == 0 && r->reply_len <= sizeof(reply_buf))
		memcpy(reply_buf, r->reply_data, r->reply_len);
	sem_post(&done);
}

static void start(int seed)
{
	/* As an adapter that needs nine segments for a mebibyte. */
	struct rpcrdma_requester_options ro = {
		.segment_size = 120 << 10,
		.pad_align = pad_align,
		.connected = connect_done,
	};
	struct loop_fabric_options fo = { .seed = (uint32_t)seed };
	/* RDMA clients have no privileged ports: secure is not for them. */
	struct harness_config hc = {
		.exports = "/mem 127.0.0.1(rw,secure,no_root_squash)\n",
	};
	struct sockaddr_in addr = { .sin_family = AF_INET };

	log_threshold = LOG_LEVEL_ERR;
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	addr.sin_port = htons(20049);
	harness_start(&srv, &hc);
	harness_root(&srv, "/mem", &top);
	ck_assert_int_eq(loop_fabric_create(&fo, &fabric), 0);
	ck_assert_int_eq(rpcrdma_listen(&fabric, &srv.env,
					(struct sockaddr *)&addr, NULL,
					&listener), 0);
	ck_assert_int_eq(loop_create("client", &client), 0);
	ck_assert_int_eq(loop_start(client), 0);
	sem_init(&connected, 0, 0);
	sem_init(&done, 0, 0);
	ck_assert_int_eq(rpcrdma_requester_create(&fabric,
			(struct sockaddr *)&listener->local, client, &ro,
			&peer), 0);
	wait_sem(&connected);
	data = malloc(MIB + 4096);
	sink = malloc(MIB + 4096);
	for (uint32_t i = 0; i < MIB + 4096; i++)
		data[i] = (uint8_t)(i * 11 + (i >> 8));
}

static void stop(void)
{
	struct loop_fabric_counts n;

	rpcrdma_requester_destroy(peer);
	listener->ops->stop(listener);
	listener->ops->free(listener);
	harness_stop(&srv);
	loop_stop(client);
	loop_destroy(client);
	loop_fabric_count(&fabric, &n);
	ck_assert_uint_eq(n.violations, 0);
	ck_assert_uint_eq(n.refused, 0);
	ck_assert_uint_eq(n.rnr, 0);
	loop_fabric_destroy(&fabric);
	free(sink);
	free(data);
}

static void begin(uint32_t proc)
{
	const struct rpc_header h = { .xid = ++xid, .prog = NFS3_PROGRAM,
				      .vers = NFS3_VERSION, .proc = proc };
	const struct rpc_auth_sys sys = { .machine = "" };

	memset(&req, 0, sizeof(req));
	memset(sink, 0xee, MIB + 4096);
	xdr_out_init(&out, call, sizeof(call));
	rpc_header_call(&out, &h, &sys);
}

static void put_fh(const struct nfs3_fh *fh)
{
	xdr_put_opaque(&out, fh->data, fh->len);
}

static void put_words(uint32_t v, unsigned n)
{
	while (n-- > 0)
		xdr_put_u32(&out, v);
}

/* Ends the call with an opaque that comes in a Read chunk. */
static void put_chunk(const void *mem, uint32_t len)
{
	xdr_put_u32(&out, len);
	req.nreads = 1;
	req.read[0].position = (uint32_t)xdr_out_len(&out);
	req.read[0].mem.addr = (void *)(uintptr_t)mem;
	req.read[0].mem.len = len;
}

static void ask_write_chunk(uint32_t len)
{
	req.nwrites = 1;
	req.write[0].addr = sink;
	req.write[0].len = len;
}

static void send_call(void)
{
	ck_assert(!out.bad);
	req.call = call;
	req.call_len = (uint32_t)xdr_out_len(&out);
	req.done = request_done;
	rpcrdma_requester_call(peer, &req);
	wait_sem(&done);
}

/* Sends it and returns the status, with the cursor behind it. */
static uint32_t status(void)
{
	send_call();
	ck_assert_int_eq(req.status, 0);
	xdr_in_init(&in, reply_buf, req.reply_len);
	ck_assert_uint_eq(xdr_get_u32(&in), xid);
	xdr_get_u64(&in);
	xdr_get_u64(&in);
	ck_assert_uint_eq(xdr_get_u32(&in), RPC_SUCCESS);
	return xdr_get_u32(&in);
}

static void skip_wcc(void)
{
	if (xdr_get_bool(&in))
		xdr_get_fixed(&in, 24);
	if (xdr_get_bool(&in))
		xdr_get_fixed(&in, POST_ATTR - 4);
}

static struct nfs3_fh take_fh(void)
{
	ck_assert(xdr_get_bool(&in));
	return harness_get_fh(&in);
}

static struct nfs3_fh make_file(const char *name)
{
	begin(NFSPROC3_CREATE);
	put_fh(&top);
	xdr_put_opaque(&out, name, (uint32_t)strlen(name));
	put_words(0, 7);
	ck_assert_uint_eq(status(), NFS3_OK);
	return take_fh();
}

/* WRITE at 0, the data in a Read chunk or inline. */
static void write_file(const struct nfs3_fh *fh, uint32_t len, bool chunk)
{
	begin(NFSPROC3_WRITE);
	put_fh(fh);
	xdr_put_u64(&out, 0);
	xdr_put_u32(&out, len);
	xdr_put_u32(&out, VFS_FILE_SYNC);
	if (chunk)
		put_chunk(data, len);
	else
		xdr_put_opaque(&out, data, len);
	ck_assert_uint_eq(status(), NFS3_OK);
	skip_wcc();
	ck_assert_uint_eq(xdr_get_u32(&in), len);
}

static void begin_read(const struct nfs3_fh *fh, uint32_t count)
{
	begin(NFSPROC3_READ);
	put_fh(fh);
	xdr_put_u64(&out, 0);
	xdr_put_u32(&out, count);
}

/* Bytes before the data of READ. */
static void expect_read(uint32_t len, bool eof)
{
	ck_assert_uint_eq(status(), NFS3_OK);
	ck_assert(xdr_get_bool(&in));
	xdr_get_fixed(&in, POST_ATTR - 4);
	ck_assert_uint_eq(xdr_get_u32(&in), len);
	ck_assert_int_eq(xdr_get_bool(&in), eof);
	ck_assert_uint_eq(xdr_get_u32(&in), len);
}

TEST_LOOP(data_goes_by_chunks_both_ways, 0, SEEDS)
{
	static const uint32_t lens[] = { 1, 3, 4, 4097, 122880, 122881,
					 MIB - 1, MIB };
	struct nfs3_fh fh;

	start(_i);
	fh = make_file("f");
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		uint32_t len = lens[i];

		write_file(&fh, len, true);
		begin_read(&fh, len);
		ask_write_chunk(len);
		expect_read(len, true);
		ck_assert(!req.nomsg);
		ck_assert_uint_eq(req.written[0], len);
		ck_assert_mem_eq(sink, data, len);
		/* No pad in the chunk, no data inline. */
		ck_assert_uint_eq(sink[len], 0xee);
		ck_assert_uint_eq(xdr_left(&in), 0);
	}
	stop();
}

TEST_LOOP(a_write_of_more_than_wtmax_is_cut_to_it, 0, SEEDS)
{
	static const uint32_t lens[] = { MIB + MIB / 5 + 1, 4 * MIB };
	static uint8_t many[4 * MIB];
	struct nfs3_fh fh;

	start(_i);
	fh = make_file("f");
	memcpy(many, data, MIB);
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		begin(NFSPROC3_WRITE);
		put_fh(&fh);
		xdr_put_u64(&out, 0);
		xdr_put_u32(&out, lens[i]);
		xdr_put_u32(&out, VFS_FILE_SYNC);
		put_chunk(many, lens[i]);
		ck_assert_uint_eq(status(), NFS3_OK);
		skip_wcc();
		ck_assert_uint_eq(xdr_get_u32(&in), MIB);
		begin_read(&fh, MIB);
		ask_write_chunk(MIB);
		expect_read(MIB, true);
		ck_assert_mem_eq(sink, data, MIB);
	}
	stop();
}

TEST_LOOP(small_data_goes_inline_both_ways, 0, SEEDS)
{
	struct nfs3_fh fh;

	start(_i);
	fh = make_file("f");
	write_file(&fh, 701, false);
	begin_read(&fh, 2000);
	expect_read(701, true);
	ck_assert_mem_eq(xdr_get_fixed(&in, 701).data, data, 701);
	ck_assert(xdr_ok(&in));
	stop();
}

/* RFC 5667 section 4: inline WRITEs can be padded. */
TEST_LOOP(small_data_goes_padded, 0, SEEDS)
{
	uint64_t before = stats_sum_by_name("rdma_padded_calls");
	struct nfs3_fh fh;

	pad_align = 512;
	start(_i);
	fh = make_file("f");
	for (uint32_t len = 700; len < 704; len++) {
		write_file(&fh, len, true);
		begin_read(&fh, 2000);
		expect_read(len, true);
		ck_assert_mem_eq(xdr_get_fixed(&in, len).data, data, len);
	}
	ck_assert_uint_eq(stats_sum_by_name("rdma_padded_calls"), before + 4);
	ck_assert_uint_eq(stats_sum_by_name("rdma_read_bytes"), 0);
	stop();
}

TEST_LOOP(a_write_chunk_that_is_too_large_is_used_in_part, 0, SEEDS)
{
	struct nfs3_fh fh;

	start(_i);
	fh = make_file("f");
	write_file(&fh, 150001, true);
	begin_read(&fh, MIB);
	ask_write_chunk(MIB);
	expect_read(150001, true);
	ck_assert_uint_eq(req.written[0], 150001);
	ck_assert_mem_eq(sink, data, 150001);
	ck_assert_uint_eq(sink[150001], 0xee);
	stop();
}

TEST_LOOP(a_write_chunk_for_nothing_comes_back_empty, 0, SEEDS)
{
	struct nfs3_fh fh;

	start(_i);
	fh = make_file("f");
	/* Nothing to read, an error, and a result that is not eligible. */
	begin_read(&fh, 4096);
	ask_write_chunk(4096);
	expect_read(0, true);
	ck_assert_uint_eq(req.written[0], 0);
	begin_read(&top, 4096);
	ask_write_chunk(4096);
	ck_assert_uint_eq(status(), NFS3ERR_INVAL);
	ck_assert_uint_eq(req.written[0], 0);
	begin(NFSPROC3_GETATTR);
	put_fh(&fh);
	ask_write_chunk(4096);
	ck_assert_uint_eq(status(), NFS3_OK);
	ck_assert_uint_eq(req.written[0], 0);
	ck_assert_uint_eq(sink[0], 0xee);
	stop();
}

TEST_LOOP(links_go_by_chunks_both_ways, 0, SEEDS)
{
	struct nfs3_fh fh;

	start(_i);
	memset(data, 'x', 4095);
	begin(NFSPROC3_SYMLINK);
	put_fh(&top);
	xdr_put_opaque(&out, "l", 1);
	put_words(0, 6);
	put_chunk(data, 4095);
	ck_assert_uint_eq(status(), NFS3_OK);
	fh = take_fh();
	begin(NFSPROC3_READLINK);
	put_fh(&fh);
	ask_write_chunk(4096);
	ck_assert_uint_eq(status(), NFS3_OK);
	ck_assert_uint_eq(req.written[0], 4095);
	ck_assert_mem_eq(sink, data, 4095);
	stop();
}

/* Walks the entries of READDIR; returns how many. */
static unsigned entries(void)
{
	unsigned n = 0;

	ck_assert(xdr_get_bool(&in));
	xdr_get_fixed(&in, POST_ATTR - 4);
	xdr_get_u64(&in);
	for (; xdr_get_bool(&in); n++) {
		xdr_get_u64(&in);
		xdr_get_opaque(&in, 255);
		xdr_get_u64(&in);
	}
	ck_assert(xdr_get_bool(&in));	/* eof */
	ck_assert(xdr_ok(&in));
	ck_assert_uint_eq(xdr_left(&in), 0);
	return n;
}

TEST_LOOP(directories_go_by_the_reply_chunk_when_they_must, 0, SEEDS)
{
	char name[64];

	start(_i);
	for (int pass = 0; pass < 2; pass++) {
		begin(NFSPROC3_READDIR);
		put_fh(&top);
		put_words(0, 4);
		xdr_put_u32(&out, 16000);
		req.reply.addr = sink;
		req.reply.len = 16384;
		ck_assert_uint_eq(status(), NFS3_OK);
		ck_assert_int_eq(req.nomsg, pass == 1);
		ck_assert_uint_eq(entries(), pass ? 102 : 2);
		for (int i = 0; pass == 0 && i < 100; i++) {
			snprintf(name, sizeof(name), "%050d", i);
			make_file(name);
		}
	}
	stop();
}

TEST_LOOP(a_long_call_is_a_call, 0, SEEDS)
{
	struct nfs3_fh fh;

	start(_i);
	fh = make_file("f");
	begin(NFSPROC3_WRITE);
	req.long_call = true;
	put_fh(&fh);
	xdr_put_u64(&out, 0);
	xdr_put_u32(&out, 10001);
	xdr_put_u32(&out, VFS_FILE_SYNC);
	xdr_put_opaque(&out, data, 10001);
	ck_assert_uint_eq(status(), NFS3_OK);
	begin_read(&fh, 20000);
	ask_write_chunk(20000);
	expect_read(10001, true);
	ck_assert_mem_eq(sink, data, 10001);
	stop();
}

/* RFC 8166 section 3.4.5: only results that the binding allows. */
TEST_LOOP(other_arguments_in_chunks_are_refused, 0, SEEDS)
{
	start(_i);
	begin(NFSPROC3_LOOKUP);
	put_fh(&top);
	put_chunk("name", 4);
	send_call();
	ck_assert_int_eq(req.status, -EREMOTEIO);
	stop();
}
