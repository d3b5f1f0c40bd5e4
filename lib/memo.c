/* SPDX-License-Identifier: BSD-2-Clause */
/* memo - readers walk the chains under RCU; the lock is the writers'. */
#include "lib/memo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/network.h"
#include "lib/thread.h"
#include "lib/util.h"

#define BUCKETS		1024

typedef _Atomic(struct memo_entry *) memo_place;

struct memo {
	unsigned	 max;
	size_t		 max_bytes;
	void	       (*free)(struct memo_entry *e);
	memo_place	 buckets[BUCKETS];
	_Atomic uint64_t since;		/* the oldest question went out; or 0 */
	_Atomic uint64_t quiet_until;	/* 0: the source is trusted */
	pthread_mutex_t	 lock;		/* guards changes, and: */
	unsigned	 count;
	size_t		 bytes;
	unsigned	 hand;		/* the next bucket to empty */
	struct memo_question *questions;	/* the oldest first */
	pthread_cond_t	 answered;
};

int memo_create(unsigned max, size_t max_bytes,
		void (*free)(struct memo_entry *e), struct memo **out)
{
	struct memo *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->max = max;
	m->max_bytes = max_bytes;
	m->free = free;
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->answered, NULL);
	*out = m;
	return 0;
}

void memo_destroy(struct memo *m)
{
	for (unsigned i = 0; i < BUCKETS; i++) {
		struct memo_entry *e = atomic_load(&m->buckets[i]), *next;

		for (; e; e = next) {
			next = atomic_load(&e->next);
			e->free(e);
		}
	}
	pthread_cond_destroy(&m->answered);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

static bool same_question(const struct memo_key *a, const struct memo_key *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* Where the chain has @key, or where it ends. */
static memo_place *find_place(struct memo *m, const struct memo_key *key)
{
	memo_place *at = &m->buckets[hash_words(key->w) % BUCKETS];
	struct memo_entry *e;

	while ((e = atomic_load_explicit(at, memory_order_acquire)) &&
	       !same_question(&e->key, key))
		at = &e->next;
	return at;
}

struct memo_entry *memo_find(struct memo *m, const struct memo_key *key)
{
	return atomic_load_explicit(find_place(m, key), memory_order_acquire);
}

bool memo_may_ask(const struct memo *m, uint64_t patience_ns)
{
	/* In this order: no question went out after @now. */
	uint64_t since = m->since, quiet = m->quiet_until, now = clock_ns();

	if (quiet && (since || now < quiet))
		return false;
	return !since || !patience_ns || now - since < patience_ns;
}

bool memo_doubt(struct memo *m, uint64_t until)
{
	return !atomic_exchange(&m->quiet_until, until) == !!until;
}

unsigned memo_count(struct memo *m)
{
	unsigned n;

	mutex_lock(&m->lock);
	n = m->count;
	mutex_unlock(&m->lock);
	return n;
}

/* ---- questions */

static bool is_out(const struct memo *m, const struct memo_key *key)
{
	const struct memo_question *q = m->questions;

	while (q && !same_question(&q->key, key))
		q = q->next;
	return q;
}

static bool must_ask(struct memo *m, const struct memo_key *key,
		     uint64_t patience_ns)
{
	bool fresh;

	rcu_enter();
	fresh = memo_is_fresh(memo_find(m, key));
	rcu_exit();
	return !fresh && memo_may_ask(m, patience_ns);
}

bool memo_ask(struct memo *m, struct memo_question *q, uint64_t patience_ns)
{
	struct memo_question **at = &m->questions;
	bool must;

	mutex_lock(&m->lock);
	while ((must = must_ask(m, &q->key, patience_ns)) &&
	       is_out(m, &q->key)) {
		if (patience_ns)
			cond_wait_until(&m->answered, &m->lock,
					m->since + patience_ns);
		else
			pthread_cond_wait(&m->answered, &m->lock);
	}
	if (must) {
		while (*at)
			at = &(*at)->next;
		q->since = clock_ns();
		q->next = NULL;
		*at = q;
		m->since = m->questions->since;
	}
	mutex_unlock(&m->lock);
	return must;
}

void memo_prolong(struct memo *m, const struct memo_question *q, int seconds)
{
	struct memo_entry *e;

	mutex_lock(&m->lock);
	e = memo_find(m, &q->key);
	if (e && !q->expired)
		atomic_store(&e->expires, clock_coarse_s() + seconds);
	mutex_unlock(&m->lock);
}

/* ---- answers; locked */

static void free_later(struct rcu_head *head)
{
	struct memo_entry *e = container_of(head, struct memo_entry, rcu);

	e->free(e);
}

static void drop_unlisted(struct memo *m, struct memo_entry *e)
{
	m->count--;
	m->bytes -= e->bytes;
	rcu_later(&e->rcu, free_later);
}

static void drop_answer(struct memo *m, memo_place *at)
{
	struct memo_entry *e = atomic_load(at);

	/* A reader on it can still go on to the next one. */
	atomic_store_explicit(at, atomic_load(&e->next), memory_order_release);
	drop_unlisted(m, e);
}

/* Empties one bucket after the other, but keeps @old, until @e fits in place of
 * that. */
static void empty_buckets(struct memo *m, const struct memo_entry *e,
			  const struct memo_entry *old)
{
	unsigned count = old ? 1 : 0;
	size_t bytes = e->bytes - (old ? old->bytes : 0);
	struct memo_entry *x;
	memo_place *at;

	while (m->count > count && (m->count - count >= m->max ||
				    m->bytes + bytes > m->max_bytes)) {
		at = &m->buckets[m->hand++ % BUCKETS];
		while ((x = atomic_load(at)))
			if (x == old)
				at = &x->next;
			else
				drop_answer(m, at);
	}
}

/* Drops the answer of the group that expires first, if the group of @e has
 * @most.  False: it has fewer. */
static bool bound_group(struct memo *m, const struct memo_entry *e, unsigned i,
			unsigned most)
{
	memo_place *first = NULL, *at;
	struct memo_entry *x;
	unsigned n = 0;

	if (!e->group[i] || m->count < most)
		return false;
	for (unsigned b = 0; b < BUCKETS; b++)
		for (at = &m->buckets[b]; (x = atomic_load(at)); at = &x->next)
			if (x->group[i] == e->group[i] &&
			    (n++ == 0 || x->expires <
					 atomic_load(first)->expires))
				first = at;
	if (n < most)
		return false;
	drop_answer(m, first);
	return true;
}

static void keep_answer(struct memo *m, struct memo_entry *e)
{
	struct memo_entry *old = memo_find(m, &e->key);
	memo_place *at;

	/* The older one is of the same groups. */
	if (!old && !bound_group(m, e, 0, network_share(m->max)))
		bound_group(m, e, 1, site_share(m->max));
	empty_buckets(m, e, old);
	at = find_place(m, &e->key);
	e->free = m->free;
	atomic_init(&e->next, old ? atomic_load(&old->next) : NULL);
	/* Pairs with find_place(). */
	atomic_store_explicit(at, e, memory_order_release);
	m->count++;
	m->bytes += e->bytes;
	if (old)
		drop_unlisted(m, old);
}

void memo_answered(struct memo *m, struct memo_question *q,
		   struct memo_entry *e)
{
	struct memo_question **at = &m->questions;

	mutex_lock(&m->lock);
	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	m->since = m->questions ? m->questions->since : 0;
	/* For the threads that wait for it. */
	if (e && q->expired)
		e->expires = clock_coarse_s();
	if (e)
		keep_answer(m, e);
	pthread_cond_broadcast(&m->answered);
	mutex_unlock(&m->lock);
}

/* ---- all at once */

static void expire_questions(struct memo *m)
{
	for (struct memo_question *q = m->questions; q; q = q->next)
		q->expired = true;
}

void memo_expire(struct memo *m)
{
	mutex_lock(&m->lock);
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct memo_entry *e = atomic_load(&m->buckets[i]); e;
		     e = atomic_load(&e->next))
			atomic_store(&e->expires, -1);
	expire_questions(m);
	mutex_unlock(&m->lock);
}

void memo_forget(struct memo *m)
{
	mutex_lock(&m->lock);
	for (unsigned i = 0; i < BUCKETS; i++)
		while (atomic_load(&m->buckets[i]))
			drop_answer(m, &m->buckets[i]);
	expire_questions(m);
	mutex_unlock(&m->lock);
}
