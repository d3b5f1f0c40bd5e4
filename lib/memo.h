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
	size_t		 bytes;		/* counts against max_bytes */
	/* Answers with one number here share a network's part of all places, or
	 * in the second a site's (lib/network.h); in excess, the one that
	 * expires first goes.  0: it shares none. */
	uint64_t	 group[2];
	_Atomic time_t	 expires;	/* in clock_coarse_s() */
	/* The memo's: */
	struct rcu_head	 rcu;
	_Atomic(struct memo_entry *) next;
	void		(*free)(struct memo_entry *e);
};

/* An open question; in its thread's memory. */
struct memo_question {
	struct memo_key	 key;
	/* The memo's: */
	uint64_t	 since;
	bool		 expired;
	struct memo_question *next;
};

struct memo;

/* @max answers, of @max_bytes together; @free frees one that no reader can see.
 * 0 or -ENOMEM. */
int  memo_create(unsigned max, size_t max_bytes,
		 void (*free)(struct memo_entry *e), struct memo **out);
/* After the last use of @m. */
void memo_destroy(struct memo *m);

/* In an RCU section: the answer for @key, fresh or expired; or NULL. */
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
/* All answers expire, also answers to open questions. */
void memo_expire(struct memo *m);
/* Drops all answers.  Answers to open questions expire. */
void memo_forget(struct memo *m);

/*
 * True: the caller has to get the answer for q->key, and then to call
 * memo_answered().  False: a fresh one exists, or memo_may_ask() says no.
 * While another thread asks the same, waits for its answer.
 */
bool memo_ask(struct memo *m, struct memo_question *q, uint64_t patience_ns);
/* By the asking thread: the older answer for its key is good for @seconds more,
 * unless memo_expire() came after the question. */
void memo_prolong(struct memo *m, const struct memo_question *q, int seconds);
/* Puts @e, which can be NULL, in the place of an older answer for its key:
 * readers find one of the two.  It can push out other answers. */
void memo_answered(struct memo *m, struct memo_question *q,
		   struct memo_entry *e);
