/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lost - calls whose chunks could not be used (RFC 8166 section 4.5.3).
 *
 * A requester whose memory could not be accessed loses its connection and sends
 * the call again on the next one.  As long as it does that, all other calls on
 * its connections suffer.  So such a call is remembered for a while, by its
 * requester's address and its xid, and is answered with an error when it comes
 * again.
 *
 * Only a fabric that says which access was refused can name such a call.  iWARP
 * does not: a frame that was damaged on its way is refused, too, and the call
 * is good when it comes again.
 */
#include "transport/rpcrdma/lost.h"

#include <string.h>

#include "lib/thread.h"
#include "lib/util.h"
#include "transport/addr.h"

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

void rpcrdma_lost_note(struct rpcrdma_lost *l, const struct sockaddr *peer,
		       uint32_t xid, uint64_t now)
{
	now = MAX(now, 1u);
	mutex_lock(&l->lock);
	l->call[l->next++ % ARRAY_SIZE(l->call)] = (struct rpcrdma_lost_call){
		.host = xprt_addr_host(peer), .xid = xid, .when = now,
	};
	atomic_store(&l->last, now);
	mutex_unlock(&l->lock);
}

static bool is_recent(uint64_t when, uint64_t now)
{
	return when > 0 && (now < when || now - when < REMEMBERED_NS);
}

bool rpcrdma_lost_take(struct rpcrdma_lost *l, const struct sockaddr *peer,
		       uint32_t xid, uint64_t now)
{
	struct in6_addr host;
	bool found = false;

	if (likely(!is_recent(atomic_load_explicit(&l->last,
						   memory_order_relaxed), now)))
		return false;
	host = xprt_addr_host(peer);
	mutex_lock(&l->lock);
	for (size_t i = 0; i < ARRAY_SIZE(l->call); i++) {
		struct rpcrdma_lost_call *c = &l->call[i];

		if (c->xid == xid && is_recent(c->when, now) &&
		    memcmp(&c->host, &host, sizeof(host)) == 0) {
			found = true;
			c->when = 0;
		}
	}
	mutex_unlock(&l->lock);
	return found;
}
