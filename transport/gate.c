/* SPDX-License-Identifier: BSD-2-Clause */
/* gate - counts and limits a listener's connections, in all and of one peer. */
#include "transport/gate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/addr.h"

/* An address that has connections. */
struct xprt_gate_peer {
	struct xprt_gate_peer *next;
	struct in6_addr	 addr;
	unsigned	 count;
};

void xprt_gate_init(struct xprt_gate *g, unsigned max, unsigned max_peer)
{
	memset(g, 0, sizeof(*g));
	g->max = max;
	g->max_peer = max_peer ? max_peer : max;
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->none, NULL);
}

void xprt_gate_fini(struct xprt_gate *g)
{
	pthread_cond_destroy(&g->none);
	pthread_mutex_destroy(&g->lock);
}

/* With the lock.  Returns the address's link in its list, or the end of the
 * list. */
static struct xprt_gate_peer **find(struct xprt_gate *g,
				    const struct in6_addr *addr)
{
	struct xprt_gate_peer **p =
		&g->peers[xprt_addr_hash(addr) % XPRT_GATE_BUCKETS];

	while (*p && memcmp(&(*p)->addr, addr, sizeof(*addr)) != 0)
		p = &(*p)->next;
	return p;
}

/* With the lock. */
static int enter(struct xprt_gate *g, const struct in6_addr *addr)
{
	struct xprt_gate_peer **p = find(g, addr);

	if (g->count >= g->max)
		return -EUSERS;
	if (*p && (*p)->count >= g->max_peer)
		return -EDQUOT;
	if (!*p) {
		*p = calloc(1, sizeof(**p));
		if (!*p)
			return -ENOMEM;
		(*p)->addr = *addr;
	}
	(*p)->count++;
	g->count++;
	return 0;
}

int xprt_gate_enter(struct xprt_gate *g, const struct sockaddr *peer)
{
	struct in6_addr addr = xprt_addr_host(peer);
	int err;

	mutex_lock(&g->lock);
	err = enter(g, &addr);
	mutex_unlock(&g->lock);
	return err;
}

void xprt_gate_leave(struct xprt_gate *g, const struct sockaddr *peer)
{
	struct in6_addr addr = xprt_addr_host(peer);
	struct xprt_gate_peer **at, *p;

	mutex_lock(&g->lock);
	at = find(g, &addr);
	p = *at;
	assert(p && g->count > 0);
	if (--p->count == 0) {
		*at = p->next;
		free(p);
	}
	if (--g->count == 0)
		pthread_cond_broadcast(&g->none);
	mutex_unlock(&g->lock);
}

unsigned xprt_gate_count(struct xprt_gate *g)
{
	unsigned n;

	mutex_lock(&g->lock);
	n = g->count;
	mutex_unlock(&g->lock);
	return n;
}

void xprt_gate_wait(struct xprt_gate *g)
{
	mutex_lock(&g->lock);
	while (g->count > 0)
		pthread_cond_wait(&g->none, &g->lock);
	mutex_unlock(&g->lock);
}
