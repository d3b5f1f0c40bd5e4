/* SPDX-License-Identifier: BSD-2-Clause */
/* Every rule that a peer can break, and the Terminate that it gets. */
#include <errno.h>

#include "tests/unit/iwarp_stream.h"
#include "tests/unit/runner.h"

/* The stream is refused with @code, however it comes. */
static void refused(enum term code)
{
	size_t n = len;

	ck_assert_int_eq(feed(), -EPROTO);
	ck_assert_int_eq(w.r.term, code);
	/* And nothing further is accepted. */
	ck_assert_int_eq(rdmap_feed(&w.r, stream, n), 0);
	world_fini(&w);
	world_init(&w, crc);
	len = 0;
}

static void refused_one(struct ddp_header h, enum term code)
{
	add(&h, payload);
	refused(code);
}

TEST(impossible_lengths_lose_the_framing)
{
	static const uint8_t tagged[] = { 0, 13, 0xc1, 0x40 };
	static const uint8_t untagged[] = { 0, 17, 0x41, 0x43 };

	begin(false);
	memcpy(stream, tagged, len = 4);
	refused(TERM_MPA_LENGTH);
	memcpy(stream, untagged, len = 4);
	refused(TERM_MPA_LENGTH);
	/* A Read Request is exactly so long. */
	for (uint32_t n = 0; n < RDMAP_REQUEST_LEN; n++) {
		struct ddp_header h = a_request;

		h.payload = n;
		refused_one(h, TERM_MPA_LENGTH);
	}
}

TEST(other_versions_are_refused)
{
	begin(false);
	add(&a_send, payload);
	stream[2] ^= 3;
	refused(TERM_DDP_UNTAGGED_VERSION);
	add(&a_write, payload);
	stream[2] ^= 1;
	refused(TERM_DDP_TAGGED_VERSION);
	add(&a_send, payload);
	stream[3] ^= 0x40;
	refused(TERM_RDMAP_VERSION);
	add(&a_send, payload);
	stream[3] ^= 0x80;
	refused(TERM_RDMAP_VERSION);
}

TEST(opcodes_are_known_and_where_they_belong)
{
	struct ddp_header h;

	begin(false);
	for (uint8_t op = 0; op < 16; op++) {
		h = a_write;
		h.opcode = op;
		if (op != RDMAP_WRITE && op != RDMAP_READ_RESPONSE)
			refused_one(h, TERM_RDMAP_OPCODE);
		for (uint32_t qn = 0; qn < 3; qn++) {
			h = a_send;
			h.opcode = op;
			h.qn = qn;
			if (qn == 0 && op >= RDMAP_SEND &&
			    op <= RDMAP_SEND_SE_INV)
				continue;
			if ((qn == 1 && op == RDMAP_READ_REQUEST) ||
			    (qn == 2 && op == RDMAP_TERMINATE))
				continue;
			refused_one(h, TERM_RDMAP_OPCODE);
		}
	}
	h = a_send;
	h.qn = 3;
	refused_one(h, TERM_DDP_QN);
	h.qn = UINT32_MAX;
	refused_one(h, TERM_DDP_QN);
}

TEST(messages_come_in_order)
{
	struct ddp_header h = a_send;

	begin(false);
	h.msn = 0;
	refused_one(h, TERM_DDP_MSN);
	h.msn = 2;
	refused_one(h, TERM_DDP_MSN);
	add(&a_send, payload);
	refused_one(a_send, TERM_DDP_MSN);
	h = a_request;
	h.msn = 2;
	refused_one(h, TERM_DDP_MSN);
	h = a_terminate;
	h.msn = 2;
	refused_one(h, TERM_DDP_MSN);
	/* Within a message the number stays. */
	h = a_send;
	h.last = false;
	h.payload = 10;
	add(&h, payload);
	h.mo = 10;
	h.msn = 2;
	refused_one(h, TERM_DDP_MSN);
}

