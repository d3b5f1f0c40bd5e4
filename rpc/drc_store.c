/* SPDX-License-Identifier: BSD-2-Clause */
/* drc_store - the replies that the duplicate request cache remembers. */
#include "rpc/drc_store.h"

#include <stdlib.h>

#include "lib/stats.h"

/* malloc()'s own bytes for a block, about. */
#define OVERHEAD	16u
/* Beyond drc_recent_ms: the cause of a connection's end is known by then. */
#define LOOK_MS		1000
/* Replies of a share to look at, for one that can go. */
#define EVICT_TRIES	64

STAT(drc_evicted, "cached replies dropped to make room");
STAT(drc_lost, "cached replies dropped within two minutes though still "
     "needed");

_Atomic unsigned drc_recent_ms = 1000;

static uint64_t recent_ms(void)
{
	return atomic_load_explicit(&drc_recent_ms, memory_order_relaxed);
}

size_t drc_size_of(uint32_t len)
{
	return sizeof(struct drc_entry) + len + OVERHEAD;
}

struct drc_entry **drc_bucket(struct drc *drc, struct drc_shard *s,
				      uint32_t hash)
{
	return &s->done[hash / DRC_SHARDS & drc->mask];
}

/* Removes @e from the table: it answers no further call. */
void drc_unknow(struct drc *drc, struct drc_shard *s, struct drc_entry *e)
{
	struct drc_entry **p = drc_bucket(drc, s, e->hash);

	if (!e->known)
		return;
	while (*p != e)
		p = &(*p)->chain;
	*p = e->chain;
	e->known = false;
}

/* True if no transport has a pointer into @e. */
bool drc_is_placed(const struct drc_entry *e)
{
	/* Pairs with xprt_note_sent(). */
	return atomic_load_explicit(&e->sent, memory_order_acquire) != 0;
}

/* Drops @e, which is in the table. */
void drc_release(struct drc *drc, struct drc_shard *s, struct drc_entry *e)
{
	size_t size = drc_size_of(e->len);

	drc_unknow(drc, s, e);
	cds_list_del(&e->order);
	cds_list_del(&e->mine);
	s->bytes -= size;
	s->shares[e->share].bytes -= size;
	s->network_bytes[e->share / DRC_HOSTS] -= size;
	s->ndone--;
	xprt_fate_put(e->fate);
	free(e);
}

/* The reply is not needed; the transport can still have to record where it
 * ended. */
void drc_drop(struct drc *drc, struct drc_shard *s, struct drc_entry *e)
{
	if (drc_is_placed(e))
		drc_release(drc, s, e);
	else
		drc_unknow(drc, s, e);
}

/* Moves @e to the connection of @call.  Returns the place to note its
 * position. */
static _Atomic uint64_t *give_to(struct drc_shard *s, struct drc_entry *e,
				 const struct drc_call *call, uint64_t t)
{
	e->stamp = t;
	e->due = t + recent_ms() + LOOK_MS;
	e->fate = call->fate ? xprt_fate_get(call->fate) : NULL;
	atomic_store_explicit(&e->sent, e->fate ? 0 : XPRT_LOST,
			      memory_order_relaxed);
	cds_list_add_tail(&e->order, e->fate ? &s->due : &s->kept);
	cds_list_add_tail(&e->mine, &s->shares[e->share].mine);
	return e->fate ? &e->sent : NULL;
}

struct drc_entry *drc_make(const struct drc_call *call, const void *reply,
			   uint32_t len)
{
	struct drc_entry *e = malloc(sizeof(*e) + len);

	if (!e)
		return NULL;
	e->key = call->key;
	e->hash = call->hash;
	e->share = call->share;
	e->len = (uint16_t)len;
	memcpy(e->reply, reply, len);
	return e;
}

/* Takes @e; returns the result of give_to(). */
_Atomic uint64_t *drc_insert(struct drc *drc, struct drc_shard *s,
				struct drc_entry *e,
				const struct drc_call *call, uint64_t t)
{
	struct drc_entry **bucket = drc_bucket(drc, s, e->hash);
	struct drc_share *share = &s->shares[e->share];
	size_t size = drc_size_of(e->len);

	if (!share->bytes)
		CDS_INIT_LIST_HEAD(&share->mine);
	e->known = true;
	e->chain = *bucket;
	*bucket = e;
	s->bytes += size;
	share->bytes += size;
	s->network_bytes[e->share / DRC_HOSTS] += size;
	s->ndone++;
	return give_to(s, e, call, t);
}

_Atomic uint64_t *drc_move(struct drc_shard *s, struct drc_entry *e,
			   const struct drc_call *call, uint64_t t)
{
	cds_list_del(&e->order);
	cds_list_del(&e->mine);
	xprt_fate_put(e->fate);
	return give_to(s, e, call, t);
}

