/* SPDX-License-Identifier: BSD-2-Clause */
/* chunk - how chunks and inline content make up a call.  Pure. */
#include "transport/rpcrdma/proto.h"

#include <errno.h>

/*
 * Decides how much of each Read chunk to pull: all of it, unless the call is
 * longer than MSG_MAX_LEN.  Then the call's end is cut off, which must lie in
 * the last chunk.
 */
static int plan_cut(const struct rpcrdma_header *h, uint64_t total,
		    struct rpcrdma_layout *l)
{
	for (uint32_t i = 0; i < h->nreads; i++) {
		/* Cut short only where the total is refused. */
		l->pull_len[i] = (uint32_t)h->read[i].length;
		if (i > 0 || !l->pzrc)
			total += ALIGN_UP(h->read[i].length, (uint64_t)4);
	}
	l->cut = 0;
	if (total <= MSG_MAX_LEN)
		return 0;
	if (total > MSG_MAX_TAKEN || h->nreads == 0)
		return -E2BIG;
	l->cut = (uint32_t)ALIGN_UP(total - MSG_MAX_LEN, (uint64_t)4);
	if (l->cut > l->pull_len[h->nreads - 1])
		return -E2BIG;
	l->pull_len[h->nreads - 1] =
		ALIGN_UP(l->pull_len[h->nreads - 1], 4u) - l->cut;
	return 0;
}

/*
 * Gives each Read chunk its place in the sink.  Each place is rounded up: a pad
 * that the peer did not send has to fit (RFC 8166 section 3.4.5.2).
 */
static void plan_sink(const struct rpcrdma_header *h, struct rpcrdma_layout *l)
{
	uint32_t at = 0;

	for (uint32_t i = l->pzrc ? 1 : 0; i < h->nreads; i++) {
		l->sink_off[i] = at;
		at += ALIGN_UP(l->pull_len[i], 4u);
	}
	if (l->pzrc) {
		l->sink_off[0] = at;
		at += ALIGN_UP(l->pull_len[0], 4u);
	}
	l->sink_len = at;
}

static void add_piece(struct rpcrdma_layout *l, uint32_t chunk, uint32_t off,
		      uint32_t len)
{
	if (len > 0)
		l->piece[l->npieces++] = (struct rpcrdma_piece){
			.chunk = chunk, .off = off, .len = len };
}

int rpcrdma_layout_plan(const struct rpcrdma_header *h, uint32_t body_len,
			struct rpcrdma_layout *l)
{
	uint32_t base_len = body_len;
	uint32_t used = 0;		/* of the base */
	uint64_t at = 0;		/* in the call */
	int err;

	l->npieces = 0;
	l->pzrc = h->nreads > 0 && h->read[0].position == 0;
	/* A call begins either inline or in a Position-Zero chunk: RFC 8166
	 * sections 3.5.3 and 4.2.4. */
	if (l->pzrc != (h->proc == RPCRDMA_NOMSG))
		return -EBADMSG;
	if (!l->pzrc && h->nreads == RPCRDMA_MAX_READS)
		return -E2BIG;
	err = plan_cut(h, l->pzrc ? h->read[0].length : body_len, l);
	if (err < 0)
		return err;
	if (l->pzrc)
		base_len = l->pull_len[0];
	plan_sink(h, l);
	for (uint32_t i = l->pzrc ? 1 : 0; i < h->nreads; i++) {
		const struct rpcrdma_chunk *c = &h->read[i];
		uint32_t len = ALIGN_UP(l->pull_len[i], 4u);

		if (c->position < at || c->position - at > base_len - used)
			return -EBADMSG;
		add_piece(l, RPCRDMA_BASE, used, (uint32_t)(c->position - at));
		used += (uint32_t)(c->position - at);
		add_piece(l, i, l->sink_off[i], len);
		at = (uint64_t)c->position + len;
	}
	/* The bytes that were cut off end the call, as one more segment. */
	if (l->cut > 0 && ((h->nreads > l->pzrc && base_len > used) ||
			   l->npieces == MSG_MAX_SEGS))
		return -E2BIG;
	add_piece(l, RPCRDMA_BASE, used, base_len - used);
	l->call_len = (uint32_t)at + base_len - used;
	return 0;
}

