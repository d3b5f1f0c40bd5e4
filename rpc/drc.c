/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The duplicate request cache.
 *
 * Shards, each with its lock, hash table, list in order of use, and its part
 * of the memory.  An entry has room for any reply that NFSv3 makes
 * (CREATE: 336 bytes at most); a longer one is a block of its own, which
 * counts as the entries that it displaces.
 */
#include "rpc/drc.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include <urcu/list.h>

#include "lib/stats.h"
#include "lib/thread.h"

#define NSHARDS		16u
#define INLINE_REPLY	352

STAT(drc_evicted, "remembered replies that made room before their time");
STAT(drc_displaced, "duplicates in progress that made room for a newer one");
STAT(drc_full, "calls not remembered: all entries are calls in progress");

enum state { FREE, RUNNING, DONE };

struct drc_entry {
	struct drc_key	 key;
	struct drc_entry *chain;	/* next of the bucket, or free */
	struct cds_list_head used;	/* least recently used first; DONE */
	uint32_t	 stamp;		/* seconds: done, or last replayed */
	uint32_t	 hash;
	uint16_t	 len;
	uint16_t	 state;
	uint8_t		*large;		/* owned; NULL: inline */
	void		*waiting;	/* RUNNING: the newest duplicate */
	uint8_t		 reply[INLINE_REPLY];
};

struct shard {
	pthread_mutex_t	 lock;		/* guards all below; innermost */
	struct drc_entry **buckets;
	struct drc_entry *entries;
	struct drc_entry *free;
	size_t		 fresh;		/* entries never used yet: no memory
					 * is touched before it is needed */
	struct cds_list_head used;
	size_t		 nused;		/* entries RUNNING or DONE */
	size_t		 large_bytes;
} __attribute__((aligned(64)));

struct drc {
	uint64_t	 seed;
	uint32_t	 mask;		/* buckets of a shard - 1 */
	size_t		 per_shard;	/* entries; 0: the cache is off */
	atomic_uint	 skew;		/* seconds, see drc_age() */
	struct drc_entry *entries;
	struct drc_entry **buckets;
	struct shard	 shards[NSHARDS];
};

/* Folds 64 bits into a running hash. */
static inline uint64_t mix(uint64_t h, uint64_t v)
{
	unsigned __int128 m;

	m = (unsigned __int128)(h ^ v ^ 0x9e3779b97f4a7c15ull) *
	    0xd6e8feb86659fd93ull;
	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

void drc_key_addr(struct drc_key *key, const struct sockaddr *peer)
{
	struct in6_addr host = xprt_addr_host(peer);

	memcpy(key->addr, &host, sizeof(key->addr));
	key->scope = peer->sa_family == AF_INET6 ?
		     ((const struct sockaddr_in6 *)peer)->sin6_scope_id : 0;
}

static uint64_t load(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	memcpy(&v, p, n);
	return le64toh(v);
}

/* Four at a time: the processor multiplies them side by side. */
static uint64_t sum_bytes(const uint8_t *p, size_t n)
{
	uint64_t h[4] = { n, 1, 2, 3 };

	for (; n >= 32; n -= 32, p += 32) {
		h[0] = mix(h[0], load(p, 8));
		h[1] = mix(h[1], load(p + 8, 8));
		h[2] = mix(h[2], load(p + 16, 8));
		h[3] = mix(h[3], load(p + 24, 8));
	}
	for (; n >= 8; n -= 8, p += 8)
		h[0] = mix(h[0], load(p, 8));
	h[1] = mix(h[1], load(p, n));
	return mix(mix(h[0], h[1]), mix(h[2], h[3]));
}

uint64_t drc_sum(const struct xdr_in *args)
{
	size_t have = (size_t)(args->end - args->p), n;
	uint8_t all[DRC_SUM_MAX];

	if (have >= DRC_SUM_MAX || args->nnext == 0)
		return sum_bytes(args->p, MIN(have, (size_t)DRC_SUM_MAX));
	memcpy(all, args->p, have);
	for (uint32_t i = 0; i < args->nnext; i++) {
		n = MIN((size_t)args->next[i].len, DRC_SUM_MAX - have);
		memcpy(all + have, args->next[i].data, n);
		have += n;
	}
	return sum_bytes(all, have);
}

static uint64_t hash_key(const struct drc *drc, const struct drc_key *key)
{
	uint64_t a, b;

	memcpy(&a, key->addr, 8);
	memcpy(&b, key->addr + 8, 8);
	a = mix(drc->seed ^ a, b);
	a = mix(a, (uint64_t)key->uid << 32 | key->gid);
	return mix(mix(a, key->sum), (uint64_t)key->xid << 32 | key->proc);
}

static bool same_key(const struct drc_key *a, const struct drc_key *b)
{
	return a->xid == b->xid && a->sum == b->sum && a->len == b->len &&
	       a->proc == b->proc && a->vers == b->vers &&
	       a->prog == b->prog && a->scope == b->scope &&
	       a->uid == b->uid && a->gid == b->gid &&
	       memcmp(a->addr, b->addr, 16) == 0;
}

static uint32_t now(struct drc *drc)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint32_t)ts.tv_sec +
	       atomic_load_explicit(&drc->skew, memory_order_relaxed);
}

