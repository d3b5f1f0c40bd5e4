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
#include <stdlib.h>

#include "lib/log.h"
#include "lib/stats.h"

STAT(iwarp_accepted, "TCP connections accepted by the iWARP fabric");
STAT(iwarp_crowded_out, "peers dropped because too many MPA requests were "
     "unfinished");

static void iwarp_listener_accepted(struct acceptor *a, int fd,
				    struct sockaddr_storage *peer)
{
	struct iwarp_listener *l = container_of(a, struct iwarp_listener,
						accept);

	stat_inc(iwarp_accepted);
	if (l->nunfinished >= l->provider->options.max_handshakes) {
		stat_inc(iwarp_crowded_out);
		log_limited(LOG_LEVEL_WARN, "iwarp: %u peers have not "
			    "finished their MPA requests; dropping the oldest",
			    l->nunfinished);
		iwarp_startup_drop(cds_list_first_entry(&l->unfinished,
							struct iwarp_conn,
							startup.unfinished));
	}
	iwarp_startup_begin(l, fd, peer);
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
	CDS_INIT_LIST_HEAD(&l->unfinished);
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
	while (!cds_list_empty(&l->unfinished))
		iwarp_startup_drop(cds_list_first_entry(&l->unfinished,
							struct iwarp_conn,
							startup.unfinished));
}

void iwarp_unlisten(struct fabric_listener *fl)
{
	struct iwarp_listener *l = container_of(fl, struct iwarp_listener, l);

	loop_call(fl->loop, iwarp_close_here, l);
	free(l);
}