/* True if an item with the count that ends @before has bytes in the roundup of
 * its chunk: bytes that the peer did not send. */
static bool lacks_bytes(const struct rpcrdma_layout *l,
			const struct rpcrdma_piece *p,
			const struct xdr_seg *before)
{
	return p->chunk != RPCRDMA_BASE && (l->pull_len[p->chunk] & 3) &&
	       before->len >= 4 &&
	       xdr_word(before->data + before->len - 4) >
	       l->pull_len[p->chunk];
}

/* Ends the call before the last word of the piece @i, which prevents its
 * decoding. */
static uint32_t end_before_roundup(struct rpcrdma_layout *l, uint32_t i,
				   struct xdr_seg *segs)
{
	uint32_t n = segs[i].len > 4 ? i + 1 : i;

	segs[i].len -= 4;
	l->cut = 0;
	l->call_len = 0;
	for (uint32_t k = 0; k < n; k++)
		l->call_len += segs[k].len;
	return n;
}

uint32_t rpcrdma_layout_splice(struct rpcrdma_layout *l, const uint8_t *base,
			       const uint8_t *sink, struct xdr_seg *segs)
{
	for (uint32_t i = 0; i < l->npieces; i++) {
		const struct rpcrdma_piece *p = &l->piece[i];

		segs[i].data = (p->chunk == RPCRDMA_BASE ? base : sink) +
			       p->off;
		segs[i].len = p->len;
		if (i > 0 && unlikely(lacks_bytes(l, p, &segs[i - 1])))
			return end_before_roundup(l, i, segs);
	}
	return l->npieces;
}

bool rpcrdma_msgp_find(const struct rpcrdma_header *h, const void *msg,
		       uint32_t len, uint32_t from, uint32_t *position,
		       uint32_t *pad)
{
	const uint8_t *body = (const uint8_t *)msg + h->len;
	uint32_t body_len = len - h->len;

	/* Data in Read chunks needs no pad. */
	if (h->align == 0 || h->nreads > 0)
		return false;
	for (uint32_t at = from + 4; at <= body_len; at += 4) {
		uint32_t n = xdr_word(body + at - 4);
		uint32_t gap = rpcrdma_msgp_pad(h->align, h->len + at);

		if (n < h->thresh || gap == 0 ||
		    body_len - at != (uint64_t)gap + n + xdr_pad(n))
			continue;
		*position = at;
		*pad = gap;
		return true;
	}
	return false;
}

void rpcrdma_layout_unpad(struct rpcrdma_layout *l, uint32_t position,
			  uint32_t pad)
{
	uint32_t len = l->piece[0].len;

	l->npieces = 0;
	add_piece(l, RPCRDMA_BASE, 0, position);
	add_piece(l, RPCRDMA_BASE, position + pad, len - position - pad);
	l->call_len = len - pad;
}

/* The search for the only handle among the segments of a call. */
struct handles {
	uint32_t only;
	bool	 any;
	bool	 unfit;
};

static void note_chunk(struct handles *s, struct rpcrdma_chunk chunk,
		       bool may_end_in_pad)
{
	while (chunk.nsegs > 0) {
		struct rpcrdma_segment seg = rpcrdma_chunk_take(&chunk);

		/* The handle of an empty segment need not be one. */
		if (seg.length == 0 || (s->any && seg.handle != s->only))
			s->unfit = true;
		if (may_end_in_pad && chunk.nsegs == 0 && seg.length == 4)
			s->unfit = true;
		s->any = true;
		s->only = seg.handle;
	}
}

bool rpcrdma_header_invalidate(const struct rpcrdma_header *h,
			       uint32_t *handle)
{
	struct handles s = { .any = false };
	struct rpcrdma_chunk chunk;

	for (uint32_t i = 0; i < h->nreads; i++)
		note_chunk(&s, h->read[i], false);
	for (uint32_t i = 0; rpcrdma_write_next(h, i, &chunk); i++)
		note_chunk(&s, chunk, true);
	if (h->has_reply)
		note_chunk(&s, h->reply, false);
	*handle = s.only;
	return s.any && !s.unfit;
}
