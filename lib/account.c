/* SPDX-License-Identifier: BSD-2-Clause */
/* account - statistics of calls: their latency, errors, bytes. */
#include "lib/account.h"

#include <stdlib.h>
#include <string.h>

#include "lib/stats.h"
#include "lib/thread.h"

STAT(account_lost, "calls not counted for a client, an export or a procedure, "
     "for lack of memory");

_Thread_local unsigned account_own;

/* A bit for each cell that has an owner. */
#define WORD_BITS	64u
static _Atomic uint64_t claimed[ACCOUNT_CELLS / WORD_BITS] = { 1 };

static_assert(ACCOUNT_CELLS % WORD_BITS == 0, "whole words");

/* Takes a free bit of a word; -1: all are taken. */
static int claim_bit(_Atomic uint64_t *word)
{
	uint64_t was = atomic_load(word);
	int bit;

	do {
		bit = __builtin_ffsll((long long)~was) - 1;
	} while (bit >= 0 &&
		 !atomic_compare_exchange_weak(word, &was,
					       was | UINT64_C(1) << bit));
	return bit;
}

void account_claim(void)
{
	for (unsigned i = 0; i < ARRAY_SIZE(claimed) && !account_own; i++) {
		int bit = claim_bit(&claimed[i]);

		if (bit >= 0)
			account_own = i * WORD_BITS + (unsigned)bit;
	}
}

void account_unclaim(void)
{
	if (account_own > 0)
		atomic_fetch_and(&claimed[account_own / WORD_BITS],
				 ~(UINT64_C(1) << account_own % WORD_BITS));
	account_own = 0;
}

/* This thread's cell, or the shared one, made if need be; or NULL. */
static struct account_cell *cell_of(struct account *a)
{
	_Atomic(struct account_cell *) *at = account_own ?
		&a->cells[account_own] : &a->shared;
	struct account_cell *c = atomic_load(at), *now = NULL;

	if (c)
		return c;
	c = aligned_alloc(_Alignof(struct account_cell), sizeof(*c));
	if (!c)
		return NULL;
	memset(c, 0, sizeof(*c));
	if (atomic_compare_exchange_strong(at, &now, c))
		return c;
	free(c);
	return now;
}

static void add_shared(_Atomic uint64_t *n, uint64_t by)
{
	atomic_fetch_add_explicit(n, by, memory_order_relaxed);
}

void account_add_slowly(struct account *a, struct account_event e)
{
	struct account_cell *c = cell_of(a);

	if (!c) {
		stat_inc(account_lost);
		return;
	}
	add_shared(&c->ns, e.ns);
	add_shared(&c->calls[e.bucket], 1);
	if (e.bytes)
		add_shared(&c->bytes[e.way], e.bytes);
	if (e.failed)
		add_shared(&c->failed, 1);
}

void account_add_held(struct account *a, uint64_t ns)
{
	struct account_cell *c = cell_of(a);

	if (!c)
		return;
	add_shared(&c->held, 1);
	add_shared(&c->held_ns, ns);
}

static uint64_t read_cell(const _Atomic uint64_t *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

static void sum_cell(const struct account_cell *c, struct account_sum *out)
{
	out->ns += read_cell(&c->ns);
	out->failed += read_cell(&c->failed);
	out->held += read_cell(&c->held);
	out->held_ns += read_cell(&c->held_ns);
	for (unsigned i = 0; i < ACCOUNT_WAYS; i++)
		out->bytes[i] += read_cell(&c->bytes[i]);
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		uint64_t n = read_cell(&c->calls[i]);

		out->histogram[i] += n;
		out->calls += n;
	}
}

void account_sum(struct account *a, struct account_sum *out)
{
	struct account_cell *c = atomic_load(&a->shared);

	if (c)
		sum_cell(c, out);
	for (unsigned i = 1; i < ACCOUNT_CELLS; i++) {
		c = atomic_load(&a->cells[i]);
		if (c)
			sum_cell(c, out);
	}
}

void account_sum_add(struct account_sum *out, const struct account_sum *more)
{
	out->calls += more->calls;
	out->failed += more->failed;
	out->ns += more->ns;
	out->held += more->held;
	out->held_ns += more->held_ns;
	for (unsigned i = 0; i < ACCOUNT_WAYS; i++)
		out->bytes[i] += more->bytes[i];
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		out->histogram[i] += more->histogram[i];
}

void account_sum_less(struct account_sum *out,
		      const struct account_sum *before)
{
	out->calls -= before->calls;
	out->failed -= before->failed;
	out->ns -= before->ns;
	out->held -= before->held;
	out->held_ns -= before->held_ns;
	for (unsigned i = 0; i < ACCOUNT_WAYS; i++)
		out->bytes[i] -= before->bytes[i];
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		out->histogram[i] -= before->histogram[i];
}

void account_fini(struct account *a)
{
	for (unsigned i = 0; i < ACCOUNT_CELLS; i++)
		free(atomic_load(&a->cells[i]));
	free(atomic_load(&a->shared));
}
