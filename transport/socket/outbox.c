/* SPDX-License-Identifier: BSD-2-Clause */
/* outbox - the part of a connection that all threads use. */
#include "transport/socket/outbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "lib/stats.h"
#include "lib/util.h"

STAT(stream_blocked, "times the socket of a TCP or iWARP connection was full, "
     "or taken to be full (tls_turns)");

void outbox_init(struct outbox *o, const struct outbox_ops *ops,
		 void (*update)(struct outbox *o), int fd, struct loop *loop)
{
	*o = (struct outbox){ .ops = ops, .update = update, .fd = fd,
			      .loop = loop };
	pthread_mutex_init(&o->lock, NULL);
}

void outbox_fini(struct outbox *o)
{
	pthread_mutex_destroy(&o->lock);
}

static ssize_t send_memory(const struct outbox *o,
			   const struct outbox_piece *p)
{
	struct msghdr mh = { .msg_iov = p->iov, .msg_iovlen = p->niov };
	ssize_t n;

	do
		n = sendmsg(o->fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT |
			    (p->more ? MSG_MORE : 0) |
			    (p->ends ? MSG_EOR : 0));
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static ssize_t send_pipe(const struct outbox *o, const struct outbox_piece *p)
{
	ssize_t n;

	do
		n = splice(p->pipe->rd, NULL, o->fd, NULL, p->piped,
			   SPLICE_F_NONBLOCK | (p->more ? SPLICE_F_MORE : 0));
	while (n < 0 && errno == EINTR);
	if (n > 0)
		p->pipe->left -= (uint32_t)n;
	return n == 0 ? -EIO : n < 0 ? -errno : n;
}

/* Fills and sends, once.  Sets *@n to the bytes sent. 0; -EAGAIN: the socket is
 * full; else -errno. */
static int send_some(struct outbox *o, size_t *n)
{
	struct iovec iov[OUTBOX_IOVS];
	struct outbox_piece p = { .iov = iov };
	int filled = o->ops->fill(o, &p), err = 0, kept;
	size_t len = 0;
	ssize_t did = 0;

	assert(p.pipe || p.niov > 0 || filled < 0);
	if (p.pipe)
		did = send_pipe(o, &p);
	else if (p.niov > 0)
		did = o->ops->send ? o->ops->send(o, &p) :
				     send_memory(o, &p);
	for (unsigned i = 0; i < p.niov; i++)
		len += p.iov[i].iov_len;
	if (did < 0)
		err = (int)did;
	else if (!p.pipe && (size_t)did < len)
		err = -EAGAIN;
	*n = did > 0 ? (size_t)did : 0;
	kept = o->ops->sent(o, *n, err == -EAGAIN);
	return filled ? filled : kept ? kept : err;
}

/* With the lock. */
static void begin_end(struct outbox *o, int err)
{
	if (atomic_load(&o->closing))
		return;
	o->err = err;
	atomic_store(&o->closing, true);
	outbox_kick(o);
}

void outbox_close(struct outbox *o, int err)
{
	mutex_lock(&o->lock);
	begin_end(o, err);
	mutex_unlock(&o->lock);
}

void outbox_push(struct outbox *o)
{
	int err = 0;
	size_t n;

	if (o->sending || o->blocked || o->held || o->dead)
		return;
	o->sending = true;
	while (!err && !o->dead && o->ops->claim(o)) {
		mutex_unlock(&o->lock);
		err = send_some(o, &n);
		mutex_lock(&o->lock);
		o->sent += n;
		o->ops->publish(o, n);
	}
	o->sending = false;
	o->blocked = err == -EAGAIN;
	if (o->blocked) {
		stat_inc(stream_blocked);
	} else if (err) {
		o->dead = true;
		begin_end(o, err);
	}
	if (o->blocked || o->dead)
		outbox_kick(o);
}

void outbox_ready(struct outbox *o)
{
	mutex_lock(&o->lock);
	o->blocked = false;
	outbox_push(o);
	mutex_unlock(&o->lock);
}

bool outbox_kill(struct outbox *o)
{
	bool idle;

	mutex_lock(&o->lock);
	o->dead = true;
	idle = !o->sending;
	mutex_unlock(&o->lock);
	return idle;
}

static void outbox_run(struct loop_task *t)
{
	struct outbox *o = container_of(t, struct outbox, task);

	mutex_lock(&o->lock);
	o->kicked = false;
	mutex_unlock(&o->lock);
	o->update(o);
}

void outbox_kick(struct outbox *o)
{
	if (o->kicked || !o->loop)
		return;
	o->kicked = true;
	loop_post(o->loop, &o->task, outbox_run);
}

bool outbox_over(struct outbox *o)
{
	bool over;

	mutex_lock(&o->lock);
	over = !o->sending && !o->kicked;
	if (over)
		o->kicked = true;
	mutex_unlock(&o->lock);
	return over;
}
