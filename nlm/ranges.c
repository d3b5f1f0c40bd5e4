/* SPDX-License-Identifier: BSD-2-Clause */
/* ranges - the bytes that an owner has locked, conflicts, deadlocks.  Pure, but
 * for the time at which each lock began. */
#include "nlm/table.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>

#include "lib/clock.h"
#include "lib/util.h"

/* The most holds and ranges that a search for a deadlock looks at: it keeps
 * nlm->lock all the while.  A search that would take longer finds none: a
 * client's wait can be interrupted. */
#define SEARCH_MAX	65536u

/* Adds the ranges that it looked at to *@steps. */
static const struct nlm_range *in_the_way(const struct nlm_hold *h,
					  const struct nlm_span *at,
					  unsigned *steps)
{
	const struct nlm_range *r;

	cds_list_for_each_entry(r, &h->ranges, link) {
		++*steps;
		if (r->at.start > at->end)
			break;
		if (nlm_overlap(&r->at, at) &&
		    (r->at.exclusive || at->exclusive))
			return r;
	}
	return NULL;
}

const struct nlm_range *nlm_conflict_within(const struct nlm_file *f,
					    const struct nlm_owner *o,
					    const struct nlm_span *at,
					    struct nlm_hold **hold,
					    unsigned *budget)
{
	const struct nlm_range *r = NULL;
	struct nlm_hold *h;
	unsigned steps = 0;

	cds_list_for_each_entry(h, &f->holds, on_file) {
		if (steps >= *budget)
			break;
		steps++;
		r = h->owner == o ? NULL : in_the_way(h, at, &steps);
		if (r) {
			*hold = h;
			break;
		}
	}
	*budget -= MIN(steps, *budget);
	return r;
}

const struct nlm_range *nlm_conflict(const struct nlm_file *f,
				     const struct nlm_owner *o,
				     const struct nlm_span *at,
				     struct nlm_hold **hold)
{
	unsigned all = UINT_MAX;

	return nlm_conflict_within(f, o, at, hold, &all);
}

bool nlm_hold_covers(const struct nlm_file *f, const struct nlm_owner *o,
		     const struct nlm_span *at)
{
	const struct nlm_hold *h = nlm_hold_find(f, o);
	uint64_t from = at->start;
	const struct nlm_range *r;

	if (!h)
		return false;
	cds_list_for_each_entry(r, &h->ranges, link)
		if (r->at.start <= from && r->at.end >= from &&
		    r->at.exclusive >= at->exclusive)
			from = r->at.end + 1;
	return from > at->end;
}

/* Owners that were found and not looked at yet. */
struct search {
	struct nlm_owner *first;
	uint64_t	  number;
	unsigned	  steps;
};

/* Finds the owners that @at waits for.  True: @who is one of them. */
static bool find_holders(struct search *s, const struct nlm_file *f,
			 const struct nlm_owner *waits,
			 const struct nlm_span *at, const struct nlm_owner *who)
{
	struct nlm_hold *h;

	cds_list_for_each_entry(h, &f->holds, on_file) {
		struct nlm_owner *o = h->owner;

		if (s->steps++ >= SEARCH_MAX)
			return false;
		if (o == waits || o->seen == s->number ||
		    !in_the_way(h, at, &s->steps))
			continue;
		if (o == who)
			return true;
		o->seen = s->number;
		o->next = s->first;
		s->first = o;
	}
	return false;
}

bool nlm_deadlock(struct nlm_table *t, const struct nlm_file *f,
		  struct nlm_owner *o, const struct nlm_span *at)
{
	struct search s = { .number = ++t->search };
	const struct nlm_wait *w;
	struct nlm_owner *next;

	find_holders(&s, f, o, at, o);
	while (s.first && s.steps < SEARCH_MAX) {
		next = s.first;
		s.first = next->next;
		cds_list_for_each_entry(w, &next->waits, on_owner)
			if (!w->granted && !w->cut &&
			    find_holders(&s, w->file, next, &w->at, o))
				return true;
	}
	return false;
}