static struct shard *shard_of(struct drc *drc, uint32_t hash)
{
	return &drc->shards[hash % NSHARDS];
}

static struct drc_entry **bucket_of(struct drc *drc, uint32_t hash)
{
	return &shard_of(drc, hash)->buckets[hash / NSHARDS & drc->mask];
}

/* Locked.  Out of the table, onto the free list.  Returns what to free(). */
static void *release(struct drc *drc, struct shard *s, struct drc_entry *e)
{
	struct drc_entry **p = bucket_of(drc, e->hash);
	void *large = e->large;

	while (*p != e)
		p = &(*p)->chain;
	*p = e->chain;
	if (e->state == DONE)
		cds_list_del(&e->used);
	if (large)
		s->large_bytes -= e->len;
	e->large = NULL;
	e->state = FREE;
	e->chain = s->free;
	s->free = e;
	s->nused--;
	return large;
}

/* Locked.  Is there an entry for one more call? */
static bool has_room(const struct drc *drc, const struct shard *s)
{
	return s->nused + s->large_bytes / sizeof(struct drc_entry) <
	       drc->per_shard;
}

/* Locked.  The entry that was used least recently, or NULL. */
static struct drc_entry *oldest(struct shard *s)
{
	if (cds_list_empty(&s->used))
		return NULL;
	return cds_list_first_entry(&s->used, struct drc_entry, used);
}

/* The entry may have been stamped after @t was read: that is no age. */
static bool is_old(const struct drc_entry *e, uint32_t t)
{
	return (int32_t)(t - e->stamp) > DRC_AGE;
}

/* Locked.  Gives up what is too old (two at most, for a bounded time), and
 * makes room for one more. */
static void trim(struct drc *drc, struct shard *s, uint32_t t)
{
	struct drc_entry *e;

	for (int i = 0; i < 2; i++) {
		e = oldest(s);
		if (!e || !is_old(e, t))
			break;
		free(release(drc, s, e));
	}
	while (!has_room(drc, s) && (e = oldest(s))) {
		stat_inc(drc_evicted);
		free(release(drc, s, e));
	}
}

/* Locked. */
static struct drc_entry *find(struct drc *drc, struct shard *s,
			      const struct drc_key *key, uint32_t hash)
{
	struct drc_entry *e = *bucket_of(drc, hash);

	while (e && !(e->hash == hash && same_key(&e->key, key)))
		e = e->chain;
	return e;
}

/* Locked.  A new entry, RUNNING, or NULL. */
static struct drc_entry *insert(struct drc *drc, struct shard *s,
				const struct drc_key *key, uint32_t hash)
{
	struct drc_entry **bucket = bucket_of(drc, hash);
	struct drc_entry *e = s->free;

	if (!has_room(drc, s))
		return NULL;
	if (e)
		s->free = e->chain;
	else
		e = &s->entries[drc->per_shard - s->fresh--];
	s->nused++;
	e->key = *key;
	e->hash = hash;
	e->state = RUNNING;
	e->waiting = NULL;
	e->chain = *bucket;
	*bucket = e;
	return e;
}

/* Locked. */
static void replay(struct shard *s, struct drc_entry *e, uint32_t t,
		   struct drc_ask *ask)
{
	memcpy(ask->reply, e->large ? e->large : e->reply, e->len);
	ask->len = e->len;
	e->stamp = t;
	cds_list_del(&e->used);
	cds_list_add_tail(&e->used, &s->used);
}

enum drc_verdict drc_lookup(struct drc *drc, const struct drc_key *key,
			    struct drc_ask *ask)
{
	uint64_t h = hash_key(drc, key);
	uint32_t hash = (uint32_t)(h ^ h >> 32), t = now(drc);
	struct shard *s = shard_of(drc, hash);
	enum drc_verdict verdict = DRC_NEW;
	struct drc_entry *e;

