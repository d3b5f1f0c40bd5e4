/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * requester - a client's connection, and the requests on it.
 *
 * Only queueing a request happens on other threads than the loop's.
 */
#include "transport/rpcrdma/requester.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include <endian.h>

#include "transport/rpcrdma/answer.h"
#include "transport/rpcrdma/request.h"

struct rpcrdma_requester {
	struct rpcrdma_requester_options options;
	struct fabric_conn  *fc;
	struct loop	    *loop;		/* borrowed */
	struct fabric_mr    *mr;
	uint8_t		    *memory;
	struct request_slot *slots;
	struct requester_recv   *recvs;
	struct rpcrdma_answers answers;
	struct rpcrdma_fetches fetches;
	struct rpcrdma_regions regions;
	sem_t		     over;		/* requester_closed() came */

	/* The loop's. */
	bool		     up;
	bool		     down;
	int		     start_err;
	struct rpcrdma_requester_info info;
	unsigned	     window;
	struct rpcrdma_request config;		/* with config_xid */
	uint8_t		     config_call[RPCRDMA_CONFIG_LEN];

	struct loop_task     task;
	/* Guards the fields below. */
	pthread_mutex_t	     lock;
	bool		     kicked;
	struct cds_list_head queue;		/* requests not sent */
};

static struct rpcrdma_request *next_queued(struct rpcrdma_requester *r)
{
	struct rpcrdma_request *q = NULL;

	mutex_lock(&r->lock);
	if (!cds_list_empty(&r->queue)) {
		q = cds_list_first_entry(&r->queue, struct rpcrdma_request,
					 link);
		cds_list_del(&q->link);
	}
	mutex_unlock(&r->lock);
	return q;
}

static struct request_slot *free_slot(struct rpcrdma_requester *r)
{
	for (unsigned i = 0; i < r->options.credits; i++)
		if (!r->slots[i].request && !r->slots[i].sending &&
		    !(r->slots[i].fetch && r->slots[i].fetch->acking))
			return &r->slots[i];
	return NULL;
}

static int requester_post(struct rpcrdma_requester *r,
			  struct request_slot *slot)
{
	int len = request_marshal(slot, &r->regions, r->info.send_inline,
				  r->options.credits,
				  r->options.segment_size);
	int err;

	if (len < 0)
		return len;
	slot->send_sge.len = (uint32_t)len;
	slot->sending = true;
	err = fabric_post(r->fc, &slot->send_wr);
	if (err < 0)
		slot->sending = false;
	return err;
}

/* The request is over, and its result is filled in; but the connection ends
 * first if its memory can still be reached (RFC 8166 section 4.5.4). */
static void requester_end(struct request_slot *slot)
{
	struct rpcrdma_request *q = slot->request;

	slot->over = request_take_back(slot, &slot->r->regions) < 0 &&
		     !slot->r->down;
	if (slot->over) {
		slot->r->up = false;	/* no more calls go out */
		fabric_close(slot->r->fc);
		return;			/* requester_closed() ends it */
	}
	slot->request = NULL;
	slot->r->info.in_flight--;
	q->done(q);
}

static void requester_start(struct rpcrdma_requester *r,
			    struct request_slot *slot,
			    struct rpcrdma_request *q)
{
	uint32_t xid;
	int err;

	memcpy(&xid, q->call, sizeof(xid));
	slot->xid = be32toh(xid);
	slot->request = q;
	if (slot->fetch)
		slot->fetch->before = r->fetches.acks;
	r->info.in_flight++;
	err = requester_post(r, slot);
	if (err == 0) {
		atomic_store(&q->sent, loop_now(r->loop));
		return;
	}
	q->status = err;
	requester_end(slot);
}

/* An RDMA_DONE takes a credit as well, until it is known to be taken; but one
 * call may always be under way (RFC 5666 section 3.8). */
static bool has_credit(const struct rpcrdma_requester *r)
{
	unsigned owed = rpcrdma_fetches_owed(&r->fetches);

	return r->info.in_flight == 0 || r->info.in_flight + owed < r->window;
}

static void requester_advance(struct rpcrdma_requester *r)
{
	struct rpcrdma_request *q;
	struct request_slot *slot;

	while (r->down && (q = next_queued(r))) {
		q->status = -ENOTCONN;
		q->done(q);
	}
	while (r->up && !r->down && has_credit(r) &&
	       (slot = free_slot(r)) && (q = next_queued(r)))
		requester_start(r, slot, q);
}

static void requester_send_done(struct fabric_op *op, int status, uint32_t len)
{
	struct request_slot *slot = container_of(op, struct request_slot,
						 send_op);

	slot->sending = false;
	if (status < 0)
		fabric_close(slot->r->fc);
	else if (!slot->request)	/* the reply came before the Send was
					 * done */
		requester_advance(slot->r);
}

