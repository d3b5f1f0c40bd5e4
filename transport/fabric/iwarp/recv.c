/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * recv - receives from the socket.
 *
 * The rest of a large segment's payload has a known place, and is received
 * there.  All other bytes come into the loop's buffer, as many as have arrived,
 * and are parsed and copied from there.
 */
#include "transport/fabric/iwarp/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/log.h"
#include "lib/stats.h"

STAT(iwarp_bytes_in, "bytes received by the iWARP fabric");
STAT(iwarp_refused, "refused accesses of peers to memory");
STAT(iwarp_bad_invalidate, "Sends with an unknown handle to invalidate");
STAT(iwarp_read_overruns, "RDMA Reads beyond the agreed depth");
STAT(iwarp_terminates_in, "Terminate messages received");
STAT(iwarp_cut_off, "connections that ended within a message");

/* Bytes to receive from one connection before others have their turn. */
#define TURN		(2u << 20)
/* A segment as long as this is received a segment at a time. */
#define LARGE_SEGMENT	(16u << 10)

static struct iwarp_loop *iwarp_loop_find(struct iwarp_provider *p,
					  struct loop *loop)
{
	struct iwarp_loop *il;

	cds_list_for_each_entry(il, &p->loops, link)
		if (il->loop == loop)
			return il;
	il = malloc(sizeof(*il));
	if (!il)
		return NULL;
	il->provider = p;
	il->loop = loop;
	il->refs = 0;
	cds_list_add(&il->link, &p->loops);
	return il;
}

int iwarp_loop_get(struct iwarp_provider *p, struct loop *loop,
		   struct iwarp_loop **out)
{
	struct iwarp_loop *il;

	mutex_lock(&p->lock);
	il = iwarp_loop_find(p, loop);
	if (il)
		il->refs++;
	mutex_unlock(&p->lock);
	*out = il;
	return il ? 0 : -ENOMEM;
}

void iwarp_loop_put(struct iwarp_loop *il)
{
	struct iwarp_provider *p = il->provider;
	bool last;

	mutex_lock(&p->lock);
	last = --il->refs == 0;
	if (last)
		cds_list_del(&il->link);
	mutex_unlock(&p->lock);
	if (last)
		free(il);
}

static struct iwarp_conn *iwarp_conn_of(struct rdmap *r)
{
	return container_of(r, struct iwarp_conn, rx);
}

/* After call-backs: they might have closed the connection. */
static void check_stop(struct iwarp_conn *c)
{
	if (atomic_load(&c->out.closing))
		c->rx.stop = true;
}

static bool recv_get(struct rdmap *r, uint8_t **data, uint32_t *len)
{
	struct iwarp_conn *c = iwarp_conn_of(r);
	struct fabric_recv *recv;

	if (c->recvs.head == c->recvs.tail)
		return false;
	recv = c->recvs.ring[c->recvs.head & (c->recvs.cap - 1)];
	*data = recv->sge.addr;
	*len = recv->sge.len;
	return true;
}

static void iwarp_recv_done(struct rdmap *r, int status, uint32_t len)
{
	struct iwarp_conn *c = iwarp_conn_of(r);
	struct fabric_recv *recv = c->recvs.ring[c->recvs.head++ &
					    (c->recvs.cap - 1)];

	recv->has_invalidated = r->has_inv;
	recv->invalidated = r->inv;
	recv->op->done(recv->op, status, len);
	check_stop(c);
}

/* With the lock: returns the oldest Read that waits for its answer. */
static struct iwarp_slot *oldest_read(struct iwarp_sq *sq)
{
	/* Retired steps need no look. */
	if (sq->read_at - sq->retired > sq->claimed - sq->retired)
		sq->read_at = sq->retired;
	for (; sq->read_at != sq->claimed; sq->read_at++) {
		struct iwarp_slot *s = &sq->ring[sq->read_at & (sq->cap - 1)];

		if (s->is_read && !s->answered)
			return s;
	}
	return NULL;
}

static bool read_get(struct rdmap *r, struct rdmap_read *read)
{
	struct iwarp_conn *c = iwarp_conn_of(r);
	struct iwarp_slot *s;

	mutex_lock(&c->out.lock);
	s = oldest_read(&c->sq);
	if (s) {
		read->stag = s->sink;
		read->len = s->wr->nsge ? s->wr->sge[0].len : 0;
		read->sink = s->wr->nsge ? s->wr->sge[0].addr : NULL;
	}
	mutex_unlock(&c->out.lock);
	return s;
}

