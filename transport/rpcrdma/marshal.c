/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * marshal - a request becomes a message; a reply becomes its result.
 *
 * Errors: a reply is accepted only within the rules of RFC 8166: it has the
 * offered chunks, no others, and lengths that add up.  A reply may leave out a
 * whole list of unused chunks, as for other clients: some responders don't
 * return them (sections 4.3.2.2 and 4.3.3).
 */
#include "transport/rpcrdma/request.h"

#include <errno.h>
#include <string.h>

#include <endian.h>

/* The access of a registration. */
struct terms {
	struct fabric_device *dev;
	unsigned access;
	uint32_t segment_size;		/* at most; 0: as long as the chunk */
};

static int add_chunk(struct request_slot *slot, struct request_chunk *chunk,
		     struct rpcrdma_memory mem, const struct terms *t)
{
	uint32_t max = t->segment_size ? t->segment_size : mem.len;
	uint8_t *at = mem.addr;
	int err;

	chunk->mr = &slot->mr[slot->nmrs];
	chunk->nsegs = 0;
	while (mem.len > 0) {
		uint32_t n = MIN(max, mem.len);

		if (slot->nmrs == RPCRDMA_REQUEST_SEGS)
			return -EMSGSIZE;
		err = fabric_mr_create(t->dev, at, n, t->access,
				       &slot->mr[slot->nmrs]);
		if (err < 0)
			return err;
		slot->nmrs++;
		chunk->nsegs++;
		at += n;
		mem.len -= n;
	}
	return 0;
}

static int register_all(struct request_slot *slot, struct fabric_device *dev,
			bool long_call, uint32_t segment_size)
{
	struct rpcrdma_request *q = slot->request;
	const struct terms from = { dev, FABRIC_REMOTE_READ, segment_size };
	const struct terms to = { dev, FABRIC_REMOTE_WRITE, segment_size };
	struct rpcrdma_memory call = { .len = long_call ? q->call_len : 0 };
	struct rpcrdma_memory reply = { .len = 0 };
	int err;

	/* Read only; fabric_mr_create() has no const. */
	memcpy(&call.addr, &q->call, sizeof(call.addr));
	err = add_chunk(slot, &slot->call, call, &from);
	for (unsigned i = 0; i < q->nreads && err == 0; i++)
		err = add_chunk(slot, &slot->read[i], q->read[i].mem, &from);
	for (unsigned i = 0; i < q->nwrites && err == 0; i++)
		err = add_chunk(slot, &slot->write[i], q->write[i], &to);
	if (!slot->fetch)
		reply = q->reply;
	if (err == 0)
		err = add_chunk(slot, &slot->reply, reply, &to);
	return err;
}

void request_unregister(struct request_slot *slot)
{
	while (slot->nmrs > 0)
		fabric_mr_destroy(slot->mr[--slot->nmrs]);
}

bool request_has_handle(const struct request_slot *slot, uint32_t handle)
{
	for (unsigned i = 0; i < slot->nmrs; i++)
		if (slot->mr[i]->rkey == handle)
			return true;
	return false;
}

static void put_segment(struct xdr_out *x, const struct fabric_mr *mr)
{
	xdr_put_u32(x, mr->rkey);
	xdr_put_u32(x, (uint32_t)mr->len);
	xdr_put_u64(x, (uintptr_t)mr->addr);
}

static void put_read(struct xdr_out *x, const struct request_chunk *chunk,
		     uint32_t position)
{
	for (unsigned i = 0; i < chunk->nsegs; i++) {
		xdr_put_bool(x, true);
		xdr_put_u32(x, position);
		put_segment(x, chunk->mr[i]);
	}
}

static void put_chunk(struct xdr_out *x, const struct request_chunk *chunk)
{
	xdr_put_bool(x, true);
	xdr_put_u32(x, chunk->nsegs);
	for (unsigned i = 0; i < chunk->nsegs; i++)
		put_segment(x, chunk->mr[i]);
}

static void put_header(struct xdr_out *x, const struct request_slot *slot,
		       uint32_t credits, bool long_call)
{
	const struct rpcrdma_request *q = slot->request;

	xdr_put_u32(x, slot->xid);
	xdr_put_u32(x, RPCRDMA_VERSION);
	xdr_put_u32(x, credits);
	xdr_put_u32(x, long_call ? RPCRDMA_NOMSG : RPCRDMA_MSG);
	put_read(x, &slot->call, 0);
	for (unsigned i = 0; i < q->nreads; i++)
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

static uint32_t segments(uint32_t len, uint32_t size)
{
	if (len == 0)
		return 0;
	return size ? (len + size - 1) / size : 1;
}

/* Returns the length of the header of a request whose call goes inline. */
static uint32_t header_len(const struct request_slot *slot, uint32_t size)
{
	const struct rpcrdma_request *q = slot->request;
	uint32_t len = RPCRDMA_HEADER_MIN;

	for (unsigned i = 0; i < q->nreads; i++)
		len += 24 * segments(q->read[i].mem.len, size);
	for (unsigned i = 0; i < q->nwrites; i++)
		len += 8 + 16 * segments(q->write[i].len, size);
	if (q->reply.len > 0 && !slot->fetch)
		len += 4 + 16 * segments(q->reply.len, size);
	return len;
}

int request_marshal(struct request_slot *slot, struct fabric_device *dev,
		    uint32_t inline_size, uint32_t credits,
		    uint32_t segment_size)
{
	struct rpcrdma_request *q = slot->request;
	uint64_t len = header_len(slot, segment_size) + (uint64_t)q->call_len;
	bool long_call = q->long_call || len > inline_size;
	struct xdr_out x;
	int err;

	slot->nmrs = 0;
	err = register_all(slot, dev, long_call, segment_size);
	if (err < 0)
		return err;
	xdr_out_init(&x, slot->buf, inline_size);
	put_header(&x, slot, credits, long_call);
	if (x.bad)
		return -EMSGSIZE;
	if (long_call)
		return (int)xdr_out_len(&x);
	memcpy(x.p, q->call, q->call_len);
	return (int)(xdr_out_len(&x) + q->call_len);
}

/* True if @got is the offered chunk, with no segment longer than offered. */
static bool returned(struct rpcrdma_chunk got,
		     const struct request_chunk *offered)
{
	if (got.nsegs != offered->nsegs)
		return false;
	for (uint32_t i = 0; got.nsegs > 0; i++) {
		struct rpcrdma_segment seg = rpcrdma_chunk_take(&got);
		const struct fabric_mr *mr = offered->mr[i];

		if (seg.handle != mr->rkey || seg.length > mr->len ||
		    seg.offset != (uintptr_t)mr->addr)
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
		over = over || seg.length < offered->mr[i]->len;
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
	uint32_t xid;

	if (q->reply_len < sizeof(xid))
		return -EIO;
	memcpy(&xid, q->reply_data, sizeof(xid));
	return be32toh(xid) == slot->xid ? 0 : -EIO;
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
