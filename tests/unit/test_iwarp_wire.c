/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The iWARP fabric as a peer that speaks bytes sees it: start-up, which side
 * can speak when, and the answers to broken rules.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/stats.h"
#include "lib/util.h"
#include "tests/unit/iwarp_raw.h"
#include "tests/unit/runner.h"

static struct raw raw;
static uint8_t data[70000];

static void nothing(void *arg)
{
}

/* Waits until the loop has run all its tasks. */
static void settle(void)
{
	loop_call(raw.loop, nothing, NULL);
	loop_call(raw.loop, nothing, NULL);
}

TEST_CASE(.timeout = 30);

/* ---- passive */

TEST(a_request_is_answered_in_one_piece)
{
	int fd;

	raw_open(&raw, &(struct iwarp_options){ .read_depth = 16 });
	fd = raw_dial(&raw);
	raw_put_hex(fd, REQ_SIW);
	raw_expect_hex(fd, REP_RAW);
	wait_sem(&raw.established);
	ck_assert_uint_eq(raw.info.read_depth, 16);
	ck_assert_uint_eq(raw.info.private_len, 8);
	/* RFC 6581 section 9.1: the peer's own words. */
	ck_assert(raw.depths.told);
	ck_assert_uint_eq(raw.depths.ird, 128);
	ck_assert_uint_eq(raw.depths.ord, 0);
	close(fd);
	wait_sem(&raw.closed);
	ck_assert_int_eq(raw.err, -ECONNRESET);
	ck_assert_uint_eq(raw.flushed, RAW_RECVS);
	raw_close(&raw);
}

TEST(a_request_may_come_byte_by_byte)
{
	uint8_t req[64];
	size_t len = unhex(REQ_SIW, req);
	int fd;

	raw_open(&raw, &(struct iwarp_options){ .read_depth = 16 });
	fd = raw_dial(&raw);
	for (size_t i = 0; i < len; i++) {
		raw_put(fd, req + i, 1);
		settle();
	}
	raw_expect_hex(fd, REP_RAW);
	close(fd);
	raw_close(&raw);
}

/* A peer that begins with @hex is cut off, and request() is not called. */
static void cut_off(const char *hex)
{
	int fd = raw_dial(&raw);

	raw_put_hex(fd, hex);
	raw_expect_end(fd);
	close(fd);
	ck_assert_ptr_null(raw.conn);
}

TEST(malformed_mpa_requests_are_cut_off)
{
	raw_open(&raw, NULL);
	cut_off("47");					/* GET / */
	cut_off(REP_KEY "1002000c");
	cut_off(REQ_KEY "00000000");
	cut_off(REQ_KEY "00030000");
	cut_off(REQ_KEY "00010201");
	cut_off(REQ_KEY "10020003");
	ck_assert_uint_eq(stats_sum_by_name("iwarp_requests_bad"), 6);
	/* And the next one is served. */
	close(raw_hello(&raw, REQ_SIW));
	raw_close(&raw);
}

/* A byte comes with the request, or after it and before the answer. */
TEST_LOOP(nothing_may_follow_a_request, 0, 2)
{
	int fd;

	raw_open(&raw, NULL);
	fd = raw_dial(&raw);
	raw.talker = _i ? fd : 0;
	raw_put_hex(fd, _i ? REQ_SIW : REQ_SIW "00");
	/* A reset is possible while bytes are unread. */
	raw_expect_gone(fd);
	close(fd);
	ck_assert_uint_eq(stats_sum_by_name("iwarp_requests_bad"), 1);
	ck_assert_uint_eq(stats_sum_by_name("iwarp_replies_bad"), 0);
	raw_close(&raw);
}

TEST(a_slow_request_is_given_up)
{
	int fd;

	raw_open(&raw, &(struct iwarp_options){ .handshake_ms = 20 });
	fd = raw_dial(&raw);
	raw_put_hex(fd, REQ_KEY);
	/* Bytes that come after the server gave up are answered with a
	 * reset. */
	raw_expect_gone(fd);
	close(fd);
	ck_assert_uint_eq(stats_sum_by_name("iwarp_requests_late"), 1);
	raw_close(&raw);
}

TEST(a_peer_that_says_nothing_is_given_up)
{
	int fd;

	raw_open(&raw, &(struct iwarp_options){ .read_depth = 16,
						.first_ms = 20 });
	fd = raw_dial(&raw);
	raw_put_hex(fd, REQ_SIW);
	raw_expect_hex(fd, REP_RAW);
	raw_expect_end(fd);
	close(fd);
	wait_sem(&raw.closed);
	ck_assert_int_eq(raw.err, -ETIMEDOUT);
	ck_assert_uint_eq(stats_sum_by_name("iwarp_silent"), 1);
	raw_close(&raw);
}

