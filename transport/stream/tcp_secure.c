/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_secure - how a TCP connection comes to TLS (RFC 9289), and has it.
 *
 * Operation: the sink asks for TLS when the first call is AUTH_TLS's.  From
 * then on nothing is read as RPC.  When the reply is sent, the poller waits for
 * the client's bytes, and has another thread go on with the handshake each time
 * that some come: so a client that sends none has no thread.  After the
 * handshake the poller receives, and any thread sends, as without TLS.
 *
 * A connection is never in clear again: every failure ends it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "transport/stream/tcp.h"
#include "transport/tls/tls.h"

STAT(tls_begun, "TCP connections that TLS protects from then on");
STAT(tls_failed, "TCP connections whose TLS handshake failed");
STAT(tls_slow, "TCP connections closed because the TLS handshake took too "
     "long");
STAT(tls_refused, "TCP connections closed because too many were in a TLS "
     "handshake");
STAT(tls_no_memory, "TCP connections closed because those under TLS had all "
     "the memory that they can have");
STAT(tls_plain, "TCP connections closed because something else than TLS came "
     "behind STARTTLS");
STAT(tls_bad_records, "TCP connections closed because of a bad TLS record");
STAT(tls_cut, "TCP connections under TLS that ended without close_notify");

/* The first byte of a TLS handshake's record (RFC 8446 section 5.1). */
#define CONTENT_HANDSHAKE	22

enum stage {
	ASKED,		/* the reply is not sent yet */
	WAITING,	/* for the client's bytes, or for room for ours */
	AWAY,		/* another thread has the handshake */
	OPEN,
};

struct tcp_secure {
	struct tcp_conn	*conn;		/* borrowed: owns us */
	enum stage	 stage;
	bool		 counted;	/* in the gate of handshakes */
	bool		 has_memory;	/* counted in the server's */
	bool		 heard;		/* the handshake has begun */
	uint64_t	 since;		/* it was asked for */
	struct tls_conn	*tls;		/* AWAY: the other thread's */
	uint32_t	 events;	/* WAITING: for these */
	bool		 held;		/* OPEN: nothing is received before
					 * the socket has room */
	struct tcp_job	 job;
	struct loop_task task;
	/* The other thread's result. */
	int		 err;
	const char	*why;
};

/* Counts a connection on its way to TLS.  0 or -errno. */
static int enter_gates(struct tcp_secure *s)
{
	struct tcp_listener *l = s->conn->poller->listener;
	struct sockaddr *peer = (struct sockaddr *)&s->conn->xprt.peer;
	int err = xprt_gate_enter(&l->shaking, peer);

	if (err) {
		stat_inc(tls_refused);
		xprt_life_why(&s->conn->xprt, "too many TLS handshakes are in "
			      "progress");
		return err;
	}
	s->counted = true;
	err = tls_server_enter(l->o.tls->server, peer);
	if (err) {
		stat_inc(tls_no_memory);
		xprt_log_limited(&s->conn->xprt, LOG_LEVEL_WARN, "TLS refused: "
				 "connections under TLS have all the memory "
				 "that they can have");
		xprt_life_why(&s->conn->xprt, "connections under TLS have all "
			      "the memory that they can have");
	}
	s->has_memory = !err;
	return err;
}

/* There is no reply: a client must not go on in clear. */
static int refuse_tls(struct tcp_conn *conn, int err)
{
	outbox_close(&conn->out.box, err);
	return -EUSERS;
}

