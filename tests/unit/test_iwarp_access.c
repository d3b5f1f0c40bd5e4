/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that is registered for peers: the parts that each can access. */
#include <string.h>
#include <unistd.h>

#include "lib/stats.h"
#include "tests/unit/iwarp_raw.h"
#include "tests/unit/runner.h"

static struct raw raw;
static struct fabric_device *device;
static uint8_t data[128], bulk[70000];

TEST_CASE(.timeout = 30);

/* The device belongs to a connection, and stays. */
static void open_device(void)
{
	int fd;

	raw_open(&raw, NULL);
	fd = raw_hello(&raw, REQ_SIW);
	close(fd);
	wait_sem(&raw.closed);
	device = raw.dev;
}

static struct fabric_mr *open_area(unsigned access)
{
	struct fabric_mr *mr;

	ck_assert_int_eq(fabric_mr_create(device, raw.area, 1000,
					  access, &mr), 0);
	return mr;
}

/* A Read of 100 bytes, from this offset of the memory. */
static void read_refused(const struct fabric_mr *mr, uint64_t off,
			 enum term code)
{
	struct ddp_header h = {
		.last = true, .opcode = RDMAP_READ_REQUEST, .qn = DDP_QN_READ,
		.msn = 1, .payload = RDMAP_REQUEST_LEN };
	struct rdmap_request req = {
		.len = 100, .src_stag = mr->rkey,
		.src_to = (uintptr_t)mr->addr + off };

	rdmap_request_encode(&req, data);
	raw_broken(&raw, h, data, code, "iwarp_refused");
}

static void write_refused(const struct fabric_mr *mr, uint64_t off,
			  enum term code)
{
	struct ddp_header h = { .tagged = true, .last = true,
				.opcode = RDMAP_WRITE, .stag = mr->rkey,
				.to = (uintptr_t)mr->addr + off,
				.payload = 100 };

	raw_broken(&raw, h, data, code, "iwarp_refused");
}

TEST(each_access_is_within_its_memory_and_of_its_kind)
{
	uint64_t wrap = UINT64_MAX - 50 - (uintptr_t)raw.area;
	struct fabric_mr *from, *to;

	open_device();
	memset(data, 0x5a, sizeof(data));
	from = open_area(FABRIC_REMOTE_READ);
	to = open_area(FABRIC_REMOTE_WRITE);
	read_refused(to, 0, TERM_RDMAP_ACCESS);
	read_refused(from, 901, TERM_RDMAP_BOUNDS);
	read_refused(from, (uint64_t)-1, TERM_RDMAP_BOUNDS);
	read_refused(from, wrap, TERM_RDMAP_WRAP);
	write_refused(from, 0, TERM_DDP_STAG);
	write_refused(to, 901, TERM_DDP_BOUNDS);
	write_refused(to, (uint64_t)-1, TERM_DDP_BOUNDS);
	write_refused(to, wrap, TERM_DDP_WRAP);
	for (unsigned i = 0; i < 1100; i++)
		ck_assert_uint_eq(raw.area[i], 0);
	fabric_mr_destroy(from);
	fabric_mr_destroy(to);
	raw_close(&raw);
}

/* RFC 5041 section 8.2: each fabric is a protection domain. */
TEST(memory_of_another_fabric_is_out_of_reach)
{
	static struct raw other;
	struct fabric_mr *mr;
	int fd;

	raw_open(&other, NULL);
	fd = raw_hello(&other, REQ_SIW);
	ck_assert_int_eq(fabric_mr_create(other.dev, other.area, 1000,
					  FABRIC_REMOTE_READ |
					  FABRIC_REMOTE_WRITE, &mr), 0);
	open_device();
	memset(data, 0x5a, sizeof(data));
	write_refused(mr, 0, TERM_DDP_STAG);
	read_refused(mr, 0, TERM_RDMAP_STAG);
	ck_assert_uint_eq(other.area[0], 0);
	raw_close(&raw);
	fabric_mr_destroy(mr);
	close(fd);
	raw_close(&other);
}

