/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dial - makes a requester, from its memory to the start of its connection, and
 * frees it.
 *
 * All that the connection reports goes to requester.c.
 */
#include "transport/rpcrdma/request.h"

#include <errno.h>
#include <stdlib.h>

static void init_slot(struct rpcrdma_requester *r, struct request_slot *slot,
		      uint8_t *buf)
{
	slot->r = r;
	slot->options = &r->options;
	slot->buf = buf;
	slot->send_op.done = requester_send_done;
	slot->send_sge.addr = slot->buf;
	slot->send_sge.lkey = r->mr->lkey;
	slot->send_wr = (struct fabric_wr){
		.opcode = FABRIC_SEND, .op = &slot->send_op,
		.sge = &slot->send_sge, .nsge = 1 };
}

static void init_recv(struct rpcrdma_requester *r, struct requester_recv *recv,
		      uint8_t *buf)
{
	recv->r = r;
	recv->buf = buf;
	recv->op.done = requester_recv_done;
	recv->wr.op = &recv->op;
	recv->wr.sge = (struct fabric_sge){ buf, r->options.inline_size,
					    r->mr->lkey };
}

static int alloc_all(struct rpcrdma_requester *r)
{
	size_t n = r->options.credits, back = r->options.back_credits;
	size_t nrecvs = request_recvs(&r->options);
	size_t size = r->options.inline_size;
	size_t nfetches = r->options.read_read ? n : 0;
	size_t memory = (n + back + nrecvs) * size +
			nfetches * RPCRDMA_DONE_LEN;
	uint8_t *at;
	int err;

	r->slots = calloc(n, sizeof(*r->slots));
	r->recvs = calloc(nrecvs, sizeof(*r->recvs));
	r->memory = calloc(1, memory);
	r->fetches = (struct rpcrdma_fetches){
		.fc = r->fc, .here = requester_fetch_here,
		.acked = requester_fetch_acked };
	r->answers = (struct rpcrdma_answers){
		.credits = r->options.back_credits, .make = r->options.answer,
		.arg = r->options.arg, .fc = r->fc,
	};
	if (!r->slots || !r->recvs || !r->memory ||
	    rpcrdma_fetches_init(&r->fetches, (unsigned)nfetches) < 0 ||
	    rpcrdma_answers_init(&r->answers) < 0)
		return -ENOMEM;
	err = fabric_mr_create_for(r->fc, r->memory, memory, FABRIC_LOCAL,
				   &r->mr);
	if (err < 0)
		return err;
	at = r->memory;
	for (size_t i = 0; i < n; i++, at += size)
		init_slot(r, &r->slots[i], at);
	rpcrdma_answers_place(&r->answers, at, size, r->mr->lkey);
	at += back * size;
	for (size_t i = 0; i < nrecvs; i++, at += size)
		init_recv(r, &r->recvs[i], at);
	rpcrdma_fetches_place(&r->fetches, at, r->mr->lkey);
	for (size_t i = 0; i < nfetches; i++)
		r->slots[i].fetch = &r->fetches.fetch[i];
	return 0;
}

static int post_recvs(struct rpcrdma_requester *r)
{
	int err = 0;

	for (size_t i = 0; i < request_recvs(&r->options) && err == 0; i++)
		err = fabric_post_recv(r->fc, &r->recvs[i].wr);
	return err;
}

/* On the loop. */
static void requester_bring_up(void *arg)
{
	struct rpcrdma_requester *r = arg;
	const struct fabric_limits *limits = &r->fc->dev->limits;
	const struct fabric_queues q = request_queues(&r->options);
	const struct rpcrdma_private p = request_private(&r->options, limits);
	uint8_t data[RPCRDMA_PRIVATE_LEN];

	rpcrdma_private_encode(&p, data);
	r->start_err = fabric_setup(r->fc, r->loop, &q);
	if (r->start_err == 0)
		r->start_err = post_recvs(r);
	if (r->start_err == 0 &&
	    fabric_start(r->fc, data, r->options.no_private ? 0 : sizeof(data),
			 r->options.read_depth) < 0)
		fabric_close(r->fc);	/* requester_closed() comes */
}

/* On the loop. */
static void free_conn(void *arg)
{
	struct rpcrdma_requester *r = arg;

	rpcrdma_regions_fini(&r->regions);
	fabric_free(r->fc);
}

static void requester_free_all(struct rpcrdma_requester *r)
{
	if (r->fc)
		loop_call(r->loop, free_conn, r);
	if (r->mr)
		fabric_mr_destroy(r->mr);
	free(r->slots);
	rpcrdma_answers_fini(&r->answers);
	free(r->recvs);
	rpcrdma_fetches_fini(&r->fetches);
	free(r->memory);
	sem_destroy(&r->over);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

int rpcrdma_requester_create(const struct fabric *fabric,
			     const struct sockaddr *addr, struct loop *loop,
			     const struct rpcrdma_requester_options *options,
			     struct rpcrdma_requester **out)
{
	struct rpcrdma_requester *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->options = *options;
	request_fill_defaults(&r->options);
	r->loop = loop;
	r->window = 1;
	sem_init(&r->over, 0, 0);
	pthread_mutex_init(&r->lock, NULL);
	CDS_INIT_LIST_HEAD(&r->queue);
	err = fabric_connect(fabric, addr, &r->fc);
	if (err < 0)
		goto fail;
	r->fc->upper = r;
	r->fc->established = requester_established;
	r->fc->closed = requester_closed;
	r->fc->owed = requester_owed;
	request_fit_queues(&r->options, &r->fc->dev->limits);
	rpcrdma_regions_init(&r->regions, r->fc, options->windows,
			     r->options.cache_bytes, r->options.cache_pieces);
	/* The responder may reach the memory that our calls lend; no other peer
	 * may. */
	err = fabric_isolate(r->fc);
	if (err == 0)
		err = alloc_all(r);
	if (err < 0)
		goto fail;
	loop_call(loop, requester_bring_up, r);
	err = r->start_err;
	if (err < 0)
		goto fail;
	*out = r;
	return 0;

fail:
	requester_free_all(r);
	return err;
}

void rpcrdma_requester_destroy(struct rpcrdma_requester *r)
{
	fabric_close(r->fc);
	while (sem_wait(&r->over) && errno == EINTR)
		;
	requester_free_all(r);
}