	ask->entry = NULL;
	ask->older = NULL;
	if (!drc->per_shard)
		return DRC_UNCACHED;
	mutex_lock(&s->lock);
	e = find(drc, s, key, hash);
	if (e && e->state == DONE && is_old(e, t)) {
		free(release(drc, s, e));
		e = NULL;
	}
	if (!e) {
		trim(drc, s, t);
		ask->entry = insert(drc, s, key, hash);
		if (!ask->entry)
			verdict = DRC_UNCACHED;
	} else if (e->state == RUNNING) {
		verdict = DRC_IN_PROGRESS;
		ask->older = e->waiting;
		e->waiting = ask->call;
	} else {
		replay(s, e, t, ask);
		verdict = DRC_REPLAY;
	}
	mutex_unlock(&s->lock);
	if (verdict == DRC_UNCACHED)
		stat_inc(drc_full);
	if (ask->older)
		stat_inc(drc_displaced);
	return verdict;
}

void *drc_done(struct drc *drc, struct drc_entry *e, const void *reply,
	       uint32_t len)
{
	struct shard *s = shard_of(drc, e->hash);
	uint8_t *large = NULL;
	void *waiting;

	assert(len <= MSG_HEAD_SIZE);
	if (len > INLINE_REPLY)
		large = malloc(len);
	/* The entry is the call's own while it is RUNNING, but for its key,
	 * its chain, and who waits. */
	if (large || len <= INLINE_REPLY)
		memcpy(large ? large : e->reply, reply, len);
	mutex_lock(&s->lock);
	waiting = e->waiting;
	if (!large && len > INLINE_REPLY) {	/* no memory to keep it */
		release(drc, s, e);
		mutex_unlock(&s->lock);
		return waiting;
	}
	e->large = large;
	e->len = (uint16_t)len;
	e->stamp = now(drc);
	e->state = DONE;
	if (large)
		s->large_bytes += len;
	cds_list_add_tail(&e->used, &s->used);
	mutex_unlock(&s->lock);
	return waiting;
}

void *drc_forget(struct drc *drc, struct drc_entry *e)
{
	struct shard *s = shard_of(drc, e->hash);
	void *waiting;

	mutex_lock(&s->lock);
	waiting = e->waiting;
	e->waiting = NULL;
	if (!waiting)
		release(drc, s, e);
	mutex_unlock(&s->lock);
	return waiting;
}

void drc_usage(struct drc *drc, size_t *entries, size_t *bytes)
{
	*entries = *bytes = 0;
	for (unsigned i = 0; i < NSHARDS; i++) {
		struct shard *s = &drc->shards[i];

		mutex_lock(&s->lock);
		*entries += s->nused;
		*bytes += s->nused * sizeof(struct drc_entry) +
			  s->large_bytes;
		mutex_unlock(&s->lock);
	}
}

void drc_age(struct drc *drc, unsigned seconds)
{
	atomic_fetch_add(&drc->skew, seconds);
}

static void init_shard(struct drc *drc, unsigned i)
{
	struct shard *s = &drc->shards[i];

	pthread_mutex_init(&s->lock, NULL);
	CDS_INIT_LIST_HEAD(&s->used);
	s->buckets = drc->buckets + (size_t)i * (drc->mask + 1);
	s->entries = drc->entries + i * drc->per_shard;
	s->fresh = drc->per_shard;
}

int drc_create(size_t bytes, struct drc **out)
{
	struct drc *drc;
	size_t n = bytes / NSHARDS /
		   (sizeof(struct drc_entry) + sizeof(struct drc_entry *));

	drc = aligned_alloc(64, sizeof(*drc));
	if (!drc)
		goto fail;
	memset(drc, 0, sizeof(*drc));
	drc->per_shard = n;
	while ((size_t)drc->mask + 1 < n)
		drc->mask = drc->mask * 2 + 1;
	if (getrandom(&drc->seed, sizeof(drc->seed), 0) < 0)
		drc->seed = (uintptr_t)drc;
	drc->entries = calloc(MAX(n, (size_t)1) * NSHARDS,
			      sizeof(*drc->entries));
	if (!drc->entries)
		goto fail_drc;
	drc->buckets = calloc((size_t)(drc->mask + 1) * NSHARDS,
			      sizeof(*drc->buckets));
	if (!drc->buckets)
		goto fail_entries;
	for (unsigned i = 0; i < NSHARDS; i++)
		init_shard(drc, i);
	*out = drc;
	return 0;

fail_entries:
	free(drc->entries);
fail_drc:
	free(drc);
fail:
	return -ENOMEM;
}

void drc_destroy(struct drc *drc)
{
	for (unsigned i = 0; i < NSHARDS; i++) {
		struct shard *s = &drc->shards[i];

		while (!cds_list_empty(&s->used))
			free(release(drc, s, oldest(s)));
		pthread_mutex_destroy(&s->lock);
	}
	free(drc->buckets);
	free(drc->entries);
	free(drc);
}
