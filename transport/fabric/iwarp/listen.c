/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listen - listeners: accept peers and read their requests.
 *
 * The number of peers with an unfinished request is bounded.  Above the bound,
 * the network that has most unfinished requests loses its oldest: a host that
 * floods the listener drops its own, and honest peers, which finish within a
 * round trip, keep theirs.
 */
#include "transport/fabric/iwarp/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/log.h"
#include "lib/stats.h"

STAT(iwarp_accepted, "TCP connections accepted by the iWARP fabric");
STAT(iwarp_crowded_out, "peers dropped because too many MPA requests were "
     "unfinished");

static void drop_one(struct iwarp_listener *l)
{
	iwarp_startup_drop(iwarp_sources_pick(&l->sources));
}

static void iwarp_listener_accepted(struct acceptor *a, int fd,
				    struct sockaddr_storage *peer)
{
	struct iwarp_listener *l = container_of(a, struct iwarp_listener,
						accept);

	stat_inc(iwarp_accepted);
	iwarp_startup_begin(l, fd, peer);
	if (l->sources.n <= l->provider->options.max_handshakes)
		return;
	stat_inc(iwarp_crowded_out);
	log_limited(LOG_LEVEL_WARN, "iwarp: %u peers have not finished their "
		    "MPA requests; dropping the oldest of the busiest "
		    "network", l->sources.n);
	drop_one(l);
}

int iwarp_listen(void *provider, const struct sockaddr *addr,
		 struct loop *loop,
		 void (*request)(struct fabric_listener *,
				 struct fabric_conn *),
		 void *upper, struct fabric_listener **out)
{
	struct iwarp_listener *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->provider = provider;
	iwarp_sources_init(&l->sources);
	l->l.ops = l->provider->device.dev.ops;
	l->l.loop = loop;
	l->l.request = request;
	l->l.upper = upper;
	l->accept.name = "iwarp";
	l->accept.accepted = iwarp_listener_accepted;
	l->accept.v6only = !l->provider->options.v4_too;
	l->accept.timeout_ms = l->provider->options.user_timeout_ms;
	err = acceptor_start(&l->accept, loop, addr, &l->l.local);
	if (err)
		free(l);
	else
		*out = &l->l;
	return err;
}

static void iwarp_close_here(void *arg)
{
	struct iwarp_listener *l = arg;

	acceptor_stop(&l->accept);
	while (l->sources.n > 0)
		drop_one(l);
}

void iwarp_unlisten(struct fabric_listener *fl)
{
	struct iwarp_listener *l = container_of(fl, struct iwarp_listener, l);

	loop_call(fl->loop, iwarp_close_here, l);
	free(l);
}
