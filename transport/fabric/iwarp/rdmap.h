/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdmap - a peer's segments: framing, placement, rules.
 *
 * Operation: bytes go in as they come, cut anywhere; payload goes straight to
 * its place.  With CRCs a FPDU is gathered first, because a bad one must not
 * place a single byte.  Every rule that a peer breaks has a code.
 *
 * It uses no socket and no lock: everything it needs from outside is in
 * rdmap_ops, which tests and fuzzers replace.
 */
#pragma once

#include "transport/fabric/iwarp/ddp.h"

struct rdmap;

/* A Read of ours without its complete answer. */
struct rdmap_read {
	uint32_t stag;		/* our handle for the sink; offsets from 0 */
	uint32_t len;
	uint8_t	*sink;
};

struct rdmap_ops {
	/* Gives the Receive for the Send that begins; false: none is posted. */
	bool (*recv_get)(struct rdmap *r, uint8_t **data, uint32_t *len);
	/* The Receive is done; @inv was invalidated if has_inv. -EMSGSIZE: the
	 * Send was too long. */
	void (*recv_done)(struct rdmap *r, int status, uint32_t len);
	/* Returns the oldest Read in flight; false: no Read is in flight. */
	bool (*read_get)(struct rdmap *r, struct rdmap_read *read);
	void (*read_done)(struct rdmap *r);
	/* The peer asks for a Read. */
	enum term (*read_request)(struct rdmap *r,
				  const struct rdmap_request *req);
	/* The peer writes @len > 0 bytes.  Called for each piece; with a NULL
	 * @data only to check a whole segment. */
	enum term (*write)(struct rdmap *r, uint32_t stag, uint64_t to,
			   const uint8_t *data, uint32_t len);
	enum term (*invalidate)(struct rdmap *r, uint32_t stag);
	/* The peer gave up, with this code. */
	void (*terminated)(struct rdmap *r, unsigned code);
};

enum rdmap_state { RDMAP_GATHER, RDMAP_PAYLOAD, RDMAP_TRAILER };

/* Enough for a header; longer FPDUs with a CRC are allocated. */
#define RDMAP_SMALL	128u

struct rdmap {
	const struct rdmap_ops *ops;
	bool	 crc;
	bool	 stop;		/* any thread can set it: accept no further
				 * bytes */
	uint64_t fpdus;		/* FPDUs taken */

	/* The reason for giving up, and the FPDU that caused it. */
	enum term term;
	uint8_t	 culprit[DDP_MAX_HEADER + RDMAP_REQUEST_LEN];
	unsigned culprit_header;
	unsigned culprit_request;

	/* The last Send's handle to invalidate, if it had one. */
	bool	 has_inv;
	uint32_t inv;

	/* The next message sequence numbers. */
	uint32_t msn[DDP_NQUEUES];
	/* The Send that is arriving. */
	bool	 in_send;
	uint8_t	 send_opcode;
	uint32_t send_inv;
	uint8_t	*recv;
	uint32_t recv_len;
	uint32_t recv_off;
	/* The answer to the oldest Read. */
	uint32_t read_off;

	/* The FPDU that is arriving. */
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
 * Takes @len bytes.  0; -EPROTO with the cause in r->term; -ECONNRESET after a
 * Terminate; -ENOMEM.  After an error it accepts no further bytes.
 */
int rdmap_feed(struct rdmap *r, const uint8_t *data, size_t len);

/* The place of the next bytes, to receive them there directly. */
struct rdmap_want {
	uint8_t	*data;		/* NULL: at the peer's h.stag and h.to */
	uint32_t len;
	uint32_t behind;	/* bytes before the next payload, if it is
				 * likely to be as long; else 0 */
};
bool rdmap_want(const struct rdmap *r, struct rdmap_want *want);
/* @len bytes, at most as many as wanted, were received there.  Errors as
 * above. */
int rdmap_placed(struct rdmap *r, uint32_t len);

/* The Terminate will name this Read Request (RFC 5040 figure 10). */
void rdmap_note_request(struct rdmap *r, const struct ddp_header *h,
			const struct rdmap_request *req);

/* True if a part of a FPDU or message has come. */
bool rdmap_midway(const struct rdmap *r);
