/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * conn - a connection: its socket on the loop, and its end.
 *
 * The end: posting and sending stop; after the last thread has stopped sending,
 * all ops are flushed.  A Terminate goes out if one is due, then our FIN.  If
 * the socket were closed with bytes unread, it would send a reset, and the
 * peer's TCP might throw away our last bytes.  So it is closed when the peer's
 * FIN has also come, or after a while.
 */
#include "transport/fabric/iwarp/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "transport/socket/socket.h"

STAT(iwarp_established, "iWARP connections established");
STAT(iwarp_closed, "iWARP connections that ended");
STAT(iwarp_terminates_out, "Terminate messages sent");
STAT(iwarp_terminates_lost, "Terminate messages that could not be sent");
STAT(iwarp_silent, "accepted peers that sent nothing");
STAT(iwarp_lingered_out, "peers that did not close after the server closed");

/* Returns how many of tx's bytes the peer has. */
static void look_locked(struct iwarp_conn *c, struct xprt_view *v)
{
	socket_look(c->fd.fd, v);
	v->acked -= MIN(v->acked, c->extra);
}

void iwarp_look(struct fabric_conn *conn, struct xprt_view *v)
{
	struct iwarp_conn *c = iwarp_conn(conn);

	mutex_lock(&c->out.lock);
	if (c->over)
		*v = c->last;
	else
		look_locked(c, v);
	mutex_unlock(&c->out.lock);
}

uint64_t iwarp_sent(struct fabric_conn *conn)
{
	struct iwarp_conn *c = iwarp_conn(conn);
	uint64_t sent;

	mutex_lock(&c->out.lock);
	sent = c->out.sent;
	mutex_unlock(&c->out.lock);
	return sent;
}

/*
 * Records the socket's facts: our FIN comes next, and after it the socket's
 * state no longer shows what the peer did.
 */
static void look_last(struct iwarp_conn *c)
{
	mutex_lock(&c->out.lock);
	if (!c->over) {
		c->last.ended = xprt_now_ms();
		look_locked(c, &c->last);
		c->over = true;
	}
	mutex_unlock(&c->out.lock);
}

static void iwarp_conn_finish(struct iwarp_conn *c)
{
	loop_timer_cancel(c->conn.loop, &c->timer);
	loop_fd_del(c->conn.loop, &c->fd);
	c->state = IWARP_CLOSED;
	if (!outbox_over(&c->out))
		return;			/* an update will call this again */
	look_last(c);
	socket_close_stream(c->fd.fd);
	c->fd.fd = -1;
	stat_inc(iwarp_closed);
	c->conn.closed(&c->conn, c->out.err);
}

static void iwarp_conn_timed_out(struct loop_timer *t)
{
	struct iwarp_conn *c = container_of(t, struct iwarp_conn, timer);

	if (c->state == IWARP_LINGER) {
		stat_inc(iwarp_lingered_out);
		iwarp_conn_finish(c);
		return;
	}
	if (c->state == IWARP_LIVE)
		stat_inc(iwarp_silent);
	outbox_close(&c->out, -ETIMEDOUT);
}

/* Finds the code of an end that is not about the peer's FPDUs. */
static void own_term(struct iwarp_conn *c)
{
	if (c->read_refused) {
		c->rx.term = TERM_RDMAP_STAG;
		iwarp_note_refused(c);
	} else if (c->out.err == -ENOMEM && !c->out.held) {
		/* RFC 6581 section 9.3. */
		c->rx.term = TERM_MPA_LOCAL;
	}
}

/* Best effort, and never within a FPDU. */
static void send_terminate(struct iwarp_conn *c)
{
	uint8_t fpdu[IWARP_TERM_FPDU];
	unsigned len;

	if (c->rx.term == TERM_NONE)
		own_term(c);
	if (c->rx.term == TERM_NONE || c->eof)
		return;
	len = iwarp_tx_terminate(c->tx, &c->rx, fpdu);
	if (!iwarp_tx_idle(c->tx) ||
	    send(c->fd.fd, fpdu, len, MSG_NOSIGNAL | MSG_DONTWAIT) !=
	    (ssize_t)len)
		stat_inc(iwarp_terminates_lost);
	else
		stat_inc(iwarp_terminates_out);
}

/*
 * Makes the close a reset.  After an orderly one the kernel acknowledges bytes
 * that come later and throws them away, and the peer takes them for received.
 */
