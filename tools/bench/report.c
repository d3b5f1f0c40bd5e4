/* SPDX-License-Identifier: BSD-2-Clause */
/* report - the results: a table for people, JSON for programs. */
#include "tools/bench/bench.h"

#include <jansson.h>

enum { BAR = 40 };

#define GIB	((double)(1u << 30))

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

static double mean_us(const struct load_result *r)
{
	return ratio((double)r->hist.sum / 1e3, (double)r->hist.total);
}

static double quantile_us(const struct load_result *r, double q)
{
	return (double)hist_quantile(&r->hist, q) / 1e3;
}

static void set_cpu(json_t *j, const char *who, double cpu,
		    const struct load_result *r)
{
	char key[32];

	if (cpu < 0)
		return;
	snprintf(key, sizeof(key), "%s_cpu", who);
	json_object_set_new(j, key, json_real(cpu));
	snprintf(key, sizeof(key), "%s_us_per_op", who);
	json_object_set_new(j, key, json_real(
		ratio(cpu * 1e6, (double)r->counts.ops)));
	if (!r->counts.bytes)
		return;
	snprintf(key, sizeof(key), "%s_s_per_gib", who);
	json_object_set_new(j, key, json_real(
		ratio(cpu * GIB, (double)r->counts.bytes)));
}

static void put_json(const struct target *t, const struct load_result *r)
{
	const struct load_options *o = t->opt;
	const struct counts *n = &r->counts;
	json_t *j = json_pack(
		"{s:s, s:s, s:i, s:i, s:i, s:i, s:f, s:I, s:I, s:f, s:f, s:f}",
		"work", workload_name(o->work), "transport", t->transport,
		"block", (int)o->block, "depth", (int)o->depth,
		"connections", (int)o->b.connections,
		"threads", (int)o->b.threads, "seconds", r->seconds,
		"ops", (json_int_t)n->ops, "errors", (json_int_t)n->errors,
		"ops_per_s", ratio((double)n->ops, r->seconds),
		"bytes_per_s", ratio((double)n->bytes, r->seconds),
		"entries_per_s", ratio((double)n->entries, r->seconds));

	json_object_set_new(j, "mean_us", json_real(mean_us(r)));
	json_object_set_new(j, "p50_us", json_real(quantile_us(r, .5)));
	json_object_set_new(j, "p99_us", json_real(quantile_us(r, .99)));
	json_object_set_new(j, "p999_us", json_real(quantile_us(r, .999)));
	json_object_set_new(j, "max_us", json_real((double)r->hist.max / 1e3));
	set_cpu(j, "client", r->client_cpu, r);
	set_cpu(j, "server", r->server_cpu, r);
	if (r->memory >= 0)
		json_object_set_new(j, "bytes_per_connection", json_real(
			r->memory / o->b.connections));
	json_dumpf(j, stdout, JSON_REAL_PRECISION(9));
	putchar('\n');
	json_decref(j);
}

static void table_cpu(const char *who, double cpu, const struct load_result *r)
{
	if (cpu < 0)
		return;
	printf("%-12s%12.2f us/op", who,
	       ratio(cpu * 1e6, (double)r->counts.ops));
	if (r->counts.bytes)
		printf("%12.3f s/GiB",
		       ratio(cpu * GIB, (double)r->counts.bytes));
	printf("%9.0f %% busy\n", ratio(cpu * 100, r->seconds));
}

/* The calls by their latency, in powers of two of microseconds. */
static void put_bars(const struct hist *h)
{
	static const char bar[] = "########################################";
	uint64_t first = 1000, last, most = 1, n;
	char text[16];

	while (first < h->max && hist_below(h, first) == 0)
		first *= 2;
	for (last = first; hist_below(h, last) < h->total;)
		last *= 2;
	for (uint64_t to = first; to <= last; to *= 2)
		most = MAX(most, hist_below(h, to) - hist_below(h, to / 2));
	for (uint64_t to = first; to <= last; to *= 2) {
		n = hist_below(h, to) - hist_below(h, to / 2);
		printf("  < %-8s |%-*.*s| %5.1f %%\n", bench_time(to, text),
		       BAR, (int)(n * BAR / most), bar,
		       100 * ratio((double)n, (double)h->total));
	}
}

static void put_table(const struct target *t, const struct load_result *r)
{
	const struct load_options *o = t->opt;

	printf("%s, %s, %u connection%s, depth %u", workload_name(o->work),
	       t->transport, o->b.connections, o->b.connections == 1 ? "" : "s",
	       o->depth);
	if (workload_needs(o->work) & NEED_DATA)
		printf(", blocks of %u", o->block);
	printf("\n%-12s%12.0f /s", "calls",
	       ratio((double)r->counts.ops, r->seconds));
	if (r->counts.bytes)
		printf("%12.1f MiB/s", ratio((double)r->counts.bytes,
					   r->seconds) / (1 << 20));
	if (r->counts.entries)
		printf("%12.0f entries/s", ratio((double)r->counts.entries,
					       r->seconds));
	printf("\n%-12s%12.1f us mean%10.1f p50%10.1f p99%10.1f p99.9"
	       "%10.1f max\n", "latency", mean_us(r),
	       quantile_us(r, .5), quantile_us(r, .99), quantile_us(r, .999),
	       (double)r->hist.max / 1e3);
	put_bars(&r->hist);
	table_cpu("client CPU", r->client_cpu, r);
	table_cpu("server CPU", r->server_cpu, r);
	if (r->memory >= 0)
		printf("%-12s%12.1f KiB a connection\n", "memory",
		       r->memory / o->b.connections / 1024);
	if (r->counts.errors)
		printf("%-12s%12llu\n", "errors",
		       (unsigned long long)r->counts.errors);
}

void load_report(const struct target *t, const struct load_result *r)
{
	if (t->opt->progress && !t->opt->lines)
		fprintf(stderr, "\r%60s\r", "");
	if (t->opt->page)
		page_work(t->opt->page, t, r);
	if (t->t->o->json)
		put_json(t, r);
	else
		put_table(t, r);
}