TEST(the_oldest_of_too_many_that_ask_goes)
{
	int fd[4];

	raw_open(&raw, &(struct iwarp_options){ .max_handshakes = 2 });
	for (int i = 0; i < 4; i++)
		fd[i] = raw_dial(&raw);
	raw_expect_end(fd[0]);
	raw_expect_end(fd[1]);
	ck_assert_uint_eq(stats_sum_by_name("iwarp_crowded_out"), 2);
	raw_put_hex(fd[3], REQ_SIW);
	wait_sem(&raw.established);
	for (int i = 0; i < 4; i++)
		close(fd[i]);
	raw_close(&raw);
}

/* 127.0.0.2 comes first and its request is the oldest. */
TEST(a_host_with_too_many_requests_loses_its_own)
{
	int fd[12], honest;

	raw_open(&raw, &(struct iwarp_options){ .max_handshakes = 4 });
	honest = raw_dial_from(&raw, INADDR_LOOPBACK + 1);
	for (int i = 0; i < 12; i++)
		fd[i] = raw_dial(&raw);
	for (int i = 0; i < 9; i++)
		raw_expect_end(fd[i]);
	ck_assert_uint_eq(stats_sum_by_name("iwarp_crowded_out"), 9);
	raw_put_hex(honest, REQ_SIW);
	wait_sem(&raw.established);
	close(honest);
	for (int i = 0; i < 12; i++)
		close(fd[i]);
	raw_close(&raw);
}

/* The answer comes whole, and a FIN behind it. */
TEST(a_peer_that_is_refused_gets_a_reject)
{
	int fd;

	raw_open(&raw, NULL);
	raw.reject = true;
	fd = raw_dial(&raw);
	raw_put_hex(fd, REQ_KEY "10020004" "00100000");
	raw_expect_hex(fd, REP_KEY "30020004" "00000010");
	raw_expect_end(fd);
	close(fd);
	fd = raw_dial(&raw);
	raw_put_hex(fd, REQ_KEY "00010000");
	raw_expect_hex(fd, REP_KEY "20010000");
	raw_expect_end(fd);
	close(fd);
	ck_assert_uint_eq(stats_sum_by_name("iwarp_rejects"), 2);
	raw_close(&raw);
}

