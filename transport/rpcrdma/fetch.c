/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fetch - reads replies that lie in the responder's memory.
 *
 * Operation: a fetch has one Read in flight at a time; all of them together
 * have at most as many as the responder allows, and the others wait in their
 * order.  The RDMA_DONE goes out before the caller has the reply, and so before
 * the next call: a responder that counts them never has more than our credits
 * exposed.  It takes a credit (RFC 5666 section 3.8) until a call is answered
 * that was sent behind it, since Receives take messages in their order.
 *
 * Ownership: the sink is registered from begin to here().  The RDMA_DONE has
 * separate memory, since the call's Send can still be in progress.
 *
 * Errors: a Read that fails ends the connection, which fails the request; it is
 * sent again if the caller does that (RFC 5666 section 11: the responder can
 * have taken the reply back).
 */
#include "transport/rpcrdma/fetch.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/util.h"

static void start_fetches(struct rpcrdma_fetches *all);

static void fetch_read_done(struct fabric_op *op, int status, uint32_t len)
{
	struct rpcrdma_fetch *f = container_of(op, struct rpcrdma_fetch, op);
	struct rpcrdma_fetches *all = f->all;

	if (status < 0) {
		fabric_close(all->fc);
		return;			/* the cancel follows */
	}
	all->room++;
	f->to += f->seg[f->next++].length;
	if (f->next < f->nsegs)
		cds_list_add_tail(&f->link, &all->waiting);
	start_fetches(all);
	if (f->next < f->nsegs)
		return;
	if (fabric_mr_destroy(f->sink) < 0) {
		/* An iWARP adapter had it open to the responder. */
		f->sink = NULL;
		fabric_close(all->fc);
		return;			/* the cancel follows */
	}
	f->sink = NULL;
	f->active = false;
	all->here(f);
}

static void fetch_ack_done(struct fabric_op *op, int status, uint32_t len)
{
	struct rpcrdma_fetch *f = container_of(op, struct rpcrdma_fetch,
					       ack_op);

	f->acking = false;
	if (status < 0)
		fabric_close(f->all->fc);
	else
		f->all->acked(f);
}

int rpcrdma_fetches_init(struct rpcrdma_fetches *all, unsigned n)
{
	CDS_INIT_LIST_HEAD(&all->waiting);
	all->n = n;
	all->fetch = calloc(n, sizeof(*all->fetch));
	return n == 0 || all->fetch ? 0 : -ENOMEM;
}

void rpcrdma_fetches_fini(struct rpcrdma_fetches *all)
{
	free(all->fetch);
}

void rpcrdma_fetches_place(struct rpcrdma_fetches *all, uint8_t *at,
			   uint32_t lkey)
{
	for (unsigned i = 0; i < all->n; i++, at += RPCRDMA_DONE_LEN) {
		struct rpcrdma_fetch *f = &all->fetch[i];

		f->all = all;
		f->op.done = fetch_read_done;
		f->ack_op.done = fetch_ack_done;
		f->ack_sge = (struct fabric_sge){ at, RPCRDMA_DONE_LEN, lkey };
	}
}

void rpcrdma_fetches_set_depth(struct rpcrdma_fetches *all, unsigned depth)
{
	all->depth = all->room = depth;
}

static void post_read(struct rpcrdma_fetch *f)
{
	const struct rpcrdma_segment *seg = &f->seg[f->next];

	f->sge = (struct fabric_sge){ f->to, seg->length, f->sink->lkey };
	f->wr = (struct fabric_wr){
		.opcode = FABRIC_READ, .op = &f->op, .sge = &f->sge, .nsge = 1,
		.handle = seg->handle, .offset = seg->offset,
	};
	f->all->room--;
	if (fabric_post(f->all->fc, &f->wr) < 0)
		fabric_close(f->all->fc);	/* the cancel follows */
}

static void start_fetches(struct rpcrdma_fetches *all)
{
	struct rpcrdma_fetch *f;

	while (all->room > 0 && !cds_list_empty(&all->waiting)) {
		f = cds_list_first_entry(&all->waiting, struct rpcrdma_fetch,
					 link);
		cds_list_del(&f->link);
		post_read(f);
	}
}

/*
 * Takes the segments of a reply that is one Position-Zero Read chunk, and
 * nothing else: our calls offer no chunk that could come back with it.
 */
static int take_segments(struct rpcrdma_fetch *f,
			 const struct rpcrdma_header *h)
{
	struct rpcrdma_chunk chunk = h->read[0];
	struct rpcrdma_segment seg;

	if (h->proc != RPCRDMA_NOMSG || h->nreads != 1 ||
	    chunk.position != 0 || h->nwrites > 0 || h->has_reply ||
	    chunk.length < sizeof(uint32_t) || chunk.nsegs > FETCH_SEGS)
		return -EIO;
	f->nsegs = 0;
	while (chunk.nsegs > 0) {
		seg = rpcrdma_chunk_take(&chunk);
		if (seg.length > 0)
			f->seg[f->nsegs++] = seg;
	}
	return 0;
}

int rpcrdma_fetch_begin(struct rpcrdma_fetch *f, const struct rpcrdma_header *h,
			struct rpcrdma_memory mem)
{
	struct rpcrdma_fetches *all = f->all;
	int err = take_segments(f, h);

	if (err < 0 || all->depth == 0)
		return -EIO;
	if (h->read[0].length > mem.len)
		return -EMSGSIZE;
	err = fabric_mr_create_for(all->fc, mem.addr, h->read[0].length,
				   FABRIC_READ_SINK, &f->sink);
	if (err < 0)
		return err;
	f->active = true;
	f->to = mem.addr;
	f->len = (uint32_t)h->read[0].length;
	f->next = 0;
	cds_list_add_tail(&f->link, &all->waiting);
	start_fetches(all);
	return 0;
}

void rpcrdma_fetch_answered(struct rpcrdma_fetch *f)
{
	/* Answers come in any order. */
	if ((int32_t)(f->before - f->all->taken) > 0)
		f->all->taken = f->before;
}

void rpcrdma_fetch_ack(struct rpcrdma_fetch *f, uint32_t xid)
{
	struct xdr_out x;

	xdr_out_init(&x, f->ack_sge.addr, RPCRDMA_DONE_LEN);
	rpcrdma_done_encode(&x, xid);
	f->ack_wr = (struct fabric_wr){ .opcode = FABRIC_SEND,
		.op = &f->ack_op, .sge = &f->ack_sge, .nsge = 1 };
	f->acking = fabric_post(f->all->fc, &f->ack_wr) == 0;
	f->all->acks += f->acking;
	if (!f->acking)
		fabric_close(f->all->fc);
}

void rpcrdma_fetch_cancel(struct rpcrdma_fetch *f)
{
	if (f->sink)
		fabric_mr_destroy(f->sink);
	f->sink = NULL;
	f->active = false;
	f->acking = false;
}