static void read_done(struct rdmap *r)
{
	struct iwarp_conn *c = iwarp_conn_of(r);
	struct iwarp_slot *s;
	bool rtr;

	mutex_lock(&c->out.lock);
	s = oldest_read(&c->sq);
	s->answered = true;
	c->sq.reads--;
	rtr = s->wr == &c->rtr;
	mutex_unlock(&c->out.lock);
	if (rtr)
		c->live_due = true;
}

static enum term read_request(struct rdmap *r, const struct rdmap_request *req)
{
	static const enum term codes[] = {
		[IWARP_OK] = TERM_NONE,
		[IWARP_NO_STAG] = TERM_RDMAP_STAG,
		[IWARP_BOUNDS] = TERM_RDMAP_BOUNDS,
		[IWARP_ACCESS] = TERM_RDMAP_ACCESS,
		[IWARP_WRAP] = TERM_RDMAP_WRAP,
	};
	struct iwarp_conn *c = iwarp_conn_of(r);
	struct iwarp_device *d = &c->provider->device;
	enum iwarp_refusal refusal = IWARP_OK;
	uint8_t *p;

	/* RFC 5040 section 5.2.1: an empty one is not checked. */
	if (req->len > 0) {
		iwarp_mr_lock(d);
		refusal = iwarp_mr_find(c, req->src_stag, req->src_to,
					req->len, FABRIC_REMOTE_READ, &p);
		iwarp_mr_unlock(d);
	}
	if (refusal != IWARP_OK) {
		stat_inc(iwarp_refused);
		return codes[refusal];
	}
	if (!iwarp_queue_answer(c, req)) {
		stat_inc(iwarp_read_overruns);
		return TERM_DDP_NO_BUFFER;
	}
	return TERM_NONE;
}

static enum term write_code(enum iwarp_refusal refusal)
{
	static const enum term codes[] = {
		[IWARP_OK] = TERM_NONE,
		[IWARP_NO_STAG] = TERM_DDP_STAG,
		[IWARP_BOUNDS] = TERM_DDP_BOUNDS,
		[IWARP_ACCESS] = TERM_DDP_STAG,
		[IWARP_WRAP] = TERM_DDP_WRAP,
	};

	if (refusal != IWARP_OK)
		stat_inc(iwarp_refused);
	return codes[refusal];
}

static enum term write(struct rdmap *r, uint32_t stag, uint64_t to,
		       const uint8_t *data, uint32_t len)
{
	struct iwarp_conn *c = iwarp_conn_of(r);
	struct iwarp_device *d = &c->provider->device;
	enum iwarp_refusal refusal;
	uint8_t *p;

	iwarp_mr_lock(d);
	refusal = iwarp_mr_find(c, stag, to, len, FABRIC_REMOTE_WRITE, &p);
	if (refusal == IWARP_OK && data)
		memcpy(p, data, len);
	iwarp_mr_unlock(d);
	return write_code(refusal);
}

static enum term invalidate(struct rdmap *r, uint32_t stag)
{
	struct iwarp_conn *c = iwarp_conn_of(r);

	if (iwarp_mr_invalidate(c, stag))
		return TERM_NONE;
	stat_inc(iwarp_bad_invalidate);
	return TERM_RDMAP_INVALIDATE;
}

static void terminated(struct rdmap *r, unsigned code)
{
	struct iwarp_conn *c = iwarp_conn_of(r);
	char name[XPRT_ADDR_TEXT];
	/* RDMAP reports a Read's error, DDP a Write's. */
	bool read = code >> 8 == TERM_RDMAP_STAG >> 8;
	bool write = code >> 8 == TERM_DDP_STAG >> 8 ||
		     code == TERM_RDMAP_INVALIDATE;

	stat_inc(iwarp_terminates_in);
	log_limited(LOG_LEVEL_WARN, "iwarp %s: the peer terminated: %s "
		    "(%u/%u/%u)", iwarp_conn_name(c, name),
		    rdmap_term_text(code), code >> 12, code >> 8 & 15,
		    code & 255);
	if (!atomic_load(&c->out.closing))
		c->read_blamed = read;
	outbox_close(&c->out, read || write ? -EREMOTEIO : -EPROTO);
}

const struct rdmap_ops iwarp_rdmap_ops = {
	.recv_get = recv_get,
	.recv_done = iwarp_recv_done,
	.read_get = read_get,
	.read_done = read_done,
	.read_request = read_request,
	.write = write,
	.invalidate = invalidate,
	.terminated = terminated,
};

