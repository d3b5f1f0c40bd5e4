/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ddp - the headers in a FPDU: MPA's length, DDP, RDMAP.  Pure.
 *
 *	length | DDP and RDMAP header | payload | 0-3 pad | CRC
 *
 * RFC 5044 section 4.1, RFC 5041 section 4, RFC 5040 section 4.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rdmap_opcode {
	RDMAP_WRITE,
	RDMAP_READ_REQUEST,
	RDMAP_READ_RESPONSE,
	RDMAP_SEND,
	RDMAP_SEND_INV,
	RDMAP_SEND_SE,
	RDMAP_SEND_SE_INV,
	RDMAP_TERMINATE,
};

enum ddp_queue { DDP_QN_SEND, DDP_QN_READ, DDP_QN_TERMINATE, DDP_NQUEUES };

/* With the two bytes of the length. */
#define DDP_TAGGED_LEN		16u
#define DDP_UNTAGGED_LEN	20u
#define DDP_MAX_HEADER		DDP_UNTAGGED_LEN
#define DDP_LENGTH_LEN		2u
#define DDP_CRC_LEN		4u
/* Lengths of the payload of a Read Request, and of a Terminate. */
#define RDMAP_REQUEST_LEN	28u
#define RDMAP_TERM_MIN		4u
#define RDMAP_TERM_MAX		(RDMAP_TERM_MIN + DDP_UNTAGGED_LEN + \
				 RDMAP_REQUEST_LEN)

/*
 * The cause of a Terminate: layer << 12 | type << 8 | code.  RFC 5040 figure 9,
 * RFC 5041 section 7.2, RFC 5044 section 8, RFC 6581 section 8.
 */
enum term {
	TERM_NONE	    = -1,
	TERM_LOCAL	    = 0x0000,
	TERM_RDMAP_STAG	    = 0x0100,
	TERM_RDMAP_BOUNDS   = 0x0101,
	TERM_RDMAP_ACCESS   = 0x0102,
	TERM_RDMAP_WRAP	    = 0x0104,
	TERM_RDMAP_VERSION  = 0x0205,
	TERM_RDMAP_OPCODE   = 0x0206,
	TERM_RDMAP_INVALIDATE = 0x0209,
	TERM_DDP_STAG	    = 0x1100,
	TERM_DDP_BOUNDS	    = 0x1101,
	TERM_DDP_WRAP	    = 0x1103,
	TERM_DDP_TAGGED_VERSION = 0x1104,
	TERM_DDP_QN	    = 0x1201,
	TERM_DDP_NO_BUFFER  = 0x1202,
	TERM_DDP_MSN	    = 0x1203,
	TERM_DDP_MO	    = 0x1204,
	TERM_DDP_TOO_LONG   = 0x1205,
	TERM_DDP_UNTAGGED_VERSION = 0x1206,
	TERM_MPA_CRC	    = 0x2002,
	TERM_MPA_LENGTH	    = 0x2003,
	TERM_MPA_LOCAL	    = 0x2005,
	TERM_MPA_IRD	    = 0x2006,
	TERM_MPA_RTR	    = 0x2007,
};

struct ddp_header {
	uint16_t ulpdu_len;	/* DDP's header and the payload */
	bool	 tagged;
	bool	 last;
	uint8_t	 opcode;
	uint32_t stag;		/* or the one to invalidate */
	uint64_t to;		/* if tagged, else: */
	uint32_t qn;
	uint32_t msn;
	uint32_t mo;
	uint32_t payload;	/* its length */
};

/* The header's length, as the third byte of a FPDU says. */
static inline unsigned ddp_header_len(uint8_t control)
{
	return control & 0x80 ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;
}

/* The pad and the CRC behind a ULPDU. */
static inline unsigned ddp_trailer_len(unsigned ulpdu_len)
{
	return (-(DDP_LENGTH_LEN + ulpdu_len) & 3) + DDP_CRC_LEN;
}

/* The whole FPDU. */
static inline unsigned ddp_fpdu_len(unsigned ulpdu_len)
{
	return DDP_LENGTH_LEN + ulpdu_len + ddp_trailer_len(ulpdu_len);
}

/* True if the length is enough for the header that @p, three bytes,
 * announces. */
bool ddp_length_ok(const uint8_t *p);
/*
 * Decodes a header of ddp_header_len() bytes, which ddp_length_ok() has
 * checked.  Returns TERM_NONE, or the code of a wrong version, opcode or queue;
 * fills in @h anyway.
 */
enum term ddp_decode(const uint8_t *p, struct ddp_header *h);
/* Encodes all but ulpdu_len, which comes from payload.  Returns the length. */
unsigned ddp_encode(const struct ddp_header *h, uint8_t *p);

struct rdmap_request {
	uint32_t sink_stag;
	uint64_t sink_to;
	uint32_t len;
	uint32_t src_stag;
	uint64_t src_to;
};

void rdmap_request_decode(const uint8_t *p, struct rdmap_request *r);
void rdmap_request_encode(const struct rdmap_request *r, uint8_t *p);

/*
 * The payload of a Terminate that is the answer to the FPDU which begins with
 * @fpdu, header_len bytes and request_len more of a Read Request; both can be
 * 0.  Returns the length.
 */
unsigned rdmap_term_encode(enum term code, const uint8_t *fpdu,
			   unsigned header_len, unsigned request_len,
			   uint8_t *p);
/* Decodes a peer's Terminate of at least RDMAP_TERM_MIN bytes. */
unsigned rdmap_term_decode(const uint8_t *p);
/* The code's text; never NULL. */
const char *rdmap_term_text(unsigned code);
