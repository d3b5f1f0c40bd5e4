/* SPDX-License-Identifier: BSD-2-Clause */
/* Record marking, RFC 5531 section 11. */
#include "wire/record.h"

#include <string.h>

#include "lib/util.h"
#include "tests/unit/runner.h"

#define MAX_LEN		1000

/* Reads records from bytes in pieces; all records end up behind another. */
struct reader {
	struct record_in rec;
	uint8_t	 out[4096];
	uint32_t len;
	uint32_t ends[32];	/* where each record ends in out */
	uint32_t nends;
	bool	 bad;
};

static struct reader reader(void)
{
	struct reader r = { .len = 0 };

	record_in_init(&r.rec, MAX_LEN);
	return r;
}

static void feed(struct reader *r, const void *data, size_t len)
{
	const uint8_t *p = data, *end = p + len;
	enum record_event ev;
	struct record_span s;

	while ((ev = record_next(&r->rec, &p, end, &s)) == RECORD_SPAN) {
		memcpy(r->out + r->len, s.data, s.len);
		r->len += s.len;
		if (s.end)
			r->ends[r->nends++] = r->len;
	}
	r->bad = ev == RECORD_BAD;
	if (!r->bad)
		ck_assert_ptr_eq(p, end);
}

/* Three records: of one fragment, of four with empty ones, of one. */
static const uint8_t three[] =
	"\x80\0\0\x05" "hello"
	"\0\0\0\x02" "ab" "\0\0\0\0" "\0\0\0\0" "\0\0\0\x01" "c"
	"\x80\0\0\0"
	"\x80\0\0\x01" "z";
#define THREE_LEN	(sizeof(three) - 1)

static void check_three(const struct reader *r)
{
	ck_assert(!r->bad);
	ck_assert_uint_eq(r->nends, 3);
	ck_assert_uint_eq(r->ends[0], 5);
	ck_assert_uint_eq(r->ends[1], 8);
	ck_assert_uint_eq(r->ends[2], 9);
	ck_assert_mem_eq(r->out, "helloabcz", 9);
	ck_assert(record_idle(&r->rec));
}

TEST(records_in_one_piece_are_found)
{
	struct reader r = reader();

	feed(&r, three, THREE_LEN);
	check_three(&r);
}

TEST(every_split_in_three_gives_the_same_records)
{
	for (size_t a = 0; a <= THREE_LEN; a++)
		for (size_t b = a; b <= THREE_LEN; b++) {
			struct reader r = reader();

			feed(&r, three, a);
			feed(&r, three + a, b - a);
			feed(&r, three + b, THREE_LEN - b);
			check_three(&r);
		}
}

TEST(byte_by_byte_gives_the_same_records)
{
	struct reader r = reader();

	for (size_t i = 0; i < THREE_LEN; i++)
		feed(&r, three + i, 1);
	check_three(&r);
}

TEST(a_step_can_be_undone)
{
	struct reader r = reader();
	struct record_in before;
	struct record_span s;
	const uint8_t *p, *end;

	for (size_t i = 1; i <= THREE_LEN; i++) {
		before = r.rec;
		p = three + i - 1;
		end = three + THREE_LEN;
		record_next(&r.rec, &p, end, &s);
		r.rec = before;
		feed(&r, three + i - 1, 1);
	}
	check_three(&r);
}

TEST(the_longest_record_passes_and_one_more_byte_does_not)
{
	static const uint8_t most[] = "\x80\0\x03\xe8";		/* 1000 */
	static const uint8_t more[] = "\x80\0\x03\xe9";
	static const uint8_t huge[] = "\xff\xff\xff\xff";
	static const uint8_t huge_part[] = "\x7f\xff\xff\xff";
	struct reader r = reader();

	feed(&r, most, 4);
	ck_assert(!r.bad);
	ck_assert_uint_eq(record_claim(&r.rec), MAX_LEN);
	r = reader();
	feed(&r, more, 4);
	ck_assert(r.bad);
	r = reader();
	feed(&r, huge, 4);
	ck_assert(r.bad);
	r = reader();
	feed(&r, huge_part, 4);
	ck_assert(r.bad);
}

TEST(fragments_are_summed_up_against_the_longest)
{
	uint8_t frag[4 + 600] = { 0, 0, 600 >> 8, 600 & 255 };
	struct reader r = reader();

	feed(&r, frag, sizeof(frag));
	ck_assert(!r.bad);
	ck_assert_uint_eq(record_claim(&r.rec), 600);
	feed(&r, frag, 4);
	ck_assert(r.bad);
	/* 400 bytes fit. */
	r = reader();
	feed(&r, frag, sizeof(frag));
	frag[2] = 400 >> 8;
	frag[3] = 400 & 255;
	feed(&r, frag, 4 + 400);
	ck_assert(!r.bad);
	ck_assert_uint_eq(record_claim(&r.rec), MAX_LEN);
}

TEST(a_record_without_a_byte_is_bad)
{
	struct reader r = reader();

	feed(&r, "\x80\0\0\0", 4);
	ck_assert(r.bad);
}

TEST(empty_fragments_without_end_are_bad)
{
	struct reader r = reader();

	for (int i = 0; i < RECORD_MAX_EMPTY; i++) {
		feed(&r, "\0\0\0\0", 4);
		ck_assert(!r.bad);
		ck_assert(!record_idle(&r.rec));
	}
	feed(&r, "\0\0\0\0", 4);
	ck_assert(r.bad);
}

TEST(record_left_and_claimed_follow_the_marks)
{
	struct reader r = reader();

	feed(&r, "\0\0", 2);
	ck_assert(!record_idle(&r.rec));
	ck_assert_uint_eq(r.rec.left, 0);
	feed(&r, "\0\x0a" "abc", 5);
	ck_assert_uint_eq(r.rec.left, 7);
	ck_assert_uint_eq(record_claim(&r.rec), 10);
	feed(&r, "defghij", 7);
	ck_assert_uint_eq(r.rec.left, 0);
	ck_assert_uint_eq(record_claim(&r.rec), 10);
	ck_assert(!record_idle(&r.rec));
}
