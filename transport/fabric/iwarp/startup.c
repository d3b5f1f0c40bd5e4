/* SPDX-License-Identifier: BSD-2-Clause */
/* startup - from a socket to a connection: the start-up frames. */
#include "transport/fabric/iwarp/startup.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "transport/fabric/iwarp/internal.h"
#include "transport/socket/socket.h"

STAT(iwarp_requests, "MPA requests accepted");
STAT(iwarp_requests_bad, "malformed MPA requests");
STAT(iwarp_requests_late, "MPA requests that were not complete in time");
STAT(iwarp_requests_lost, "peers that left before their MPA request ended");
STAT(iwarp_rejects, "peers rejected");
STAT(iwarp_rejected, "connections rejected by peers");
STAT(iwarp_replies_bad, "malformed MPA replies");

#define PRIVATE_ROOM	sizeof(((struct fabric_info *)NULL)->private_data)

static void copy_private(struct iwarp_conn *c, const struct mpa_frame *f)
{
	struct fabric_info *info = &c->conn.info;

	info->private_len = MIN(f->private_len, (unsigned)PRIVATE_ROOM);
	if (info->private_len > 0)
		memcpy(info->private_data, f->private_data,
		       info->private_len);
}

/* For iwarp_peer_depths(). */
static void copy_depths(struct iwarp_conn *c, const struct mpa_frame *f)
{
	c->startup.peer = (struct iwarp_depths){
		.told = f->enhanced, .ird = f->ird, .ord = f->ord };
}

struct iwarp_depths iwarp_peer_depths(const struct fabric_conn *conn)
{
	return container_of(conn, const struct iwarp_conn, conn)->startup.peer;
}

/*
 * Reads as much of a frame as has arrived.  1: the frame is whole; 0: not yet;
 * or -errno, -ECONNRESET for the peer's end.
 */
static int read_frame(struct iwarp_conn *c, bool reply)
{
	struct iwarp_startup *s = &c->startup;

	for (;;) {
		int whole = mpa_frame_len(s->frame, s->frame_len, reply);
		unsigned goal = whole > 0 ? (unsigned)whole : MPA_HEADER_LEN;
		ssize_t n;

		if (whole < 0)
			return whole;
		if (whole > 0 && s->frame_len == goal)
			return 1;
		n = recv(c->fd.fd, s->frame + s->frame_len,
			 goal - s->frame_len, MSG_DONTWAIT);
		if (n == 0)
			return -ECONNRESET;
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n < 0)
			return -errno;
		s->frame_len += (unsigned)n;
	}
}

/* No byte may follow a frame before the other side has sent its own. */
static bool anything_follows(struct iwarp_conn *c)
{
	uint8_t byte;

	return recv(c->fd.fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) > 0;
}

/* Sends a frame: an empty socket takes it whole, or never. */
static int send_frame(struct iwarp_conn *c, const struct mpa_frame *f)
{
	uint8_t data[MPA_MAX_FRAME];
	unsigned len = mpa_encode(f, data);
	ssize_t n = send(c->fd.fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0)
		return -errno;
	c->extra += (uint64_t)n;
	return n == (ssize_t)len ? 0 : -EIO;
}

/* ---- passive */

/* Takes the connection out of the listener's list. */
static void leave_listener(struct iwarp_conn *c)
{
	struct iwarp_listener *l = c->startup.listener;

	loop_fd_del(l->l.loop, &c->fd);
	loop_timer_cancel(l->l.loop, &c->startup.late);
	iwarp_sources_remove(c);
	c->startup.listener = NULL;
}

void iwarp_startup_drop(struct iwarp_conn *c)
{
	leave_listener(c);
	iwarp_conn_destroy(c);
}

void iwarp_reject(struct fabric_conn *conn)
{
	struct iwarp_conn *c = iwarp_conn(conn);
	struct mpa_frame reply;

	stat_inc(iwarp_rejects);
	mpa_reject(&c->startup.request, &reply);
	send_frame(c, &reply);
	shutdown(c->fd.fd, SHUT_WR);
	iwarp_conn_destroy(c);
}

