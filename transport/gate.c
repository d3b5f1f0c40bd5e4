/* SPDX-License-Identifier: BSD-2-Clause */
/* gate - counts and limits a listener's connections, in all and of one peer. */
#include "transport/gate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fds.h"
#include "lib/network.h"
#include "lib/util.h"
#include "transport/addr.h"

/* An address that has connections, or a network. */
struct xprt_gate_peer {
	struct xprt_gate_peer *next;
	struct in6_addr	 addr;
	unsigned	 count;
};

void xprt_gate_init(struct xprt_gate *g, unsigned max, unsigned max_peer)
{
	memset(g, 0, sizeof(*g));
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->none, NULL);
	xprt_gate_limit(g, max, max_peer);
}

void xprt_gate_init_fair(struct xprt_gate *g, unsigned max)
{
	xprt_gate_init(g, max, 0);
	g->fair = true;
}

void xprt_gate_limit(struct xprt_gate *g, unsigned max, unsigned max_peer)
{
	mutex_lock(&g->lock);
	g->max = max;
	g->max_peer = max_peer ? max_peer : max;
	g->max_network = g->max_site = max;
	if (g->max_peer < max) {
		g->max_network = MAX(network_share(max), g->max_peer);
		g->max_site = MAX(site_share(max), g->max_peer);
	}
	mutex_unlock(&g->lock);
}

void xprt_gate_fini(struct xprt_gate *g)
{
	pthread_cond_destroy(&g->none);
	pthread_mutex_destroy(&g->lock);
}

/* With the lock.  Returns the address's link in its list, or the end of the
 * list. */
static struct xprt_gate_peer **gate_find(struct xprt_gate_peer **table,
					 const struct in6_addr *addr)
{
	struct xprt_gate_peer **p =
		&table[xprt_addr_hash(addr) % XPRT_GATE_BUCKETS];

	while (*p && memcmp(&(*p)->addr, addr, sizeof(*addr)) != 0)
		p = &(*p)->next;
	return p;
}

/* With the lock. */
static int gate_add(struct xprt_gate_peer **table, const struct in6_addr *addr,
		    unsigned max)
{
	struct xprt_gate_peer **p = gate_find(table, addr);

	if (*p && (*p)->count >= max)
		return -EDQUOT;
	if (!*p) {
		*p = calloc(1, sizeof(**p));
		if (!*p)
			return -ENOMEM;
		(*p)->addr = *addr;
	}
	(*p)->count++;
	return 0;
}

/* With the lock. */
static void gate_take(struct xprt_gate_peer **table,
		      const struct in6_addr *addr)
{
	struct xprt_gate_peer **at = gate_find(table, addr), *p = *at;

	assert(p);
	if (--p->count == 0) {
		*at = p->next;
		free(p);
	}
}

/* With the lock.  @addr is of IPv6. */
static int enter_network(struct xprt_gate *g, const struct in6_addr *addr)
{
	struct in6_addr network = xprt_addr_network(addr);
	struct in6_addr site = xprt_addr_site(addr);
	unsigned free = g->max - g->count;
	int err;

	err = gate_add(g->networks, &network, g->fair ? free : g->max_network);
	if (err)
		return err;
	err = gate_add(g->sites, &site, g->fair ? 2 * free : g->max_site);
	if (err)
		gate_take(g->networks, &network);
	return err;
}

/* With the lock. */
static void leave_network(struct xprt_gate *g, const struct in6_addr *addr)
{
	struct in6_addr network = xprt_addr_network(addr);
	struct in6_addr site = xprt_addr_site(addr);

	gate_take(g->networks, &network);
	gate_take(g->sites, &site);
}

/* With the lock: true if the address, or its network of IPv6, has a place. */
static bool is_in(struct xprt_gate *g, const struct in6_addr *addr)
{
	struct in6_addr network = xprt_addr_network(addr);

	return IN6_IS_ADDR_V4MAPPED(addr) ? *gate_find(g->peers, addr) :
					    *gate_find(g->networks, &network);
}

