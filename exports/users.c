/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * users - the groups that this system's name service says users have.
 *
 * A worker asks the service, and the answer is cached for some minutes; pollers
 * only read it.  One call asks for a user, and others that need the answer wait
 * for it.  An unknown user has only the group that its call names, as with
 * rpc.mountd's --manage-gids.
 *
 * A query that takes longer than the resolver's slow_ms, even if it has not
 * ended yet, makes the service doubtful.  Queries are then sent one at a time,
 * with a pause after each, and no other thread waits: a known user keeps its
 * groups, for a day at most, and calls of unknown users are put off.
 *
 * The C library does not say that a list lacks the groups of a source that
 * timed out or is down.  So a late list is discarded, and so is a list that
 * lacks a known group, unless the service confirms that the user has left that
 * group.
 */
#include "exports/export_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/rcu.h"
#include "lib/stats.h"
#include "lib/util.h"

/* The answers kept, and the bytes of their lists. */
#define USERS_MAX	4096
#define BYTES_MAX	((size_t)16 << 20)
/* Of the groups that a list lacks, so many are asked for. */
#define PROBES_MAX	16

STAT(users_asked, "queries to the name service for a user's groups");
STAT(users_unknown, "users without groups because the name service does not "
		    "know them");
STAT(users_unanswered, "failed queries to the name service for groups");

struct user {
	struct memo_entry memo;
	struct groups  *groups;		/* counted; NULL: none */
	time_t		answered;	/* 0: never */
};

static void user_free(struct memo_entry *e)
{
	struct user *user = container_of(e, struct user, memo);

	if (user->groups)
		groups_put(user->groups);
	free(user);
}

int users_create(struct memo **out)
{
	return memo_create(USERS_MAX, BYTES_MAX, user_free, out);
}

/* Group 0 is @zero for it. */
static struct memo_key user_key(uint32_t uid, uint32_t zero)
{
	return (struct memo_key){ { uid, zero } };
}

static struct user *user_find(struct memo *u, const struct memo_key *key)
{
	struct memo_entry *e = memo_find(u, key);

	return e ? container_of(e, struct user, memo) : NULL;
}

static uint64_t patience(const struct resolver *r)
{
	return (uint64_t)r->slow_ms * NS_PER_MS;
}

static bool is_usable(const struct user *user, const struct resolver *r)
{
	return user->answered &&
	       clock_coarse_s() - user->answered <= r->users_stale_s;
}

int users_find(struct memo *u, const struct resolver *r, uint32_t uid,
	       uint32_t zero, struct groups **out)
{
	const struct memo_key key = user_key(uid, zero);
	const struct user *user = user_find(u, &key);
	bool fresh = user && memo_is_fresh(&user->memo);

	if (!fresh && memo_may_ask(u, patience(r)))
		return -EAGAIN;
	/* Without its groups the user would have other rights: fewer, or more
	 * where an ACL names a group. */
	if (!user || !(fresh ? user->answered : is_usable(user, r)))
		return -ETIMEDOUT;
	*out = user->groups;
	return 0;
}