static void reset_at_close(struct iwarp_conn *c)
{
	struct linger now = { 1, 0 };

	setsockopt(c->fd.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

static void linger(struct iwarp_conn *c)
{
	bool live = c->live, owed;

	look_last(c);
	if (live)
		send_terminate(c);
	/* A reset might cost the peer a Terminate. */
	owed = c->rx.term == TERM_NONE && c->conn.owed &&
	       c->conn.owed(&c->conn);
	rdmap_fini(&c->rx);
	iwarp_flush(c);
	if (owed)
		reset_at_close(c);
	else
		shutdown(c->fd.fd, SHUT_WR);
	if (!live || c->eof || owed) {
		iwarp_conn_finish(c);
		return;
	}
	c->state = IWARP_LINGER;
	loop_fd_mod(c->conn.loop, &c->fd, EPOLLIN);
	loop_timer_set(c->conn.loop, &c->timer,
		       c->provider->options.linger_ms);
}

/* Stops posts and sends.  The flush sometimes waits for a sender. */
static void iwarp_conn_stop(struct iwarp_conn *c)
{
	c->state = IWARP_STOPPING;
	c->rx.stop = true;
	loop_timer_cancel(c->conn.loop, &c->timer);
	if (outbox_kill(&c->out))
		linger(c);
}

static void tell_established(struct iwarp_conn *c)
{
	if (!c->live_due || atomic_load(&c->out.closing))
		return;
	c->live_due = false;
	stat_inc(iwarp_established);
	c->conn.established(&c->conn);
}

static void iwarp_conn_push(struct iwarp_conn *c)
{
	bool blocked;

	mutex_lock(&c->out.lock);
	outbox_push(&c->out);
	blocked = c->out.blocked;
	mutex_unlock(&c->out.lock);
	loop_fd_mod(c->conn.loop, &c->fd, blocked ? EPOLLIN | EPOLLOUT :
						    EPOLLIN);
}

/* Everything but the socket itself; posts meanwhile are sent at the end. */
static void update_live(struct iwarp_conn *c)
{
	c->out.gathering = true;
	tell_established(c);
	iwarp_retire(c);
	c->out.gathering = false;
	iwarp_conn_push(c);
}

/* Adapts state and socket to the latest events.  May free @c. */
static void iwarp_conn_update(struct iwarp_conn *c)
{
	if (c->state == IWARP_LIVE)
		update_live(c);
	if (c->state < IWARP_STOPPING && atomic_load(&c->out.closing))
		iwarp_conn_stop(c);
	else if (c->state == IWARP_STOPPING && outbox_kill(&c->out))
		linger(c);
	else if (c->state == IWARP_CLOSED)
		iwarp_conn_finish(c);
}

static void ready_live(struct iwarp_conn *c, uint32_t events)
{
	if (events & EPOLLOUT)
		outbox_ready(&c->out);
	if (events & ~(uint32_t)EPOLLOUT) {
		c->out.gathering = true;
		iwarp_receive(c);
		c->out.gathering = false;
	}
}

static void iwarp_conn_ready(struct loop_fd *f, uint32_t events)
{
	struct iwarp_conn *c = container_of(f, struct iwarp_conn, fd);

	if (c->state == IWARP_LINGER) {
		if (socket_drain(f->fd))
			iwarp_conn_finish(c);	/* can free it */
		return;
	}
	if (c->state == IWARP_LIVE)
		ready_live(c, events);
	else if (c->state == IWARP_STOPPING)
		loop_fd_mod(c->conn.loop, &c->fd, 0);
	iwarp_conn_update(c);
}

static void iwarp_conn_kicked(struct outbox *o)
{
	iwarp_conn_update(container_of(o, struct iwarp_conn, out));
}

void iwarp_conn_live(struct iwarp_conn *c, const struct mpa_agreed *agreed,
		     bool hold)
{
	const struct iwarp_options *o = &c->provider->options;

	rdmap_init(&c->rx, &iwarp_rdmap_ops, agreed->crc);
	iwarp_tx_init(c->tx, o->fpdu_size ? o->fpdu_size : IWARP_MIN_FPDU,
		      agreed->crc);
	c->conn.info.read_depth = agreed->ord;
	c->answers.depth = agreed->ird;
	c->state = IWARP_LIVE;
	c->fd.ready = iwarp_conn_ready;
	c->live_due = agreed->rtr != MPA_RTR_READ;
	mutex_lock(&c->out.lock);
	c->live = true;
	c->out.held = hold;
	if (agreed->rtr != MPA_RTR_NONE) {
		/* siw compares these numbers. */
		c->rtr.opcode = FABRIC_READ;
		if (agreed->rtr == MPA_RTR_WRITE) {
			c->rtr.opcode = FABRIC_WRITE;
			c->rtr.handle = 1;
		}
		iwarp_queue_add(c, &c->rtr);
	}
	outbox_kick(&c->out);
	mutex_unlock(&c->out.lock);
	/* RFC 5044 section 7.1.2 rule 10. */
	if (hold)
		loop_timer_set(c->conn.loop, &c->timer, o->first_ms);
}

/* ---- making and freeing */

int iwarp_conn_create(struct iwarp_provider *p, int fd,
		      struct iwarp_conn **out)
{
	struct iwarp_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->provider = p;
	c->fd.fd = fd;
	c->timer.fire = iwarp_conn_timed_out;
	CDS_INIT_LIST_HEAD(&c->startup.unfinished);
	outbox_init(&c->out, &iwarp_outbox_ops, iwarp_conn_kicked, fd, NULL);
	c->out.held = true;
	rdmap_init(&c->rx, &iwarp_rdmap_ops, false);
	c->startup.policy = (struct mpa_policy){
		.crc = !p->options.no_crc,
		.ord = p->device.dev.limits.max_read_depth,
	};
	c->conn.ops = p->device.dev.ops;
	c->conn.dev = &p->device.dev;
	c->conn.info.read_depth = c->startup.policy.ord;
	c->conn.info.remote_inv = true;
	*out = c;
	return 0;
}

void iwarp_conn_destroy(struct iwarp_conn *c)
{
	if (c->fd.fd >= 0)
		socket_close_stream(c->fd.fd);
	iwarp_queues_destroy(c);
	rdmap_fini(&c->rx);
	if (c->il)
		iwarp_loop_put(c->il);
	outbox_fini(&c->out);
	free(c);
}

int iwarp_setup(struct fabric_conn *conn, struct loop *loop,
		const struct fabric_queues *q)
{
	struct iwarp_conn *c = iwarp_conn(conn);
	int err;

	conn->loop = c->out.loop = loop;
	err = iwarp_loop_get(c->provider, loop, &c->il);
	return err ? err : iwarp_queues_create(c, q);
}

void iwarp_close(struct fabric_conn *conn)
{
	outbox_close(&iwarp_conn(conn)->out, 0);
}

void iwarp_free(struct fabric_conn *conn)
{
	iwarp_conn_destroy(iwarp_conn(conn));
}