bool nlm_spare_get(const struct nlm_table *t, const struct nlm_host *h,
		   bool limit, struct nlm_spare *s)
{
	const unsigned n = ARRAY_SIZE(s->range);

	*s = (struct nlm_spare){ { NULL } };
	if (limit && !nlm_has_room(t, &h->addr, NLM_RANGES, n))
		return false;
	for (unsigned i = 0; i < n; i++) {
		s->range[i] = malloc(sizeof(*s->range[i]));
		if (!s->range[i]) {
			nlm_spare_put(s);
			return false;
		}
	}
	return true;
}

void nlm_spare_put(struct nlm_spare *s)
{
	for (unsigned i = 0; i < ARRAY_SIZE(s->range); i++) {
		free(s->range[i]);
		s->range[i] = NULL;
	}
}

/* A spare, as the range @at, before @next; its caller sets since_ms. */
static struct nlm_range *put_before(struct nlm_table *t, struct nlm_hold *h,
				    struct cds_list_head *next,
				    const struct nlm_span *at,
				    struct nlm_spare *s)
{
	struct nlm_range **spare = &s->range[s->range[0] ? 0 : 1];
	struct nlm_range *r = *spare;

	assert(r);
	*spare = NULL;
	r->at = *at;
	cds_list_add_tail(&r->link, next);
	t->ranges++;
	h->owner->host->ranges++;
	return r;
}

static void take(struct nlm_table *t, struct nlm_hold *h, struct nlm_range *r)
{
	cds_list_del(&r->link);
	free(r);
	t->ranges--;
	h->owner->host->ranges--;
}

void nlm_range_clear(struct nlm_table *t, struct nlm_hold *h,
		     const struct nlm_span *at, struct nlm_spare *s)
{
	struct nlm_range *r, *next;

	cds_list_for_each_entry_safe(r, next, &h->ranges, link) {
		if (!nlm_overlap(&r->at, at))
			continue;
		if (r->at.start < at->start && r->at.end > at->end) {
			struct nlm_span rest = r->at;

			rest.start = at->end + 1;
			put_before(t, h, r->link.next, &rest, s)->since_ms =
				r->since_ms;
			r->at.end = at->start - 1;
			return;
		}
		if (r->at.start < at->start)
			r->at.end = at->start - 1;
		else if (r->at.end > at->end)
			r->at.start = at->end + 1;
		else
			take(t, h, r);
	}
}

/* Joins @b to @a, the range before it, if they are one. */
static void join_ranges(struct nlm_table *t, struct nlm_hold *h,
			struct nlm_range *a, struct nlm_range *b)
{
	if (&a->link == &h->ranges || &b->link == &h->ranges ||
	    a->at.exclusive != b->at.exclusive ||
	    a->at.end + 1 != b->at.start)
		return;
	a->at.end = b->at.end;
	a->since_ms = MIN(a->since_ms, b->since_ms);
	take(t, h, b);
}

/* When the owner got the first of the bytes of @at that it has as such; now if
 * there are none. */
static uint64_t held_since(const struct nlm_hold *h, const struct nlm_span *at)
{
	uint64_t since = clock_ms();
	const struct nlm_range *r;

	cds_list_for_each_entry(r, &h->ranges, link)
		if (nlm_overlap(&r->at, at) && r->at.exclusive == at->exclusive)
			since = MIN(since, r->since_ms);
	return since;
}