static bool is_acked(const struct drc_entry *e, const struct xprt_view *v)
{
	uint64_t sent = atomic_load_explicit(&e->sent, memory_order_acquire);

	return sent != 0 && sent <= v->acked;
}

struct drc_facts drc_facts_of(const struct drc_entry *e,
			      const struct xprt_view *v, uint64_t t)
{
	return (struct drc_facts){
		.acked = is_acked(e, v),
		.recent = !drc_is_older(e, v->ended, recent_ms()),
		.end = v->end,
		.since = t > v->ended ? t - v->ended : 0,
	};
}

/* True if its client can still send the call again, judged by its fate. */
static bool is_needed(const struct drc_entry *e,
		      const struct xprt_view *v, uint64_t t)
{
	struct drc_facts f = drc_facts_of(e, v, t);

	return drc_is_again(drc_rule(&f));
}

/* Looks at a reply whose time has come. */
static void store_look_at(struct drc *drc, struct drc_shard *s,
			  struct drc_entry *e, uint64_t t)
{
	struct xprt_view v;

	if (drc_is_placed(e)) {
		xprt_fate_known(e->fate, &v);
		if (v.end == XPRT_ALIVE && !is_acked(e, &v))
			xprt_fate_look(e->fate, &v);
		if (!e->known || !is_needed(e, &v, t)) {
			drc_release(drc, s, e);
			return;
		}
		if (v.end != XPRT_ALIVE) {
			cds_list_del(&e->order);
			cds_list_add_tail(&e->order, &s->kept);
			return;
		}
	}
	e->due = t + recent_ms() + LOOK_MS;
	cds_list_del(&e->order);
	cds_list_add_tail(&e->order, &s->due);
}

/* Drops replies that are no longer needed: at most two, to bound the time. */
void drc_trim(struct drc *drc, struct drc_shard *s, uint64_t t)
{
	struct drc_entry *e;

	for (int i = 0; i < 2 && !cds_list_empty(&s->due); i++) {
		e = cds_list_first_entry(&s->due, struct drc_entry, order);
		if ((int64_t)(t - e->due) < 0)
			break;
		store_look_at(drc, s, e, t);
	}
	for (int i = 0; i < 2 && !cds_list_empty(&s->kept); i++) {
		e = cds_list_first_entry(&s->kept, struct drc_entry, order);
		if (!drc_is_older(e, t, e->fate ? DRC_BROKEN_MS : DRC_AGE_MS))
			break;
		drc_release(drc, s, e);
	}
}

/* Returns the reply that @share needs least, or NULL. */
static struct drc_entry *store_choose(struct drc_share *share, uint64_t t,
				      bool *needed)
{
	struct drc_entry *e, *oldest = NULL;
	struct xprt_view v;
	int tries = 0;

	*needed = true;
	if (!share->bytes)
		return NULL;
	cds_list_for_each_entry(e, &share->mine, mine) {
		if (++tries > EVICT_TRIES)
			break;
		if (!drc_is_placed(e))
			continue;
		if (!oldest)
			oldest = e;
		if (!e->fate)
			continue;
		xprt_fate_known(e->fate, &v);
		if (e->known && is_needed(e, &v, t))
			continue;
		*needed = false;
		return e;
	}
	return oldest;
}

/* Returns the share of the address that has most, of the network that has
 * most. */
static struct drc_share *largest(struct drc_shard *s)
{
	struct drc_share *most, *share;
	unsigned network = 0;

	for (unsigned i = 1; i < DRC_NETWORKS; i++)
		if (s->network_bytes[i] > s->network_bytes[network])
			network = i;
	most = &s->shares[network * DRC_HOSTS];
	for (unsigned i = 1; i < DRC_HOSTS; i++) {
		share = &s->shares[network * DRC_HOSTS + i];
		if (share->bytes > most->bytes)
			most = share;
	}
	return most;
}

/* Drops one reply of the address that has most.  False: no reply can go.  Sets
 * *@lost if its client can still need it. */
bool drc_evict(struct drc *drc, struct drc_shard *s, unsigned share,
	       uint64_t t, bool *lost)
{
	struct drc_entry *e;
	bool needed;

	e = store_choose(largest(s), t, &needed);
	if (!e)
		e = store_choose(&s->shares[share], t, &needed);
	if (!e)
		return false;
	stat_inc(drc_evicted);
	if (needed && !drc_is_older(e, t, DRC_AGE_MS)) {
		stat_inc(drc_lost);
		*lost = true;
	}
	drc_release(drc, s, e);
	return true;
}
