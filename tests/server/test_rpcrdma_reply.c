/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder and replies: the places of results, and the replies
 * themselves. */
#include <errno.h>

#include "lib/stats.h"
#include "tests/server/rdma_peer.h"
#include "tests/unit/runner.h"

static struct rig rig;
static struct rpcrdma_requester *requester;
static struct exchange x;
static uint8_t mem[1 << 20];
static uint8_t reply_mem[1 << 20];

static void open_with(const struct rig_options *options,
		      const struct rpcrdma_requester_options *ro)
{
	rig_open(&rig, options);
	rig_connect(&rig, ro, &requester);
	memset(mem, 0xee, sizeof(mem));
	memset(reply_mem, 0xee, sizeof(reply_mem));
}

static void close_all(void)
{
	rpcrdma_requester_destroy(requester);
	rig_close(&rig);
}

static void offer_write(unsigned i, uint32_t off, uint32_t len)
{
	x.request.write[i] = rpcrdma_memory_at(mem + off, len);
	x.request.nwrites = MAX(x.request.nwrites, i + 1);
}

static void offer_reply(uint32_t len)
{
	x.request.reply = rpcrdma_memory_at(reply_mem, len);
}

static int exchange(void)
{
	exchange_start(requester, &x);
	return exchange_wait(&x);
}

static void check_pattern(const uint8_t *data, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		if (data[i] != pattern(i))
			ck_abort_msg("byte %u of %u is wrong", i, len);
}

/* The data is in mem, and nothing else was touched. */
static void check_written(uint32_t len)
{
	ck_assert_uint_eq(x.request.written[0], len);
	check_pattern(mem, len);
	for (uint32_t i = len; i < len + 64; i++)
		ck_assert_uint_eq(mem[i], 0xee);
}

/* The rest of a READ reply: xid, length, END_WORD; no data, no pad. */
static void check_reduced(uint32_t xid, uint32_t len)
{
	ck_assert_uint_eq(x.request.reply_len, 12);
	ck_assert_uint_eq(exchange_word(&x, 0), xid);
	ck_assert_uint_eq(exchange_word(&x, 1), len);
	ck_assert_uint_eq(exchange_word(&x, 2), END_WORD);
}

TEST(data_goes_to_the_write_chunk_and_its_pad_nowhere)
{
	static const uint32_t lens[] = { 1, 2, 3, 4, 100, 4095, 100001,
					 POOL_PAYLOAD_MAX - 64 };

	open_with(NULL, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		/* With room for the pad, and without. */
		for (uint32_t room = 0; room < 4; room += 3) {
			memset(mem, 0xee, sizeof(mem));
			exchange_init(&x, 100 + lens[i], OP_READ, lens[i]);
			offer_write(0, 0, lens[i] + room);
			ck_assert_int_eq(exchange(), 0);
			check_reduced(100 + lens[i], lens[i]);
			check_written(lens[i]);
			exchange_fini(&x);
		}
	}
	close_all();
}

TEST(a_write_chunk_of_many_segments_is_filled_in_order)
{
	struct rpcrdma_requester_options ro = { .segment_size = 4096 };

	open_with(NULL, &ro);
	exchange_init(&x, 1, OP_READ, 10001);
	offer_write(0, 0, 50000);		/* the rest comes back as 0 */
	ck_assert_int_eq(exchange(), 0);
	check_reduced(1, 10001);
	check_written(10001);
	exchange_fini(&x);
	close_all();
}

TEST(unused_write_chunks_come_back_with_zero_lengths)
{
	open_with(NULL, NULL);
	exchange_init(&x, 2, OP_SUM, 0);
	offer_write(0, 0, 1000);
	offer_write(1, 5000, 1000);
	ck_assert_int_eq(exchange(), 0);
	ck_assert_uint_eq(x.request.written[0], 0);
	ck_assert_uint_eq(x.request.written[1], 0);
	exchange_fini(&x);
	exchange_init(&x, 3, OP_READ, 300);
	offer_write(0, 0, 1000);
	offer_write(1, 5000, 1000);
	ck_assert_int_eq(exchange(), 0);
	check_written(300);
	ck_assert_uint_eq(x.request.written[1], 0);
	exchange_fini(&x);
	/* A result of no bytes uses no chunk either. */
	exchange_init(&x, 4, OP_READ, 0);
	offer_write(0, 0, 1000);
	ck_assert_int_eq(exchange(), 0);
	check_reduced(4, 0);
	ck_assert_uint_eq(x.request.written[0], 0);
	exchange_fini(&x);
	close_all();
}

