/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester's view of replies: a reply that RFC 8166 forbids fails the
 * request, as it does with clients in use.
 */
#include <errno.h>

#include "tests/unit/rpcrdma_wire.h"
#include "transport/rpcrdma/request.h"

/* A device whose registrations are just numbered. */
static struct fabric_mr mrs[RPCRDMA_REQUEST_SEGS + 1];
static unsigned nmrs;
static struct fabric_device device;
static struct fabric_conn conn = { .dev = &device };
static struct rpcrdma_regions regions;

static int mr_create(struct fabric_device *dev, void *addr, size_t len,
		     unsigned access, struct fabric_mr **out)
{
	struct fabric_mr *mr = &mrs[nmrs];

	*mr = (struct fabric_mr){ .lkey = nmrs, .rkey = 0x5000 + nmrs,
				  .addr = addr, .len = len, .dev = dev };
	nmrs++;
	*out = mr;
	return 0;
}

static int mr_destroy(struct fabric_mr *mr)
{
	nmrs--;
	return 0;
}

static const struct fabric_ops ops = {
	.mr_create = mr_create, .mr_destroy = mr_destroy };

static struct rpcrdma_request q;
static struct rpcrdma_requester_options options;
static struct request_slot slot;
static uint8_t call[64], sent[4096], data[4096], reply[4096];

/* A request with one Write chunk of 3 segments and a Reply chunk of 2. */
static void setup(void)
{
	uint32_t xid = htobe32(XID);

	device.ops = &ops;
	rpcrdma_regions_init(&regions, &conn, false, 0, 0);
	nmrs = 0;
	memcpy(call, &xid, 4);
	memcpy(reply, &xid, 4);
	q = (struct rpcrdma_request){ .call = call, .call_len = 40 };
	slot = (struct request_slot){ .request = &q, .xid = XID,
				      .buf = sent, .options = &options };
}

static void offer(uint32_t write_len, uint32_t reply_len)
{
	setup();
	q.nwrites = write_len > 0;
	q.write[0] = rpcrdma_memory_at(data, write_len);
	q.reply = rpcrdma_memory_at(reply, reply_len);
	ck_assert_int_gt(request_marshal(&slot, &regions, sizeof(sent), 1, 100),
			 0);
}

static void put_returned(const struct request_chunk *c, const uint32_t *lens)
{
	xdr_put_u32(&w.out, 1);
	xdr_put_u32(&w.out, c->nsegs);
	for (unsigned i = 0; i < c->nsegs; i++)
		put_segment(c->seg[i].mr->rkey, lens[i],
			    (uintptr_t)c->seg[i].addr);
}

/* The status after the reply that was made. */
static int status(void)
{
	ck_assert_int_eq(decode(), 0);
	request_complete(&slot, &h, w.mem, (uint32_t)xdr_out_len(&w.out));
	return q.status;
}

static const uint32_t none[3] = { 0, 0, 0 };

TEST(a_call_is_marshalled_as_it_is_described)
{
	struct rpcrdma_header c;
	int len;

	setup();
	q.nreads = 1;
	q.read[0].position = 40;
	q.read[0].mem = rpcrdma_memory_at(data, 250);
	q.nwrites = 1;
	q.write[0] = rpcrdma_memory_at(data + 1000, 100);
	q.reply = rpcrdma_memory_at(reply, 150);
	len = request_marshal(&slot, &regions, sizeof(sent), 77, 100);
	ck_assert_int_gt(len, 0);
	ck_assert_int_eq(rpcrdma_header_decode(sent, (size_t)len, &c), 0);
	ck_assert_uint_eq(c.proc, RPCRDMA_MSG);
	ck_assert_uint_eq(c.credits, 77);
	ck_assert_uint_eq(c.nreads, 1);
	ck_assert_uint_eq(c.read[0].nsegs, 3);
	ck_assert_uint_eq(c.read[0].length, 250);
	ck_assert_uint_eq(c.write.nsegs, 1);
	ck_assert_uint_eq(c.reply.nsegs, 2);
	ck_assert_uint_eq(c.len + 40, (uint32_t)len);
	ck_assert_uint_eq(nmrs, 6);
	request_take_back(&slot, &regions);
	ck_assert_uint_eq(nmrs, 0);
}

