/* SPDX-License-Identifier: BSD-2-Clause */
/* answer - a requester's answer to a call of the responder. */
#include "transport/rpcrdma/answer.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/util.h"

/* The place of an answer, until its Send is done. */
struct answer_slot {
	struct fabric_op   op;
	struct fabric_wr   wr;
	struct fabric_sge  sge;
	struct rpcrdma_answers *a;	/* borrowed: part of it */
	bool		   sending;
};

bool rpcrdma_answer_is_due(const struct rpcrdma_header *h, const uint8_t *msg,
			   uint32_t len)
{
	/* The RPC message, with its type, is not inline. */
	if (h->proc == RPCRDMA_NOMSG)
		return h->nreads > 0;
	return (h->proc == RPCRDMA_MSG || h->proc == RPCRDMA_MSGP) &&
	       rpcrdma_header_carries_call(h, msg, len);
}

uint32_t rpcrdma_answer_make(const struct rpcrdma_answers *a,
			     const struct rpcrdma_header *h,
			     const uint8_t *msg, uint32_t len,
			     struct xdr_out *out)
{
	const struct rpcrdma_header bare = { .xid = h->xid, .vers = h->vers };
	struct rpcrdma_reply r = { .call = &bare, .credits = a->credits,
				   .proc = RPCRDMA_MSG };
	uint32_t n;

	if (h->proc != RPCRDMA_MSG || h->nreads > 0 || h->nwrites > 0 ||
	    h->has_reply) {
		rpcrdma_error_encode(out, &bare, a->credits, RPCRDMA_ERR_CHUNK);
		return (uint32_t)xdr_out_len(out);
	}
	rpcrdma_reply_encode(out, &r);
	n = a->make(a->arg, msg + h->len, len - h->len, out->p,
		    (uint32_t)(out->end - out->p));
	return n > 0 ? (uint32_t)xdr_out_len(out) + n : 0;
}

static struct answer_slot *free_answer(struct rpcrdma_answers *a)
{
	for (unsigned i = 0; i < a->credits; i++)
		if (!a->slots[i].sending)
			return &a->slots[i];
	return NULL;
}

bool rpcrdma_answer(struct rpcrdma_answers *a, struct requester_recv *recv,
		    const struct rpcrdma_header *h, uint32_t len)
{
	struct answer_slot *slot = free_answer(a);
	struct xdr_out x;

	if (!slot) {
		recv->len = len;
		cds_list_add_tail(&recv->waiting, &a->waiting);
		return false;
	}
	xdr_out_init(&x, slot->sge.addr, a->room);
	slot->sge.len = rpcrdma_answer_make(a, h, recv->buf, len, &x);
	if (slot->sge.len == 0)
		return true;
	slot->sending = true;
	if (fabric_post(a->fc, &slot->wr) < 0) {
		slot->sending = false;
		fabric_close(a->fc);
	}
	return true;
}

/* Answers the call that waits longest, and posts its Receive again. */
static void answer_sent(struct fabric_op *op, int status, uint32_t len)
{
	struct answer_slot *slot = container_of(op, struct answer_slot, op);
	struct rpcrdma_answers *a = slot->a;
	struct requester_recv *recv;
	struct rpcrdma_header h;

	slot->sending = false;
	if (status < 0) {
		fabric_close(a->fc);
		return;
	}
	if (cds_list_empty(&a->waiting))
		return;
	recv = cds_list_first_entry(&a->waiting, struct requester_recv,
				    waiting);
	cds_list_del(&recv->waiting);
	rpcrdma_header_decode(recv->buf, recv->len, &h);
	rpcrdma_answer(a, recv, &h, recv->len);
	fabric_post_recv(a->fc, &recv->wr);
}

int rpcrdma_answers_init(struct rpcrdma_answers *a)
{
	CDS_INIT_LIST_HEAD(&a->waiting);
	if (a->credits == 0)
		return 0;
	a->slots = calloc(a->credits, sizeof(*a->slots));
	return a->slots ? 0 : -ENOMEM;
}

void rpcrdma_answers_place(struct rpcrdma_answers *a, uint8_t *memory,
			   size_t size, uint32_t lkey)
{
	for (unsigned i = 0; i < a->credits; i++) {
		struct answer_slot *slot = &a->slots[i];

		slot->a = a;
		slot->op.done = answer_sent;
		slot->sge.addr = memory + i * size;
		slot->sge.lkey = lkey;
		slot->wr = (struct fabric_wr){
			.opcode = FABRIC_SEND, .op = &slot->op,
			.sge = &slot->sge, .nsge = 1 };
	}
}

void rpcrdma_answers_fini(struct rpcrdma_answers *a)
{
	free(a->slots);
}