/* An answer: a list, or none. */
struct answer {
	int	       told;	/* as resolver->groups(); -1 also of a list that
				 * is late or not whole */
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

/* True unless the service confirms, for the groups of @old that @now lacks,
 * that the user has left them.  Asks for some of them only. */
static bool is_partial(const struct resolver *r, const struct memo_key *key,
		       const struct groups *old, const struct groups *now)
{
	unsigned asked = 0;

	for (uint32_t i = 0; old && i < old->n && asked < PROBES_MAX; i++) {
		uint32_t gid = old->gids[i];

		/* Both lists can have the maximum length; most begin alike. */
		if ((now && i < now->n && now->gids[i] == gid) ||
		    has_gid(now, gid))
			continue;
		asked++;
		if (!r->has_left(key->w[0], gid == key->w[1] ? 0 : gid))
			return true;
	}
	return false;
}

/* Asks the service.  @old is its last answer, or NULL.  No lock is held. */
static struct answer ask_service(const struct resolver *r,
				 const struct memo_key *key,
				 const struct groups *old)
{
	uint32_t uid = key->w[0], zero = key->w[1];
	uint64_t began = clock_ns();
	uint32_t *gids = NULL, n = 0;
	struct answer a = { .told = r->groups(uid, &gids, &n) };

	stat_inc(users_asked);
	a.late = clock_ns() - began >= patience(r);
	if (a.late)
		a.told = -1;
	if (a.told == 1 && n > 0) {
		n = MIN(n, (uint32_t)VFS_MAX_GIDS);
		a.groups = make_list(gids, n, zero);
		if (!a.groups)
			a.told = -1;
	}
	free(gids);
	if (a.told >= 0 && is_partial(r, key, old, a.groups)) {
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

/* Takes @a's list; returns it as an answer to keep, or NULL.  If the groups
 * have not changed, the old list stays in use: backends remember callers by its
 * number.  In an RCU section. */
static struct memo_entry *answer_to_keep(struct memo *u,
					 const struct resolver *r,
					 const struct memo_question *q,
					 struct answer *a)
{
	struct user *old = user_find(u, &q->key), *user;
	time_t now = clock_coarse_s();
	bool unsure = a->told < 0;
	int keep = unsure ? MIN(r->quiet_s, r->users_keep_s) : r->users_keep_s;

	if (old && unsure && is_usable(old, r)) {
		memo_prolong(u, q, keep);
		goto drop;
	}
	/* A client can name any number of users, so an unknown user takes no
	 * place from a known one. */
	if (unsure && memo_count(u) >= USERS_MAX / 2)
		goto drop;
	if (old && same_groups(old->groups, a->groups)) {
		groups_put(a->groups);
		a->groups = old->groups;
		ref_get(&a->groups->ref);
	}
	user = calloc(1, sizeof(*user));
	if (!user)
		goto drop;
	user->memo.key = q->key;
	user->memo.bytes = a->groups ? a->groups->n * sizeof(uint32_t) : 0;
	user->groups = a->groups;
	user->answered = unsure ? 0 : now;
	atomic_init(&user->memo.expires, now + keep);
	return &user->memo;

drop:
	if (a->groups)
		groups_put(a->groups);
	return NULL;
}

static void note_service(struct memo *u, const struct resolver *r,
			 uint32_t uid, const struct answer *a)
{
	if (a->late) {
		if (memo_doubt(u, clock_ns() +
			       (uint64_t)r->quiet_s * NS_PER_S))
			log_warn("the name service did not report the groups "
				 "of user %u in time: known users keep theirs, "
				 "calls of others are put off until it answers",
				 uid);
	} else if (a->told >= 0 && memo_doubt(u, 0)) {
		log_info("the name service answers again");
	}
}

/* While a known user's groups are asked for, its other calls use the old ones.
 * Returns those, counted, or NULL.  In an RCU section. */
static struct groups *prolong(struct memo *u, const struct resolver *r,
			      const struct memo_question *q)
{
	struct user *old = user_find(u, &q->key);

	if (!old || !is_usable(old, r))
		return NULL;
	memo_prolong(u, q, MIN(r->quiet_s, r->users_keep_s));
	if (old->groups)
		ref_get(&old->groups->ref);
	return old->groups;
}

void users_ask(struct memo *u, const struct resolver *r, uint32_t uid,
	       uint32_t zero)
{
	struct memo_question me = { .key = user_key(uid, zero) };
	struct memo_entry *e;
	struct groups *old;
	struct answer a;

	if (!memo_ask(u, &me, patience(r)))
		return;
	rcu_enter();
	old = prolong(u, r, &me);
	rcu_exit();
	a = ask_service(r, &me.key, old);
	if (old)
		groups_put(old);
	note_service(u, r, uid, &a);
	rcu_enter();
	e = answer_to_keep(u, r, &me, &a);
	rcu_exit();
	memo_answered(u, &me, e);
}
