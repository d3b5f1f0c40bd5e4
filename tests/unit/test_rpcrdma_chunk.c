/* SPDX-License-Identifier: BSD-2-Clause */
/* Chunks: assembling a call, and the handle that a reply can invalidate. */
#include "transport/rpcrdma/proto.h"

#include <errno.h>

#include "tests/unit/rpcrdma_wire.h"

static struct rpcrdma_layout l;

/* Decodes the message and plans the call, with @body bytes inline. */
static int plan(uint32_t body)
{
	ck_assert_int_eq(decode(), 0);
	return rpcrdma_layout_plan(&h, body, &l);
}

TEST(a_chunk_is_spliced_where_its_position_says)
{
	uint8_t base[60] = { 0 }, sink[8] = { 0 };
	struct xdr_seg segs[MSG_MAX_SEGS];

	begin(1, RPCRDMA_MSG);
	put_read(40, 5);
	put_zeros(3);
	ck_assert_int_eq(plan(60), 0);
	ck_assert_uint_eq(l.sink_len, 8);
	ck_assert_uint_eq(l.call_len, 68);
	ck_assert_uint_eq(rpcrdma_layout_splice(&l, base, sink, segs), 3);
	ck_assert_ptr_eq(segs[0].data, base);
	ck_assert_uint_eq(segs[0].len, 40);
	ck_assert_ptr_eq(segs[1].data, sink);
	ck_assert_uint_eq(segs[1].len, 8);
	ck_assert_ptr_eq(segs[2].data, base + 40);
	ck_assert_uint_eq(segs[2].len, 20);
}

TEST(later_positions_count_what_was_spliced_before)
{
	begin(1, RPCRDMA_MSG);
	put_read(40, 5);
	put_read(48, 8);		/* at once after the first's pad */
	put_read(60, 4);		/* four bytes of the base between */
	put_zeros(3);
	ck_assert_int_eq(plan(50), 0);
	ck_assert_uint_eq(l.npieces, 6);
	ck_assert_uint_eq(l.piece[3].len, 4);
	ck_assert_uint_eq(l.piece[3].off, 40);
	ck_assert_uint_eq(l.piece[5].len, 6);
	ck_assert_uint_eq(l.call_len, 50 + 8 + 8 + 4);
}

/* Otherwise an item would end in zeros that were not sent. */
TEST(a_call_ends_before_the_bytes_that_its_chunk_lacks)
{
	uint8_t base[60] = { 0 }, sink[8] = { 0 };
	struct xdr_seg segs[MSG_MAX_SEGS];

	for (uint8_t count = 4; count < 9; count++) {
		begin(1, RPCRDMA_MSG);
		put_read(40, 5);
		put_zeros(3);
		ck_assert_int_eq(plan(60), 0);
		base[39] = count;
		ck_assert_uint_eq(rpcrdma_layout_splice(&l, base, sink, segs),
				  count > 5 ? 2 : 3);
		ck_assert_uint_eq(segs[1].len, count > 5 ? 4 : 8);
		ck_assert_uint_eq(l.call_len, count > 5 ? 44 : 68);
	}
	begin(1, RPCRDMA_MSG);
	put_read(40, 3);
	put_zeros(3);
	ck_assert_int_eq(plan(60), 0);
	ck_assert_uint_eq(rpcrdma_layout_splice(&l, base, sink, segs), 1);
	ck_assert_uint_eq(l.call_len, 40);
}

TEST(chunks_that_overlap_are_refused)
{
	begin(1, RPCRDMA_MSG);
	put_read(40, 9);
	put_read(48, 4);
	put_zeros(3);
	ck_assert_int_eq(plan(100), -EBADMSG);
}

TEST(a_position_past_the_inline_body_is_refused)
{
	begin(1, RPCRDMA_MSG);
	put_read(44, 4);
	put_zeros(3);
	ck_assert_int_eq(plan(44), 0);
	ck_assert_int_eq(plan(40), -EBADMSG);
	begin(1, RPCRDMA_MSG);
	put_read(0xfffffffc, 4);
	put_zeros(3);
	ck_assert_int_eq(plan(44), -EBADMSG);
}