/* The frame is complete. */
static void requested(struct iwarp_conn *c)
{
	struct iwarp_listener *l = c->startup.listener;
	struct mpa_frame f;
	char name[XPRT_ADDR_TEXT];

	if (mpa_decode(c->startup.frame, c->startup.frame_len, false, &f) < 0 ||
	    anything_follows(c)) {
		stat_inc(iwarp_requests_bad);
		log_limited(LOG_LEVEL_INFO, "iwarp %s: malformed MPA request",
			    iwarp_conn_name(c, name));
		iwarp_startup_drop(c);
		return;
	}
	stat_inc(iwarp_requests);
	copy_private(c, &f);
	copy_depths(c, &f);
	c->startup.request = f;
	c->startup.request.private_data = NULL;
	c->startup.request.private_len = 0;
	c->conn.info.read_depth = mpa_read_depth(&f, c->startup.policy.ord);
	leave_listener(c);
	l->l.request(&l->l, &c->conn);
}

static void request_ready(struct loop_fd *fd, uint32_t events)
{
	struct iwarp_conn *c = container_of(fd, struct iwarp_conn, fd);
	char name[XPRT_ADDR_TEXT];
	int err = read_frame(c, false);

	if (err == 0)
		return;
	if (err > 0) {
		requested(c);
		return;
	}
	if (err == -EPROTO || err == -EPROTONOSUPPORT) {
		stat_inc(iwarp_requests_bad);
		log_limited(LOG_LEVEL_INFO, "iwarp %s: %s",
			    iwarp_conn_name(c, name), err == -EPROTO ?
			    "not an MPA request" :
			    "an MPA request of an unknown revision");
	} else {
		stat_inc(iwarp_requests_lost);
	}
	iwarp_startup_drop(c);
}

static void request_late(struct loop_timer *t)
{
	struct iwarp_conn *c = container_of(t, struct iwarp_conn,
					    startup.late);

	stat_inc(iwarp_requests_late);
	iwarp_startup_drop(c);
}

void iwarp_startup_begin(struct iwarp_listener *l, int fd,
			 const struct sockaddr_storage *peer)
{
	struct iwarp_conn *c;

	if (iwarp_conn_create(l->provider, fd, &c) < 0) {
		close(fd);
		return;
	}
	c->startup.passive = true;
	c->startup.listener = l;
	c->conn.info.peer = *peer;
	socket_local(fd, &c->conn.info.local);
	socket_unmap(&c->conn.info.local);
	c->fd.ready = request_ready;
	c->fd.events = EPOLLIN;
	if (iwarp_sources_add(&l->sources, c)) {
		iwarp_conn_destroy(c);
		return;
	}
	if (loop_fd_add(l->l.loop, &c->fd)) {
		iwarp_sources_remove(c);
		iwarp_conn_destroy(c);
		return;
	}
	c->startup.late.fire = request_late;
	loop_timer_set(l->l.loop, &c->startup.late,
		       l->provider->options.handshake_ms);
}

static void log_agreed(const struct iwarp_conn *c, const struct mpa_frame *f,
		       const struct mpa_agreed *a)
{
	char name[XPRT_ADDR_TEXT];

	log_debug("iwarp %s: MPA revision %u%s%s%s, Reads: %u ours, %u its",
		  iwarp_conn_name(c, name), f->rev, a->crc ? ", CRC" : "",
		  a->markers ? ", markers" : "",
		  !f->p2p ? "" : f->rtr_write ? ", begins with a Write" :
		  ", begins with a Read", a->ord, a->ird);
}

static int start_passive(struct iwarp_conn *c, const void *private_data,
			 unsigned private_len)
{
	struct mpa_agreed agreed;
	struct mpa_frame reply;
	int err;

	mpa_answer(&c->startup.request, &c->startup.policy, &reply, &agreed);
	reply.private_data = private_data;
	reply.private_len = private_len;
	if (anything_follows(c)) {
		stat_inc(iwarp_requests_bad);
		return -EPROTO;
	}
	err = agreed.markers ? iwarp_tx_mark(c->tx) : 0;
	if (!err)
		err = send_frame(c, &reply);
	if (err)
		return err;
	log_agreed(c, &reply, &agreed);
	iwarp_conn_live(c, &agreed, true);
	return 0;
}

/* ---- active */

int iwarp_connect(void *provider, const struct sockaddr *addr,
		  struct fabric_conn **out)
{
	struct iwarp_provider *p = provider;
	const struct sockaddr_storage from = { .ss_family = addr->sa_family };
	struct iwarp_conn *c;
	int fd, err;

