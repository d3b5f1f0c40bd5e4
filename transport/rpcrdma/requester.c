/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * requester - a client's connection, and the requests on it.
 *
 * Only queueing a request happens on other threads than the loop's.
 */
#include "transport/rpcrdma/requester.h"

#include <errno.h>

#include "transport/rpcrdma/request.h"

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
		slot->r->up = false;	/* stops calls */
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
	int err;

	if (q->revoked) {
		q->status = -ECANCELED;
		q->done(q);
		return;
	}
	slot->xid = xdr_word(q->call);
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

void requester_send_done(struct fabric_op *op, int status, uint32_t len)
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

bool rpcrdma_requester_revoke(struct rpcrdma_requester *r,
			      struct rpcrdma_request *request)
{
	struct request_slot *slot = NULL;

	for (unsigned i = 0; i < r->options.credits; i++)
		if (r->slots[i].request == request)
			slot = &r->slots[i];
	if (slot && (slot->over || (slot->fetch && slot->fetch->active) ||
		     !request_has_own_handles(slot)))
		return false;
	if (slot && request_take_back(slot, &r->regions) < 0) {
		r->up = false;
		fabric_close(r->fc);
		return false;
	}
	request->revoked = true;
	return true;
}

static struct request_slot *requester_find(struct rpcrdma_requester *r,
					   uint32_t xid)
{
	for (unsigned i = 0; i < r->options.credits; i++)
		if (r->slots[i].request && r->slots[i].xid == xid)
			return &r->slots[i];
	return NULL;
}

/* Takes the grant.  On a connection with calls in both directions, the grant of
 * an RDMA_ERROR can be for either (RFC 8167 section 4.1). */
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

void requester_fetch_here(struct rpcrdma_fetch *f)
{
	struct request_slot *slot = slot_of(f);

	slot->r->info.fetched++;
	request_complete_fetched(slot, f->len);
	rpcrdma_fetch_ack(f, slot->xid);
	requester_end(slot);
	requester_advance(slot->r);
}

void requester_fetch_acked(struct rpcrdma_fetch *f)
{
	requester_advance(slot_of(f)->r);
}

static void requester_reply(struct request_slot *slot,
			    const struct rpcrdma_header *h,
			    const uint8_t *msg, uint32_t len)
{
	struct rpcrdma_request *q = slot->request;

	/* Perhaps the responder refused RDMA_MSGP. */
	if (slot->padded && h->proc == RPCRDMA_ERROR)
		slot->r->options.pad_align = 0;
	if (slot->fetch)
		rpcrdma_fetch_answered(slot->fetch);
	if (q->revoked)
		slot->r->info.discarded++;
	if (slot->fetch && h->nreads > 0) {
		q->status = q->revoked ? -ECANCELED :
			    rpcrdma_fetch_begin(slot->fetch, h, q->reply);
		if (q->status == 0)
			return;		/* requester_fetch_here() follows */
		/* The responder need not keep it. */
		rpcrdma_fetch_ack(slot->fetch, slot->xid);
	} else if (q->revoked) {
		q->status = -ECANCELED;
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
	/* A reply may invalidate only a handle of the call that it answers (RFC
	 * 8797 section 4.1). */
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

void requester_recv_done(struct fabric_op *op, int status, uint32_t len)
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
 * The responder's limits have arrived, or it does not report them: then the
 * limits of the private data stay.  RFC 5666 section 6.1: both sides take 1 KiB
 * anyway.
 */
static void limits_done(struct rpcrdma_request *q)
{
	struct rpcrdma_requester *r = container_of(q,
			struct rpcrdma_requester, config);
	struct rpcrdma_limits theirs;

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
	const struct rpcrdma_limits ours = request_limits(&r->options,
							  &r->fc->dev->limits);

	rpcrdma_config_call(r->config_call, r->options.config_xid, &ours);
	r->config = (struct rpcrdma_request){
		.call = r->config_call, .call_len = RPCRDMA_CONFIG_LEN,
		.done = limits_done,
	};
	requester_start(r, &r->slots[0], &r->config);
}

void requester_established(struct fabric_conn *fc)
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

bool requester_owed(struct fabric_conn *fc)
{
	struct rpcrdma_requester *r = fc->upper;

	return r->info.in_flight > 0;
}

void requester_closed(struct fabric_conn *fc, int err)
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
