/* SPDX-License-Identifier: BSD-2-Clause */
/* layout_trial - a layout while it is carried out: shared by layout_call.c,
 * which sends it, and layout_reply.c, which checks the outcome. */
#pragma once

#include "tests/server/layout_peer.h"

enum { TRIAL_PIECES = LAYOUT_SEGS * (2 + LAYOUT_READS + LAYOUT_WRITES),
       TRIAL_BYTES = LAYOUT_DATA_MAX + (64 << 10) };

/* A segment of a chunk: a place in the area. */
struct piece {
	uint32_t len;
	uint32_t at;
	unsigned handle;	/* LAYOUT_HANDLES: none, for an empty one */
};

/* A chunk's segments in piece[]. */
struct run {
	unsigned first, n;
	uint32_t len;
};

struct trial {
	const struct layout *l;		/* borrowed */
	struct layout_expect e;
	uint32_t xid;
	struct piece piece[TRIAL_PIECES];
	unsigned npieces;
	struct run call, read[LAYOUT_READS], write[LAYOUT_WRITES], reply;
	uint32_t used;			/* of the area */
	uint32_t call_len;
	uint32_t want_len;
};

extern struct trial trial;
/* The area before the call was sent, and then as it must be. */
extern uint8_t trial_image[LAYOUT_AREA];

/* layout_call.c */
uint8_t trial_data_byte(uint32_t i);	/* of WRITE or SYMLINK */
void trial_scatter(uint8_t *to, const struct run *r, const uint8_t *from,
		   uint32_t len);
/* Write list and Reply chunk, with these bytes in them or with @all. */
void trial_put_lists(struct xdr_out *x, bool all, uint32_t written,
		     uint32_t replied);

/* layout_reply.c */
/* Notes the data of a WRITE that will be carried out. */
void trial_note_write(void);
/* The difference between the expected answer and one of @n bytes or an error;
 * or the call's leftovers.  NULL: none. */
const char *trial_judge(const uint8_t *answer, int n);
const char *trial_look(void);