TEST(numbers_of_messages_wrap)
{
	struct ddp_header h = a_send;

	begin(false);
	w.r.msn[0] = UINT32_MAX;
	h.msn = UINT32_MAX;
	add(&h, NULL);
	h.msn = 0;
	add(&h, NULL);
	ck_assert_int_eq(feed(), 0);
	ck_assert_uint_eq(w.nrecv, 2);
}

TEST(segments_come_in_order)
{
	struct ddp_header h = a_send;

	begin(false);
	h.mo = 1;
	refused_one(h, TERM_DDP_MO);
	h.mo = 0;
	h.last = false;
	h.payload = 100;
	add(&h, payload);
	refused_one(h, TERM_DDP_MO);
	add(&h, payload);
	h.mo = 101;
	refused_one(h, TERM_DDP_MO);
	h = a_request;
	h.mo = 4;
	refused_one(h, TERM_DDP_MO);
	h = a_terminate;
	h.mo = 4;
	refused_one(h, TERM_DDP_MO);
}

TEST(segments_of_a_message_are_of_one_kind)
{
	struct ddp_header h = a_send;

	begin(false);
	h.last = false;
	h.payload = 8;
	add(&h, payload);
	h.mo = 8;
	h.opcode = RDMAP_SEND_INV;
	refused_one(h, TERM_RDMAP_OPCODE);
	h = a_send;
	h.last = false;
	h.payload = 8;
	h.opcode = RDMAP_SEND_INV;
	h.stag = WORLD_STAG;
	add(&h, payload);
	h.mo = 8;
	h.stag = 5;
	refused_one(h, TERM_RDMAP_OPCODE);
}

/* RFC 5040 section 4.1: the STag field is for invalidations alone. */
TEST(stags_of_plain_sends_are_not_compared)
{
	struct ddp_header h = a_send;

	begin(false);
	h.last = false;
	h.payload = 8;
	h.stag = 5;
	add(&h, payload);
	h.mo = 8;
	h.stag = 6;
	h.last = true;
	add(&h, payload + 8);
	ck_assert_int_eq(feed(), 0);
	ck_assert_uint_eq(w.recv_len[0], 16);
	ck_assert(!w.recv_inv[0]);
}

TEST(a_send_without_a_receive_is_refused)
{
	struct ddp_header h = a_send;

	begin(false);
	for (unsigned i = 0; i < WORLD_RECVS; i++, h.msn++)
		add(&h, payload);
	refused_one(h, TERM_DDP_NO_BUFFER);
}

TEST(a_send_longer_than_its_receive_is_refused)
{
	struct ddp_header h = a_send;

	begin(false);
	h.payload = WORLD_RECV + 1;
	add(&h, payload);
	ck_assert_int_eq(feed(), -EPROTO);
	ck_assert_int_eq(w.r.term, TERM_DDP_TOO_LONG);
	ck_assert_uint_eq(w.nrecv, 1);
	ck_assert_int_eq(w.recv_status[0], -EMSGSIZE);
	begin(false);
	add_message(a_send, WORLD_RECV + 1, 100);
	refused(TERM_DDP_TOO_LONG);
	add_message(a_send, WORLD_RECV, 100);
	ck_assert_int_eq(feed(), 0);
	ck_assert_uint_eq(w.recv_len[0], WORLD_RECV);
}

TEST(requests_and_terminates_are_one_segment)
{
	struct ddp_header h = a_request;

	begin(false);
	h.last = false;
	refused_one(h, TERM_DDP_TOO_LONG);
	h.last = true;
	h.payload++;
	refused_one(h, TERM_DDP_TOO_LONG);
	h = a_terminate;
	h.payload = RDMAP_TERM_MAX + 1;
	refused_one(h, TERM_DDP_TOO_LONG);
	h.payload = 3;
	refused_one(h, TERM_MPA_LENGTH);
}

