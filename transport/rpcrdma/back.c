/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * back - calls in the reverse direction.
 *
 * Operation: a call is copied into a slot's registered memory and sent as a
 * separate chain.  The slot is free again when the reply is here and the Send
 * is done, in whichever order.  Direction is told by the type of the RPC
 * message (RFC 8167 section 4.1): a reply comes to rpcrdma_back_take() before
 * credits of the forward direction are counted.
 *
 * Ownership: a posted Send counts the connection.  A call is the user's again
 * when it was taken out of its slot or the queue, with the lock; its done() is
 * called without.
 *
 * Errors: a failed Send closes the connection, whose end fails all calls.
 */
#include "transport/rpcrdma/back.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sys/random.h>

#include "lib/clock.h"
#include "lib/stats.h"
#include "transport/rpcrdma/conn.h"
#include "transport/rpcrdma/proto.h"

STAT(rdma_back_calls, "calls sent in the reverse direction");
STAT(rdma_back_replies, "replies to calls in the reverse direction");
STAT(rdma_back_bad, "replies in the reverse direction that had chunks");

struct back_slot {
	struct rpcrdma_chain chain;
	struct fabric_wr     wr;
	struct fabric_sge    sge;
	struct rpcrdma_back *b;			/* borrowed: contains us */
	uint8_t		    *buf;
	/* With the lock. */
	struct rpcrdma_back_call *call;		/* NULL: no reply is due */
	uint32_t	     xid;
	uint64_t	     since;		/* when it was sent */
	bool		     sending;
};

struct rpcrdma_back {
	struct rpcrdma_conn *conn;		/* borrowed: has us */
	unsigned	     credits;
	pthread_mutex_t	     lock;		/* a leaf; guards the rest */
	bool		     dead;
	uint32_t	     xid;
	unsigned	     window;		/* the peer's grant */
	unsigned	     in_flight;	/* until the reply's Receive is back */
	struct cds_list_head queue;
	struct back_slot     slot[];
};

size_t rpcrdma_back_bytes(unsigned credits)
{
	if (credits == 0)
		return 0;
	return sizeof(struct rpcrdma_back) +
	       credits * sizeof(struct back_slot);
}

struct rpcrdma_back *rpcrdma_back_create(struct rpcrdma_conn *conn,
					 unsigned credits, uint8_t *memory)
{
	struct rpcrdma_back *b = calloc(1, rpcrdma_back_bytes(credits));

	if (!b)
		return NULL;
	b->conn = conn;
	b->credits = credits;
	b->window = 1;		/* until the first reply */
	/* A peer that remembers replies must not take a call for one of an
	 * earlier connection. */
	if (getrandom(&b->xid, sizeof(b->xid), GRND_NONBLOCK) < 0)
		b->xid = (uint32_t)clock_ns();
	CDS_INIT_LIST_HEAD(&b->queue);
	pthread_mutex_init(&b->lock, NULL);
	for (unsigned i = 0; i < credits; i++) {
		b->slot[i].b = b;
		b->slot[i].buf = memory + (size_t)i * conn->inline_size;
	}
	return b;
}

void rpcrdma_back_destroy(struct rpcrdma_back *b)
{
	if (!b)
		return;
	pthread_mutex_destroy(&b->lock);
	free(b);
}

/* With the lock. */
static struct back_slot *free_back_slot(struct rpcrdma_back *b)
{
	for (unsigned i = 0; i < b->credits; i++)
		if (!b->slot[i].call && !b->slot[i].sending)
			return &b->slot[i];
	return NULL;
}

