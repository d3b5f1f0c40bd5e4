/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * users - the groups that this system's name service says users have.
 *
 * A worker asks the service, and the answer is kept for some minutes, so that
 * pollers only read.  One call asks for a user, others that need the answer
 * wait for it.  A user that the service does not know has no groups but the one
 * that its call names, as with rpc.mountd's --manage-gids.
 *
 * A service that does not answer: a question that takes longer than resolver's
 * slow_ms makes the service doubtful.  Then one question at a time is asked,
 * with a pause after each, and nobody else waits: a user that was known keeps
 * its groups, for a day at most, and others are unknown users.  This holds
 * while a question is out for that long, too.
 *
 * The C library does not say that a list lacks the groups of a source that
 * timed out or is down.  So a list that comes late replaces none that is known;
 * nor does one that lacks a group, unless the service says of that group that
 * the user has left it.
 *
 * Readers walk the chains under RCU; the lock is the writers'.
 */
#include "exports/export_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/hash.h"
#include "lib/log.h"
#include "lib/rcu.h"
#include "lib/stats.h"
#include "lib/util.h"

#define BUCKETS		1024
/* The answers kept, and the bytes of their lists. */
#define USERS_MAX	4096
#define BYTES_MAX	((size_t)16 << 20)
/* Of the groups that a list lacks, so many are asked for. */
#define PROBES_MAX	16

STAT(users_asked, "queries to the name service for a user's groups");
STAT(users_unknown, "users without groups because the name service does not "
		    "know them");
STAT(users_unanswered, "failed queries to the name service for groups");

/* Constant once published, but for the time. */
struct user {
	struct rcu_head	rcu;
	_Atomic(struct user *) next;
	uint32_t	uid;
	uint32_t	zero;		/* what group 0 is for it */
	struct groups  *groups;		/* counted; NULL: none */
	time_t		answered;	/* 0: never */
	_Atomic time_t	expires;
};

/* A question that is out. */
struct question {
	uint32_t	 uid, zero;
	uint64_t	 since;		/* ns */
	bool		 expired;	/* before its answer came */
	struct question	*next;
};

struct users {
	_Atomic(struct user *) buckets[BUCKETS];
	_Atomic uint64_t waiting;	/* since the oldest question went out;
					 * 0: none is out */
	_Atomic uint64_t quiet_until;	/* ns */
	_Atomic bool	 doubtful;
	pthread_mutex_t	 lock;		/* guards changes, and: */
	unsigned	 count;
	size_t		 bytes;
	unsigned	 hand;		/* the next bucket to empty */
	struct question *questions;
	pthread_cond_t	 answered;
};

int users_create(struct users **out)
{
	struct users *u = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	pthread_mutex_init(&u->lock, NULL);
	pthread_cond_init(&u->answered, NULL);
	*out = u;
	return 0;
}

static void user_free(struct user *user)
{
	if (user->groups)
		groups_put(user->groups);
	free(user);
}

void users_destroy(struct users *u)
{
	for (unsigned i = 0; i < BUCKETS; i++) {
		struct user *user = atomic_load(&u->buckets[i]), *next;

		for (; user; user = next) {
			next = atomic_load(&user->next);
			user_free(user);
		}
	}
	pthread_cond_destroy(&u->answered);
	pthread_mutex_destroy(&u->lock);
	free(u);
}

static _Atomic(struct user *) *user_bucket(struct users *u, uint32_t uid)
{
	return &u->buckets[hash_values(uid) % BUCKETS];
}

static struct user *user_find(struct users *u, uint32_t uid, uint32_t zero)
{
	struct user *user = atomic_load_explicit(user_bucket(u, uid),
						 memory_order_acquire);

	while (user && (user->uid != uid || user->zero != zero))
		user = atomic_load_explicit(&user->next, memory_order_acquire);
	return user;
}

/* True if a question may go out: the service is not known to be silent. */
static bool may_ask(struct users *u, const struct resolver *r)
{
	/* In this order: no question went out after @now. */
	uint64_t since = u->waiting, now = clock_ns();

	if (u->doubtful && (since || now < u->quiet_until))
		return false;
	return !since || now - since < (uint64_t)r->slow_ms * NS_PER_MS;
}

static bool is_fresh(const struct user *user, const struct resolver *r)
{
	return user->answered &&
	       clock_coarse_s() - user->answered <= r->users_stale_s;
}

int users_find(struct users *u, const struct resolver *r, uint32_t uid,
	       uint32_t zero, struct groups **out)
{
	const struct user *user = user_find(u, uid, zero);

	*out = NULL;
	if (likely(user && user->expires >= clock_coarse_s())) {
		*out = user->groups;
		return 0;
	}
	if (may_ask(u, r))
		return -EAGAIN;
	if (user && is_fresh(user, r))
		*out = user->groups;
	return 0;
}

