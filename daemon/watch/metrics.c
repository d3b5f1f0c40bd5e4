/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metrics - the server's counters and state as metrics.
 *
 * Each source is copied first, and then written: a lock that calls take is held
 * for the copy alone.
 */
#include "daemon/watch/metrics.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/serve/serve.h"
#include "lib/clock.h"
#include "lib/stats.h"
#include "lib/util.h"

#define NAME_BYTES	128

/* ---- counters */

struct snapshot {
	size_t	n;
	struct counted {
		const struct stat_counter *c;
		uint64_t sum;
	} *all;
};

static void note_counter(const struct stat_counter *c, uint64_t sum, void *arg)
{
	struct snapshot *s = arg;

	s->all[s->n++] = (struct counted){ c, sum };
}

static bool snapshot_take(struct snapshot *s)
{
	s->n = 0;
	s->all = calloc((size_t)(__stop_gannet_stats - __start_gannet_stats),
			sizeof(*s->all));
	if (s->all)
		stats_walk(note_counter, s);
	return s->all;
}

static void put_row(struct metrics_out *m, const struct snapshot *s,
		    const struct metrics_row_family *f,
		    const struct metrics_row *row)
{
	bool found = false;
	char rest[64];

	for (size_t i = 0; i < s->n; i++) {
		const char *name = s->all[i].c->name;
		const char *value = row->values[0];

		if (!metrics_row_has(row, name))
			continue;
		found = true;
		if (!value) {
			snprintf(rest, sizeof(rest), "NFS3ERR_%s",
				 name + strlen(row->counter));
			value = rest;
		}
		metrics_sample(m, METRICS_LABELS({ f->labels[0], value },
			{ f->labels[1], row->values[1] }), s->all[i].sum);
	}
	assert(found);
	(void)found;
}

static void put_counters(struct metrics_out *m)
{
	const struct metrics_row_family *f = metrics_row_families;
	char name[NAME_BYTES];
	struct snapshot s;

	if (!snapshot_take(&s))
		return;
	for (; f->name; f++) {
		metrics_family(m, f->name, METRICS_COUNTER, f->unit, f->help);
		for (const struct metrics_row *r = f->rows; r->counter; r++)
			put_row(m, &s, f, r);
	}
	for (size_t i = 0; i < s.n; i++) {
		const struct stat_counter *c = s.all[i].c;

		if (metrics_rows_have(c->name))
			continue;
		snprintf(name, sizeof(name), "gannet_%s", c->name);
		metrics_family(m, name, METRICS_COUNTER, NULL, c->help);
		metrics_sample(m, METRICS_NO_LABELS, s.all[i].sum);
	}
	free(s.all);
}

/* ---- procedures */

/* By transport, and all together. */
struct proc_sums {
	struct account_sum by[RPC_WAYS];
	struct account_sum all;
};

struct put_procs {
	struct metrics_out *m;
	void (*put)(struct metrics_out *m, const struct proc_sums *n,
		    const struct metrics_label *labels);
};

static void put_calls(struct metrics_out *m, const struct proc_sums *n,
		      const struct metrics_label *labels)
{
	for (unsigned i = 0; i < RPC_WAYS; i++)
		metrics_sample(m, METRICS_LABELS(labels[0], labels[1],
			labels[2], { "transport", rpc_way_names[i] }),
			n->by[i].calls);
}

static void put_failed(struct metrics_out *m, const struct proc_sums *n,
		       const struct metrics_label *labels)
{
	metrics_sample(m, labels, n->all.failed);
}

static void put_durations(struct metrics_out *m, const struct proc_sums *n,
			  const struct metrics_label *labels)
{
	metrics_put_times(m, labels, &n->all);
}

/* A procedure that was never called has no samples: most are like that. */
static void put_procedure(const struct rpc_program *prog,
			  const struct rpc_version *version, uint32_t proc,
			  struct rpc_proc_counts *n, void *arg)
{
	const struct put_procs *p = arg;
	struct proc_sums sums = { 0 };
	char vers[16];