TEST(nothing_is_sent_before_the_peer_has_spoken)
{
	struct ddp_header h = { .last = true, .opcode = RDMAP_SEND, .msn = 1 };
	uint8_t byte;
	int fd;

	raw_open(&raw, &(struct iwarp_options){ .read_depth = 16 });
	raw.greet = true;
	fd = raw_dial(&raw);
	raw_put_hex(fd, REQ_SIW);
	raw_expect_hex(fd, REP_RAW);
	wait_sem(&raw.established);
	settle();
	ck_assert_int_lt(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
	ck_assert_int_eq(errno, EAGAIN);
	raw_send_fpdu(fd, h, NULL, false);
	raw_expect_hex(fd, "001741430000000000000000" "0000000100000000"
		       "68656c6c6f" "000000" "00000000");
	wait_sem(&raw.sent);
	ck_assert_int_eq(raw.sent_status, 0);
	close(fd);
	raw_close(&raw);
}

TEST(a_read_as_rtr_gets_an_empty_answer)
{
	struct ddp_header h = {
		.last = true, .opcode = RDMAP_READ_REQUEST, .qn = DDP_QN_READ,
		.msn = 1, .payload = RDMAP_REQUEST_LEN };
	struct rdmap_request req = { .sink_stag = 7, .sink_to = 8 };
	uint8_t body[RDMAP_REQUEST_LEN];
	int fd;

	raw_open(&raw, &(struct iwarp_options){ .read_depth = 16 });
	fd = raw_dial(&raw);
	raw_put_hex(fd, REQ_KEY "10020004" "80104000");
	raw_expect_hex(fd, REP_KEY "1002000c" "80014010" "f6ab0e1801010303");
	rdmap_request_encode(&req, body);
	raw_send_fpdu(fd, h, body, false);
	raw_expect_hex(fd, "000ec142" "00000007" "0000000000000008"
		       "00000000");
	close(fd);
	raw_close(&raw);
}

TEST(a_write_as_rtr_is_swallowed)
{
	struct ddp_header h = { .tagged = true, .last = true,
				.opcode = RDMAP_WRITE, .stag = 1 };
	int fd;

	raw_open(&raw, NULL);
	raw.greet = true;
	fd = raw_dial(&raw);
	raw_put_hex(fd, REQ_KEY "50020004" "8010c000");
	raw_expect_hex(fd, REP_KEY "5002000c" "80008010" "f6ab0e1801010303");
	raw_send_fpdu(fd, h, NULL, true);
	raw_get(fd, data, 20);		/* now the server may send to us */
	ck_assert_uint_eq(raw.got, 0);
	close(fd);
	raw_close(&raw);
}

/* ---- rules that are broken */

TEST(memory_that_was_never_offered_is_not_touched)
{
	struct ddp_header write = { .tagged = true, .last = true,
				    .opcode = RDMAP_WRITE, .stag = 0x10000,
				    .payload = 100 };
	struct ddp_header read = {
		.last = true, .opcode = RDMAP_READ_REQUEST, .qn = DDP_QN_READ,
		.msn = 1, .payload = RDMAP_REQUEST_LEN };
	struct ddp_header inv = { .last = true, .opcode = RDMAP_SEND_INV,
				  .msn = 2, .stag = 0x10000 };
	struct ddp_header answer = { .tagged = true, .last = true,
				     .opcode = RDMAP_READ_RESPONSE,
				     .stag = 0x100, .payload = 100 };

	raw_open(&raw, NULL);
	memset(data, 0x41, sizeof(data));
	raw_broken(&raw, write, data, TERM_DDP_STAG, "iwarp_refused");
	raw_broken(&raw, read, data, TERM_RDMAP_STAG, "iwarp_refused");
	raw_broken(&raw, inv, data, TERM_RDMAP_INVALIDATE,
		   "iwarp_bad_invalidate");
	raw_broken(&raw, answer, data, TERM_DDP_STAG, "iwarp_bad_response");
	raw_close(&raw);
}

/* This peer asks for Reads, but the server allows none in flight. */
TEST(reads_beyond_the_depth_are_refused)
{
	struct ddp_header read = {
		.last = true, .opcode = RDMAP_READ_REQUEST, .qn = DDP_QN_READ,
		.msn = 1, .payload = RDMAP_REQUEST_LEN };

	raw_open(&raw, NULL);
	memset(data, 0, sizeof(data));
	raw_broken(&raw, read, data, TERM_DDP_NO_BUFFER, "iwarp_read_overruns");
	raw_close(&raw);
}

TEST(each_broken_rule_gets_its_terminate)
{
	struct ddp_header h = { .last = true, .opcode = RDMAP_SEND, .msn = 3 };

	raw_open(&raw, NULL);
	raw_broken(&raw, h, data, TERM_DDP_MSN, "iwarp_bad_sequence");
	h.msn = 2;
	h.mo = 9;
	raw_broken(&raw, h, data, TERM_DDP_MO, "iwarp_bad_sequence");
	h.mo = 0;
	h.payload = RAW_RECV + 1;
	raw_broken(&raw, h, data, TERM_DDP_TOO_LONG, "iwarp_too_long");
	h.payload = 4;
	h.qn = 5;
	raw_broken(&raw, h, data, TERM_DDP_QN, "iwarp_bad_header");
	h.qn = 0;
	h.opcode = 12;
	raw_broken(&raw, h, data, TERM_RDMAP_OPCODE, "iwarp_bad_header");
	raw_close(&raw);
}

/* RFC 5044 section 4.4: unless an administrator says otherwise. */
TEST(crcs_are_used_although_the_peer_asks_for_none)
{
	int fd;

	raw_open_as(&raw, NULL);
	fd = raw_dial(&raw);
	raw_put_hex(fd, REQ_SIW);
	raw_expect_hex(fd, REP_KEY "5002000c" "00000080" "f6ab0e1801010303");
	close(fd);
	wait_sem(&raw.closed);
	raw_close(&raw);
}

TEST(a_peer_that_asks_for_crcs_gets_them_in_any_case)
{
	int fd;

	raw_open(&raw, &(struct iwarp_options){ .no_crc = true });
	fd = raw_dial(&raw);
	raw_put_hex(fd, REQ_KEY "5002000c" "00800000" "f6ab0e1801010303");
	raw_expect_hex(fd, REP_KEY "5002000c" "00000080" "f6ab0e1801010303");
	close(fd);
	wait_sem(&raw.closed);
	raw_close(&raw);
}

TEST(a_bad_crc_gets_a_terminate)
{
	struct ddp_header h = { .last = true, .opcode = RDMAP_SEND, .msn = 2,
				.payload = 4 };
	int fd;

	raw_open_as(&raw, NULL);
	fd = raw_hello(&raw, REQ_SIW);	/* did not ask for it */
	raw_send_fpdu(fd, h, "good", true);
	wait_sem(&raw.arrived);
	h.msn++;
	raw_send_fpdu(fd, h, "evil", false);
	raw_expect_term(fd, TERM_MPA_CRC, true);
	close(fd);
	wait_sem(&raw.closed);
	ck_assert_uint_eq(raw.got, 2);
	raw_close(&raw);
}

static _Atomic size_t no_memory_for;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	return size > 0 && size == no_memory_for ? NULL : __real_malloc(size);
}

