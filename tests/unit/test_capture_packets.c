/* SPDX-License-Identifier: BSD-2-Clause */
/* RPC messages as packets. */
#include "daemon/watch/capture_packets.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/runner.h"
#include "wire/record.h"

#define LONGEST	(200u << 10)

static struct capture_packets *packets;
static struct pcapng out;
static uint8_t *bytes;
static uint8_t data[LONGEST];
static struct capture_message m;

static void setup(void)
{
	size_t size = LONGEST + CAPTURE_EXTRA(LONGEST);

	packets = capture_packets_create();
	bytes = malloc(size);
	pcapng_init(&out, bytes, size);
	for (unsigned i = 0; i < LONGEST; i++)
		data[i] = (uint8_t)(i * 7 + (i >> 8));
	memset(&m, 0, sizeof(m));
	m.ns = 5;
	inet_pton(AF_INET6, "::ffff:192.0.2.1", &m.host[CAPTURE_CLIENT]);
	inet_pton(AF_INET6, "::ffff:192.0.2.9", &m.host[CAPTURE_SERVER]);
	m.port[CAPTURE_CLIENT] = 801;
	m.port[CAPTURE_SERVER] = 2049;
}

static void teardown(void)
{
	capture_packets_destroy(packets);
	free(bytes);
}

TEST_CASE(.setup = setup, .teardown = teardown);

static void adds(uint32_t len, uint32_t stored, bool is_reply)
{
	m.len = len;
	m.stored = stored;
	m.is_reply = is_reply;
	capture_add(packets, &out, &m, data);
	ck_assert(!out.bad);
}

/* ---- looking at them */

struct seen {
	uint32_t interface, captured, len;
	uint8_t	 ip[70000];
};

static struct seen seen;
static size_t looked;		/* bytes of out */

static uint32_t le(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	       (uint32_t)p[3] << 24;
}

static uint32_t be(const uint8_t *p, int n)
{
	uint32_t v = 0;

	while (n-- > 0)
		v = v << 8 | *p++;
	return v;
}

static bool next_packet(void)
{
	const uint8_t *p = bytes + looked;

	if (looked == pcapng_len(&out))
		return false;
	ck_assert_uint_eq(le(p), PCAPNG_PACKET);
	seen.interface = le(p + 8);
	seen.captured = le(p + 20);
	seen.len = le(p + 24);
	memcpy(seen.ip, p + 28, seen.captured);
	looked += le(p + 4);
	return true;
}

/* The sum of RFC 1071, which a good checksum makes 0xffff. */
static uint32_t sum(const uint8_t *p, size_t len, uint32_t before)
{
	uint64_t s = before;

	for (size_t i = 0; i < len; i++)
		s += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return (uint32_t)s;
}

static void begins(void)
{
	looked = 0;
}

TEST(a_short_call_is_one_segment_with_a_record_mark)
{
	static const uint8_t head[] = {
		0x45, 0, 0, 52, 0, 0, 0x40, 0, 64, 6,
		0xb6, 0xb9, 192, 0, 2, 1, 192, 0, 2, 9,
		3, 33, 8, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 0xff, 0xff,
	};

	begins();
	adds(8, 8, false);
	ck_assert(next_packet());
	ck_assert_uint_eq(seen.interface, 0);
	ck_assert_uint_eq(seen.captured, 52);
	ck_assert_uint_eq(seen.len, 52);
	ck_assert_mem_eq(seen.ip, head, sizeof(head));
	ck_assert_mem_eq(seen.ip + 40, "\x80\0\0\x08", 4);
	ck_assert_mem_eq(seen.ip + 44, data, 8);
	ck_assert_uint_eq(sum(seen.ip, 20, 0), 0xffff);
	ck_assert_uint_eq(sum(seen.ip + 12, 40, 6 + 32), 0xffff);
	ck_assert(!next_packet());
}