TEST(a_position_zero_chunk_belongs_to_nomsg_alone)
{
	begin(1, RPCRDMA_MSG);
	put_read(0, 400);
	put_zeros(3);
	ck_assert_int_eq(plan(44), -EBADMSG);
	begin(1, RPCRDMA_NOMSG);
	put_read(4, 400);
	put_zeros(3);
	ck_assert_int_eq(plan(0), -EBADMSG);
	begin(1, RPCRDMA_NOMSG);
	put_zeros(3);
	ck_assert_int_eq(plan(0), -EBADMSG);
}

TEST(a_long_call_may_have_further_chunks)
{
	begin(1, RPCRDMA_NOMSG);
	put_read(0, 100);
	put_read(0, 103);
	put_read(80, 4096);
	put_zeros(3);
	ck_assert_int_eq(plan(0), 0);
	ck_assert(l.pzrc);
	ck_assert_uint_eq(l.sink_off[1], 0);
	ck_assert_uint_eq(l.sink_off[0], 4096);
	ck_assert_uint_eq(l.npieces, 3);
	ck_assert_uint_eq(l.piece[0].len, 80);
	ck_assert_uint_eq(l.piece[2].len, 123);
	ck_assert_uint_eq(l.call_len, 203 + 4096);
}

TEST(a_call_longer_than_we_take_is_refused)
{
	begin(1, RPCRDMA_MSG);
	put_read(40, MSG_MAX_LEN - 40);
	put_zeros(3);
	ck_assert_int_eq(plan(40), 0);
	ck_assert_int_eq(plan(44), -E2BIG);
	begin(1, RPCRDMA_MSG);
	put_read(40, 0xffffffff);
	put_zeros(3);
	ck_assert_int_eq(plan(40), -E2BIG);
	begin(1, RPCRDMA_NOMSG);
	put_read(0, 0xfffffffd);
	put_zeros(3);
	ck_assert_int_eq(plan(0), -E2BIG);
}

/* Of a call that ends in a Read chunk only the bytes that are kept are
 * pulled. */
TEST(a_long_write_is_cut_off)
{
	uint8_t base[60] = { 0 }, sink[8] = { 0 };
	struct xdr_seg segs[MSG_MAX_SEGS];
	const uint32_t len = MSG_MAX_TAKEN - 40;

	begin(1, RPCRDMA_MSG);
	put_read(40, len - 3);
	put_zeros(3);
	ck_assert_int_eq(plan(40), 0);
	ck_assert_uint_eq(l.sink_len, MSG_MAX_LEN - 40);
	ck_assert_uint_eq(l.pull_len[0], MSG_MAX_LEN - 40);
	ck_assert_uint_eq(l.call_len, MSG_MAX_LEN);
	ck_assert_uint_eq(l.cut, MSG_MAX_TAKEN - MSG_MAX_LEN);
	ck_assert_uint_eq(rpcrdma_layout_splice(&l, base, sink, segs), 2);
	/* All of it in the Position-Zero chunk. */
	begin(1, RPCRDMA_NOMSG);
	put_read(0, MSG_MAX_LEN + 5);
	put_zeros(3);
	ck_assert_int_eq(plan(0), 0);
	ck_assert_uint_eq(l.pull_len[0], MSG_MAX_LEN);
	ck_assert_uint_eq(l.sink_len, MSG_MAX_LEN);
	ck_assert_uint_eq(l.call_len + l.cut, MSG_MAX_LEN + 8);
	/* Too much before its last chunk; and too much at all. */
	begin(1, RPCRDMA_MSG);
	put_read(40, MSG_MAX_LEN);
	put_read(40 + MSG_MAX_LEN, 20);
	put_zeros(3);
	ck_assert_int_eq(plan(40), -E2BIG);
	begin(1, RPCRDMA_MSG);
	put_read(40, len + 1);
	put_zeros(3);
	ck_assert_int_eq(plan(40), -E2BIG);
}

