/* SPDX-License-Identifier: BSD-2-Clause */
/* push - the steps of a reply: Writes into chunks, then the Send. */
#include "transport/rpcrdma/push.h"

#include "lib/probe.h"

void rpcrdma_gather_add(struct rpcrdma_gather *g, struct fabric_sge sge)
{
	struct fabric_sge *last = g->n > 0 ? &g->piece[g->n - 1] : NULL;

	if (sge.len == 0)
		return;
	g->len += sge.len;
	if (last && last->lkey == sge.lkey &&
	    (uint8_t *)last->addr + last->len == sge.addr) {
		last->len += sge.len;
		return;
	}
	g->piece[g->n++] = sge;
}

static struct fabric_wr *add_step(struct rpcrdma_push *p,
				  enum fabric_opcode opcode)
{
	struct fabric_wr *wr = &p->call->wr[p->steps];

	*wr = (struct fabric_wr){
		.opcode = opcode,
		.sge = &p->call->sge[p->sges],
	};
	if (p->steps > 0)
		p->call->wr[p->steps - 1].next = wr;
	p->steps++;
	return wr;
}

static void add_sge(struct rpcrdma_push *p, struct fabric_wr *wr,
		    struct fabric_sge sge)
{
	p->call->sge[p->sges++] = sge;
	wr->nsge++;
}

/* A place in a gather. */
struct cursor {
	const struct rpcrdma_gather *g;
	unsigned piece;
	uint32_t off;		/* offset in the piece */
	uint32_t left;		/* bytes left in the gather */
};

/* Adds at most @max bytes of one piece to @wr; returns their number. */
static uint32_t push_take(struct rpcrdma_push *p, struct fabric_wr *wr,
			  struct cursor *c, uint32_t max)
{
	struct fabric_sge sge = c->g->piece[c->piece];

	sge.addr = (uint8_t *)sge.addr + c->off;
	sge.len = MIN(sge.len - c->off, max);
	add_sge(p, wr, sge);
	c->off += sge.len;
	c->left -= sge.len;
	if (c->off == c->g->piece[c->piece].len) {
		c->piece++;
		c->off = 0;
	}
	return sge.len;
}

/* Fills one segment, with as many Writes as the pieces need. */
static void push_fill(struct rpcrdma_push *p, struct rpcrdma_segment seg,
		      struct cursor *c, unsigned max_sge)
{
	struct fabric_wr *wr;
	uint32_t n;

	while (seg.length > 0 && c->left > 0) {
		wr = add_step(p, FABRIC_WRITE);
		wr->handle = seg.handle;
		wr->offset = seg.offset;
		while (wr->nsge < max_sge && seg.length > 0 && c->left > 0) {
			n = push_take(p, wr, c, seg.length);
			seg.offset += n;
			seg.length -= n;
		}
	}
}

void rpcrdma_push_write(struct rpcrdma_push *p,
			const struct rpcrdma_chunk *chunk,
			const struct rpcrdma_gather *g)
{
	struct rpcrdma_chunk rest = *chunk;
	struct cursor c = { .g = g, .left = g->len };
	unsigned max_sge = rpcrdma_call_conn(p->call)->max_sge;

	PROBE(rdma_write_posted, &p->call->msg, p->call->msg.xprt, g->len,
	      chunk->nsegs);
	while (rest.nsegs > 0 && c.left > 0)
		push_fill(p, rpcrdma_chunk_take(&rest), &c, max_sge);
}

void rpcrdma_push_send(struct rpcrdma_push *p, const struct rpcrdma_gather *g,
		       bool invalidate)
{
	struct fabric_wr *wr = add_step(p, invalidate ? FABRIC_SEND_INV :
						FABRIC_SEND);

	PROBE(rdma_send_posted, &p->call->msg, p->call->msg.xprt, g->len,
	      p->steps);
	if (invalidate)
		wr->invalidate = p->call->handle;
	for (unsigned i = 0; i < g->n; i++)
		add_sge(p, wr, g->piece[i]);
}
