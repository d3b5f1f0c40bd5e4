/* SPDX-License-Identifier: BSD-2-Clause */
/* XDR cursors: RFC 4506, and their own rules. */
#include "lib/xdr.h"

#include "tests/unit/runner.h"

TEST(values_are_read_as_they_were_written)
{
	uint8_t mem[64];
	struct xdr_out out;
	struct xdr_in in;
	struct xdr_view v;

	xdr_out_init(&out, mem, sizeof(mem));
	xdr_put_u32(&out, 0xdeadbeef);
	xdr_put_u64(&out, 0x0123456789abcdefull);
	xdr_put_bool(&out, true);
	xdr_put_opaque(&out, "hello", 5);
	xdr_put_fixed(&out, "xyz", 3);
	ck_assert(!out.bad);
	ck_assert_uint_eq(xdr_out_len(&out), 4 + 8 + 4 + 4 + 8 + 4);

	xdr_in_init(&in, mem, xdr_out_len(&out));
	ck_assert_uint_eq(xdr_get_u32(&in), 0xdeadbeef);
	ck_assert_uint_eq(xdr_get_u64(&in), 0x0123456789abcdefull);
	ck_assert(xdr_get_bool(&in));
	v = xdr_get_opaque(&in, 5);
	ck_assert_uint_eq(v.len, 5);
	ck_assert_mem_eq(v.data, "hello", 5);
	v = xdr_get_fixed(&in, 3);
	ck_assert_mem_eq(v.data, "xyz", 3);
	ck_assert(xdr_ok(&in));
	ck_assert_uint_eq(xdr_left(&in), 0);
}

TEST(pad_is_written_as_zeros)
{
	uint8_t mem[8];
	struct xdr_out out;

	memset(mem, 0xff, sizeof(mem));
	xdr_out_init(&out, mem, sizeof(mem));
	xdr_put_opaque(&out, "a", 1);
	ck_assert_mem_eq(mem, "\0\0\0\1a\0\0\0", 8);
}

TEST(an_error_is_sticky_and_reads_zero)
{
	struct xdr_in in;

	xdr_in_init(&in, "\0\0\0\7\0\0", 6);
	ck_assert_uint_eq(xdr_get_u32(&in), 7);
	ck_assert_uint_eq(xdr_get_u32(&in), 0);
	ck_assert(!xdr_ok(&in));
	ck_assert_uint_eq(xdr_get_u32(&in), 0);
	ck_assert_ptr_null(xdr_get_fixed(&in, 1).data);
	ck_assert_uint_eq(xdr_left(&in), 0);
}

TEST(a_count_over_its_maximum_is_bad_not_clamped)
{
	struct xdr_in in;

	xdr_in_init(&in, "\0\0\0\5\0\0\0\0", 8);
	ck_assert_uint_eq(xdr_get_count(&in, 4), 0);
	ck_assert(!xdr_ok(&in));
	xdr_in_init(&in, "\377\377\377\377abcd", 8);
	ck_assert_uint_eq(xdr_get_opaque(&in, UINT32_MAX).len, 0);
	ck_assert(!xdr_ok(&in));
}

TEST(a_bool_is_zero_or_one)
{
	struct xdr_in in;

	xdr_in_init(&in, "\0\0\0\2", 4);
	ck_assert(!xdr_get_bool(&in));
	ck_assert(!xdr_ok(&in));
}

TEST(an_opaque_without_its_pad_is_bad)
{
	struct xdr_in in;

	xdr_in_init(&in, "\0\0\0\5hello\0\0", 11);
	xdr_get_opaque(&in, 5);
	ck_assert(!xdr_ok(&in));
}

TEST(overflow_of_an_output_is_sticky)
{
	uint8_t mem[10];
	struct xdr_out out;

	xdr_out_init(&out, mem, sizeof(mem));
	xdr_put_u32(&out, 1);
	xdr_put_u64(&out, 2);
	ck_assert(out.bad);
	xdr_put_u32(&out, 3);
	ck_assert_uint_eq(xdr_out_len(&out), 4);
}

