/* SPDX-License-Identifier: BSD-2-Clause */
/* ddp - the headers in a FPDU: MPA's length, DDP, RDMAP. */
#include "transport/fabric/iwarp/ddp.h"

#include <string.h>

#include <endian.h>

#include "lib/util.h"

/* DDP's control byte. */
#define TAGGED		0x80
#define LAST		0x40
#define DDP_VERSION	0x01
#define DDP_VERSION_MASK 0x03
/* RDMAP's. */
#define RDMAP_VERSION	0x40
#define RDMAP_VERSION_MASK 0xc0
#define RDMAP_OPCODE_MASK 0x0f

/* The bits of a Terminate's third byte: the parts behind the control field. */
#define TERM_HAS_LENGTH	0x80
#define TERM_HAS_DDP	0x40
#define TERM_HAS_RDMAP	0x20

static uint16_t ddp_get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return be32toh(v);
}

static uint64_t get64(const uint8_t *p)
{
	return (uint64_t)get32(p) << 32 | get32(p + 4);
}

static void ddp_put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void put32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, 4);
}

static void put64(uint8_t *p, uint64_t v)
{
	put32(p, (uint32_t)(v >> 32));
	put32(p + 4, (uint32_t)v);
}

bool ddp_length_ok(const uint8_t *p)
{
	return DDP_LENGTH_LEN + ddp_get16(p) >= ddp_header_len(p[2]);
}

/* RFC 5040 figure 4: where each opcode belongs; DDP_NQUEUES is tagged. */
static const uint8_t queue_of[] = {
	[RDMAP_WRITE] = DDP_NQUEUES,
	[RDMAP_READ_REQUEST] = DDP_QN_READ,
	[RDMAP_READ_RESPONSE] = DDP_NQUEUES,
	[RDMAP_SEND] = DDP_QN_SEND,
	[RDMAP_SEND_INV] = DDP_QN_SEND,
	[RDMAP_SEND_SE] = DDP_QN_SEND,
	[RDMAP_SEND_SE_INV] = DDP_QN_SEND,
	[RDMAP_TERMINATE] = DDP_QN_TERMINATE,
};

/* DDP's own checks come first, then RDMAP's. */
static enum term ddp_check(const uint8_t *p, const struct ddp_header *h)
{
	uint32_t queue = h->tagged ? DDP_NQUEUES : h->qn;

	if ((p[2] & DDP_VERSION_MASK) != DDP_VERSION)
		return h->tagged ? TERM_DDP_TAGGED_VERSION :
				   TERM_DDP_UNTAGGED_VERSION;
	if (!h->tagged && h->qn >= DDP_NQUEUES)
		return TERM_DDP_QN;
	if ((p[3] & RDMAP_VERSION_MASK) != RDMAP_VERSION)
		return TERM_RDMAP_VERSION;
	if (h->opcode >= ARRAY_SIZE(queue_of) || queue_of[h->opcode] != queue)
		return TERM_RDMAP_OPCODE;
	return TERM_NONE;
}

enum term ddp_decode(const uint8_t *p, struct ddp_header *h)
{
	*h = (struct ddp_header){
		.ulpdu_len = ddp_get16(p),
		.tagged = p[2] & TAGGED,
		.last = p[2] & LAST,
		.opcode = p[3] & RDMAP_OPCODE_MASK,
		.stag = get32(p + 4),
	};
	h->payload = DDP_LENGTH_LEN + h->ulpdu_len - ddp_header_len(p[2]);
	if (h->tagged) {
		h->to = get64(p + 8);
	} else {
		h->qn = get32(p + 8);
		h->msn = get32(p + 12);
		h->mo = get32(p + 16);
	}
	return ddp_check(p, h);
}

unsigned ddp_encode(const struct ddp_header *h, uint8_t *p)
{
	unsigned len = h->tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;

	ddp_put16(p, len - DDP_LENGTH_LEN + h->payload);
	p[2] = (h->tagged ? TAGGED : 0) | (h->last ? LAST : 0) | DDP_VERSION;
	p[3] = RDMAP_VERSION | h->opcode;
	put32(p + 4, h->stag);
	if (h->tagged) {
		put64(p + 8, h->to);
	} else {
		put32(p + 8, h->qn);
		put32(p + 12, h->msn);
		put32(p + 16, h->mo);
	}
	return len;
}

