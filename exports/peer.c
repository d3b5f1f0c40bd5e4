/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verdicts on a peer: one bit for each name in the export table.  A worker
 * asks the resolver and keeps the verdicts for a minute, so that pollers only
 * read.  A name that the resolver can't tell now keeps its old verdict, and all
 * threads use the old record while one renews it.
 *
 * Readers walk the chains under RCU; the lock is the writers'.
 */
#include "exports/export_priv.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <arpa/inet.h>

#include "lib/clock.h"
#include "lib/hash.h"
#include "lib/log.h"
#include "lib/rcu.h"
#include "lib/util.h"

#define BUCKETS		256
/* After a failure the resolver is asked again this soon. */
#define UNSURE_S	10
/* If an old record is valid, stop after this many failures in a row: each takes
 * a time-out. */
#define PATIENCE	3

/* Constant once published, but for the time. */
struct peer {
	_Atomic(struct peer *) next;
	struct addr	addr;
	unsigned	serial;
	unsigned	first;		/* name to ask for, next time */
	_Atomic time_t	expires;
	uint64_t	names[];
};

/* An address that a thread resolves now. */
struct pending {
	struct addr	addr;
	struct pending *next;
};

struct peers {
	_Atomic(struct peer *)	buckets[BUCKETS];
	pthread_mutex_t		lock;	/* guards changes, and: */
	unsigned		count;
	struct pending	       *pending;
	pthread_cond_t		resolved;
};

int peers_create(struct peers **out)
{
	struct peers *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->resolved, NULL);
	*out = p;
	return 0;
}

