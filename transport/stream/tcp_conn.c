/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_conn - the life of a TCP connection.
 *
 * Operation: any thread records an event under the lock and kicks the outbox;
 * then tcp_conn_update() runs on the loop's thread.  Only that changes the
 * state, watches the socket, closes it and releases the connection: when the
 * socket is shut, every call has come back and the outbox is over.  Therefore
 * neither a message nor a sender needs a separate reference.
 *
 * A buffer that the pool grants is noted with a kick, under one lock.  So the
 * outbox is not over before a later tcp_conn_update() has taken the buffer,
 * whatever the connection's state is by then.
 *
 * Errors: outbox_close() notes the first; tcp_conn_update() closes.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "transport/clients.h"
#include "transport/socket/socket.h"
#include "transport/stream/tcp.h"
#include "transport/tls/tls.h"

STAT(tcp_closed_error, "TCP connections closed because of an error");
STAT(tcp_resets, "TCP connections that their peers reset");
STAT(tcp_stalls, "TCP connections closed because a record stalled");
STAT(tcp_send_stalls, "TCP connections closed because replies were not read");
STAT(tcp_short_stalls, "slow TCP connections closed because others waited "
     "for memory");
STAT(tls_worn, "TCP connections ended because their TLS key had sent all that "
     "one can");
STAT(tcp_idle_closed, "idle TCP connections closed");

static void tcp_conn_last_put(struct xprt *x)
{
	struct tcp_conn *conn = container_of(x, struct tcp_conn, xprt);
	struct tcp_listener *l = conn->poller->listener;
	struct sockaddr_storage peer = x->peer;
	bool parted = conn->parted;

	xprt_client_leave(x);
	xprt_fate_put(x->fate);
	outbox_fini(&conn->out.box);
	tcp_secure_free(conn);
	free(conn);
	if (parted)
		xprt_gate_parted(&l->gate);
	else
		xprt_gate_leave(&l->gate, (struct sockaddr *)&peer);
}

/* On the loop's thread, while it parses: the parser closes the connection. */
static void tcp_conn_reject(struct msg *msg)
{
	struct tcp_conn *conn = container_of(msg->xprt, struct tcp_conn, xprt);

	conn->in.rejected = true;
	tcp_drop(msg);
}

static void tcp_conn_look_at(struct xprt *x, struct xprt_view *v)
{
	struct tcp_conn *conn = container_of(x, struct tcp_conn, xprt);

	struct tls_conn *tls = atomic_load(&conn->tls);

	socket_look(conn->fd.fd, v);
	if (likely(!tls))
		return;
	v->acked = tls_acked(tls, v->acked);
	/* Any host on the path can end a connection of TCP. */
	if (v->end == XPRT_ORDERLY && !tls_is_closed(tls))
		v->end = XPRT_BROKEN;
}

/* Reading is paused until some of the calls are over, or the end waits for
 * all of them. */
static bool tcp_conn_is_full(struct xprt *x)
{
	struct tcp_conn *conn = container_of(x, struct tcp_conn, xprt);
	bool full;

	mutex_lock(&conn->out.box.lock);
	full = conn->out.watch.on;
	mutex_unlock(&conn->out.box.lock);
	return full;
}

static void tcp_conn_ask_end(struct xprt *x)
{
	struct tcp_conn *conn = container_of(x, struct tcp_conn, xprt);

	mutex_lock(&conn->out.box.lock);
	conn->out.ending = true;
	outbox_kick(&conn->out.box);
	mutex_unlock(&conn->out.box.lock);
}

static const struct xprt_ops ops = {
	.name = "tcp",
	.reply = tcp_reply,
	.drop = tcp_drop,
	.reject = tcp_conn_reject,
	.look = tcp_conn_look_at,
	.is_full = tcp_conn_is_full,
	.start_tls = tcp_secure_ask,
	.end = tcp_conn_ask_end,
	.free = tcp_conn_last_put,
};

/* A snapshot of the fields that other threads change. */
struct view {
	int	 err;
	bool	 waiting;
	bool	 blocked;
	bool	 ending;
	uint64_t calls;		/* in progress */
	size_t	 queued;
};

static struct view look(struct tcp_conn *conn)
{
	struct view v;

	mutex_lock(&conn->out.box.lock);
	v.err = conn->out.box.err;
	v.waiting = conn->out.waiting;
	v.blocked = conn->out.box.blocked;
	v.ending = conn->out.ending;
	v.calls = conn->in.taken - conn->out.finished;
	v.queued = conn->out.queued;
	mutex_unlock(&conn->out.box.lock);
	return v;
}

static void set_state(struct tcp_conn *conn, enum tcp_state state)
{
	assert(state > conn->state);
	conn->state = state;
}

