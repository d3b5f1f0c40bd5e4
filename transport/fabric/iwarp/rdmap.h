/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdmap - what a peer sends: framing, placement, rules.
 *
 * Operation: bytes go in as they come, cut anywhere; payload goes straight to
 * where it belongs.  With CRCs a FPDU is gathered first, as nothing may be
 * placed of one that is wrong.  Every rule that a peer breaks has a code.
 *
 * No socket, no lock: all it asks of the world is in rdmap_ops, so that
 * tests and fuzzers can be the world.
 */
#ifndef GANNET_TRANSPORT_FABRIC_IWARP_RDMAP_H
#define GANNET_TRANSPORT_FABRIC_IWARP_RDMAP_H

#include "transport/fabric/iwarp/ddp.h"

struct rdmap;

/* A Read of ours that was not answered completely. */
struct rdmap_read {
	uint32_t stag;		/* as we called the sink; offsets from 0 */
	uint32_t len;
	uint8_t	*sink;
};

struct rdmap_ops {
	/* The Receive for the Send that begins; false: none is posted. */
	bool (*recv_get)(struct rdmap *r, uint8_t **data, uint32_t *len);
	/* That one is done; @inv was invalidated if has_inv.  -EMSGSIZE: the
	 * Send was too long. */
	void (*recv_done)(struct rdmap *r, int status, uint32_t len);
	/* The oldest Read that is under way; false: there is none. */
	bool (*read_get)(struct rdmap *r, struct rdmap_read *read);
	void (*read_done)(struct rdmap *r);
	/* The peer reads. */
	enum term (*read_request)(struct rdmap *r,
				  const struct rdmap_request *req);
	/* The peer writes @len > 0 bytes; this is called for each piece, and
	 * with a NULL @data to ask about all of a segment. */
	enum term (*write)(struct rdmap *r, uint32_t stag, uint64_t to,
			   const uint8_t *data, uint32_t len);
	enum term (*invalidate)(struct rdmap *r, uint32_t stag);
	/* The peer gave up, with this code. */
	void (*terminated)(struct rdmap *r, unsigned code);
};

enum rdmap_state { RDMAP_GATHER, RDMAP_PAYLOAD, RDMAP_TRAILER };

/* Enough for a header; FPDUs with CRC that are longer are allocated. */
#define RDMAP_SMALL	128u

struct rdmap {
	const struct rdmap_ops *ops;
	bool	 crc;
	bool	 stop;		/* set by anyone: take nothing any more */
	uint64_t fpdus;		/* that were taken */

	/* Why we give up, and the FPDU that was it. */
	enum term term;
	uint8_t	 culprit[DDP_MAX_HEADER + RDMAP_REQUEST_LEN];
	unsigned culprit_header;
	unsigned culprit_request;

	/* The last Send: has it invalidated a handle of ours? */
	bool	 has_inv;
	uint32_t inv;

	/* Message sequence numbers that come next. */
	uint32_t msn[DDP_NQUEUES];
	/* The Send in the making. */
	bool	 in_send;
	uint8_t	 send_opcode;
	uint32_t send_inv;
	uint8_t	*recv;
	uint32_t recv_len;
	uint32_t recv_off;
	/* The answer to the oldest Read. */
	uint32_t read_off;

	/* The FPDU in the making. */
	enum rdmap_state state;
	struct ddp_header h;
	uint8_t	*target;	/* NULL: by h.stag and h.to */
	uint32_t left;		/* of the payload, or of the trailer */
	uint8_t	*whole;		/* owned; NULL: small */
	unsigned have;
	uint8_t	 small[RDMAP_SMALL];
	uint8_t	 body[RDMAP_TERM_MAX];	/* of a request or Terminate */
};

void rdmap_init(struct rdmap *r, const struct rdmap_ops *ops, bool crc);
void rdmap_fini(struct rdmap *r);

/*
 * Takes @len bytes.  0; -EPROTO and r->term says why; -ECONNRESET after a
 * Terminate; -ENOMEM.  After an error it takes nothing any more.
 */
int rdmap_feed(struct rdmap *r, const uint8_t *data, size_t len);

/* Where the next bytes belong, to have them received there at once. */
struct rdmap_want {
	uint8_t	*data;		/* NULL: the peer's h.stag and h.to say it */
	uint32_t len;
	uint32_t behind;	/* bytes until the next payload, if that is
				 * likely to be as long; else 0 */
};
bool rdmap_want(const struct rdmap *r, struct rdmap_want *want);
/* @len bytes, of those wanted at most, are there.  Errors as above. */
int rdmap_placed(struct rdmap *r, uint32_t len);

/* Has a part of a FPDU or message come? */
bool rdmap_midway(const struct rdmap *r);

#endif
