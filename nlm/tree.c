/* SPDX-License-Identifier: BSD-2-Clause */
/* tree - ranges of bytes, found by the bytes that they overlap. */
#include "nlm/tree.h"

#include <stddef.h>

#include "lib/hash.h"
#include "lib/util.h"

_Thread_local uint64_t nlm_steps;

/* By start, then end, then kind. */
static int compare_spans(const struct nlm_span *a, const struct nlm_span *b)
{
	nlm_steps++;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	return a->exclusive - b->exclusive;
}

static bool is_before(const struct nlm_node *a, const struct nlm_node *b)
{
	int order = compare_spans(a->at, b->at);

	return order ? order < 0 : (uintptr_t)a < (uintptr_t)b;
}

/* The reach of both. */
static struct nlm_reach join_reach(struct nlm_reach a, struct nlm_reach b)
{
	uint64_t others;

	if (b.past > a.past)
		return join_reach(b, a);
	others = b.owner == a.owner ? b.others_past : b.past;
	a.others_past = MAX(a.others_past, others);
	return a;
}

static void update_reach(struct nlm_node *n)
{
	const struct nlm_reach own = { n->at->end + 1, n->owner, 0 };

	n->all = own;
	n->exclusive = n->at->exclusive ? own : (struct nlm_reach){ 0 };
	for (unsigned i = 0; i < 2; i++) {
		const struct nlm_node *child = i ? n->right : n->left;

		if (!child)
			continue;
		n->all = join_reach(n->all, child->all);
		n->exclusive = join_reach(n->exclusive, child->exclusive);
	}
}

/* Splits @t into the nodes before @n and the nodes after it. */
static void part(struct nlm_node *t, const struct nlm_node *n,
		 struct nlm_node **before, struct nlm_node **after)
{
	if (!t) {
		*before = *after = NULL;
		return;
	}
	if (is_before(t, n)) {
		part(t->right, n, &t->right, after);
		*before = t;
	} else {
		part(t->left, n, before, &t->left);
		*after = t;
	}
	update_reach(t);
}

static void add(struct nlm_node **root, struct nlm_node *n)
{
	struct nlm_node *t = *root;

	if (!t || n->rank > t->rank) {
		part(t, n, &n->left, &n->right);
		*root = t = n;
	} else {
		add(is_before(n, t) ? &t->left : &t->right, n);
	}
	update_reach(t);
}

void nlm_tree_add(struct nlm_node **root, struct nlm_node *n)
{
	n->rank = hash_values((uintptr_t)n);
	add(root, n);
}

/* Joins two trees, of which @a comes first. */
static struct nlm_node *join_trees(struct nlm_node *a, struct nlm_node *b)
{
	if (!a || !b)
		return a ? a : b;
	if (a->rank > b->rank) {
		a->right = join_trees(a->right, b);
		update_reach(a);
		return a;
	}
	b->left = join_trees(a, b->left);
	update_reach(b);
	return b;
}

void nlm_tree_del(struct nlm_node **root, struct nlm_node *n)
{
	struct nlm_node *t = *root;

	if (t == n) {
		*root = join_trees(n->left, n->right);
		return;
	}
	nlm_tree_del(is_before(n, t) ? &t->left : &t->right, n);
	update_reach(t);
}

/* Where the ranges of @t end that can be in the way of @at, unless they are
 * @but's. */
static uint64_t reach_of(const struct nlm_node *t, const struct nlm_span *at,
			 const struct nlm_owner *but)
{
	const struct nlm_reach *r = at->exclusive ? &t->all : &t->exclusive;

	nlm_steps++;
	return r->owner == but ? r->others_past : r->past;
}

static bool is_in_way(const struct nlm_node *n, const struct nlm_span *at,
		      const struct nlm_owner *but)
{
	return n->owner != but && nlm_overlap(n->at, at) &&
	       (n->at->exclusive || at->exclusive);
}

struct nlm_node *nlm_tree_find(struct nlm_node *t, const struct nlm_span *at,
			       const struct nlm_owner *but,
			       const struct nlm_node *prev)
{
	struct nlm_node *n;

	if (!t || reach_of(t, at, but) <= at->start)
		return NULL;
	if (!prev || is_before(prev, t)) {
		n = nlm_tree_find(t->left, at, but, prev);
		if (n)
			return n;
		if (is_in_way(t, at, but))
			return t;
	}
	if (t->at->start > at->end)
		return NULL;
	return nlm_tree_find(t->right, at, but, prev);
}

struct nlm_node *nlm_tree_find_same(struct nlm_node *t,
				    const struct nlm_span *at)
{
	int order;

	while (t && (order = compare_spans(at, t->at)) != 0)
		t = order < 0 ? t->left : t->right;
	return t;
}
