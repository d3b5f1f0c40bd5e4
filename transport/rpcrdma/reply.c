/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reply - sends the answer (RFC 8166 sections 3.4.6, 3.5 and 4.3).
 *
 * Operation: the data of an eligible result goes to the first Write chunk,
 * unless that has no room at all.  The rest goes inline if it fits, else into
 * the Reply chunk.  Writes and the Send are one chain, in one post.
 *
 * Ownership: the call and the reply's body are kept until the Send is done, or
 * while the peer can read them (expose.c).
 *
 * Errors: a reply that fits nowhere, and can't be exposed, becomes ERR_CHUNK.
 * A failed Send closes the connection: the requester has to send the call
 * again.
 */
#include "transport/rpcrdma/expose.h"

#include <errno.h>
#include <string.h>

#include "lib/log.h"
#include "lib/probe.h"
#include "lib/stats.h"

STAT(rdma_replies_inline, "replies sent inline");
STAT(rdma_replies_chunk, "replies sent through a Reply chunk");
STAT(rdma_write_bytes, "bytes of results written to Write chunks");
STAT(rdma_reply_bytes, "bytes written to Reply chunks");
STAT(rdma_invalidates, "replies with a handle to invalidate");
STAT(rdma_errors_sent, "RDMA_ERROR messages sent");
STAT(rdma_small_write_chunks, "results longer than their Write chunk");
STAT(rdma_small_reply_chunks, "replies that fit neither inline nor a chunk");
STAT(rdma_replies_lost, "replies lost because their connection had ended");

/* A body this small is copied rather than gathered. */
enum { COPY_MAX = 256 };

/* In the call's head. */
static struct fabric_sge own_sge(struct rpcrdma_call *call, uint8_t *addr,
				 uint32_t len)
{
	return (struct fabric_sge){
		.addr = addr, .len = len, .lkey = call->slot.store->mr->lkey,
	};
}

/* The start of the call's Receive. */
static struct fabric_sge recv_sge(struct rpcrdma_call *call, uint32_t len)
{
	struct fabric_sge sge = call->slot.recv->wr.sge;

	sge.len = len;
	return sge;
}

static struct fabric_sge body_sge(struct rpcrdma_call *call)
{
	struct rpcrdma_conn *conn = rpcrdma_call_conn(call);
	struct msg *m = &call->msg;

	if (conn->device)
		return rpcrdma_device_sge(conn->device, m->body, 0,
					  m->body_len);
	return (struct fabric_sge){
		.addr = m->body->data, .len = m->body_len,
		.lkey = call->open_body ? call->open_body->lkey : 0 };
}

/*
 * Registers the body for its Writes, in a protection domain that has no
 * region.  A body that goes inline needs that not: add_send() copies it.
 */
static int open_body(struct rpcrdma_call *call)
{
	struct rpcrdma_conn *conn = rpcrdma_call_conn(call);
	struct msg *m = &call->msg;

	if (conn->device || !m->body || m->body_len == 0)
		return 0;
	return fabric_mr_create_for(conn->fc, m->body->data, m->body_len,
				    FABRIC_LOCAL, &call->open_body);
}

static void lose_reply(struct rpcrdma_call *call, int status)
{
	stat_inc(rdma_replies_lost);
	rpcrdma_call_failed(call, status);
	rpcrdma_conn_close(rpcrdma_call_conn(call), status);
}

/* The client has the reply of @call. */
static void count_sent(struct rpcrdma_call *call)
{
	struct rpcrdma_proof *proof = &rpcrdma_call_conn(call)->proof;
	const struct msg *m = &call->msg;

	proof->replies++;
	proof->sent += m->head_len + m->body_len + m->tail_len;
}

static void rpcrdma_send_done(struct rpcrdma_chain *chain, int status)
{
	struct rpcrdma_call *call = container_of(chain, struct rpcrdma_call,
						 chain);
	struct rpcrdma_conn *conn = rpcrdma_call_conn(call);

	PROBE(rdma_send_done, &call->msg, conn, status);
	if (status < 0) {
		lose_reply(call, status);
	} else {
		count_sent(call);
		if (call->msg.sent)
			xprt_note_sent(&call->msg, rpcrdma_conn_position(conn));
	}
	rpcrdma_call_release(call);
}

