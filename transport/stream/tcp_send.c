/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_send - replies onto the stream, from any thread.
 *
 * Operation: replies queue up under the connection's lock.  A thread that finds
 * no sender becomes the sender: it sends all queued replies, also those that
 * others add meanwhile, many in one system call.  When the socket is full, the
 * loop waits for it and becomes the sender then.
 *
 * While the loop's thread hands over a batch of calls, the replies that it
 * gives are gathered apart, without a lock, until the whole batch is handed
 * over.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "lib/stats.h"
#include "transport/stream/tcp.h"

STAT(tcp_bytes_out, "bytes sent over TCP");
STAT(tcp_replies_lost, "replies to connections that were gone");

#define IOVS		192	/* pieces in one system call */
#define IOVS_A_REPLY	3

/* The connection that this thread gathers replies for. */
static _Thread_local struct tcp_conn *gathering;

static struct tcp_conn *conn_of(struct msg *msg)
{
	return container_of(msg->xprt, struct tcp_conn, xprt);
}

/*
 * Writes the pieces of @m as iovecs, without its first @skip bytes.  A body in
 * a pipe has no address.
 */
static int reply_iov(struct tcp_msg *m, uint32_t skip, struct iovec *iov)
{
	const struct msg *msg = &m->msg;
	uint32_t first = RECORD_MARK_SIZE + msg->head_len;
	struct iovec all[IOVS_A_REPLY];
	int n = 0, k = 0;

	all[n++] = (struct iovec){ &m->mark, first };
	if (msg->body_len) {
		all[n++] = (struct iovec){ msg->pipe ? NULL :
					   msg->body->data,
					   msg->body_len };
		if (msg->tail_len)
			all[n++] = (struct iovec){ m->head + msg->head_len,
						   msg->tail_len };
	} else {
		all[0].iov_len += msg->tail_len;
	}
	for (int i = 0; i < n; i++) {
		if (skip >= all[i].iov_len) {
			skip -= (uint32_t)all[i].iov_len;
			continue;
		}
		iov[k].iov_base = all[i].iov_base ?
				  (uint8_t *)all[i].iov_base + skip : NULL;
		iov[k++].iov_len = all[i].iov_len - skip;
		skip = 0;
	}
	return k;
}

/* The sender: notes that @n bytes were sent. */
static void forget_sent(struct tcp_conn *conn, size_t n)
{
	struct tcp_list *q = &conn->sendq;
	struct tcp_msg *m;

	n += conn->send_off;
	while ((m = q->first) && n >= m->len) {
		n -= m->len;
		q->first = m->next;
		tcp_msg_free(conn->poller, m);
	}
	conn->send_off = (uint32_t)n;
}

/* Returns the number of pieces before the first one in a pipe. */
static size_t until_pipe(const struct iovec *iov, size_t n)
{
	size_t i = 0;

	while (i < n && iov[i].iov_base)
		i++;
	return i;
}

/* The next body is in a pipe. */
static ssize_t send_pipe(struct tcp_conn *conn, size_t len, bool more)
{
	struct pipe *pipe = conn->sendq.first->msg.pipe;
	ssize_t n;

	do
		n = splice(pipe->rd, NULL, conn->fd.fd, NULL, len,
			   SPLICE_F_NONBLOCK | (more ? SPLICE_F_MORE : 0));
	while (n < 0 && errno == EINTR);
	if (n > 0)
		pipe->left -= (uint32_t)n;
	return n == 0 ? -EIO : n < 0 ? -errno : n;
}

static ssize_t send_pieces(struct tcp_conn *conn, struct iovec *iov, size_t n,
			   bool more)
{
	struct msghdr mh = { .msg_iov = iov, .msg_iovlen = n };
	ssize_t sent;

	do
		sent = sendmsg(conn->fd.fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT |
			       (more ? MSG_MORE : 0));
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : sent;
}

/*
 * The sender: sends from sendq, once.  Adds to *@sent. 0: go on; -EAGAIN: the
 * socket is full; else -errno.
 */
static int send_some(struct tcp_conn *conn, size_t *sent)
{
	struct iovec iov[IOVS];
	uint32_t skip = conn->send_off;
	size_t n = 0, plain = 0, total = 0;
	struct tcp_msg *m;
	ssize_t did;

	for (m = conn->sendq.first; m && n + IOVS_A_REPLY <= IOVS &&
	     plain == n; m = m->next) {
		n += (size_t)reply_iov(m, skip, &iov[n]);
		plain += until_pipe(&iov[plain], n - plain);
		skip = 0;
	}
	for (size_t i = 0; i < plain; i++)
		total += iov[i].iov_len;
	if (plain)
		did = send_pieces(conn, iov, plain, m || plain < n);
	else
		did = send_pipe(conn, iov[0].iov_len, m || n > 1);
	if (did < 0)
		return (int)did;
	stat_add(tcp_bytes_out, (uint64_t)did);
	*sent += (size_t)did;
	forget_sent(conn, (size_t)did);
	return (size_t)did < total ? -EAGAIN : 0;
}

/* With the lock held: unqueues all replies, for the caller to free later. */
static struct tcp_list take_all(struct tcp_conn *conn)
{
	struct tcp_list lost = { NULL, NULL };

	tcp_list_splice(&lost, &conn->sendq);
	tcp_list_splice(&lost, &conn->queue);
	conn->queued = 0;
	conn->send_off = 0;
	return lost;
}

