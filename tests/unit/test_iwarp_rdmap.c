/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer's bytes, cut anywhere. */
#include <errno.h>
#include <string.h>

#include "tests/unit/iwarp_stream.h"
#include "tests/unit/runner.h"

/* Frames with CRC, from a capture of the kernel's client and a server. */
static const char send_call[] =
	"005641430000000000000000000000010000000048768a8000000001000000800000"
	"000000000000000000000000000048768a800000000000000002000186a300000003"
	"000000000000000000000000000000000000000048597eb6";
static const char send_reply[] =
	"004641430000000000000000000000010000000048768a8000000001000000200000"
	"000000000000000000000000000048768a8000000001000000000000000000000000"
	"0000000094637152";
static const char write_28[] =
	"002ac14009edc50152768a8081cbf00068656c6c6f206f76657220757365722d7370"
	"6163652069574152500a18c2e13c";
static const char read_request[] =
	"002e414100000000000000010000000100000000" "0000015a0000000000000000"
	"00011171" "84916a045c768a8081c54000" "345851b0";

/* ---- known answers */

TEST(frames_of_the_kernel_are_taken)
{
	begin(true);
	len = unhex(send_call, stream);
	ck_assert_int_eq(feed(), 0);
	ck_assert_uint_eq(w.nrecv, 1);
	ck_assert_uint_eq(w.recv_len[0], 68);
	ck_assert_mem_eq(w.recv[0], stream + 20, 68);
	world_init(&w, true);
	len = unhex(send_reply, stream);
	ck_assert_int_eq(feed(), 0);
	ck_assert_uint_eq(w.recv_len[0], 52);
	world_init(&w, true);
	len = unhex(read_request, stream);
	ck_assert_int_eq(feed(), -EPROTO);	/* of unknown memory */
	ck_assert_uint_eq(w.requests, 1);
	ck_assert_uint_eq(w.request.len, 0x11171);
	ck_assert_uint_eq(w.r.culprit_header, 20);
	ck_assert_uint_eq(w.r.culprit_request, 28);
	ck_assert_mem_eq(w.r.culprit, stream, 48);
	world_init(&w, true);
	len = unhex(write_28, stream);
	ck_assert_int_eq(feed(), -EPROTO);
	ck_assert_int_eq(w.r.term, TERM_DDP_STAG);
	ck_assert_mem_eq(w.r.culprit, stream, 16);
}

TEST(every_byte_of_a_frame_is_in_its_crc)
{
	size_t n;

	begin(true);
	n = unhex(send_call, stream);
	for (size_t i = 2; i < n; i++) {
		world_init(&w, true);
		stream[i] ^= 0x10;
		ck_assert_int_eq(rdmap_feed(&w.r, stream, n), -EPROTO);
		ck_assert_int_eq(w.r.term, TERM_MPA_CRC);
		ck_assert_uint_eq(w.nrecv, 0);
		stream[i] ^= 0x10;
	}
}

TEST(without_crcs_the_field_may_be_anything)
{
	begin(false);
	len = unhex(send_call, stream);
	memset(stream + len - 4, 0xa5, 4);
	ck_assert_int_eq(feed(), 0);
	ck_assert_uint_eq(w.nrecv, 1);
}

/* RFC 5044 section 4.1. */
TEST(pads_are_not_looked_at)
{
	struct ddp_header h = a_send;

	begin(false);
	h.payload = 5;
	add(&h, payload);
	memset(stream + len - 7, 0xa5, 3);
	ck_assert_int_eq(feed(), 0);
	ck_assert_uint_eq(w.recv_len[0], 5);
	ck_assert_mem_eq(w.recv[0], payload, 5);
	ck_assert_uint_eq(w.recv[0][5], 0);
}

/* ---- cut anywhere */

/* One of everything; the segments need pads of all lengths. */
static void one_of_everything(void)
{
	struct rdmap_request req = { .sink_stag = 9 };
	struct ddp_header h;
	uint8_t body[RDMAP_REQUEST_LEN];

	add_message(a_write, 0, 100);			/* an RTR */
	add_message(a_send, 599, 101);
	rdmap_request_encode(&req, body);
	h = a_request;
	add(&h, body);
	add_message(a_response, WORLD_READ, 1003);
	h = a_send;
	h.msn = 2;
	h.opcode = RDMAP_SEND_SE_INV;
	h.stag = WORLD_STAG;
	add_message(h, 61, 600);
	add_message(a_write, 4096, 1500);
	h = a_response;
	h.stag = 0x200;
	add_message(h, WORLD_READ, 5000);
	h = a_send;
	h.msn = 3;
	h.opcode = RDMAP_SEND_SE;
	add_message(h, 0, 600);				/* an empty one */
}