TEST(sequence_numbers_follow_one_another_both_ways)
{
	begins();
	adds(100, 100, false);
	adds(50, 50, true);
	adds(10, 10, false);
	ck_assert(next_packet());
	ck_assert(next_packet());
	ck_assert_mem_eq(seen.ip + 12, "\xc0\0\2\x09\xc0\0\2\1", 8);
	ck_assert_mem_eq(seen.ip + 20, "\x08\1\3\x21", 4);
	ck_assert_uint_eq(be(seen.ip + 24, 4), 1);
	ck_assert_uint_eq(be(seen.ip + 28, 4), 105);
	ck_assert(next_packet());
	ck_assert_uint_eq(be(seen.ip + 24, 4), 105);
	ck_assert_uint_eq(be(seen.ip + 28, 4), 55);
}

/* Puts the segments of one message together, in @into; their number. */
static unsigned join(uint8_t *into, unsigned ip_len)
{
	uint32_t seq = 0, at = 0;
	unsigned n = 0;

	while (next_packet()) {
		uint32_t here = seen.captured - ip_len - 20;

		ck_assert_uint_le(seen.len, 65535);
		if (n)
			ck_assert_uint_eq(be(seen.ip + ip_len + 4, 4), seq);
		seq = be(seen.ip + ip_len + 4, 4) + here;
		memcpy(into + at, seen.ip + ip_len + 20, here);
		at += here;
		n++;
	}
	return n;
}

TEST(a_long_message_is_cut_into_segments_that_make_it_again)
{
	uint8_t *into = calloc(1, LONGEST + 4);

	begins();
	adds(LONGEST, LONGEST, true);
	ck_assert_uint_eq(join(into, 20), 4);
	ck_assert_uint_eq(be(into, 4), RECORD_LAST | LONGEST);
	ck_assert_mem_eq(into + 4, data, LONGEST);
	free(into);
}

TEST(ipv6_has_its_own_header)
{
	inet_pton(AF_INET6, "2001:db8::1", &m.host[CAPTURE_CLIENT]);
	inet_pton(AF_INET6, "2001:db8::9", &m.host[CAPTURE_SERVER]);
	begins();
	adds(7, 7, false);
	ck_assert(next_packet());
	ck_assert_uint_eq(seen.captured, 40 + 20 + 4 + 7);
	ck_assert_mem_eq(seen.ip, "\x60\0\0\0\0\x1f\6\x40", 8);
	ck_assert_mem_eq(seen.ip + 8, m.host, 32);
	ck_assert_uint_eq(sum(seen.ip + 8, 32 + 31, 6 + 31), 0xffff);
}

TEST(a_datagram_has_no_record_mark)
{
	m.via = capture_via("udp");
	begins();
	adds(9, 9, true);
	ck_assert(next_packet());
	ck_assert_uint_eq(seen.interface, m.via);
	ck_assert_uint_eq(seen.captured, 20 + 8 + 9);
	ck_assert_uint_eq(seen.ip[9], 17);
	ck_assert_uint_eq(be(seen.ip + 24, 2), 17);
	ck_assert_mem_eq(seen.ip + 28, data, 9);
	ck_assert_uint_eq(sum(seen.ip + 12, 8 + 17, 17 + 17), 0xffff);
}

TEST(a_message_that_was_cut_is_longer_than_its_packets_say)
{
	begins();
	adds(5000, 100, false);
	ck_assert(next_packet());
	ck_assert_uint_eq(seen.captured, 144);
	ck_assert_uint_eq(seen.len, 5044);
	ck_assert_uint_eq(be(seen.ip + 2, 2), 5044);
	/* The sequence number goes on past the bytes that were cut. */
	adds(8, 8, false);
	ck_assert(next_packet());
	ck_assert_uint_eq(be(seen.ip + 24, 4), 5005);
}

TEST(a_connection_that_was_forgotten_repeats_no_number)
{
	uint32_t last;

	begins();
	adds(1000, 1000, false);
	/* More connections than are kept. */
	for (uint32_t i = 0; i < 70000; i++) {
		m.port[CAPTURE_CLIENT] = (uint16_t)i;
		m.host[CAPTURE_CLIENT].s6_addr[13] = (uint8_t)(1 + (i >> 16));
		adds(4, 4, false);
		out.p = out.start;
	}
	m.port[CAPTURE_CLIENT] = 801;
	m.host[CAPTURE_CLIENT].s6_addr[13] = 0;
	adds(4, 4, false);
	looked = 0;
	ck_assert(next_packet());
	last = be(seen.ip + 24, 4);
	ck_assert_uint_gt(last, 1004);
}
