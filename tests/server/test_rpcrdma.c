/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder: which calls it takes, which it refuses, and how. */
#include <errno.h>

#include "lib/stats.h"
#include "tests/server/rdma_peer.h"
#include "tests/unit/runner.h"

static struct rig rig;
static struct peer peer;

static uint8_t data[65536];

static void open_with(const struct rig_options *options,
		      const struct peer_options *peer_options)
{
	rig_open(&rig, options);
	peer_open(&peer, &rig, peer_options);
	peer_wait_up(&peer);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 31 + 1);
}

static void open_plain(void)
{
	open_with(NULL, NULL);
}

static void close_all(void)
{
	peer_close(&peer);
	rig_close(&rig);
}

static uint32_t sum(uint32_t from, uint32_t len)
{
	uint32_t total = 0;

	for (uint32_t i = 0; i < len; i++)
		total += data[from + i];
	return total;
}

/* Checks that the next message answers an OP_SUM. */
static void take_sum(uint32_t xid, uint32_t bytes, uint32_t total,
		     uint32_t left, uint32_t last)
{
	peer_take(&peer);
	ck_assert_uint_eq(peer.hdr.proc, RPCRDMA_MSG);
	ck_assert_uint_eq(peer.hdr.xid, xid);
	ck_assert_uint_eq(peer.hdr.nreads, 0);
	ck_assert_uint_eq(peer_word(&peer, 0), xid);
	ck_assert_uint_eq(peer_word(&peer, 1), bytes);
	ck_assert_uint_eq(peer_word(&peer, 2), total);
	ck_assert_uint_eq(peer_word(&peer, 3), left);
	ck_assert_uint_eq(peer_word(&peer, 4), last);
}

static uint64_t stat(const char *name)
{
	return stats_sum_by_name(name);
}

TEST(an_inline_call_is_answered_inline)
{
	open_plain();
	peer_begin(&peer, 7, 1, RPCRDMA_MSG);
	peer_put_zeros(&peer, 3);
	peer_put_call(&peer, 7, OP_SUM, 1);
	xdr_put_opaque(&peer.out, data, 10);
	peer_put(&peer, 99);
	peer_send(&peer);
	take_sum(7, 10, sum(0, 10), 1, 99);
	ck_assert_uint_eq(peer.hdr.credits, 128);
	close_all();
}

static void begin_sum(uint32_t xid)
{
	peer_begin(&peer, xid, 1, RPCRDMA_MSG);
}

TEST(a_read_chunk_of_many_segments_is_pulled)
{
	struct fabric_mr *mr;

	open_plain();
	mr = peer_register(&peer, data, sizeof(data), FABRIC_REMOTE_READ);
	begin_sum(8);
	for (uint32_t i = 0; i < 40; i++)
		peer_put_read(&peer, DATA_POSITION, mr, i * 1001, 1001);
	peer_put_zeros(&peer, 3);
	peer_put_call(&peer, 8, OP_SUM, 1);
	peer_put(&peer, 40 * 1001);
	peer_send(&peer);
	take_sum(8, 40040, sum(0, 40040), 0, 0);
	fabric_mr_destroy(mr);
	close_all();
}

TEST(a_read_chunk_may_come_with_its_pad_or_without)
{
	struct fabric_mr *mr;

	open_plain();
	mr = peer_register(&peer, data, sizeof(data), FABRIC_REMOTE_READ);
	/* The longest message's bytes in memory must not become the shortest's
	 * pad. */
	for (uint32_t len = 4096; len >= 4093; len--) {
		begin_sum(len);
		peer_put_read(&peer, DATA_POSITION, mr, 0, len);
		peer_put_zeros(&peer, 3);
		peer_put_call(&peer, len, OP_SUM, 1);
		atomic_store(&rig.zero_pad, len == 4093);
		peer_put(&peer, 4093);
		peer_put(&peer, END_WORD);	/* inline content after it */
		peer_send(&peer);
		if (len == 4093 || len == 4096)
			take_sum(len, 4093, sum(0, 4093), 1, END_WORD);
		else
			peer_take(&peer);	/* rounded up all the same */
	}
	fabric_mr_destroy(mr);
	close_all();
}

