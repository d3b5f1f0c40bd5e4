/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verdicts on a peer: one bit for each name in the export table.  A worker
 * asks the resolver and caches the verdicts for a minute; pollers only read
 * them.  While the resolver can't answer, a name keeps its old verdict, and
 * while one thread renews a record, all others use the old one.
 */
#include "exports/export_priv.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <arpa/inet.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/network.h"
#include "lib/rcu.h"
#include "lib/util.h"

/* After a failure the resolver is asked again this soon. */
#define UNSURE_S	10
/* If an old record is valid, stop after this many failures in a row: each takes
 * a time-out. */
#define PATIENCE	3

struct peer {
	struct memo_entry memo;
	struct addr	addr;
	unsigned	first;		/* name to ask for, next time */
	uint64_t	names[];
};

static void peer_free(struct memo_entry *e)
{
	free(container_of(e, struct peer, memo));
}

int peers_create(struct memo **out)
{
	return memo_create(PEERS_MAX, SIZE_MAX, peer_free, out);
}

static struct memo_key peer_key(const struct addr *a, unsigned serial)
{
	struct memo_key key = { { (uint32_t)a->family, serial } };

	memcpy(&key.w[2], a->bytes, sizeof(a->bytes));
	return key;
}

static struct peer *peer_find(struct memo *p, const struct memo_key *key)
{
	struct memo_entry *e = memo_find(p, key);

	return e ? container_of(e, struct peer, memo) : NULL;
}

const uint64_t *peers_find(struct memo *p, const struct addr *a,
			   unsigned serial)
{
	const struct memo_key key = peer_key(a, serial);
	const struct peer *peer = peer_find(p, &key);

	return peer && memo_is_fresh(&peer->memo) ? peer->names : NULL;
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

/* The owner of the reverse zone can write any name there, so a name counts only
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
 * without the domain must also lead back to the address.
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

	if (!peer)
		return NULL;
	peer->memo.key = peer_key(a, set->serial);
	if (a->family == AF_INET6) {
		peer->memo.group[0] = hash_keyed(a->bytes, NETWORK_BYTES);
		peer->memo.group[1] = hash_keyed(a->bytes, SITE_BYTES);
	}
	peer->addr = *a;
	return peer;
}

/* Begins @peer with the old verdicts of the same snapshot, and keeps the old
 * record valid until it is replaced.  False: no old record.  In an RCU
 * section. */
static bool recall(struct memo *p, const struct memo_question *q,
		   const struct export_set *set, struct peer *peer, int keep_s)
{
	struct peer *old = peer_find(p, &q->key);

	if (!old)
		return false;
	memcpy(peer->names, old->names, names_size(set));
	peer->first = old->first;
	memo_prolong(p, q, keep_s);
	return true;
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
 * Fills in @peer.  If it is @known, does not wait for all names while no server
 * answers; the next run begins after the silent names, so every name gets its
 * turn.
 */
static void resolve(const struct resolver *r, const struct export_set *set,
		    struct peer *peer, bool known)
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
	atomic_init(&peer->memo.expires, clock_coarse_s() + keep);
}

/* Many calls of a new client come at once: one asks, the others wait. */
void peers_resolve(struct memo *p, const struct resolver *r,
		   const struct export_set *set, const struct addr *a)
{
	struct memo_question me = { .key = peer_key(a, set->serial) };
	struct peer *peer = create(set, a);
	bool known;

	if (!peer)
		return;
	if (!memo_ask(p, &me, 0)) {
		free(peer);
		return;
	}
	rcu_enter();
	known = recall(p, &me, set, peer, r->keep_s);
	rcu_exit();
	resolve(r, set, peer, known);
	memo_answered(p, &me, &peer->memo);
}