static void requester_run(struct loop_task *t)
{
	struct rpcrdma_requester *r = container_of(t,
			struct rpcrdma_requester, task);

	mutex_lock(&r->lock);
	r->kicked = false;
	mutex_unlock(&r->lock);
	requester_advance(r);
}

void rpcrdma_requester_call(struct rpcrdma_requester *r,
			    struct rpcrdma_request *request)
{
	mutex_lock(&r->lock);
	cds_list_add_tail(&request->link, &r->queue);
	if (!r->kicked) {
		r->kicked = true;
		loop_post(r->loop, &r->task, requester_run);
	}
	mutex_unlock(&r->lock);
}

static struct request_slot *requester_find(struct rpcrdma_requester *r,
					   uint32_t xid)
{
	for (unsigned i = 0; i < r->options.credits; i++)
		if (r->slots[i].request && r->slots[i].xid == xid)
			return &r->slots[i];
	return NULL;
}

/* Takes the grant.  On a connection with calls in both directions that of an
 * RDMA_ERROR may be of either (RFC 8167 section 4.1). */
static void take_grant(struct rpcrdma_requester *r,
		       const struct rpcrdma_header *h)
{
	if (h->proc == RPCRDMA_ERROR && r->options.back_credits > 0)
		return;
	r->info.credits = h->credits;
	r->window = h->credits ? MIN(h->credits, r->options.credits) : 1;
}

/* The request that the message answers, or NULL.  RDMA_MSGP and RDMA_DONE
 * answer none (RFC 8166 section 4.6). */
static struct request_slot *answered_slot(struct rpcrdma_requester *r,
					  const struct rpcrdma_header *h)
{
	if (h->proc == RPCRDMA_MSGP || h->proc == RPCRDMA_DONE)
		return NULL;
	return requester_find(r, h->xid);
}

static struct request_slot *slot_of(struct rpcrdma_fetch *f)
{
	return &container_of(f->all, struct rpcrdma_requester, fetches)->slots[
		f - f->all->fetch];
}

static void fetch_is_here(struct rpcrdma_fetch *f)
{
	struct request_slot *slot = slot_of(f);

	slot->r->info.fetched++;
	request_complete_fetched(slot, f->len);
	rpcrdma_fetch_ack(f, slot->xid);
	requester_end(slot);
	requester_advance(slot->r);
}

static void fetch_is_acked(struct rpcrdma_fetch *f)
{
	requester_advance(slot_of(f)->r);
}

static void requester_reply(struct request_slot *slot,
			    const struct rpcrdma_header *h,
			    const uint8_t *msg, uint32_t len)
{
	struct rpcrdma_request *q = slot->request;

	/* RDMA_MSGP may be what the responder refused. */
	if (slot->padded && h->proc == RPCRDMA_ERROR)
		slot->r->options.pad_align = 0;
	if (slot->fetch)
		rpcrdma_fetch_answered(slot->fetch);
	if (slot->fetch && h->nreads > 0) {
		q->status = rpcrdma_fetch_begin(slot->fetch, h, q->reply);
		if (q->status == 0)
			return;		/* fetch_is_here() follows */
		/* The responder need not keep it. */
		rpcrdma_fetch_ack(slot->fetch, slot->xid);
	} else {
		request_complete(slot, h, msg, len);
	}
	requester_end(slot);
}

/* Takes a reply, or a call of the responder; drops all else (RFC 8166 section
 * 4.5).  False: the message is still needed, and keeps its Receive. */
static bool requester_take(struct rpcrdma_requester *r,
			   struct requester_recv *recv, uint32_t len)
{
	struct rpcrdma_header h;
	struct request_slot *slot;

	if (rpcrdma_header_decode(recv->buf, len, &h) < 0) {
		r->info.discarded++;
		return true;
	}
	if (r->answers.credits > 0 &&
	    rpcrdma_answer_is_due(&h, recv->buf, len)) {
		r->answers.room = r->info.send_inline;
		return rpcrdma_answer(&r->answers, recv, &h, len);
	}
	slot = answered_slot(r, &h);
	if (!slot || slot->over || (slot->fetch && slot->fetch->active)) {
		r->info.discarded++;
		return true;
	}
	/* A reply may invalidate only a handle of its own call (RFC 8797
	 * section 4.1). */
	if (recv->wr.has_invalidated) {
		r->info.invalidated++;
		if (!request_has_handle(slot, recv->wr.invalidated)) {
			fabric_close(r->fc);
			return true;
		}
	}
	take_grant(r, &h);
	requester_reply(slot, &h, recv->buf, len);
	return !slot->over;
}

static void requester_recv_done(struct fabric_op *op, int status, uint32_t len)
{
	struct requester_recv *recv = container_of(op, struct requester_recv,
						   op);
	struct rpcrdma_requester *r = recv->r;

	if (status < 0)
		return;			/* requester_closed() follows */
	if (requester_take(r, recv, len) &&
	    fabric_post_recv(r->fc, &recv->wr) == 0)
		requester_advance(r);
}