TEST(a_pad_in_a_segment_of_its_own_is_taken)
{
	struct fabric_mr *mr;

	open_plain();
	mr = peer_register(&peer, data, sizeof(data), FABRIC_REMOTE_READ);
	begin_sum(9);
	peer_put_read(&peer, DATA_POSITION, mr, 0, 1001);
	peer_put_read(&peer, DATA_POSITION, mr, 60000, 3);
	peer_put_zeros(&peer, 3);
	peer_put_call(&peer, 9, OP_SUM, 1);
	peer_put(&peer, 1001);
	peer_put(&peer, 5);
	peer_send(&peer);
	take_sum(9, 1001, sum(0, 1001), 1, 5);
	fabric_mr_destroy(mr);
	close_all();
}

TEST(an_empty_read_segment_is_not_read)
{
	struct fabric_mr *mr, gone = { .rkey = 0xdead };

	open_plain();
	mr = peer_register(&peer, data, sizeof(data), FABRIC_REMOTE_READ);
	begin_sum(9);
	peer_put_read(&peer, DATA_POSITION, &gone, 0, 0);
	peer_put_read(&peer, DATA_POSITION, mr, 0, 100);
	peer_put_read(&peer, DATA_POSITION, &gone, 0, 0);
	peer_put_zeros(&peer, 3);
	peer_put_call(&peer, 9, OP_SUM, 1);
	peer_put(&peer, 100);
	peer_send(&peer);
	take_sum(9, 100, sum(0, 100), 0, 0);
	/* Nor is a chunk that is all empty. */
	begin_sum(10);
	peer_put_read(&peer, DATA_POSITION, &gone, 0, 0);
	peer_put_zeros(&peer, 3);
	peer_put_call(&peer, 10, OP_SUM, 1);
	peer_put(&peer, 0);
	peer_send(&peer);
	take_sum(10, 0, 0, 0, 0);
	fabric_mr_destroy(mr);
	close_all();
}

TEST(several_read_chunks_at_different_positions_are_pulled)
{
	struct rig_options o = { .any_position = true };
	struct fabric_mr *mr;

	open_with(&o, NULL);
	mr = peer_register(&peer, data, sizeof(data), FABRIC_REMOTE_READ);
	begin_sum(10);
	peer_put_read(&peer, 16, mr, 0, 5001);
	peer_put_read(&peer, 16 + 5004 + 4, mr, 10000, 300);
	peer_put_read(&peer, 16 + 5004 + 4 + 300 + 4, mr, 20000, 2);
	peer_put_zeros(&peer, 3);
	peer_put_call(&peer, 10, OP_SUM, 3);
	peer_put(&peer, 5001);
	peer_put(&peer, 300);
	peer_put(&peer, 2);
	peer_put(&peer, 77);
	peer_send(&peer);
	take_sum(10, 5303, sum(0, 5001) + sum(10000, 300) + sum(20000, 2), 1,
		 77);
	fabric_mr_destroy(mr);
	close_all();
}

/* Where a long call's data chunk stands in the Read list. */
enum data_chunk { NONE, BEHIND, BEFORE };

