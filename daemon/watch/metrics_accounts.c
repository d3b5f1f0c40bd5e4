/* SPDX-License-Identifier: BSD-2-Clause */
/* metrics_accounts - the accounts of procedures, exports and clients. */
#include "daemon/watch/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "lib/util.h"

/* Of clients and exports without a name. */
#define OTHER	"other"

/* Powers of four, from 16 us to 4 s. */
static const uint64_t bounds[] = {
	1u << 14, 1u << 16, 1u << 18, 1u << 20, 1u << 22, 1u << 24, 1u << 26,
	1u << 28, 1u << 30, 1ull << 32,
};

#define NBOUNDS	ARRAY_SIZE(bounds)

void metrics_put_times(struct metrics_out *m,
		       const struct metrics_label *labels,
		       const struct account_sum *sum)
{
	uint64_t counts[NBOUNDS + 1] = { 0 };
	const struct metrics_times t = { bounds, counts, NBOUNDS, sum->ns };
	unsigned at = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		while (at < NBOUNDS && histogram_low(i) >= bounds[at])
			at++;
		counts[at] += sum->histogram[i];
	}
	metrics_histogram(m, labels, &t);
}

/* ---- exports */

struct export_seen {
	char *name;
	struct account_sum sum;
};

struct exports_seen {
	struct export_seen *all;
	size_t n, room;
};

static void see_export(const char *name, unsigned users,
			const struct account_sum *sum, void *arg)
{
	struct exports_seen *s = arg;
	struct export_seen *all;

	if (s->n == s->room) {
		all = reallocarray(s->all, 2 * s->n + 16, sizeof(*all));
		if (!all)
			return;
		s->all = all;
		s->room = 2 * s->n + 16;
	}
	s->all[s->n].name = strdup(name ? : OTHER);
	s->all[s->n].sum = *sum;
	s->n += s->all[s->n].name != NULL;
}

static int export_order(const void *a, const void *b)
{
	return strcmp(((const struct export_seen *)a)->name,
		      ((const struct export_seen *)b)->name);
}

/* Two exports had the same path one after the other: they are one here. */
static void merge_exports(struct exports_seen *s)
{
	size_t n = 0;

	if (s->n)
		qsort(s->all, s->n, sizeof(*s->all), export_order);
	for (size_t i = 0; i < s->n; i++) {
		if (n && !strcmp(s->all[n - 1].name, s->all[i].name)) {
			account_sum_add(&s->all[n - 1].sum, &s->all[i].sum);
			free(s->all[i].name);
		} else {
			s->all[n++] = s->all[i];
		}
	}
	s->n = n;
}

#define EACH_EXPORT(s, m, value) \
	for (size_t i = 0; i < (s)->n; i++) \
		metrics_sample((m), METRICS_LABELS({ "export", \
			(s)->all[i].name }), (s)->all[i].sum.value)

static void see_exports(struct exports_seen *s, struct account_book *book)
{
	*s = (struct exports_seen){ 0 };
	account_book_walk(book, see_export, s);
	merge_exports(s);
}

/* Of each export, and the end of @s. */
static void put_export_times(struct metrics_out *m, struct exports_seen *s)
{
	for (size_t i = 0; i < s->n; i++) {
		metrics_put_times(m, METRICS_LABELS({ "export",
			s->all[i].name }), &s->all[i].sum);
		free(s->all[i].name);
	}
	free(s->all);
}

void metrics_put_exports(struct metrics_out *m, struct account_book *calls,
			 struct account_book *backends)
{
	struct exports_seen s;

