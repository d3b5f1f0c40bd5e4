/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of rpc/limit.h: the buckets and queues of one export. */
#pragma once

#include "rpc/call.h"
#include "transport/gate.h"

#define LIMIT_CHAINS	256u
#define LIMIT_OTHERS	64u

struct limit_client {
	struct in6_addr	     host;
	struct limit_client *next;	/* in its chain */
	struct bucket	     ops, bytes;
	uint64_t	     clock;	/* ns of the export's limit that it
					 * has had */
	unsigned	     users;	/* calls that wait or passed */
	unsigned	     nwaiting;	/* in calls, or on their way there */
	struct cds_list_head calls;	/* that wait, the oldest first */
	struct cds_list_head turn;	/* in the limit's, if some wait */
};

struct rpc_limit {
	struct ref	     ref;
	struct rpc_limits   *limits;	/* borrowed: outlives us */
	struct pool	    *pool;	/* likewise */
	struct cds_list_head link;	/* limits->lock */
	/* Guards the rest. */
	pthread_mutex_t	     lock;
	struct bucket	     ops, bytes;
	uint64_t	     clock;	/* of the client that went last */
	struct cds_list_head turns;	/* clients with waiting calls, by their
					 * clocks */
	bool		     contended;	/* some wait for its own buckets */
	unsigned	     nholding;	/* waiting calls with buffers */
	struct xprt_gate     places;	/* of the clients in chains */
	uint64_t	     swept;	/* when all chains were gone through */
	struct limit_client *chains[LIMIT_CHAINS];
	struct limit_client  others[LIMIT_OTHERS];
};

/* How rarely the thread checks: a burst is much longer. */
#define LOOK_NS		NS_PER_MS

static inline struct rpc_slot *limit_slot(struct cds_list_head *link)
{
	return caa_container_of(link, struct rpc_slot, priv.limited.link);
}

/* limit_queue.c: all but the last two with the limit's lock. */
/* The client of the call's address, made if need be; if too many exist, one
 * that its network shares with some others. */
struct limit_client *limit_client_of(struct rpc_limit *l,
				     const struct rpc_call *call, uint64_t now);
/* NULL: it has none. */
struct limit_client *limit_find_host(struct rpc_limit *l,
				     const struct in6_addr *host);
/* The ns until both are out of debt. */
static inline uint64_t limit_wait(const struct bucket *ops,
				  const struct bucket *bytes, uint64_t now)
{
	return MAX(bucket_wait(ops, now), bucket_wait(bytes, now));
}
/* Takes the call's cost. */
void limit_pay(struct rpc_limit *l, struct rpc_slot *slot, uint64_t now);
/* Queues the client, which has waiting calls and is in no list, behind the
 * clients that had at most as much. */
void limit_list_turn(struct rpc_limit *l, struct limit_client *c);
void limit_enqueue(struct rpc_limit *l, struct rpc_slot *slot);
void limit_dequeue(struct rpc_limit *l, struct rpc_slot *slot);
/* The call no longer waits, and has not passed: its reference is the
 * caller's. */
void limit_forget(struct rpc_slot *slot);
/* Has the thread look at @due, or earlier; not before LOOK_NS are over since it
 * looked last. */
void limit_ask_thread(struct rpc_limits *limits, uint64_t due);
/* Frees a client that is not referenced, and in no list. */
void limit_free(struct rpc_limit *l);