/* A long call in many segments. */
static void send_long_call(uint32_t xid, uint32_t len, enum data_chunk chunk)
{
	static uint8_t call[8192];
	struct fabric_mr *mr, *data_mr;
	struct xdr_out x;
	uint32_t n;

	xdr_out_init(&x, call, sizeof(call));
	xdr_put_u32(&x, xid);
	xdr_put_u32(&x, OP_SUM);
	xdr_put_u32(&x, 1);
	if (chunk != NONE)
		xdr_put_u32(&x, len);
	else
		xdr_put_opaque(&x, data, len);
	xdr_put_u32(&x, 4711);
	n = (uint32_t)xdr_out_len(&x);
	mr = peer_register(&peer, call, sizeof(call), FABRIC_REMOTE_READ);
	data_mr = peer_register(&peer, data, sizeof(data), FABRIC_REMOTE_READ);
	peer_begin(&peer, xid, 1, RPCRDMA_NOMSG);
	if (chunk == BEFORE)
		peer_put_read(&peer, DATA_POSITION, data_mr, 0, len);
	for (uint32_t at = 0; at < n; at += 7)
		peer_put_read(&peer, 0, mr, at, MIN(7u, n - at));
	if (chunk == BEHIND)
		peer_put_read(&peer, DATA_POSITION, data_mr, 0, len);
	peer_put_zeros(&peer, 3);
	peer_send(&peer);
	take_sum(xid, len, sum(0, len), 1, 4711);
	fabric_mr_destroy(mr);
	fabric_mr_destroy(data_mr);
}

TEST(a_long_call_comes_in_many_segments)
{
	open_plain();
	send_long_call(11, 1000, NONE);
	close_all();
}

TEST(a_long_call_comes_with_further_read_chunks)
{
	open_plain();
	send_long_call(12, 50001, BEHIND);
	send_long_call(13, 50001, BEFORE);
	close_all();
}

TEST(msgp_is_taken_and_its_padding_skipped)
{
	open_plain();
	peer_begin(&peer, 13, 1, RPCRDMA_MSGP);
	peer_put(&peer, 256);
	peer_put(&peer, 100);
	peer_put_zeros(&peer, 3);		/* 36 bytes */
	peer_put_call(&peer, 13, OP_SUM, 1);
	peer_put(&peer, 501);			/* 52 */
	peer_put_zeros(&peer, 51);		/* 256 */
	xdr_put_fixed(&peer.out, data, 501);
	peer_send(&peer);
	take_sum(13, 501, sum(0, 501), 0, 0);
	close_all();
}

/* Below the threshold, above it in a message that is not padded, and with an
 * alignment and a threshold that make no sense. */
TEST(msgp_without_padding_is_a_call_as_any)
{
	static const uint32_t how[][2] = {
		{ 256, 100 }, { 256, 0 }, { 0, 0 }, { 1, 0 },
		{ 3, 0 }, { UINT32_MAX, 0 }, { 256, UINT32_MAX },
	};

	open_plain();
	for (uint32_t i = 0; i < ARRAY_SIZE(how); i++) {
		peer_begin(&peer, 14 + i, 1, RPCRDMA_MSGP);
		peer_put(&peer, how[i][0]);
		peer_put(&peer, how[i][1]);
		peer_put_zeros(&peer, 3);
		peer_put_call(&peer, 14 + i, OP_SUM, 1);
		xdr_put_opaque(&peer.out, data, 33);
		peer_send(&peer);
		take_sum(14 + i, 33, sum(0, 33), 0, 0);
	}
	close_all();
}

static unsigned nrefused;			/* the loop's */

static bool refuse_all(struct xprt_sink *sink, const void *head, uint32_t len,
		       uint32_t position)
{
	nrefused++;
	return false;
}

/* To look at a place costs as much as to decode the call. */
TEST(msgp_is_searched_for_its_padding_at_a_few_places)
{
	open_plain();
	rig.sink.read_chunk_ok = refuse_all;
	peer_begin(&peer, 13, 1, RPCRDMA_MSGP);
	peer_put(&peer, 8);
	peer_put(&peer, 0);
	peer_put_zeros(&peer, 3);
	peer_put_call(&peer, 13, 99, 0);
	/* Every other word can be a length before a pad of four bytes. */
	for (uint32_t left = 800; left > 0; left -= 4)
		peer_put(&peer, left - 8);
	peer_send(&peer);
	peer_take(&peer);
	ck_assert_uint_eq(peer.hdr.proc, RPCRDMA_MSG);
	ck_assert_uint_eq(nrefused, 16);
	close_all();
}

