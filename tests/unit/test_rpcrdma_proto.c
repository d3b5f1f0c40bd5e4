/* SPDX-License-Identifier: BSD-2-Clause */
/* The RPC-over-RDMA wire: headers, chunk lists, private data. */
#include "transport/rpcrdma/proto.h"

#include <errno.h>

#include "tests/unit/rpcrdma_wire.h"

TEST(a_call_without_chunks_is_decoded)
{
	begin(1, RPCRDMA_MSG);
	put_zeros(3);
	put_zeros(10);
	ck_assert_int_eq(decode(), 0);
	ck_assert_uint_eq(h.xid, XID);
	ck_assert_uint_eq(h.credits, 128);
	ck_assert_uint_eq(h.proc, RPCRDMA_MSG);
	ck_assert_uint_eq(h.len, 28);
	ck_assert_uint_eq(h.nreads, 0);
	ck_assert_uint_eq(h.nwrites, 0);
	ck_assert(!h.has_reply);
}

static void put_all_lists(void)
{
	begin(1, RPCRDMA_MSG);
	put_read(100, 4096);
	put_read(100, 1001);
	put_read(8000, 12);
	put_zeros(1);
	put_chunk(3, 1000);
	put_chunk(0, 0);
	put_zeros(1);
	put_chunk(2, 2000);
}

static struct rpcrdma_chunk write_chunk(const struct rpcrdma_header *of,
					uint32_t n)
{
	struct rpcrdma_chunk chunk;

	for (uint32_t i = 0; i <= n; i++)
		ck_assert(rpcrdma_write_next(of, i, &chunk));
	return chunk;
}

TEST(all_lists_are_decoded)
{
	struct rpcrdma_segment seg;

	put_all_lists();
	ck_assert_int_eq(decode(), 0);
	ck_assert_uint_eq(h.nreads, 2);
	ck_assert_uint_eq(h.read[0].position, 100);
	ck_assert_uint_eq(h.read[0].nsegs, 2);
	ck_assert_uint_eq(h.read[0].length, 5097);
	ck_assert_uint_eq(h.read[1].position, 8000);
	seg = rpcrdma_chunk_segment(&h.read[0], 1);
	ck_assert_uint_eq(seg.handle, 0x1064);
	ck_assert_uint_eq(seg.length, 1001);
	ck_assert_uint_eq(seg.offset, 0x0123456789ull);
	ck_assert_uint_eq(h.nwrites, 2);
	ck_assert_uint_eq(h.write.nsegs, 3);
	ck_assert_uint_eq(h.write.length, 3000);
	ck_assert_uint_eq(write_chunk(&h, 1).nsegs, 0);
	ck_assert(h.has_reply);
	ck_assert_uint_eq(h.reply.length, 4000);
	seg = rpcrdma_chunk_segment(&h.reply, 1);
	ck_assert_uint_eq(seg.handle, 0x2001);
	ck_assert_uint_eq(seg.offset, 0x1000);
	ck_assert_uint_eq(h.len, xdr_out_len(&w.out));
}

TEST(every_truncation_is_rejected)
{
	put_all_lists();
	for (size_t len = 0; len < xdr_out_len(&w.out); len++) {
		uint8_t *exact = malloc(len);	/* ASan sees the end */
		int err;

		memcpy(exact, w.mem, len);
		err = rpcrdma_header_decode(exact, len, &h);
		ck_assert_int_eq(err, len < 28 ? -ENODATA : -EBADMSG);
		free(exact);
	}
	ck_assert_int_eq(decode(), 0);
}

TEST(another_version_is_distinguished_from_garbage)
{
	begin(2, 77);
	put_zeros(3);
	ck_assert_int_eq(decode(), -EPROTONOSUPPORT);
	ck_assert_uint_eq(h.xid, XID);
	ck_assert_uint_eq(h.vers, 2);
}

TEST(an_unknown_procedure_is_malformed)
{
	begin(1, 5);
	put_zeros(3);
	ck_assert_int_eq(decode(), -EBADMSG);
	ck_assert_uint_eq(h.xid, XID);
}

TEST(done_and_error_have_no_lists)
{
	begin(1, RPCRDMA_DONE);
	put_zeros(3);
	ck_assert_int_eq(decode(), 0);
	begin(1, RPCRDMA_ERROR);
	xdr_put_u32(&w.out, RPCRDMA_ERR_CHUNK);
	ck_assert_int_eq(decode(), 0);
	ck_assert_uint_eq(h.err, RPCRDMA_ERR_CHUNK);
	begin(1, RPCRDMA_ERROR);
	xdr_put_u32(&w.out, RPCRDMA_ERR_VERS);
	xdr_put_u32(&w.out, 1);
	ck_assert_int_eq(decode(), -EBADMSG);
	xdr_put_u32(&w.out, 3);
	ck_assert_int_eq(decode(), 0);
	ck_assert_uint_eq(h.vers_low, 1);
	ck_assert_uint_eq(h.vers_high, 3);
}