/* Data that came as part of the reply, with its pad. */
static void check_in_stream(uint32_t xid, uint32_t len)
{
	ck_assert_uint_eq(x.request.reply_len, 12 + len + xdr_pad(len));
	ck_assert_uint_eq(exchange_word(&x, 0), xid);
	ck_assert_uint_eq(exchange_word(&x, 1), len);
	check_pattern(x.reply + 8, len);
	for (uint32_t i = 0; i < xdr_pad(len); i++)
		ck_assert_uint_eq(x.reply[8 + len + i], 0);
	ck_assert_uint_eq(exchange_word(&x, 2 + (len + 3) / 4), END_WORD);
}

TEST(an_empty_write_chunk_brings_the_data_inline)
{
	open_with(NULL, NULL);
	exchange_init(&x, 5, OP_READ, 701);
	offer_write(0, 0, 0);
	offer_write(1, 5000, 1000);
	ck_assert_int_eq(exchange(), 0);
	check_in_stream(5, 701);
	ck_assert_uint_eq(x.request.written[1], 0);
	exchange_fini(&x);
	close_all();
}

TEST(without_a_write_chunk_data_goes_inline_or_to_the_reply_chunk)
{
	open_with(NULL, NULL);
	for (uint32_t len = 0; len < 4096 - 28 - 16;
	     len += len < 300 ? 1 : 97) {
		exchange_init(&x, 1000 + len, OP_READ, len);
		ck_assert_int_eq(exchange(), 0);
		ck_assert(!x.request.nomsg);
		check_in_stream(1000 + len, len);
		exchange_fini(&x);
	}
	exchange_init(&x, 6, OP_READ, 70001);
	offer_reply(80000);
	ck_assert_int_eq(exchange(), 0);
	ck_assert(x.request.nomsg);
	check_in_stream(6, 70001);
	exchange_fini(&x);
	close_all();
}

TEST(data_longer_than_its_write_chunk_gets_err_chunk)
{
	uint64_t before = stats_sum_by_name("rdma_small_write_chunks");

	open_with(NULL, NULL);
	exchange_init(&x, 7, OP_READ, 1001);
	offer_write(0, 0, 1000);
	ck_assert_int_eq(exchange(), -EREMOTEIO);
	ck_assert_uint_eq(x.request.errcode, RPCRDMA_ERR_CHUNK);
	ck_assert_uint_eq(mem[0], 0xee);
	ck_assert_uint_eq(stats_sum_by_name("rdma_small_write_chunks"),
			  before + 1);
	exchange_fini(&x);
	close_all();
}

/* A long reply came, in the Reply chunk, whole and not longer. */
static void check_long(uint32_t xid, uint32_t len)
{
	ck_assert(x.request.nomsg);
	ck_assert_uint_eq(x.request.reply_len, 8 + len + xdr_pad(len));
	ck_assert_uint_eq(exchange_word(&x, 0), xid);
	ck_assert_uint_eq(exchange_word(&x, 1), len);
	check_pattern(x.reply + 8, len);
	ck_assert_uint_eq(reply_mem[8 + len + xdr_pad(len)], 0xee);
}

TEST(a_long_reply_goes_to_the_reply_chunk_exactly)
{
	struct rpcrdma_requester_options ro = { .segment_size = 1000 };

	open_with(NULL, &ro);
	for (uint32_t len = 4100; len < 4110; len++) {
		exchange_init(&x, len, OP_LONG, len);
		offer_reply(20000);
		ck_assert_int_eq(exchange(), 0);
		check_long(len, len);
		exchange_fini(&x);
		memset(reply_mem, 0xee, sizeof(reply_mem));
	}
	close_all();
}

