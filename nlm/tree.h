/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tree - ranges of bytes, found by the bytes that they overlap.
 *
 * Waiters are also found by their bytes; holds by their owner and waiters by
 * their number, as if these were bytes.
 *
 * A treap: sorted by start and end, a heap by random numbers, so that its
 * height is about twice the logarithm of its size whatever clients lock.  Each
 * node knows where the ranges below it end, by kind and by owner, so that the
 * search for a conflict takes one path.  Pure: the caller holds nlm->lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct nlm_owner;

/* The last byte of a range that goes to the end of the file, however long. */
#define NLM_EOF		((uint64_t)INT64_MAX)

struct nlm_span {
	uint64_t start;
	uint64_t end;			/* the last byte; NLM_EOF */
	bool	 exclusive;
};

static inline bool nlm_overlap(const struct nlm_span *a,
			       const struct nlm_span *b)
{
	return a->start <= b->end && b->start <= a->end;
}

/* Where ranges end: the byte after the last one, 0 without ranges. */
struct nlm_reach {
	uint64_t		past;
	const struct nlm_owner *owner;	/* of the range that ends there */
	uint64_t		others_past;	/* of all but @owner's */
};

/* A range in a tree.  The caller sets the first two, and leaves them alone
 * while the node is in the tree. */
struct nlm_node {
	const struct nlm_span	*at;
	const struct nlm_owner	*owner;
	struct nlm_node		*left, *right;
	uint64_t		 rank;
	struct nlm_reach	 all, exclusive;	/* of it and below it */
};

/* The nodes that this thread has looked at so far. */
extern _Thread_local uint64_t nlm_steps;

void nlm_tree_add(struct nlm_node **root, struct nlm_node *n);
void nlm_tree_del(struct nlm_node **root, struct nlm_node *n);

/* The first range after @prev, from the start with NULL, that overlaps @at, is
 * in its way if @at is of another owner, and is not @but's; or NULL.  In the
 * way of an exclusive range are all, of a shared one the exclusive ones. */
struct nlm_node *nlm_tree_find(struct nlm_node *root, const struct nlm_span *at,
			       const struct nlm_owner *but,
			       const struct nlm_node *prev);

/* A range of just these bytes and this kind, or NULL. */
struct nlm_node *nlm_tree_find_same(struct nlm_node *root,
				    const struct nlm_span *at);