	if (addr->sa_family != AF_INET && addr->sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK |
		    SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (p->options.reserved_port)
		socket_bind_reserved(fd, &from);
	err = socket_set_stream(fd, p->options.user_timeout_ms);
	if (!err)
		err = socket_connect(fd, addr, (int)p->options.handshake_ms);
	if (!err)
		err = iwarp_conn_create(p, fd, &c);
	if (err) {
		close(fd);
		return err;
	}
	xprt_addr_copy(&c->conn.info.peer, addr);
	socket_local(fd, &c->conn.info.local);
	*out = &c->conn;
	return 0;
}

static int start_active(struct iwarp_conn *c, const void *private_data,
			unsigned private_len)
{
	const struct iwarp_options *o = &c->provider->options;
	struct mpa_frame *f = &c->startup.request;
	int err;

	*f = (struct mpa_frame){
		.crc = !o->no_crc,
		.rev = (uint8_t)o->revision,
		.p2p = o->rtr != IWARP_RTR_NONE,
		.rtr_write = o->rtr == IWARP_RTR_WRITE ||
			     o->rtr == IWARP_RTR_EITHER,
		.rtr_read = o->rtr == IWARP_RTR_READ ||
			    o->rtr == IWARP_RTR_EITHER,
		.ird = (uint16_t)c->startup.policy.ird,
		.ord = (uint16_t)c->startup.policy.ord,
		.private_data = private_data,
		.private_len = private_len,
	};
	f->enhanced = f->rev > 1;
	f->p2p = f->p2p && f->enhanced;
	err = send_frame(c, f);
	f->private_data = NULL;
	loop_timer_set(c->conn.loop, &c->timer, o->handshake_ms);
	return err;
}

/* Ends the connection, and tells the peer the reason, as RFC 6581 section 8
 * asks. */
static void refuse_reply(struct iwarp_conn *c, struct mpa_agreed *agreed,
			 int err)
{
	if (err == -ECONNREFUSED)
		stat_inc(iwarp_rejected);
	else
		stat_inc(iwarp_replies_bad);
	if (err == -ENOSPC || err == -ENOTSUP) {
		agreed->rtr = MPA_RTR_NONE;
		iwarp_conn_live(c, agreed, false);
		c->rx.term = err == -ENOSPC ? TERM_MPA_IRD : TERM_MPA_RTR;
		c->live_due = false;
	}
	outbox_close(&c->out, err);
}

static int conclude(struct iwarp_conn *c, const struct mpa_frame *reply,
		    struct mpa_agreed *agreed)
{
	struct iwarp_startup *s = &c->startup;
	int err = mpa_conclude(&s->request, &s->policy, reply, agreed);

	copy_depths(c, reply);
	/* A refusal can go out as a Terminate, with its marker. */
	if (agreed->markers && iwarp_tx_mark(c->tx))
		return -ENOMEM;
	return err;
}

static void reply_ready(struct loop_fd *fd, uint32_t events)
{
	struct iwarp_conn *c = container_of(fd, struct iwarp_conn, fd);
	struct mpa_agreed agreed;
	struct iwarp_startup *s = &c->startup;
	struct mpa_frame reply;
	int err;

	if (atomic_load(&c->out.closing))
		return;			/* a passive end failed, or time ran
					 * out: the update follows */
	err = read_frame(c, true);
	if (err == 0)
		return;
	if (err > 0)
		err = mpa_decode(s->frame, s->frame_len, true, &reply);
	if (!err)
		err = conclude(c, &reply, &agreed);
	if (!err && anything_follows(c))
		err = -EPROTO;
	if (err) {
		refuse_reply(c, &agreed, err);
		return;
	}
	loop_timer_cancel(c->conn.loop, &c->timer);
	copy_private(c, &reply);
	iwarp_conn_live(c, &agreed, false);
}

int iwarp_start(struct fabric_conn *conn, const void *private_data,
		unsigned private_len, unsigned read_depth)
{
	struct iwarp_conn *c = iwarp_conn(conn);
	int err;

	c->startup.policy.ird = MIN(read_depth,
				    c->provider->options.read_depth);
	private_len = MIN(private_len, conn->dev->limits.max_private);
	if (atomic_load(&c->out.closing))
		return -ENOTCONN;
	c->fd.ready = reply_ready;
	c->fd.events = EPOLLIN;
	err = loop_fd_add(conn->loop, &c->fd);
	if (!err)
		err = c->startup.passive ?
		      start_passive(c, private_data, private_len) :
		      start_active(c, private_data, private_len);
	if (err)
		outbox_close(&c->out, err);
	return err;
}
