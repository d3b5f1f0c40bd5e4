/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metrics_waits - the shares of the workers, and what calls wait for.
 *
 * The queues are locked while they are walked: numbers are copied there, into
 * memory that was allocated before.
 */
#include "daemon/watch/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "lib/util.h"

/* A longer name is cut. */
#define SHARE_NAME	512
#define REASONS		16

/* ---- shares */

struct share_seen {
	char	 name[SHARE_NAME];
	unsigned max, running, waiting;
};

struct shares_seen {
	struct share_seen *all;		/* NULL: count them only */
	size_t		   n, room;
};

static void note_share_seen(const char *name, unsigned max, unsigned running,
			    unsigned waiting, void *arg)
{
	struct shares_seen *s = arg;
	struct share_seen *one = &s->all[s->n];

	if (!s->all) {
		s->n++;
	} else if (s->n < s->room) {	/* else it is new */
		strncpy(one->name, name, SHARE_NAME - 1);
		one->max = max;
		one->running = running;
		one->waiting = waiting;
		s->n++;
	}
}

static int share_order(const void *a, const void *b)
{
	return strcmp(((const struct share_seen *)a)->name,
		      ((const struct share_seen *)b)->name);
}

/* An export that a reload took away can still have its share, next to that of a
 * new one at its path: report both as one. */
static void merge_shares(struct shares_seen *s)
{
	size_t n = 0;

	qsort(s->all, s->n, sizeof(*s->all), share_order);
	for (size_t i = 0; i < s->n; i++) {
		struct share_seen *last = n ? &s->all[n - 1] : NULL;

		if (!last || strcmp(last->name, s->all[i].name) != 0) {
			s->all[n++] = s->all[i];
			continue;
		}
		last->max += s->all[i].max;
		last->running += s->all[i].running;
		last->waiting += s->all[i].waiting;
	}
	s->n = n;
}

static void write_share(struct metrics_out *m, const struct shares_seen *s,
			const char *name, const char *help, size_t at)
{
	metrics_family(m, name, METRICS_GAUGE, NULL, help);
	for (size_t i = 0; i < s->n; i++)
		metrics_sample(m, METRICS_LABELS({ "share", s->all[i].name }),
			*(unsigned *)((char *)&s->all[i] + at));
}

static void write_shares(struct metrics_out *m, struct rpc_server *rpc)
{
	struct shares_seen s = { 0 };

	rpc_server_walk_classes(rpc, note_share_seen, &s);
	s.room = s.n + 16;
	s.n = 0;
	s.all = calloc(s.room, sizeof(*s.all));
	if (!s.all)
		return;
	rpc_server_walk_classes(rpc, note_share_seen, &s);
	merge_shares(&s);
	write_share(m, &s, "gannet_workers_busy", "Workers that run calls, by "
		    "the share of the workers: an export's, or the common one.",
		    offsetof(struct share_seen, running));
	write_share(m, &s, "gannet_workers_limit", "The most workers of a "
		    "share.", offsetof(struct share_seen, max));
	write_share(m, &s, "gannet_calls_waiting", "Calls that wait for a "
		    "worker of their share.",
		    offsetof(struct share_seen, waiting));
	free(s.all);
}

/* ---- suspended calls */

struct reasons {
	unsigned n;
	struct {
		const char *why;	/* literal */
		unsigned    calls;
		uint64_t    ns;		/* of the oldest */
	} all[REASONS];
};

static void note_reason(const struct rpc_call *call, const char *why,
			uint64_t ns, void *arg)
{
	struct reasons *r = arg;
	unsigned i = 0;

	while (i < r->n && strcmp(r->all[i].why, why) != 0)
		i++;
	if (i == REASONS)
		return;
	if (i == r->n)
		r->n++;
	r->all[i].why = why;
	r->all[i].calls++;
	r->all[i].ns = MAX(r->all[i].ns, ns);
}

static void write_suspended(struct metrics_out *m, struct rpc_server *rpc)
{
	struct reasons r = { 0 };

	rpc_server_walk_suspended(rpc, note_reason, &r);
	metrics_family(m, "gannet_calls_suspended", METRICS_GAUGE, NULL,
		       "Calls that wait for something else than a worker.");
	for (unsigned i = 0; i < r.n; i++)
		metrics_sample(m, METRICS_LABELS({ "waits_for",
			r.all[i].why }), r.all[i].calls);
	metrics_family(m, "gannet_calls_suspended_longest_seconds",
		       METRICS_GAUGE, "seconds", "Time that the first of "
		       "these has waited.");
	for (unsigned i = 0; i < r.n; i++)
		metrics_seconds(m, METRICS_LABELS({ "waits_for",
			r.all[i].why }), r.all[i].ns);
}

void metrics_put_waits(struct metrics_out *m, struct rpc_server *rpc)
{
	write_shares(m, rpc);
	write_suspended(m, rpc);
}
