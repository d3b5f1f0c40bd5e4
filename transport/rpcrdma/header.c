/* SPDX-License-Identifier: BSD-2-Clause */
/* header - the transport header of RFC 8166 section 4.  Pure. */
#include "transport/rpcrdma/proto.h"

#include <errno.h>
#include <string.h>

enum {
	SEGMENT_LEN = 16,		/* handle, length, offset */
	READ_ENTRY_LEN = 24,		/* next, position, segment */
};

struct rpcrdma_segment rpcrdma_chunk_take(struct rpcrdma_chunk *chunk)
{
	const uint8_t *p = chunk->wire;
	const struct rpcrdma_segment seg = {
		.handle = xdr_word(p),
		.length = xdr_word(p + 4),
		.offset = (uint64_t)xdr_word(p + 8) << 32 | xdr_word(p + 12),
	};

	chunk->wire += chunk->stride;
	/* In the Read list each segment has its position before it. */
	if (--chunk->nsegs > 0 && chunk->stride == READ_ENTRY_LEN)
		while (xdr_word(chunk->wire - 4) != chunk->position)
			chunk->wire += chunk->stride;
	return seg;
}

/*
 * Steps over a segment and adds it to its chunk.  A segment is a range of the
 * requester's memory, so its last byte has an address: a segment that reaches
 * past 2^64 is malformed, even if it is never used.
 */
static void take_segment(struct xdr_in *x, struct rpcrdma_chunk *chunk)
{
	uint32_t length;
	uint64_t offset, last;

	xdr_get_u32(x);
	length = xdr_get_u32(x);
	offset = xdr_get_u64(x);
	if (length > 0 && __builtin_add_overflow(offset, length - 1, &last))
		x->bad = true;
	chunk->length += length;	/* fewer than 2^32 segments */
	chunk->nsegs++;
}

/*
 * Returns the chunk at @position; a new one, in the order of positions, begins
 * at @wire.  NULL: no room.
 */
static struct rpcrdma_chunk *read_at(struct rpcrdma_header *h,
				     uint32_t position, const uint8_t *wire)
{
	uint32_t i = h->nreads;

	while (i > 0 && position < h->read[i - 1].position)
		i--;
	if (i > 0 && position == h->read[i - 1].position)
		return &h->read[i - 1];
	if (h->nreads == RPCRDMA_MAX_READS)
		return NULL;
	memmove(&h->read[i + 1], &h->read[i],
		(h->nreads - i) * sizeof(h->read[0]));
	h->nreads++;
	h->read[i] = (struct rpcrdma_chunk){ .wire = wire,
		.stride = READ_ENTRY_LEN, .position = position };
	return &h->read[i];
}

/*
 * Read list, RFC 8166 section 4.3.1: one entry a segment.  Entries of the same
 * position are one chunk, in the order of the list (section 3.4.5); the RFC
 * gives no order for the chunks, so they can stand in any, and in turns.
 */
static int decode_reads(struct xdr_in *x, struct rpcrdma_header *h)
{
	struct rpcrdma_chunk *chunk;
	uint32_t position;

	while (xdr_get_bool(x)) {
		position = xdr_get_u32(x);
		if (position & 3)
			return -EBADMSG;
		chunk = read_at(h, position, x->p);
		if (!chunk)
			return -E2BIG;
		take_segment(x, chunk);
	}
	return xdr_ok(x) ? 0 : -EBADMSG;
}

/* A counted array of segments; the bytes that remain bound the count. */
static void decode_chunk(struct xdr_in *x, struct rpcrdma_chunk *chunk)
{
	uint32_t n = xdr_get_count(x, (uint32_t)(xdr_left(x) / SEGMENT_LEN));

	*chunk = (struct rpcrdma_chunk){ .wire = x->p, .stride = SEGMENT_LEN };
	while (n-- > 0)
		take_segment(x, chunk);
}

/* Write list and Reply chunk, RFC 8166 sections 4.3.2 and 4.3.3. */
static int decode_writes(struct xdr_in *x, struct rpcrdma_header *h)
{
	const size_t before = xdr_left(x);
	struct rpcrdma_chunk later;

	while (xdr_get_bool(x))
		decode_chunk(x, h->nwrites++ == 0 ? &h->write : &later);
	h->has_reply = xdr_get_bool(x);
	if (h->has_reply)
		decode_chunk(x, &h->reply);
	/* The reply also has these lists, and an empty Read list. */
	h->reply_len = (uint32_t)(RPCRDMA_HEADER_MIN - 8 + before -
				  xdr_left(x));
	return xdr_ok(x) ? 0 : -EBADMSG;
}

static int decode_error(struct xdr_in *x, struct rpcrdma_header *h)
{
	h->err = xdr_get_u32(x);
	if (h->err == RPCRDMA_ERR_VERS) {
		h->vers_low = xdr_get_u32(x);
		h->vers_high = xdr_get_u32(x);
	} else if (h->err != RPCRDMA_ERR_CHUNK) {
		return -EBADMSG;
	}
	return xdr_ok(x) ? 0 : -EBADMSG;
}

static int decode_body(struct xdr_in *x, struct rpcrdma_header *h)
{
	int err;

	switch (h->proc) {
	case RPCRDMA_MSGP:
		h->align = xdr_get_u32(x);
		h->thresh = xdr_get_u32(x);
		/* fall through */
	case RPCRDMA_MSG:
	case RPCRDMA_NOMSG:
		err = decode_reads(x, h);
		return err < 0 ? err : decode_writes(x, h);
	case RPCRDMA_DONE:
		return 0;
	case RPCRDMA_ERROR:
		return decode_error(x, h);
	default:
		return -EBADMSG;
	}
}