static void tell_tcp_start(struct tcp_conn *conn)
{
	int send = 0, receive = 0;
	socklen_t len = sizeof(int);

	getsockopt(conn->fd.fd, SOL_SOCKET, SO_SNDBUF, &send, &len);
	getsockopt(conn->fd.fd, SOL_SOCKET, SO_RCVBUF, &receive, &len);
	xprt_life_begin(&conn->xprt, ", buffers of %d bytes to send and %d to "
			"receive", send, receive);
}

static void tell_tcp_end(struct tcp_conn *conn, int err)
{
	struct xprt_sums sums = { .calls = conn->in.taken,
				  .received = conn->in.received };

	mutex_lock(&conn->out.box.lock);
	sums.sent = conn->out.box.sent;
	mutex_unlock(&conn->out.box.lock);
	xprt_life_end(&conn->xprt, err, &sums);
}

/* Stops all input and output. */
static void shut(struct tcp_conn *conn, int err)
{
	bool broken = err || conn->state == TCP_LINGER;
	bool waiting;

	/*
	 * Look before changing the socket, which knows more than we do: if a
	 * sender got the error of a reset, the receiver only sees an end.  A
	 * connection that we were the first to close never ends in order:
	 * perhaps its peer went away long ago.
	 */
	xprt_fate_end(conn->xprt.fate, broken ? XPRT_BROKEN : XPRT_ORDERLY);
	/* Clients go away all the time: that is not our error. */
	if (err == -ECONNRESET || err == -EPIPE)
		stat_inc(tcp_resets);
	else if (err)
		stat_inc(tcp_closed_error);
	tell_tcp_end(conn, err);
	if (!broken)
		tcp_secure_close(conn);
	if (conn->state == TCP_UNREAD)
		loop_timer_cancel(conn->poller->loop, &conn->unread);
	set_state(conn, TCP_CLOSED);
	loop_fd_del(conn->poller->loop, &conn->fd);
	outbox_kill(&conn->out.box);
	/* A sender can still use the socket, so don't close it yet. */
	shutdown(conn->fd.fd, SHUT_RDWR);
	tcp_recv_drop(conn);

	mutex_lock(&conn->out.box.lock);
	waiting = conn->out.waiting;
	mutex_unlock(&conn->out.box.lock);
	if (waiting && pool_cancel(conn->xprt.pool, &conn->in.room)) {
		mutex_lock(&conn->out.box.lock);
		conn->out.waiting = false;
		mutex_unlock(&conn->out.box.lock);
	}
}

/* In state CLOSED.  May free @conn. */
static void tcp_conn_release(struct tcp_conn *conn)
{
	struct view v = look(conn);

	if (tcp_secure_is_away(conn))
		return;
	if (conn->fd.fd >= 0 && outbox_kill(&conn->out.box)) {
		tcp_send_drop(conn);
		socket_close_stream(conn->fd.fd);
		conn->fd.fd = -1;
	}
	if (v.calls > 0) {
		tcp_send_watch(conn, 0, SIZE_MAX);
	} else if (!v.waiting && outbox_over(&conn->out.box)) {
		cds_list_del(&conn->link);
		atomic_fetch_sub(&conn->poller->nconns, 1);
		xprt_put(&conn->xprt);
	}
}

/* Was a reply sent so lately that a reset will tell of it (rpc/drc_rule.h)?
 * Then its client gets its place back for another connection.  Where many
 * connections come and go, some are not waited for. */
static bool may_be_unread(struct tcp_conn *conn)
{
	struct tcp_listener *l = conn->poller->listener;

	if (conn->in.taken > 0 && socket_age(conn->fd.fd) < l->o.reply_ms)
		conn->parted = xprt_gate_part(&l->gate,
					      (const struct sockaddr *)
					      &conn->xprt.peer);
	return conn->parted;
}

/* In state LINGER: sends our FIN behind TLS's end. */
static void send_fin(struct tcp_conn *conn)
{
	if (tcp_secure_close(conn)) {
		shutdown(conn->fd.fd, SHUT_WR);
		return;
	}
	/* So the loop tells of room. */
	mutex_lock(&conn->out.box.lock);
	conn->out.box.blocked = true;
	outbox_kick(&conn->out.box);
	mutex_unlock(&conn->out.box.lock);
}