TEST(a_reply_chunk_that_is_not_needed_comes_back_with_zero_lengths)
{
	open_with(NULL, NULL);
	exchange_init(&x, 8, OP_LONG, 3000);
	offer_reply(20000);
	/* The requester refuses a reply chunk that is not returned, or is
	 * not empty, with an RDMA_MSG. */
	ck_assert_int_eq(exchange(), 0);
	ck_assert(!x.request.nomsg);
	ck_assert_uint_eq(x.request.reply_len, 3008);
	ck_assert_uint_eq(reply_mem[0], 0xee);
	exchange_fini(&x);
	close_all();
}

TEST(write_list_and_reply_chunk_are_used_together)
{
	struct rpcrdma_requester_options ro = { .segment_size = 100,
						.no_private = true };

	open_with(NULL, &ro);
	/* The header is 824 bytes of 1024: no room for the rest. */
	exchange_init(&x, 9, OP_READ, 2499 | 100u << 24);
	offer_write(0, 0, 2500);
	offer_reply(2400);
	ck_assert_int_eq(exchange(), 0);
	ck_assert(x.request.nomsg);
	ck_assert_uint_eq(x.request.reply_len, 12 + 400);
	ck_assert_uint_eq(exchange_word(&x, 1), 2499);
	ck_assert_uint_eq(exchange_word(&x, 102), END_WORD);
	check_written(2499);
	exchange_fini(&x);
	/* With room, the Reply chunk stays empty. */
	exchange_init(&x, 10, OP_READ, 2499);
	offer_write(0, 0, 2500);
	offer_reply(2400);
	ck_assert_int_eq(exchange(), 0);
	ck_assert(!x.request.nomsg);
	check_reduced(10, 2499);
	exchange_fini(&x);
	close_all();
}

TEST(a_reply_that_fits_nowhere_gets_err_chunk)
{
	open_with(NULL, NULL);
	exchange_init(&x, 11, OP_LONG, 5000);
	ck_assert_int_eq(exchange(), -EREMOTEIO);
	ck_assert_uint_eq(x.request.errcode, RPCRDMA_ERR_CHUNK);
	exchange_fini(&x);
	exchange_init(&x, 12, OP_LONG, 5000);
	offer_reply(5007);			/* a byte too short */
	ck_assert_int_eq(exchange(), -EREMOTEIO);
	ck_assert_uint_eq(reply_mem[0], 0xee);
	exchange_fini(&x);
	exchange_init(&x, 13, OP_LONG, 5000);
	offer_reply(5008);
	ck_assert_int_eq(exchange(), 0);
	check_long(13, 5000);
	exchange_fini(&x);
	close_all();
}

TEST(few_pieces_to_gather_from_are_enough)
{
	for (unsigned max_sge = 1; max_sge <= 3; max_sge++) {
		struct rig_options o = { .fabric.passive.max_sge = max_sge };
		struct rpcrdma_requester_options ro = { .segment_size = 700 };

		open_with(&o, &ro);
		exchange_init(&x, 14, OP_READ, 3001);
		ck_assert_int_eq(exchange(), 0);
		check_in_stream(14, 3001);
		exchange_fini(&x);
		exchange_init(&x, 15, OP_LONG, 9999);
		offer_reply(12000);
		ck_assert_int_eq(exchange(), 0);
		check_long(15, 9999);
		exchange_fini(&x);
		exchange_init(&x, 16, OP_READ, 9999);
		offer_write(0, 0, 12000);
		ck_assert_int_eq(exchange(), 0);
		check_reduced(16, 9999);
		check_written(9999);
		exchange_fini(&x);
		close_all();
	}
}

TEST(an_echo_through_all_chunks_comes_back)
{
	struct rpcrdma_requester_options ro = { .segment_size = 50000 };
	static uint8_t out[POOL_PAYLOAD_MAX];

	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = pattern((uint32_t)i);
	open_with(NULL, &ro);
	for (uint32_t len = 1; len <= sizeof(out); len = len * 4 + 1) {
		exchange_init(&x, len, OP_ECHO, 0);
		exchange_put(&x, len);
		x.request.nreads = 1;
		x.request.read[0].position = DATA_POSITION;
		x.request.read[0].mem = rpcrdma_memory_at(out, len);
		offer_reply(sizeof(reply_mem));
		ck_assert_int_eq(exchange(), 0);
		ck_assert_uint_eq(exchange_word(&x, 1), len);
		check_pattern(x.reply + 8, len);
		exchange_fini(&x);
	}
	close_all();
}

