/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listen - listeners: peers are accepted and may ask.
 *
 * Those that have not finished asking are bounded: one too many, and the
 * oldest goes, as honest ones are done within a round trip.
 */
#include "transport/fabric/iwarp/internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "transport/stream/socket.h"

STAT(iwarp_accepted, "TCP connections accepted by the iWARP fabric");
STAT(iwarp_crowded_out, "peers dropped as too many had not finished asking");
STAT(iwarp_accept_paused, "times accepting paused for lack of descriptors");

#define BACKLOG		1024
#define ACCEPT_BATCH	32
#define PAUSE_MS	200

int iwarp_socket_options(const struct iwarp_provider *p, int fd)
{
	int timeout = (int)MIN(p->options.user_timeout_ms,
			       (unsigned)INT32_MAX);

	if (socket_set(fd, IPPROTO_TCP, TCP_NODELAY, 1) < 0 ||
	    socket_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1) < 0 ||
	    socket_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, timeout) < 0)
		return -errno;
	return 0;
}

static void accepted(struct iwarp_listener *l, int fd,
		     struct sockaddr_storage *peer)
{
	stat_inc(iwarp_accepted);
	socket_unmap(peer);
	if (l->nunfinished >= l->provider->options.max_handshakes) {
		stat_inc(iwarp_crowded_out);
		log_limited(LOG_LEVEL_WARN, "iwarp: %u peers have not "
			    "finished asking, the oldest is dropped",
			    l->nunfinished);
		iwarp_startup_drop(cds_list_first_entry(&l->unfinished,
							struct iwarp_conn,
							unfinished));
	}
	iwarp_startup_begin(l, fd, peer);
}

static void pause_over(struct loop_timer *t)
{
	struct iwarp_listener *l = container_of(t, struct iwarp_listener,
						pause);

	loop_fd_mod(l->l.loop, &l->fd, EPOLLIN);
}

/* Out of something: level triggered, we would be called again at once. */
static void pause_accept(struct iwarp_listener *l, int err)
{
	stat_inc(iwarp_accept_paused);
	log_limited(LOG_LEVEL_ERR, "iwarp: accept: %s", strerrordesc_np(err));
	loop_fd_mod(l->l.loop, &l->fd, 0);
	loop_timer_set(l->l.loop, &l->pause, PAUSE_MS);
}

static void ready(struct loop_fd *f, uint32_t events)
{
	struct iwarp_listener *l = container_of(f, struct iwarp_listener, fd);
	struct sockaddr_storage peer;
	socklen_t len;
	int fd;

	for (int i = 0; i < ACCEPT_BATCH; i++) {
		len = sizeof(peer);
		fd = accept4(f->fd, (struct sockaddr *)&peer, &len,
			     SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			accepted(l, fd, &peer);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
		    errno == ENOMEM)
			pause_accept(l, errno);
		if (errno != ECONNABORTED && errno != EINTR)
			return;
	}
}

/* Connections inherit what is set here.  The descriptor or -errno. */
static int listen_on(const struct iwarp_provider *p,
		     const struct sockaddr *addr)
{
	int fd = socket_bind(addr, SOCK_STREAM, !p->options.v4_too);
	int err;

	if (fd < 0)
		return fd;
	err = iwarp_socket_options(p, fd);
	if (!err && listen(fd, BACKLOG) < 0)
		err = -errno;
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

struct listen_call {
	struct iwarp_listener *l;
	int err;
};

static void open_here(void *arg)
{
	struct listen_call *call = arg;

	call->err = loop_fd_add(call->l->l.loop, &call->l->fd);
}

int iwarp_listen(void *provider, const struct sockaddr *addr,
		 struct loop *loop,
		 void (*request)(struct fabric_listener *,
				 struct fabric_conn *),
		 void *upper, struct fabric_listener **out)
{
	struct iwarp_listener *l = calloc(1, sizeof(*l));
	struct listen_call call = { .l = l };

	if (!l)
		return -ENOMEM;
	l->provider = provider;
	l->pause.fire = pause_over;
	CDS_INIT_LIST_HEAD(&l->unfinished);
	l->l.ops = &iwarp_fabric_ops;
	l->l.loop = loop;
	l->l.request = request;
	l->l.upper = upper;
	l->fd.ready = ready;
	l->fd.events = EPOLLIN;
	l->fd.fd = listen_on(provider, addr);
	call.err = l->fd.fd < 0 ? l->fd.fd : socket_local(l->fd.fd,
							  &l->l.local);
	if (!call.err)
		loop_call(loop, open_here, &call);
	if (call.err) {
		if (l->fd.fd >= 0)
			close(l->fd.fd);
		free(l);
		return call.err;
	}
	*out = &l->l;
	return 0;
}

static void close_here(void *arg)
{
	struct iwarp_listener *l = arg;

	loop_timer_cancel(l->l.loop, &l->pause);
	loop_fd_del(l->l.loop, &l->fd);
	close(l->fd.fd);
	while (!cds_list_empty(&l->unfinished))
		iwarp_startup_drop(cds_list_first_entry(&l->unfinished,
							struct iwarp_conn,
							unfinished));
}

void iwarp_unlisten(struct fabric_listener *fl)
{
	struct iwarp_listener *l = container_of(fl, struct iwarp_listener, l);

	loop_call(fl->loop, close_here, l);
	free(l);
}