static void exposed_send_done(struct rpcrdma_chain *chain, int status)
{
	struct rpcrdma_call *call = container_of(chain, struct rpcrdma_call,
						 chain);

	PROBE(rdma_send_done, &call->msg, call->msg.xprt, status);
	if (status < 0)
		lose_reply(call, status);
	else
		count_sent(call);
	rpcrdma_expose_sent(call, status);
}

/* Takes @call, whose steps are ready; @done is the end of their chain. */
static int submit(struct rpcrdma_call *call, unsigned steps,
		  void (*done)(struct rpcrdma_chain *c, int status))
{
	struct rpcrdma_conn *conn = rpcrdma_call_conn(call);
	int err;

	call->chain.next_wr = call->wr;
	call->chain.left = steps;
	call->chain.reads = false;
	call->chain.done = done;
	/* The peer can send the next call as soon as it has this reply. */
	atomic_fetch_sub(&conn->slots.unanswered, 1);
	err = rpcrdma_sq_submit(&conn->sq, &call->chain);
	if (err < 0)
		done(&call->chain, err);
	return err;
}

void rpcrdma_reply_error(struct rpcrdma_call *call, enum rpcrdma_errcode err)
{
	struct rpcrdma_push p = { .call = call };
	struct rpcrdma_gather g = { .n = 0 };
	struct xdr_out x;

	/* A single step needs no allocation. */
	rpcrdma_call_room(call, 1, 1);
	xdr_out_init(&x, call->msg.head, MSG_HEAD_SIZE);
	rpcrdma_error_encode(&x, &call->hdr,
			     rpcrdma_conn_grant(rpcrdma_call_conn(call)), err);
	rpcrdma_gather_add(&g, own_sge(call, x.start,
				       (uint32_t)xdr_out_len(&x)));
	rpcrdma_push_send(&p, &g, false);
	stat_inc(rdma_errors_sent);
	submit(call, p.steps, rpcrdma_send_done);
}

/* A small body moves between head and tail: one piece instead of three. */
static void copy_small_body(struct msg *m)
{
	uint8_t *tail = m->head + m->head_len;

	if (!m->body || m->body_len > COPY_MAX ||
	    m->head_len + m->body_len + m->tail_len > MSG_HEAD_SIZE)
		return;
	memmove(tail + m->body_len, tail, m->tail_len);
	memcpy(tail, m->body->data, m->body_len);
	m->head_len += m->body_len + m->tail_len;
	m->tail_len = 0;
	m->body_len = 0;
	buf_put(m->body);
	m->body = NULL;
}

/* The route of each part of a reply. */
struct form {
	struct rpcrdma_gather data;	/* to the first Write chunk */
	struct rpcrdma_gather rest;	/* inline, or to the Reply chunk */
	uint32_t proc;
};

/* Takes each part of the reply to where it goes; @pad bytes of the tail are
 * left out. */
static void gather_parts(struct rpcrdma_call *call, struct form *f, bool ddp,
			 uint32_t pad)
{
	struct msg *m = &call->msg;
	uint8_t *tail = m->head + m->head_len;

	if (ddp)
		rpcrdma_gather_add(&f->data, body_sge(call));
	rpcrdma_gather_add(&f->rest, own_sge(call, m->head, m->head_len));
	if (m->body && !ddp)
		rpcrdma_gather_add(&f->rest, body_sge(call));
	rpcrdma_gather_add(&f->rest, own_sge(call, tail + pad,
					     m->tail_len - pad));
}

/*
 * Decides where each part goes. 0 or -E2BIG: the data does not fit its Write
 * chunk; -EMSGSIZE: the rest fits nowhere; or -EIO: its memory can't be
 * registered.  The pad of data that goes to a Write chunk is not sent (section
 * 3.4.6.2).
 */