TEST(list_marks_are_booleans)
{
	for (int word = 4; word < 7; word++) {
		begin(1, RPCRDMA_MSG);
		put_zeros(3);
		w.mem[word * 4 + 3] = 2;
		ck_assert_int_eq(decode(), -EBADMSG);
	}
}

TEST(a_segment_count_beyond_the_message_is_malformed)
{
	begin(1, RPCRDMA_MSG);
	put_zeros(1);
	xdr_put_u32(&w.out, 1);
	xdr_put_u32(&w.out, 0x10000001);	/* times 16 is 16 */
	put_zeros(40);
	ck_assert_int_eq(decode(), -EBADMSG);
}

/* RFC 8166 section 3.4.4 puts no limit on the size of a chunk. */
TEST(lengths_may_add_up_to_more_than_two_to_the_32)
{
	const uint64_t much = 100 * (uint64_t)0xffffffff;

	begin(1, RPCRDMA_MSG);
	for (unsigned i = 0; i < 100; i++)
		put_read(8, 0xffffffff);
	put_zeros(1);
	put_chunk(2, 0x80000000);
	put_chunk(100, 0xffffffff);
	put_zeros(1);
	put_chunk(100, 0xffffffff);
	ck_assert_int_eq(decode(), 0);
	ck_assert_uint_eq(h.read[0].length, much);
	ck_assert_uint_eq(h.write.length, (uint64_t)1 << 32);
	ck_assert_uint_eq(write_chunk(&h, 1).length, much);
	ck_assert_uint_eq(h.reply.length, much);
}

TEST(read_chunks_are_taken_as_long_as_a_binding_could_let_them)
{
	for (uint32_t n = 1; n <= RPCRDMA_MAX_READS + 1; n++) {
		begin(1, RPCRDMA_MSG);
		for (uint32_t i = 0; i < n; i++)
			put_read(4 + 8 * i, 4);
		put_zeros(3);
		ck_assert_int_eq(decode(), n > RPCRDMA_MAX_READS ? -E2BIG : 0);
	}
}

/* As many as fit: RFC 8166 section 4.3.2 gives no bound. */
TEST(any_number_of_write_chunks_comes_back)
{
	static const uint32_t numbers[] = { 0, 1, 2, 8, 9, 100, 300 };
	struct rpcrdma_reply reply = { .call = &h, .written = 5 };
	uint8_t mem[sizeof(w.mem)];
	struct rpcrdma_header r;
	struct xdr_out out;

	for (size_t k = 0; k < ARRAY_SIZE(numbers); k++) {
		begin(1, RPCRDMA_MSG);
		put_zeros(1);
		for (uint32_t i = 0; i < numbers[k]; i++)
			put_chunk(i % 2, 100 + i);
		put_zeros(2);
		ck_assert_int_eq(decode(), 0);
		ck_assert_uint_eq(h.nwrites, numbers[k]);
		xdr_out_init(&out, mem, sizeof(mem));
		rpcrdma_reply_encode(&out, &reply);
		ck_assert_uint_eq(xdr_out_len(&out), h.reply_len);
		ck_assert_uint_eq(xdr_out_len(&out), xdr_out_len(&w.out));
		ck_assert_int_eq(rpcrdma_header_decode(mem, xdr_out_len(&out),
						       &r), 0);
		ck_assert_uint_eq(r.nwrites, numbers[k]);
		for (uint32_t i = 0; i < numbers[k]; i++) {
			ck_assert_uint_eq(write_chunk(&h, i).length,
					  i % 2 * (100 + i));
			ck_assert_uint_eq(write_chunk(&r, i).nsegs, i % 2);
			ck_assert_uint_eq(write_chunk(&r, i).length, 0);
		}
	}
}

/* RFC 8166 section 4.3.1 gives the Read list no order. */
TEST(read_chunks_may_stand_in_any_order)
{
	static const uint32_t position[] = { 48, 0, 40, 44 };

	begin(1, RPCRDMA_NOMSG);
	for (size_t i = 0; i < ARRAY_SIZE(position); i++) {
		put_read(position[i], 4);
		put_read(position[i], 8);
	}
	put_zeros(3);
	ck_assert_int_eq(decode(), 0);
	ck_assert_uint_eq(h.nreads, 4);
	for (uint32_t i = 0; i < h.nreads; i++) {
		const uint32_t sorted[] = { 0, 40, 44, 48 };

		ck_assert_uint_eq(h.read[i].position, sorted[i]);
		ck_assert_uint_eq(h.read[i].length, 12);
		ck_assert_uint_eq(rpcrdma_chunk_segment(&h.read[i], 1).handle,
				  0x1000 + sorted[i]);
	}
}

