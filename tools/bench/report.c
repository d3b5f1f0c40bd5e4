/* SPDX-License-Identifier: BSD-2-Clause */
/* report - the results: a table for people, JSON for programs. */
#include "tools/bench/bench.h"

#define GIB	((double)(1u << 30))

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

static double mean_us(const struct load_result *r)
{
	return ratio((double)r->hist.sum / 1e3, (double)r->hist.total);
}

static void json_cpu(const char *who, double cpu, const struct load_result *r)
{
	if (cpu < 0)
		return;
	printf(", \"%s_cpu\": %.6f, \"%s_us_per_op\": %.4f", who, cpu, who,
	       ratio(cpu * 1e6, (double)r->counts.ops));
	if (r->counts.bytes)
		printf(", \"%s_s_per_gib\": %.4f", who,
		       ratio(cpu * GIB, (double)r->counts.bytes));
}

static void put_json(const struct target *t, const struct load_result *r)
{
	const struct load_options *o = t->opt;

	printf("{\"work\": \"%s\", \"transport\": \"%s\", \"block\": %u, "
	       "\"depth\": %u, \"connections\": %u, \"threads\": %u, "
	       "\"seconds\": %.4f, \"ops\": %llu, \"errors\": %llu, "
	       "\"ops_per_s\": %.1f, \"bytes_per_s\": %.0f, "
	       "\"entries_per_s\": %.0f",
	       workload_name(o->work), t->transport, o->block, o->depth,
	       o->b.connections, o->b.threads, r->seconds,
	       (unsigned long long)r->counts.ops,
	       (unsigned long long)r->counts.errors,
	       ratio((double)r->counts.ops, r->seconds),
	       ratio((double)r->counts.bytes, r->seconds),
	       ratio((double)r->counts.entries, r->seconds));
	printf(", \"mean_us\": %.2f, \"p50_us\": %.2f, \"p99_us\": %.2f, "
	       "\"p999_us\": %.2f, \"max_us\": %.2f", mean_us(r),
	       (double)hist_quantile(&r->hist, .5) / 1e3,
	       (double)hist_quantile(&r->hist, .99) / 1e3,
	       (double)hist_quantile(&r->hist, .999) / 1e3,
	       (double)r->hist.max / 1e3);
	json_cpu("client", r->client_cpu, r);
	json_cpu("server", r->server_cpu, r);
	if (r->memory >= 0)
		printf(", \"bytes_per_connection\": %.0f",
		       r->memory / o->b.connections);
	printf("}\n");
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
	       (double)hist_quantile(&r->hist, .5) / 1e3,
	       (double)hist_quantile(&r->hist, .99) / 1e3,
	       (double)hist_quantile(&r->hist, .999) / 1e3,
	       (double)r->hist.max / 1e3);
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
	if (t->t->o->json)
		put_json(t, r);
	else
		put_table(t, r);
}
