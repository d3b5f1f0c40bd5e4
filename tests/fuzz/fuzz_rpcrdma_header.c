/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RPC-over-RDMA messages of any bytes: decoded parts must lie within the
 * message, splice into a call that does so as well, and make replies that can
 * be decoded again.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "transport/rpcrdma/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(bool ok)
{
	if (!ok)
		abort();
}

static void check_chunk(struct rpcrdma_chunk c, const uint8_t *data,
			size_t len)
{
	uint64_t sum = 0;

	while (c.nsegs > 0) {
		check(c.wire >= data && c.wire + 16 <= data + len);
		sum += rpcrdma_chunk_take(&c).length;
	}
	check(sum == c.length);
}

static void check_layout(const struct rpcrdma_header *h, uint32_t body)
{
	struct xdr_seg segs[MSG_MAX_SEGS];
	struct rpcrdma_layout l;
	uint32_t total = 0, n;
	static uint8_t base[MSG_MAX_LEN], sink[MSG_MAX_LEN];

	if (rpcrdma_layout_plan(h, body, &l) < 0)
		return;
	/* Of a longer call only the beginning is pulled. */
	check(l.call_len <= MSG_MAX_LEN && l.sink_len <= MSG_MAX_LEN);
	check(l.call_len + l.cut <= MSG_MAX_TAKEN + 4);
	check(l.npieces <= MSG_MAX_SEGS);
	if (l.pzrc)
		body = l.pull_len[0];
	for (uint32_t i = 0; i < l.npieces; i++) {
		const struct rpcrdma_piece *p = &l.piece[i];

		check(i + 1 == l.npieces || p->len % 4 == 0);
		check((uint64_t)p->off + p->len <=
		      (p->chunk == RPCRDMA_BASE ? body : l.sink_len));
		total += p->len;
		/* Perhaps the count of the following items. */
		if (p->chunk == RPCRDMA_BASE && p->len >= 4)
			memcpy(base + p->off + p->len - 4, &h->xid, 4);
	}
	check(total == l.call_len);
	for (uint32_t i = 0; i < h->nreads; i++)
		check(l.pull_len[i] <= h->read[i].length &&
		      (uint64_t)l.sink_off[i] + l.pull_len[i] <= l.sink_len);
	n = rpcrdma_layout_splice(&l, base, sink, segs);
	check(n <= l.npieces);
	total = 0;
	while (n-- > 0)
		total += segs[n].len;
	check(total == l.call_len);
}

static void check_reply(const struct rpcrdma_header *h, uint8_t *call)
{
	struct rpcrdma_reply r = {
		.call = h, .credits = 1, .proc = RPCRDMA_MSG,
		.written = h->nwrites ? (uint32_t)h->write.length / 2 : 0,
		.reply_written = h->has_reply ? (uint32_t)h->reply.length : 0,
	};
	uint32_t len = h->reply_len;
	uint8_t *mem = malloc(len);
	struct rpcrdma_header again;
	struct xdr_out x;

	check(mem != NULL);
	xdr_out_init(&x, mem, len);
	rpcrdma_reply_encode(&x, &r);
	check(!x.bad && xdr_out_len(&x) == len);
	check(rpcrdma_header_decode(mem, len, &again) == 0);
	check(again.nwrites == h->nwrites && again.has_reply == h->has_reply);
	if (h->nwrites)
		check(again.write.length == r.written &&
		      again.write.nsegs == h->write.nsegs);
	/* In the place of the call it is the same. */
	xdr_out_init(&x, call, len);
	rpcrdma_reply_encode(&x, &r);
	check(memcmp(call, mem, len) == 0);
	free(mem);
}

static uint32_t make_none(void *arg, const uint8_t *call, uint32_t len,
			  uint8_t *reply, uint32_t room)
{
	uint32_t *end = arg;

	check(len >= 8 && len <= *end);
	return MIN(room, 4u);
}

/* As a requester takes a call of the responder. */
static void check_answer(const struct rpcrdma_header *h, const uint8_t *data,
			 uint32_t len)
{
	uint32_t left = len - h->len;
	const struct rpcrdma_answers how = {
		.credits = 1, .make = make_none, .arg = &left,
	};
	uint8_t mem[RPCRDMA_INLINE_MIN];
	struct rpcrdma_header again;
	struct xdr_out x;
	uint32_t n;

	if (!rpcrdma_answer_is_due(h, data, len))
		return;
	xdr_out_init(&x, mem, sizeof(mem));
	n = rpcrdma_answer_make(&how, h, data, len, &x);
	check(n > 0 && n <= sizeof(mem));
	check(rpcrdma_header_decode(mem, n, &again) == 0);
	check(again.xid == h->xid);
}

static void check_padded(const struct rpcrdma_header *h, const uint8_t *data,
			 uint32_t len)
{
	uint32_t at = 0, pad = 0;

	while (rpcrdma_msgp_find(h, data, len, at, &at, &pad)) {
		struct rpcrdma_layout l;

		if (rpcrdma_layout_plan(h, len - h->len, &l) < 0)
			return;
		check((uint64_t)at + pad <= len - h->len);
		rpcrdma_layout_unpad(&l, at, pad);
		check(l.call_len == len - h->len - pad);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct rpcrdma_private p;
	struct rpcrdma_chunk chunk;
	struct rpcrdma_header h;
	uint32_t handle;
	uint8_t *copy;

	rpcrdma_private_decode(data, len, &p);
	check(p.recv_size >= RPCRDMA_INLINE_MIN &&
	      p.recv_size <= RPCRDMA_INLINE_MAX);
	if (len > RPCRDMA_INLINE_MAX)
		return 0;
	copy = malloc(len ? len : 1);
	check(copy != NULL);
	memcpy(copy, data, len);
	if (rpcrdma_header_decode(copy, len, &h) == 0) {
		check(h.len <= len);
		for (uint32_t i = 0; i < h.nreads; i++)
			check_chunk(h.read[i], copy, len);
		for (uint32_t i = 0; rpcrdma_write_next(&h, i, &chunk); i++)
			check_chunk(chunk, copy, len);
		if (h.has_reply)
			check_chunk(h.reply, copy, len);
		rpcrdma_header_invalidate(&h, &handle);
		check_layout(&h, (uint32_t)len - h.len);
		check_answer(&h, copy, (uint32_t)len);
		if (h.proc == RPCRDMA_MSGP)
			check_padded(&h, copy, (uint32_t)len);
		if (h.proc <= RPCRDMA_MSGP)
			check_reply(&h, copy);
	}
	free(copy);
	return 0;
}
