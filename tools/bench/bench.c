/* SPDX-License-Identifier: BSD-2-Clause */
/* bench - prepares, fills, runs, reports, cleans up. */
#include "tools/bench/bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	WORKS_MAX = 32, BLOCK_MIN = 512, BLOCK_MAX = 1 << 20,
	SMALL_BLOCK = 4096, TIMEOUT_MS = 10000, CONNECTIONS_MAX = 1 << 16,
};

/* ---- options */

void bench_bound(struct tool_options *o)
{
	if (o->config.timeout_ms == 0)
		o->config.timeout_ms = o->config.connect_ms = TIMEOUT_MS;
	if (o->config.retries == 0)
		o->config.retries = 1;
}

static uint32_t bound_block(const struct target *t, unsigned needs,
			    uint32_t block)
{
	const struct nfs3_fsinfo_res *l = &t->t->limits;

	if (needs & READS)
		block = MIN(block, l->rtmax);
	if (needs & WRITES)
		block = MIN(block, l->wtmax);
	return MAX(block, (uint32_t)BLOCK_MIN);
}

/* The block of a work, which the server has to take. */
static void choose_block(const struct target *t, struct load_options *o)
{
	unsigned needs = workload_needs(o->work);
	uint32_t want = t->t->o->block;

	if (want == 0)
		want = needs & SEQUENTIAL ? BLOCK_MAX : SMALL_BLOCK;
	want = (uint32_t)MIN(want, o->b.size);
	o->block = bound_block(t, needs, want);
	if (t->t->o->block > o->block && needs & NEED_DATA)
		fprintf(stderr, "gannet-nfs: %s: blocks of %u bytes, the most "
			"that there can be\n", workload_name(o->work),
			o->block);
}

static int refuse_options(const char *why)
{
	fprintf(stderr, "gannet-nfs: %s; --help tells how it is used\n", why);
	return TOOL_USAGE;
}

static int check_options(const struct load_options *o,
			 const struct nfsc_config *c)
{
	const struct bench_options *b = &o->b;

	if (b->connections > CONNECTIONS_MAX)
		return refuse_options("there are too many --connections");
	if (b->memory && (!b->ops || !b->server_pid))
		return refuse_options("--memory needs --ops and --server-pid");
	if (b->verify && b->discard)
		return refuse_options("what is discarded can't be verified");
	if (b->discard && c->tls)
		return refuse_options("TLS leaves no data in the kernel, as "
				      "--discard would");
	return TOOL_OK;
}

static void fill_in(struct load_options *o, const struct tool_options *given)
{
	struct bench_options *b = &o->b;
	bool terminal = isatty(STDERR_FILENO);

	*o = (struct load_options){
		.b = given->bench, .depth = given->config.depth,
		.timeout_ms = (int)given->config.timeout_ms,
		.progress = !given->quiet && (given->progress || terminal),
		.lines = !terminal,
	};
	b->connections = b->connections ? b->connections : 1;
	b->threads = b->threads ? MIN(b->threads, b->connections) : 1;
	b->entries = b->entries ? b->entries : 10000;
	b->size = b->size ? b->size : 64u << 20;
	b->seconds = b->seconds > 0 ? b->seconds : 3;
	b->warmup = b->warmup < 0 ? .3 : b->warmup;
}

/* ---- runs */

static int complain_run(const struct target *t, int err)
{
	return err == 0 ? TOOL_OK : tool_complain(t->t->text, err, 0);
}

static int fill_files(struct target *t)
{
	struct load_result *result = calloc(1, sizeof(*result));
	struct load_options o = *t->opt;
	struct target filling = *t;
	int err;

	if (!result)
		return complain_run(t, -ENOMEM);
	/* Data is filled in larger blocks than it is read in. */
	o.depth = 8;
	o.progress = false;
	o.b.rate = 0;
	o.block = bound_block(t, WRITES, LOAD_FILL_BLOCK);
	filling.opt = &o;
	err = complain_run(t, load_run(&filling, workload_fill(),
				       UINT64_MAX / 2, result));
	if (err == TOOL_OK && result->counts.errors)
		err = TOOL_FAILED;
	free(result);
	return err == TOOL_OK ? target_commit(t) : err;
}

