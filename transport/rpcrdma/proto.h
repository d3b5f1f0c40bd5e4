/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * proto - RPC-over-RDMA version 1 on the wire (RFC 8166, RFC 8797).  Pure.
 *
 * Operation: a received message is decoded completely, every count and sum
 * bounded, before anything acts on it.  A decoded chunk is a validated view
 * of the wire: its segments stay where they arrived and are read one by one.
 *
 * Ownership: views borrow the bytes that were decoded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/xdr.h"
#include "transport/xprt.h"

struct rpcrdma_limits;

#define RPCRDMA_VERSION		1u
/* RFC 8166 section 4.5: a shorter message is not a message. */
#define RPCRDMA_HEADER_MIN	28u
/* Inline thresholds, RFC 8166 section 3.3.3 and RFC 8797 section 4.2. */
#define RPCRDMA_INLINE_MIN	1024u
#define RPCRDMA_INLINE_MAX	262144u

/* RFC 8166 section 4.1.2. */
enum rpcrdma_proc {
	RPCRDMA_MSG = 0,
	RPCRDMA_NOMSG = 1,
	RPCRDMA_MSGP = 2,
	RPCRDMA_DONE = 3,
	RPCRDMA_ERROR = 4,
};

enum rpcrdma_errcode {
	RPCRDMA_ERR_VERS = 1,
	RPCRDMA_ERR_CHUNK = 2,
};

struct rpcrdma_segment {
	uint32_t handle;
	uint32_t length;
	uint64_t offset;
};

/* A Read, Write or Reply chunk: a view of its segments in the message. */
struct rpcrdma_chunk {
	const uint8_t	*wire;		/* borrowed: the first segment */
	uint32_t	 stride;	/* from one segment to the next */
	uint32_t	 nsegs;
	uint32_t	 position;	/* of a Read chunk */
	uint64_t	 length;	/* of all segments */
};

/*
 * Takes the first segment off @chunk, which has one, and returns it.  Segments
 * of other Read chunks can stand between the segments of a Read chunk.
 */
struct rpcrdma_segment rpcrdma_chunk_take(struct rpcrdma_chunk *chunk);

/* The i-th segment, i < chunk->nsegs. */
static inline struct rpcrdma_segment
rpcrdma_chunk_segment(const struct rpcrdma_chunk *chunk, uint32_t i)
{
	struct rpcrdma_chunk rest = *chunk;

	while (i-- > 0)
		rpcrdma_chunk_take(&rest);
	return rpcrdma_chunk_take(&rest);
}

/*
 * The chunks that can be spliced into a call, and the Position-Zero chunk.  No
 * binding has a call with so many: NFSv3 and MOUNT let one argument be reduced
 * (RFC 8267 section 4).  A call with more has a chunk that must be refused in
 * any case (RFC 8166 section 6.1).
 */
#define RPCRDMA_MAX_READS	(MSG_MAX_SEGS / 2 + 1)

struct rpcrdma_header {
	uint32_t xid;
	uint32_t vers;
	uint32_t credits;
	uint32_t proc;

	/* For MSG, NOMSG, MSGP: each chunk once, in the order of positions. */
	uint32_t nreads;
	uint32_t nwrites;
	bool	 has_reply;
	struct rpcrdma_chunk read[RPCRDMA_MAX_READS];
	struct rpcrdma_chunk write;	/* the first, if nwrites > 0 */
	struct rpcrdma_chunk reply;
	uint32_t reply_len;	/* bytes of the header of every reply */

	uint32_t align;		/* MSGP */
	uint32_t thresh;
	uint32_t err;		/* ERROR */
	uint32_t vers_low;
	uint32_t vers_high;

	uint32_t len;		/* the inline bytes begin here */
};

/*
 * Decodes the header of a message of @len bytes.  0, or
 * -ENODATA		too short: drop it, no field is valid
 * -EPROTONOSUPPORT	not version 1: only the first four words are valid
 * -EBADMSG		malformed: only the first four words are valid
 * -E2BIG		likewise; more Read chunks than we take
 */
int rpcrdma_header_decode(const void *data, size_t len,
			  struct rpcrdma_header *h);

/*
 * Steps along the Write list: sets @chunk, which is the Write chunk before it,
 * to the i-th.  False: the end was reached.
 */
bool rpcrdma_write_next(const struct rpcrdma_header *h, uint32_t i,
			struct rpcrdma_chunk *chunk);

/* An RDMA_DONE ends with its procedure (RFC 5666 section 4.3).  True if the
 * message is one; sets its @xid. */
#define RPCRDMA_DONE_LEN	16
void rpcrdma_done_encode(struct xdr_out *x, uint32_t xid);
bool rpcrdma_header_is_done(const void *data, size_t len, uint32_t *xid);

/* The types of RPC messages (RFC 5531 section 9). */
enum rpcrdma_msg_type { MSG_TYPE_CALL = 0, MSG_TYPE_REPLY = 1 };

/* True if an RPC call follows the header @h of the message at @data, of @len
 * bytes. */
bool rpcrdma_header_carries_call(const struct rpcrdma_header *h,
				 const uint8_t *data, uint32_t len);

/* One run of bytes of a call: part of the base or a whole Read chunk. */
struct rpcrdma_piece {
	uint32_t chunk;		/* in h->read, or RPCRDMA_BASE */
	uint32_t off;		/* in the base, or in the sink */
	uint32_t len;		/* with roundup */
};

#define RPCRDMA_BASE	UINT32_MAX

