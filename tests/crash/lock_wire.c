/* SPDX-License-Identifier: BSD-2-Clause */
/* lock_wire - the sockets of clients whose owners lock. */
#include "tests/crash/lock_wire.h"

#include <arpa/inet.h>
#include <check.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/crash/lock_calls.h"
#include "tests/unit/runner.h"
#include "wire/getport.h"
#include "wire/record.h"

#define PATIENCE_MS	20000u

static struct sockaddr_in address_of(unsigned host, uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET };

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 10 + host);
	at.sin_port = htons(port);
	return at;
}

static int bound(unsigned host, int type, uint16_t port)
{
	struct sockaddr_in at = address_of(host, port);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0), one = 1;

	ck_assert_int_ge(fd, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
		return fd;
	close(fd);
	return -1;
}

static void close_stream(struct lw_stream *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	s->len = 0;
}

/* The next record of @s, whose length is *@len; NULL: it is not whole. */
static const uint8_t *next_record(const struct lw_stream *s, unsigned from,
				  size_t *len)
{
	uint32_t mark;

	if (s->len < from + 4)
		return NULL;
	memcpy(&mark, s->buf + from, sizeof(mark));
	*len = ntohl(mark) & ~RECORD_LAST;
	ck_assert_uint_le(*len, LW_BUF - 4);
	return s->len >= from + 4 + *len ? s->buf + from + 4 : NULL;
}

/* @c: of a client's connection to the server; NULL: the server's to us. */
static void read_stream(struct lock_wire *w, struct lw_stream *s,
			struct lw_client *c)
{
	ssize_t n = recv(s->fd, s->buf + s->len, LW_BUF - s->len, 0);
	const uint8_t *record;
	unsigned from = 0;
	struct letter l;
	size_t len;

	if (n <= 0) {
		close_stream(s);
		return;
	}
	s->len += (unsigned)n;
	while ((record = next_record(s, from, &len))) {
		if (c) {
			lc_take_reply(w, c, record, len);
		} else {
			lc_take_call(w, s->host, record, len, &l);
			lc_send(&l, s->fd, true, NULL);
		}
		from += 4 + (unsigned)len;
	}
	s->len -= from;
	memmove(s->buf, s->buf + from, s->len);
}

static void read_datagram(struct lock_wire *w, unsigned host, int fd,
			  struct lw_client *c)
{
	struct sockaddr_in from = { 0 };
	socklen_t len = sizeof(from);
	uint8_t data[2048];
	struct letter l;
	ssize_t n = recvfrom(fd, data, sizeof(data), MSG_DONTWAIT,
			     (struct sockaddr *)&from, &len);

	if (n < 0)
		return;
	if (c) {
		lc_take_reply(w, c, data, (size_t)n);
		return;
	}
	lc_take_call(w, host, data, (size_t)n, &l);
	lc_send(&l, fd, false, &from);
}

static void accept_caller(struct lock_wire *w, unsigned host)
{
	int fd = accept(w->client[host].tcp, NULL, NULL);

	for (unsigned i = 0; fd >= 0 && i < LW_CALLERS; i++)
		if (w->caller[i].fd < 0) {
			w->caller[i].fd = fd;
			w->caller[i].host = host;
			return;
		}
	lm_defect(w->m, "too many connections");
}

#define FDS	(3 * LM_HOSTS + LW_CALLERS)

/* The order: clients, their ports for TCP, for UDP, and connections there. */
static unsigned list_fds(const struct lock_wire *w, struct pollfd *p)
{
	for (unsigned i = 0; i < FDS; i++)
		p[i] = (struct pollfd){ .events = POLLIN };
	for (unsigned i = 0; i < LM_HOSTS; i++) {
		p[i].fd = w->client[i].s.fd;
		p[LM_HOSTS + i].fd = w->client[i].tcp;
		p[2 * LM_HOSTS + i].fd = w->client[i].datagrams;
	}
	for (unsigned i = 0; i < LW_CALLERS; i++)
		p[3 * LM_HOSTS + i].fd = w->caller[i].fd;
	return FDS;
}