static int run_work(struct target *t, struct load_options *o,
		    const struct workload *work)
{
	struct load_result *result = calloc(1, sizeof(*result));
	int err;

	if (!result)
		return complain_run(t, -ENOMEM);
	o->work = work;
	choose_block(t, o);
	err = complain_run(t, load_run(t, work, o->b.ops, result));
	if (err == TOOL_OK && workload_needs(work) & WRITES) {
		uint64_t begin = clock_ns();

		err = target_commit(t);
		result->seconds += (double)(clock_ns() - begin) / NS_PER_S;
	}
	/* A work ends between CREATE and REMOVE.  The next one makes files of
	 * the same names. */
	if (err == TOOL_OK && workload_needs(work) & MAKES)
		err = target_remove_made(t);
	if (err == TOOL_OK) {
		load_report(t, result);
		fflush(stdout);
		err = result->counts.errors ? TOOL_FAILED : TOOL_OK;
	}
	free(result);
	return err;
}

/* As long as the server is there, and the user wants it. */
static int run_each(struct target *t, struct load_options *o, int n,
		    const struct workload *const works[])
{
	int err, worst = TOOL_OK;

	for (int i = 0; i < n; i++) {
		if (worst == TOOL_UNREACHABLE || bench_interrupted())
			break;
		err = run_work(t, o, works[i]);
		worst = MAX(worst, err);
	}
	return worst;
}

static int run_works(struct target *t, struct load_options *o, int n,
		     const struct workload *const works[])
{
	unsigned needs = 0;
	int err, removed;

	for (int i = 0; i < n; i++)
		needs |= workload_needs(works[i]);
	load_call_init(t);
	err = target_prepare(t, needs);
	if (err == TOOL_OK && needs & NEED_DATA)
		err = fill_files(t);
	if (err == TOOL_OK)
		err = run_each(t, o, n, works);
	removed = target_remove(t, needs);
	return MAX(err, removed);
}

static int find_server(struct target *t)
{
	struct gannet_rpcrdma_info info = { .size = sizeof(info) };
	struct nfsc_session *s = t->t->s;
	int err = s->ops->peer(s, &t->at);

	t->transport = "tcp";
	if (err == 0 && s->ops->rdma) {
		s->ops->rdma(s, &info);
		t->transport = strcmp(info.fabric, "iwarp") == 0 ? "iwarp" :
			       "verbs";
	}
	return complain_run(t, err);
}

static int run_mounted(struct tool *t, struct load_options *o, int n,
		       const struct workload *const works[])
{
	struct target target = { .t = t, .opt = o };
	struct tool_object dir;
	int err = tool_find(t, &dir, true, false);

	if (err != TOOL_OK)
		return err;
	target.above = dir.fh;
	err = find_server(&target);
	target.data = calloc(o->b.connections, sizeof(*target.data));
	if (err == TOOL_OK)
		err = complain_run(&target, target.data ?
				   load_pattern_create(&target) : -ENOMEM);
	if (err == TOOL_OK)
		err = run_works(&target, o, n, works);
	free(target.data);
	free(target.pattern);
	return err;
}

int tool_bench(int n, char *const args[], const struct tool_options *given)
{
	static char *const usual[] = {
		"seqwrite", "seqread", "randwrite", "randread", "getattr",
		"create",
	};
	const struct workload *works[WORKS_MAX];
	struct tool_options o = *given;
	struct load_options load;
	char *const *names = n > 1 ? args : usual;
	int err, last, nworks = n > 1 ? n - 1 : (int)ARRAY_SIZE(usual);
	struct tool t;

	if (nworks > WORKS_MAX)
		return refuse_options("there are too many works");
	for (int i = 0; i < nworks; i++) {
		works[i] = workload_find(names[i]);
		if (!works[i]) {
			fprintf(stderr, "gannet-nfs: bench: there is no work "
				"'%s'; --help tells which there are\n",
				names[i]);
			return TOOL_USAGE;
		}
	}
	bench_bound(&o);
	fill_in(&load, &o);
	load.transport = &load_tcp;
	err = check_options(&load, &o.config);
	if (err == TOOL_OK)
		err = tool_open(&t, args[n - 1], &o);
	if (err != TOOL_OK)
		return err;
	if (t.url.transport == NFS_RDMA)
		load.transport = &load_rdma;
	err = page_open(o.html, "NFS under load", t.text, &load.page);
	if (err == TOOL_OK) {
		bench_catch();
		err = run_mounted(&t, &load, nworks, works);
		last = page_close(load.page, o.html);
		err = MAX(err, last);
	}
	tool_close(&t);
	bench_leave();
	return err;
}