TEST(a_response_answers_the_oldest_read_exactly)
{
	struct ddp_header h = a_response;

	begin(false);
	h.payload = 100;
	h.last = false;
	h.stag = 0x200;
	refused_one(h, TERM_DDP_STAG);
	h.stag = 0x100;
	h.to = 1;
	refused_one(h, TERM_DDP_BOUNDS);
	h.to = 0;
	h.last = true;				/* too short */
	refused_one(h, TERM_DDP_BOUNDS);
	h.payload = 0;				/* empty */
	refused_one(h, TERM_DDP_BOUNDS);
	h.payload = WORLD_READ + 1;
	refused_one(h, TERM_DDP_BOUNDS);
	h.payload = WORLD_READ;			/* whole, and not the last */
	h.last = false;
	refused_one(h, TERM_DDP_BOUNDS);
	h.payload = 100;
	add(&h, payload);
	refused_one(h, TERM_DDP_BOUNDS);	/* the same again */
	add(&h, payload);
	h.to = 100;
	h.payload = WORLD_READ - 99;
	h.last = true;
	refused_one(h, TERM_DDP_BOUNDS);
	w.max_reads = 0;
	h = a_response;
	h.payload = WORLD_READ;
	refused_one(h, TERM_DDP_STAG);
}

TEST(a_write_elsewhere_is_refused)
{
	struct ddp_header h = a_write;

	begin(false);
	h.payload = 8;
	h.stag ^= 1;
	refused_one(h, TERM_DDP_STAG);
	h = a_write;
	h.payload = 8;
	h.to--;
	refused_one(h, TERM_DDP_BOUNDS);
	h.to = WORLD_TO + WORLD_OPEN - 7;
	refused_one(h, TERM_DDP_BOUNDS);
	/* Of an empty one nothing is checked. */
	h.payload = 0;
	h.stag = 1;
	add(&h, NULL);
	ck_assert_int_eq(feed(), 0);
}

TEST(memory_that_goes_away_is_written_no_more)
{
	begin(false);
	add_message(a_write, 1000, 2000);
	ck_assert_int_eq(rdmap_feed(&w.r, stream, 100), 0);
	w.writable = false;
	ck_assert_int_eq(rdmap_feed(&w.r, stream + 100, 100), -EPROTO);
	ck_assert_int_eq(w.r.term, TERM_DDP_STAG);
	/* The Terminate has the header as it came. */
	ck_assert_uint_eq(w.r.culprit_header, DDP_TAGGED_LEN);
	ck_assert_mem_eq(w.r.culprit, stream, DDP_TAGGED_LEN);
}

TEST(an_invalidation_of_an_unknown_handle_is_refused)
{
	struct ddp_header h = a_send;

	begin(false);
	h.opcode = RDMAP_SEND_INV;
	h.stag = 77;
	add(&h, NULL);
	ck_assert_int_eq(feed(), -EPROTO);
	ck_assert_int_eq(w.r.term, TERM_RDMAP_INVALIDATE);
	ck_assert_uint_eq(w.nrecv, 0);
	ck_assert_uint_eq(w.r.culprit_header, DDP_UNTAGGED_LEN);
	ck_assert_mem_eq(w.r.culprit, stream, DDP_UNTAGGED_LEN);
}

/* RFC 5041 section 4.1, RFC 5040 section 4.1. */
TEST(reserved_bits_are_not_looked_at)
{
	struct ddp_header h = a_send;

	begin(false);
	h.stag = WORLD_STAG;
	h.payload = 8;
	add(&h, payload);
	stream[2] |= 0x3c;
	stream[3] |= 0x30;
	ck_assert_int_eq(feed(), 0);
	ck_assert_uint_eq(w.nrecv, 1);
	ck_assert(!w.recv_inv[0]);
	ck_assert_uint_eq(w.invalidated, 0);
}

TEST(a_terminate_ends_it)
{
	begin(true);
	add(&a_terminate, "\x12\x02\0\0");
	ck_assert_int_eq(feed(), -ECONNRESET);
	ck_assert_uint_eq(w.terminated, TERM_DDP_NO_BUFFER);
	ck_assert_int_eq(w.r.term, TERM_NONE);
	ck_assert_int_eq(feed(), 0);		/* is not even looked at */
}
