/* SPDX-License-Identifier: BSD-2-Clause */
/* finish - completes a whole set: ids, names, limits. */
#include "exports/export_priv.h"

#include <errno.h>
#include <stdlib.h>

/* Numbers the clients that only a resolver can tell. */
static int index_names(struct export_set *set)
{
	unsigned n = 0;

	for (unsigned i = 0; i < set->nexports; i++)
		n += set->exports[i]->nclients;
	free(set->names);
	set->nnames = 0;
	set->names = calloc(n + 1, sizeof(*set->names));
	if (!set->names)
		return -ENOMEM;
	for (unsigned i = 0; i < set->nexports; i++) {
		struct export *e = set->exports[i];

		for (unsigned j = 0; j < e->nclients; j++) {
			struct client *c = &e->clients[j];

			if (c->by_address || c->kind == CLIENT_ANYONE)
				continue;
			c->name_index = set->nnames;
			set->names[set->nnames++] = c;
		}
	}
	return 0;
}

static uint64_t rate_of(uint64_t rate)
{
	return rate == NO_RATE ? 0 : rate;
}

/* Copies the limits of an export to each of its rules. */
static void spread_limits(struct export *e)
{
	const struct rates max = { rate_of(e->max.ops), rate_of(e->max.bytes) };

	for (unsigned i = 0; i < e->nclients; i++) {
		struct export_opts *opts = &e->clients[i].opts;

		opts->max = max;
		opts->limited = rates_any(&max) ||
				rates_any(&opts->client_max);
	}
}

int export_set_finish(struct export_set *set, char **err)
{
	int ret = ids_index(set, err), err_names = index_names(set);

	for (unsigned i = 0; i < set->nexports; i++)
		spread_limits(set->exports[i]);
	return ret < 0 ? ret : err_names;
}
