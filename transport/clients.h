/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clients - the hosts that call: each with its connections and its account.
 *
 * A client is an address; all its connections, of any listener, are its.  A
 * connection holds its client, in which its calls are counted without a lock
 * (account_add()).  A client without connections stays for a while, in a
 * bounded number.  Clients beyond the limit, when that many have connections,
 * share one account; a fair gate (transport/gate.h) keeps one IPv6 network from
 * taking all of them.  A datagram makes no client, since its address can be
 * forged; it counts in the shared account.  The counts of a dropped client are
 * lost: added to the shared account, they would look like new calls.
 *
 * Any thread, everything.
 */
#pragma once

#include <netinet/in.h>

#include <urcu/list.h>

#include "lib/account.h"
#include "lib/clock.h"

struct xprt;
struct xprt_clients;

struct xprt_client {
	struct account	 account;
	/* The end of its last call: coarse, see xprt_client_seen(). */
	_Atomic uint64_t last;
	struct xprt_clients *table;	/* borrowed */
	/* The table's lock guards the rest. */
	struct in6_addr	 host;		/* IPv4 as ::ffff:a.b.c.d */
	struct xprt_client *next;	/* in its bucket */
	struct cds_list_head idle;	/* of the table's idle, if holders is
					 * 0 */
	struct cds_list_head conns;	/* struct xprt */
	unsigned	 holders;
	uint64_t	 first;		/* clock_ns() */
	uint64_t	 left;		/* by its last holder; clock_ns() */
	bool		 udp;		/* has called over UDP */
};

/* One connection, as it is now. */
struct xprt_facts {
	const char *transport;	/* "tcp" or "rdma"; a literal */
	const char *provider;	/* "verbs", "iwarp", "loop"; or NULL */
	uint16_t    port;	/* the peer's */
	unsigned    credits;	/* granted; 0: it has none */
	uint32_t    send_inline;	/* longest Send to the peer, and */
	uint32_t    recv_inline;	/* from it; 0: it has none */
};

#define XPRT_CLIENT_SHOWN	64u

struct xprt_client_view {
	/* NULL: all others together, and then conns has none. */
	const struct in6_addr *host;
	uint64_t    first;	/* clock_ns() when it came, */
	uint64_t    last;	/* and of its last call, up to 100 ms early; 0:
				 * no call yet */
	bool	    udp;
	unsigned    nconns;
	unsigned    nshown;	/* of these, those in conns */
	struct xprt_facts conns[XPRT_CLIENT_SHOWN];
	struct account_sum sum;
};

/* At most @max clients (0: 4096); one without connections goes after @keep_s
 * seconds (0: an hour).  NULL: no memory. */
struct xprt_clients *xprt_clients_create(unsigned max, unsigned keep_s);
/* All connections are gone. */
void xprt_clients_destroy(struct xprt_clients *t);

/* Makes @x, whose peer is set, a connection of its client, and sets x->client.
 * @t can be NULL: nothing happens. */
void xprt_client_enter(struct xprt_clients *t, struct xprt *x);
/* For the last put of @x, before anything of it goes. */
void xprt_client_leave(struct xprt *x);

/* Notes that a call of @c has ended @now (clock_ns()).  It writes ten times a
 * second at most, since all pollers do. */
static inline void xprt_client_seen(struct xprt_client *c, uint64_t now)
{
	uint64_t last = atomic_load_explicit(&c->last, memory_order_relaxed);

	if (unlikely(now - last > 100u * NS_PER_MS))
		atomic_store_explicit(&c->last, now, memory_order_relaxed);
}

/* Calls @fn for each client, without a lock; the others last.  @v is borrowed
 * for the call. */
typedef void xprt_clients_fn(const struct xprt_client_view *v, void *arg);
void xprt_clients_walk(struct xprt_clients *t, xprt_clients_fn *fn, void *arg);

/* Ends the connections of @host: they accept no further calls and close when
 * the calls in progress are answered.  Returns the number of connections. */
unsigned xprt_clients_end(struct xprt_clients *t, const struct in6_addr *host);
