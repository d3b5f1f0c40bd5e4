/* SPDX-License-Identifier: BSD-2-Clause */
/* accept - a listening socket on a loop. */
#include "transport/socket/accept.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "lib/util.h"
#include "transport/socket/socket.h"

STAT(tcp_accept_paused, "times accepting paused for lack of descriptors");

#define BACKLOG		1024
#define ACCEPT_BATCH	32
#define PAUSE_MS	200

static void pause_over(struct loop_timer *t)
{
	struct acceptor *a = container_of(t, struct acceptor, pause);

	loop_fd_mod(a->loop, &a->fd, EPOLLIN);
}

/* The system is out of descriptors or memory.  The poll is level triggered and
 * would call us again at once, so pause. */
static void pause_accept(struct acceptor *a, int err)
{
	stat_inc(tcp_accept_paused);
	log_limited(LOG_LEVEL_ERR, "%s: accept: %s", a->name,
		    strerrordesc_np(err));
	loop_fd_mod(a->loop, &a->fd, 0);
	loop_timer_set(a->loop, &a->pause, PAUSE_MS);
}

static void acceptor_ready(struct loop_fd *f, uint32_t events)
{
	struct acceptor *a = container_of(f, struct acceptor, fd);
	struct sockaddr_storage peer;
	socklen_t len;
	int fd;

	for (int i = 0; i < ACCEPT_BATCH; i++) {
		len = sizeof(peer);
		fd = accept4(f->fd, (struct sockaddr *)&peer, &len,
			     SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			socket_unmap(&peer);
			a->accepted(a, fd, &peer);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
		    errno == ENOMEM)
			pause_accept(a, errno);
		if (errno != ECONNABORTED && errno != EINTR)
			return;
	}
}

struct start {
	struct acceptor *a;
	int err;
};

static void start_here(void *arg)
{
	struct start *s = arg;

	s->err = loop_fd_add(s->a->loop, &s->a->fd);
}

/* Returns the descriptor or -errno.  Connections inherit the options set
 * here. */
static int listen_on(const struct acceptor *a, const struct sockaddr *addr,
		     struct sockaddr_storage *local)
{
	int fd = socket_bind(addr, SOCK_STREAM, a->v6only);
	int err;

	if (fd < 0)
		return fd;
	err = socket_set_stream(fd, a->timeout_ms);
	if (!err && listen(fd, BACKLOG) < 0)
		err = -errno;
	if (!err)
		err = socket_local(fd, local);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

int acceptor_start(struct acceptor *a, struct loop *loop,
		   const struct sockaddr *addr, struct sockaddr_storage *local)
{
	struct start s = { .a = a };
	int fd = listen_on(a, addr, local);

	if (fd < 0)
		return fd;
	a->loop = loop;
	a->fd = (struct loop_fd){ acceptor_ready, fd, EPOLLIN };
	a->pause = (struct loop_timer){ .fire = pause_over };
	loop_call(loop, start_here, &s);
	if (s.err) {
		close(fd);
		a->fd.fd = -1;
	}
	return s.err;
}

static void stop_here(void *arg)
{
	struct acceptor *a = arg;

	if (a->fd.fd < 0)
		return;
	loop_timer_cancel(a->loop, &a->pause);
	loop_fd_del(a->loop, &a->fd);
	close(a->fd.fd);
	a->fd.fd = -1;
}

void acceptor_stop(struct acceptor *a)
{
	loop_call(a->loop, stop_here, a);
}