TEST(read_positions_are_multiples_of_four)
{
	for (uint32_t position = 4; position <= 8; position++) {
		begin(1, RPCRDMA_MSG);
		put_read(position, 4);
		put_zeros(3);
		ck_assert_int_eq(decode(), position % 4 ? -EBADMSG : 0);
	}
}

/* Checks that the chunk has the entries of its position, in their order; an
 * entry's offset is its number. */
static void check_read(const struct rpcrdma_chunk *chunk,
		       const uint32_t *position, unsigned n)
{
	struct rpcrdma_chunk rest = *chunk;
	struct rpcrdma_segment seg;
	uint64_t length = 0;

	for (unsigned i = 0; i < n; i++) {
		if (position[i] != chunk->position)
			continue;
		ck_assert_uint_gt(rest.nsegs, 0);
		seg = rpcrdma_chunk_take(&rest);
		ck_assert_uint_eq(seg.offset, i);
		ck_assert_uint_eq(seg.handle, 0x100 + i);
		length += seg.length;
	}
	ck_assert_uint_eq(rest.nsegs, 0);
	ck_assert_uint_eq(chunk->length, length);
}

/* RFC 8166 section 3.4.5: all segments with one position are one chunk, in the
 * order of the list, wherever in the list they stand.  Tried with any lists. */
TEST(segments_of_read_chunks_may_stand_in_turns)
{
	uint32_t position[64], seen = 0;
	unsigned n, of;

	srandom(8166);
	for (unsigned round = 0; round < 2000; round++) {
		n = 1 + (unsigned)random() % ARRAY_SIZE(position);
		of = 1 + (unsigned)random() % RPCRDMA_MAX_READS;
		begin(1, RPCRDMA_MSG);
		for (unsigned i = 0; i < n; i++) {
			position[i] = 4 * ((unsigned)random() % of);
			xdr_put_u32(&w.out, 1);
			xdr_put_u32(&w.out, position[i]);
			put_segment(0x100 + i, (uint32_t)random(), i);
		}
		put_zeros(3);
		ck_assert_int_eq(decode(), 0);
		ck_assert_uint_le(h.nreads, of);
		for (uint32_t c = 0; c < h.nreads; c++) {
			ck_assert(c == 0 || h.read[c - 1].position <
				  h.read[c].position);
			check_read(&h.read[c], position, n);
			seen += h.read[c].nsegs;
		}
		ck_assert_uint_eq(seen, n);
		seen = 0;
	}
}

/* A message with one segment of @length at @offset in the list @list: 0 Read,
 * 1 Write, 2 Reply. */
static int decode_segment(int list, uint32_t length, uint64_t offset)
{
	begin(1, RPCRDMA_MSG);
	put_zeros((unsigned)list);
	xdr_put_u32(&w.out, 1);
	xdr_put_u32(&w.out, list ? 1 : 40);	/* a count or a position */
	put_segment(7, length, offset);
	put_zeros(list == 2 ? 0 : 3 - (unsigned)list);
	return decode();
}

TEST(a_segment_ends_before_two_to_the_64)
{
	for (int list = 0; list < 3; list++) {
		ck_assert_int_eq(decode_segment(list, 5000, 0ull - 5000), 0);
		ck_assert_int_eq(decode_segment(list, 0, UINT64_MAX), 0);
		ck_assert_int_eq(decode_segment(list, 5000, 0ull - 4999),
				 -EBADMSG);
		ck_assert_int_eq(decode_segment(list, 2, UINT64_MAX),
				 -EBADMSG);
	}
}

