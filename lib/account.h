/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * account - statistics of calls: their latency, errors, bytes.
 *
 * The calls of a server are counted in an account of their procedure and
 * transport, one of their export (in a book of accounts), and one of their
 * client.
 *
 * An account has a cell for each poller, which counts there without locked
 * instructions, and one that all other threads share.  A cell is made when it
 * is first needed.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/histogram.h"
#include "lib/util.h"

/* Each poller has a cell, on all but the largest machines.  The pollers beyond
 * and all other threads share cell 0, by locked instructions. */
#define ACCOUNT_CELLS	128u

/* The ways of data: from the files to the client, and back. */
enum account_way { ACCOUNT_READ, ACCOUNT_WRITTEN, ACCOUNT_WAYS };

struct account_cell {
	_Atomic uint64_t ns;		/* of all calls together */
	_Atomic uint64_t failed;
	_Atomic uint64_t bytes[ACCOUNT_WAYS];
	_Atomic uint64_t held;		/* times that a limit held one back */
	_Atomic uint64_t held_ns;	/* of all together */
	_Atomic uint64_t calls[HISTOGRAM_BUCKETS];	/* by latency */
} __attribute__((aligned(64)));

/* All zeros is an account without calls. */
struct account {
	/* NULL: not needed yet.  The first belongs to no owner and is always
	 * NULL. */
	_Atomic(struct account_cell *) cells[ACCOUNT_CELLS];
	_Atomic(struct account_cell *) shared;
};

/* A call that ended. */
struct account_event {
	uint64_t ns;		/* from its coming to its end */
	unsigned bucket;	/* histogram_bucket(ns) */
	enum account_way way;
	uint32_t bytes;		/* of data that it moved */
	bool	 failed;
};

/* The sum over an account's cells. */
struct account_sum {
	uint64_t calls;
	uint64_t failed;	/* of these */
	uint64_t ns;		/* of all together */
	uint64_t bytes[ACCOUNT_WAYS];
	uint64_t held;		/* times that a limit held a call back */
	uint64_t held_ns;	/* of all together */
	uint64_t histogram[HISTOGRAM_BUCKETS];
};

/* This thread's cells; 0: it has none. */
extern _Thread_local unsigned account_own;

/* Gives this thread separate cells, if possible: for the start and the end of a
 * poller. */
void account_claim(void);
void account_unclaim(void);

/* Counts where account_add() can't. */
void account_add_slowly(struct account *a, struct account_event e);

/* Only this thread writes to @n. */
static inline void account_more(_Atomic uint64_t *n, uint64_t by)
{
	atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) +
			      by, memory_order_relaxed);
}

/* Counts a call.  Any thread; doesn't wait.  Without memory for a cell the call
 * is not counted here (account_lost). */
static inline void account_add(struct account *a, struct account_event e)
{
	struct account_cell *c = atomic_load_explicit(&a->cells[account_own],
						      memory_order_acquire);

	if (unlikely(!c)) {
		account_add_slowly(a, e);
		return;
	}
	account_more(&c->ns, e.ns);
	account_more(&c->calls[e.bucket], 1);
	account_more(&c->bytes[e.way], e.bytes);
	if (unlikely(e.failed))
		account_more(&c->failed, 1);
}

/* Counts that a limit held a call back for @ns.  Any thread. */
void account_add_held(struct account *a, uint64_t ns);

/* Adds @a to @out.  Any thread, at any time: it sees each call that was
 * answered before, and perhaps half of one that ends now. */
void account_sum(struct account *a, struct account_sum *out);
/* Adds @more to @out. */
void account_sum_add(struct account_sum *out, const struct account_sum *more);
/* Subtracts the earlier counts. */
void account_sum_less(struct account_sum *out,
		      const struct account_sum *before);
/* Frees the cells.  No thread counts after this. */
void account_fini(struct account *a);

/*
 * A book: a bounded number of accounts, each with a number and a name, for
 * exports.  They stay until the book is freed, so a call can count in one whose
 * owner is gone.  When the book is full, the account that was returned first is
 * reset for another owner; if none was returned, all further owners share one.
 * Any thread, everything.
 */
struct account_book;

/* NULL: no memory. */
struct account_book *account_book_create(unsigned max);
void account_book_destroy(struct account_book *b);
/*
 * The account of @id, which is in use until account_book_put() was called as
 * often.  @name is copied; of the names of one @id it keeps the shortest.
 * Never NULL.
 */
struct account *account_book_get(struct account_book *b, uint32_t id,
				 const char *name);
void account_book_put(struct account_book *b, struct account *a);
/*
 * Calls @fn for each account, without a lock: its name (NULL: that of all
 * others, which comes last, and only if they had any), the number of its users
 * (0: its owner is gone), its sums.
 */
typedef void account_book_fn(const char *name, unsigned users,
			     const struct account_sum *sum, void *arg);
void account_book_walk(struct account_book *b, account_book_fn *fn, void *arg);