TEST(a_call_too_long_for_a_send_goes_as_a_long_call)
{
	struct rpcrdma_requester_options ro = { .no_private = true };

	open_with(NULL, &ro);
	exchange_init(&x, 17, OP_SUM, 0);
	for (uint32_t i = 0; i < 400; i++)
		exchange_put(&x, i);
	ck_assert_int_eq(exchange(), 0);
	ck_assert_uint_eq(exchange_word(&x, 3), 400);
	ck_assert_uint_eq(exchange_word(&x, 4), 399);
	ck_assert_uint_eq(stats_sum_by_name("rdma_long_calls"), 1);
	exchange_fini(&x);
	close_all();
}

/* Handles that were invalidated by one READ with these options. */
static unsigned invalidated(const struct rig_options *options,
			    const struct rpcrdma_requester_options *ro)
{
	struct rpcrdma_requester_info info;

	open_with(options, ro);
	exchange_init(&x, 18, OP_READ, 5000);
	offer_write(0, 0, 6000);
	ck_assert_int_eq(exchange(), 0);
	check_written(5000);
	exchange_fini(&x);
	rpcrdma_requester_info(requester, &info);
	close_all();
	return info.invalidated;
}

TEST(the_only_handle_is_invalidated_when_both_sides_can)
{
	struct rig_options cannot = { .fabric.no_invalidate = true };
	struct rpcrdma_requester_options many = { .segment_size = 3000 };
	struct rpcrdma_requester_options may_not = { .no_invalidate = true };
	struct rpcrdma_requester_options silent = { .no_private = true };

	ck_assert_uint_eq(invalidated(NULL, NULL), 1);
	ck_assert_uint_eq(invalidated(NULL, &many), 0);
	ck_assert_uint_eq(invalidated(NULL, &may_not), 0);
	ck_assert_uint_eq(invalidated(NULL, &silent), 0);
	ck_assert_uint_eq(invalidated(&cannot, NULL), 0);
}

TEST(an_error_never_invalidates)
{
	struct loop_fabric_counts counts;

	open_with(NULL, NULL);
	exchange_init(&x, 19, OP_READ, 5000);
	offer_write(0, 0, 4000);
	ck_assert_int_eq(exchange(), -EREMOTEIO);
	exchange_fini(&x);
	rig_count(&rig, &counts);
	ck_assert_uint_eq(counts.invalidates, 0);
	close_all();
}

/* The longest inline reply that a peer with these Receives gets. */
static void check_threshold(const struct rpcrdma_private *p, uint32_t size)
{
	struct peer_options po = { .private_data = p, .recv_size = size };
	uint32_t most = size - 28 - 8;
	struct peer peer;

	rig_open(&rig, NULL);
	peer_open(&peer, &rig, &po);
	peer_wait_up(&peer);
	peer_call(&peer, 20, OP_LONG, most);
	peer_take(&peer);
	ck_assert_uint_eq(peer.msg.len, size);
	peer_call(&peer, 21, OP_LONG, most + 1);
	peer_take_error(&peer, 21, RPCRDMA_ERR_CHUNK);
	peer_check_alive(&peer);
	peer_close(&peer);
	rig_close(&rig);
}

TEST(no_send_is_longer_than_the_peer_takes)
{
	struct rpcrdma_private p = { .recv_size = 2048, .send_size = 4096 };

	check_threshold(NULL, 1024);
	check_threshold(&p, 2048);
	p.recv_size = 65536;			/* ours is the smaller */
	check_threshold(&p, 4096);
}

static bool is_held(void *arg)
{
	return rig_held(&rig) == 1;
}