/* With the lock: the message of the call, in the slot's memory. */
static void put_back_call(struct back_slot *slot)
{
	struct rpcrdma_back *b = slot->b;
	struct rpcrdma_back_call *call = slot->call;
	struct xdr_out x;

	xdr_set_word(call->call, slot->xid);
	xdr_out_init(&x, slot->buf, b->conn->inline_size);
	xdr_put_u32(&x, slot->xid);
	xdr_put_u32(&x, RPCRDMA_VERSION);
	xdr_put_u32(&x, b->credits);
	xdr_put_u32(&x, RPCRDMA_MSG);
	xdr_put_bool(&x, false);
	xdr_put_bool(&x, false);
	xdr_put_bool(&x, false);
	memcpy(x.p, call->call, call->call_len);
	slot->sge = (struct fabric_sge){
		.addr = slot->buf, .len = RPCRDMA_HEADER_MIN + call->call_len,
		.lkey = b->conn->store->mr->lkey,
	};
}

/* Takes the next call that may go out.  NULL: none may. */
static struct back_slot *next_back_call(struct rpcrdma_back *b)
{
	struct back_slot *slot = NULL;

	mutex_lock(&b->lock);
	if (!b->dead && !cds_list_empty(&b->queue) &&
	    b->in_flight < b->window && (slot = free_back_slot(b))) {
		slot->call = cds_list_first_entry(&b->queue,
				struct rpcrdma_back_call, link);
		cds_list_del(&slot->call->link);
		slot->xid = b->xid++;
		slot->since = clock_ns();
		slot->sending = true;
		b->in_flight++;
		put_back_call(slot);
	}
	mutex_unlock(&b->lock);
	return slot;
}

static void back_sent(struct rpcrdma_chain *chain, int status);

/* Sends what may be sent now. */
static void advance_back(struct rpcrdma_back *b)
{
	struct rpcrdma_conn *conn = b->conn;
	struct back_slot *slot;
	int err;

	while ((slot = next_back_call(b))) {
		stat_inc(rdma_back_calls);
		slot->wr = (struct fabric_wr){ .opcode = FABRIC_SEND,
					       .sge = &slot->sge, .nsge = 1 };
		slot->chain.next_wr = &slot->wr;
		slot->chain.left = 1;
		slot->chain.reads = false;
		slot->chain.done = back_sent;
		xprt_get(&conn->xprt);
		err = rpcrdma_sq_submit(&conn->sq, &slot->chain);
		if (err < 0)
			back_sent(&slot->chain, err);
	}
}

static void back_sent(struct rpcrdma_chain *chain, int status)
{
	struct back_slot *slot = container_of(chain, struct back_slot, chain);
	struct rpcrdma_back *b = slot->b;
	struct rpcrdma_conn *conn = b->conn;

	mutex_lock(&b->lock);
	slot->sending = false;
	mutex_unlock(&b->lock);
	if (status < 0)
		rpcrdma_conn_close(conn, status);
	else
		advance_back(b);
	xprt_put(&conn->xprt);
}

static uint32_t most_call_bytes(const struct rpcrdma_back *b)
{
	return atomic_load(&b->conn->send_inline) - RPCRDMA_HEADER_MIN;
}

int rpcrdma_back_call(struct xprt *x, struct rpcrdma_back_call *call)
{
	struct rpcrdma_conn *conn = rpcrdma_conn_of(x);
	struct rpcrdma_back *b = conn->back;
	int err = 0;

	if (!b)
		return -EOPNOTSUPP;
	mutex_lock(&b->lock);
	if (call->call_len < sizeof(uint32_t) ||
	    call->call_len > most_call_bytes(b))
		err = -EMSGSIZE;
	else if (b->dead || !rpcrdma_conn_is_live(conn))
		err = -ENOTCONN;
	else
		cds_list_add_tail(&call->link, &b->queue);
	mutex_unlock(&b->lock);
	if (err == 0)
		advance_back(b);
	return err;
}

/* With the lock: takes the call with this xid out of its slot. */
static struct rpcrdma_back_call *take_back_call(struct rpcrdma_back *b,
						uint32_t xid)
{
	struct rpcrdma_back_call *call;

	for (unsigned i = 0; i < b->credits; i++) {
		call = b->slot[i].call;
		if (!call || b->slot[i].xid != xid)
			continue;
		b->slot[i].call = NULL;
		return call;
	}
	return NULL;
}

