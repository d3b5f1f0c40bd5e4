/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record - record marking on a byte stream (RFC 5531 section 11).  Pure.
 *
 * A record is one or more fragments; each begins with a word whose high
 * bit says "last" and whose other bits are its length.  The reader is fed
 * bytes as they come, however they are cut, and says which of them belong
 * to the record being read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORD_MARK_SIZE	4
#define RECORD_LAST		0x80000000u
/* A record with more empty fragments than this is malformed. */
#define RECORD_MAX_EMPTY	64

/* Puts the mark of a record of one fragment, @len bytes, at @to. */
void record_put_mark(void *to, size_t len);

struct record_in {
	uint32_t max;		/* longer records are bad; never changes */
	uint32_t len;		/* bytes of the record given out so far */
	uint32_t left;		/* of the fragment: the next bytes */
	uint32_t mark;
	uint8_t	 nmark;		/* bytes of the mark that came; 4: all */
	uint8_t	 empty;		/* empty fragments in this record */
	bool	 last;
};

enum record_event {
	RECORD_MORE,		/* all bytes are used up */
	RECORD_SPAN,		/* *span is set */
	RECORD_BAD,		/* too long, empty or endless: give up */
};

/* The next bytes of the same record. */
struct record_span {
	const uint8_t	*data;
	uint32_t	 len;
	bool		 end;	/* the record ends with them; len can be 0 */
};

void record_in_init(struct record_in *r, uint32_t max);

/*
 * Looks at the bytes from *@p to @end and moves *@p past those it used.
 * A copy of *@r and *@p made before undoes the step.
 */
enum record_event record_next(struct record_in *r, const uint8_t **p,
			      const uint8_t *end, struct record_span *span);

/* True between two records: no byte of the next one has come yet. */
bool record_idle(const struct record_in *r);

/* Returns the record's length by the marks read so far. */
uint32_t record_claim(const struct record_in *r);
