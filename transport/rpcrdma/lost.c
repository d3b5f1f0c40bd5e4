/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lost - calls whose chunks could not be used (RFC 8166 section 4.5.3).
 *
 * A requester whose memory could not be accessed loses its connection and sends
 * the call again on the next one.  As long as it does that, all other calls on
 * its connections suffer.  So such a call is remembered for a while, and is
 * answered with an error when it comes again.
 *
 * It is known by the addresses of both ends and by its content: its bytes, with
 * the xid, and the lengths of its chunks.  Their handles and offsets are new on
 * the next connection.  The address and the xid alone would also name a call of
 * another client on that host.
 *
 * Only a fabric that says which access was refused can name such a call.  iWARP
 * does not: it also refuses a frame that was damaged on its way, and the call
 * is good when it comes again.
 */
#include "transport/rpcrdma/lost.h"

#include <string.h>

#include "lib/hash.h"
#include "lib/thread.h"
#include "lib/util.h"

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

uint64_t rpcrdma_lost_content(const struct rpcrdma_header *h,
			      const uint8_t *message, uint32_t len)
{
	uint64_t reads[RPCRDMA_MAX_READS] = { 0 };

	for (uint32_t i = 0; i < h->nreads; i++)
		reads[i] = hash_values(h->read[i].position, h->read[i].length);
	return hash_values(h->xid, h->nreads,
			   hash_keyed(reads, h->nreads * sizeof(reads[0])),
			   h->nwrites, h->nwrites ? h->write.length : 0,
			   h->has_reply ? h->reply.length + 1 : 0,
			   hash_keyed(message + h->len, len - h->len));
}

void rpcrdma_lost_note(struct rpcrdma_lost *l,
		       const struct rpcrdma_lost_key *key, uint64_t now)
{
	now = MAX(now, 1u);
	mutex_lock(&l->lock);
	l->call[l->next++ % ARRAY_SIZE(l->call)] =
		(struct rpcrdma_lost_call){ .key = *key, .when = now };
	atomic_store(&l->last, now);
	mutex_unlock(&l->lock);
}

static bool is_recent(uint64_t when, uint64_t now)
{
	return when > 0 && (now < when || now - when < REMEMBERED_NS);
}

bool rpcrdma_lost_take(struct rpcrdma_lost *l,
		       const struct rpcrdma_lost_key *key, uint64_t now)
{
	bool found = false;

	if (likely(!is_recent(atomic_load_explicit(&l->last,
						   memory_order_relaxed), now)))
		return false;
	mutex_lock(&l->lock);
	for (size_t i = 0; i < ARRAY_SIZE(l->call); i++) {
		struct rpcrdma_lost_call *c = &l->call[i];

		if (is_recent(c->when, now) &&
		    memcmp(&c->key, key, sizeof(*key)) == 0) {
			found = true;
			c->when = 0;
		}
	}
	mutex_unlock(&l->lock);
	return found;
}
