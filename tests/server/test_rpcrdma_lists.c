/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder and chunk lists in any order, of any length. */
#include "tests/server/rdma_peer.h"
#include "tests/unit/runner.h"

enum { SEGMENTS = 60, SEGMENT = 101, LENGTH = SEGMENTS * SEGMENT };

static struct rig rig;
static struct peer peer;
static struct fabric_mr *source, *sink;
static uint8_t data[LENGTH], mem[65536];

static void open_all(void)
{
	static const struct rpcrdma_private large = {
		.send_size = PEER_INLINE, .recv_size = PEER_INLINE };
	static const struct peer_options o = { .private_data = &large };

	rig_open(&rig, NULL);
	peer_open(&peer, &rig, &o);
	peer_wait_up(&peer);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 31 + 1);
	memset(mem, 0xee, sizeof(mem));
	source = peer_register(&peer, data, sizeof(data), FABRIC_REMOTE_READ);
	sink = peer_register(&peer, mem, sizeof(mem), FABRIC_REMOTE_WRITE);
}

static void close_all(void)
{
	fabric_mr_destroy(source);
	fabric_mr_destroy(sink);
	peer_close(&peer);
	rig_close(&rig);
}

/* The i-th segment of the data, which lies in memory backwards. */
static void put_data(uint32_t i)
{
	peer_put_read(&peer, DATA_POSITION, source,
		      (SEGMENTS - 1 - i) * SEGMENT, SEGMENT);
}

/* Takes the echo of the data, which went to the Reply chunk. */
static void take_echo(uint32_t xid)
{
	peer_take(&peer);
	ck_assert_uint_eq(peer.hdr.xid, xid);
	ck_assert_uint_eq(peer.hdr.proc, RPCRDMA_NOMSG);
	ck_assert_uint_eq(peer.hdr.reply.length, 8 + LENGTH);
	for (uint32_t i = 0; i < SEGMENTS; i++)
		ck_assert_mem_eq(mem + 8 + i * SEGMENT,
				 data + (SEGMENTS - 1 - i) * SEGMENT, SEGMENT);
	memset(mem, 0xee, sizeof(mem));
}

/* Sends the segments of a long call in every @nth place among its data's. */
static void echo_in_turns(uint32_t xid, uint32_t nth)
{
	const uint32_t words[] = { htobe32(xid), htobe32(OP_ECHO), 0,
				   htobe32(LENGTH) };
	uint8_t call[sizeof(words)];
	struct fabric_mr *mr;
	uint32_t n = 0;

	memcpy(call, words, sizeof(call));
	mr = peer_register(&peer, call, sizeof(call), FABRIC_REMOTE_READ);
	peer_begin(&peer, xid, 1, RPCRDMA_NOMSG);
	for (uint32_t i = 0; i < SEGMENTS; i++) {
		if (i % nth == 0 && n < sizeof(call)) {
			peer_put_read(&peer, 0, mr, n, 2);
			n += 2;
		}
		put_data(i);
	}
	for (; n < sizeof(call); n += 2)
		peer_put_read(&peer, 0, mr, n, 2);
	peer_put_zeros(&peer, 2);
	peer_put_chunk(&peer, sink, sizeof(mem));
	peer_send(&peer);
	take_echo(xid);
	fabric_mr_destroy(mr);
}

/* RFC 8166 section 3.4.5: a chunk is the segments of one position, in the order
 * of the list. */
TEST(segments_of_several_read_chunks_may_stand_in_turns)
{
	open_all();
	for (uint32_t nth = 1; nth <= SEGMENTS; nth += 3)
		echo_in_turns(100 + nth, nth);
	peer_check_alive(&peer);
	close_all();
}

/* RFC 8166 section 4.3.2: the first takes the result, the others come back
 * unused. */
TEST(any_number_of_write_chunks_may_be_offered)
{
	static const uint32_t numbers[] = { 8, 9, 10, 100, 160 };

	open_all();
	for (size_t k = 0; k < ARRAY_SIZE(numbers); k++) {
		uint32_t n = numbers[k], i = 0;
		struct rpcrdma_chunk got;

		peer_begin(&peer, n, 1, RPCRDMA_MSG);
		peer_put_zeros(&peer, 1);
		while (i++ < n)
			peer_put_chunk(&peer, sink, 1000);
		peer_put_zeros(&peer, 2);
		peer_put_call(&peer, n, OP_READ, 700);
		peer_send(&peer);
		peer_take(&peer);
		ck_assert_uint_eq(peer.hdr.xid, n);
		ck_assert_uint_eq(peer.hdr.proc, RPCRDMA_MSG);
		ck_assert_uint_eq(peer.hdr.nwrites, n);
		for (i = 0; rpcrdma_write_next(&peer.hdr, i, &got); i++) {
			ck_assert_uint_eq(got.nsegs, 1);
			ck_assert_uint_eq(got.length, i == 0 ? 700 : 0);
		}
		ck_assert_uint_eq(i, n);
		ck_assert_uint_eq(mem[699], pattern(699));
		ck_assert_uint_eq(mem[700], 0xee);
	}
	peer_check_alive(&peer);
	close_all();
}

static void put_huge_segments(unsigned n)
{
	while (n-- > 0)
		peer_put_segment(&peer, sink, 0, UINT32_MAX);
}

/* RFC 8166 section 3.4.4 has no limit on a chunk; only the used part of it has
 * to be memory that the responder can reach. */
TEST(chunks_may_have_more_room_than_two_to_the_32)
{
	open_all();
	peer_begin(&peer, 50, 1, RPCRDMA_MSG);
	peer_put_zeros(&peer, 1);
	peer_put(&peer, 1);
	peer_put(&peer, 5);
	put_huge_segments(5);
	peer_put_zeros(&peer, 1);
	peer_put(&peer, 1);
	peer_put(&peer, 9);
	put_huge_segments(9);
	peer_put_call(&peer, 50, OP_READ, 60000);
	peer_send(&peer);
	peer_take(&peer);
	ck_assert_uint_eq(peer.hdr.proc, RPCRDMA_MSG);
	ck_assert_uint_eq(peer.hdr.write.length, 60000);
	ck_assert_uint_eq(peer.hdr.reply.length, 0);
	ck_assert_uint_eq(mem[59999], pattern(59999));
	/* And the Reply chunk alone. */
	peer_begin(&peer, 51, 1, RPCRDMA_MSG);
	peer_put_zeros(&peer, 2);
	peer_put(&peer, 1);
	peer_put(&peer, 2);
	put_huge_segments(2);
	peer_put_call(&peer, 51, OP_LONG, 50000);
	peer_send(&peer);
	peer_take(&peer);
	ck_assert_uint_eq(peer.hdr.proc, RPCRDMA_NOMSG);
	ck_assert_uint_eq(peer.hdr.reply.length, 50008);
	ck_assert_uint_eq(mem[8], pattern(0));
	close_all();
}

/* Section 3.4.4 again: a responder can bound its reads. */
TEST(read_chunks_past_two_to_the_32_get_err_chunk)
{
	open_all();
	peer_begin(&peer, 52, 1, RPCRDMA_MSG);
	peer_put_read(&peer, DATA_POSITION, source, 0, UINT32_MAX);
	peer_put_read(&peer, DATA_POSITION, source, 0, 101);
	peer_put_zeros(&peer, 3);
	peer_put_call(&peer, 52, OP_SUM, 1);
	peer_put(&peer, 100);
	peer_send(&peer);
	peer_take_error(&peer, 52, RPCRDMA_ERR_CHUNK);
	ck_assert_uint_eq(rig.taken, 0);
	peer_check_alive(&peer);
	close_all();
}
