/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mpa - start-up frames and their negotiation.  Pure.
 *
 * RFC 5044 section 7.1 (revision 1) and RFC 6581 (revision 2).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MPA_HEADER_LEN		20u
#define MPA_MAX_PRIVATE		512u
#define MPA_MAX_FRAME		(MPA_HEADER_LEN + MPA_MAX_PRIVATE)
#define MPA_DEPTH_ANY		0x3fffu	/* left to the upper layers */

struct mpa_frame {
	bool	 reply;
	bool	 markers;	/* the sender wants to receive markers */
	bool	 crc;
	bool	 reject;
	uint8_t	 rev;
	bool	 enhanced;	/* the rest is valid, but private data */
	bool	 p2p;
	bool	 rtr_send;
	bool	 rtr_write;
	bool	 rtr_read;
	uint16_t ird;
	uint16_t ord;
	const uint8_t *private_data;	/* borrowed */
	unsigned private_len;
};

/* Returns the length; @out has room for MPA_MAX_FRAME. */
unsigned mpa_encode(const struct mpa_frame *f, uint8_t *out);

/*
 * Returns the length of the frame that begins with these @len bytes. 0: they
 * are too few to tell. -EPROTO: no frame, or too long; -EPROTONOSUPPORT:
 * another revision.
 */
int mpa_frame_len(const uint8_t *data, size_t len, bool reply);
/* Decodes a whole frame. 0 or the errors above. */
int mpa_decode(const uint8_t *data, size_t len, bool reply,
	       struct mpa_frame *f);

/* One end's wishes. */
struct mpa_policy {
	bool	 crc;		/* require it */
	unsigned ird;		/* Reads that the peer can have in flight */
	unsigned ord;		/* Reads of ours, at most */
};

enum mpa_rtr { MPA_RTR_NONE, MPA_RTR_WRITE, MPA_RTR_READ };

/* The result of the negotiation. */
struct mpa_agreed {
	bool	     crc;
	bool	     markers;	/* the peer is sent some; we never ask */
	unsigned     ird;
	unsigned     ord;
	enum mpa_rtr rtr;	/* an initiator begins with it */
};

/* Returns how many Reads a responder may have in flight to the sender of
 * @req. */
unsigned mpa_read_depth(const struct mpa_frame *req, unsigned ord);
/* Makes the responder's answer, without private data. */
void mpa_answer(const struct mpa_frame *req, const struct mpa_policy *policy,
		struct mpa_frame *reply, struct mpa_agreed *agreed);
/* Makes the answer of a responder that refuses this peer. */
void mpa_reject(const struct mpa_frame *req, struct mpa_frame *reply);
/*
 * Judges the answer for the initiator. 0, -ECONNREFUSED, -EPROTO; -ENOSPC: our
 * IRD is too small, -ENOTSUP: the ends have no RTR in common (RFC 6581 section
 * 8, codes 6 and 7).
 */
int mpa_conclude(const struct mpa_frame *req, const struct mpa_policy *policy,
		 const struct mpa_frame *reply, struct mpa_agreed *agreed);
