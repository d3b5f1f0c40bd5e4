/* SPDX-License-Identifier: BSD-2-Clause */
/* metrics_clients - chooses the clients that metrics name, sums the rest. */
#include "daemon/watch/metrics_clients.h"

#include <stdlib.h>
#include <string.h>

#include "lib/util.h"

/* A client of the last update. */
struct known {
	struct metrics_client now;
	uint64_t more[CLIENT_NUMBERS];	/* than at the update before */
	uint64_t told[CLIENT_NUMBERS];	/* since it got its name */
	bool	 is_new;		/* in this update: all it has is more */
	bool	 named;
	bool	 fresh;			/* named in this update */
};

struct metrics_clients {
	unsigned max;
	unsigned nknown;
	struct known *known;		/* by host */
	unsigned nnamed;
	struct metrics_client *named;	/* the numbers to report */
	uint64_t others[CLIENT_NUMBERS];	/* at the last update */
	uint64_t rest[CLIENT_NUMBERS];
};

struct metrics_clients *metrics_clients_create(unsigned max)
{
	struct metrics_clients *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->max = max;
	t->named = calloc(max + 1, sizeof(*t->named));
	if (t->named)
		return t;
	free(t);
	return NULL;
}

void metrics_clients_destroy(struct metrics_clients *t)
{
	if (!t)
		return;
	free(t->known);
	free(t->named);
	free(t);
}

static int host_order(const void *a, const void *b)
{
	return memcmp(&((const struct known *)a)->now.host,
		      &((const struct known *)b)->now.host,
		      sizeof(struct in6_addr));
}

/* Sets @more to the increase from @was to @now. */
static void find_more(uint64_t more[CLIENT_NUMBERS],
		      const uint64_t now[CLIENT_NUMBERS],
		      const uint64_t was[CLIENT_NUMBERS])
{
	for (unsigned k = 0; k < CLIENT_NUMBERS; k++)
		more[k] = now[k] > was[k] ? now[k] - was[k] : 0;
}

static void add_more(uint64_t to[CLIENT_NUMBERS],
		     const uint64_t more[CLIENT_NUMBERS])
{
	for (unsigned k = 0; k < CLIENT_NUMBERS; k++)
		to[k] += more[k];
}

/* Compares the client with its earlier numbers.  One that was forgotten and
 * came back keeps its name, and counts from zero. */
static void look_back(const struct metrics_clients *t, struct known *c)
{
	static const uint64_t none[CLIENT_NUMBERS];
	const struct known *was = t->nknown ?
		bsearch(c, t->known, t->nknown, sizeof(*c), host_order) : NULL;
	bool same = was && was->now.first == c->now.first;

	c->is_new = !was;
	c->named = was && was->named;
	if (c->named)
		memcpy(c->told, was->told, sizeof(c->told));
	find_more(c->more, c->now.n, same ? was->now.n : none);
}

static struct known *least_named(struct known *all, unsigned n)
{
	struct known *least = NULL;

	for (unsigned i = 0; i < n; i++)
		if (all[i].named && (!least || all[i].now.n[CLIENT_CALLS] <
					       least->now.n[CLIENT_CALLS]))
			least = &all[i];
	return least;
}

/* A name passes to a client only if it is twice as busy: otherwise it would go
 * back and forth. */
static void give_names(struct metrics_clients *t, struct known *all, unsigned n)
{
	struct known *least = NULL;
	unsigned names = 0;

	for (unsigned i = 0; i < n; i++)
		names += all[i].named;
	for (unsigned i = 0; i < n && t->max; i++) {
		if (all[i].named)
			continue;
		if (names == t->max) {
			least = least ? : least_named(all, n);
			if (all[i].now.n[CLIENT_CALLS] / 2 <=
			    least->now.n[CLIENT_CALLS])
				continue;
			least->named = false;
			least = NULL;
			names--;
		}
		all[i].named = all[i].fresh = true;
		memset(all[i].told, 0, sizeof(all[i].told));
		names++;
	}
}

/* A client that comes late to a name leaves its earlier numbers in the rest. */
static void tell_client(struct metrics_clients *t, struct known *c)
{
	bool late = c->fresh && !c->is_new;
	struct metrics_client *out;

	add_more(c->named && !late ? c->told : t->rest, c->more);
	if (!c->named)
		return;
	out = &t->named[t->nnamed++];
	*out = c->now;
	memcpy(out->n, c->told, sizeof(out->n));
}

void metrics_clients_update(struct metrics_clients *t,
			    const struct metrics_client *clients, unsigned n,
			    const uint64_t others[CLIENT_NUMBERS])
{
	struct known *all = calloc(n + 1, sizeof(*all));
	uint64_t more[CLIENT_NUMBERS];

	if (!all)
		return;
	for (unsigned i = 0; i < n; i++)
		all[i].now = clients[i];
	qsort(all, n, sizeof(*all), host_order);
	for (unsigned i = 0; i < n; i++)
		look_back(t, &all[i]);
	give_names(t, all, n);
	t->nnamed = 0;
	for (unsigned i = 0; i < n; i++)
		tell_client(t, &all[i]);
	find_more(more, others, t->others);
	add_more(t->rest, more);
	memcpy(t->others, others, sizeof(t->others));
	free(t->known);
	t->known = all;
	t->nknown = n;
}

const struct metrics_client *metrics_clients_named(
	const struct metrics_clients *t, unsigned i)
{
	return i < t->nnamed ? &t->named[i] : NULL;
}

const uint64_t *metrics_clients_rest(const struct metrics_clients *t)
{
	return t->rest;
}
