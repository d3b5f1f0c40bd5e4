/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_conn - the life of a TCP connection.
 *
 * Operation: any thread notes an event under the lock and kicks the outbox,
 * so that update() runs on the loop's thread.  Only that changes the state,
 * watches the socket, closes it and releases the connection: when the socket
 * is shut, every call has come back and the outbox is over.
 * Therefore neither a message nor a sender needs a reference of its own.
 *
 * A buffer that the pool grants is noted with a kick, under one lock.  So the
 * outbox is not over before a later update() has taken the buffer, whatever
 * the connection's state is by then.
 *
 * Errors: outbox_close() notes the first; update closes.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "transport/socket/socket.h"
#include "transport/stream/tcp.h"

STAT(tcp_closed_error, "TCP connections closed because of an error");
STAT(tcp_resets, "TCP connections that their peers reset");
STAT(tcp_stalls, "TCP connections closed because a record stalled");
STAT(tcp_send_stalls, "TCP connections closed because replies were not read");
STAT(tcp_short_stalls, "slow TCP connections closed because others waited "
     "for memory");
STAT(tcp_idle_closed, "idle TCP connections closed");

static void last_put(struct xprt *x)
{
	struct tcp_conn *conn = container_of(x, struct tcp_conn, xprt);
	struct tcp_listener *l = conn->poller->listener;
	struct sockaddr_storage peer = x->peer;

	xprt_fate_put(x->fate);
	outbox_fini(&conn->out);
	free(conn);
	xprt_gate_leave(&l->gate, (struct sockaddr *)&peer);
}

/* On the loop's thread, while it parses: the parser closes the connection. */
static void reject(struct msg *msg)
{
	struct tcp_conn *conn = container_of(msg->xprt, struct tcp_conn, xprt);

	conn->rejected = true;
	tcp_drop(msg);
}

static void look_at(struct xprt *x, struct xprt_view *v)
{
	struct tcp_conn *conn = container_of(x, struct tcp_conn, xprt);

	socket_look(conn->fd.fd, v);
}

/* Reading is paused until some of the calls are over, or the end waits for
 * all of them. */
static bool is_full(struct xprt *x)
{
	struct tcp_conn *conn = container_of(x, struct tcp_conn, xprt);
	bool full;

	mutex_lock(&conn->out.lock);
	full = conn->watch;
	mutex_unlock(&conn->out.lock);
	return full;
}

static const struct xprt_ops ops = {
	.name = "tcp",
	.reply = tcp_reply,
	.drop = tcp_drop,
	.reject = reject,
	.look = look_at,
	.is_full = is_full,
	.free = last_put,
};

/* A snapshot of the fields that other threads change. */
struct view {
	int	 err;
	bool	 waiting;
	bool	 blocked;
	uint64_t calls;		/* in progress */
	size_t	 queued;
};

static struct view look(struct tcp_conn *conn)
{
	struct view v;

	mutex_lock(&conn->out.lock);
	v.err = conn->out.err;
	v.waiting = conn->waiting;
	v.blocked = conn->out.blocked;
	v.calls = conn->taken - conn->finished;
	v.queued = conn->queued;
	mutex_unlock(&conn->out.lock);
	return v;
}

static void set_state(struct tcp_conn *conn, enum tcp_state state)
{
	assert(state > conn->state);
	conn->state = state;
}

static const char *why(int err)
{
	const char *text = strerrordesc_np(-err);

	return text ? text : "error";
}

/* Stops all input and output. */
static void shut(struct tcp_conn *conn, int err)
{
	bool broken = err || conn->state == TCP_LINGER;
	bool waiting;

	/*
	 * Look before changing the socket, which knows more than we do: if a
	 * sender got the error of a reset, the receiver only sees an end.  One
	 * that we were the first to close never ends in order: its peer may
	 * have been gone for long.
	 */
	xprt_fate_end(conn->xprt.fate, broken ? XPRT_BROKEN : XPRT_ORDERLY);
	/* Clients go away all the time: that is no error of ours. */
	if (err == -ECONNRESET || err == -EPIPE) {
		stat_inc(tcp_resets);
		log_limited(LOG_LEVEL_DEBUG, "%s: closing: %s",
			    conn->xprt.name, why(err));
	} else if (err) {
		stat_inc(tcp_closed_error);
		log_limited(LOG_LEVEL_INFO, "%s: closing: %s",
			    conn->xprt.name, why(err));
	}
	set_state(conn, TCP_CLOSED);
	loop_fd_del(conn->poller->loop, &conn->fd);
	outbox_kill(&conn->out);
	/* A sender may still use the socket, so don't close it yet. */
	shutdown(conn->fd.fd, SHUT_RDWR);
	tcp_recv_drop(conn);

	mutex_lock(&conn->out.lock);
	waiting = conn->waiting;
	mutex_unlock(&conn->out.lock);
	if (waiting && pool_cancel(conn->xprt.pool, &conn->room)) {
		mutex_lock(&conn->out.lock);
		conn->waiting = false;
		mutex_unlock(&conn->out.lock);
	}
}