/* RFC 5666 leaves the pad undefined then: the chunk is defined, and needs
 * none. */
TEST(msgp_with_chunks_is_a_call_as_any)
{
	struct fabric_mr *mr;

	open_plain();
	mr = peer_register(&peer, data, sizeof(data), FABRIC_REMOTE_READ);
	peer_begin(&peer, 13, 1, RPCRDMA_MSGP);
	peer_put(&peer, 256);
	peer_put(&peer, 100);
	peer_put_read(&peer, DATA_POSITION, mr, 0, 5001);
	peer_put_zeros(&peer, 3);
	peer_put_call(&peer, 13, OP_SUM, 1);
	peer_put(&peer, 5001);
	peer_put(&peer, 99);
	peer_send(&peer);
	take_sum(13, 5001, sum(0, 5001), 1, 99);
	fabric_mr_destroy(mr);
	close_all();
}

TEST(another_version_gets_err_vers_one_to_one)
{
	uint64_t before = stat("rdma_bad_version");

	open_plain();
	peer_begin(&peer, 15, 2, RPCRDMA_MSG);
	peer_put_zeros(&peer, 3);
	peer_put_call(&peer, 15, OP_SUM, 0);
	peer_send(&peer);
	peer_take(&peer);
	ck_assert_uint_eq(peer.hdr.xid, 15);
	ck_assert_uint_eq(peer.hdr.vers, 2);	/* the call's */
	ck_assert_uint_eq(peer.msg.len, 28);
	ck_assert_mem_eq(peer.msg.data + 12, "\0\0\0\4\0\0\0\1\0\0\0\1"
			 "\0\0\0\1", 16);
	peer_check_alive(&peer);
	ck_assert_uint_eq(stat("rdma_bad_version"), before + 1);
	close_all();
}

TEST(a_message_too_short_is_dropped)
{
	open_plain();
	for (uint32_t len = 0; len < 28; len++) {
		peer_begin(&peer, 16, 1, RPCRDMA_MSG);
		peer_put_zeros(&peer, 3);
		peer_send_bytes(&peer, peer.build, len);
	}
	peer_check_alive(&peer);
	ck_assert_uint_eq(peer.nmsgs, 1);
	close_all();
}

/* RFC 8166 section 4.2.4: errors even if the peer can't make sense of them. */
TEST(done_and_error_are_dropped)
{
	uint64_t before = stat("rdma_error_messages");

	open_plain();
	peer_begin(&peer, 17, 1, RPCRDMA_DONE);
	peer_put_zeros(&peer, 3);
	peer_send(&peer);
	for (uint32_t vers = 1; vers <= 3; vers++) {
		for (uint32_t err = 1; err < 4; err++) {
			peer_begin(&peer, 17, vers, RPCRDMA_ERROR);
			peer_put(&peer, err);
			peer_put_zeros(&peer, err == 2 ? 2 : vers - 1);
			peer_send(&peer);
		}
	}
	peer_check_alive(&peer);
	ck_assert_uint_eq(peer.nmsgs, 1);
	ck_assert_uint_eq(stat("rdma_error_messages"), before + 9);
	close_all();
}

TEST(an_unknown_procedure_gets_err_chunk)
{
	open_plain();
	peer_begin(&peer, 18, 1, 9);
	peer_put_zeros(&peer, 3);
	peer_send(&peer);
	peer_take_error(&peer, 18, RPCRDMA_ERR_CHUNK);
	peer_check_alive(&peer);
	close_all();
}