	for (unsigned i = 0; i < RPC_WAYS; i++) {
		account_sum(&n->by[i], &sums.by[i]);
		account_sum_add(&sums.all, &sums.by[i]);
	}
	if (!sums.all.calls)
		return;
	snprintf(vers, sizeof(vers), "%u", version->vers);
	p->put(p->m, &sums, METRICS_LABELS({ "program", prog->name },
		{ "version", vers },
		{ "procedure", version->procs[proc].name }));
}

static void put_procedures(struct metrics_out *m, struct rpc_server *rpc)
{
	struct put_procs p = { m, put_calls };

	metrics_family(m, "gannet_procedure_calls", METRICS_COUNTER, NULL,
		       "Calls that ended, answered or not.");
	rpc_server_walk_procs(rpc, put_procedure, &p);
	metrics_family(m, "gannet_procedure_failed_calls", METRICS_COUNTER,
		       NULL, "Calls that got no reply, or one that tells of "
		       "an error.");
	p.put = put_failed;
	rpc_server_walk_procs(rpc, put_procedure, &p);
	metrics_family(m, "gannet_procedure_duration_seconds",
		       METRICS_HISTOGRAM, "seconds", "Time from a call's "
		       "arrival until its reply was given to the transport.");
	p.put = put_durations;
	rpc_server_walk_procs(rpc, put_procedure, &p);
}

/* ---- the rest */

static void put_gauge(struct metrics_out *m, const char *name,
		      const char *unit, const char *help, uint64_t value)
{
	metrics_family(m, name, METRICS_GAUGE, unit, help);
	metrics_sample(m, METRICS_NO_LABELS, value);
}

static void put_connections(struct metrics_out *m, const struct report *r)
{
	char text[XPRT_ADDR_TEXT];
	struct xprt_listener *l;
	const char *name;

	metrics_family(m, "gannet_connections", METRICS_GAUGE, NULL,
		       "Connections, or calls in progress over UDP, of each "
		       "listener.");
	for (unsigned i = 0; (l = r->listener(r->server, i, &name)); i++) {
		xprt_addr_text((struct sockaddr *)&l->local, text,
			       sizeof(text));
		metrics_sample(m, METRICS_LABELS({ "listener", name },
			{ "address", text }), l->ops->count(l));
	}
}

static void put_memory(struct metrics_out *m, const struct report *r)
{
	size_t taken, used, replies, bytes;

	pool_usage(r->pool, &taken, &used);
	rpc_server_replies(r->rpc, &replies, &bytes);
	put_gauge(m, "gannet_pool_taken_bytes", "bytes", "Memory for data in "
		  "transit that was taken from the system.", taken);
	put_gauge(m, "gannet_pool_used_bytes", "bytes", "Memory of buffers "
		  "that hold data in transit.", used);
	put_gauge(m, "gannet_pool_limit_bytes", "bytes", "The most memory for "
		  "data in transit, --memory.", pool_most(r->pool));
	put_gauge(m, "gannet_replies_remembered", NULL, "Replies that clients "
		  "may ask for again.", replies);
	put_gauge(m, "gannet_reply_memory_bytes", "bytes", "Memory of these "
		  "replies.", bytes);
	put_gauge(m, "gannet_reply_memory_limit_bytes", "bytes", "The most "
		  "memory of these replies: [server] reply-memory.",
		  r->o->reply_memory);
	put_gauge(m, "gannet_rdma_memory_bytes", "bytes", "Memory of RDMA "
		  "connections.", r->budget->used);
	put_gauge(m, "gannet_rdma_memory_limit_bytes", "bytes", "The most "
		  "memory of RDMA connections: [rdma] memory.",
		  r->budget->max);
	put_gauge(m, "gannet_rdma_credits_granted", NULL, "Credits that RDMA "
		  "connections have: calls that they may have in progress.",
		  atomic_load(&r->budget->granted));
}