/* In state CLOSED.  May free @conn. */
static void release(struct tcp_conn *conn)
{
	struct view v = look(conn);

	if (conn->fd.fd >= 0 && outbox_kill(&conn->out)) {
		tcp_send_drop(conn);
		close(conn->fd.fd);
		conn->fd.fd = -1;
	}
	if (v.calls > 0) {
		tcp_send_watch(conn, 0, SIZE_MAX);
	} else if (!v.waiting && outbox_over(&conn->out)) {
		cds_list_del(&conn->link);
		atomic_fetch_sub(&conn->poller->nconns, 1);
		xprt_put(&conn->xprt);
	}
}

/* In state ENDING: sends our FIN when all replies are sent. */
static void end(struct tcp_conn *conn, const struct view *v)
{
	if (v->calls > 0 || v->queued > 0) {
		tcp_send_watch(conn, 0, 0);
	} else if (conn->eof) {
		shut(conn, 0);
	} else {
		/* Closing with unread bytes would reset the connection, and the
		 * peer might lose replies that it has not read yet. */
		set_state(conn, TCP_LINGER);
		conn->since = loop_now(conn->poller->loop);
		shutdown(conn->fd.fd, SHUT_WR);
	}
}

/* In state LIVE, paused: reads on when it may. */
static void read_on(struct tcp_conn *conn, const struct view *v)
{
	const struct tcp_options *o = &conn->poller->listener->o;
	bool was_short = conn->short_of;

	if (v->waiting)
		return;
	if (was_short)
		tcp_recv_take(conn);
	if (was_short || (v->calls <= o->max_calls / 2 &&
			  v->queued <= o->max_queued / 2))
		tcp_recv_resume(conn);
	if (conn->paused && !conn->short_of)
		tcp_send_watch(conn, o->max_calls / 2, o->max_queued / 2);
}

/* Sets the events to wait for at the socket. */
static uint32_t events_for(const struct tcp_conn *conn, bool blocked)
{
	uint32_t events = blocked ? EPOLLOUT : 0;

	if ((conn->state == TCP_LIVE && !conn->paused) ||
	    conn->state == TCP_LINGER)
		events |= EPOLLIN;
	return events;
}

/* Adapts state and socket to the latest events.  May free @conn. */
static void update(struct tcp_conn *conn)
{
	struct view v = look(conn);

	if (conn->state != TCP_CLOSED && v.err)
		shut(conn, v.err);
	if (conn->state == TCP_LIVE && conn->eof)
		set_state(conn, TCP_ENDING);
	if (conn->state == TCP_LIVE && conn->paused)
		read_on(conn, &v);
	if (conn->state == TCP_ENDING)
		end(conn, &v);
	if (conn->state != TCP_LIVE && conn->short_of && !v.waiting)
		tcp_recv_take(conn);
	if (conn->state == TCP_CLOSED)
		release(conn);
	else
		loop_fd_mod(conn->poller->loop, &conn->fd,
			    events_for(conn, v.blocked));
}

static void kicked(struct outbox *o)
{
	update(container_of(o, struct tcp_conn, out));
}

static int socket_error(int fd)
{
	socklen_t len = sizeof(int);
	int err = 0;

	getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
	return err ? -err : -ECONNRESET;
}

static void ready(struct loop_fd *f, uint32_t events)
{
	struct tcp_conn *conn = container_of(f, struct tcp_conn, fd);

	if (events & (EPOLLERR | EPOLLHUP)) {
		if (conn->state == TCP_LINGER)
			shut(conn, 0);
		else
			outbox_close(&conn->out, socket_error(f->fd));
	} else {
		if (events & EPOLLOUT)
			outbox_ready(&conn->out);
		if (events & EPOLLIN && conn->state == TCP_LIVE)
			tcp_recv(conn);
		else if (events & EPOLLIN && conn->state == TCP_LINGER &&
			 socket_drain(f->fd))
			shut(conn, 0);
	}
	update(conn);
}

void tcp_conn_end(struct tcp_conn *conn)
{
	if (conn->state == TCP_LIVE) {
		set_state(conn, TCP_ENDING);
		tcp_recv_drop(conn);
	}
	update(conn);
}