static void check_everything(void)
{
	ck_assert_uint_eq(w.nrecv, 3);
	ck_assert_uint_eq(w.recv_len[0], 599);
	ck_assert_mem_eq(w.recv[0], payload, 599);
	ck_assert(!w.recv_inv[0] && w.recv_inv[1] && !w.recv_inv[2]);
	ck_assert_uint_eq(w.recv_len[1], 61);
	ck_assert_uint_eq(w.recv_len[2], 0);
	ck_assert_uint_eq(w.invalidated, 1);
	ck_assert_uint_eq(w.nreads, 2);
	ck_assert_mem_eq(w.sink[0], payload, WORLD_READ);
	ck_assert_mem_eq(w.sink[1], payload, WORLD_READ);
	ck_assert_mem_eq(w.open, payload, WORLD_OPEN);
	ck_assert_uint_eq(w.requests, 1);
	ck_assert(!rdmap_midway(&w.r));
}

static void feed_by(size_t n)
{
	for (size_t at = 0; at < len; at += n)
		ck_assert_int_eq(rdmap_feed(&w.r, stream + at,
					    MIN(n, len - at)), 0);
}

TEST(everything_may_come_at_once_or_byte_by_byte)
{
	for (int with = 0; with < 2; with++) {
		for (size_t n = 1; n < 70; n++) {
			begin(with);
			one_of_everything();
			feed_by(n);
			check_everything();
			world_fini(&w);
		}
		begin(with);
		one_of_everything();
		feed_by(len);
		check_everything();
	}
}

TEST(everything_may_be_cut_anywhere)
{
	for (int with = 0; with < 2; with++) {
		begin(with);
		one_of_everything();
		for (size_t at = 1; at < len; at += at < 1500 ? 1 : 13) {
			world_init(&w, with);
			ck_assert_int_eq(rdmap_feed(&w.r, stream, at), 0);
			ck_assert_int_eq(rdmap_feed(&w.r, stream + at,
						    len - at), 0);
			check_everything();
			world_fini(&w);
		}
	}
}

/* As a receiver does that reads straight to where it belongs. */
static void feed_direct(size_t first)
{
	size_t at = first;

	ck_assert_int_eq(rdmap_feed(&w.r, stream, first), 0);
	while (at < len) {
		struct rdmap_want want;
		size_t n = len - at;

		if (!rdmap_want(&w.r, &want)) {
			n = MIN(n, (size_t)23);
			ck_assert_int_eq(rdmap_feed(&w.r, stream + at, n), 0);
			at += n;
			continue;
		}
		n = MIN(n, (size_t)want.len);
		if (!want.data)
			want.data = w.open + (w.r.h.to - WORLD_TO);
		memcpy(want.data, stream + at, n);
		ck_assert_int_eq(rdmap_placed(&w.r, (uint32_t)n), 0);
		at += n;
	}
}

TEST(payload_may_be_received_where_it_belongs)
{
	begin(false);
	one_of_everything();
	for (size_t first = 0; first < 200; first++) {
		world_init(&w, false);
		feed_direct(first);
		check_everything();
	}
}

TEST(fpdus_may_have_any_size)
{
	static const uint32_t sizes[] = { 1, 104, 1424, 65500 };

	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		begin(i & 1);
		add_message(a_response, WORLD_READ, sizes[i]);
		ck_assert_int_eq(feed(), 0);
		ck_assert_mem_eq(w.sink[0], payload, WORLD_READ);
		world_fini(&w);
	}
}

TEST(with_crcs_nothing_is_placed_before_the_crc)
{
	begin(true);
	add_message(a_write, 1000, 2000);
	ck_assert_int_eq(rdmap_feed(&w.r, stream, len - 1), 0);
	ck_assert_uint_eq(w.open[0], 0);
	stream[len - 1] ^= 1;
	ck_assert_int_eq(rdmap_feed(&w.r, stream + len - 1, 1), -EPROTO);
	ck_assert_uint_eq(w.open[0], 0);
	world_fini(&w);
}
