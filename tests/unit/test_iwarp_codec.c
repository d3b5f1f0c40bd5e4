/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRCs, start-up frames and headers, against recorded bytes of the kernel's siw
 * and others.
 */
#include <errno.h>
#include <string.h>

#include "lib/util.h"
#include "tests/unit/iwarp_world.h"
#include "tests/unit/runner.h"
#include "transport/fabric/iwarp/crc32c.h"
#include "transport/fabric/iwarp/marked.h"
#include "transport/fabric/iwarp/mpa.h"

/* siw's request and our answer, with the private data of RFC 8797. */
#define REQ_KEY		"4d504120494420526571204672616d65"
#define REP_KEY		"4d504120494420526570204672616d65"
#define REQ_SIW		REQ_KEY "1002000c" "00800000" "f6ab0e1801010303"
#define REQ_SIW_P2P	REQ_KEY "5002000c" "8080c001" "f6ab0e1801010303"
#define REQ_SIW_V1	REQ_KEY "00010008" "f6ab0e1801010303"
#define REP_OURS	REP_KEY "1002000c" "00000010" "f6ab0e1801010303"

static uint8_t buf[65536];
static const uint8_t private_data[8] = { 0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3 };

/* ---- CRC */

TEST(the_check_value_comes_out)
{
	ck_assert_uint_eq(crc32c(0, "123456789", 9), 0xe3069283);
	ck_assert_uint_eq(crc32c(0, "", 0), 0);
}

/* RFC 3720 appendix B.4. */
TEST(the_vectors_of_iscsi_come_out)
{
	uint8_t v[32];

	memset(v, 0, sizeof(v));
	ck_assert_uint_eq(crc32c(0, v, 32), 0x8a9136aa);
	memset(v, 0xff, sizeof(v));
	ck_assert_uint_eq(crc32c(0, v, 32), 0x62a8ab43);
	for (uint8_t i = 0; i < 32; i++)
		v[i] = i;
	ck_assert_uint_eq(crc32c(0, v, 32), 0x46dd794e);
}

static void fill(void)
{
	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)(i * 2654435761u >> 13);
}