/* True if the peer takes no unsent reply. */
static bool is_stalled(struct tcp_conn *conn, uint64_t now)
{
	uint64_t sent;
	size_t queued;

	mutex_lock(&conn->out.lock);
	sent = conn->out.sent;
	queued = conn->queued;
	mutex_unlock(&conn->out.lock);
	return watchdog_stalled(&conn->stalled, now, sent, queued,
				conn->poller->listener->o.send_ms);
}

/* True if others wait for memory, and the connection hardly frees its own. */
static bool is_slow(struct tcp_conn *conn, uint64_t now)
{
	uint64_t moved = conn->received;
	size_t held = conn->part.buf ? conn->part.room : 0;

	mutex_lock(&conn->out.lock);
	moved += conn->out.sent;
	held += conn->queued;
	mutex_unlock(&conn->out.lock);
	return watchdog_slow(&conn->slow, now, moved,
			     pool_is_short(conn->xprt.pool) ? held : 0,
			     conn->poller->listener->o.short_ms);
}

static void sweep_live(struct tcp_conn *conn, uint64_t now)
{
	const struct tcp_options *o = &conn->poller->listener->o;
	struct view v = look(conn);

	if (conn->paused)
		return;
	if (tcp_recv_midway(conn)) {
		if (!loop_passed(now, conn->since, o->stall_ms))
			return;
		stat_inc(tcp_stalls);
		outbox_close(&conn->out, -ETIMEDOUT);
	} else if (v.calls == 0 && v.queued == 0 &&
		   loop_passed(now, conn->active, o->idle_ms)) {
		stat_inc(tcp_idle_closed);
		tcp_conn_end(conn);
	}
}

void tcp_conn_sweep(struct tcp_conn *conn, uint64_t now)
{
	const struct tcp_options *o = &conn->poller->listener->o;

	if (conn->state == TCP_CLOSED)
		return;
	if (is_stalled(conn, now)) {
		stat_inc(tcp_send_stalls);
		outbox_close(&conn->out, -ETIMEDOUT);
	} else if (is_slow(conn, now)) {
		stat_inc(tcp_short_stalls);
		outbox_close(&conn->out, -ETIMEDOUT);
	} else if (conn->state == TCP_LIVE) {
		sweep_live(conn, now);
	} else if (conn->state == TCP_LINGER &&
		   loop_passed(now, conn->since, o->linger_ms)) {
		shut(conn, 0);
		update(conn);
	}
}

int tcp_conn_create(struct tcp_poller *p, int fd, struct sockaddr_storage *peer,
		    struct tcp_conn **out)
{
	struct xprt_env *env = &p->listener->env;
	struct sockaddr_storage local;
	struct tcp_conn *conn;
	int err;

	err = socket_local(fd, &local);
	if (err)
		goto fail;
	err = -ENOMEM;
	conn = calloc(1, sizeof(*conn));
	if (!conn)
		goto fail;
	socket_unmap(&local);
	xprt_init(&conn->xprt, &ops, env->sink, p->loop, env->pool,
		  (struct sockaddr *)peer, (struct sockaddr *)&local);
	conn->xprt.takes_pipes = true;
	conn->xprt.may_resend = true;
	conn->xprt.fate = xprt_fate_create(&conn->xprt, socket_age(fd));
	if (!conn->xprt.fate)
		goto fail_conn;
	conn->poller = p;
	conn->fd = (struct loop_fd){ ready, fd, EPOLLIN };
	record_in_init(&conn->rec, MSG_MAX_TAKEN);
	outbox_init(&conn->out, &tcp_outbox_ops, kicked, fd, p->loop);
	*out = conn;
	return 0;

fail_conn:
	free(conn);
fail:
	close(fd);
	return err;
}

static void started(struct loop_task *t)
{
	struct tcp_conn *conn = container_of(t, struct tcp_conn, start);
	struct tcp_poller *p = conn->poller;
	int err;

	cds_list_add_tail(&conn->link, &p->conns);
	conn->active = loop_now(p->loop);
	err = loop_fd_add(p->loop, &conn->fd);
	if (err)
		outbox_close(&conn->out, err);
	if (p->stopped)
		tcp_conn_end(conn);
	else
		update(conn);
}

void tcp_conn_start(struct tcp_conn *conn)
{
	atomic_fetch_add(&conn->poller->nconns, 1);
	if (loop_is_current(conn->poller->loop))
		started(&conn->start);
	else
		loop_post(conn->poller->loop, &conn->start, started);
}