static void lose(struct tcp_conn *conn, struct tcp_list *lost)
{
	for (struct tcp_msg *m = lost->first; m; m = m->next)
		stat_inc(tcp_replies_lost);
	tcp_list_free(conn->poller, lost);
}

/* With the lock held, by the sender: ends sending.  Unlocks. */
static void stop_sending(struct tcp_conn *conn, int err)
{
	struct tcp_list lost = { NULL, NULL };

	if (err == -EAGAIN)
		conn->blocked = true;
	else if (err && !conn->err)
		conn->err = err;
	if (conn->dead && conn->queued > 0) {
		/* Still the sender, so the connection stays. */
		lost = take_all(conn);
		mutex_unlock(&conn->lock);
		lose(conn, &lost);
		mutex_lock(&conn->lock);
	}
	conn->sending = false;
	if (err || conn->dead)
		tcp_conn_kick(conn);
	tcp_conn_check(conn);
	mutex_unlock(&conn->lock);
}

/* The sender, with the lock held: sends all queued replies.  Unlocks. */
static void send_all(struct tcp_conn *conn)
{
	int err = 0;

	for (;;) {
		size_t sent = 0;

		tcp_list_splice(&conn->sendq, &conn->queue);
		if (err || conn->dead || !conn->sendq.first)
			break;
		mutex_unlock(&conn->lock);
		do
			err = send_some(conn, &sent);
		while (!err && conn->sendq.first);
		mutex_lock(&conn->lock);
		conn->queued -= sent;
		conn->sent += sent;
	}
	stop_sending(conn, err);
}

/* With the lock held: sends the queued replies, if there is no sender and the
 * socket has room.  Unlocks. */
static void push(struct tcp_conn *conn)
{
	if (conn->sending || conn->blocked || conn->err) {
		tcp_conn_check(conn);
		mutex_unlock(&conn->lock);
		return;
	}
	conn->sending = true;
	send_all(conn);
}

/* With the lock held: ends a call without a reply.  Takes @m, unlocks. */
static void finish_lost(struct tcp_conn *conn, struct tcp_msg *m)
{
	mutex_unlock(&conn->lock);
	tcp_msg_free(conn->poller, m);
	mutex_lock(&conn->lock);
	/* From here on the loop may free the connection. */
	conn->finished++;
	tcp_conn_check(conn);
	mutex_unlock(&conn->lock);
}

int tcp_reply(struct msg *msg)
{
	struct tcp_msg *m = container_of(msg, struct tcp_msg, msg);
	struct tcp_conn *conn = conn_of(msg);
	uint32_t len = msg->head_len + msg->body_len + msg->tail_len;

	assert(msg->head_len + msg->tail_len <= MSG_HEAD_SIZE);
	assert(len <= MSG_MAX_LEN + MSG_HEAD_SIZE);
	tcp_msg_forget_call(m);
	m->mark = htobe32(RECORD_LAST | len);
	m->len = RECORD_MARK_SIZE + len;
	if (gathering == conn) {
		tcp_list_add(&conn->batch, m);
		conn->batch_asked |= msg->sent != NULL;
		conn->batch_calls++;
		conn->batch_bytes += m->len;
		return 0;
	}
	mutex_lock(&conn->lock);
	if (conn->dead) {
		stat_inc(tcp_replies_lost);
		xprt_note_sent(msg, XPRT_LOST);
		finish_lost(conn, m);
		return -ENOTCONN;
	}
	conn->finished++;
	tcp_list_add(&conn->queue, m);
	conn->queued += m->len;
	conn->position += m->len;
	xprt_note_sent(msg, conn->position);
	push(conn);
	return 0;
}

void tcp_drop(struct msg *msg)
{
	struct tcp_msg *m = container_of(msg, struct tcp_msg, msg);
	struct tcp_conn *conn = conn_of(msg);

	if (gathering == conn) {
		conn->batch_calls++;
		tcp_msg_free(conn->poller, m);
		return;
	}
	mutex_lock(&conn->lock);
	finish_lost(conn, m);
}

void tcp_send_gather(struct tcp_conn *conn)
{
	gathering = conn;
}

/* With the lock, before the batch is queued. */
static void place_batch(struct tcp_conn *conn)
{
	uint64_t position = conn->position;

	conn->position += conn->batch_bytes;
	if (!conn->batch_asked)
		return;
	conn->batch_asked = false;
	for (struct tcp_msg *m = conn->batch.first; m; m = m->next) {
		position += m->len;
		xprt_note_sent(&m->msg, position);
	}
}

void tcp_send_flush(struct tcp_conn *conn)
{
	gathering = NULL;
	mutex_lock(&conn->lock);
	if (conn->batch_calls > 0) {
		conn->finished += conn->batch_calls;
		conn->queued += conn->batch_bytes;
		place_batch(conn);
		tcp_list_splice(&conn->queue, &conn->batch);
		conn->batch_calls = 0;
		conn->batch_bytes = 0;
		push(conn);
		mutex_lock(&conn->lock);
	}
	conn->seen_finished = conn->finished;
	conn->seen_queued = conn->queued;
	mutex_unlock(&conn->lock);
}

void tcp_send_resume(struct tcp_conn *conn)
{
	mutex_lock(&conn->lock);
	conn->blocked = false;
	push(conn);
}

void tcp_send_kill(struct tcp_conn *conn)
{
	struct tcp_list lost = { NULL, NULL };

	mutex_lock(&conn->lock);
	conn->dead = true;
	if (!conn->sending)
		lost = take_all(conn);
	mutex_unlock(&conn->lock);
	lose(conn, &lost);
}