void rdmap_request_decode(const uint8_t *p, struct rdmap_request *r)
{
	r->sink_stag = get32(p);
	r->sink_to = get64(p + 4);
	r->len = get32(p + 12);
	r->src_stag = get32(p + 16);
	r->src_to = get64(p + 20);
}

void rdmap_request_encode(const struct rdmap_request *r, uint8_t *p)
{
	put32(p, r->sink_stag);
	put64(p + 4, r->sink_to);
	put32(p + 12, r->len);
	put32(p + 16, r->src_stag);
	put64(p + 20, r->src_to);
}

unsigned rdmap_term_encode(enum term code, const uint8_t *fpdu,
			   unsigned header_len, unsigned request_len,
			   uint8_t *p)
{
	unsigned len = RDMAP_TERM_MIN;

	put32(p, (uint32_t)code << 16);
	if (header_len > 0) {
		/* The length comes first, as it does in the FPDU. */
		p[2] |= TERM_HAS_LENGTH | TERM_HAS_DDP;
		memcpy(p + len, fpdu, header_len);
		len += header_len;
	}
	if (request_len > 0) {
		p[2] |= TERM_HAS_RDMAP;
		memcpy(p + len, fpdu + header_len, request_len);
		len += request_len;
	}
	return len;
}

unsigned rdmap_term_decode(const uint8_t *p)
{
	uint8_t first = p[0];

	/* The kernel's siw has its bit fields the other way round. */
	if (!(p[2] & 0xe0) && (p[2] & 0x07))
		first = (uint8_t)(first << 4 | first >> 4);
	return (unsigned)first << 8 | p[1];
}

static const struct {
	unsigned code;
	const char *text;
} texts[] = {
	{ TERM_LOCAL, "RDMAP: local catastrophic error" },
	{ 0x00ff, "RDMAP: local catastrophic error" },
	{ TERM_RDMAP_STAG, "RDMAP: invalid STag" },
	{ TERM_RDMAP_BOUNDS, "RDMAP: base or bounds violation" },
	{ TERM_RDMAP_ACCESS, "RDMAP: access rights violation" },
	{ 0x0103, "RDMAP: STag not associated with the stream" },
	{ TERM_RDMAP_WRAP, "RDMAP: tagged offset wraps" },
	{ 0x0109, "RDMAP: STag cannot be invalidated" },
	{ 0x01ff, "RDMAP: unspecified protection error" },
	{ TERM_RDMAP_VERSION, "RDMAP: invalid version" },
	{ TERM_RDMAP_OPCODE, "RDMAP: unexpected opcode" },
	{ 0x0207, "RDMAP: catastrophic error of the stream" },
	{ 0x0208, "RDMAP: global catastrophic error" },
	{ TERM_RDMAP_INVALIDATE, "RDMAP: STag cannot be invalidated" },
	{ 0x02ff, "RDMAP: unspecified operation error" },
	{ 0x1000, "DDP: local catastrophic error" },
	{ TERM_DDP_STAG, "DDP: invalid STag" },
	{ TERM_DDP_BOUNDS, "DDP: base or bounds violation" },
	{ 0x1102, "DDP: STag not associated with the stream" },
	{ TERM_DDP_WRAP, "DDP: tagged offset wraps" },
	{ TERM_DDP_TAGGED_VERSION, "DDP: invalid version, tagged" },
	{ TERM_DDP_QN, "DDP: invalid queue number" },
	{ TERM_DDP_NO_BUFFER, "DDP: no buffer available" },
	{ TERM_DDP_MSN, "DDP: message sequence number out of range" },
	{ TERM_DDP_MO, "DDP: invalid message offset" },
	{ TERM_DDP_TOO_LONG, "DDP: message too long for its buffer" },
	{ TERM_DDP_UNTAGGED_VERSION, "DDP: invalid version, untagged" },
	{ 0x2001, "MPA: connection lost" },
	{ TERM_MPA_CRC, "MPA: CRC error" },
	{ TERM_MPA_LENGTH, "MPA: invalid FPDU length" },
	{ 0x2004, "MPA: invalid start-up frame" },
	{ TERM_MPA_LOCAL, "MPA: local catastrophic error" },
	{ TERM_MPA_IRD, "MPA: insufficient IRD resources" },
	{ TERM_MPA_RTR, "MPA: no matching RTR option" },
};

const char *rdmap_term_text(unsigned code)
{
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (texts[i].code == code)
			return texts[i].text;
	return "unknown error";
}
