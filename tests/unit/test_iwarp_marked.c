/* SPDX-License-Identifier: BSD-2-Clause */
/* The iWARP fabric's stream to a peer that asks for markers. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "lib/stats.h"
#include "lib/util.h"
#include "tests/unit/iwarp_raw.h"
#include "tests/unit/runner.h"
#include "transport/fabric/iwarp/crc32c.h"
#include "transport/fabric/iwarp/marked.h"

static struct raw raw;
static uint8_t ulpdu[70000];

TEST_CASE(.timeout = 30);

/* ---- a reader of such a stream, which checks each marker */

static struct {
	int	 fd;
	uint64_t at;		/* in the stream */
	uint64_t fpdu;		/* where the FPDU began */
	uint32_t sum;
	bool	 crc;
} in;

static void get_plain(uint8_t *p, size_t n)
{
	raw_get(in.fd, p, n);
	in.sum = crc32c(in.sum, p, n);
	in.at += n;
}

static void get_marker(void)
{
	uint64_t back = in.at - in.fpdu;
	uint8_t marker[MARKER_LEN];

	if (in.at % MARKED_INTERVAL != 0)
		return;
	get_plain(marker, sizeof(marker));
	ck_assert_uint_eq(marker[0] << 8 | marker[1], 0);
	ck_assert_uint_eq(marker[2] << 8 | marker[3], back);
}

static void get(uint8_t *p, size_t len)
{
	while (len > 0) {
		size_t n;

		get_marker();
		n = MIN(len, (size_t)(MARKED_INTERVAL -
				      in.at % MARKED_INTERVAL));
		get_plain(p, n);
		p += n;
		len -= n;
	}
}

/* Takes an FPDU, and returns where its payload begins.  *@len: of the FPDU with
 * its markers. */
static const uint8_t *get_fpdu(struct ddp_header *h, size_t *len)
{
	uint64_t start = in.at;
	uint8_t sum[DDP_CRC_LEN];
	unsigned head, rest;

	in.fpdu = in.at;
	in.sum = 0;
	get_marker();
	in.fpdu = in.at;
	get(ulpdu, 4);
	head = ddp_header_len(ulpdu[2]);
	get(ulpdu + 4, head - 4);
	/* A Terminate's opcode and queue are as good. */
	ck_assert_int_eq(ddp_decode(ulpdu, h), TERM_NONE);
	rest = ddp_fpdu_len(h->ulpdu_len) - head - DDP_CRC_LEN;
	get(ulpdu + head, rest);
	get_marker();
	raw_get(in.fd, sum, sizeof(sum));
	in.at += sizeof(sum);
	for (unsigned i = 0; i < sizeof(sum); i++)
		ck_assert_uint_eq(sum[i], in.crc ? in.sum >> 8 * i & 0xff : 0);
	if (len)
		*len = (size_t)(in.at - start);
	return ulpdu + head;
}

/* ---- the fabric, and a peer that asks */

static void begin(bool crc, unsigned fpdu_size)
{
	raw_open(&raw, &(struct iwarp_options){ .read_depth = 16,
						.fpdu_size = fpdu_size });
	raw.read_depth = 16;
	memset(&in, 0, sizeof(in));
	in.crc = crc;
	in.fd = raw_hello(&raw, crc ?
		REQ_KEY "d002000c" "00100010" "f6ab0e1801010303" :
		REQ_KEY "9002000c" "00100010" "f6ab0e1801010303");
	for (uint32_t i = 0; i < RAW_AREA; i++)
		raw.area[i] = (uint8_t)(i * 7 + (i >> 11));
}

static void finish(void)
{
	close(in.fd);
	raw_close(&raw);
}

/* A message to @to, of these bytes; no FPDU is longer than @max. */
static void expect_message(uint64_t to, const uint8_t *data, uint32_t n,
			   size_t max)
{
	struct ddp_header h;
	uint32_t got = 0;

	do {
		size_t len;
		const uint8_t *p = get_fpdu(&h, &len);

		ck_assert_uint_le(len, max);
		ck_assert_uint_eq(h.tagged ? h.to : h.mo, to + got);
		ck_assert_uint_le(h.payload, n - got);
		ck_assert_mem_eq(p, data + got, h.payload);
		got += h.payload;
	} while (!h.last);
	ck_assert_uint_eq(got, n);
}

/* Without CRCs and with; a FPDU that fits a segment, and smaller ones. */
static const unsigned sizes[] = { 0, 136, 64772 };

