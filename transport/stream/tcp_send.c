/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_send - replies onto the stream, from any thread.
 *
 * Operation: a reply is posted to the connection's outbox, whose sender sends
 * all that are posted, many in one system call.
 *
 * While the loop's thread hands over a batch of calls, the replies that it
 * gives are gathered apart, without a lock, until the whole batch is handed
 * over.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/stats.h"
#include "transport/stream/tcp.h"
#include "transport/tls/tls.h"

STAT(tcp_bytes_out, "bytes sent over TCP");
STAT(tls_turns, "times that a poller stopped encrypting for a TCP connection "
     "so that others had their turn");
STAT(tcp_replies_lost, "replies lost because their connection had ended");

#define IOVS_A_REPLY	3
/* Encrypted in one turn of the loop's: a millisecond's work. */
#define TURN_BYTES	((size_t)1 << 20)

static void list_add(struct tcp_list *list, struct tcp_msg *m)
{
	m->next = NULL;
	if (list->first)
		list->last->next = m;
	else
		list->first = m;
	list->last = m;
}

/* Moves all of @from to the end of @to. */
static void list_splice(struct tcp_list *to, struct tcp_list *from)
{
	if (!from->first)
		return;
	if (to->first)
		to->last->next = from->first;
	else
		to->first = from->first;
	to->last = from->last;
	from->first = NULL;
}

/* Leaves out the first @skip bytes of the @n pieces.  Returns how many pieces
 * remain. */
static unsigned skip_bytes(struct iovec *iov, unsigned n, uint32_t skip)
{
	unsigned k = 0;

	while (k < n && skip >= iov[k].iov_len)
		skip -= (uint32_t)iov[k++].iov_len;
	memmove(iov, iov + k, (n - k) * sizeof(*iov));
	if (k < n && iov[0].iov_base)
		iov[0].iov_base = (uint8_t *)iov[0].iov_base + skip;
	if (k < n)
		iov[0].iov_len -= skip;
	return n - k;
}

/*
 * Writes the pieces of @m as iovecs, without its first @skip bytes.  A body in
 * a pipe has no address.
 */
static unsigned reply_iov(struct tcp_msg *m, uint32_t skip, struct iovec *iov)
{
	const struct msg *msg = &m->msg;
	uint32_t first = RECORD_MARK_SIZE + msg->head_len;
	unsigned n = 0;

	iov[n++] = (struct iovec){ &m->mark, first };
	if (msg->body_len) {
		iov[n++] = (struct iovec){ msg->pipe ? NULL :
					   msg->body->data,
					   msg->body_len };
		if (msg->tail_len)
			iov[n++] = (struct iovec){ m->head + msg->head_len,
						   msg->tail_len };
	} else {
		iov[0].iov_len += msg->tail_len;
	}
	return unlikely(skip) ? skip_bytes(iov, n, skip) : n;
}

/* All pieces before the first one in a pipe, or that one. */
static int tcp_send_fill(struct outbox *o, struct outbox_piece *p)
{
	struct tcp_conn *conn = container_of(o, struct tcp_conn, out.box);
	uint32_t skip = conn->out.send_off;
	unsigned n = 0, plain = 0;
	struct tcp_msg *m;

	for (m = conn->out.sendq.first; m && n + IOVS_A_REPLY <= OUTBOX_IOVS &&
	     plain == n; m = m->next) {
		n += reply_iov(m, skip, &p->iov[n]);
		while (plain < n && p->iov[plain].iov_base)
			plain++;
		skip = 0;
	}
	p->niov = plain;
	if (plain == 0) {
		p->pipe = conn->out.sendq.first->msg.pipe;
		p->piped = p->iov[plain++].iov_len;
	}
	p->more = m || plain < n;
	return 0;
}

/* Frees the replies that are sent. */
static int tcp_send_sent(struct outbox *o, size_t n, bool full)
{
	struct tcp_conn *conn = container_of(o, struct tcp_conn, out.box);
	struct tcp_list *q = &conn->out.sendq;
	struct tcp_msg *m;

	stat_add(tcp_bytes_out, n);
	n += conn->out.send_off;
	while ((m = q->first) && n >= m->len) {
		n -= m->len;
		q->first = m->next;
		tcp_msg_free(conn->poller, m);
	}
	conn->out.send_off = (uint32_t)n;
	return 0;
}

static bool tcp_send_claim(struct outbox *o)
{
	struct tcp_conn *conn = container_of(o, struct tcp_conn, out.box);

	list_splice(&conn->out.sendq, &conn->out.queue);
	return conn->out.sendq.first;
}

/* With the lock held: kicks if the watched numbers are reached. */
static void tcp_send_check(struct tcp_conn *conn)
{
	struct tcp_out *out = &conn->out;

	if (!out->watch.on || out->finished < out->watch.finished ||
	    out->queued > out->watch.queued)
		return;
	out->watch.on = false;
	outbox_kick(&out->box);
}

void tcp_send_watch(struct tcp_conn *conn, uint64_t calls, size_t queued)
{
	mutex_lock(&conn->out.box.lock);
	conn->out.watch.on = true;
	conn->out.watch.finished = conn->in.taken - MIN(calls, conn->in.taken);
	conn->out.watch.queued = queued;
	tcp_send_check(conn);
	mutex_unlock(&conn->out.box.lock);
}

static void tcp_send_publish(struct outbox *o, size_t n)
{
	struct tcp_conn *conn = container_of(o, struct tcp_conn, out.box);

	conn->out.queued -= n;
	tcp_send_check(conn);
}