/* In state ENDING: sends our FIN when all replies are sent. */
static void tcp_conn_finish(struct tcp_conn *conn, const struct view *v)
{
	if (v->calls > 0 || v->queued > 0) {
		tcp_send_watch(conn, 0, 0);
	} else if (conn->eof && may_be_unread(conn)) {
		set_state(conn, TCP_UNREAD);
		loop_timer_set(conn->poller->loop, &conn->unread,
			       conn->poller->listener->o.unread_ms);
	} else if (conn->eof) {
		shut(conn, 0);
	} else {
		/* Closing with unread bytes would reset the connection, and the
		 * peer might lose replies that it has not read yet. */
		set_state(conn, TCP_LINGER);
		conn->times.since = loop_now(conn->poller->loop);
		send_fin(conn);
	}
}

/* In state LIVE, paused: reads on when the limits allow. */
static void tcp_conn_read_on(struct tcp_conn *conn, const struct view *v)
{
	const struct tcp_options *o = &conn->poller->listener->o;
	bool was_short = conn->in.short_of;

	if (v->waiting)
		return;
	if (was_short)
		tcp_recv_take(conn);
	if (was_short || (v->calls <= o->max_calls / 2 &&
			  v->queued <= o->max_queued / 2))
		tcp_recv_resume(conn);
	if (conn->in.paused && !conn->in.short_of)
		tcp_send_watch(conn, o->max_calls / 2, o->max_queued / 2);
}

/* In state LIVE. */
static void tcp_conn_take_no_more(struct tcp_conn *conn)
{
	set_state(conn, TCP_ENDING);
	tcp_recv_drop(conn);
}

/* True if the connection is read, and has bytes that epoll can't tell of. */
static bool has_pending(const struct tcp_conn *conn)
{
	return unlikely(conn->secure) && conn->state == TCP_LIVE &&
	       !conn->in.paused && tcp_secure_pending(conn);
}

/* The event that lets a connection be read on. */
static uint32_t read_event(const struct tcp_conn *conn)
{
	return conn->secure && tcp_secure_is_held(conn) ? EPOLLOUT : EPOLLIN;
}

/* Adapts state and socket to the latest events.  May free @conn. */
static void tcp_conn_update(struct tcp_conn *conn)
{
	struct view v = look(conn);
	uint32_t events = v.blocked ? EPOLLOUT : 0;

	if (conn->state != TCP_CLOSED && v.err)
		shut(conn, v.err);
	if (conn->state == TCP_LIVE && v.ending)
		tcp_conn_take_no_more(conn);
	if (conn->state == TCP_LIVE && conn->eof)
		set_state(conn, TCP_ENDING);
	if (unlikely(conn->secure) && conn->state == TCP_LIVE &&
	    tcp_secure_is_shaking(conn))
		events |= tcp_secure_go_on(conn, v.calls, v.queued);
	else if (conn->state == TCP_LIVE && conn->in.paused)
		tcp_conn_read_on(conn, &v);
	if (conn->state == TCP_ENDING)
		tcp_conn_finish(conn, &v);
	if (conn->state != TCP_LIVE && conn->in.short_of && !v.waiting)
		tcp_recv_take(conn);
	if (conn->state == TCP_LIVE && !conn->in.paused)
		events |= read_event(conn);
	else if (conn->state == TCP_LINGER)
		events |= EPOLLIN;
	if (conn->state == TCP_CLOSED) {
		tcp_conn_release(conn);
		return;
	}
	loop_fd_mod(conn->poller->loop, &conn->fd, events);
	/* Others have their turn first. */
	if (unlikely(has_pending(conn))) {
		mutex_lock(&conn->out.box.lock);
		outbox_kick(&conn->out.box);
		mutex_unlock(&conn->out.box.lock);
	}
}

static void end_in_order(struct loop_timer *t)
{
	struct tcp_conn *conn = container_of(t, struct tcp_conn, unread);

	shut(conn, 0);
	tcp_conn_update(conn);
}

static void tcp_conn_kicked(struct outbox *o)
{
	struct tcp_conn *conn = container_of(o, struct tcp_conn, out.box);

	conn->out.encrypted = 0;
	if (unlikely(has_pending(conn)))
		tcp_recv(conn);
	tcp_conn_update(conn);
}

static int socket_error(int fd)
{
	socklen_t len = sizeof(int);
	int err = 0;

	getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
	return err ? -err : -ECONNRESET;
}

static void tcp_conn_ready(struct loop_fd *f, uint32_t events)
{
	struct tcp_conn *conn = container_of(f, struct tcp_conn, fd);

	conn->out.encrypted = 0;
	if (events & (EPOLLERR | EPOLLHUP)) {
		if (conn->state == TCP_LINGER)
			shut(conn, 0);
		else
			outbox_close(&conn->out.box, socket_error(f->fd));
	} else {
		if (events & EPOLLOUT)
			outbox_ready(&conn->out.box);
		if (events & EPOLLOUT && conn->state == TCP_LINGER)
			send_fin(conn);
		if (unlikely(conn->secure) && conn->state == TCP_LIVE &&
		    tcp_secure_is_shaking(conn))
			tcp_secure_ready(conn);
		else if (events & read_event(conn) && conn->state == TCP_LIVE)
			tcp_recv(conn);
		else if (events & EPOLLIN && conn->state == TCP_LINGER &&
			 socket_drain(f->fd))
			shut(conn, 0);
	}
	tcp_conn_update(conn);
}