static void put_locks(struct metrics_out *m, const struct report *r)
{
	struct lock_totals t = { 0 };

	report_locks(r, 0, NULL, NULL, &t);
	put_gauge(m, "gannet_locks_held", NULL, "Ranges of files that clients "
		  "have locked.", t.locks);
	put_gauge(m, "gannet_locks_waiting", NULL, "Locks that clients wait "
		  "for.", t.waits);
	put_gauge(m, "gannet_lock_shares", NULL, "Shares of files that "
		  "clients hold.", t.shares);
	put_gauge(m, "gannet_lock_hosts", NULL, "Hosts that lock, or did a "
		  "while ago.", t.hosts);
	put_gauge(m, "gannet_lock_hosts_monitored", NULL, "Of these, hosts "
		  "whose restarts the status monitor hears of.", t.monitored);
}

static void put_process(struct metrics_out *m, const struct report *r)
{
	struct process_usage p;

	process_look(&p);
	metrics_family(m, "gannet_build", METRICS_INFO, NULL,
		       "The version that runs.");
	metrics_sample(m, METRICS_LABELS({ "version", PACKAGE_VERSION }), 1);
	metrics_family(m, "process_cpu_seconds", METRICS_COUNTER, "seconds",
		       "Processor time of the process.");
	metrics_seconds(m, METRICS_NO_LABELS, p.cpu_ns);
	metrics_family(m, "process_start_time_seconds", METRICS_GAUGE,
		       "seconds", "When the server started, since 1970.");
	metrics_seconds(m, METRICS_NO_LABELS, r->born);
	put_gauge(m, "process_resident_memory_bytes", "bytes",
		  "Memory that is resident.", p.resident);
	put_gauge(m, "process_virtual_memory_bytes", "bytes",
		  "Address space.", p.virtual);
	put_gauge(m, "process_open_fds", NULL, "Open file descriptors.",
		  p.fds);
	put_gauge(m, "process_max_fds", NULL, "The most open file "
		  "descriptors.", p.max_fds);
	put_gauge(m, "process_threads", NULL, "Threads.", p.threads);
}

char *metrics_make(const struct report *r, struct metrics_clients *named,
		   bool open, size_t *len)
{
	struct metrics_out m = { .open = open };
	char *text = NULL;
	bool bad;

	m.f = open_memstream(&text, len);
	if (!m.f)
		return NULL;
	put_process(&m, r);
	put_procedures(&m, r->rpc);
	put_gauge(&m, "gannet_rpc_calls_in_progress", NULL,
		  "Calls that were taken and not answered yet.", rpc_busy());
	put_gauge(&m, "gannet_draining", NULL, "1 if the server takes no "
		  "calls, by gannetctl drain or because it ends.", r->drain.on);
	put_connections(&m, r);
	put_memory(&m, r);
	put_locks(&m, r);
	metrics_put_waits(&m, r->rpc);
	metrics_put_exports(&m, r->export_accounts, r->export_backends);
	metrics_put_clients(&m, r->clients, named);
	put_counters(&m);
	metrics_end(&m);
	bad = ferror(m.f);
	if (fclose(m.f) == 0 && !bad)
		return text;
	free(text);
	return NULL;
}

/* True if @range, up to its end, has a parameter q of 0. */
static bool is_refused(const char *range)
{
	size_t len = strcspn(range, ",");
	const char *q = memmem(range, len, "q=0", 3);

	if (!q)
		return false;
	q += 3;
	return strspn(q, ".0") == strcspn(q, ",; \t");
}

bool metrics_wants_open(const char *accept)
{
	static const char type[] = "application/openmetrics-text";
	const char *range = accept;

	while (range) {
		range += strspn(range, " \t,");
		if (!strncasecmp(range, type, sizeof(type) - 1) &&
		    strchr(",; \t", range[sizeof(type) - 1]))
			return !is_refused(range);
		range = strchr(range, ',');
	}
	return false;
}
