/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Record marking: whole and in pieces, the same bytes must give the same
 * records, and nothing that was not sent.  The first byte says how they are
 * cut.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/record.h"

#define MAX_LEN		600

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* The outcome of a stream. */
struct result {
	uint64_t sum;		/* of the bytes of all records and their ends */
	uint64_t bytes;
	bool	 bad;
};

static void check(bool ok)
{
	if (!ok)
		abort();
}

static void feed(struct record_in *r, struct result *res, const uint8_t *data,
		 size_t len)
{
	const uint8_t *p = data, *end = data + len;
	struct record_in before;
	struct record_span s;
	enum record_event ev;

	for (;;) {
		const uint8_t *at = p;

		before = *r;
		ev = record_next(r, &p, end, &s);
		check(p >= at && p <= end);
		if (ev == RECORD_BAD)
			break;
		check(r->len <= MAX_LEN && record_claim(r) <= MAX_LEN);
		if (ev == RECORD_MORE)
			break;
		check(s.data >= at && s.data + s.len == p);
		check(s.len > 0 || s.end);
		check(before.left == 0 || s.len <= before.left);
		if (s.end)
			check(record_idle(r));
		for (uint32_t i = 0; i < s.len; i++)
			res->sum = res->sum * 31 + s.data[i];
		if (s.end)
			res->sum = res->sum * 37 + 1;
		res->bytes += s.len;
	}
	res->bad = ev == RECORD_BAD;
	if (!res->bad)
		check(p == end);
}

static struct result read_all(const uint8_t *data, size_t len, size_t piece)
{
	struct result res = { .sum = 1 };
	struct record_in r;

	record_in_init(&r, MAX_LEN);
	while (len > 0 && !res.bad) {
		size_t n = piece < len ? piece : len;

		feed(&r, &res, data, n);
		data += n;
		len -= n;
		piece = piece % 7 + 1;
	}
	return res;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct result whole, cut;

	if (len == 0)
		return 0;
	whole = read_all(data + 1, len - 1, len);
	cut = read_all(data + 1, len - 1, data[0] + 1u);
	check(whole.bytes <= len - 1);
	check(whole.sum == cut.sum && whole.bytes == cut.bytes &&
	      whole.bad == cut.bad);
	return 0;
}