/*
 * The plan for assembling a call (RFC 8166 section 3.4.5).  The base is the
 * inline bytes, or the data of a Position-Zero Read chunk.  Chunks go to one
 * memory, the sink: first the data chunks, of which the first one has to lie at
 * its very beginning, then the Position-Zero chunk.
 */
struct rpcrdma_layout {
	uint32_t npieces;
	struct rpcrdma_piece piece[MSG_MAX_SEGS];
	uint32_t call_len;
	uint32_t sink_len;			/* 0: nothing to pull */
	uint32_t sink_off[RPCRDMA_MAX_READS];	/* of each Read chunk */
	uint32_t pull_len[RPCRDMA_MAX_READS];	/* its bytes to keep */
	uint32_t cut;		/* bytes at the call's end to drop */
	bool	 pzrc;				/* read[0] is the base */
};

/*
 * Plans the call that @h heads; @body_len bytes follow the header.  0 or
 * -EBADMSG: positions that don't lie in the call, overlap, or have no
 * business in this kind of message; or -E2BIG: more than MSG_MAX_TAKEN, or
 * more than MSG_MAX_LEN and it does not end in a Read chunk.
 */
int rpcrdma_layout_plan(const struct rpcrdma_header *h, uint32_t body_len,
			struct rpcrdma_layout *l);

/*
 * Fills in at most MSG_MAX_SEGS of @segs; returns their number.  A chunk that
 * is shorter than the count before it says, by less than a roundup, would end
 * in zeros that the peer did not send: the call ends before them instead, and
 * is found to be too short (RFC 8166 section 4.5.2).
 */
uint32_t rpcrdma_layout_splice(struct rpcrdma_layout *l, const uint8_t *base,
			       const uint8_t *sink, struct xdr_seg *segs);

/*
 * RDMA_MSGP (RFC 5666 section 3.9): the data of an opaque that ends the message
 * was moved to a multiple of rdma_align, counted from the start of the Send, if
 * it has at least rdma_thresh bytes; this aligns it in the Receive.
 *
 * A sender need not move it; then the message ends where the data does.  So the
 * message's length tells for each place whether it has a pad.  Looks in @msg,
 * from @from (zero at first), for the next such place: sets the @position of
 * the data in the call and the @pad before it.
 */
bool rpcrdma_msgp_find(const struct rpcrdma_header *h, const void *msg,
		       uint32_t len, uint32_t from, uint32_t *position,
		       uint32_t *pad);
/* Returns the pad that moves data at @at to a multiple of @align, not zero. */
static inline uint32_t rpcrdma_msgp_pad(uint32_t align, uint32_t at)
{
	return (align - at % align) % align;
}
/* Takes the pad out of a planned call without chunks. */
void rpcrdma_layout_unpad(struct rpcrdma_layout *l, uint32_t position,
			  uint32_t pad);

/*
 * Returns the handle that a reply to @h may invalidate: the only one in the
 * call (RFC 8797 section 4.1).  It is never the handle of a Write chunk's last
 * segment of four bytes, which can be a pad that its owner uses again.
 */
bool rpcrdma_header_invalidate(const struct rpcrdma_header *h,
			       uint32_t *handle);

struct rpcrdma_reply {
	const struct rpcrdma_header *call;
	uint32_t credits;
	uint32_t proc;		/* MSG or NOMSG */
	uint32_t written;	/* to call->write */
	uint32_t reply_written;	/* to the Reply chunk */
};

/*
 * Encodes a reply's header: the chunks of the call with the lengths that were
 * written.  @x can lie at the start of the message that @call was decoded from:
 * writing never overtakes reading.
 */
void rpcrdma_reply_encode(struct xdr_out *x, const struct rpcrdma_reply *r);

/*
 * Encodes the header of a reply that lies in @n segments of our memory, a
 * Position-Zero Read chunk (RFC 5666 section 5.1).
 */
#define RPCRDMA_EXPOSED_LEN(n)	(RPCRDMA_HEADER_MIN + 24 * (n))
void rpcrdma_exposed_encode(struct xdr_out *x,
			    const struct rpcrdma_header *call,
			    uint32_t credits,
			    const struct rpcrdma_segment *seg, unsigned n);

/* Encodes an RDMA_ERROR, with the xid and version of the call. */
void rpcrdma_error_encode(struct xdr_out *x, const struct rpcrdma_header *call,
			  uint32_t credits, enum rpcrdma_errcode err);

/*
 * The Connection Configuration Protocol (RFC 5666 section 6): encodes the call
 * of a requester with these limits; decodes the RPC reply, of which
 * theirs->reply is 0.  False: the responder does not serve the protocol.
 */
#define RPCRDMA_CONFIG_LEN	52
void rpcrdma_config_call(uint8_t out[RPCRDMA_CONFIG_LEN], uint32_t xid,
			 const struct rpcrdma_limits *ours);
bool rpcrdma_config_reply(const void *data, size_t len,
			  struct rpcrdma_limits *theirs);

/* A peer's parameters, sent when it connects (RFC 8797 section 4). */
struct rpcrdma_private {
	bool	 remote_inv;	/* takes Send With Invalidate */
	uint32_t send_size;	/* longest Send it posts */
	uint32_t recv_size;	/* longest it takes */
};

#define RPCRDMA_PRIVATE_LEN	8

/* Sizes are rounded down to a multiple of 1024. */
void rpcrdma_private_encode(const struct rpcrdma_private *p,
			    uint8_t out[RPCRDMA_PRIVATE_LEN]);
/* False: @data has no parameters, and *@p has RFC 8166's defaults. */
bool rpcrdma_private_decode(const void *data, size_t len,
			    struct rpcrdma_private *p);
