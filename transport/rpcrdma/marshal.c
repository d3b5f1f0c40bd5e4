/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * marshal - a request becomes a message; a reply becomes its result.
 *
 * Errors: a reply is accepted only within the rules of RFC 8166: it has the
 * offered chunks, no others, and lengths that add up.  A reply can leave out a
 * whole list of unused chunks, as for other clients: some responders don't
 * return them (sections 4.3.2.2 and 4.3.3).
 */
#include "transport/rpcrdma/request.h"

#include <errno.h>
#include <string.h>


/* How memory is lent. */
struct terms {
	struct rpcrdma_regions *regions;
	unsigned access;
	uint32_t segment_size;		/* at most; 0: as long as the piece */
	bool	 once;			/* not from the cache */
};

static unsigned pieces(const struct rpcrdma_memory *mem)
{
	return mem->niov ? mem->niov : 1;
}

static struct iovec piece_of(const struct rpcrdma_memory *mem, unsigned i)
{
	return mem->niov ? mem->iov[i] : (struct iovec){ mem->addr, mem->len };
}

static int add_segments(struct request_slot *slot, struct request_chunk *chunk,
			struct iovec piece, struct rpcrdma_region *region,
			const struct terms *t)
{
	size_t max = t->segment_size ? t->segment_size : piece.iov_len;
	uint8_t *at = piece.iov_base;
	struct rpcrdma_lent *seg;
	int err;

	while (piece.iov_len > 0) {
		if (slot->nsegs == RPCRDMA_REQUEST_SEGS)
			return -EMSGSIZE;
		seg = &slot->seg[slot->nsegs];
		seg->addr = at;
		seg->len = (uint32_t)MIN(max, piece.iov_len);
		seg->once = t->once;
		seg->may_window = slot->nwindows < REQUEST_WINDOWS;
		err = rpcrdma_regions_lend(t->regions, region, t->access, seg);
		if (err < 0)
			return err;
		slot->nwindows += seg->window != NULL;
		slot->nsegs++;
		chunk->nsegs++;
		at += seg->len;
		piece.iov_len -= seg->len;
	}
	return 0;
}

/* The data of a padded call goes inline. */
static unsigned nreads(const struct request_slot *slot)
{
	return slot->padded ? 0 : slot->request->nreads;
}

static int add_chunk(struct request_slot *slot, struct request_chunk *chunk,
		     const struct rpcrdma_memory *mem, const struct terms *t)
{
	int err = 0;

	chunk->seg = &slot->seg[slot->nsegs];
	chunk->nsegs = 0;
	for (unsigned i = 0; i < pieces(mem) && err == 0; i++)
		err = add_segments(slot, chunk, piece_of(mem, i), mem->region,
				   t);
	return err;
}

static int lend_all(struct request_slot *slot, struct rpcrdma_regions *regions,
		    bool long_call, uint32_t segment_size)
{
	struct rpcrdma_request *q = slot->request;
	const struct terms from = { regions, FABRIC_REMOTE_READ, segment_size,
				    q->uncached };
	const struct terms to = { regions, FABRIC_REMOTE_WRITE, segment_size,
				  q->uncached };
	/* It can hold credentials: make sure that it can't be reached later. */
	const struct terms message = { regions, FABRIC_REMOTE_READ,
				       segment_size, true };
	struct rpcrdma_memory call = { .len = long_call ? q->call_len : 0 };
	struct rpcrdma_memory reply = { .len = 0 };
	int err;

	/* Read only; fabric_mr_create() has no const. */
	memcpy(&call.addr, &q->call, sizeof(call.addr));
	err = add_chunk(slot, &slot->call, &call, &message);
	for (unsigned i = 0; i < nreads(slot) && err == 0; i++)
		err = add_chunk(slot, &slot->read[i], &q->read[i].mem, &from);
	for (unsigned i = 0; i < q->nwrites && err == 0; i++)
		err = add_chunk(slot, &slot->write[i], &q->write[i], &to);
	if (!slot->fetch)
		reply = q->reply;
	if (err == 0)
		err = add_chunk(slot, &slot->reply, &reply, &to);
	return err;
}

int request_take_back(struct request_slot *slot,
		      struct rpcrdma_regions *regions)
{
	int one, err = 0;

	while (slot->nsegs > 0) {
		one = rpcrdma_regions_take_back(regions,
						&slot->seg[--slot->nsegs]);
		err = one < 0 ? one : err;
	}
	return err;
}

bool request_has_own_handles(const struct request_slot *slot)
{
	for (unsigned i = 0; i < slot->nsegs; i++)
		if (slot->seg[i].region && !slot->seg[i].window)
			return false;
	return true;
}

bool request_has_handle(const struct request_slot *slot, uint32_t handle)
{
	for (unsigned i = 0; i < slot->nsegs; i++)
		if (slot->seg[i].mr->rkey == handle)
			return true;
	return false;
}

static void put_segment(struct xdr_out *x, const struct rpcrdma_lent *seg)
{
	xdr_put_u32(x, seg->mr->rkey);
	xdr_put_u32(x, seg->len);
	xdr_put_u64(x, (uintptr_t)seg->addr);
}