int tcp_secure_ask(struct xprt *x)
{
	struct tcp_conn *conn = container_of(x, struct tcp_conn, xprt);
	struct tcp_listener *l = conn->poller->listener;
	struct tcp_secure *s;
	int err;

	if (conn->secure)
		return -EALREADY;
	if (!l->o.tls || !tls_server_has_config(l->o.tls->server))
		return -EOPNOTSUPP;
	if (conn->in.taken != 1)
		return -EALREADY;
	/* Nothing behind this call is read in clear. */
	conn->in.paused = true;
	s = calloc(1, sizeof(*s));
	if (!s)
		return refuse_tls(conn, -ENOMEM);
	s->conn = conn;
	/* tcp_secure_free() gives back what this takes. */
	conn->secure = s;
	err = enter_gates(s);
	if (err)
		return refuse_tls(conn, err);
	s->since = loop_now(conn->poller->loop);
	return 0;
}

bool tcp_secure_is_shaking(const struct tcp_conn *conn)
{
	return conn->secure->stage != OPEN;
}

bool tcp_secure_is_away(const struct tcp_conn *conn)
{
	return conn->secure && conn->secure->stage == AWAY;
}

static void uncount(struct tcp_secure *s)
{
	struct tcp_conn *conn = s->conn;

	if (s->counted)
		xprt_gate_leave(&conn->poller->listener->shaking,
				(struct sockaddr *)&conn->xprt.peer);
	s->counted = false;
}

static void refuse_plain(struct tcp_conn *conn)
{
	stat_inc(tls_plain);
	xprt_life_why(&conn->xprt, "no TLS came behind STARTTLS");
	outbox_close(&conn->out.box, -EPROTO);
}

/* The reply to AUTH_TLS is sent. */
static void begin(struct tcp_conn *conn)
{
	struct tcp_secure *s = conn->secure;
	uint64_t clear;
	int err;

	/* The client had to wait for the reply. */
	if (conn->in.rest.mem) {
		refuse_plain(conn);
		return;
	}
	mutex_lock(&conn->out.box.lock);
	clear = conn->out.box.sent;
	mutex_unlock(&conn->out.box.lock);
	err = tls_conn_create(conn->poller->listener->o.tls->server,
			      conn->fd.fd, clear, &s->tls);
	if (err) {
		outbox_close(&conn->out.box, err);
		return;
	}
	/* A pipe's pages can't be encrypted on their way. */
	conn->xprt.takes_pipes = false;
	s->events = EPOLLIN;
	s->stage = WAITING;
}

uint32_t tcp_secure_go_on(struct tcp_conn *conn, uint64_t calls, size_t queued)
{
	struct tcp_secure *s = conn->secure;

	if (s->stage == ASKED && (calls > 0 || queued > 0))
		tcp_send_watch(conn, 0, 0);
	else if (s->stage == ASKED)
		begin(conn);
	return s->stage == WAITING ? s->events : 0;
}

/* The handshake is complete. */
static void begin_tls(struct tcp_secure *s)
{
	struct tcp_conn *conn = s->conn;
	bool mutual = tls_conn_is_mutual(s->tls);

	stat_inc(tls_begun);
	s->stage = OPEN;
	uncount(s);
	conn->xprt.protection = mutual ? RPC_MTLS : RPC_TLS;
	/* RFC 9289 section 6.1 wants the choice logged. */
	xprt_log_limited(&conn->xprt, LOG_LEVEL_DEBUG, "TLS begins, with%s a "
			 "trusted certificate of the client's",
			 mutual ? "" : "out");
	mutex_lock(&conn->out.box.lock);
	atomic_store(&conn->tls, s->tls);
	conn->out.box.ops = &tcp_secure_outbox_ops;
	mutex_unlock(&conn->out.box.lock);
	conn->in.paused = false;
	conn->times.active = loop_now(conn->poller->loop);
}

static void fail(struct tcp_secure *s)
{
	struct xprt *x = &s->conn->xprt;

	stat_inc(tls_failed);
	xprt_log_limited(x, LOG_LEVEL_INFO, "TLS handshake failed: %s",
			 s->why ? s->why : strerror(-s->err));
	xprt_life_why(x, "the TLS handshake failed");
	outbox_close(&s->conn->out.box, s->err);
}