/* It was there when the peer asked, and goes before all was answered. */
TEST(a_read_of_memory_that_goes_away_gets_a_terminate)
{
	enum { LEN = 1 << 20 };
	struct ddp_header h = {
		.last = true, .opcode = RDMAP_READ_REQUEST, .qn = DDP_QN_READ,
		.msn = 1, .payload = RDMAP_REQUEST_LEN };
	struct rdmap_request req = { .sink_stag = 7, .sink_to = 1000,
				     .len = LEN }, told;
	uint8_t body[RDMAP_REQUEST_LEN], fpdu[RAW_TERM];
	uint32_t got = 0;
	struct fabric_mr *mr;
	int fd;

	raw_open(&raw, &(struct iwarp_options){ .read_depth = 16 });
	raw.read_depth = 16;
	fd = raw_hello(&raw, REQ_KEY "10020004" "00100010");
	ck_assert_int_eq(fabric_mr_create(raw.dev, raw.area, LEN,
					  FABRIC_REMOTE_READ, &mr), 0);
	req.src_stag = mr->rkey;
	req.src_to = (uintptr_t)raw.area;
	rdmap_request_encode(&req, body);
	/* The socket takes less than so many answers. */
	for (; h.msn <= 16; h.msn++)
		raw_send_fpdu(fd, h, body, false);
	EVENTUALLY(stats_sum_by_name("stream_blocked") > 0);
	fabric_mr_destroy(mr);
	for (;;) {
		raw_get(fd, fpdu, DDP_TAGGED_LEN);
		ddp_decode(fpdu, &h);
		if (!h.tagged)
			break;
		raw_get(fd, bulk, ddp_fpdu_len(h.ulpdu_len) - DDP_TAGGED_LEN);
		got += h.payload;
	}
	ck_assert_uint_eq(h.opcode, RDMAP_TERMINATE);
	raw_get(fd, fpdu + DDP_TAGGED_LEN, 76 - DDP_TAGGED_LEN);
	ck_assert_uint_eq(rdmap_term_decode(fpdu + 20), TERM_RDMAP_STAG);
	ck_assert_uint_eq(fpdu[22], 0xe0);
	/* The first Read without its whole answer, from there on. */
	ddp_decode(fpdu + 24, &h);
	ck_assert_uint_eq(h.msn, got / LEN + 1);
	ck_assert_uint_eq(h.payload, RDMAP_REQUEST_LEN);
	rdmap_request_decode(fpdu + 44, &told);
	ck_assert_uint_eq(told.sink_stag, 7);
	ck_assert_uint_eq(told.sink_to, 1000 + got % LEN);
	ck_assert_uint_eq(told.len, LEN - got % LEN);
	ck_assert_uint_eq(told.src_stag, req.src_stag);
	ck_assert_uint_eq(told.src_to, req.src_to + got % LEN);
	raw_expect_end(fd);
	close(fd);
	raw_close(&raw);
}

/* RFC 5040 section 8.1.1: another connection could be using it. */
TEST(an_stag_that_connections_share_is_not_invalidated)
{
	struct ddp_header inv = { .last = true, .opcode = RDMAP_SEND_INV,
				  .msn = 2 };
	struct ddp_header write = { .tagged = true, .last = true,
				    .opcode = RDMAP_WRITE, .payload = 100 };
	struct ddp_header call = { .last = true, .opcode = RDMAP_SEND,
				   .msn = 2 };
	struct fabric_mr *mr;
	int fd;

	open_device();
	mr = open_area(FABRIC_REMOTE_WRITE);
	inv.stag = mr->rkey;
	raw_broken(&raw, inv, data, TERM_RDMAP_INVALIDATE,
		   "iwarp_bad_invalidate");
	fd = raw_hello(&raw, REQ_SIW);
	memset(data, 0x5a, sizeof(data));
	write.stag = mr->rkey;
	write.to = (uintptr_t)mr->addr;
	raw_send_fpdu(fd, write, data, false);
	raw_send_fpdu(fd, call, NULL, false);
	wait_sem(&raw.arrived);
	ck_assert_uint_eq(raw.area[99], 0x5a);
	fabric_mr_destroy(mr);
	close(fd);
	raw_close(&raw);
}

TEST(memory_is_closed_when_its_registration_ends)
{
	struct fabric_mr *mr, old;

	open_device();
	mr = open_area(FABRIC_REMOTE_READ | FABRIC_REMOTE_WRITE);
	old = *mr;
	fabric_mr_destroy(mr);
	read_refused(&old, 0, TERM_RDMAP_STAG);
	write_refused(&old, 0, TERM_DDP_STAG);
	/* The same memory again has another handle. */
	mr = open_area(FABRIC_REMOTE_READ | FABRIC_REMOTE_WRITE);
	read_refused(&old, 0, TERM_RDMAP_STAG);
	fabric_mr_destroy(mr);
	raw_close(&raw);
}

/* RFC 5040 section 8.1.1: an STag reveals nothing of the next. */
TEST(stags_can_not_be_guessed)
{
	enum { N = 64 };
	struct fabric_mr *mr[N];
	unsigned near = 0;

	open_device();
	for (unsigned i = 0; i < N; i++)
		mr[i] = open_area(FABRIC_REMOTE_READ);
	for (unsigned i = 1; i < N; i++) {
		uint16_t step = (uint16_t)(mr[i]->rkey - mr[i - 1]->rkey);

		near += step < 256 || step > 0xff00;
	}
	ck_assert_uint_lt(near, N / 8);
	for (unsigned i = 0; i < N; i++)
		fabric_mr_destroy(mr[i]);
	raw_close(&raw);
}