/* RFC 6581 section 9.3.  The FPDU is gathered, for its CRC. */
TEST(an_error_of_our_own_gets_a_terminate)
{
	struct ddp_header h = { .last = true, .opcode = RDMAP_SEND, .msn = 2,
				.payload = 1000 };
	int fd;

	raw_open_as(&raw, NULL);
	fd = raw_hello(&raw, REQ_SIW);
	no_memory_for = fpdu_put(data, &h, raw.area, true);
	raw_put(fd, data, 200);
	raw_expect_term(fd, TERM_MPA_LOCAL, true);
	no_memory_for = 0;
	close(fd);
	wait_sem(&raw.closed);
	ck_assert_int_eq(raw.err, -ENOMEM);
	raw_close(&raw);
}

TEST(a_fin_is_an_orderly_end)
{
	int fd;

	raw_open(&raw, NULL);
	fd = raw_hello(&raw, REQ_SIW);
	shutdown(fd, SHUT_WR);
	raw_expect_end(fd);			/* no Terminate, a FIN */
	close(fd);
	wait_sem(&raw.closed);
	ck_assert_uint_eq(stats_sum_by_name("iwarp_cut_off"), 0);
	/* Not so in the middle of something. */
	fd = raw_hello(&raw, REQ_SIW);
	raw_put(fd, "\0\x20", 2);
	shutdown(fd, SHUT_WR);
	raw_expect_end(fd);
	close(fd);
	wait_sem(&raw.closed);
	ck_assert_uint_eq(stats_sum_by_name("iwarp_cut_off"), 1);
	raw_close(&raw);
}

/* Only an STag that the peer refuses is an access refused. */
static const struct {
	uint8_t code[4];
	int	err;
} terminates[] = {
	{ { 0x21, 2, 3 }, -EPROTO },	/* no buffer for a message */
	{ { 0x10, 0, 3 }, -EREMOTEIO },	/* a Read's STag */
	{ { 0x11, 0, 3 }, -EREMOTEIO },	/* a Write's */
};

TEST_LOOP(a_terminate_of_the_peers_ends_it, 0, ARRAY_SIZE(terminates))
{
	struct ddp_header h = { .last = true, .opcode = RDMAP_TERMINATE,
				.qn = DDP_QN_TERMINATE, .msn = 1,
				.payload = 4 };
	int fd;

	raw_open(&raw, NULL);
	fd = raw_hello(&raw, REQ_SIW);
	raw_send_fpdu(fd, h, terminates[_i].code, false);
	raw_expect_end(fd);
	close(fd);
	wait_sem(&raw.closed);
	ck_assert_int_eq(raw.err, terminates[_i].err);
	ck_assert_uint_eq(stats_sum_by_name("iwarp_terminates_in"), 1);
	raw_close(&raw);
}

/* ---- how things end */

TEST(a_full_socket_does_not_stop_the_end)
{
	struct fabric_sge sge[2] = { { raw.area, RAW_AREA, 0 },
				     { raw.area, RAW_AREA, 0 } };
	struct fabric_wr wr[16];
	int fd;

	raw_open(&raw, &(struct iwarp_options){ .linger_ms = 20 });
	fd = raw_hello(&raw, REQ_SIW);
	for (int i = 0; i < 16; i++)
		wr[i] = (struct fabric_wr){ .next = i < 15 ? &wr[i + 1] : NULL,
					    .opcode = FABRIC_WRITE,
					    .handle = 5, .sge = sge,
					    .nsge = 2 };
	wr[15].op = &raw.send_op;
	ck_assert_int_eq(fabric_post(raw.conn, wr), 0);
	fabric_close(raw.conn);
	wait_sem(&raw.sent);
	ck_assert_int_eq(raw.sent_status, -ECANCELED);
	wait_sem(&raw.closed);
	ck_assert_int_eq(raw.err, 0);
	close(fd);
	raw_close(&raw);
}

