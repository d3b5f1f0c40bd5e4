/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memo - a bounded cache of answers that take long to get.
 *
 * Readers find an answer under RCU, and never wait.  For each key one thread at
 * a time asks, and keeps the answer; others that need it wait for that.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "lib/clock.h"
#include "lib/hash.h"
#include "lib/rcu.h"

/* Words that are not needed are 0. */
struct memo_key {
	uint32_t w[HASH_WORDS];
};

/* An answer begins with this.  Only the time changes once it is kept. */
struct memo_entry {
	struct memo_key	 key;
	size_t		 bytes;		/* what max_bytes bounds */
	/* Those with one number here have a network's share of all places, or
	 * in the second a site's (lib/network.h): then the one that expires
	 * first goes.  0: it shares none. */
	uint64_t	 group[2];
	_Atomic time_t	 expires;	/* in clock_coarse_s() */
	/* The memo's: */
	struct rcu_head	 rcu;
	_Atomic(struct memo_entry *) next;
	void		(*free)(struct memo_entry *e);
};

/* A question that is out; in its thread's memory. */
struct memo_question {
	struct memo_key	 key;
	/* The memo's: */
	uint64_t	 since;
	bool		 expired;
	struct memo_question *next;
};

struct memo;

/* @max answers, of @max_bytes together; @free frees one that no reader sees any
 * more.  0 or -ENOMEM. */
int  memo_create(unsigned max, size_t max_bytes,
		 void (*free)(struct memo_entry *e), struct memo **out);
/* After the last use of @m. */
void memo_destroy(struct memo *m);

/* In an RCU section: the answer for @key, which may have expired; or NULL. */
struct memo_entry *memo_find(struct memo *m, const struct memo_key *key);
static inline bool memo_is_fresh(const struct memo_entry *e)
{
	return e && e->expires >= clock_coarse_s();
}

/*
 * False while a question has been out for @patience_ns (0: for ever).  After
 * memo_doubt() also while one is out at all, or until the time given there: a
 * source that does not answer must not take one thread after the other.  Does
 * not lock.
 */
bool memo_may_ask(const struct memo *m, uint64_t patience_ns);
/* Doubts the source, with a pause until clock_ns() is @until; 0: trusts it
 * again.  True: it did not before. */
bool memo_doubt(struct memo *m, uint64_t until);
unsigned memo_count(struct memo *m);
/* All answers expire, also those to the questions that are out. */
void memo_expire(struct memo *m);
/* Drops all answers.  Those to the questions that are out expire. */
void memo_forget(struct memo *m);

/*
 * True: the caller has to get the answer for q->key, and then to call
 * memo_answered().  False: there is a fresh one, or memo_may_ask() says no.
 * While another thread asks the same, waits for its answer.
 */
bool memo_ask(struct memo *m, struct memo_question *q, uint64_t patience_ns);
/* By who asks: the older answer for its key is good for @seconds more, unless
 * memo_expire() came after the question. */
void memo_prolong(struct memo *m, const struct memo_question *q, int seconds);
/* Takes @e, which may be NULL, in the place of an older answer for its key:
 * readers find one of them.  Others may go for it. */
void memo_answered(struct memo *m, struct memo_question *q,
		   struct memo_entry *e);