/* With the lock. */
static int gate_enter(struct xprt_gate *g, const struct in6_addr *addr)
{
	int err;

	if (g->count >= g->max ||
	    (g->has_fds && !fds_may(FDS_CONNS, (long)g->count)))
		return -EUSERS;
	if (g->spares && g->count >= g->max - g->max / 4 && is_in(g, addr))
		return -EDQUOT;
	err = gate_add(g->peers, addr, g->max_peer);
	if (err)
		return err;
	if (!IN6_IS_ADDR_V4MAPPED(addr))
		err = enter_network(g, addr);
	if (err) {
		gate_take(g->peers, addr);
		return err;
	}
	g->count++;
	if (g->has_fds)
		fds_count(FDS_CONNS, 1);
	return 0;
}

int xprt_gate_enter_host(struct xprt_gate *g, const struct in6_addr *host)
{
	int err;

	mutex_lock(&g->lock);
	err = gate_enter(g, host);
	mutex_unlock(&g->lock);
	return err;
}

int xprt_gate_enter(struct xprt_gate *g, const struct sockaddr *peer)
{
	struct in6_addr addr = xprt_addr_host(peer);

	return xprt_gate_enter_host(g, &addr);
}

/* With the lock. */
static void gate_end(struct xprt_gate *g)
{
	if (g->has_fds)
		fds_count(FDS_CONNS, -1);
	if (g->count + g->parting == 0)
		pthread_cond_broadcast(&g->none);
}

/* With the lock. */
static void gate_give_place(struct xprt_gate *g, const struct in6_addr *host)
{
	assert(g->count > 0);
	gate_take(g->peers, host);
	if (!IN6_IS_ADDR_V4MAPPED(host))
		leave_network(g, host);
	g->count--;
}

/* With the lock. */
static void gate_leave(struct xprt_gate *g, const struct in6_addr *host)
{
	gate_give_place(g, host);
	gate_end(g);
}

void xprt_gate_leave_host(struct xprt_gate *g, const struct in6_addr *host)
{
	mutex_lock(&g->lock);
	gate_leave(g, host);
	mutex_unlock(&g->lock);
}

void xprt_gate_leave(struct xprt_gate *g, const struct sockaddr *peer)
{
	struct in6_addr addr = xprt_addr_host(peer);

	xprt_gate_leave_host(g, &addr);
}

bool xprt_gate_part(struct xprt_gate *g, const struct sockaddr *peer)
{
	struct in6_addr addr = xprt_addr_host(peer);
	bool parts;

	mutex_lock(&g->lock);
	parts = g->parting < g->max / 8 &&
		(!g->has_fds || g->parting < fds_free(FDS_CONNS) / 8);
	if (parts) {
		gate_give_place(g, &addr);
		g->parting++;
	}
	mutex_unlock(&g->lock);
	return parts;
}

void xprt_gate_parted(struct xprt_gate *g)
{
	mutex_lock(&g->lock);
	assert(g->parting > 0);
	g->parting--;
	gate_end(g);
	mutex_unlock(&g->lock);
}

bool xprt_gate_has_room(struct xprt_gate *g, const struct sockaddr *peer)
{
	struct in6_addr addr = xprt_addr_host(peer);
	bool room;

	mutex_lock(&g->lock);
	room = gate_enter(g, &addr) == 0;
	if (room)
		gate_leave(g, &addr);
	mutex_unlock(&g->lock);
	return room;
}

unsigned xprt_gate_count(struct xprt_gate *g)
{
	unsigned n;

	mutex_lock(&g->lock);
	n = g->count + g->parting;
	mutex_unlock(&g->lock);
	return n;
}

void xprt_gate_wait(struct xprt_gate *g)
{
	mutex_lock(&g->lock);
	while (g->count + g->parting > 0)
		pthread_cond_wait(&g->none, &g->lock);
	mutex_unlock(&g->lock);
}
