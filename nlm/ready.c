/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ready - which waiters are tried again, and which holds and waiters end.
 * Pure.
 *
 * A waiter sleeps while a client's lock is in its way.  A change that frees
 * bytes makes the waiters ready that sleep for some of them.  So a lock costs
 * the same however many wait elsewhere in the file.  The file's turn then tries
 * the ready ones in the order in which they came, and each gets its lock or
 * sleeps again.
 */
#include "nlm/table.h"

#include "lib/util.h"

static struct nlm_wait *first_wait(struct nlm_node *tree,
				   const struct nlm_span *at)
{
	const struct nlm_span any = { at->start, at->end, true };
	struct nlm_node *n = nlm_tree_find(tree, &any, NULL, NULL);

	return n ? container_of(n, struct nlm_wait, place) : NULL;
}

void nlm_wait_put(struct nlm_wait *w, struct nlm_node **to)
{
	if (w->in)
		nlm_tree_del(w->in, &w->place);
	w->in = to;
	nlm_queue_move(w);
	if (!to)
		return;
	if (w->granted)
		w->grant = (struct nlm_span){ w->id, w->id, true };
	w->place.at = w->granted ? &w->grant :
		      to == &w->file->asleep ? &w->at : &w->number;
	w->place.owner = w->owner;
	nlm_tree_add(to, &w->place);
}

void nlm_freed(struct nlm_file *f, const struct nlm_span *at)
{
	struct nlm_wait *w;

	while ((w = first_wait(f->asleep, at)))
		nlm_wait_put(w, &f->ready);
}

void nlm_freed_of(const struct nlm_wait *grant)
{
	struct nlm_wait *w = NULL;

	while ((w = nlm_asleep_next(grant->file, grant->owner, &grant->at, w)))
		if (w->in == &w->file->asleep)
			nlm_wait_put(w, &w->file->ready);
}

struct nlm_wait *nlm_grant_find(struct nlm_node *grants, uint64_t id)
{
	return first_wait(grants, &(struct nlm_span){ id, id, true });
}

void nlm_due_put(struct nlm_wait *w, struct nlm_node **due)
{
	w->due_at = (struct nlm_span){ w->next_ms, w->next_ms, true };
	w->due = (struct nlm_node){ .at = &w->due_at, .owner = w->owner };
	w->due_in = due;
	nlm_tree_add(due, &w->due);
}

static void leave_due(struct nlm_wait *w)
{
	nlm_tree_del(w->due_in, &w->due);
	w->due_in = NULL;
}

void nlm_due_end(struct nlm_wait *w)
{
	struct nlm_node **due = w->due_in;

	cds_list_del_init(&w->behind);
	if (!due)
		return;
	leave_due(w);
	/* That one was to take the place of this one's call-back. */
	nlm_due_next(w->owner->host, due);
}

void nlm_due_behind(struct nlm_wait *w)
{
	leave_due(w);
	cds_list_add_tail(&w->behind, &w->owner->host->behind);
}

void nlm_due_next(struct nlm_host *h, struct nlm_node **due)
{
	struct nlm_wait *w;

	if (cds_list_empty(&h->behind))
		return;
	w = cds_list_first_entry(&h->behind, struct nlm_wait, behind);
	cds_list_del_init(&w->behind);
	nlm_due_put(w, due);
}

struct nlm_wait *nlm_due_first(struct nlm_node *due, uint64_t ms)
{
	const struct nlm_span until = { 0, ms, true };
	struct nlm_node *n = nlm_tree_find(due, &until, NULL, NULL);

	return n ? container_of(n, struct nlm_wait, due) : NULL;
}

static const struct nlm_span every = { .end = NLM_EOF };

void nlm_foreign_ready(struct nlm_file *f)
{
	struct nlm_wait *w;

	while ((w = first_wait(f->foreign, &every)))
		nlm_wait_put(w, &f->ready);
}

struct nlm_wait *nlm_next_ready(const struct nlm_file *f)
{
	return first_wait(f->ready, &every);
}

void nlm_hold_mark(struct nlm_hold *h)
{
	if (cds_list_empty(&h->marked))
		cds_list_add_tail(&h->marked, &h->file->marked_holds);
}

void nlm_wait_mark(struct nlm_wait *w)
{
	if (cds_list_empty(&w->marked))
		cds_list_add_tail(&w->marked, &w->file->marked_waits);
}