	see_exports(&s, calls);
	metrics_family(m, "gannet_export_failed_calls", METRICS_COUNTER, NULL,
		       "Calls for an export that failed.");
	EACH_EXPORT(&s, m, failed);
	metrics_family(m, "gannet_export_read_bytes", METRICS_COUNTER, "bytes",
		       "Data that clients read from an export.");
	EACH_EXPORT(&s, m, bytes[ACCOUNT_READ]);
	metrics_family(m, "gannet_export_written_bytes", METRICS_COUNTER,
		       "bytes", "Data that clients wrote to an export.");
	EACH_EXPORT(&s, m, bytes[ACCOUNT_WRITTEN]);
	metrics_family(m, "gannet_export_held_calls", METRICS_COUNTER, NULL,
		       "Times that a limit of an export held a call back.");
	EACH_EXPORT(&s, m, held);
	metrics_family(m, "gannet_export_held_seconds", METRICS_COUNTER,
		       "seconds", "Time that limits of an export held calls "
		       "back, all together.");
	for (size_t i = 0; i < s.n; i++)
		metrics_seconds(m, METRICS_LABELS({ "export", s.all[i].name }),
				s.all[i].sum.held_ns);
	metrics_family(m, "gannet_export_duration_seconds", METRICS_HISTOGRAM,
		       "seconds", "Time of calls for an export, from their "
		       "arrival until the reply was given to the transport.");
	put_export_times(m, &s);
	see_exports(&s, backends);
	metrics_family(m, "gannet_export_backend_seconds", METRICS_HISTOGRAM,
		       "seconds", "Time of single operations of an export's "
		       "file system, those of one call in 64.");
	put_export_times(m, &s);
}

/* ---- clients */

struct clients_seen {
	struct metrics_client *all;
	unsigned n, room;
	uint64_t others[CLIENT_NUMBERS];
	bool lost;		/* a client, for lack of memory */
	bool whole;		/* all were seen */
};

static void see_client(const struct xprt_client_view *v, void *arg)
{
	struct clients_seen *s = arg;
	struct metrics_client *all;
	const uint64_t n[CLIENT_NUMBERS] = {
		[CLIENT_CALLS] = v->sum.calls, [CLIENT_FAILED] = v->sum.failed,
		[CLIENT_READ] = v->sum.bytes[ACCOUNT_READ],
		[CLIENT_WRITTEN] = v->sum.bytes[ACCOUNT_WRITTEN],
		[CLIENT_NS] = v->sum.ns,
	};

	if (!v->host) {
		memcpy(s->others, n, sizeof(n));
		s->whole = !s->lost;	/* they come last */
		return;
	}
	if (s->n == s->room) {
		all = reallocarray(s->all, 2 * s->n + 64, sizeof(*all));
		if (!all) {
			s->lost = true;
			return;
		}
		s->all = all;
		s->room = 2 * s->n + 64;
	}
	s->all[s->n].host = *v->host;
	s->all[s->n].first = v->first;
	memcpy(s->all[s->n++].n, n, sizeof(n));
}

static const struct { const char *name, *unit, *help; } numbers[] = {
	[CLIENT_CALLS] = { "gannet_nfs_client_calls", NULL,
		"Calls of a client." },
	[CLIENT_FAILED] = { "gannet_nfs_client_failed_calls", NULL,
		"Calls of a client that failed." },
	[CLIENT_READ] = { "gannet_nfs_client_read_bytes", "bytes",
		"Data that a client read." },
	[CLIENT_WRITTEN] = { "gannet_nfs_client_written_bytes", "bytes",
		"Data that a client wrote." },
	[CLIENT_NS] = { "gannet_nfs_client_duration_seconds", "seconds",
		"Time of all calls of a client together, each from its arrival "
		"until the reply was given to the transport." },
};

void metrics_put_clients(struct metrics_out *m, struct xprt_clients *clients,
			 struct metrics_clients *named)
{
	char text[INET6_ADDRSTRLEN];
	struct clients_seen s = { 0 };
	const struct metrics_client *c;

	xprt_clients_walk(clients, see_client, &s);
	if (s.whole)
		metrics_clients_update(named, s.all, s.n, s.others);
	free(s.all);
	for (unsigned k = 0; k < CLIENT_NUMBERS; k++) {
		void (*put)(struct metrics_out *, const struct metrics_label *,
			    uint64_t) = k == CLIENT_NS ? metrics_seconds :
						       metrics_sample;

		metrics_family(m, numbers[k].name, METRICS_COUNTER,
			       numbers[k].unit, numbers[k].help);
		for (unsigned i = 0; (c = metrics_clients_named(named, i)); i++)
			put(m, METRICS_LABELS({ "client",
				xprt_host_text(&c->host, text) }), c->n[k]);
		put(m, METRICS_LABELS({ "client", OTHER }),
		    metrics_clients_rest(named)[k]);
	}
}