static void requester_go_up(struct rpcrdma_requester *r)
{
	r->up = true;
	if (r->options.connected)
		r->options.connected(r->options.arg);
	requester_advance(r);
}

/*
 * The responder's limits are here, or it does not tell them: then those of the
 * private data stay.  RFC 5666 section 6.1: both sides take 1 KiB anyway.
 */
static void limits_done(struct rpcrdma_request *q)
{
	struct rpcrdma_requester *r = container_of(q,
			struct rpcrdma_requester, config);
	struct xprt_limits theirs;

	if (q->status == 0 &&
	    rpcrdma_config_reply(q->reply_data, q->reply_len, &theirs)) {
		theirs.call = MAX(theirs.call, RPCRDMA_INLINE_MIN);
		r->info.send_inline = MIN(r->options.inline_size, theirs.call);
		r->info.recv_inline = r->options.inline_size;
		r->info.configured = true;
		rpcrdma_fetches_set_depth(&r->fetches, MIN(theirs.reads,
						r->fc->info.read_depth));
	}
	if (!r->down)
		requester_go_up(r);
}

/* Section 6.1: nothing else is sent before the reply. */
static void ask_limits(struct rpcrdma_requester *r)
{
	const struct xprt_limits ours = request_limits(&r->options,
						       &r->fc->dev->limits);

	rpcrdma_config_call(r->config_call, r->options.config_xid, &ours);
	r->config = (struct rpcrdma_request){
		.call = r->config_call, .call_len = RPCRDMA_CONFIG_LEN,
		.done = limits_done,
	};
	requester_start(r, &r->slots[0], &r->config);
}

static void requester_established(struct fabric_conn *fc)
{
	struct rpcrdma_requester *r = fc->upper;
	struct rpcrdma_private peer;

	r->info.private_data = rpcrdma_private_decode(fc->info.private_data,
						      fc->info.private_len,
						      &peer);
	r->info.invalidates = peer.remote_inv;
	if (r->options.no_private)
		peer.recv_size = peer.send_size = RPCRDMA_INLINE_MIN;
	r->info.send_inline = MIN(r->options.inline_size, peer.recv_size);
	r->info.recv_inline = MIN(r->options.inline_size, peer.send_size);
	rpcrdma_fetches_set_depth(&r->fetches, fc->info.read_depth);
	if (r->options.config_xid)
		ask_limits(r);
	else
		requester_go_up(r);
}

static bool owed(struct fabric_conn *fc)
{
	struct rpcrdma_requester *r = fc->upper;

	return r->info.in_flight > 0;
}

static void requester_closed(struct fabric_conn *fc, int err)
{
	struct rpcrdma_requester *r = fc->upper;

	r->down = true;
	for (unsigned i = 0; i < r->options.credits; i++) {
		struct request_slot *slot = &r->slots[i];

		slot->sending = false;
		if (slot->fetch)
			rpcrdma_fetch_cancel(slot->fetch);
		if (!slot->request)
			continue;
		if (!slot->over)
			slot->request->status = -ENOTCONN;
		requester_end(slot);
	}
	requester_advance(r);
	if (r->options.closed)
		r->options.closed(r->options.arg, err);
	sem_post(&r->over);
}

void rpcrdma_requester_close(struct rpcrdma_requester *r)
{
	fabric_close(r->fc);
}

void rpcrdma_requester_info(const struct rpcrdma_requester *r,
			    struct rpcrdma_requester_info *info)
{
	*info = r->info;
	info->fabric = r->fc->ops->name;
	info->device = r->fc->dev->name;
	info->read_depth = request_limits(&r->options,
					  &r->fc->dev->limits).reads;
	info->conn = &r->fc->info;
	info->registered = r->regions.registered;
	info->reused = r->regions.reused;
}

struct rpcrdma_regions *rpcrdma_requester_regions(struct rpcrdma_requester *r)
{
	return &r->regions;
}

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
		.fc = r->fc, .here = fetch_is_here, .acked = fetch_is_acked };
	r->answers = (struct rpcrdma_answers){
		.credits = r->options.back_credits, .make = r->options.answer,
		.arg = r->options.arg, .fc = r->fc,
	};
	if (!r->slots || !r->recvs || !r->memory ||
	    rpcrdma_fetches_init(&r->fetches, (unsigned)nfetches) < 0 ||
	    rpcrdma_answers_init(&r->answers) < 0)
		return -ENOMEM;
	err = fabric_mr_create(r->fc->dev, r->memory, memory, FABRIC_LOCAL,
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
	r->fc->owed = owed;
	request_fit_queues(&r->options, &r->fc->dev->limits);
	rpcrdma_regions_init(&r->regions, r->fc, r->options.cache_bytes,
			     r->options.cache_pieces);
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