static void user_drop(struct rcu_head *head)
{
	user_free(container_of(head, struct user, rcu));
}

static size_t groups_bytes(const struct groups *g)
{
	return g ? g->n * sizeof(g->gids[0]) : 0;
}

static void user_unlink(struct users *u, _Atomic(struct user *) *at)
{
	struct user *user = atomic_load(at);

	/* A reader on it can still go on to the next one. */
	atomic_store_explicit(at, atomic_load(&user->next),
			      memory_order_release);
	u->count--;
	u->bytes -= groups_bytes(user->groups);
	rcu_later(&user->rcu, user_drop);
}

/* Empties one bucket after the other until there is room for @bytes. */
static void users_make_room(struct users *u, size_t bytes)
{
	while (u->count &&
	       (u->count >= USERS_MAX || u->bytes + bytes > BYTES_MAX)) {
		_Atomic(struct user *) *at =
			&u->buckets[u->hand++ % BUCKETS];

		while (atomic_load(at))
			user_unlink(u, at);
	}
}

static void user_insert(struct users *u, struct user *user)
{
	_Atomic(struct user *) *bucket = user_bucket(u, user->uid), *at;
	struct user *old;

	for (at = bucket; (old = atomic_load(at)); at = &old->next)
		if (old->uid == user->uid && old->zero == user->zero)
			break;
	if (old)
		user_unlink(u, at);
	users_make_room(u, groups_bytes(user->groups));
	atomic_store(&user->next, atomic_load(bucket));
	/* Pairs with user_find(). */
	atomic_store_explicit(bucket, user, memory_order_release);
	u->count++;
	u->bytes += groups_bytes(user->groups);
}

unsigned users_count(struct users *u)
{
	unsigned n;

	mutex_lock(&u->lock);
	n = u->count;
	mutex_unlock(&u->lock);
	return n;
}

void users_expire(struct users *u)
{
	mutex_lock(&u->lock);
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct user *user = atomic_load(&u->buckets[i]); user;
		     user = atomic_load(&user->next))
			atomic_store(&user->expires, -1);
	for (struct question *q = u->questions; q; q = q->next)
		q->expired = true;
	mutex_unlock(&u->lock);
}

/* An answer: a list, or none. */
struct answer {
	int	       told;	/* as resolver->groups(); -1 also of a list that
				 * is not whole */
	bool	       late;
	struct groups *groups;	/* counted, or NULL */
};

/* The list of an answer, without numbers that are no group; or NULL. */
static struct groups *make_list(const uint32_t *gids, uint32_t n, uint32_t zero)
{
	struct groups *g = groups_alloc(n);

	if (!g)
		return NULL;
	g->n = 0;
	for (uint32_t i = 0; i < n; i++)
		if (gids[i] != EXPORT_NO_ID)
			g->gids[g->n++] = gids[i] ? gids[i] : zero;
	return g;
}

static bool has_gid(const struct groups *g, uint32_t gid)
{
	for (uint32_t i = 0; g && i < g->n; i++)
		if (g->gids[i] == gid)
			return true;
	return false;
}

/* True unless the service tells of each group of @old, of which some are asked
 * for, that the user has left it where @now lacks it. */
static bool is_partial(const struct resolver *r, const struct question *q,
		       const struct groups *old, const struct groups *now)
{
	unsigned asked = 0;

	for (uint32_t i = 0; old && i < old->n && asked < PROBES_MAX; i++) {
		uint32_t gid = old->gids[i];

		/* Both lists may be as long as they can; most begin alike. */
		if ((now && i < now->n && now->gids[i] == gid) ||
		    has_gid(now, gid))
			continue;
		asked++;
		if (!r->has_left(q->uid, gid == q->zero ? 0 : gid))
			return true;
	}
	return false;
}

/* Asks the service.  @old is what it said before, or NULL.  Nothing is
 * locked. */
static struct answer ask_service(const struct resolver *r,
				 const struct question *q,
				 const struct groups *old)
{
	uint32_t uid = q->uid, zero = q->zero;
	uint64_t began = clock_ns();
	uint32_t *gids = NULL, n = 0;
	struct answer a = { .told = r->groups(uid, &gids, &n) };

	stat_inc(users_asked);
	a.late = clock_ns() - began >= (uint64_t)r->slow_ms * NS_PER_MS;
	if (a.told == 1 && n > 0) {
		n = MIN(n, (uint32_t)VFS_MAX_GIDS);
		a.groups = make_list(gids, n, zero);
		if (!a.groups)
			a.told = -1;
	}
	free(gids);
	if (a.told >= 0 && is_partial(r, q, old, a.groups)) {
		log_limited(LOG_LEVEL_WARN, "the name service omits groups "
			    "that user %u had, as if a part of it were down: "
			    "the user keeps them", uid);
		if (a.groups)
			groups_put(a.groups);
		a.groups = NULL;
		a.told = -1;
	}
	if (a.told == 0)
		stat_inc(users_unknown);
	else if (a.told < 0)
		stat_inc(users_unanswered);
	return a;
}

