/* SPDX-License-Identifier: BSD-2-Clause */
/* group_list - shared lists of the groups of a user or a call. */
#include "exports/export_priv.h"

#include <stdlib.h>

#include "lib/rcu.h"
#include "lib/util.h"

struct groups *groups_alloc(uint32_t n)
{
	static _Atomic uint64_t last;
	struct groups *g = malloc(sizeof(*g) + n * sizeof(g->gids[0]));

	if (!g)
		return NULL;
	ref_init(&g->ref);
	g->n = n;
	g->id = ++last;
	return g;
}

void groups_put(struct groups *g)
{
	if (ref_put(&g->ref))
		free(g);
}

static void groups_drop(struct rcu_head *head)
{
	groups_put(container_of(head, struct groups, rcu));
}

void groups_retire(struct groups *g)
{
	rcu_later(&g->rcu, groups_drop);
}
