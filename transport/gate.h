/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gate - counts and limits a listener's connections, in all and of one peer.
 *
 * A peer is an address.  An IPv6 host may take any number of addresses in its
 * /64, so where an address has a limit, all those of a /64 together have one,
 * too: three quarters of the maximum, or the address's limit if that is more.
 * Hosts of one LAN share a /64, so it is not less.
 *
 * Any thread, everything.
 */
#ifndef GANNET_TRANSPORT_GATE_H
#define GANNET_TRANSPORT_GATE_H

#include <sys/socket.h>

#include "lib/thread.h"

#define XPRT_GATE_BUCKETS	256

struct xprt_gate_peer;

struct xprt_gate {
	/* Guards what follows. */
	pthread_mutex_t	 lock;
	pthread_cond_t	 none;
	unsigned	 max;
	unsigned	 max_peer;	/* of one address */
	unsigned	 max_network;	/* of one IPv6 /64 */
	unsigned	 count;
	struct xprt_gate_peer *peers[XPRT_GATE_BUCKETS];
	struct xprt_gate_peer *networks[XPRT_GATE_BUCKETS];
};

/* @max_peer 0: @max. */
void xprt_gate_init(struct xprt_gate *g, unsigned max, unsigned max_peer);
/* Changes the limits, for connections that come from now on. */
void xprt_gate_limit(struct xprt_gate *g, unsigned max, unsigned max_peer);
void xprt_gate_fini(struct xprt_gate *g);

/* Counts one more connection of @peer, ignoring its port. 0; -EUSERS: the
 * listener has its maximum; -EDQUOT: this address or its network has;
 * -ENOMEM. */
int xprt_gate_enter(struct xprt_gate *g, const struct sockaddr *peer);
/* Uncounts a connection.  It must not use its listener afterwards. */
void xprt_gate_leave(struct xprt_gate *g, const struct sockaddr *peer);
unsigned xprt_gate_count(struct xprt_gate *g);
/* Waits until no connection is left. */
void xprt_gate_wait(struct xprt_gate *g);

#endif