int rpcrdma_header_decode(const void *data, size_t len,
			  struct rpcrdma_header *h)
{
	struct xdr_in x;
	int err;

	h->nreads = 0;
	h->nwrites = 0;
	h->has_reply = false;
	xdr_in_init(&x, data, len);
	h->xid = xdr_get_u32(&x);
	h->vers = xdr_get_u32(&x);
	h->credits = xdr_get_u32(&x);
	h->proc = xdr_get_u32(&x);
	/* Only ERR_CHUNK is shorter: 20 bytes. */
	if (!xdr_ok(&x) || (len < RPCRDMA_HEADER_MIN &&
			    h->proc != RPCRDMA_ERROR))
		return -ENODATA;
	if (h->vers != RPCRDMA_VERSION)
		return -EPROTONOSUPPORT;
	err = decode_body(&x, h);
	if (err < 0)
		return err;
	h->len = (uint32_t)(x.p - (const uint8_t *)data);
	return 0;
}

bool rpcrdma_write_next(const struct rpcrdma_header *h, uint32_t i,
			struct rpcrdma_chunk *chunk)
{
	struct rpcrdma_chunk rest;

	if (i >= h->nwrites)
		return false;
	if (i == 0) {
		*chunk = h->write;
		return true;
	}
	/* Behind the last segment: the mark of an entry, and its count. */
	chunk->wire += (size_t)chunk->nsegs * SEGMENT_LEN + 8;
	chunk->nsegs = xdr_word(chunk->wire - 4);
	chunk->length = 0;
	for (rest = *chunk; rest.nsegs > 0; )
		chunk->length += rpcrdma_chunk_take(&rest).length;
	return true;
}

void rpcrdma_done_encode(struct xdr_out *x, uint32_t xid)
{
	xdr_put_u32(x, xid);
	xdr_put_u32(x, RPCRDMA_VERSION);
	xdr_put_u32(x, 1);		/* credits: ignored */
	xdr_put_u32(x, RPCRDMA_DONE);
}

bool rpcrdma_header_is_done(const void *data, size_t len, uint32_t *xid)
{
	struct xdr_in x;
	uint32_t vers, proc;

	xdr_in_init(&x, data, len);
	*xid = xdr_get_u32(&x);
	vers = xdr_get_u32(&x);
	xdr_get_u32(&x);		/* credits mean nothing here */
	proc = xdr_get_u32(&x);
	return xdr_ok(&x) && vers == RPCRDMA_VERSION && proc == RPCRDMA_DONE;
}

bool rpcrdma_header_carries_call(const struct rpcrdma_header *h,
				 const uint8_t *data, uint32_t len)
{
	struct xdr_in x;

	xdr_in_init(&x, data + h->len, len - h->len);
	xdr_get_u32(&x);		/* the xid */
	return xdr_get_u32(&x) == MSG_TYPE_CALL && xdr_ok(&x);
}

/* Encodes the chunk as it came, but with @written bytes in its first
 * segments. */
static void encode_chunk(struct xdr_out *x, struct rpcrdma_chunk chunk,
			 uint32_t written)
{
	struct rpcrdma_segment seg;
	uint32_t n;

	xdr_put_u32(x, chunk.nsegs);
	while (chunk.nsegs > 0) {
		seg = rpcrdma_chunk_take(&chunk);
		n = MIN(seg.length, written);
		written -= n;
		xdr_put_u32(x, seg.handle);
		xdr_put_u32(x, n);
		xdr_put_u64(x, seg.offset);
	}
}

void rpcrdma_reply_encode(struct xdr_out *x, const struct rpcrdma_reply *r)
{
	const struct rpcrdma_header *call = r->call;
	struct rpcrdma_chunk chunk;

	xdr_put_u32(x, call->xid);
	xdr_put_u32(x, RPCRDMA_VERSION);
	xdr_put_u32(x, r->credits);
	xdr_put_u32(x, r->proc);
	xdr_put_bool(x, false);
	for (uint32_t i = 0; rpcrdma_write_next(call, i, &chunk); i++) {
		xdr_put_bool(x, true);
		encode_chunk(x, chunk, i == 0 ? r->written : 0);
	}
	xdr_put_bool(x, false);
	xdr_put_bool(x, call->has_reply);
	if (call->has_reply)
		encode_chunk(x, call->reply, r->reply_written);
}

void rpcrdma_exposed_encode(struct xdr_out *x,
			    const struct rpcrdma_header *call,
			    uint32_t credits,
			    const struct rpcrdma_segment *seg, unsigned n)
{
	xdr_put_u32(x, call->xid);
	xdr_put_u32(x, RPCRDMA_VERSION);
	xdr_put_u32(x, credits);
	xdr_put_u32(x, RPCRDMA_NOMSG);
	for (unsigned i = 0; i < n; i++) {
		xdr_put_bool(x, true);
		xdr_put_u32(x, 0);		/* the position */
		xdr_put_u32(x, seg[i].handle);
		xdr_put_u32(x, seg[i].length);
		xdr_put_u64(x, seg[i].offset);
	}
	xdr_put_bool(x, false);
	xdr_put_bool(x, false);
	xdr_put_bool(x, false);
}

void rpcrdma_error_encode(struct xdr_out *x, const struct rpcrdma_header *call,
			  uint32_t credits, enum rpcrdma_errcode err)
{
	xdr_put_u32(x, call->xid);
	xdr_put_u32(x, call->vers);
	xdr_put_u32(x, credits);
	xdr_put_u32(x, RPCRDMA_ERROR);
	xdr_put_u32(x, err);
	if (err == RPCRDMA_ERR_VERS) {
		xdr_put_u32(x, RPCRDMA_VERSION);
		xdr_put_u32(x, RPCRDMA_VERSION);
	}
}
