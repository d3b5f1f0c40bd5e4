/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of procedures, and of the calls in progress.
 *
 * Each thread adds in a row of its own and sums are made by the reader, so
 * counting writes to no memory that another thread writes to.
 */
#include "rpc/call.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

struct tally {
	_Atomic uint64_t calls;
	_Atomic uint64_t errors;
	_Atomic uint64_t ns;
};

struct rpc_counts {
	uint32_t nprocs;
	struct tally *_Atomic rows[RPC_ROWS];	/* made when first used */
};

/* Rows are never given back, so a thread's counts outlive it. */
static unsigned my_row(void)
{
	static atomic_uint given;
	static _Thread_local unsigned mine;	/* row + 1 */

	if (unlikely(!mine)) {
		unsigned row = atomic_fetch_add(&given, 1);

		mine = MIN(row, (unsigned)RPC_ROW_SHARED) + 1;
		if (row >= RPC_ROW_SHARED)
			atomic_store(&given, RPC_ROW_SHARED);
	}
	return mine - 1;
}

static inline void add(_Atomic uint64_t *p, uint64_t n, unsigned row)
{
	if (unlikely(row == RPC_ROW_SHARED))
		atomic_fetch_add_explicit(p, n, memory_order_relaxed);
	else
		atomic_store_explicit(p, n + atomic_load_explicit(p,
				memory_order_relaxed), memory_order_relaxed);
}

static size_t row_size(const struct rpc_counts *counts)
{
	return ALIGN_UP(MAX(counts->nprocs, 1u) * sizeof(struct tally),
			(size_t)64);
}

static struct tally *make_row(struct rpc_counts *counts, unsigned row)
{
	struct tally *t = aligned_alloc(64, row_size(counts));

	if (!t)
		return NULL;
	memset(t, 0, row_size(counts));
	/* Pairs with the readers' acquire.  Only this thread makes the row. */
	atomic_store_explicit(&counts->rows[row], t, memory_order_release);
	return t;
}

void rpc_counts_add(struct rpc_counts *counts, uint32_t proc, bool error,
		    uint64_t ns)
{
	unsigned row = my_row();
	struct tally *t = atomic_load_explicit(&counts->rows[row],
					       memory_order_acquire);

	if (unlikely(!t)) {
		t = make_row(counts, row);
		if (!t) {
			row = RPC_ROW_SHARED;
			t = atomic_load(&counts->rows[row]);
		}
	}
	t += proc;
	add(&t->calls, 1, row);
	add(&t->ns, ns, row);
	if (error)
		add(&t->errors, 1, row);
}

int rpc_counts_create(const struct rpc_program *prog, struct rpc_counts **out)
{
	struct rpc_counts *counts = calloc(1, sizeof(*counts));

	if (!counts)
		return -ENOMEM;
	for (uint32_t i = 0; i < prog->nversions; i++)
		counts->nprocs += prog->versions[i].nproc;
	if (!make_row(counts, RPC_ROW_SHARED)) {
		free(counts);
		return -ENOMEM;
	}
	*out = counts;
	return 0;
}

void rpc_counts_destroy(struct rpc_counts *counts)
{
	if (!counts)
		return;
	for (unsigned i = 0; i < RPC_ROWS; i++)
		free(atomic_load(&counts->rows[i]));
	free(counts);
}

static void sum_proc(struct rpc_counts *counts, uint32_t proc,
		     struct rpc_proc_count *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (unsigned i = 0; i < RPC_ROWS; i++) {
		struct tally *t = atomic_load(&counts->rows[i]);

		if (!t)
			continue;
		sum->calls += atomic_load(&t[proc].calls);
		sum->errors += atomic_load(&t[proc].errors);
		sum->ns += atomic_load(&t[proc].ns);
	}
}

typedef void walk_fn(const struct rpc_program *prog,
		     const struct rpc_version *version,
		     const struct rpc_proc *proc,
		     const struct rpc_proc_count *count, void *arg);

static void walk_program(struct rpc_program *prog, walk_fn *fn, void *arg)
{
	struct rpc_proc_count sum;
	uint32_t index = 0;

	for (uint32_t i = 0; i < prog->nversions; i++) {
		const struct rpc_version *v = &prog->versions[i];

		for (uint32_t k = 0; k < v->nproc; k++, index++) {
			if (!v->procs[k].name)
				continue;
			sum_proc(prog->counts, index, &sum);
			fn(prog, v, &v->procs[k], &sum, arg);
		}
	}
}

void rpc_server_walk_counts(struct rpc_server *server, walk_fn *fn, void *arg)
{
	for (unsigned i = 0; i < server->nprogs; i++)
		walk_program(server->progs[i], fn, arg);
}

void rpc_busy_add(struct rpc_server *server, long n)
{
	unsigned row = my_row();
	_Atomic long *p = &server->busy[row].n;

	/*
	 * Release: a reader that sees the call gone sees its effects, too.  The
	 * sum falls only after the reply was given to the transport.
	 */
	if (unlikely(row == RPC_ROW_SHARED))
		atomic_fetch_add_explicit(p, n, memory_order_release);
	else
		atomic_store_explicit(p, n + atomic_load_explicit(p,
				memory_order_relaxed), memory_order_release);
}

unsigned rpc_server_busy(struct rpc_server *server)
{
	long sum = 0;

	for (unsigned i = 0; i < RPC_ROWS; i++)
		sum += atomic_load_explicit(&server->busy[i].n,
					    memory_order_acquire);
	/* The rows are not read all at one time, so the sum can be negative. */
	return sum > 0 ? (unsigned)sum : 0;
}
