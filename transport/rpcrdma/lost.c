/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lost - calls whose chunks could not be used (RFC 8166 section 4.5.3).
 *
 * A requester whose memory could not be accessed loses its connection and
 * sends the call again on the next one: all that go over it suffer for as
 * long as it does that.  So such a call is remembered for a while, by its
 * requester's address and its xid, and the third time there is an error
 * instead.  Once may be chance: a call that was given up.
 */
#include "transport/rpcrdma/internal.h"

#include <string.h>

enum { TIMES = 2 };

#define REMEMBERED_NS	(300 * 1000000000ull)

void rpcrdma_lost_init(struct rpcrdma_lost *l)
{
	memset(l, 0, sizeof(*l));
	pthread_mutex_init(&l->lock, NULL);
}

void rpcrdma_lost_fini(struct rpcrdma_lost *l)
{
	pthread_mutex_destroy(&l->lock);
}

/* With the lock. */
static struct rpcrdma_lost_call *find(struct rpcrdma_lost *l,
				      const struct in6_addr *host,
				      uint32_t xid, uint64_t now)
{
	for (size_t i = 0; i < ARRAY_SIZE(l->call); i++) {
		struct rpcrdma_lost_call *c = &l->call[i];

		if (c->times > 0 && c->xid == xid &&
		    now - c->when < REMEMBERED_NS &&
		    memcmp(&c->host, host, sizeof(*host)) == 0)
			return c;
	}
	return NULL;
}

void rpcrdma_lost_note(struct rpcrdma_lost *l, const struct sockaddr *peer,
		       uint32_t xid, uint64_t now)
{
	struct in6_addr host = xprt_addr_host(peer);
	struct rpcrdma_lost_call *c;

	mutex_lock(&l->lock);
	c = find(l, &host, xid, now);
	if (!c) {
		c = &l->call[l->next++ % ARRAY_SIZE(l->call)];
		*c = (struct rpcrdma_lost_call){ .host = host, .xid = xid };
	}
	c->times++;
	c->when = now;
	atomic_store(&l->any, true);
	mutex_unlock(&l->lock);
}

bool rpcrdma_lost_hopeless(struct rpcrdma_lost *l, const struct sockaddr *peer,
			   uint32_t xid, uint64_t now)
{
	struct in6_addr host;
	struct rpcrdma_lost_call *c;
	bool hopeless;

	if (likely(!atomic_load_explicit(&l->any, memory_order_relaxed)))
		return false;
	host = xprt_addr_host(peer);
	mutex_lock(&l->lock);
	c = find(l, &host, xid, now);
	hopeless = c && c->times >= TIMES;
	if (hopeless)
		c->times = 0;
	mutex_unlock(&l->lock);
	return hopeless;
}