TEST(a_reply_has_the_same_chunks_with_what_was_written)
{
	uint8_t mem[512];
	struct xdr_out out;
	struct rpcrdma_header r;
	struct rpcrdma_reply reply = {
		.call = &h, .credits = 77, .proc = RPCRDMA_MSG,
		.written = 1500,
	};

	put_all_lists();
	ck_assert_int_eq(decode(), 0);
	xdr_out_init(&out, mem, sizeof(mem));
	rpcrdma_reply_encode(&out, &reply);
	ck_assert(!out.bad);
	ck_assert_uint_eq(xdr_out_len(&out), h.reply_len);
	ck_assert_int_eq(rpcrdma_header_decode(mem, xdr_out_len(&out), &r), 0);
	ck_assert_uint_eq(r.xid, XID);
	ck_assert_uint_eq(r.credits, 77);
	ck_assert_uint_eq(r.nreads, 0);
	ck_assert_uint_eq(r.nwrites, 2);
	ck_assert_uint_eq(r.write.nsegs, 3);
	ck_assert_uint_eq(rpcrdma_chunk_segment(&r.write, 0).length, 1000);
	ck_assert_uint_eq(rpcrdma_chunk_segment(&r.write, 1).length, 500);
	ck_assert_uint_eq(rpcrdma_chunk_segment(&r.write, 2).length, 0);
	ck_assert_uint_eq(rpcrdma_chunk_segment(&r.write, 2).handle,
			  0x2002);
	ck_assert_uint_eq(write_chunk(&r, 1).nsegs, 0);
	ck_assert(r.has_reply);
	ck_assert_uint_eq(r.reply.nsegs, 2);
	ck_assert_uint_eq(r.reply.length, 0);
}

TEST(a_reply_may_overwrite_the_call_it_answers)
{
	struct rpcrdma_reply reply = {
		.call = &h, .credits = 1, .proc = RPCRDMA_NOMSG,
		.written = 2999, .reply_written = 2001,
	};
	uint8_t apart[512];
	struct xdr_out out;
	size_t len;

	put_all_lists();
	ck_assert_int_eq(decode(), 0);
	xdr_out_init(&out, apart, sizeof(apart));
	rpcrdma_reply_encode(&out, &reply);
	len = xdr_out_len(&out);
	xdr_out_init(&out, w.mem, len);
	rpcrdma_reply_encode(&out, &reply);
	ck_assert_mem_eq(w.mem, apart, len);
}

TEST(errors_carry_the_version_of_the_call)
{
	uint8_t mem[64];
	struct xdr_out out;

	begin(9, 0);
	put_zeros(3);
	ck_assert_int_eq(decode(), -EPROTONOSUPPORT);
	xdr_out_init(&out, mem, sizeof(mem));
	rpcrdma_error_encode(&out, &h, 32, RPCRDMA_ERR_VERS);
	ck_assert_uint_eq(xdr_out_len(&out), 28);
	ck_assert_mem_eq(mem + 4, "\0\0\0\x09\0\0\0\x20\0\0\0\4\0\0\0\1"
			 "\0\0\0\1\0\0\0\1", 24);
	xdr_out_init(&out, mem, sizeof(mem));
	rpcrdma_error_encode(&out, &h, 32, RPCRDMA_ERR_CHUNK);
	ck_assert_uint_eq(xdr_out_len(&out), 20);
}

TEST(private_data_is_that_of_a_linux_client)
{
	static const uint8_t linux_client[12] = {
		0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3 };
	struct rpcrdma_private p = { true, 4096, 4096 };
	uint8_t out[RPCRDMA_PRIVATE_LEN];

	rpcrdma_private_encode(&p, out);
	ck_assert_mem_eq(out, linux_client, sizeof(out));
	memset(&p, 0, sizeof(p));
	ck_assert(rpcrdma_private_decode(linux_client, 12, &p));
	ck_assert(p.remote_inv);
	ck_assert_uint_eq(p.send_size, 4096);
	ck_assert_uint_eq(p.recv_size, 4096);
}

TEST(private_data_is_found_at_any_offset)
{
	static const uint8_t odd[] = {
		0xf6, 0xab, 0x0e, 0xf6, 0xab, 0x0e, 0x18, 1, 0xfe, 0, 255 };
	struct rpcrdma_private p;

	ck_assert(rpcrdma_private_decode(odd, sizeof(odd), &p));
	ck_assert(!p.remote_inv);
	ck_assert_uint_eq(p.send_size, 1024);
	ck_assert_uint_eq(p.recv_size, 262144);
	for (size_t n = 0; n < sizeof(odd); n++) {
		ck_assert(!rpcrdma_private_decode(odd, n, &p));
		ck_assert_uint_eq(p.recv_size, 1024);
	}
}

TEST(private_data_of_another_format_means_the_defaults)
{
	static const uint8_t v2[] = { 0xf6, 0xab, 0x0e, 0x18, 2, 1, 9, 9 };
	struct rpcrdma_private p;

	ck_assert(!rpcrdma_private_decode(v2, sizeof(v2), &p));
	ck_assert(!p.remote_inv);
	ck_assert_uint_eq(p.send_size, 1024);
	ck_assert_uint_eq(p.recv_size, 1024);
}
