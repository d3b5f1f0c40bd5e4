/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks of a pcapng file, byte by byte. */
#include "lib/pcapng.h"

#include <string.h>

#include "tests/unit/runner.h"

static uint8_t bytes[256];
static struct pcapng out;

static void setup(void)
{
	memset(bytes, 0xee, sizeof(bytes));
	pcapng_init(&out, bytes, sizeof(bytes));
}

TEST_CASE(.setup = setup);

#define IS(text) is_block(text, sizeof(text) - 1)

static void is_block(const char *text, size_t len)
{
	ck_assert(!out.bad);
	ck_assert_uint_eq(pcapng_len(&out), len);
	ck_assert_mem_eq(bytes, text, len);
	ck_assert_uint_eq(bytes[len], 0xee);
}

TEST(a_section_begins_with_the_byte_order_and_names_its_program)
{
	pcapng_section(&out, "gannetd");
	IS("\x0a\x0d\x0d\x0a" "\x2c\0\0\0" "\x4d\x3c\x2b\x1a" "\1\0\0\0"
	   "\xff\xff\xff\xff\xff\xff\xff\xff"
	   "\4\0\7\0" "gannetd\0" "\0\0\0\0" "\x2c\0\0\0");
}

TEST(an_interface_has_names_and_counts_nanoseconds)
{
	pcapng_interface(&out, "tcp", "TCP!", 96);
	IS("\1\0\0\0" "\x30\0\0\0" "\x65\0\0\0" "\x60\0\0\0"
	   "\2\0\3\0" "tcp\0" "\3\0\4\0" "TCP!" "\x09\0\1\0" "\x09\0\0\0"
	   "\0\0\0\0" "\x30\0\0\0");
}

TEST(a_packet_is_padded_and_has_both_lengths)
{
	uint8_t *data = pcapng_packet(&out, 3, 0x123456789abcdef0, 5, 9);

	ck_assert_ptr_nonnull(data);
	memcpy(data, "hello", 5);
	IS("\6\0\0\0" "\x28\0\0\0" "\3\0\0\0"
	   "\x78\x56\x34\x12" "\xf0\xde\xbc\x9a" "\5\0\0\0" "\x09\0\0\0"
	   "hello\0\0\0" "\x28\0\0\0");
}

TEST(statistics_tell_of_received_and_dropped_packets)
{
	pcapng_statistics(&out, 1, 0x200000001, 7, 2);
	IS("\5\0\0\0" "\x34\0\0\0" "\1\0\0\0" "\2\0\0\0" "\1\0\0\0"
	   "\4\0\x08\0" "\7\0\0\0\0\0\0\0" "\5\0\x08\0" "\2\0\0\0\0\0\0\0"
	   "\0\0\0\0" "\x34\0\0\0");
}

TEST(a_packet_without_room_is_not_begun)
{
	pcapng_init(&out, bytes, PCAPNG_PACKET_EXTRA + 4);
	ck_assert_ptr_null(pcapng_packet(&out, 0, 0, 5, 5));
	ck_assert(out.bad);
	ck_assert_uint_eq(pcapng_len(&out), 0);
	ck_assert_uint_eq(bytes[0], 0xee);
	/* Nor is a smaller one after it. */
	ck_assert_ptr_null(pcapng_packet(&out, 0, 0, 1, 1));
}

TEST(no_block_writes_beyond_its_room)
{
	for (size_t room = 0; room < 48; room++) {
		setup();
		pcapng_init(&out, bytes, room);
		pcapng_interface(&out, "tcp", "TCP!", 96);
		ck_assert(out.bad);
		ck_assert_uint_eq(bytes[room], 0xee);
		setup();
		pcapng_init(&out, bytes, room);
		pcapng_statistics(&out, 0, 0, 0, 0);
		ck_assert(out.bad);
		ck_assert_uint_eq(bytes[room], 0xee);
	}
}