static void put_read(struct xdr_out *x, const struct request_chunk *chunk,
		     uint32_t position)
{
	for (unsigned i = 0; i < chunk->nsegs; i++) {
		xdr_put_bool(x, true);
		xdr_put_u32(x, position);
		put_segment(x, &chunk->seg[i]);
	}
}

static void put_chunk(struct xdr_out *x, const struct request_chunk *chunk)
{
	xdr_put_bool(x, true);
	xdr_put_u32(x, chunk->nsegs);
	for (unsigned i = 0; i < chunk->nsegs; i++)
		put_segment(x, &chunk->seg[i]);
}

static void put_header(struct xdr_out *x, const struct request_slot *slot,
		       uint32_t credits, bool long_call)
{
	const struct rpcrdma_request *q = slot->request;

	xdr_put_u32(x, slot->xid);
	xdr_put_u32(x, RPCRDMA_VERSION);
	xdr_put_u32(x, credits);
	xdr_put_u32(x, slot->padded ? RPCRDMA_MSGP :
		    long_call ? RPCRDMA_NOMSG : RPCRDMA_MSG);
	if (slot->padded) {
		xdr_put_u32(x, slot->options->pad_align);
		xdr_put_u32(x, slot->options->pad_thresh);
	}
	put_read(x, &slot->call, 0);
	for (unsigned i = 0; i < nreads(slot); i++)
		put_read(x, &slot->read[i], q->read[i].position);
	xdr_put_bool(x, false);
	for (unsigned i = 0; i < q->nwrites; i++)
		put_chunk(x, &slot->write[i]);
	xdr_put_bool(x, false);
	if (slot->reply.nsegs > 0)
		put_chunk(x, &slot->reply);
	else
		xdr_put_bool(x, false);
}

/* Counts the segments of a chunk. */
static uint32_t segments(const struct rpcrdma_memory *mem, uint32_t size)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < pieces(mem); i++) {
		size_t len = piece_of(mem, i).iov_len;

		if (len > 0)
			n += size ? (len + size - 1) / size : 1;
	}
	return (uint32_t)MIN(n, RPCRDMA_REQUEST_SEGS + 1u);
}

/* Returns the length of the header of a request whose call goes inline. */
static uint32_t header_len(const struct request_slot *slot, uint32_t size)
{
	const struct rpcrdma_request *q = slot->request;
	uint32_t len = RPCRDMA_HEADER_MIN + (slot->padded ? 8 : 0);

	for (unsigned i = 0; i < nreads(slot); i++)
		len += 24 * segments(&q->read[i].mem, size);
	for (unsigned i = 0; i < q->nwrites; i++)
		len += 8 + 16 * segments(&q->write[i], size);
	if (q->reply.len > 0 && !slot->fetch)
		len += 4 + 16 * segments(&q->reply, size);
	return len;
}

/*
 * True if the call ends in an opaque of at least the threshold, which is its
 * only source and can be copied: the word before it is its length, roundup or
 * not.
 */
static bool ends_in_data(const struct request_slot *slot)
{
	const struct rpcrdma_request *q = slot->request;
	uint32_t n;

	if (q->nreads != 1 || q->read[0].position != q->call_len ||
	    q->call_len < 4 || q->call_len % 4 || q->read[0].mem.len == 0 ||
	    rpcrdma_is_dmabuf(&q->read[0].mem))
		return false;
	n = xdr_word((const uint8_t *)q->call + q->call_len - 4);
	return n >= slot->options->pad_thresh && n <= q->read[0].mem.len &&
	       n + xdr_pad(n) >= q->read[0].mem.len;
}

/* RDMA_MSGP (RFC 5666 section 3.9).  Returns the length of the message; 0: the
 * call is not for that, or too long for a Send. */
static uint32_t padded_len(struct request_slot *slot, uint32_t inline_size,
			   uint32_t segment_size)
{
	const struct rpcrdma_request *q = slot->request;
	uint32_t align = slot->options->pad_align;
	uint64_t at;

	slot->padded = align && !q->long_call && ends_in_data(slot);
	if (!slot->padded)
		return 0;
	at = header_len(slot, segment_size) + (uint64_t)q->call_len;
	if (at <= inline_size)
		at += rpcrdma_msgp_pad(align, (uint32_t)at) +
		      ALIGN_UP((uint64_t)q->read[0].mem.len, 4);
	slot->padded = at <= inline_size;
	return slot->padded ? (uint32_t)at : 0;
}

/* Puts the pad, the data and its roundup at @at; the message ends at @end. */
static void put_padded(const struct rpcrdma_memory *data, uint8_t *at,
		       uint8_t *end)
{
	memset(at, 0, (size_t)(end - at));
	at = end - ALIGN_UP(data->len, 4u);
	for (unsigned i = 0; i < pieces(data); i++) {
		struct iovec piece = piece_of(data, i);

		if (piece.iov_len > 0)
			memcpy(at, piece.iov_base, piece.iov_len);
		at += piece.iov_len;
	}
}