/* A call whose lists come back in more than 1 KiB. */
static void hold_wide_call(struct peer *peer, const struct fabric_mr *mr)
{
	peer_begin(peer, 9, 1, RPCRDMA_MSG);
	peer_put(peer, 0);
	peer_put(peer, 1);
	peer_put(peer, 70);
	for (uint32_t i = 0; i < 70; i++)
		peer_put_segment(peer, mr, 16 * i, 16);
	peer_put(peer, 0);
	peer_put_chunk(peer, mr, 1024);
	peer_put_call(peer, 9, OP_HOLD, 0);
	peer_send(peer);
	wait_until(is_held, NULL);
}

/* A peer can lower its limit (RFC 5666 section 6) while calls run. */
TEST(no_reply_is_longer_than_a_limit_that_was_lowered)
{
	const struct rpcrdma_private p = { .recv_size = 4096,
					   .send_size = 4096 };
	const struct peer_options po = { .private_data = &p };
	const struct rpcrdma_limits theirs = { 4096, 1024, 16 };
	struct rpcrdma_limits ours;
	struct fabric_mr *mr;
	struct peer peer;

	rig_open(&rig, NULL);
	peer_open(&peer, &rig, &po);
	peer_wait_up(&peer);
	mr = peer_register(&peer, mem, 2048, FABRIC_REMOTE_WRITE);
	peer_call(&peer, 5, OP_KEEP, 0);
	peer_take(&peer);
	hold_wide_call(&peer, mr);
	rpcrdma_configure(rig.xprt, &theirs, &ours);
	rig_release(&rig);
	peer_take_error(&peer, 9, RPCRDMA_ERR_CHUNK);
	peer_check_alive(&peer);
	fabric_mr_destroy(mr);
	peer_close(&peer);
	rig_close(&rig);
}

static void get_info(void *arg)
{
	rpcrdma_requester_info(requester, arg);
}

TEST(thresholds_are_told_both_ways)
{
	struct rig_options o = { .fabric.pad_private = 196,
				 .rdma.inline_size = 8192 };
	struct rpcrdma_requester_options ro = { .inline_size = 16384 };
	struct rpcrdma_requester_info info;

	open_with(&o, &ro);
	exchange_init(&x, 22, OP_SUM, 0);
	ck_assert_int_eq(exchange(), 0);
	loop_call(rig.client, get_info, &info);
	ck_assert_uint_eq(info.send_inline, 8192);
	ck_assert_uint_eq(info.recv_inline, 8192);
	ck_assert_uint_eq(info.credits, 128);
	ck_assert_uint_eq(info.discarded, 0);
	exchange_fini(&x);
	close_all();
}

/* Begins a message that asks for so many credits. */
static void begin_asking(struct peer *p, uint32_t proc, uint32_t credits)
{
	peer_begin(p, 9, 1, proc);
	credits = htobe32(credits);
	memcpy(p->build + 8, &credits, 4);
	peer_put_zeros(p, 3);
}

/*
 * On a fabric whose Sends can be lost.  Messages that are no calls prove
 * nothing, nor does a call that asks for more credits than went out, or for
 * none.
 */
TEST(replies_are_proven_by_calls_beyond_the_credits)
{
	static const struct { uint32_t asked, proven; } step[] = {
		{ 1, 0 }, { 2, 0 }, { 2, 1 }, { 4, 1 }, { 1, 4 }, { 0, 5 },
		{ 1000, 5 }, { 8, 5 }, { 8, 5 }, { 5, 5 }, { 5, 6 },
	};
	static const uint32_t idle[] = { RPCRDMA_DONE, RPCRDMA_ERROR };
	struct rig_options o = { .fabric.passive.unacknowledged = true };
	struct peer peer;

	rig_open(&rig, &o);
	peer_open(&peer, &rig, NULL);
	peer_wait_up(&peer);
	for (size_t i = 0; i < ARRAY_SIZE(step); i++) {
		begin_asking(&peer, RPCRDMA_MSG, step[i].asked);
		peer_put_call(&peer, 9, OP_SUM, 0);
		peer_send(&peer);
		peer_take(&peer);
		ck_assert_uint_eq(atomic_load(&rig.acked), step[i].proven);
		for (size_t k = 0; k < ARRAY_SIZE(idle); k++) {
			begin_asking(&peer, idle[k], 1);
			peer_send(&peer);
		}
		peer_send_bytes(&peer, "short", 5);
	}
	peer_close(&peer);
	rig_close(&rig);
}