void nlm_range_set(struct nlm_table *t, struct nlm_hold *h,
		   const struct nlm_span *at, struct nlm_spare *s)
{
	const uint64_t since = held_since(h, at);
	struct cds_list_head *next;
	struct nlm_range *r;

	nlm_range_clear(t, h, at, s);
	for (next = h->ranges.next; next != &h->ranges; next = next->next)
		if (cds_list_entry(next, struct nlm_range, link)->at.start >
		    at->end)
			break;
	r = put_before(t, h, next, at, s);
	r->since_ms = since;
	join_ranges(t, h, r, cds_list_entry(next, struct nlm_range, link));
	next = r->link.prev;
	join_ranges(t, h, cds_list_entry(next, struct nlm_range, link), r);
}

/* The ranges of @h that overlap @at. */
static unsigned count_ranges(const struct nlm_hold *h,
			     const struct nlm_span *at)
{
	const struct nlm_range *r;
	unsigned n = 0;

	cds_list_for_each_entry(r, &h->ranges, link)
		n += nlm_overlap(&r->at, at);
	return n;
}

static struct nlm_span common(const struct nlm_span *a,
			      const struct nlm_span *b)
{
	return (struct nlm_span){
		.start = MAX(a->start, b->start), .end = MIN(a->end, b->end),
		/* A shared part could not be made exclusive again. */
		.exclusive = a->exclusive && b->exclusive,
	};
}

bool nlm_wait_trim(struct nlm_wait *w, const struct nlm_hold *h)
{
	/* Each of both lists has its spans in order, and apart. */
	struct nlm_span *left = calloc(w->nbefore + count_ranges(h, &w->at) + 1,
				       sizeof(*left));
	const struct nlm_range *r;
	unsigned n = 0;

	if (!left)
		return false;
	for (unsigned i = 0; i < w->nbefore; i++)
		cds_list_for_each_entry(r, &h->ranges, link)
			if (nlm_overlap(&r->at, &w->before[i]))
				left[n++] = common(&r->at, &w->before[i]);
	nlm_wait_forget(w);
	w->before = left;
	w->nbefore = n;
	return true;
}

/* Appends the bytes from @start to @end, if there are any, with @mode's. */
static void put_part(struct nlm_span *list, unsigned *n, uint64_t start,
		     uint64_t end, bool exclusive)
{
	if (start <= end)
		list[(*n)++] = (struct nlm_span){ start, end, exclusive };
}

bool nlm_wait_keep(struct nlm_wait *w, const struct nlm_span *at)
{
	const uint64_t start = MAX(at->start, w->at.start);
	const uint64_t end = MIN(at->end, w->at.end);
	struct nlm_span *list = calloc(w->nbefore + 2, sizeof(*list));
	const struct nlm_span *b = w->before;
	unsigned n = 0, i;

	if (!list)
		return false;
	/* The spans are in order, and apart. */
	for (i = 0; i < w->nbefore && b[i].start < start; i++)
		put_part(list, &n, b[i].start, MIN(b[i].end, start - 1),
			 b[i].exclusive);
	put_part(list, &n, start, end, at->exclusive);
	for (i = 0; i < w->nbefore; i++)
		put_part(list, &n, MAX(b[i].start, end + 1), b[i].end,
			 b[i].exclusive);
	nlm_wait_forget(w);
	w->before = list;
	w->nbefore = n;
	return true;
}

bool nlm_wait_has_left(const struct nlm_wait *w)
{
	const struct nlm_hold *h = nlm_hold_find(w->file, w->owner);

	return h && count_ranges(h, &w->at) > 0;
}

void nlm_wait_forget(struct nlm_wait *w)
{
	free(w->before);
	w->before = NULL;
	w->nbefore = 0;
}

bool nlm_wait_note(struct nlm_wait *w, const struct nlm_hold *h)
{
	const struct nlm_range *r;

	nlm_wait_forget(w);
	w->before = calloc(count_ranges(h, &w->at) + 1, sizeof(*w->before));
	if (!w->before)
		return false;
	cds_list_for_each_entry(r, &h->ranges, link)
		if (nlm_overlap(&r->at, &w->at))
			w->before[w->nbefore++] = common(&r->at, &w->at);
	return true;
}
