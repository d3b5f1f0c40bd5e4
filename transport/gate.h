/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gate - counts and limits a listener's connections, in all and of one peer;
 * and other things that peers have, such as places in a table.
 *
 * A peer is an address.  An IPv6 host can have any number of addresses in its
 * /64, and a site any number of /64s in its /48.  So if an address has a limit,
 * all addresses of a /64 together have three quarters of the maximum, and all
 * of a /48 seven eighths, or the address's limit if that is more.  Hosts of one
 * LAN share a /64, so it is not less.  A fair gate bounds a /64 by the free
 * places, so a single one gets half; and a /48 by twice that, so it gets two
 * thirds.
 *
 * A gate that spares its last quarter gives that to IPv4 addresses and IPv6
 * networks (/64) that have no place: so a few that take all they can don't keep
 * others out.
 *
 * Any thread, everything.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "lib/thread.h"

#define XPRT_GATE_BUCKETS	256

struct xprt_gate_peer;

struct xprt_gate {
	/* Guards the rest. */
	pthread_mutex_t	 lock;
	pthread_cond_t	 none;
	unsigned	 max;
	unsigned	 max_peer;	/* of one address */
	unsigned	 max_network;	/* of one IPv6 /64 */
	unsigned	 max_site;	/* of one /48 */
	bool		 fair;
	/* The owner sets these after the init: each has a descriptor; */
	bool		 has_fds;
	bool		 spares;	/* the last quarter */
	unsigned	 count;
	unsigned	 parting;	/* not in @count */
	struct xprt_gate_peer *peers[XPRT_GATE_BUCKETS];
	struct xprt_gate_peer *networks[XPRT_GATE_BUCKETS];
	struct xprt_gate_peer *sites[XPRT_GATE_BUCKETS];
};

/* @max_peer 0: @max. */
void xprt_gate_init(struct xprt_gate *g, unsigned max, unsigned max_peer);
/* A fair one, without a bound for an address. */
void xprt_gate_init_fair(struct xprt_gate *g, unsigned max);
/* Changes the limits, for connections that come from now on. */
void xprt_gate_limit(struct xprt_gate *g, unsigned max, unsigned max_peer);
void xprt_gate_fini(struct xprt_gate *g);

/* Counts one more connection of @peer, ignoring its port. 0; -EUSERS: the
 * listener has its maximum, or its share of the process's descriptors
 * (lib/fds.h); -EDQUOT: this address or its network has; -ENOMEM. */
int xprt_gate_enter(struct xprt_gate *g, const struct sockaddr *peer);
/* The same for a host, and as for a connection. */
int xprt_gate_enter_host(struct xprt_gate *g, const struct in6_addr *host);
void xprt_gate_leave_host(struct xprt_gate *g, const struct in6_addr *host);
/* Uncounts a connection.  It must not use its listener afterwards. */
void xprt_gate_leave(struct xprt_gate *g, const struct sockaddr *peer);
/* Gives back the place of a connection of @peer that its client has left, and
 * which goes on for a moment: it keeps its descriptor only.  xprt_gate_parted()
 * ends it.  False: the connection keeps its place, as an eighth of the places
 * or of the free descriptors is used this way already. */
bool xprt_gate_part(struct xprt_gate *g, const struct sockaddr *peer);
/* Uncounts such a connection, as xprt_gate_leave() does others. */
void xprt_gate_parted(struct xprt_gate *g);
/* True if another connection of @peer could enter now. */
bool xprt_gate_has_room(struct xprt_gate *g, const struct sockaddr *peer);
unsigned xprt_gate_count(struct xprt_gate *g);
/* Waits until no connection is left. */
void xprt_gate_wait(struct xprt_gate *g);