/* A step that is done arrives, though the end comes at once. */
TEST(all_that_is_done_arrives_before_an_orderly_end)
{
	struct fabric_sge sge = { raw.area, 60000, 0 };
	struct fabric_wr wr = { .opcode = FABRIC_WRITE, .handle = 5,
				.sge = &sge, .nsge = 1 };
	uint32_t got = 0;
	struct ddp_header h;
	int fd;

	raw_open(&raw, NULL);
	fd = raw_hello(&raw, REQ_SIW);
	ck_assert_int_eq(raw_post(&raw, &wr), 0);
	wait_sem(&raw.sent);
	ck_assert_int_eq(raw.sent_status, 0);
	fabric_close(raw.conn);
	for (; got < sge.len; got += h.payload) {
		raw_get(fd, data, DDP_TAGGED_LEN);
		ck_assert_int_eq(ddp_decode(data, &h), TERM_NONE);
		raw_get(fd, data, ddp_fpdu_len(h.ulpdu_len) - DDP_TAGGED_LEN);
	}
	raw_expect_end(fd);
	close(fd);
	raw_close(&raw);
}

/* RFC 5041 section 5.2: a message is shorter than 2^32 bytes. */
TEST(messages_of_4_gib_are_not_posted)
{
	struct fabric_sge sge[2] = { { raw.area, 1u << 31, 0 },
				     { raw.area, 1u << 31, 0 } };
	struct fabric_wr wr = { .opcode = FABRIC_WRITE, .handle = 5,
				.sge = sge, .nsge = 2 };
	int fd;

	raw_open(&raw, NULL);
	fd = raw_hello(&raw, REQ_SIW);
	ck_assert_int_eq(raw_post(&raw, &wr), -EINVAL);
	close(fd);
	raw_close(&raw);
}

/* Everything comes through a socket that is often full. */
TEST(a_slow_reader_gets_everything)
{
	struct fabric_sge sge = { raw.area, RAW_AREA, 0 };
	struct fabric_wr wr[8];
	socklen_t len = sizeof(int);
	uint64_t to = 0;
	int fd, mss;

	raw_open(&raw, NULL);
	fd = raw_hello(&raw, REQ_SIW);
	ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len),
			 0);
	for (uint32_t i = 0; i < RAW_AREA; i++)
		raw.area[i] = (uint8_t)(i * 7 + (i >> 11));
	for (int i = 0; i < 8; i++)
		wr[i] = (struct fabric_wr){ .next = i < 7 ? &wr[i + 1] : NULL,
					    .opcode = FABRIC_WRITE,
					    .offset = (uint64_t)i * RAW_AREA,
					    .sge = &sge, .nsge = 1 };
	wr[7].op = &raw.send_op;
	ck_assert_int_eq(fabric_post(raw.conn, wr), 0);
	while (to < 8 * (uint64_t)RAW_AREA) {
		struct ddp_header h;
		uint32_t at;

		raw_get(fd, data, DDP_TAGGED_LEN);
		ck_assert_int_eq(ddp_decode(data, &h), TERM_NONE);
		ck_assert_uint_eq(h.to, to);
		ck_assert_int_le((int)ddp_fpdu_len(h.ulpdu_len), mss);
		ck_assert_uint_le(h.ulpdu_len, 64768);
		at = (uint32_t)(to % RAW_AREA);
		raw_get(fd, data, ddp_fpdu_len(h.ulpdu_len) - DDP_TAGGED_LEN);
		ck_assert_mem_eq(data, raw.area + at, h.payload);
		to += h.payload;
		ck_assert_int_eq(h.last, to % RAW_AREA == 0);
	}
	wait_sem(&raw.sent);
	ck_assert_int_eq(raw.sent_status, 0);
	close(fd);
	raw_close(&raw);
}

/* RFC 5044 section 3: ULPDUs of 128 to 64,768 bytes. */
TEST(frames_are_of_a_size_that_mpa_allows)
{
	static const unsigned sizes[] = { 132, 136, 64772, 64776 };
	struct fabric fabric;

	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct iwarp_options o = { .fpdu_size = sizes[i] };
		int err = iwarp_fabric_create(&o, &fabric);

		ck_assert_int_eq(err, i == 0 || i == 3 ? -EINVAL : 0);
		if (err == 0)
			iwarp_fabric_destroy(&fabric);
	}
}