/* The polynomial of RFC 3720 section 12.1, bit by bit. */
static uint32_t crc_by_bits(uint32_t crc, const uint8_t *p, size_t n)
{
	crc = ~crc;
	for (; n > 0; n--) {
		crc ^= *p++;
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return ~crc;
}

TEST(the_crc_is_that_of_the_polynomial_at_every_length)
{
	fill();
	for (size_t n = 0; n < 8000; n += n < 3000 ? 1 : 37)
		ck_assert_uint_eq(crc32c(7, buf + n % 9, n),
				  crc_by_bits(7, buf + n % 9, n));
	ck_assert_uint_eq(crc32c(0, buf, sizeof(buf)),
			  crc_by_bits(0, buf, sizeof(buf)));
}

TEST(a_crc_may_be_made_in_pieces)
{
	uint32_t whole;

	fill();
	whole = crc32c(0, buf, 9000);
	for (size_t at = 0; at <= 9000; at += 71)
		ck_assert_uint_eq(crc32c(crc32c(0, buf, at), buf + at,
					 9000 - at), whole);
}

/* ---- start-up frames */

static struct mpa_frame f;
static size_t len;

static int decode(const char *hex, bool reply)
{
	len = unhex(hex, buf);
	return mpa_decode(buf, len, reply, &f);
}

static void check_private(void)
{
	ck_assert_uint_eq(f.private_len, 8);
	ck_assert_mem_eq(f.private_data, private_data, 8);
}

TEST(requests_of_siw_are_decoded)
{
	ck_assert_int_eq(decode(REQ_SIW, false), 0);
	ck_assert(f.enhanced && !f.p2p && !f.crc && !f.markers);
	ck_assert_uint_eq(f.rev, 2);
	ck_assert_uint_eq(f.ird, 128);
	ck_assert_uint_eq(f.ord, 0);
	check_private();
	ck_assert_int_eq(decode(REQ_SIW_P2P, false), 0);
	ck_assert(f.p2p && f.crc && f.rtr_write && f.rtr_read && !f.rtr_send);
	ck_assert_uint_eq(f.ird, 128);
	ck_assert_uint_eq(f.ord, 1);
	check_private();
	ck_assert_int_eq(decode(REQ_SIW_V1, false), 0);
	ck_assert(!f.enhanced && !f.p2p);
	ck_assert_uint_eq(f.rev, 1);
	check_private();
}

TEST(frames_are_encoded_as_they_were_decoded)
{
	static const char *const frames[] = { REQ_SIW, REQ_SIW_P2P,
					      REQ_SIW_V1, REP_OURS };
	uint8_t again[MPA_MAX_FRAME];

	for (unsigned i = 0; i < ARRAY_SIZE(frames); i++) {
		ck_assert_int_eq(decode(frames[i], i == 3), 0);
		ck_assert_uint_eq(mpa_encode(&f, again), len);
		ck_assert_mem_eq(again, buf, len);
	}
}

TEST(a_frame_is_known_by_its_first_bytes)
{
	decode(REQ_SIW, false);
	for (size_t n = 0; n < MPA_HEADER_LEN; n++)
		ck_assert_int_eq(mpa_frame_len(buf, n, false), 0);
	for (size_t n = MPA_HEADER_LEN; n <= len; n++)
		ck_assert_int_eq(mpa_frame_len(buf, n, false), (int)len);
	for (size_t n = MPA_HEADER_LEN; n < len; n++)
		ck_assert_int_eq(mpa_decode(buf, n, false, &f), -EPROTO);
	/* Every byte of the key counts as soon as it is there. */
	for (size_t n = 0; n < 16; n++) {
		buf[n] ^= 1;
		ck_assert_int_eq(mpa_frame_len(buf, n + 1, false), -EPROTO);
		buf[n] ^= 1;
	}
	/* A request is no reply. */
	ck_assert_int_eq(mpa_frame_len(buf, len, true), -EPROTO);
}

TEST(other_revisions_and_long_private_data_are_refused)
{
	ck_assert_int_eq(decode(REQ_KEY "00000000", false), -EPROTONOSUPPORT);
	ck_assert_int_eq(decode(REQ_KEY "00030000", false), -EPROTONOSUPPORT);
	ck_assert_int_eq(decode(REQ_KEY "00010201", false), -EPROTO);
	ck_assert_int_eq(decode(REQ_KEY "1002ffff", false), -EPROTO);
	/* No room for the enhanced data that is announced. */
	ck_assert_int_eq(decode(REQ_KEY "10020003" "000000", false), -EPROTO);
	/* Of revision 1 that bit is not checked. */
	ck_assert_int_eq(decode(REQ_KEY "10010003" "000000", false), 0);
	ck_assert(!f.enhanced);
	/* 512 bytes are allowed. */
	unhex(REQ_KEY "00010200", buf);
	ck_assert_int_eq(mpa_decode(buf, 532, false, &f), 0);
	ck_assert_uint_eq(f.private_len, 512);
}

/* ---- agreement */

static struct mpa_policy policy = { .ird = 0, .ord = 16 };
static struct mpa_frame reply;
static struct mpa_agreed agreed;

static void answer(const char *hex)
{
	ck_assert_int_eq(decode(hex, false), 0);
	mpa_answer(&f, &policy, &reply, &agreed);
}

TEST(siw_gets_the_answer_that_it_takes)
{
	uint8_t expected[64], out[MPA_MAX_FRAME];

	answer(REQ_SIW);
	reply.private_data = private_data;
	reply.private_len = 8;
	ck_assert_uint_eq(mpa_encode(&reply, out), unhex(REP_OURS, expected));
	ck_assert_mem_eq(out, expected, 32);
	ck_assert_uint_eq(agreed.ord, 16);
	ck_assert_uint_eq(agreed.ird, 0);
	ck_assert(!agreed.crc);
}

TEST(crcs_follow_the_peer_or_the_policy)
{
	answer(REQ_SIW_P2P);
	ck_assert(agreed.crc && reply.crc);
	policy.crc = true;
	answer(REQ_SIW);
	ck_assert(agreed.crc && reply.crc);
}

TEST(depths_are_the_smaller_ones)
{
	policy.ird = 8;
	/* IRD 5, ORD 3. */
	answer(REQ_KEY "10020004" "00050003");
	ck_assert_uint_eq(agreed.ord, 5);
	ck_assert_uint_eq(agreed.ird, 3);
	ck_assert_uint_eq(reply.ord, 5);
	ck_assert_uint_eq(reply.ird, 3);
	/* A peer of which nothing can be read. */
	answer(REQ_KEY "10020004" "00000000");
	ck_assert_uint_eq(agreed.ord, 0);
	ck_assert_uint_eq(mpa_read_depth(&f, 16), 0);
	/* Not negotiated: RFC 6581 section 9.1. */
	answer(REQ_KEY "10020004" "3fff3fff");
	ck_assert_uint_eq(agreed.ord, 8);
	ck_assert_uint_eq(agreed.ird, 8);
	ck_assert_uint_eq(reply.ord, MPA_DEPTH_ANY);
	ck_assert_uint_eq(reply.ird, MPA_DEPTH_ANY);
	/* Revision 1 does not say. */
	answer(REQ_SIW_V1);
	ck_assert_uint_eq(agreed.ord, 8);
	ck_assert(!reply.enhanced);
	ck_assert_uint_eq(reply.rev, 1);
}

TEST(an_rtr_is_chosen_from_those_offered)
{
	/* A; A+B; A+C; A+D; A+C+D. */
	answer(REQ_KEY "10020004" "80010000");
	ck_assert(reply.p2p && reply.rtr_write && !reply.rtr_read);
	answer(REQ_KEY "10020004" "c0010000");
	ck_assert(reply.p2p && reply.rtr_write && !reply.rtr_send);
	answer(REQ_KEY "10020004" "80018000");
	ck_assert(reply.p2p && reply.rtr_write);
	ck_assert_uint_eq(reply.ird, 0);
	answer(REQ_KEY "10020004" "80014000");
	ck_assert(reply.p2p && reply.rtr_read && !reply.rtr_write);
	ck_assert_uint_eq(reply.ird, 1);
	ck_assert_uint_eq(agreed.ird, 1);
	answer(REQ_KEY "10020004" "8001c000");
	ck_assert(reply.rtr_write && !reply.rtr_read);
	/* Without A the others are ignored. */
	answer(REQ_KEY "10020004" "0001c000");
	ck_assert(!reply.p2p && !reply.rtr_write && !reply.rtr_read);
}

TEST(markers_are_made_where_the_peer_asks_for_them)
{
	answer(REQ_KEY "90020004" "00010000");
	ck_assert(agreed.markers);
	ck_assert(!reply.reject && !reply.markers);
	answer(REQ_KEY "10020004" "00010000");
	ck_assert(!agreed.markers);
}

TEST(a_reject_tells_the_depth_that_is_needed)
{
	decode(REQ_KEY "10020004" "00000003", false);
	mpa_reject(&f, &reply);
	ck_assert(reply.reject);
	ck_assert_uint_eq(reply.ord, 1);
	ck_assert_uint_eq(reply.ird, 3);
}

static int conclude(const struct mpa_frame *req, const char *hex)
{
	struct mpa_policy mine = { .ird = 16, .ord = 32 };

	ck_assert_int_eq(decode(hex, true), 0);
	return mpa_conclude(req, &mine, &f, &agreed);
}

TEST(an_initiator_understands_the_answer)
{
	struct mpa_frame req = { .rev = 2, .enhanced = true, .ird = 16,
				 .ord = 32 };

	/* As knfsd over siw answers. */
	ck_assert_int_eq(conclude(&req, REP_KEY "1002000c" "00200010"
				  "f6ab0e1801000303"), 0);
	ck_assert_uint_eq(agreed.ord, 32);
	ck_assert_int_eq(agreed.rtr, MPA_RTR_NONE);
	ck_assert_int_eq(conclude(&req, REP_KEY "10020004" "00040010"), 0);
	ck_assert_uint_eq(agreed.ord, 4);
	ck_assert_int_eq(conclude(&req, REP_KEY "10020004" "3fff3fff"), 0);
	ck_assert_uint_eq(agreed.ord, 32);
	ck_assert_int_eq(conclude(&req, REP_KEY "50020004" "00040010"), 0);
	ck_assert(agreed.crc);
	ck_assert_int_eq(conclude(&req, REP_KEY "00020000"), 0);
	ck_assert_uint_eq(agreed.ord, 8);
	ck_assert_int_eq(conclude(&req, REP_KEY "30020004" "00040010"),
			 -ECONNREFUSED);
	ck_assert(!agreed.markers);
	ck_assert_int_eq(conclude(&req, REP_KEY "90020004" "00040010"), 0);
	ck_assert(agreed.markers);
	ck_assert_int_eq(conclude(&req, REP_KEY "00010000"), -EPROTO);
	/* It would read more at a time than we take. */
	ck_assert_int_eq(conclude(&req, REP_KEY "10020004" "00040011"),
			 -ENOSPC);
}

TEST(an_initiator_keeps_to_the_rtr_of_the_answer)
{
	struct mpa_frame req = { .rev = 2, .enhanced = true, .ird = 16,
				 .ord = 32, .p2p = true, .rtr_write = true,
				 .rtr_read = true };

	ck_assert_int_eq(conclude(&req, REP_KEY "10020004" "80048010"), 0);
	ck_assert_int_eq(agreed.rtr, MPA_RTR_WRITE);
	ck_assert_int_eq(conclude(&req, REP_KEY "10020004" "80044010"), 0);
	ck_assert_int_eq(agreed.rtr, MPA_RTR_READ);
	ck_assert_int_eq(conclude(&req, REP_KEY "10020004" "c0040010"),
			 -ENOTSUP);
	/* The peer wants none. */
	ck_assert_int_eq(conclude(&req, REP_KEY "10020004" "00040010"), 0);
	ck_assert_int_eq(agreed.rtr, MPA_RTR_NONE);
	req.rtr_read = false;
	ck_assert_int_eq(conclude(&req, REP_KEY "10020004" "80044010"),
			 -ENOTSUP);
}

/* ---- markers */

/* A Send of 24 bytes of zeros, as in RFC 5044 figures 5 and 6. */
static size_t mark_send(struct marked *m, uint8_t *out, const char *msn)
{
	uint8_t ulpdu[44] = { 0 };

	unhex("002a4143" "00000000" "00000000", ulpdu);
	unhex(msn, ulpdu + 12);
	marked_begin(m, out);
	marked_put(m, ulpdu, sizeof(ulpdu));
	marked_end(m);
	return (size_t)(m->out - out);
}

TEST(fpdus_with_markers_are_those_of_the_rfc)
{
	struct marked m = { .crc = true };
	uint8_t out[64], expected[64] = { 0 };

	unhex("00000000" "002a4143" "00000000" "00000000" "00000001", expected);
	unhex("52239983", expected + 48);
	ck_assert_uint_eq(mark_send(&m, out, "00000001"), 52);
	ck_assert_mem_eq(out, expected, 52);
	/* Behind one of 492 bytes with its marker. */
	m.at = 492;
	unhex("002a4143" "00000000" "00000000" "00000002" "00000000"
	      "00000014", expected);
	unhex("84925898", expected + 48);
	ck_assert_uint_eq(mark_send(&m, out, "00000002"), 52);
	ck_assert_mem_eq(out, expected, 52);
}

/* RFC 5044 section 4.4: it is the last thing that the CRC sees. */
TEST(a_marker_may_lie_before_the_crc)
{
	struct marked m = { .at = MARKED_INTERVAL - 44, .crc = true };
	uint8_t out[64];
	uint32_t sum;

	ck_assert_uint_eq(mark_send(&m, out, "00000001"), 52);
	ck_assert_mem_eq(out + 44, "\0\0\0\x2c", 4);
	sum = crc32c(0, out, 48);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_uint_eq(out[48 + i], sum >> 8 * i & 0xff);
	/* The next one belongs to the next FPDU. */
	m.at = 2 * MARKED_INTERVAL;
	ck_assert_uint_eq(mark_send(&m, out, "00000002"), 52);
	ck_assert_mem_eq(out, "\0\0\0\0\0\x2a", 6);
}

/* ---- headers, from captures of a session with the kernel */

static struct ddp_header h;

static void check_again(const char *hex)
{
	uint8_t again[DDP_MAX_HEADER];
	unsigned n;

	unhex(hex, buf);
	ck_assert(ddp_length_ok(buf));
	ck_assert_int_eq(ddp_decode(buf, &h), TERM_NONE);
	n = ddp_encode(&h, again);
	ck_assert_uint_eq(n, ddp_header_len(buf[2]));
	ck_assert_mem_eq(again, buf, n);
}

TEST(headers_are_decoded_and_encoded)
{
	check_again("0056414300000000000000000000000100000000");
	ck_assert(!h.tagged && h.last);
	ck_assert_uint_eq(h.opcode, RDMAP_SEND);
	ck_assert_uint_eq(h.qn, 0);
	ck_assert_uint_eq(h.msn, 1);
	ck_assert_uint_eq(h.mo, 0);
	ck_assert_uint_eq(h.payload, 68);
	check_again("002ac14009edc50152768a8081cbf000");
	ck_assert(h.tagged && h.last);
	ck_assert_uint_eq(h.opcode, RDMAP_WRITE);
	ck_assert_uint_eq(h.stag, 0x09edc501);
	ck_assert_uint_eq(h.to, 0x52768a8081cbf000ull);
	ck_assert_uint_eq(h.payload, 28);
	check_again("00c6414409edc501000000000000000b00000000");
	ck_assert_uint_eq(h.opcode, RDMAP_SEND_INV);
	ck_assert_uint_eq(h.stag, 0x09edc501);
	ck_assert_uint_eq(h.msn, 11);
}

TEST(a_read_request_is_decoded_and_encoded)
{
	struct rdmap_request r;
	uint8_t again[RDMAP_REQUEST_LEN];

	check_again("002e414100000000000000010000000100000000");
	ck_assert_uint_eq(h.payload, RDMAP_REQUEST_LEN);
	unhex("0000015a0000000000000000000111718491" "6a045c768a8081c54000",
	      buf);
	rdmap_request_decode(buf, &r);
	ck_assert_uint_eq(r.sink_stag, 0x15a);
	ck_assert_uint_eq(r.sink_to, 0);
	ck_assert_uint_eq(r.len, 0x11171);
	ck_assert_uint_eq(r.src_stag, 0x84916a04);
	ck_assert_uint_eq(r.src_to, 0x5c768a8081c54000ull);
	rdmap_request_encode(&r, again);
	ck_assert_mem_eq(again, buf, sizeof(again));
}

TEST(a_terminate_says_it_as_the_rfc_does)
{
	uint8_t out[RDMAP_TERM_MAX], fpdu[48] = { 0, 46, 0x41, 0x41 };

	ck_assert_uint_eq(rdmap_term_encode(TERM_MPA_CRC, NULL, 0, 0, out),
			  4);
	ck_assert_mem_eq(out, "\x20\x02\0\0", 4);
	ck_assert_uint_eq(rdmap_term_encode(TERM_DDP_MSN, fpdu, 20, 0, out),
			  24);
	ck_assert_mem_eq(out, "\x12\x03\xc0\0" "\0\x2e\x41\x41", 8);
	ck_assert_uint_eq(rdmap_term_encode(TERM_RDMAP_STAG, fpdu, 20, 28,
					    out), 52);
	ck_assert_mem_eq(out, "\x01\x00\xe0\0" "\0\x2e", 6);
}

TEST(a_terminate_is_understood_both_ways_round)
{
	static const uint8_t ours[] = { 0x12, 3, 0xc0, 0 };
	static const uint8_t siw[] = { 0x21, 3, 3, 0 };

	ck_assert_uint_eq(rdmap_term_decode(ours), TERM_DDP_MSN);
	ck_assert_uint_eq(rdmap_term_decode(siw), TERM_DDP_MSN);
	ck_assert_str_eq(rdmap_term_text(TERM_DDP_MSN),
			 "DDP: message sequence number out of range");
	ck_assert_str_eq(rdmap_term_text(0xfff), "unknown error");
}