TEST(values_are_read_across_segments)
{
	const struct xdr_seg segs[] = {
		{ (const uint8_t *)"\0\0\0\1\0\0\0\2", 8 },
		{ (const uint8_t *)"", 0 },
		{ (const uint8_t *)"\0\0\0\3", 4 },
		{ (const uint8_t *)"\0\0\0\4abcd", 8 },
	};
	struct xdr_in in;

	xdr_in_init_segs(&in, segs, 4);
	ck_assert_uint_eq(xdr_left(&in), 20);
	ck_assert_uint_eq(xdr_get_u32(&in), 1);
	ck_assert_uint_eq(xdr_get_u64(&in), 2ull << 32 | 3);
	ck_assert_mem_eq(xdr_get_opaque(&in, 4).data, "abcd", 4);
	ck_assert(xdr_ok(&in));
	ck_assert_uint_eq(xdr_get_u32(&in), 0);
	ck_assert(!xdr_ok(&in));
}

TEST(three_words_are_read_from_one_place_or_from_more)
{
	static const uint8_t words[] = "\0\0\0\1\xff\0\0\2\0\0\0\3";

	for (uint32_t cut = 0; cut <= 12; cut += 4) {
		const struct xdr_seg segs[] = {
			{ words, cut }, { words + cut, 12 - cut },
		};
		uint32_t a, b, c;
		struct xdr_in in;

		xdr_in_init_segs(&in, segs, 2);
		xdr_get_three(&in, &a, &b, &c);
		ck_assert_uint_eq(a, 1);
		ck_assert_uint_eq(b, 0xff000002);
		ck_assert_uint_eq(c, 3);
		ck_assert(xdr_ok(&in));
		ck_assert_uint_eq(xdr_left(&in), 0);
	}
}

TEST(three_words_that_are_cut_are_read_up_to_there)
{
	uint32_t a, b, c;
	struct xdr_in in;

	xdr_in_init(&in, "\0\0\0\1\0\0\0\2\0\0", 10);
	xdr_get_three(&in, &a, &b, &c);
	ck_assert_uint_eq(a, 1);
	ck_assert_uint_eq(b, 2);
	ck_assert_uint_eq(c, 0);
	ck_assert(!xdr_ok(&in));
}

TEST(an_input_of_no_segments_is_empty)
{
	struct xdr_in in;

	xdr_in_init_segs(&in, NULL, 0);
	ck_assert(xdr_ok(&in));
	ck_assert_uint_eq(xdr_left(&in), 0);
	ck_assert_uint_eq(xdr_get_u64(&in), 0);
	ck_assert(!xdr_ok(&in));
}

TEST(a_string_that_straddles_segments_is_bad)
{
	const struct xdr_seg segs[] = {
		{ (const uint8_t *)"\0\0\0\10abcd", 8 },
		{ (const uint8_t *)"efgh", 4 },
	};
	struct xdr_in in;

	xdr_in_init_segs(&in, segs, 2);
	ck_assert_uint_eq(xdr_get_opaque(&in, 8).len, 0);
	ck_assert(!xdr_ok(&in));
}

TEST(data_in_pieces_comes_as_an_iovec)
{
	const struct xdr_seg segs[] = {
		{ (const uint8_t *)"\0\0\0\12", 4 },
		{ (const uint8_t *)"abcdefgh", 8 },
		{ (const uint8_t *)"ij\0\0", 4 },
		{ (const uint8_t *)"\0\0\0\11", 4 },
	};
	struct iovec iov[2];
	struct xdr_in in;
	int n = 2;

	xdr_in_init_segs(&in, segs, 4);
	ck_assert_uint_eq(xdr_get_iov(&in, 10, iov, &n), 10);
	ck_assert_int_eq(n, 2);
	ck_assert_uint_eq(iov[0].iov_len, 8);
	ck_assert_uint_eq(iov[1].iov_len, 2);
	ck_assert_mem_eq(iov[1].iov_base, "ij", 2);
	ck_assert_uint_eq(xdr_get_u32(&in), 9);
	ck_assert(xdr_ok(&in));

	n = 1;
	xdr_in_init_segs(&in, segs, 4);
	xdr_get_iov(&in, 10, iov, &n);
	ck_assert(!xdr_ok(&in));
	ck_assert_int_eq(n, 0);
}

TEST(every_truncation_of_data_is_bad)
{
	static const uint8_t wire[] = "\0\0\0\6abcdef\0";

	for (size_t len = 0; len < 12; len++) {
		struct iovec iov[4];
		struct xdr_in in;
		int n = 4;

		xdr_in_init(&in, wire, len);
		ck_assert_uint_eq(xdr_get_iov(&in, 6, iov, &n), 0);
		ck_assert(!xdr_ok(&in));
	}
}