static void serve_client(struct lock_wire *w, unsigned i)
{
	struct lw_client *c = &w->client[i];

	if (c->udp)
		read_datagram(w, i, c->s.fd, c);
	else
		read_stream(w, &c->s, c);
}

/* False: nothing came. */
static bool serve_once(struct lock_wire *w, int ms)
{
	struct pollfd p[FDS];

	if (poll(p, list_fds(w, p), ms) <= 0)
		return false;
	for (unsigned i = 0; i < LM_HOSTS; i++) {
		if (p[2 * LM_HOSTS + i].revents)
			read_datagram(w, i, w->client[i].datagrams, NULL);
		if (p[LM_HOSTS + i].revents)
			accept_caller(w, i);
		if (p[i].revents)
			serve_client(w, i);
	}
	for (unsigned i = 0; i < LW_CALLERS; i++)
		if (p[3 * LM_HOSTS + i].revents)
			read_stream(w, &w->caller[i], NULL);
	return true;
}

void lw_serve(struct lock_wire *w, int ms)
{
	uint64_t now = runner_now_ms();

	serve_once(w, ms);
	for (unsigned i = 0; i < LM_OWNERS; i++)
		if (w->m->owner[i].busy &&
		    now > w->sent[i].sent_ms + PATIENCE_MS) {
			lm_step(w->m, "owner %u is not answered", i);
			lm_defect(w->m, "no answer");
		}
}

bool lw_any_busy(const struct lock_wire *w)
{
	for (unsigned i = 0; i < LM_OWNERS; i++)
		if (w->m->owner[i].busy)
			return true;
	for (unsigned i = 0; i < LM_HOSTS; i++)
		if (w->m->host[i].restarts)
			return true;
	return false;
}

/* ---- start and end */

void lw_open(struct lock_wire *w, struct lockers *m)
{
	static const struct lw_client kinds[LM_HOSTS] = {
		{ .vers = 4 }, { .vers = 4, .udp = true }, { .vers = 3 },
		{ .vers = 1, .udp = true }, { .vers = 4, .by_message = true },
		{ .vers = 3, .udp = true, .by_message = true },
	};

	*w = (struct lock_wire){ .m = m };
	for (unsigned i = 0; i < LM_HOSTS; i++) {
		struct lw_client *c = &w->client[i];

		*c = kinds[i];
		c->s.fd = -1;
		c->state = 1;
		c->tcp = bound(i, SOCK_STREAM, RPCBIND_PORT);
		c->datagrams = bound(i, SOCK_DGRAM, RPCBIND_PORT);
		w->deaf |= c->tcp < 0 || c->datagrams < 0 ||
			   listen(c->tcp, 32) < 0;
	}
	for (unsigned i = 0; i < LM_HOSTS && w->deaf; i++)
		w->client[i].by_message = false;
	for (unsigned i = 0; i < LW_CALLERS; i++)
		w->caller[i].fd = -1;
}

void lw_connect(struct lock_wire *w, uint16_t tcp_port, uint16_t udp_port)
{
	struct sockaddr_in at = address_of(0, tcp_port);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (unsigned i = 0; i < LM_HOSTS; i++) {
		struct lw_client *c = &w->client[i];

		c->xid = 0;
		c->s.fd = bound(i, c->udp ? SOCK_DGRAM : SOCK_STREAM, 0);
		at.sin_port = htons(c->udp ? udp_port : tcp_port);
		ck_assert_int_eq(connect(c->s.fd, (struct sockaddr *)&at,
					 sizeof(at)), 0);
	}
}

void lw_disconnect(struct lock_wire *w)
{
	/* A socket that gives an error or its end leaves the list. */
	while (serve_once(w, 5))
		;
	for (unsigned i = 0; i < LM_HOSTS; i++)
		close_stream(&w->client[i].s);
	for (unsigned i = 0; i < LW_CALLERS; i++)
		close_stream(&w->caller[i]);
}

void lw_close(struct lock_wire *w)
{
	for (unsigned i = 0; i < LM_HOSTS; i++) {
		if (w->client[i].tcp >= 0)
			close(w->client[i].tcp);
		if (w->client[i].datagrams >= 0)
			close(w->client[i].datagrams);
	}
}