static int choose_form(struct rpcrdma_call *call, struct form *f)
{
	const struct rpcrdma_header *h = &call->hdr;
	struct msg *m = &call->msg;
	uint32_t max = atomic_load(&rpcrdma_call_conn(call)->send_inline);
	uint32_t len = h->reply_len;
	uint32_t pad = 0, rest;
	/* A chunk without room asks for the result inline (4.3.2.3). */
	bool ddp = m->body && m->body_ddp && h->nwrites > 0 &&
		   h->write.length > 0;
	bool fits;

	*f = (struct form){ .proc = RPCRDMA_MSG };
	if (ddp && m->body_len > h->write.length)
		return -E2BIG;
	if (ddp)
		pad = MIN(xdr_pad(m->body_len), m->tail_len);
	else
		copy_small_body(m);
	rest = m->head_len + (ddp ? 0 : m->body_len) + m->tail_len - pad;
	if (len + rest > max)
		f->proc = RPCRDMA_NOMSG;
	/* The header fitted when the call came; the limit can be lower now. */
	fits = f->proc == RPCRDMA_MSG ||
	       (len <= max && h->has_reply && rest <= h->reply.length);
	if ((ddp || (fits && f->proc == RPCRDMA_NOMSG)) && open_body(call) < 0)
		return -EIO;
	gather_parts(call, f, ddp, pad);
	return fits ? 0 : -EMSGSIZE;
}

static void encode_header(struct rpcrdma_call *call, const struct form *f,
			  uint8_t *at, uint32_t len)
{
	struct rpcrdma_reply r = {
		.call = &call->hdr,
		.credits = rpcrdma_conn_grant(rpcrdma_call_conn(call)),
		.proc = f->proc,
		.written = f->data.len,
		.reply_written = f->proc == RPCRDMA_NOMSG ? f->rest.len : 0,
	};
	struct xdr_out x;

	xdr_out_init(&x, at, len);
	rpcrdma_reply_encode(&x, &r);
}

/* Copies @g to @at; returns where it ends. */
static uint8_t *flatten(const struct rpcrdma_gather *g, uint8_t *at)
{
	for (unsigned i = 0; i < g->n; i++) {
		memcpy(at, g->piece[i].addr, g->piece[i].len);
		at += g->piece[i].len;
	}
	return at;
}

/* True if the Send would take memory that is not registered for it. */
static bool has_stranger(const struct rpcrdma_call *call, const struct form *f)
{
	return f->proc == RPCRDMA_MSG && f->data.n == 0 && call->msg.body &&
	       !rpcrdma_conn_of(call->msg.xprt)->device;
}

/*
 * Adds the Send.  The header goes right before the head, to make them one
 * piece.  A header that is too long for that place, a reply in more pieces than
 * a Send takes, or with a body that is not registered, is assembled in the
 * call's Receive buffer: it is ours until the Send is done, and as long as any
 * Send.  The Writes, which need the chunk lists there, have been made by then.
 */
static void add_send(struct rpcrdma_push *p, const struct form *f)
{
	struct rpcrdma_call *call = p->call;
	uint32_t len = call->hdr.reply_len;
	bool near = len <= CALL_HEADER;
	uint8_t *at = near ? call->msg.head - len : call->slot.recv->buf;
	struct rpcrdma_gather g = { .n = 0 };

	rpcrdma_gather_add(&g, near ? own_sge(call, at, len) :
				      recv_sge(call, len));
	if (f->proc == RPCRDMA_MSG)
		for (unsigned i = 0; i < f->rest.n; i++)
			rpcrdma_gather_add(&g, f->rest.piece[i]);
	if (g.n > rpcrdma_call_conn(call)->max_sge || has_stranger(call, f)) {
		at = call->slot.recv->buf;
		g = (struct rpcrdma_gather){ .n = 0 };
		encode_header(call, f, at, len);
		rpcrdma_gather_add(&g, recv_sge(call, (uint32_t)
				(flatten(&f->rest, at + len) - at)));
	} else {
		encode_header(call, f, at, len);
	}
	rpcrdma_push_send(p, &g, call->invalidate);
}

