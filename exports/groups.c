/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * groups - the user and the groups that a call runs as.
 *
 * Calls share lists of groups, and each list has a number.  So a call copies no
 * list, and a backend that remembers callers compares numbers.  Lists from
 * calls are looked up by their groups in a table of fixed size: each has two
 * slots, the newest list first.  Two equal lists that are made at the same time
 * get two numbers, which only loses what a backend remembered under one of
 * them.
 */
#include "exports/export_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"
#include "lib/rcu.h"
#include "lib/util.h"

#define SLOTS		4096		/* a power of two */
#define WIRE_GIDS	16		/* AUTH_SYS, RFC 5531 appendix A */

struct groups_table {
	struct groups *_Atomic slot[SLOTS];
};

int groups_create(struct groups_table **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

/* After the last call. */
void groups_destroy(struct groups_table *t)
{
	for (unsigned i = 0; i < SLOTS; i++)
		if (t->slot[i])
			groups_put(t->slot[i]);
	free(t);
}

/* Copies the groups of a call, with @zero for group 0 and without numbers that
 * are no group.  Returns their number. */
static uint32_t copy_gids(uint32_t to[WIRE_GIDS],
			  const struct export_claim *who, uint32_t zero)
{
	uint32_t most = MIN(who->ngids, (uint32_t)WIRE_GIDS), n = 0;

	for (uint32_t i = 0; i < most; i++)
		if (who->gids[i] != EXPORT_NO_ID)
			to[n++] = who->gids[i] ? who->gids[i] : zero;
	return n;
}

static struct groups *groups_make(struct groups *_Atomic *slot,
				  const uint32_t *gids, uint32_t n)
{
	struct groups *g = groups_alloc(n), *old;

	if (!g)
		return NULL;
	memcpy(g->gids, gids, n * sizeof(gids[0]));
	old = atomic_exchange(&slot[0], g);
	if (old)
		old = atomic_exchange(&slot[1], old);
	if (old)
		groups_retire(old);
	return g;
}

/* The list of a call's groups, or NULL in *@out if it has none.  0 or -ENOMEM.
 * In an RCU section. */
static int groups_find(struct groups_table *t, const struct export_claim *who,
		       uint32_t zero, struct groups **out)
{
	uint32_t want[WIRE_GIDS] = { 0 }, n;
	struct groups *_Atomic *slot;

	*out = NULL;
	n = copy_gids(want, who, zero);
	if (n == 0)
		return 0;
	slot = &t->slot[hash_keyed(want, n * sizeof(want[0])) & (SLOTS - 2)];
	for (int i = 0; i < 2; i++) {
		struct groups *g = atomic_load_explicit(&slot[i],
							memory_order_acquire);

		if (g && g->n == n &&
		    memcmp(g->gids, want, n * sizeof(want[0])) == 0) {
			*out = g;
			return 0;
		}
	}
	*out = groups_make(slot, want, n);
	return *out ? 0 : -ENOMEM;
}

/* The system has no user and no group -1: it would refuse to act as one, and
 * the caller could do nothing at all. */
uint32_t export_squash(const struct export_opts *opts, uint32_t id,
		       uint32_t anon)
{
	return opts->all_squash || (opts->root_squash && id == 0) ||
	       id == EXPORT_NO_ID ? anon : id;
}

static uint32_t zero_of(const struct export_opts *opts)
{
	return opts->root_squash ? opts->anongid : 0;
}

/* Not inlined: a caller without groups does not pay for its stack. */
static __attribute__((noinline)) int
caller_groups(struct export_table *t, const struct export_opts *opts,
	      const struct export_claim *who, struct vfs_cred *out)
{
	uint32_t zero = zero_of(opts);
	struct groups *g;
	int err;

	if (opts->manage_gids) {
		err = users_find(t->users, &t->resolver, who->uid, zero, &g);
	} else {
		err = groups_find(t->groups, who, zero, &g);
	}
	if (err == 0 && g) {
		out->ngids = g->n;
		out->gids_id = g->id;
		out->gids = g->gids;
	}
	return err;
}

int export_caller(struct export_table *t, const struct export_opts *opts,
		  const struct export_claim *who, struct vfs_cred *out)
{
	bool anon = who->none || opts->all_squash;

	out->uid = anon ? opts->anonuid :
		   export_squash(opts, who->uid, opts->anonuid);
	out->gid = anon ? opts->anongid :
		   export_squash(opts, who->gid, opts->anongid);
	out->ngids = 0;
	out->gids_id = 0;
	out->gids = NULL;
	if (anon)
		return 0;
	/* Root needs no groups from a name service, nor does a missing user. */
	if (unlikely(opts->manage_gids) ?
	    who->uid == 0 || who->uid == EXPORT_NO_ID : who->ngids == 0)
		return 0;
	return caller_groups(t, opts, who, out);
}

static struct groups *groups_of(const struct vfs_cred *cred)
{
	return (struct groups *)((uintptr_t)cred->gids -
				 offsetof(struct groups, gids));
}

void export_caller_hold(const struct vfs_cred *cred)
{
	if (cred->ngids)
		ref_get(&groups_of(cred)->ref);
}

static int caller_counted(struct export_table *t,
			  const struct export_opts *opts,
			  const struct export_claim *who, struct vfs_cred *out)
{
	int err;

	rcu_enter();
	err = export_caller(t, opts, who, out);
	if (err == 0)
		export_caller_hold(out);
	rcu_exit();
	return err;
}

int export_caller_counted(struct export_table *t,
			  const struct export_opts *opts,
			  const struct export_claim *who, bool may_wait,
			  struct vfs_cred *out)
{
	int err = caller_counted(t, opts, who, out);

	if (err != -EAGAIN || !may_wait)
		return err;
	users_ask(t->users, &t->resolver, who->uid, zero_of(opts));
	err = caller_counted(t, opts, who, out);
	/* The answer could not be kept, or was pushed out at once. */
	return err == -EAGAIN ? -ETIMEDOUT : err;
}

void export_caller_put(const struct vfs_cred *cred)
{
	if (cred->ngids)
		groups_put(groups_of(cred));
}
