/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record - record marking on a byte stream (RFC 5531 section 11).  Pure.
 *
 * A record is one or more fragments; each begins with a word whose high
 * bit says "last" and whose other bits are its length.  The reader is fed
 * bytes as they come, however they are cut, and says which of them belong
 * to the record being read.
 */
#ifndef GANNET_TRANSPORT_STREAM_RECORD_H
#define GANNET_TRANSPORT_STREAM_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#define RECORD_MARK_SIZE	4
#define RECORD_LAST		0x80000000u
/* More fragments without a byte in them than this are no record. */
#define RECORD_MAX_EMPTY	64

struct record_in {
	uint32_t max;		/* longer records are bad; never changes */
	uint32_t len;		/* bytes of the record that were given out */
	uint32_t left;		/* bytes of the fragment still to come */
	uint32_t mark;
	uint8_t	 nmark;		/* bytes of the mark that came; 4: all */
	uint8_t	 empty;		/* fragments of no bytes in this record */
	bool	 last;
};

enum record_event {
	RECORD_MORE,		/* all bytes are used up */
	RECORD_SPAN,		/* *span is set */
	RECORD_BAD,		/* too long, empty or endless: give up */
};

/* Bytes that follow those given before in the same record. */
struct record_span {
	const uint8_t	*data;
	uint32_t	 len;
	bool		 end;	/* the record ends with them; may be no byte */
};

void record_in_init(struct record_in *r, uint32_t max);

/*
 * Looks at the bytes from *@p to @end and moves *@p past those it used.
 * A copy of *@r and *@p made before undoes the step.
 */
enum record_event record_next(struct record_in *r, const uint8_t **p,
			      const uint8_t *end, struct record_span *span);

/* Between two records: nothing of the next one came yet. */
static inline bool record_idle(const struct record_in *r)
{
	return r->nmark == 0 && r->len == 0 && r->empty == 0;
}

/* How many of the next bytes are surely of this fragment. */
static inline uint32_t record_left(const struct record_in *r)
{
	return r->nmark == RECORD_MARK_SIZE ? r->left : 0;
}

/* How long the record is, as far as its marks have said. */
static inline uint32_t record_claim(const struct record_in *r)
{
	return r->len + record_left(r);
}

#endif
