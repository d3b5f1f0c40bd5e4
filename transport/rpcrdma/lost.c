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
 * If the fabric says which access was refused, one refusal is enough: a
 * requester does not send a call again that it has given up.  On iWARP a Write
 * is complete when it is sent, and adapters flush a refused Read with all
 * others.  There only the end of the connection tells that one of the last
 * calls was bad, and only if the peer ended it by closing or by refusing an
 * access.  All the last calls are suspected then.  Those before the bad one
 * have been answered and are not sent again; those behind it may be.  A suspect
 * is refused when three connections in a row ended like that and it named the
 * same places each time: a client whose xids begin anew each time it starts has
 * registered its memory anew as well.
 */
#include "transport/rpcrdma/lost.h"

#include <string.h>

#include "lib/thread.h"
#include "lib/util.h"

enum { ENOUGH = 3 };

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

static struct rpcrdma_lost_call *set_of(struct rpcrdma_lost *l,
					const struct rpcrdma_lost_key *key)
{
	uint32_t hash = key->xid ^ key->host.s6_addr32[3] * 0x9e3779b1u;

	return l->call[(hash * 0x9e3779b1u >> 16) % RPCRDMA_LOST_SETS];
}

/* With the lock. */
static struct rpcrdma_lost_call *find(struct rpcrdma_lost *l,
				      const struct rpcrdma_lost_key *key,
				      uint64_t now)
{
	struct rpcrdma_lost_call *set = set_of(l, key);

	for (size_t i = 0; i < RPCRDMA_LOST_WAYS; i++) {
		struct rpcrdma_lost_call *c = &set[i];

		if (c->suspicion > 0 && c->xid == key->xid &&
		    now - c->when < REMEMBERED_NS &&
		    memcmp(&c->host, &key->host, sizeof(c->host)) == 0)
			return c;
	}
	return NULL;
}

/* With the lock: replaces the oldest entry of its set. */
static struct rpcrdma_lost_call *add(struct rpcrdma_lost *l,
				     const struct rpcrdma_lost_key *key)
{
	struct rpcrdma_lost_call *set = set_of(l, key);
	struct rpcrdma_lost_call *oldest = set;

	for (size_t i = 0; i < RPCRDMA_LOST_WAYS; i++) {
		if (set[i].suspicion == 0)
			set[i].when = 0;
		if (set[i].when < oldest->when)
			oldest = &set[i];
	}
	*oldest = (struct rpcrdma_lost_call){
		.host = key->host, .xid = key->xid, .places = key->places,
	};
	return oldest;
}

void rpcrdma_lost_note(struct rpcrdma_lost *l,
		       const struct rpcrdma_lost_key *key, bool sure,
		       uint64_t now)
{
	struct rpcrdma_lost_call *c;

	mutex_lock(&l->lock);
	c = find(l, key, now);
	if (!c)
		c = add(l, key);
	if (sure) {
		c->suspicion = ENOUGH + 1;
	} else if (c->suspicion <= ENOUGH && c->when != now) {
		/* A call that pulled and wrote is noted twice. */
		if (c->places != key->places)
			c->suspicion = 0;
		c->places = key->places;
		c->suspicion = MIN(c->suspicion + 1, (unsigned)ENOUGH);
	}
	c->when = now;
	atomic_store(&l->last, MAX(now, 1u));
	mutex_unlock(&l->lock);
}

bool rpcrdma_lost_none(struct rpcrdma_lost *l, uint64_t now)
{
	uint64_t last = atomic_load_explicit(&l->last, memory_order_relaxed);

	return last == 0 || (now > last && now - last >= REMEMBERED_NS);
}

bool rpcrdma_lost_hopeless(struct rpcrdma_lost *l,
			   const struct rpcrdma_lost_key *key, uint64_t now)
{
	struct rpcrdma_lost_call *c;
	bool hopeless;

	mutex_lock(&l->lock);
	c = find(l, key, now);
	hopeless = c && (c->suspicion > ENOUGH ||
			 (c->suspicion == ENOUGH && c->places == key->places));
	if (hopeless)
		c->suspicion = 0;
	mutex_unlock(&l->lock);
	return hopeless;
}