/* True if the message can only come from the responder of this direction: an
 * RDMA_ERROR, or an RPC reply inline. */
static bool is_back_reply(const struct rpcrdma_header *h, const uint8_t *data,
			  uint32_t len)
{
	return h->proc == RPCRDMA_ERROR ||
	       (h->proc == RPCRDMA_MSG &&
		rpcrdma_header_carries(h, data, len, MSG_TYPE_REPLY));
}

/* Fills in the result, and gives the call back. */
static void finish_back_call(struct rpcrdma_back_call *call,
			     const struct rpcrdma_header *h,
			     const uint8_t *data, uint32_t len)
{
	call->status = 0;
	if (h->proc == RPCRDMA_ERROR) {
		call->errcode = h->err;
		call->status = -EREMOTEIO;
	} else if (h->nreads > 0 || h->nwrites > 0 || h->has_reply) {
		stat_inc(rdma_back_bad);
		call->status = -EIO;
	}
	call->reply = data + h->len;
	call->reply_len = len - h->len;
	call->done(call);
}

bool rpcrdma_back_take(struct rpcrdma_back *b, const uint8_t *data,
		       uint32_t len)
{
	struct rpcrdma_back_call *call;
	struct rpcrdma_header h;

	if (rpcrdma_header_decode(data, len, &h) < 0 ||
	    !is_back_reply(&h, data, len))
		return false;
	mutex_lock(&b->lock);
	call = take_back_call(b, h.xid);
	/* The direction of an RDMA_ERROR is not certain: section 4.1. */
	if (call && h.proc != RPCRDMA_ERROR) {
		b->window = MIN(h.credits, b->credits);
		b->window = MAX(b->window, 1u);
	}
	mutex_unlock(&b->lock);
	if (!call)
		return false;
	stat_inc(rdma_back_replies);
	finish_back_call(call, &h, data, len);
	return true;
}

void rpcrdma_back_resume(struct rpcrdma_back *b)
{
	mutex_lock(&b->lock);
	if (!b->dead)
		b->in_flight--;
	mutex_unlock(&b->lock);
	advance_back(b);
}

/* Ends the calls of @list, which has the last references. */
static void give_back(struct cds_list_head *list, int status)
{
	struct rpcrdma_back_call *call, *next;

	cds_list_for_each_entry_safe(call, next, list, link) {
		call->status = status;
		call->done(call);
	}
}

void rpcrdma_back_limit(struct rpcrdma_back *b)
{
	struct rpcrdma_back_call *call, *next;
	struct cds_list_head wide;

	CDS_INIT_LIST_HEAD(&wide);
	mutex_lock(&b->lock);
	cds_list_for_each_entry_safe(call, next, &b->queue, link)
		if (call->call_len > most_call_bytes(b))
			cds_list_move(&call->link, &wide);
	mutex_unlock(&b->lock);
	give_back(&wide, -EMSGSIZE);
}

bool rpcrdma_back_overdue(struct rpcrdma_back *b, uint64_t now, uint32_t ms)
{
	bool overdue = false;

	mutex_lock(&b->lock);
	for (unsigned i = 0; i < b->credits && !overdue; i++)
		overdue = b->slot[i].call &&
			  loop_passed(now, b->slot[i].since, ms);
	mutex_unlock(&b->lock);
	return overdue;
}

void rpcrdma_back_kill(struct rpcrdma_back *b)
{
	struct cds_list_head over;

	CDS_INIT_LIST_HEAD(&over);
	mutex_lock(&b->lock);
	b->dead = true;
	for (unsigned i = 0; i < b->credits; i++) {
		if (b->slot[i].call)
			cds_list_add_tail(&b->slot[i].call->link, &over);
		b->slot[i].call = NULL;
	}
	b->in_flight = 0;
	cds_list_splice(&b->queue, &over);
	CDS_INIT_LIST_HEAD(&b->queue);
	mutex_unlock(&b->lock);
	give_back(&over, -ENOTCONN);
}