/* A client that takes replies as fast as they are encrypted never fills its
 * socket.  So the loop acts as if it were full after so many, and goes on when
 * other connections have had their turn. */
static ssize_t send_secure(struct outbox *o, const struct outbox_piece *p)
{
	struct tcp_conn *conn = container_of(o, struct tcp_conn, out.box);
	struct tls_conn *tls = atomic_load(&conn->tls);
	size_t left;
	ssize_t n;

	if (conn->poller->loop != loop_current)
		return tls_send(tls, p->iov, p->niov, SIZE_MAX, p->more);
	left = TURN_BYTES - conn->out.encrypted;
	if (left < TLS_RECORD_MAX)
		return -EAGAIN;
	n = tls_send(tls, p->iov, p->niov, left, p->more);
	if (n <= 0)
		return n;
	conn->out.encrypted += (size_t)n;
	if (left - (size_t)n < TLS_RECORD_MAX)
		stat_inc(tls_turns);
	return n;
}

const struct outbox_ops tcp_secure_outbox_ops = {
	.claim = tcp_send_claim,
	.fill = tcp_send_fill,
	.sent = tcp_send_sent,
	.publish = tcp_send_publish,
	.send = send_secure,
};

const struct outbox_ops tcp_outbox_ops = {
	.claim = tcp_send_claim,
	.fill = tcp_send_fill,
	.sent = tcp_send_sent,
	.publish = tcp_send_publish,
};

void tcp_send_drop(struct tcp_conn *conn)
{
	struct tcp_list lost = { NULL, NULL };
	struct tcp_msg *m;

	list_splice(&lost, &conn->out.sendq);
	list_splice(&lost, &conn->out.queue);
	while ((m = lost.first)) {
		lost.first = m->next;
		stat_inc(tcp_replies_lost);
		tcp_msg_free(conn->poller, m);
	}
}

/* With the lock held: ends a call without a reply.  Takes @m, unlocks. */
static void finish_lost(struct tcp_conn *conn, struct tcp_msg *m)
{
	mutex_unlock(&conn->out.box.lock);
	tcp_msg_free(conn->poller, m);
	mutex_lock(&conn->out.box.lock);
	/* From here on the loop can free the connection. */
	conn->out.finished++;
	tcp_send_check(conn);
	mutex_unlock(&conn->out.box.lock);
}

/* Frees the call's memory, not the message. */
static void forget_call(struct tcp_msg *m)
{
	buf_put(m->call_buf);
	m->call_buf = NULL;
	if (unlikely(m->call_mem)) {
		free(m->call_mem);
		m->call_mem = NULL;
	}
}

int tcp_reply(struct msg *msg)
{
	struct tcp_msg *m = container_of(msg, struct tcp_msg, msg);
	struct tcp_conn *conn = container_of(msg->xprt, struct tcp_conn, xprt);
	uint32_t len = msg->head_len + msg->body_len + msg->tail_len;

	assert(msg->head_len + msg->tail_len <= MSG_HEAD_SIZE);
	assert(len <= MSG_MAX_LEN + MSG_HEAD_SIZE);
	forget_call(m);
	record_put_mark(&m->mark, len);
	m->len = RECORD_MARK_SIZE + len;
	if (outbox_gathers(&conn->out.box)) {
		list_add(&conn->batch.list, m);
		conn->batch.asked |= msg->sent != NULL;
		conn->batch.calls++;
		conn->batch.bytes += m->len;
		return 0;
	}
	mutex_lock(&conn->out.box.lock);
	if (conn->out.box.dead) {
		stat_inc(tcp_replies_lost);
		xprt_note_sent(msg, XPRT_LOST);
		finish_lost(conn, m);
		return -ENOTCONN;
	}
	conn->out.finished++;
	list_add(&conn->out.queue, m);
	conn->out.queued += m->len;
	conn->out.position += m->len;
	xprt_note_sent(msg, conn->out.position);
	outbox_push(&conn->out.box);
	tcp_send_check(conn);
	mutex_unlock(&conn->out.box.lock);
	return 0;
}

void tcp_drop(struct msg *msg)
{
	struct tcp_msg *m = container_of(msg, struct tcp_msg, msg);
	struct tcp_conn *conn = container_of(msg->xprt, struct tcp_conn, xprt);

	forget_call(m);
	if (outbox_gathers(&conn->out.box)) {
		conn->batch.calls++;
		tcp_msg_free(conn->poller, m);
		return;
	}
	mutex_lock(&conn->out.box.lock);
	finish_lost(conn, m);
}

void tcp_send_flush(struct tcp_conn *conn)
{
	struct tcp_msg *m;
	uint64_t position;

	conn->out.box.gathering = false;
	mutex_lock(&conn->out.box.lock);
	if (conn->batch.calls > 0) {
		position = conn->out.position;
		conn->out.finished += conn->batch.calls;
		conn->out.queued += conn->batch.bytes;
		conn->out.position += conn->batch.bytes;
		m = conn->batch.asked ? conn->batch.list.first : NULL;
		for (; m; m = m->next) {
			position += m->len;
			xprt_note_sent(&m->msg, position);
		}
		list_splice(&conn->out.queue, &conn->batch.list);
		conn->batch = (struct tcp_batch){ 0 };
		outbox_push(&conn->out.box);
		tcp_send_check(conn);
	}
	conn->pace.seen_finished = conn->out.finished;
	conn->pace.seen_queued = conn->out.queued;
	mutex_unlock(&conn->out.box.lock);
}
