/* SPDX-License-Identifier: BSD-2-Clause */
/* counters - logs all counters, the shares of the workers, and the calls that
 * wait for something else. */
#include "daemon/watch/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "lib/stats.h"

/* The operator asked for it: log it at any level. */
#define say(...)	log_print(LOG_LEVEL_INFO, __VA_ARGS__)

static void log_counter(const struct stat_counter *c, uint64_t sum, void *arg)
{
	if (sum)
		say("%s %llu (%s)", c->name, (unsigned long long)sum, c->help);
}

static void log_proc(const struct rpc_program *prog,
		     const struct rpc_version *version, uint32_t proc,
		     struct rpc_proc_counts *n, void *arg)
{
	struct account_sum sum;

	rpc_proc_sum(n, &sum);
	if (sum.calls)
		say("%s v%u %s: %llu calls, %llu failed, %llu us each",
		    prog->name, version->vers, version->procs[proc].name,
		    (unsigned long long)sum.calls,
		    (unsigned long long)sum.failed,
		    (unsigned long long)sum.ns / sum.calls / 1000);
}

static void note_share(const char *name, unsigned max, unsigned running,
		       unsigned waiting, void *arg)
{
	fprintf(arg, "workers of %s: %u of %u busy, %u calls wait\n", name,
		running, max, waiting);
}

static void note_suspended(const struct rpc_call *call, const char *why,
			   uint64_t ns, void *arg)
{
	fprintf(arg, "%s: %s %s has waited %llu ms for %s\n",
		call->msg->xprt->name, call->prog->name, call->proc->name,
		(unsigned long long)ns / 1000000, why);
}

/* Calls wait while these are walked: log them afterwards. */
static void log_waits(const struct report *r)
{
	const struct program_row *row;
	struct rpc_program *prog;
	char *text = NULL, *at, *line;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return;
	rpc_server_walk_classes(r->rpc, note_share, f);
	rpc_server_walk_suspended(r->rpc, note_suspended, f);
	for (unsigned i = 0; (prog = r->program(r->server, i, &row)); i++)
		if (row->list)
			row->list(prog, f);
	if (fclose(f) == 0)
		for (at = text; (line = strsep(&at, "\n")) && *line;)
			say("%s", line);
	free(text);
}

void counters_log(const struct report *r)
{
	stats_walk(log_counter, NULL);
	rpc_server_walk_procs(r->rpc, log_proc, NULL);
	log_waits(r);
}