static ssize_t iwarp_receive_iov(struct iwarp_conn *c, struct iovec *iov,
				 size_t n)
{
	struct msghdr mh = { .msg_iov = iov, .msg_iovlen = n };
	ssize_t len;

	do
		len = recvmsg(c->fd.fd, &mh, MSG_DONTWAIT);
	while (len < 0 && errno == EINTR);
	if (len > 0)
		stat_add(iwarp_bytes_in, (uint64_t)len);
	return len < 0 ? -errno : len;
}

/*
 * Receives @w's payload at its place, and the bytes behind it. -ENODATA: the
 * place is not known.
 */
static ssize_t receive_direct(struct iwarp_conn *c, struct rdmap_want *w,
			      int *err)
{
	struct iwarp_device *d = &c->provider->device;
	bool locked = !w->data;
	struct iovec iov[2];
	uint32_t placed;
	ssize_t n;

	if (locked) {
		iwarp_mr_lock(d);
		if (iwarp_mr_find(c, c->rx.h.stag, c->rx.h.to, w->len,
				  FABRIC_REMOTE_WRITE, &w->data) != IWARP_OK) {
			iwarp_mr_unlock(d);
			return -ENODATA;
		}
	}
	iov[0] = (struct iovec){ w->data, w->len };
	iov[1] = (struct iovec){ c->il->buf, IWARP_RX_SIZE };
	if (w->behind && c->rx.h.payload >= LARGE_SEGMENT)
		iov[1].iov_len = w->behind;
	n = iwarp_receive_iov(c, iov, 2);
	if (locked)
		iwarp_mr_unlock(d);
	if (n <= 0)
		return n;
	placed = (uint32_t)MIN((size_t)n, (size_t)w->len);
	*err = rdmap_placed(&c->rx, placed);
	if (!*err && (size_t)n > placed)
		*err = rdmap_feed(&c->rx, c->il->buf, (size_t)n - placed);
	return n;
}

/* Receives once.  Bytes, 0 at the end, -errno; *@err if they were bad. */
static ssize_t receive_once(struct iwarp_conn *c, int *err)
{
	struct iovec iov = { c->il->buf, IWARP_RX_SIZE };
	struct rdmap_want w;
	ssize_t n = -ENODATA;

	if (rdmap_want(&c->rx, &w) && w.len >= IWARP_RX_DIRECT)
		n = receive_direct(c, &w, err);
	if (n != -ENODATA)
		return n;
	n = iwarp_receive_iov(c, &iov, 1);
	if (n > 0)
		*err = rdmap_feed(&c->rx, c->il->buf, (size_t)n);
	return n;
}

static void peer_broke_rule(struct iwarp_conn *c)
{
	char name[XPRT_ADDR_TEXT];
	unsigned code = (unsigned)c->rx.term;

	log_limited(LOG_LEVEL_WARN, "iwarp %s: terminated: %s (%u/%u/%u)",
		    iwarp_conn_name(c, name), rdmap_term_text(code),
		    code >> 12, code >> 8 & 15, code & 255);
	outbox_close(&c->out, -EPROTO);
}

static void iwarp_peer_gone(struct iwarp_conn *c, int err)
{
	c->eof = true;
	if (rdmap_midway(&c->rx))
		stat_inc(iwarp_cut_off);
	outbox_close(&c->out, err ? err : -ECONNRESET);
}

/* The peer has sent its first FPDU: now we can send. */
static void release_hold(struct iwarp_conn *c)
{
	loop_timer_cancel(c->conn.loop, &c->timer);
	mutex_lock(&c->out.lock);
	c->out.held = false;
	mutex_unlock(&c->out.lock);
}

void iwarp_receive(struct iwarp_conn *c)
{
	size_t total = 0;
	ssize_t n = 1;
	int err = 0;

	while (n > 0 && !err && !c->rx.stop && total < TURN) {
		n = receive_once(c, &err);
		total += n > 0 ? (size_t)n : 0;
		/* Do the ops of Sends meanwhile: their owners wait, and a peer
		 * with many answers can go on for long. */
		iwarp_retire(c);
		check_stop(c);
		/* Most often no more bytes have come. */
		if (n > 0 && n < (ssize_t)IWARP_RX_DIRECT)
			break;
	}
	/* No other thread writes @held. */
	if (c->out.held && (c->rx.fpdus > 0 || err == -EPROTO))
		release_hold(c);
	if (err == -EPROTO)
		peer_broke_rule(c);
	else if (err < 0)
		outbox_close(&c->out, err);
	else if (n == 0)
		iwarp_peer_gone(c, 0);
	else if (n < 0 && n != -EAGAIN)
		iwarp_peer_gone(c, (int)n);
}