void tcp_conn_end(struct tcp_conn *conn)
{
	if (conn->state == TCP_LIVE)
		tcp_conn_take_no_more(conn);
	else if (conn->state == TCP_UNREAD)
		shut(conn, 0);
	tcp_conn_update(conn);
}

/* True if the peer takes no unsent reply. */
static bool is_stalled(struct tcp_conn *conn, uint64_t now)
{
	uint64_t sent;
	size_t queued;

	mutex_lock(&conn->out.box.lock);
	sent = conn->out.box.sent;
	queued = conn->out.queued;
	mutex_unlock(&conn->out.box.lock);
	return watchdog_stalled(&conn->times.stalled, now, sent, queued,
				conn->poller->listener->o.send_ms);
}

/* True if others wait for memory, and the connection hardly frees its own. */
static bool is_slow(struct tcp_conn *conn, uint64_t now)
{
	uint64_t moved = conn->in.received;
	size_t held = conn->in.part.buf ? conn->in.part.room : 0;

	mutex_lock(&conn->out.box.lock);
	moved += conn->out.box.sent;
	held += conn->out.queued;
	mutex_unlock(&conn->out.box.lock);
	return watchdog_slow(&conn->times.slow, now, moved,
			     pool_is_short(conn->xprt.pool) ? held : 0,
			     conn->poller->listener->o.short_ms);
}

static void sweep_live(struct tcp_conn *conn, uint64_t now)
{
	const struct tcp_options *o = &conn->poller->listener->o;
	struct view v = look(conn);

	if (conn->secure && tcp_secure_is_shaking(conn))
		tcp_secure_sweep(conn, now);
	if (tcp_secure_is_worn(conn)) {
		stat_inc(tls_worn);
		xprt_life_why(&conn->xprt, "its TLS key has sent all that one "
			      "can");
		tcp_conn_end(conn);
		return;
	}
	if (conn->in.paused)
		return;
	if (!record_idle(&conn->in.rec)) {
		if (!loop_passed(now, conn->times.since, o->stall_ms))
			return;
		stat_inc(tcp_stalls);
		xprt_life_why(&conn->xprt, "the rest of a call does not come");
		outbox_close(&conn->out.box, -ETIMEDOUT);
	} else if (v.calls == 0 && v.queued == 0 &&
		   loop_passed(now, conn->times.active, o->idle_ms)) {
		stat_inc(tcp_idle_closed);
		xprt_life_why(&conn->xprt, "no call came for long");
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
		xprt_life_why(&conn->xprt, "the client takes no replies");
		outbox_close(&conn->out.box, -ETIMEDOUT);
	} else if (is_slow(conn, now)) {
		stat_inc(tcp_short_stalls);
		xprt_life_why(&conn->xprt, "it is slow, and memory is short");
		outbox_close(&conn->out.box, -ETIMEDOUT);
	} else if (conn->state == TCP_LIVE) {
		sweep_live(conn, now);
	} else if (conn->state == TCP_LINGER &&
		   loop_passed(now, conn->times.since, o->linger_ms)) {
		shut(conn, 0);
		tcp_conn_update(conn);
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
	conn->fd = (struct loop_fd){ tcp_conn_ready, fd, EPOLLIN };
	conn->unread.fire = end_in_order;
	record_in_init(&conn->in.rec, MSG_MAX_TAKEN);
	outbox_init(&conn->out.box, &tcp_outbox_ops, tcp_conn_kicked, fd,
		    p->loop);
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
	/* Not before: others can end it from here on. */
	xprt_client_enter(p->listener->env.clients, &conn->xprt);
	conn->times.active = loop_now(p->loop);
	tell_tcp_start(conn);
	err = loop_fd_add(p->loop, &conn->fd);
	if (err)
		outbox_close(&conn->out.box, err);
	if (p->stopped)
		tcp_conn_end(conn);
	else
		tcp_conn_update(conn);
}

void tcp_conn_start(struct tcp_conn *conn)
{
	atomic_fetch_add(&conn->poller->nconns, 1);
	if (conn->poller->loop == loop_current)
		started(&conn->start);
	else
		loop_post(conn->poller->loop, &conn->start, started);
}
