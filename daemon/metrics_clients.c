/* SPDX-License-Identifier: BSD-2-Clause */
/* metrics_clients - chooses the clients that metrics name, sums the rest. */
#include "daemon/metrics_clients.h"

#include <stdlib.h>
#include <string.h>

#include "lib/util.h"

struct named {
	struct metrics_client told;
	uint64_t base[CLIENT_NUMBERS];	/* before it had a name */
	uint64_t calls;			/* all it made */
	bool	 seen;			/* by this update */
	bool	 fresh;			/* named in it: not told yet */
};

struct metrics_clients {
	unsigned max;
	unsigned n;
	uint64_t last;			/* update; clock_ns() */
	uint64_t rest[CLIENT_NUMBERS];
	uint64_t gone[CLIENT_NUMBERS];	/* told of those that lost a name */
	struct named named[];
};

struct metrics_clients *metrics_clients_create(unsigned max)
{
	struct metrics_clients *t =
		calloc(1, sizeof(*t) + max * sizeof(struct named));

	if (t)
		t->max = max;
	return t;
}

void metrics_clients_destroy(struct metrics_clients *t)
{
	free(t);
}

static uint64_t less(uint64_t n, uint64_t by)
{
	return n > by ? n - by : 0;
}

static struct named *find_named(struct metrics_clients *t,
				const struct in6_addr *host)
{
	for (unsigned i = 0; i < t->n; i++)
		if (!memcmp(&t->named[i].told.host, host, sizeof(*host)))
			return &t->named[i];
	return NULL;
}

static void lose_name(struct metrics_clients *t, struct named *c)
{
	for (unsigned k = 0; k < CLIENT_NUMBERS && !c->fresh; k++)
		t->gone[k] += c->told.n[k];
	*c = t->named[--t->n];
}

/* A client whose calls were never told, not even in the rest, has no base. */
static void give_name(struct metrics_clients *t, const struct metrics_client *c)
{
	struct named *new = &t->named[t->n++];
	bool is_new = c->first > t->last;

	memset(new, 0, sizeof(*new));
	new->told.host = c->host;
	new->told.first = c->first;
	new->calls = c->n[CLIENT_CALLS];
	new->seen = new->fresh = true;
	for (unsigned k = 0; k < CLIENT_NUMBERS; k++) {
		new->base[k] = is_new ? 0 : c->n[k];
		new->told.n[k] = c->n[k] - new->base[k];
	}
}

/* False: this is another client than the one that had the name. */
static bool take_numbers(struct named *was, const struct metrics_client *c)
{
	if (was->told.first != c->first)
		return false;
	for (unsigned k = 0; k < CLIENT_NUMBERS; k++) {
		uint64_t n = less(c->n[k], was->base[k]);

		was->told.n[k] = MAX(was->told.n[k], n);
	}
	was->calls = c->n[CLIENT_CALLS];
	was->seen = true;
	return true;
}

/* A name passes to a client only if it is twice as busy, so that it does not go
 * back and forth. */
static void name_one(struct metrics_clients *t, const struct metrics_client *c)
{
	struct named *least = t->named;

	if (t->n < t->max) {
		give_name(t, c);
		return;
	}
	for (unsigned i = 1; i < t->n; i++)
		if (t->named[i].calls < least->calls)
			least = &t->named[i];
	if (t->max && c->n[CLIENT_CALLS] / 2 > least->calls) {
		lose_name(t, least);
		give_name(t, c);
	}
}

void metrics_clients_update(struct metrics_clients *t,
			    const struct metrics_client *all, unsigned n,
			    const uint64_t others[CLIENT_NUMBERS], uint64_t now)
{
	uint64_t sum[CLIENT_NUMBERS];
	struct named *c;

	memcpy(sum, others, sizeof(sum));
	for (unsigned i = 0; i < t->n; i++)
		t->named[i].seen = t->named[i].fresh = false;
	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < CLIENT_NUMBERS; k++)
			sum[k] += all[i].n[k];
		c = find_named(t, &all[i].host);
		if (c)
			take_numbers(c, &all[i]);
	}
	for (unsigned i = t->n; i-- > 0;)
		if (!t->named[i].seen)
			lose_name(t, &t->named[i]);
	for (unsigned i = 0; i < n; i++)
		if (!find_named(t, &all[i].host))
			name_one(t, &all[i]);
	t->last = now;
	for (unsigned k = 0; k < CLIENT_NUMBERS; k++) {
		uint64_t told = t->gone[k];

		for (unsigned i = 0; i < t->n; i++)
			told += t->named[i].told.n[k];
		/* The sums were not taken at one moment. */
		sum[k] = less(sum[k], told);
		t->rest[k] = MAX(t->rest[k], sum[k]);
	}
}

const struct metrics_client *metrics_clients_named(
	const struct metrics_clients *t, unsigned i)
{
	return i < t->n ? &t->named[i].told : NULL;
}

const uint64_t *metrics_clients_rest(const struct metrics_clients *t)
{
	return t->rest;
}