/* Returns the most steps and pieces that a reply to @h can need, with three to
 * gather. */
static int reply_make_room(struct rpcrdma_call *call)
{
	const struct rpcrdma_header *h = &call->hdr;
	unsigned n = 4;

	if (h->nwrites > 0)
		n += h->write.nsegs;
	if (h->has_reply)
		n += h->reply.nsegs;
	return rpcrdma_call_room(call, n, n + 4);
}

static void count_reply(const struct rpcrdma_call *call, const struct form *f)
{
	stat_add(rdma_write_bytes, f->data.len);
	if (f->proc == RPCRDMA_NOMSG) {
		stat_inc(rdma_replies_chunk);
		stat_add(rdma_reply_bytes, f->rest.len);
	} else {
		stat_inc(rdma_replies_inline);
	}
	if (call->invalidate)
		stat_inc(rdma_invalidates);
}

/*
 * Sends a reply that did not fit as a Read chunk, where that is allowed: the
 * Read-Read model is on, and the call offered no chunk for it.
 */
static bool send_exposed(struct rpcrdma_call *call, const struct form *f)
{
	const struct rpcrdma_header *h = &call->hdr;
	struct rpcrdma_conn *conn = rpcrdma_call_conn(call);
	uint32_t len = RPCRDMA_EXPOSED_LEN(f->rest.n);
	struct rpcrdma_segment seg[EXPOSE_SEGS];
	struct rpcrdma_gather g = { .n = 0 };
	struct rpcrdma_push p = { .call = call };
	struct xdr_out x;

	if (!conn->exposures || h->has_reply || h->nwrites > 0 ||
	    rpcrdma_expose(call, &f->rest, seg) < 0)
		return false;
	/* A single step needs no allocation. */
	rpcrdma_call_room(call, 1, 1);
	xdr_out_init(&x, call->msg.head - len, len);
	rpcrdma_exposed_encode(&x, h, rpcrdma_conn_grant(conn), seg,
			       f->rest.n);
	rpcrdma_gather_add(&g, own_sge(call, x.start, len));
	rpcrdma_push_send(&p, &g, call->invalidate);
	if (call->invalidate)
		stat_inc(rdma_invalidates);
	submit(call, p.steps, exposed_send_done);
	return true;
}

/* Answers instead of a reply that fits nowhere. */
static void refuse_long_reply(struct rpcrdma_call *call, int err)
{
	if (err == -E2BIG)
		stat_inc(rdma_small_write_chunks);
	else
		stat_inc(rdma_small_reply_chunks);
	xprt_log_limited(call->msg.xprt, LOG_LEVEL_INFO,
			 "no room for a reply of %u bytes",
			 call->msg.head_len + call->msg.body_len +
			 call->msg.tail_len);
	rpcrdma_reply_error(call, RPCRDMA_ERR_CHUNK);
}

int rpcrdma_reply_send(struct rpcrdma_call *call)
{
	struct rpcrdma_conn *conn = rpcrdma_call_conn(call);
	struct rpcrdma_push p = { .call = call };
	struct form f;
	int err;

	/* The arguments are no longer needed, and other calls can be waiting
	 * for their memory. */
	buf_put(call->sink);
	call->sink = NULL;
	err = choose_form(call, &f);
	if (err == -E2BIG || err == -EMSGSIZE) {
		if (err == -E2BIG || !send_exposed(call, &f))
			refuse_long_reply(call, err);
		return 0;
	}
	if (err == 0)
		err = reply_make_room(call);
	if (err < 0) {
		rpcrdma_conn_close(conn, err);
		rpcrdma_call_drop(call);
		return err;
	}
	if (f.data.len > 0)
		rpcrdma_push_write(&p, &call->hdr.write, &f.data);
	if (f.proc == RPCRDMA_NOMSG)
		rpcrdma_push_write(&p, &call->hdr.reply, &f.rest);
	add_send(&p, &f);
	count_reply(call, &f);
	return submit(call, p.steps, rpcrdma_send_done);
}
