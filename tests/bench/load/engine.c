/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine: threads, the life of a slot, and the measured interval. */
#include "tests/bench/load/load.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* An xid is a count over the slot's index, never 0. */
#define XID_INDEX_BITS	14

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	if (clock_gettime(id, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t load_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

void load_fail(struct load_run *r, int err, const char *what)
{
	int none = 0;

	if (atomic_compare_exchange_strong(&r->error, &none, err))
		fprintf(stderr, "gannet-load: %s: %s\n", what,
			strerror(-err));
	atomic_store(&r->phase, PHASE_STOP);
}

bool load_stopping(const struct load_thread *t)
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
		t->cpu_start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		t->measuring = true;
	}
	atomic_store_explicit(&t->seen_ops, t->counts.ops,
			      memory_order_relaxed);
	atomic_store_explicit(&t->seen_bytes, t->counts.bytes,
			      memory_order_relaxed);
}

void load_begin(struct load_thread *t)
{
	t->cpu_start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	load_tick(t);
}

void load_end(struct load_thread *t)
{
	t->cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - t->cpu_start;
}

static void sleep_ns(uint64_t ns)
{
	nanosleep(&(struct timespec){ (time_t)(ns / 1000000000u),
				      (long)(ns % 1000000000u) }, NULL);
}

void load_rest(struct load_thread *t)
{
	if (!t->run->target->opt->memory)
		return;
	atomic_fetch_add(&t->run->resting, 1);
	while (!atomic_load(&t->run->released))
		sleep_ns(5000000);
}

bool load_start_slot(struct slot *s, struct call *c, uint64_t now)
{
	struct load_conn *conn = s->conn;
	uint32_t count = (s->xid >> XID_INDEX_BITS) + 1;

	if (load_stopping(conn->thread) || !conn->budget)
		return false;
	if (!(count << XID_INDEX_BITS))
		count = 1;
	s->xid = count << XID_INDEX_BITS | s->index;
	c->data_len = 0;
	if (!workload_next(conn->thread->run->work, s, c))
		return false;
	conn->budget--;
	conn->outstanding++;
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

int load_reply(struct slot *s, struct xdr_in *x, uint64_t now)
{
	struct load_thread *t = s->conn->thread;
	int err;

	s->conn->outstanding--;
	err = load_reply_head(x);
	if (!err)
		err = workload_reply(s, x, &t->counts);
	if (err) {
		if (!t->counts.errors++)
			fprintf(stderr, "gannet-load: reply to call %u: %s\n",
				(unsigned)s->kind, strerror(-err));
		return err == -EBADMSG ? err : 0;
	}
	t->counts.ops++;
	hist_add(&t->hist, now - s->sent);
	return 0;
}

static void *run_thread(void *arg)
{
	struct load_thread *t = arg;
	int err;

	err = t->run->transport->run(t);
	if (err)
		load_fail(t->run, err, "connection");
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
		fprintf(stderr, "\r%-12s %10.0f ops/s %10.1f MiB/s ",
			workload_name(r->work), (double)(o - *ops) / seconds,
			(double)(b - *bytes) / seconds / (1 << 20));
	*ops = o;
	*bytes = b;
}

/* Waits until @end, or until no thread runs any more. */
static void wait_until(struct load_run *r, uint64_t end)
{
	uint64_t ops = 0, bytes = 0, last = load_now(), now = last;
	const struct load_options *o = r->target->opt;

	while (now < end &&
	       atomic_load(&r->running) > atomic_load(&r->resting)) {
		sleep_ns(MIN(end - now, 10000000u));
		now = load_now();
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

	if (!o->server_pid || clock_getcpuclockid(o->server_pid, &id))
		return -1;
	return (double)clock_ns(id) / 1e9;
}

/* Bytes that are the server's alone, or its share of them; < 0: unknown. */
static double server_memory(const struct load_options *o)
{
	char path[64], line[128];
	double kib, sum = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", o->server_pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Pss: %lf", &kib) == 1 ||
		    sscanf(line, "Private_Hugetlb: %lf", &kib) == 1)
			sum = MAX(sum, 0) + kib * 1024;
	if (f)
		fclose(f);
	return sum;
}

static int make(struct load_run *r)
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

static void unmake(struct load_run *r)
{
	for (unsigned i = 0; r->conns && i < r->nconns; i++)
		free(r->conns[i].slots);
	free(r->conns);
	free(r->threads);
}

static unsigned start(struct load_run *r)
{
	for (unsigned i = 0; i < r->nthreads; i++) {
		atomic_fetch_add(&r->running, 1);
		if (pthread_create(&r->threads[i].thread, NULL, run_thread,
				   &r->threads[i])) {
			atomic_fetch_sub(&r->running, 1);
			load_fail(r, -EAGAIN, "thread");
			return i;
		}
	}
	return r->nthreads;
}

static void measure(struct load_run *r, struct load_result *result)
{
	const struct load_options *o = r->target->opt;
	uint64_t begin = load_now();
	double cpu, memory = o->memory ? server_memory(o) : -1;
	unsigned n;

	if (r->budget)
		atomic_store(&r->phase, PHASE_MEASURE);
	cpu = server_cpu(o);
	n = start(r);
	if (!r->budget) {
		wait_until(r, begin + (uint64_t)(o->warmup * 1e9));
		begin = load_now();
		cpu = server_cpu(o);
		if (atomic_load(&r->phase) == PHASE_WARMUP)
			atomic_store(&r->phase, PHASE_MEASURE);
	}
	wait_until(r, r->budget ? UINT64_MAX :
		   begin + (uint64_t)(o->seconds * 1e9));
	atomic_store(&r->phase, PHASE_STOP);
	result->memory = memory < 0 ? -1 : server_memory(o) - memory;
	atomic_store(&r->released, true);
	for (unsigned i = 0; i < n; i++)
		pthread_join(r->threads[i].thread, NULL);
	result->seconds = (double)(load_now() - begin) / 1e9;
	result->server_cpu = cpu < 0 ? -1 : server_cpu(o) - cpu;
}

int load_run(const struct target *t, const struct workload *w,
	     uint64_t budget, struct load_result *result)
{
	const struct load_options *o = t->opt;
	struct load_run r = {
		.target = t, .work = w,
		/* Operations that are not measured use TCP, which all servers
		 * have. */
		.transport = w == o->work ? o->transport : &load_tcp,
		.nconns = o->conns, .nthreads = MIN(o->threads, o->conns),
		.depth = o->depth, .budget = budget,
	};
	int err;

	memset(result, 0, sizeof(*result));
	err = make(&r);
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
	unmake(&r);
	return err;
}
