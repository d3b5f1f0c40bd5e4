/* SPDX-License-Identifier: BSD-2-Clause */
/* engine - threads, the life of a slot, and the measured interval. */
#include "tools/bench/bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* An xid is a count over the slot's index, never 0. */
#define XID_INDEX_BITS	14

/* A start can be late by this, and is then made up for. */
#define LATE_NS		(100u * NS_PER_MS)

static uint64_t cpu_ns(clockid_t id)
{
	struct timespec ts;

	if (clock_gettime(id, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

enum { REFUSALS_MAX = 3 };	/* of the contexts of one call */

static void fail_run(struct load_run *r, int err)
{
	int none = 0;

	atomic_compare_exchange_strong(&r->error, &none, err);
	atomic_store(&r->phase, PHASE_STOP);
}

static bool is_stopping(const struct load_thread *t)
{
	return atomic_load_explicit(&t->run->phase, memory_order_relaxed) ==
	       PHASE_STOP;
}

void load_tick(struct load_thread *t)
{
	enum phase phase = atomic_load_explicit(&t->run->phase,
						memory_order_relaxed);

	if (phase == PHASE_MEASURE && !t->measuring) {
		memset(&t->counts, 0, sizeof(t->counts));
		memset(&t->hist, 0, sizeof(t->hist));
		t->cpu_start = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
		t->measuring = true;
	}
	atomic_store_explicit(&t->seen_ops, t->counts.ops,
			      memory_order_relaxed);
	atomic_store_explicit(&t->seen_bytes, t->counts.bytes,
			      memory_order_relaxed);
}

void load_begin(struct load_thread *t)
{
	t->due = clock_ns();
	t->cpu_start = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	load_tick(t);
}

void load_end(struct load_thread *t)
{
	t->cpu = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - t->cpu_start;
}

static void sleep_ns(uint64_t ns)
{
	nanosleep(&(struct timespec){ (time_t)(ns / 1000000000u),
				      (long)(ns % 1000000000u) }, NULL);
}

void load_rest(struct load_thread *t)
{
	atomic_store(&t->run->done_at, clock_ns());
	if (!t->run->target->opt->b.memory)
		return;
	atomic_fetch_add(&t->run->resting, 1);
	while (!atomic_load(&t->run->released))
		sleep_ns(5000000);
}

/* Calls start at equal distances, as far as slots are idle. */
static bool may_start(struct load_thread *t, uint64_t now)
{
	if (now < t->due)
		return false;
	t->due = MAX(t->due + t->gap, now - LATE_NS);
	return true;
}

bool load_waits(const struct load_thread *t)
{
	if (!t->gap || is_stopping(t))
		return false;
	for (unsigned i = 0; i < t->nconns; i++)
		if (t->run->conns[t->first + i].budget)
			return true;
	return false;
}

/* With the xid that it had. */
static bool repeat_call(struct slot *s, struct call *c)
{
	s->repeats = false;
	if (!workload_make(s, c))
		return false;
	s->conn->budget--;
	s->conn->outstanding++;
	return true;
}

bool load_start_slot(struct slot *s, struct call *c, uint64_t now)
{
	struct load_conn *conn = s->conn;
	uint32_t count = (s->xid >> XID_INDEX_BITS) + 1;

	if (is_stopping(conn->thread) || !conn->budget)
		return false;
	c->data_len = 0;
	if (s->repeats)
		return repeat_call(s, c);
	if (conn->thread->gap && !may_start(conn->thread, now))
		return false;
	if (!(count << XID_INDEX_BITS))
		count = 1;
	s->xid = count << XID_INDEX_BITS | s->index;
	if (!workload_next(conn->thread->run->work, s, c))
		return false;
	conn->budget--;
	conn->outstanding++;
	s->op.refusals = 0;
	s->sent = now;
	return true;
}

struct slot *load_find_slot(struct load_conn *c, uint32_t xid)
{
	uint32_t i = xid & ((1u << XID_INDEX_BITS) - 1);

	if (i >= c->thread->run->depth || c->slots[i].xid != xid)
		return NULL;
	return &c->slots[i];
}

/* The first is reported; the others are counted. */
static void complain_reply(const struct slot *s, int err)
{
	char what[160];

	if (atomic_exchange(&s->conn->thread->run->complained, true))
		return;
	snprintf(what, sizeof(what), "the first error is the reply to %s",
		 workload_call_name(s));
	tool_complain(what, s->op.status ? 0 : err, s->op.status);
}

/* The server has refused the context of @s.  The connection's session makes
 * another when its own call is refused as well.  False: it could not. */
static bool renew_context(struct slot *s)
{
	struct load_conn *c = s->conn;
	struct nfsc_op op = { .kind = NFS_OP_GETATTR, .fh = s->op.fh };

	if (s->op.refusals++ == REFUSALS_MAX ||
	    session_do(c->session, &op) < 0)
		return false;
	s->repeats = true;
	c->budget++;
	return true;
}

int load_reply(struct slot *s, struct xdr_in *x, uint64_t now)
{
	struct load_thread *t = s->conn->thread;
	int err;

	s->conn->outstanding--;
	err = workload_reply(s, x, &t->counts);
	if (err == -EKEYREVOKED && renew_context(s))
		return 0;
	if (err) {
		t->counts.errors++;
		if (err != -EBADMSG)
			complain_reply(s, err);
		return err == -EBADMSG ? err : 0;
	}
	t->counts.ops++;
	hist_add(&t->hist, now - s->sent);
	return 0;
}

static void *drive_thread(void *arg)
{
	struct load_thread *t = arg;
	int err;

	err = t->run->target->opt->transport->run(t);
	if (err)
		fail_run(t->run, err);
	atomic_fetch_sub(&t->run->running, 1);
	return NULL;
}

static void show_progress(struct load_run *r, uint64_t *ops, uint64_t *bytes,
			  double seconds)
{
	uint64_t o = 0, b = 0;

	for (unsigned i = 0; i < r->nthreads; i++) {
		o += atomic_load(&r->threads[i].seen_ops);
		b += atomic_load(&r->threads[i].seen_bytes);
	}
	/* Counts start again with the measured interval. */
	if (o >= *ops && b >= *bytes)
		fprintf(stderr, "%s%-12s %10.0f calls/s %10.1f MiB/s %s",
			r->target->opt->lines ? "" : "\r",
			workload_name(r->work), (double)(o - *ops) / seconds,
			(double)(b - *bytes) / seconds / (1 << 20),
			r->target->opt->lines ? "\n" : "");
	*ops = o;
	*bytes = b;
}

/* Waits until @end, until the last thread has ended, or for the user. */
static void wait_for_end(struct load_run *r, uint64_t end)
{
	uint64_t ops = 0, bytes = 0, last = clock_ns(), now = last;
	const struct load_options *o = r->target->opt;

	while (now < end && !bench_interrupted() &&
	       atomic_load(&r->running) > atomic_load(&r->resting)) {
		sleep_ns(MIN(end - now, 10000000u));
		now = clock_ns();
		if (o->progress && now - last > 500000000u) {
			show_progress(r, &ops, &bytes,
				      (double)(now - last) / 1e9);
			last = now;
		}
	}
}

static double server_cpu(const struct load_options *o)
{
	clockid_t id;

	if (!o->b.server_pid || clock_getcpuclockid(o->b.server_pid, &id))
		return -1;
	return (double)cpu_ns(id) / 1e9;
}

/* Bytes that are the server's alone, or its share of them; < 0: unknown. */
static double server_memory(const struct load_options *o)
{
	char path[64], line[128];
	double kib, sum = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", o->b.server_pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Pss: %lf", &kib) == 1 ||
		    sscanf(line, "Private_Hugetlb: %lf", &kib) == 1)
			sum = MAX(sum, 0) + kib * 1024;
	if (f)
		fclose(f);
	return sum;
}

static int make_run(struct load_run *r)
{
	unsigned at = 0;

	r->conns = calloc(r->nconns, sizeof(*r->conns));
	r->threads = aligned_alloc(64, r->nthreads * sizeof(*r->threads));
	if (!r->conns || !r->threads)
		return -ENOMEM;
	memset(r->threads, 0, r->nthreads * sizeof(*r->threads));
	for (unsigned i = 0; i < r->nthreads; i++) {
		struct load_thread *t = &r->threads[i];

		t->run = r;
		t->first = at;
		if (r->target->opt->b.rate)
			t->gap = NS_PER_S * (uint64_t)r->nthreads /
				 r->target->opt->b.rate;
		t->nconns = (r->nconns - at) / (r->nthreads - i);
		at += t->nconns;
	}
	for (unsigned i = 0; i < r->nthreads; i++)
		for (unsigned j = 0; j < r->threads[i].nconns; j++)
			r->conns[r->threads[i].first + j].thread =
				&r->threads[i];
	for (unsigned i = 0; i < r->nconns; i++) {
		struct load_conn *c = &r->conns[i];

		c->index = i;
		c->random = 0x9e3779b97f4a7c15u * (i + 1);
		c->budget = r->budget ? (r->budget + i) / r->nconns :
			    UINT64_MAX;
		c->slots = calloc(r->depth, sizeof(*c->slots));
		if (!c->slots)
			return -ENOMEM;
		for (unsigned j = 0; j < r->depth; j++) {
			c->slots[j].conn = c;
			c->slots[j].index = j;
		}
	}
	return 0;
}

/* Each connection has a context, with numbers of its calls alone. */
static int prove_conns(struct load_run *r)
{
	struct tool *t = r->target->t;
	int err = 0;

	for (unsigned i = 0; t->o->config.sec && i < r->nconns && !err; i++) {
		err = nfsc_session_open(&t->url, &t->o->config,
					&r->conns[i].session);
		if (!err)
			r->conns[i].flavor = r->conns[i].session->config.flavor;
	}
	return err;
}

static void unmake_run(struct load_run *r)
{
	for (unsigned i = 0; r->conns && i < r->nconns; i++) {
		if (r->conns[i].session)
			session_close(r->conns[i].session);
		free(r->conns[i].slots);
	}
	free(r->conns);
	free(r->threads);
}

static unsigned start_threads(struct load_run *r)
{
	for (unsigned i = 0; i < r->nthreads; i++) {
		atomic_fetch_add(&r->running, 1);
		if (pthread_create(&r->threads[i].thread, NULL, drive_thread,
				   &r->threads[i])) {
			atomic_fetch_sub(&r->running, 1);
			fail_run(r, -EAGAIN);
			return i;
		}
	}
	return r->nthreads;
}

static void measure(struct load_run *r, struct load_result *result)
{
	const struct load_options *o = r->target->opt;
	uint64_t begin = clock_ns(), end;
	double cpu, memory = o->b.memory ? server_memory(o) : -1;
	unsigned n;

	if (r->budget)
		atomic_store(&r->phase, PHASE_MEASURE);
	cpu = server_cpu(o);
	n = start_threads(r);
	if (!r->budget) {
		wait_for_end(r, begin + (uint64_t)(o->b.warmup * 1e9));
		begin = clock_ns();
		cpu = server_cpu(o);
		if (atomic_load(&r->phase) == PHASE_WARMUP)
			atomic_store(&r->phase, PHASE_MEASURE);
	}
	wait_for_end(r, r->budget ? UINT64_MAX :
		   begin + (uint64_t)(o->b.seconds * 1e9));
	atomic_store(&r->phase, PHASE_STOP);
	result->memory = memory < 0 ? -1 : server_memory(o) - memory;
	atomic_store(&r->released, true);
	for (unsigned i = 0; i < n; i++)
		pthread_join(r->threads[i].thread, NULL);
	end = r->budget ? atomic_load(&r->done_at) : 0;
	result->seconds = (double)((end ? end : clock_ns()) - begin) / 1e9;
	result->server_cpu = cpu < 0 ? -1 : server_cpu(o) - cpu;
}

int load_run(const struct target *t, const struct workload *w,
	     uint64_t budget, struct load_result *result)
{
	const struct load_options *o = t->opt;
	struct load_run r = {
		.target = t, .work = w,
		.nconns = o->b.connections, .nthreads = o->b.threads,
		.depth = o->depth, .budget = budget,
	};
	int err;

	memset(result, 0, sizeof(*result));
	err = make_run(&r);
	if (!err)
		err = prove_conns(&r);
	if (err)
		goto out;
	measure(&r, result);
	for (unsigned i = 0; i < r.nthreads; i++) {
		struct load_thread *th = &r.threads[i];

		result->counts.ops += th->counts.ops;
		result->counts.bytes += th->counts.bytes;
		result->counts.entries += th->counts.entries;
		result->counts.errors += th->counts.errors;
		hist_merge(&result->hist, &th->hist);
		result->client_cpu += (double)th->cpu / 1e9;
	}
	err = atomic_load(&r.error);
out:
	unmake_run(&r);
	return err;
}