/* RFC 8166 section 3.4.4: a responder can bound the chunks that it takes. */
TEST(a_sum_past_two_to_the_32_is_not_taken_for_a_short_call)
{
	static const uint32_t positions[] = { 0, 40 };

	for (size_t i = 0; i < ARRAY_SIZE(positions); i++) {
		begin(1, i == 0 ? RPCRDMA_NOMSG : RPCRDMA_MSG);
		put_read(positions[i], 0xffffffff);
		put_read(positions[i], 101);	/* 100 with 32 bits */
		put_zeros(3);
		ck_assert_int_eq(plan(40), -E2BIG);
	}
	/* So are chunks that are too long together. */
	begin(1, RPCRDMA_MSG);
	put_read(40, 0x80000000);
	put_read(44, 0x80000000);
	put_read(48, 100);
	put_zeros(3);
	ck_assert_int_eq(plan(40), -E2BIG);
}

TEST(the_most_read_chunks_make_the_most_pieces)
{
	begin(1, RPCRDMA_NOMSG);
	put_read(0, 100);
	for (uint32_t i = 0; i < RPCRDMA_MAX_READS - 1; i++)
		put_read(4 + 8 * i, 4);
	put_zeros(3);
	ck_assert_int_eq(plan(0), 0);
	ck_assert_uint_eq(l.npieces, MSG_MAX_SEGS);
}

TEST(msgp_pad_is_found_and_taken_out)
{
	uint32_t position = 0, pad = 0;
	uint8_t body[256] = { 0 };
	struct xdr_seg segs[MSG_MAX_SEGS];
	uint32_t len;

	begin(1, RPCRDMA_MSGP);
	xdr_put_u32(&w.out, 128);		/* rdma_align */
	xdr_put_u32(&w.out, 10);		/* rdma_thresh */
	put_zeros(3);				/* 36 bytes so far */
	put_zeros(9);
	xdr_put_u32(&w.out, 13);		/* ends at 76 */
	put_zeros(13);				/* up to 128 */
	xdr_put_fixed(&w.out, "data of a file", 13);
	ck_assert_int_eq(decode(), 0);
	ck_assert_uint_eq(h.align, 128);
	len = (uint32_t)xdr_out_len(&w.out);
	ck_assert(rpcrdma_msgp_find(&h, w.mem, len, 0, &position, &pad));
	ck_assert_uint_eq(position, 40);
	ck_assert_uint_eq(pad, 52);
	ck_assert_int_eq(rpcrdma_layout_plan(&h, len - h.len, &l), 0);
	rpcrdma_layout_unpad(&l, position, pad);
	ck_assert_uint_eq(l.call_len, 56);
	ck_assert_uint_eq(rpcrdma_layout_splice(&l, w.mem + h.len, body, segs),
			  2);
	ck_assert_uint_eq(segs[0].len, 40);
	ck_assert_mem_eq(segs[1].data, "data of a fil\0\0\0", 16);
	ck_assert(!rpcrdma_msgp_find(&h, w.mem, len, position, &position,
				     &pad));
}

/* A padded or plain RDMA_MSGP call; its opaque has @n bytes, none of which
 * could be the length of another. */
static uint32_t put_msgp(uint32_t align, uint32_t thresh, uint32_t n,
			 unsigned chunks, bool padded)
{
	uint8_t data[512];
	uint32_t at, pad;

	memset(data, 0xff, sizeof(data));
	begin(1, RPCRDMA_MSGP);
	xdr_put_u32(&w.out, align);
	xdr_put_u32(&w.out, thresh);
	put_zeros(1);
	for (unsigned i = 0; i < chunks; i++)
		put_chunk(1, 100);
	put_zeros(2);
	for (unsigned i = 0; i < 9; i++)
		xdr_put_u32(&w.out, UINT32_MAX);
	xdr_put_u32(&w.out, n);
	at = (uint32_t)xdr_out_len(&w.out);
	pad = padded ? (align - at % align) % align : 0;
	memset(w.out.p, 0, pad);
	w.out.p += pad;
	xdr_put_fixed(&w.out, data, n);
	ck_assert_int_eq(decode(), 0);
	ck_assert_uint_eq(at, h.len + 40);
	return pad;
}

/* RFC 5666 section 3.9, at its edges: alignments that divide nothing, longer
 * than the message; data shorter than the threshold, as long, longer. */