TEST(xids_that_differ_get_err_chunk)
{
	open_plain();
	peer_begin(&peer, 19, 1, RPCRDMA_MSG);
	peer_put_zeros(&peer, 3);
	peer_put_call(&peer, 20, OP_SUM, 0);
	peer_send(&peer);
	peer_take_error(&peer, 19, RPCRDMA_ERR_CHUNK);
	/* So does a message without a call. */
	peer_begin(&peer, 21, 1, RPCRDMA_MSG);
	peer_put_zeros(&peer, 3);
	peer_send(&peer);
	peer_take_error(&peer, 21, RPCRDMA_ERR_CHUNK);
	peer_check_alive(&peer);
	ck_assert_uint_eq(rig.taken, 1);
	close_all();
}

/* One Read chunk at @position with @len bytes; must be refused. */
static void refused(uint32_t proc, uint32_t position, uint32_t len)
{
	struct fabric_mr *mr = peer_register(&peer, data, sizeof(data),
					     FABRIC_REMOTE_READ);

	peer_begin(&peer, 22, 1, proc);
	peer_put_read(&peer, position, mr, 0, len);
	peer_put_zeros(&peer, 3);
	if (proc == RPCRDMA_MSG) {
		peer_put_call(&peer, 22, OP_SUM, 1);
		peer_put(&peer, len);
	}
	peer_send(&peer);
	peer_take_error(&peer, 22, RPCRDMA_ERR_CHUNK);
	fabric_mr_destroy(mr);
}

TEST(bad_read_positions_get_err_chunk)
{
	struct rig_options o = { .any_position = true };
	struct loop_fabric_counts counts;

	open_with(&o, NULL);
	refused(RPCRDMA_MSG, 14, 100);		/* not aligned */
	refused(RPCRDMA_MSG, 20, 100);		/* past the inline body */
	refused(RPCRDMA_MSG, 0xfffffffc, 100);
	refused(RPCRDMA_MSG, 0, 100);		/* Position Zero, RDMA_MSG */
	refused(RPCRDMA_NOMSG, 16, 100);	/* none, RDMA_NOMSG */
	refused(RPCRDMA_NOMSG, 0, 0);		/* empty */
	refused(RPCRDMA_MSG, 16, MSG_MAX_TAKEN); /* too long together */
	rig_count(&rig, &counts);
	ck_assert_uint_eq(counts.reads, 0);
	peer_check_alive(&peer);
	close_all();
}

TEST(chunks_that_overlap_get_err_chunk)
{
	/* Each begins in the first. */
	static const uint32_t second[] = { 12, 20, 112 };
	struct rig_options o = { .any_position = true };
	struct fabric_mr *mr;

	open_with(&o, NULL);
	mr = peer_register(&peer, data, sizeof(data), FABRIC_REMOTE_READ);
	for (size_t i = 0; i < ARRAY_SIZE(second); i++) {
		peer_begin(&peer, 23, 1, RPCRDMA_MSG);
		peer_put_read(&peer, 16, mr, 0, 97);
		peer_put_read(&peer, second[i], mr, 0, 8);
		peer_put_zeros(&peer, 3);
		peer_put_call(&peer, 23, OP_SUM, 1);
		peer_put(&peer, 97);
		peer_send(&peer);
		peer_take_error(&peer, 23, RPCRDMA_ERR_CHUNK);
	}
	fabric_mr_destroy(mr);
	peer_check_alive(&peer);
	close_all();
}

TEST(a_chunk_that_the_binding_does_not_allow_gets_err_chunk)
{
	uint64_t before = stat("rdma_not_eligible");
	struct loop_fabric_counts counts;

	open_plain();
	refused(RPCRDMA_MSG, 12, 64);
	rig_count(&rig, &counts);
	ck_assert_uint_eq(counts.reads, 0);	/* it was not even pulled */
	ck_assert_uint_eq(rig.taken, 0);	/* nor processed */
	ck_assert_uint_eq(stat("rdma_not_eligible"), before + 1);
	peer_check_alive(&peer);
	close_all();
}

