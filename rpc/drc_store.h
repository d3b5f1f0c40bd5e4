/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drc_store - shared by the files of the duplicate request cache.  Private to
 * rpc/drc*.c.
 *
 * Shards, each with its lock, two hash tables, and its part of the memory: one
 * table has the calls that run, the other the replies.  A reply is in a list of
 * its address's share, oldest first, and in one of two more: "due", by when it
 * is to be looked at, or "kept", when its connection has ended and its client
 * can still ask.
 *
 * The transport notes where a reply ends in its connection's output
 * (entry->sent) some time after it was remembered.  Until then the memory is
 * the transport's as well: such a reply can be taken out of the table, but not
 * freed.
 */
#pragma once

#include <urcu/list.h>

#include "lib/thread.h"
#include "lib/util.h"
#include "rpc/drc.h"
#include "rpc/drc_rule.h"

#define DRC_SHARDS		16u
#define DRC_SHARES		(DRC_NETWORKS * DRC_HOSTS)
#define DRC_RUNNING_BUCKETS	256u	/* of a shard */
#define DRC_SEEN		4096u	/* of a shard */

struct drc_entry {
	struct drc_key	 key;
	struct drc_entry *chain;
	struct cds_list_head order;	/* due or kept */
	struct cds_list_head mine;	/* its share's */
	struct xprt_fate *fate;		/* counted; NULL: a datagram */
	_Atomic uint64_t sent;		/* its position; 0: not known yet */
	uint64_t	 stamp;		/* ms: when it was answered */
	uint64_t	 due;		/* ms: when it is to be looked at */
	uint32_t	 hash;
	uint16_t	 len;
	uint16_t	 share;
	bool		 known;		/* it is in the table */
	uint8_t		 reply[];
};

/* Of an address.  The shares of a network lie one behind the other. */
struct drc_share {
	struct cds_list_head mine;	/* oldest first; valid if bytes > 0 */
	size_t		 bytes;
};

struct drc_shard {
	pthread_mutex_t	 lock;		/* guards all below */
	struct drc_call	 **running;
	struct drc_entry **done;
	struct cds_list_head due;
	struct cds_list_head kept;
	size_t		 nrunning;
	size_t		 ndone;
	size_t		 bytes;
	struct drc_share *shares;	/* DRC_SHARES of them */
	size_t		 network_bytes[DRC_NETWORKS];
	/* When a call of such a hash came last: xprt_fate_epoch(). */
	uint64_t	 seen[DRC_SEEN];
} __attribute__((aligned(64)));

struct drc {
	uint32_t	 mask;		/* done buckets of a shard - 1 */
	size_t		 max;		/* bytes of a shard; 0: none is kept */
	_Atomic uint64_t warned;	/* ms */
	struct drc_entry **done;
	struct drc_call	 **running;
	/* Of all shards.  Unused shares stay untouched, and so take no
	 * memory. */
	struct drc_share *shares;
	struct drc_shard	 shards[DRC_SHARDS];
};

static inline struct drc_shard *drc_shard_of(struct drc *drc, uint32_t hash)
{
	return &drc->shards[hash % DRC_SHARDS];
}

/* If another thread stamped the entry after @t was read, the age is 0. */
static inline bool drc_is_older(const struct drc_entry *e, uint64_t t,
				uint64_t ms)
{
	return (int64_t)(t - e->stamp) > (int64_t)ms;
}

/* drc_key.c: sets hash and share. */
void drc_hash(struct drc_call *call);

/* ---- drc_store.c.  With the shard's lock, except the first two. */

/* Returns the memory that a reply of @len bytes counts for. */
size_t drc_size_of(uint32_t len);
/* Makes a reply that is in no list yet; free() it or insert it.  NULL: no
 * memory. */
struct drc_entry *drc_make(const struct drc_call *call, const void *reply,
			   uint32_t len);
struct drc_entry **drc_bucket(struct drc *drc, struct drc_shard *s,
			      uint32_t hash);
/* Takes @e, which answers calls equal to @call from now on.  Returns the place
 * to note the position of the reply to @call. */
_Atomic uint64_t *drc_insert(struct drc *drc, struct drc_shard *s,
			     struct drc_entry *e, const struct drc_call *call,
			     uint64_t t);
/* The same for a reply in the table that went to another connection before. */
_Atomic uint64_t *drc_move(struct drc_shard *s, struct drc_entry *e,
			   const struct drc_call *call, uint64_t t);
/* True if the position of its end is noted.  Before that it must not be
 * freed. */
bool drc_is_placed(const struct drc_entry *e);
/* Removes @e from the table: it answers no further call. */
void drc_unknow(struct drc *drc, struct drc_shard *s, struct drc_entry *e);
/* The same, and frees @e now, or when the transport has noted its end. */
void drc_drop(struct drc *drc, struct drc_shard *s, struct drc_entry *e);
/* Frees @e, which is in the table. */
void drc_release(struct drc *drc, struct drc_shard *s, struct drc_entry *e);

/* Fills in the facts about @e at @t, with its connection in the state @v.
 * Leaves the facts about the call that asks at zero. */
struct drc_facts drc_facts_of(const struct drc_entry *e,
			      const struct xprt_view *v, uint64_t t);

/* Frees entries that are no longer needed: at most two, to bound the time. */
void drc_trim(struct drc *drc, struct drc_shard *s, uint64_t t);
/* Lets one reply go: of the network that has most, of its address that has
 * most; or, where all of these are on their way, of @share's address.  False:
 * none can go.  Sets *@lost if the reply was still needed. */
bool drc_evict(struct drc *drc, struct drc_shard *s, unsigned share,
	       uint64_t t, bool *lost);
