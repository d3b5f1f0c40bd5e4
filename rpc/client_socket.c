/* SPDX-License-Identifier: BSD-2-Clause */
/* client_socket - a connected socket: messages out, answers in. */
#include "rpc/client_socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/stats.h"
#include "transport/addr.h"
#include "transport/socket/socket.h"

STAT(client_bad_records, "connections closed because of a malformed answer to "
     "our call");

/* The most bytes that wait for room in the kernel. */
#define OUT_MAX		((size_t)64 << 10)
#define READS		8		/* in a row */
#define USER_TIMEOUT	30000		/* ms */

void client_socket_close(struct client_socket *s)
{
	if (s->state == CLIENT_CLOSED)
		return;
	loop_fd_del(s->loop, &s->fd);
	close(s->fd.fd);
	free(s->out);
	s->out = NULL;
	s->nout = 0;
	s->nin = 0;
	s->state = CLIENT_CLOSED;
}

static void lose(struct client_socket *s, int err)
{
	enum client_socket_state was = s->state;

	client_socket_close(s);
	s->ops->lost(s, err, was);
}

/* Sends the waiting bytes.  0 or -errno. */
static int flush(struct client_socket *s)
{
	ssize_t n;

	if (s->nout) {
		n = send(s->fd.fd, s->out, s->nout,
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n > 0) {
			s->nout -= (size_t)n;
			memmove(s->out, s->out + n, s->nout);
		}
	}
	loop_fd_mod(s->loop, &s->fd, s->nout ? EPOLLIN | EPOLLOUT : EPOLLIN);
	return 0;
}

/* Keeps @len bytes for later; false: no room. */
static bool keep(struct client_socket *s, const uint8_t *data, size_t len)
{
	if (!s->out)
		s->out = malloc(OUT_MAX);
	if (!s->out || len > OUT_MAX - s->nout)
		return false;
	memcpy(s->out + s->nout, data, len);
	s->nout += len;
	return true;
}

static int send_stream(struct client_socket *s, const uint8_t *data,
		       size_t len)
{
	ssize_t n = 0;

	if (s->nout == 0) {
		n = send(s->fd.fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		n = MAX(n, 0);
	}
	if ((size_t)n < len && !keep(s, data + n, len - (size_t)n) && n > 0)
		return -ENOMEM;		/* half a record went */
	return flush(s);
}

int client_socket_send(struct client_socket *s, const uint8_t *data,
		       size_t len)
{
	int err = 0;

	if (s->proto == IPPROTO_TCP)
		err = send_stream(s, data, len);
	else if (send(s->fd.fd, data + RECORD_MARK_SIZE,
		      len - RECORD_MARK_SIZE,
		      MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
		 errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
		err = -errno;
	if (err)
		client_socket_close(s);
	return err;
}

/* Takes the spans of one receive.  0, or -errno: the stream is malformed. */
static int take_stream(struct client_socket *s, const uint8_t *p, size_t len)
{
	const uint8_t *end = p + len;
	struct record_span span;

	for (;;) {
		switch (record_next(&s->record, &p, end, &span)) {
		case RECORD_MORE:
			return 0;
		case RECORD_BAD:
			stat_inc(client_bad_records);
			return -EBADMSG;
		case RECORD_SPAN:
			break;
		}
		memcpy(s->in + s->nin, span.data, span.len);
		s->nin += span.len;
		if (span.end) {
			s->ops->answer(s, s->in, s->nin);
			/* The answer can start the next call on this socket.
			 * If that fails, the rest is of a connection that is
			 * gone. */
			if (s->state != CLIENT_OPEN)
				return 0;
			s->nin = 0;
		}
	}
}

static void receive(struct client_socket *s)
{
	uint8_t buf[RPC_CLIENT_ANSWER_MAX + 1];
	int err = 0;
	ssize_t n;

	for (int i = 0; i < READS && !err && s->state == CLIENT_OPEN; i++) {
		n = recv(s->fd.fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0)
			err = -errno;
		else if (s->proto == IPPROTO_UDP)
			s->ops->answer(s, buf, (uint32_t)n);
		else if (n == 0)
			err = -ECONNRESET;
		else
			err = take_stream(s, buf, (size_t)n);
	}
	if (err)
		lose(s, err);
}

static void connected(struct client_socket *s)
{
	socklen_t len = sizeof(int);
	int err = 0;

	if (getsockopt(s->fd.fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		err = errno;
	if (err) {
		lose(s, -err);
		return;
	}
	s->state = CLIENT_OPEN;
	loop_fd_mod(s->loop, &s->fd, EPOLLIN);
	s->ops->opened(s);
}

static void ready(struct loop_fd *f, uint32_t events)
{
	struct client_socket *s = container_of(f, struct client_socket, fd);
	int err = 0;

	if (s->state == CLIENT_CONNECTING) {
		connected(s);
		return;
	}
	if (events & EPOLLOUT)
		err = flush(s);
	if (err)
		lose(s, err);
	else if (events & ~(uint32_t)EPOLLOUT)
		receive(s);
}

/* A socket, bound to a reserved port if possible; the descriptor or -errno. */
static int make_bound(const struct client_socket *s)
{
	int type = s->proto == IPPROTO_TCP ? SOCK_STREAM : SOCK_DGRAM;
	struct sockaddr_storage from = s->from;
	int fd = socket(s->to.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC,
			0);

	if (fd < 0)
		return -errno;
	if (type == SOCK_STREAM)
		socket_set_stream(fd, USER_TIMEOUT);
	if (from.ss_family != s->to.ss_family)
		from = (struct sockaddr_storage){
			.ss_family = s->to.ss_family };
	socket_bind_reserved(fd, &from);
	return fd;
}

int client_socket_open(struct client_socket *s)
{
	const struct sockaddr *to = (const struct sockaddr *)&s->to;
	int err, fd = make_bound(s);

	if (fd < 0)
		return fd;
	s->state = CLIENT_OPEN;
	s->fd = (struct loop_fd){ ready, fd, EPOLLIN };
	if (connect(fd, to, xprt_addr_len(to)) < 0) {
		err = -errno;
		if (err != -EINPROGRESS)
			goto fail;
		s->state = CLIENT_CONNECTING;
		s->fd.events = EPOLLOUT;
	}
	err = loop_fd_add(s->loop, &s->fd);
	if (err)
		goto fail;
	record_in_init(&s->record, sizeof(s->in));
	return 0;

fail:
	close(fd);
	s->state = CLIENT_CLOSED;
	return err;
}

bool client_same_host(const struct sockaddr_storage *a,
		      const struct sockaddr_storage *b)
{
	if (a->ss_family != b->ss_family ||
	    !xprt_addr_same_host((const struct sockaddr *)a,
				 (const struct sockaddr *)b))
		return false;
	return a->ss_family != AF_INET6 ||
	       ((const struct sockaddr_in6 *)a)->sin6_scope_id ==
	       ((const struct sockaddr_in6 *)b)->sin6_scope_id;
}