TEST(lists_that_no_reply_can_return_get_err_chunk)
{
	struct fabric_mr *mr;

	open_plain();		/* no private data: 1024 bytes each way */
	mr = peer_register(&peer, data, sizeof(data), FABRIC_REMOTE_WRITE);
	peer_begin(&peer, 24, 1, RPCRDMA_MSG);
	peer_put_zeros(&peer, 1);
	peer_put(&peer, 1);
	peer_put(&peer, 70);
	for (int i = 0; i < 70; i++)
		peer_put_segment(&peer, mr, 0, 100);
	peer_put_zeros(&peer, 1);
	peer_put_chunk(&peer, mr, sizeof(data));
	peer_put_call(&peer, 24, OP_READ, 100);
	peer_send(&peer);
	peer_take_error(&peer, 24, RPCRDMA_ERR_CHUNK);
	ck_assert_uint_eq(rig.taken, 0);
	fabric_mr_destroy(mr);
	peer_check_alive(&peer);
	close_all();
}

static bool is_counted(void *arg)
{
	return stat("rdma_read_failures") == *(uint64_t *)arg;
}

TEST(a_read_that_fails_ends_the_connection)
{
	struct fabric_mr *mr;
	uint64_t failures = stat("rdma_read_failures") + 1;

	open_plain();
	mr = peer_register(&peer, data, 100, FABRIC_REMOTE_READ);
	peer_begin(&peer, 25, 1, RPCRDMA_MSG);
	peer_put_read(&peer, 16, mr, 0, 200);	/* past the end */
	peer_put_zeros(&peer, 3);
	peer_put_call(&peer, 25, OP_SUM, 1);
	peer_put(&peer, 200);
	peer_send(&peer);
	peer_wait_down(&peer);
	ck_assert_uint_eq(peer.nmsgs, 0);
	ck_assert_uint_eq(rig.taken, 0);
	/* The peer might learn of it first. */
	wait_until(is_counted, &failures);
	fabric_mr_destroy(mr);
	close_all();
}

TEST(every_truncation_of_a_call_is_survived)
{
	struct fabric_mr *mr;
	uint32_t len;

	open_plain();
	mr = peer_register(&peer, data, sizeof(data), FABRIC_REMOTE_READ);
	peer_begin(&peer, 26, 1, RPCRDMA_MSG);
	peer_put_read(&peer, 16, mr, 0, 64);
	peer_put_read(&peer, 16, mr, 64, 64);
	peer_put_zeros(&peer, 1);
	peer_put_chunk(&peer, mr, 100);
	peer_put_zeros(&peer, 1);
	peer_put_chunk(&peer, mr, 100);
	peer_put_call(&peer, 26, OP_SUM, 1);
	peer_put(&peer, 128);
	len = (uint32_t)xdr_out_len(&peer.out);
	for (uint32_t n = 28; n < len; n++) {
		peer_send_bytes(&peer, peer.build, n);
		peer_take(&peer);
		ck_assert_uint_eq(peer.hdr.xid, 26);
	}
	fabric_mr_destroy(mr);
	peer_check_alive(&peer);
	close_all();
}

static bool none_left(void *arg)
{
	return rig.listener->ops->count(rig.listener) == 0;
}

TEST(the_side_that_ended_a_connection_is_counted)
{
	open_plain();
	peer_check_alive(&peer);
	peer_close(&peer);
	wait_until(none_left, NULL);
	ck_assert_uint_eq(stat("rdma_closed_by_peer"), 1);
	ck_assert_uint_eq(stat("rdma_closes"), 0);
	peer_open(&peer, &rig, NULL);
	peer_wait_up(&peer);
	peer_check_alive(&peer);
	rig.listener->ops->stop(rig.listener);
	peer_wait_down(&peer);
	wait_until(none_left, NULL);
	ck_assert_uint_eq(stat("rdma_closed_by_peer"), 1);
	ck_assert_uint_eq(stat("rdma_closes"), 1);
	ck_assert_uint_eq(stat("rdma_errors"), 0);
	close_all();
}