TEST_LOOP(markers_are_where_they_belong, 0, 2 * ARRAY_SIZE(sizes))
{
	static const uint32_t lens[] = { 1, 0, 480, 484, 488, 492, 496, 3001,
					 400000 };
	unsigned size = sizes[_i / 2];
	struct fabric_sge sge[2 * ARRAY_SIZE(lens)];
	struct fabric_wr wr[ARRAY_SIZE(lens)];
	socklen_t len = sizeof(int);
	int mss;

	begin(_i & 1, size);
	ck_assert_int_eq(getsockopt(in.fd, IPPROTO_TCP, TCP_MAXSEG, &mss,
				    &len), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(lens); i++) {
		uint32_t first = lens[i] / 3;

		sge[2 * i] = (struct fabric_sge){ raw.area, first, 0 };
		sge[2 * i + 1] = (struct fabric_sge){ raw.area + first,
						      lens[i] - first, 0 };
		wr[i] = (struct fabric_wr){
			.next = i + 1 < ARRAY_SIZE(lens) ? &wr[i + 1] : NULL,
			.opcode = FABRIC_WRITE, .handle = 5, .offset = 1000,
			.sge = &sge[2 * i], .nsge = 2 };
	}
	wr[ARRAY_SIZE(lens) - 1].opcode = FABRIC_SEND;
	wr[ARRAY_SIZE(lens) - 1].op = &raw.send_op;
	ck_assert_int_eq(fabric_post(raw.conn, wr), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(lens); i++)
		expect_message(wr[i].opcode == FABRIC_SEND ? 0 : 1000,
			       raw.area, lens[i],
			       size ? marked_len(size) : (size_t)mss);
	wait_sem(&raw.sent);
	ck_assert_int_eq(raw.sent_status, 0);
	finish();
}

/* More than the socket takes: some of it is copied. */
TEST_LOOP(reads_are_answered_with_markers, 0, 2)
{
	struct ddp_header h = {
		.last = true, .opcode = RDMAP_READ_REQUEST, .qn = DDP_QN_READ,
		.msn = 1, .payload = RDMAP_REQUEST_LEN };
	struct rdmap_request req = { .sink_stag = 7, .sink_to = 1000,
				     .len = RAW_AREA };
	uint8_t body[RDMAP_REQUEST_LEN];
	struct fabric_mr *mr;

	begin(_i, 0);
	ck_assert_int_eq(fabric_mr_create(raw.dev, raw.area, RAW_AREA,
					  FABRIC_REMOTE_READ, &mr), 0);
	req.src_stag = mr->rkey;
	req.src_to = (uintptr_t)raw.area;
	rdmap_request_encode(&req, body);
	for (; h.msn <= 16; h.msn++)
		raw_send_fpdu(in.fd, h, body, in.crc);
	EVENTUALLY(stats_sum_by_name("stream_blocked") > 0);
	for (unsigned i = 0; i < 16; i++)
		expect_message(1000, raw.area, RAW_AREA, sizeof(ulpdu));
	ck_assert_uint_gt(stats_sum_by_name("iwarp_bounced"), 0);
	fabric_mr_destroy(mr);
	finish();
}

/* One lies behind all of it, before its CRC, at each word, before all. */
TEST_LOOP(a_terminate_has_its_markers, 0, 13)
{
	struct ddp_header bad = { .last = true, .opcode = RDMAP_SEND,
				  .msn = 7 }, h;
	/* With a marker before and its header it begins 24 bytes later. */
	struct fabric_sge sge = { raw.area, 440 + 4 * (uint32_t)_i, 0 };
	struct fabric_wr wr = { .opcode = FABRIC_WRITE, .handle = 5,
				.sge = &sge, .nsge = 1 };
	const uint8_t *p;

	begin(true, 0);
	ck_assert_int_eq(raw_post(&raw, &wr), 0);
	expect_message(0, raw.area, sge.len, sizeof(ulpdu));
	raw_send_fpdu(in.fd, bad, NULL, in.crc);
	p = get_fpdu(&h, NULL);
	ck_assert_uint_eq(h.opcode, RDMAP_TERMINATE);
	ck_assert_uint_eq(rdmap_term_decode(p), TERM_DDP_MSN);
	raw_expect_end(in.fd);
	finish();
}

TEST(an_active_end_makes_markers_too)
{
	uint8_t request[32];
	struct ddp_header h;

	raw_open(&raw, NULL);
	raw.greet = true;
	memset(&in, 0, sizeof(in));
	in.fd = raw_call(&raw);
	raw_get(in.fd, request, sizeof(request));
	ck_assert_uint_eq(request[16] & 0x80, 0);
	raw_put_hex(in.fd, REP_KEY "90020004" "00100000");
	ck_assert_mem_eq(get_fpdu(&h, NULL), "hello", 5);
	ck_assert_uint_eq(h.payload, 5);
	/* We ask for none. */
	h = (struct ddp_header){ .last = true, .opcode = RDMAP_SEND, .msn = 1,
				 .payload = 4 };
	raw_send_fpdu(in.fd, h, "ping", false);
	wait_sem(&raw.arrived);
	finish();
}

/* The Terminate is the first FPDU. */
TEST(a_reply_that_is_refused_gets_its_marker)
{
	struct ddp_header h;
	uint8_t request[32];

	raw_open(&raw, NULL);
	memset(&in, 0, sizeof(in));
	in.fd = raw_call(&raw);
	raw_get(in.fd, request, sizeof(request));
	raw_put_hex(in.fd, REP_KEY "90020004" "00100001");
	ck_assert_uint_eq(rdmap_term_decode(get_fpdu(&h, NULL)), TERM_MPA_IRD);
	raw_expect_end(in.fd);
	finish();
}