/* Frees the cache.  No thread may read it any more. */
void peers_destroy(struct peers *p)
{
	for (unsigned i = 0; i < BUCKETS; i++) {
		struct peer *peer = atomic_load(&p->buckets[i]), *next;

		for (; peer; peer = next) {
			next = atomic_load(&peer->next);
			free(peer);
		}
	}
	pthread_cond_destroy(&p->resolved);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static _Atomic(struct peer *) *bucket_of(struct peers *p,
					 const struct addr *a)
{
	return &p->buckets[hash_addr(a->bytes) % BUCKETS];
}

static struct peer *peer_find(struct peers *p, const struct addr *a)
{
	struct peer *peer = atomic_load_explicit(bucket_of(p, a),
						 memory_order_acquire);

	while (peer && !addr_equal(&peer->addr, a))
		peer = atomic_load_explicit(&peer->next,
					    memory_order_acquire);
	return peer;
}

const uint64_t *peers_find(struct peers *p, const struct addr *a,
			   unsigned serial)
{
	const struct peer *peer = peer_find(p, a);

	if (!peer || peer->serial != serial || peer->expires < clock_coarse_s())
		return NULL;
	return peer->names;
}

/* A chain, or part of it, taken out; freed after a grace period. */
struct garbage {
	struct peer *peers[PEERS_MAX + 2];
	unsigned     n;
};

static void unlink_peer(struct peers *p, _Atomic(struct peer *) *at,
			struct garbage *g)
{
	struct peer *peer = atomic_load(at);

	/* A reader on it can still go on to the next one. */
	atomic_store_explicit(at, atomic_load(&peer->next),
			      memory_order_release);
	g->peers[g->n++] = peer;
	p->count--;
}

/* Takes out the old record of @a.  If there are too many records, takes out all
 * that have expired; if none has, all. */
static void make_room_for(struct peers *p, const struct addr *a,
			  struct garbage *g)
{
	bool full = p->count >= PEERS_MAX;
	time_t before = clock_coarse_s();

	for (int all = 0; all < 2; all++) {
		for (unsigned i = 0; i < BUCKETS; i++) {
			_Atomic(struct peer *) *at = &p->buckets[i];
			struct peer *peer;

			while ((peer = atomic_load(at))) {
				if (addr_equal(&peer->addr, a) || (full &&
				    (all || peer->expires < before)))
					unlink_peer(p, at, g);
				else
					at = &peer->next;
			}
		}
		full = p->count >= PEERS_MAX;
		if (!full)
			break;
	}
}

unsigned peers_count(struct peers *p)
{
	unsigned n;

	mutex_lock(&p->lock);
	n = p->count;
	mutex_unlock(&p->lock);
	return n;
}

static void insert_peer(struct peers *p, struct peer *peer)
{
	struct garbage *g = calloc(1, sizeof(*g));
	_Atomic(struct peer *) *bucket = bucket_of(p, &peer->addr);

	if (!g) {
		free(peer);
		return;
	}
	mutex_lock(&p->lock);
	make_room_for(p, &peer->addr, g);
	atomic_store(&peer->next, atomic_load(bucket));
	/* Pairs with peer_find(). */
	atomic_store_explicit(bucket, peer, memory_order_release);
	p->count++;
	mutex_unlock(&p->lock);
	if (g->n > 0)
		rcu_wait();
	while (g->n > 0)
		free(g->peers[--g->n]);
	free(g);
}

/* A peer's name, asked for once, when the first name needs it. */
struct identity {
	const struct resolver *r;
	const struct addr     *addr;
	unsigned	       silent;	/* names in a row */
	bool		       asked;
	int		       known;	/* 1; 0: it has no name; -1: not known
					 * now */
	char		       name[NI_MAXHOST];
	char		       text[INET6_ADDRSTRLEN];
};

static int heard(struct identity *id, int answer)
{
	id->silent = answer < 0 ? id->silent + 1 : 0;
	return answer;
}

/* The owner of the reverse zone may write any name there, so a name counts only
 * if it leads back to the address. */
static int identify(struct identity *id)
{
	int err;

	if (id->asked)
		return id->known;
	id->asked = true;
	err = id->r->name(id->addr, id->name, sizeof(id->name));
	if (err == 0)
		id->known = id->r->has_addr(id->name, id->addr);
	else
		id->known = err == EAI_NONAME ? 0 : -1;
	if (id->known == 0 && err == 0)
		log_limited(LOG_LEVEL_WARN, "%s has the name %s, but that name "
			    "has other addresses: ignored", id->text,
			    id->name);
	return heard(id, id->known);
}

/*
 * Netgroups have names with the domain, names without it, and addresses.  The
 * owner of a zone can call its host by the first part of any name.  So the name
 * without the domain has to lead back to the address, too.
 */
static int in_netgroup(struct identity *id, const char *group)
{
	char host[NI_MAXHOST];

	if (id->r->in_netgroup(group, id->text))
		return 1;
	if (id->known != 1)
		return id->known;
	if (id->r->in_netgroup(group, id->name))
		return 1;
	snprintf(host, sizeof(host), "%.*s", (int)strcspn(id->name, "."),
		 id->name);
	if (!id->r->in_netgroup(group, host))
		return 0;
	return heard(id, id->r->has_addr(host, id->addr));
}

/* 1, 0, or -1: can't tell now. */
static int is_client(struct identity *id, const struct client *c)
{
	int known;

	if (c->kind == CLIENT_HOST)
		return heard(id, id->r->has_addr(c->text, id->addr));
	known = identify(id);
	if (c->kind == CLIENT_NETGROUP)
		return in_netgroup(id, c->text + 1);
	if (known != 1)
		return known;
	return client_match_name(c, id->name);
}

static size_t names_size(const struct export_set *set)
{
	return (set->nnames + 63) / 64 * sizeof(uint64_t);
}

static struct peer *create(const struct export_set *set, const struct addr *a)
{
	struct peer *peer = calloc(1, sizeof(*peer) + names_size(set));

	if (peer) {
		peer->addr = *a;
		peer->serial = set->serial;
	}
	return peer;
}

/* Begins @peer with the old verdicts of the same snapshot, and keeps the old
 * record valid until it is replaced.  False: there is no old record. */
static bool recall(struct peers *p, struct peer *peer,
		   const struct export_set *set, int keep_s)
{
	struct peer *old;
	bool known;

	rcu_enter();
	old = peer_find(p, &peer->addr);
	known = old && old->serial == peer->serial;
	if (known) {
		memcpy(peer->names, old->names, names_size(set));
		peer->first = old->first;
		atomic_store(&old->expires, clock_coarse_s() + keep_s);
	}
	rcu_exit();
	return known;
}

static void set_name(struct peer *peer, unsigned i, bool is)
{
	uint64_t bit = (uint64_t)1 << i % 64;

	if (is)
		peer->names[i / 64] |= bit;
	else
		peer->names[i / 64] &= ~bit;
}

/*
 * Takes @peer.  If it is @known, does not wait for all names while no server
 * answers; the next time begins behind the silent names, so that they don't
 * keep the others from being asked.
 */
static void resolve(struct peers *p, const struct resolver *r,
		    const struct export_set *set, struct peer *peer,
		    bool known)
{
	struct identity id = { .r = r, .addr = &peer->addr };
	unsigned first = peer->first;
	int keep = r->keep_s;

	inet_ntop(peer->addr.family, peer->addr.bytes, id.text,
		  sizeof(id.text));
	for (unsigned n = 0; n < set->nnames; n++) {
		unsigned i = (first + n) % set->nnames;
		int is = is_client(&id, set->names[i]);

		if (is >= 0) {
			set_name(peer, i, is);
			continue;
		}
		keep = MIN(keep, UNSURE_S);
		if (known && id.silent >= PATIENCE) {
			peer->first = i + 1;
			break;
		}
	}
	atomic_init(&peer->expires, clock_coarse_s() + keep);
	insert_peer(p, peer);
}

static bool is_pending(const struct peers *p, const struct addr *a)
{
	for (const struct pending *q = p->pending; q; q = q->next)
		if (addr_equal(&q->addr, a))
			return true;
	return false;
}

static bool is_known(struct peers *p, const struct addr *a, unsigned serial)
{
	bool known;

	rcu_enter();
	known = peers_find(p, a, serial) != NULL;
	rcu_exit();
	return known;
}

/* Many calls of a new client come at once: one asks, the others wait. */
void peers_resolve(struct peers *p, const struct resolver *r,
		   const struct export_set *set, const struct addr *a)
{
	struct pending me = { .addr = *a }, **at;
	struct peer *peer = create(set, a);
	bool known;

	if (!peer)
		return;
	mutex_lock(&p->lock);
	while (!is_known(p, a, set->serial) && is_pending(p, a))
		pthread_cond_wait(&p->resolved, &p->lock);
	if (is_known(p, a, set->serial)) {
		mutex_unlock(&p->lock);
		free(peer);
		return;
	}
	known = recall(p, peer, set, r->keep_s);
	me.next = p->pending;
	p->pending = &me;
	mutex_unlock(&p->lock);

	resolve(p, r, set, peer, known);

	mutex_lock(&p->lock);
	for (at = &p->pending; *at != &me; at = &(*at)->next)
		;
	*at = me.next;
	pthread_cond_broadcast(&p->resolved);
	mutex_unlock(&p->lock);
}