int request_marshal(struct request_slot *slot, struct rpcrdma_regions *regions,
		    uint32_t inline_size, uint32_t credits,
		    uint32_t segment_size)
{
	struct rpcrdma_request *q = slot->request;
	uint32_t padded = padded_len(slot, inline_size, segment_size);
	uint64_t len = header_len(slot, segment_size) + (uint64_t)q->call_len;
	bool long_call = q->long_call || len > inline_size;
	struct xdr_out x;
	int err;

	slot->nsegs = slot->nwindows = 0;
	err = lend_all(slot, regions, long_call, segment_size);
	if (err < 0)
		return err;
	xdr_out_init(&x, slot->buf, inline_size);
	put_header(&x, slot, credits, long_call);
	if (x.bad)
		return -EMSGSIZE;
	if (long_call)
		return (int)xdr_out_len(&x);
	memcpy(x.p, q->call, q->call_len);
	if (!padded)
		return (int)(xdr_out_len(&x) + q->call_len);
	put_padded(&q->read[0].mem, x.p + q->call_len, slot->buf + padded);
	return (int)padded;
}

/* True if @got is the offered chunk, with no segment longer than offered. */
static bool returned(struct rpcrdma_chunk got,
		     const struct request_chunk *offered)
{
	if (got.nsegs != offered->nsegs)
		return false;
	for (uint32_t i = 0; got.nsegs > 0; i++) {
		struct rpcrdma_segment seg = rpcrdma_chunk_take(&got);
		const struct rpcrdma_lent *lent = &offered->seg[i];

		if (seg.handle != lent->mr->rkey || seg.length > lent->len ||
		    seg.offset != (uintptr_t)lent->addr)
			return false;
	}
	return true;
}

/*
 * Filled contiguously, in order (RFC 8166 section 3.4.6): the first segment
 * that is not full is the last used one.
 */
static bool contiguous(struct rpcrdma_chunk got,
		       const struct request_chunk *offered)
{
	bool over = false;

	for (uint32_t i = 0; got.nsegs > 0; i++) {
		struct rpcrdma_segment seg = rpcrdma_chunk_take(&got);

		if (over && seg.length > 0)
			return false;
		over = over || seg.length < offered->seg[i].len;
	}
	return true;
}

static bool lists_ok(const struct request_slot *slot,
		     const struct rpcrdma_header *h)
{
	const struct rpcrdma_request *q = slot->request;
	struct rpcrdma_chunk got;

	if (h->nreads > 0 || (h->nwrites > 0 && h->nwrites != q->nwrites))
		return false;
	for (uint32_t i = 0; rpcrdma_write_next(h, i, &got); i++)
		if (!returned(got, &slot->write[i]) ||
		    !contiguous(got, &slot->write[i]))
			return false;
	if (!h->has_reply)
		return true;
	return returned(h->reply, &slot->reply) &&
	       contiguous(h->reply, &slot->reply);
}

/* Checks the start of the reply. */
static int check_reply(const struct request_slot *slot)
{
	const struct rpcrdma_request *q = slot->request;

	if (q->reply_len < 4 || xdr_word(q->reply_data) != slot->xid)
		return -EIO;
	return 0;
}

static int find_payload(struct request_slot *slot,
			const struct rpcrdma_header *h, const uint8_t *msg,
			uint32_t len)
{
	struct rpcrdma_request *q = slot->request;

	if (h->proc == RPCRDMA_MSG) {
		if (h->has_reply && h->reply.length > 0)
			return -EIO;
		q->reply_data = msg + h->len;
		q->reply_len = len - h->len;
	} else if (h->proc == RPCRDMA_NOMSG) {
		if (!h->has_reply || h->reply.length == 0)
			return -EIO;
		q->nomsg = true;
		q->reply_data = q->reply.addr;
		q->reply_len = (uint32_t)h->reply.length;
	} else {
		return -EIO;
	}
	return check_reply(slot);
}

void request_complete_fetched(struct request_slot *slot, uint32_t len)
{
	struct rpcrdma_request *q = slot->request;

	q->nomsg = true;
	q->reply_data = q->reply.addr;
	q->reply_len = len;
	for (unsigned i = 0; i < q->nwrites; i++)
		q->written[i] = 0;
	q->status = check_reply(slot);
}

void request_complete(struct request_slot *slot,
		      const struct rpcrdma_header *h, const uint8_t *msg,
		      uint32_t len)
{
	struct rpcrdma_request *q = slot->request;
	struct rpcrdma_chunk got;

	q->nomsg = false;
	if (h->proc == RPCRDMA_ERROR) {
		q->errcode = h->err;
		q->status = -EREMOTEIO;
		return;
	}
	if (!lists_ok(slot, h)) {
		q->status = -EIO;
		return;
	}
	for (uint32_t i = 0; i < q->nwrites; i++)
		q->written[i] = rpcrdma_write_next(h, i, &got) ?
				(uint32_t)got.length : 0;
	q->status = find_payload(slot, h, msg, len);
}