static bool same_groups(const struct groups *a, const struct groups *b)
{
	return a && b && a->n == b->n &&
	       memcmp(a->gids, b->gids, a->n * sizeof(a->gids[0])) == 0;
}

/* Takes @a's list.  A list that is as before stays the same one, so that what
 * was remembered of it is valid still. */
static void keep_answer(struct users *u, const struct resolver *r,
			const struct question *q, struct answer *a)
{
	struct user *old = user_find(u, q->uid, q->zero), *user;
	time_t now = clock_coarse_s();
	bool unsure = a->told < 0 || a->late;
	int keep = unsure ? MIN(r->quiet_s, r->users_keep_s) : r->users_keep_s;

	/* For the calls that wait for it. */
	if (q->expired)
		keep = 0;
	if (old && unsure && is_fresh(old, r)) {
		atomic_store(&old->expires, now + keep);
		goto drop;
	}
	if (old && same_groups(old->groups, a->groups)) {
		groups_put(a->groups);
		a->groups = old->groups;
		ref_get(&a->groups->ref);
	}
	user = calloc(1, sizeof(*user));
	if (!user)
		goto drop;
	user->uid = q->uid;
	user->zero = q->zero;
	user->groups = a->groups;
	user->answered = a->told < 0 ? 0 : now;
	atomic_init(&user->expires, now + keep);
	user_insert(u, user);
	return;

drop:
	if (a->groups)
		groups_put(a->groups);
}

static void note_service(struct users *u, const struct resolver *r,
			 uint32_t uid, const struct answer *a)
{
	if (a->late) {
		u->quiet_until = clock_ns() + (uint64_t)r->quiet_s * NS_PER_S;
		if (!atomic_exchange(&u->doubtful, true))
			log_warn("the name service did not report the groups "
				 "of user %u in time: known users keep theirs, "
				 "others have no groups until it answers", uid);
	} else if (a->told >= 0 && atomic_exchange(&u->doubtful, false)) {
		log_info("the name service answers again");
	}
}

static bool is_asked(const struct users *u, uint32_t uid, uint32_t zero)
{
	for (const struct question *q = u->questions; q; q = q->next)
		if (q->uid == uid && q->zero == zero)
			return true;
	return false;
}

/* Puts @q behind the others, so that the oldest is the first. */
static void question_add(struct users *u, struct question *q)
{
	struct question **at = &u->questions;

	while (*at)
		at = &(*at)->next;
	*at = q;
	u->waiting = u->questions->since;
}

static void question_remove(struct users *u, struct question *q)
{
	struct question **at = &u->questions;

	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	u->waiting = u->questions ? u->questions->since : 0;
}

static bool must_ask(struct users *u, const struct resolver *r, uint32_t uid,
		     uint32_t zero)
{
	struct groups *found;
	bool must;

	rcu_enter();
	must = users_find(u, r, uid, zero, &found) == -EAGAIN;
	rcu_exit();
	return must;
}

/* While a known user's groups are asked for, its other calls use the old ones.
 * Returns those, counted, or NULL. */
static struct groups *prolong(struct users *u, const struct resolver *r,
			      uint32_t uid, uint32_t zero)
{
	struct user *old = user_find(u, uid, zero);

	if (!old || !is_fresh(old, r))
		return NULL;
	atomic_store(&old->expires, clock_coarse_s() +
		     MIN(r->quiet_s, r->users_keep_s));
	if (old->groups)
		ref_get(&old->groups->ref);
	return old->groups;
}

void users_ask(struct users *u, const struct resolver *r, uint32_t uid,
	       uint32_t zero)
{
	struct question me = { .uid = uid, .zero = zero };
	struct groups *old;
	struct answer a;

	mutex_lock(&u->lock);
	while (must_ask(u, r, uid, zero) && is_asked(u, uid, zero))
		cond_wait_until(&u->answered, &u->lock, u->waiting +
				(uint64_t)r->slow_ms * NS_PER_MS);
	if (!must_ask(u, r, uid, zero)) {
		mutex_unlock(&u->lock);
		return;
	}
	old = prolong(u, r, uid, zero);
	me.since = clock_ns();
	question_add(u, &me);
	mutex_unlock(&u->lock);

	a = ask_service(r, &me, old);
	if (old)
		groups_put(old);

	mutex_lock(&u->lock);
	question_remove(u, &me);
	note_service(u, r, uid, &a);
	keep_answer(u, r, &me, &a);
	pthread_cond_broadcast(&u->answered);
	mutex_unlock(&u->lock);
}