TEST(a_call_too_long_for_the_send_becomes_a_long_one)
{
	struct rpcrdma_header c;
	int len;

	setup();
	len = request_marshal(&slot, &regions, 64, 1, 0);
	ck_assert_int_eq(len, 28 + 24);
	ck_assert_int_eq(rpcrdma_header_decode(sent, (size_t)len, &c), 0);
	ck_assert_uint_eq(c.proc, RPCRDMA_NOMSG);
	ck_assert_uint_eq(c.read[0].position, 0);
	ck_assert_uint_eq(c.read[0].length, 40);
	/* And lists too long for it are an error. */
	setup();
	q.reply = rpcrdma_memory_at(reply, sizeof(reply));
	ck_assert_int_eq(request_marshal(&slot, &regions, 256, 1, 200),
			 -EMSGSIZE);
	setup();
	q.reply = rpcrdma_memory_at(reply, sizeof(reply));
	ck_assert_int_eq(request_marshal(&slot, &regions, 4096, 1, 50),
			 -EMSGSIZE);
}

TEST(an_inline_reply_is_taken)
{
	offer(0, 0);
	begin(1, RPCRDMA_MSG);
	put_zeros(3);
	xdr_put_u32(&w.out, XID);
	ck_assert_int_eq(status(), 0);
	ck_assert_uint_eq(q.reply_len, 4);
	ck_assert(!q.nomsg);
}

TEST(a_reply_with_a_read_list_fails)
{
	offer(0, 0);
	begin(1, RPCRDMA_MSG);
	put_read(0, 100);
	put_zeros(3);
	xdr_put_u32(&w.out, XID);
	ck_assert_int_eq(status(), -EIO);
}

TEST(chunks_that_were_not_offered_fail)
{
	offer(0, 0);
	begin(1, RPCRDMA_MSG);
	put_zeros(1);
	put_chunk(1, 10);
	put_zeros(2);
	xdr_put_u32(&w.out, XID);
	ck_assert_int_eq(status(), -EIO);
	begin(1, RPCRDMA_MSG);
	put_zeros(2);
	put_chunk(1, 0);
	xdr_put_u32(&w.out, XID);
	ck_assert_int_eq(status(), -EIO);
}

/* A reply with these lengths in the Write chunk. */
static int write_status(const uint32_t *lens)
{
	offer(250, 0);
	begin(1, RPCRDMA_MSG);
	put_zeros(1);
	put_returned(&slot.write[0], lens);
	put_zeros(2);
	xdr_put_u32(&w.out, XID);
	return status();
}

TEST(write_chunks_come_back_whole_filled_in_order)
{
	static const uint32_t full[] = { 100, 100, 50 };
	static const uint32_t part[] = { 100, 7, 0 };
	static const uint32_t gap[] = { 99, 1, 0 };
	static const uint32_t over[] = { 101, 0, 0 };

	ck_assert_int_eq(write_status(full), 0);
	ck_assert_uint_eq(q.written[0], 250);
	ck_assert_int_eq(write_status(part), 0);
	ck_assert_uint_eq(q.written[0], 107);
	ck_assert_int_eq(write_status(none), 0);
	ck_assert_int_eq(write_status(gap), -EIO);
	ck_assert_int_eq(write_status(over), -EIO);
	/* Other handles, fewer segments. */
	begin(1, RPCRDMA_MSG);
	put_zeros(1);
	put_chunk(3, 10);
	put_zeros(2);
	xdr_put_u32(&w.out, XID);
	ck_assert_int_eq(status(), -EIO);
	begin(1, RPCRDMA_MSG);
	put_zeros(1);
	put_chunk(0, 0);
	put_zeros(2);
	xdr_put_u32(&w.out, XID);
	ck_assert_int_eq(status(), -EIO);
}

TEST(lists_that_were_not_used_may_be_missing)
{
	offer(250, 150);
	q.written[0] = 99;
	begin(1, RPCRDMA_MSG);
	put_zeros(3);
	xdr_put_u32(&w.out, XID);
	ck_assert_int_eq(status(), 0);
	ck_assert_uint_eq(q.written[0], 0);
	ck_assert_uint_eq(q.reply_len, 4);
	ck_assert(!q.nomsg);
	/* But then nothing can have come in them. */
	begin(1, RPCRDMA_NOMSG);
	put_zeros(3);
	ck_assert_int_eq(status(), -EIO);
}

