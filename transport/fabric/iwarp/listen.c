/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listen - listeners: accept peers and read their requests.
 *
 * The number of peers with an unfinished request is bounded.  Honest peers
 * finish within a round trip, so the oldest unfinished one goes when there is
 * one too many.
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

#define BACKLOG		1024

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

static void accepted(struct acceptor *a, int fd,
		     struct sockaddr_storage *peer)
{
	struct iwarp_listener *l = container_of(a, struct iwarp_listener,
						accept);

	stat_inc(iwarp_accepted);
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

/* Returns the descriptor or -errno.  Connections inherit the options set
 * here. */
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

int iwarp_listen(void *provider, const struct sockaddr *addr,
		 struct loop *loop,
		 void (*request)(struct fabric_listener *,
				 struct fabric_conn *),
		 void *upper, struct fabric_listener **out)
{
	struct iwarp_listener *l = calloc(1, sizeof(*l));
	int fd, err;

	if (!l)
		return -ENOMEM;
	l->provider = provider;
	CDS_INIT_LIST_HEAD(&l->unfinished);
	l->l.ops = &iwarp_fabric_ops;
	l->l.loop = loop;
	l->l.request = request;
	l->l.upper = upper;
	l->accept.name = "iwarp";
	l->accept.accepted = accepted;
	err = fd = listen_on(provider, addr);
	if (fd < 0)
		goto fail;
	err = socket_local(fd, &l->l.local);
	if (err) {
		close(fd);
		goto fail;
	}
	err = acceptor_start(&l->accept, loop, fd);
	if (err)
		goto fail;
	*out = &l->l;
	return 0;

fail:
	free(l);
	return err;
}

static void close_here(void *arg)
{
	struct iwarp_listener *l = arg;

	acceptor_stop(&l->accept);
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
