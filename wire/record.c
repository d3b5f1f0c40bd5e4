/* SPDX-License-Identifier: BSD-2-Clause */
/* record - record marking on a byte stream.  Pure. */
#include "wire/record.h"

#include <endian.h>
#include <string.h>

#include "lib/util.h"
#include "lib/xdr.h"

void record_put_mark(void *to, size_t len)
{
	uint32_t mark = htobe32(RECORD_LAST | (uint32_t)len);

	memcpy(to, &mark, RECORD_MARK_SIZE);
}

bool record_idle(const struct record_in *r)
{
	return r->nmark == 0 && r->len == 0 && r->empty == 0;
}

uint32_t record_claim(const struct record_in *r)
{
	return r->len + r->left;
}

void record_in_init(struct record_in *r, uint32_t max)
{
	memset(r, 0, sizeof(*r));
	r->max = max;
}

/* Handles a mark.  False: the record is malformed. */
static bool start_fragment(struct record_in *r)
{
	r->last = r->mark & RECORD_LAST;
	r->left = r->mark & ~RECORD_LAST;
	if (r->left > r->max - r->len)
		return false;
	if (r->left > 0)
		return true;
	if (r->last)
		return r->len > 0;
	return ++r->empty <= RECORD_MAX_EMPTY;
}

enum record_event record_next(struct record_in *r, const uint8_t **p,
			      const uint8_t *end, struct record_span *span)
{
	uint32_t n;

	while (r->nmark < RECORD_MARK_SIZE) {
		if (likely(r->nmark == 0 && end - *p >= RECORD_MARK_SIZE)) {
			r->mark = xdr_word(*p);
			r->nmark = RECORD_MARK_SIZE;
			*p += RECORD_MARK_SIZE;
		} else if (*p < end) {
			r->mark = r->mark << 8 | *(*p)++;
			if (++r->nmark < RECORD_MARK_SIZE)
				continue;
		} else {
			return RECORD_MORE;
		}
		if (!start_fragment(r))
			return RECORD_BAD;
		if (r->left == 0 && !r->last)
			r->nmark = 0;
	}
	if (*p == end && r->left > 0)
		return RECORD_MORE;
	n = (uint32_t)MIN((size_t)(end - *p), (size_t)r->left);
	span->data = *p;
	span->len = n;
	span->end = false;
	*p += n;
	r->len += n;
	r->left -= n;
	if (r->left == 0) {
		r->nmark = 0;
		span->end = r->last;
		if (r->last)
			r->len = r->empty = 0;
	}
	return RECORD_SPAN;
}