static int reply_status(uint32_t proc, const uint32_t *lens, uint32_t xid)
{
	offer(0, 150);
	begin(1, proc);
	put_zeros(2);
	put_returned(&slot.reply, lens);
	if (proc == RPCRDMA_MSG)
		xdr_put_u32(&w.out, xid);
	return status();
}

TEST(the_reply_chunk_is_for_nomsg_and_for_nothing_else)
{
	static const uint32_t some[] = { 100, 3 };

	ck_assert_int_eq(reply_status(RPCRDMA_NOMSG, some, 0), 0);
	ck_assert_uint_eq(q.reply_len, 103);
	ck_assert(q.nomsg);
	ck_assert_ptr_eq(q.reply_data, reply);
	ck_assert_int_eq(reply_status(RPCRDMA_NOMSG, none, 0), -EIO);
	ck_assert_int_eq(reply_status(RPCRDMA_MSG, none, XID), 0);
	ck_assert_int_eq(reply_status(RPCRDMA_MSG, some, XID), -EIO);
	offer(0, 0);
	begin(1, RPCRDMA_NOMSG);
	put_zeros(3);
	ck_assert_int_eq(status(), -EIO);
}

TEST(the_xid_of_the_reply_must_be_that_of_the_call)
{
	static const uint32_t some[] = { 100, 3 };

	ck_assert_int_eq(reply_status(RPCRDMA_MSG, none, XID + 1), -EIO);
	offer(0, 150);
	reply[0] ^= 1;
	begin(1, RPCRDMA_NOMSG);
	put_zeros(2);
	put_returned(&slot.reply, some);
	ck_assert_int_eq(status(), -EIO);
	/* A reply without any. */
	offer(0, 0);
	begin(1, RPCRDMA_MSG);
	put_zeros(3);
	ck_assert_int_eq(status(), -EIO);
}

TEST(only_replies_are_replies)
{
	static const uint32_t procs[] = { RPCRDMA_MSGP, RPCRDMA_DONE };

	for (size_t i = 0; i < ARRAY_SIZE(procs); i++) {
		offer(0, 0);
		begin(1, procs[i]);
		put_zeros(6);
		ck_assert_int_eq(status(), -EIO);
	}
}

TEST(rdma_error_is_an_error_of_its_own)
{
	offer(0, 0);
	begin(1, RPCRDMA_ERROR);
	xdr_put_u32(&w.out, RPCRDMA_ERR_CHUNK);
	ck_assert_int_eq(status(), -EREMOTEIO);
	ck_assert_uint_eq(q.errcode, RPCRDMA_ERR_CHUNK);
}

static unsigned closes;

static int post(struct fabric_conn *c, struct fabric_wr *chain)
{
	return -ENOMEM;
}

static void count_close(struct fabric_conn *c)
{
	closes++;
}

TEST(an_rdma_done_that_can_not_be_sent_ends_the_connection)
{
	static const struct fabric_ops full = {
		.post = post, .close = count_close };
	struct fabric_conn fc = { .ops = &full };
	struct rpcrdma_fetches all = { .fc = &fc };
	uint8_t done[RPCRDMA_DONE_LEN];

	closes = 0;
	ck_assert_int_eq(rpcrdma_fetches_init(&all, 1), 0);
	rpcrdma_fetches_place(&all, done, 0);
	rpcrdma_fetch_ack(&all.fetch[0], XID);
	ck_assert_uint_eq(closes, 1);
	ck_assert(!all.fetch[0].acking);
	ck_assert_uint_eq(rpcrdma_fetches_owed(&all), 0);
	rpcrdma_fetches_fini(&all);
}

TEST(there_is_a_credit_however_short_the_queues)
{
	static const struct fabric_limits limits[] = {
		{ .max_wr = 2, .max_recv = 100 },
		{ .max_wr = 100, .max_recv = SPARE_RECVS },
		{ .max_wr = 100, .max_recv = SPARE_RECVS / 2 },
	};
	struct rpcrdma_requester_options o;

	for (unsigned i = 0; i < ARRAY_SIZE(limits); i++) {
		o = (struct rpcrdma_requester_options){
			.credits = 32, .read_read = true };
		request_fit_queues(&o, &limits[i]);
		ck_assert_uint_eq(o.credits, 1);
	}
}