TEST(msgp_pads_of_any_alignment_are_found)
{
	static const uint32_t aligns[] = { 1, 2, 3, 4, 6, 8, 10, 64, 100, 127,
					   128, 512, 1000, 4096 };
	static const uint32_t threshs[] = { 0, 1, 4, 99, 100, 101, 5000,
					    UINT32_MAX };
	static const uint32_t lens[] = { 0, 1, 3, 4, 5, 99, 100, 101, 500 };
	uint32_t position, pad, want, len;
	bool found;

	for (unsigned i = 0; i < ARRAY_SIZE(aligns) * ARRAY_SIZE(threshs) *
	     ARRAY_SIZE(lens) * 4; i++) {
		unsigned k = i / 4;
		uint32_t align = aligns[k % ARRAY_SIZE(aligns)];
		uint32_t thresh = threshs[k / ARRAY_SIZE(aligns) %
					  ARRAY_SIZE(threshs)];
		uint32_t n = lens[k / ARRAY_SIZE(aligns) /
				  ARRAY_SIZE(threshs)];

		want = put_msgp(align, thresh, n, i % 4 / 2 * 3,
				i % 2 && n >= thresh);
		len = (uint32_t)xdr_out_len(&w.out);
		found = rpcrdma_msgp_find(&h, w.mem, len, 0, &position, &pad);
		ck_assert_int_eq(found, want > 0);
		if (!found)
			continue;
		ck_assert_uint_eq(position, 40);
		ck_assert_uint_eq(pad, want);
		ck_assert_int_eq(rpcrdma_layout_plan(&h, len - h.len, &l), 0);
		rpcrdma_layout_unpad(&l, position, pad);
		ck_assert_uint_eq(l.call_len, 40 + ALIGN_UP(n, 4u));
	}
}

TEST(msgp_with_senseless_alignment_is_left_alone)
{
	static const uint32_t aligns[] = { 0, 1, 3, 0xffffffff, 4 };
	uint32_t position, pad;

	for (size_t i = 0; i < ARRAY_SIZE(aligns); i++) {
		begin(1, RPCRDMA_MSGP);
		xdr_put_u32(&w.out, aligns[i]);
		put_zeros(4);
		put_zeros(20);
		ck_assert_int_eq(decode(), 0);
		ck_assert(!rpcrdma_msgp_find(&h, w.mem,
					     (uint32_t)xdr_out_len(&w.out), 0,
					     &position, &pad));
	}
}

static bool invalidates(uint32_t *handle)
{
	ck_assert_int_eq(decode(), 0);
	return rpcrdma_header_invalidate(&h, handle);
}

TEST(only_the_one_handle_of_a_call_is_invalidated)
{
	uint32_t handle = 0;

	begin(1, RPCRDMA_MSG);
	put_zeros(3);
	ck_assert(!invalidates(&handle));

	begin(1, RPCRDMA_MSG);
	put_read(40, 4096);
	put_read(40, 4096);
	put_zeros(3);
	ck_assert(invalidates(&handle));
	ck_assert_uint_eq(handle, 0x1028);

	begin(1, RPCRDMA_MSG);
	put_read(40, 4096);
	put_zeros(1);
	put_chunk(1, 100);
	put_zeros(2);
	ck_assert(!invalidates(&handle));

	begin(1, RPCRDMA_MSG);
	put_zeros(2);
	put_chunk(2, 100);
	ck_assert(!invalidates(&handle));

	begin(1, RPCRDMA_MSG);
	put_zeros(2);
	put_chunk(1, 100);
	ck_assert(invalidates(&handle));
	ck_assert_uint_eq(handle, 0x2000);
}

TEST(a_pad_or_empty_segment_is_never_invalidated)
{
	uint32_t handle;

	begin(1, RPCRDMA_MSG);
	put_zeros(1);
	put_chunk(1, 4);
	put_zeros(2);
	ck_assert(!invalidates(&handle));
	begin(1, RPCRDMA_MSG);
	put_zeros(1);
	put_chunk(1, 0);
	put_zeros(2);
	ck_assert(!invalidates(&handle));
}