static void shaken(struct loop_task *t)
{
	struct tcp_secure *s = container_of(t, struct tcp_secure, task);
	struct tcp_conn *conn = s->conn;

	s->stage = WAITING;
	if (conn->state == TCP_LIVE && !s->err)
		begin_tls(s);
	else if (conn->state == TCP_LIVE && s->err != -EAGAIN)
		fail(s);
	mutex_lock(&conn->out.box.lock);
	outbox_kick(&conn->out.box);
	mutex_unlock(&conn->out.box.lock);
}

/* On another thread. */
static void shake(struct tcp_job *job)
{
	struct tcp_secure *s = container_of(job, struct tcp_secure, job);

	s->err = tls_handshake(s->tls, &s->events, &s->why);
	loop_post(s->conn->poller->loop, &s->task, shaken);
}

/* Bytes that aren't TLS get no answer (RFC 9289 section 5.1.1). */
static bool is_tls(struct tcp_conn *conn)
{
	uint8_t first;
	ssize_t n = recv(conn->fd.fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);

	/* OpenSSL meets an error again. */
	if (n <= 0 || first == CONTENT_HANDSHAKE)
		return true;
	refuse_plain(conn);
	return false;
}

void tcp_secure_ready(struct tcp_conn *conn)
{
	const struct tcp_tls *o = conn->poller->listener->o.tls;
	struct tcp_secure *s = conn->secure;
	int err;

	if (s->stage != WAITING || atomic_load(&conn->out.box.closing))
		return;
	if (!s->heard && !is_tls(conn))
		return;
	s->heard = true;
	s->stage = AWAY;
	s->job.run = shake;
	s->job.peer = (struct sockaddr *)&conn->xprt.peer;
	err = o->submit(o->arg, &s->job);
	if (err) {
		s->stage = WAITING;
		outbox_close(&conn->out.box, err);
	}
}

void tcp_secure_sweep(struct tcp_conn *conn, uint64_t now)
{
	struct tcp_secure *s = conn->secure;

	if (!loop_passed(now, s->since,
			 conn->poller->listener->o.tls->handshake_ms))
		return;
	stat_inc(tls_slow);
	xprt_life_why(&conn->xprt, "the TLS handshake takes too long");
	outbox_close(&conn->out.box, -ETIMEDOUT);
}

ssize_t tcp_secure_recv(struct tcp_conn *conn, const struct iovec *iov,
			int niov)
{
	struct tcp_secure *s = conn->secure;
	ssize_t n = tls_recv(s->tls, iov, niov);

	s->held = n == -EBUSY;
	if (s->held)
		return -EAGAIN;
	if (n == -EPROTO) {
		stat_inc(tls_bad_records);
		xprt_life_why(&conn->xprt, "a TLS record is wrong");
	} else if (n == -ECONNRESET) {
		stat_inc(tls_cut);
	}
	return n;
}

bool tcp_secure_pending(const struct tcp_conn *conn)
{
	return conn->secure->stage == OPEN && !conn->secure->held &&
	       tls_pending(conn->secure->tls);
}

bool tcp_secure_is_held(const struct tcp_conn *conn)
{
	return conn->secure->held;
}

bool tcp_secure_is_worn(const struct tcp_conn *conn)
{
	return conn->secure && conn->secure->stage == OPEN &&
	       tls_records(conn->secure->tls) >=
	       conn->poller->listener->o.tls->max_records;
}

bool tcp_secure_close(struct tcp_conn *conn)
{
	return !conn->secure || conn->secure->stage != OPEN ||
	       tls_close(conn->secure->tls) != -EAGAIN;
}

void tcp_secure_free(struct tcp_conn *conn)
{
	struct tcp_secure *s = conn->secure;

	if (!s)
		return;
	uncount(s);
	tls_conn_destroy(s->tls);
	if (s->has_memory)
		tls_server_leave(conn->poller->listener->o.tls->server,
				 (struct sockaddr *)&conn->xprt.peer);
	free(s);
}
