/* SPDX-License-Identifier: BSD-2-Clause */
/* ranges - the bytes that an owner has locked, conflicts, deadlocks.  Pure,
 * except for the time at which each lock began. */
#include "nlm/table.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/clock.h"
#include "lib/util.h"

/* The most ranges that a search for a deadlock looks at: it keeps
 * nlm->lock all the while.  A search that would take longer finds none: a
 * client's wait can be interrupted. */
#define SEARCH_MAX	16384u

static struct nlm_range *range_of_file(struct nlm_node *n)
{
	return n ? container_of(n, struct nlm_range, of_file) : NULL;
}

const struct nlm_range *nlm_conflict(const struct nlm_file *f,
				     const struct nlm_owner *o,
				     const struct nlm_span *at)
{
	return range_of_file(nlm_tree_find(f->ranges, at, o, NULL));
}

/* The first range of @h that overlaps @at; or NULL. */
static struct nlm_range *first_within(const struct nlm_hold *h,
				      const struct nlm_span *at)
{
	const struct nlm_span any = { at->start, at->end, true };
	struct nlm_node *n = nlm_tree_find(h->tree, &any, NULL, NULL);

	return n ? container_of(n, struct nlm_range, of_hold) : NULL;
}

/* The range of @h after @r; NULL: that was the last one that overlaps @at. */
static struct nlm_range *next_within(const struct nlm_hold *h,
				     const struct nlm_range *r,
				     const struct nlm_span *at)
{
	struct nlm_range *next = cds_list_entry(r->link.next, struct nlm_range,
						link);

	return &next->link != &h->ranges && nlm_overlap(&next->at, at) ? next :
	       NULL;
}

#define for_each_within(r, h, at) \
	for ((r) = first_within(h, at); r; (r) = next_within(h, r, at))

bool nlm_hold_has_any(const struct nlm_file *f, const struct nlm_owner *o,
		      const struct nlm_span *at)
{
	const struct nlm_hold *h = nlm_hold_find(f, o);
	const struct nlm_range *r;

	if (!h)
		return false;
	for_each_within(r, h, at)
		if (r->at.exclusive >= at->exclusive)
			return true;
	return false;
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
	struct nlm_node *n = NULL;

	while ((n = nlm_tree_find(f->ranges, at, waits, n))) {
		struct nlm_owner *o = range_of_file(n)->hold->owner;

		if (s->steps++ >= SEARCH_MAX)
			return false;
		if (o == who)
			return true;
		if (o->seen == s->number || cds_list_empty(&o->waits))
			continue;
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

	/* No one waits for an owner that holds nothing. */
	if (cds_list_empty(&o->holds))
		return false;
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

	*s = (struct nlm_spare){ 0 };
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

bool nlm_may_clear(const struct nlm_table *t, const struct nlm_hold *h,
		   const struct nlm_span *at)
{
	const struct nlm_limits *l = &t->limits;
	const struct nlm_range *r = first_within(h, at);

	if (!r || r->at.start >= at->start || r->at.end <= at->end)
		return true;
	return t->ranges < 2 * l->ranges &&
	       h->file->nranges < 2 * l->file_ranges &&
	       nlm_ranges_of(t, &h->owner->host->addr) < 2 * l->client_ranges;
}

bool nlm_file_has_room(const struct nlm_table *t, const struct nlm_file *f)
{
	return f->nranges + ARRAY_SIZE(((struct nlm_spare *)0)->range) <=
	       t->limits.file_ranges;
}

void nlm_spare_put(struct nlm_spare *s)
{
	for (unsigned i = 0; i < ARRAY_SIZE(s->range); i++) {
		free(s->range[i]);
		s->range[i] = NULL;
	}
}

/* Enters a range into the trees of its file and hold. */
static void plant(struct nlm_range *r)
{
	r->of_file.at = r->of_hold.at = &r->at;
	r->of_file.owner = r->of_hold.owner = r->hold->owner;
	nlm_tree_add(&r->hold->file->ranges, &r->of_file);
	nlm_tree_add(&r->hold->tree, &r->of_hold);
}

static void uproot(struct nlm_range *r)
{
	nlm_tree_del(&r->hold->file->ranges, &r->of_file);
	nlm_tree_del(&r->hold->tree, &r->of_hold);
}

static void resize(struct nlm_range *r, uint64_t start, uint64_t end)
{
	uproot(r);
	r->at.start = start;
	r->at.end = end;
	plant(r);
}

/* A spare, as the range @at, before @next; its caller sets its origin. */
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
	r->hold = h;
	cds_list_add_tail(&r->link, next);
	plant(r);
	t->ranges++;
	h->file->nranges++;
	nlm_count(h->owner->host, NLM_RANGES, 1);
	return r;
}

static void take(struct nlm_table *t, struct nlm_hold *h, struct nlm_range *r)
{
	uproot(r);
	cds_list_del(&r->link);
	free(r);
	t->ranges--;
	h->file->nranges--;
	nlm_count(h->owner->host, NLM_RANGES, -1);
}

/* Takes the bytes of @at away from @h. */
static void cut_out(struct nlm_table *t, struct nlm_hold *h,
		    const struct nlm_span *at, struct nlm_spare *s)
{
	struct nlm_range *r = first_within(h, at), *next;

	for (; r; r = next) {
		next = next_within(h, r, at);
		if (r->at.start < at->start && r->at.end > at->end) {
			struct nlm_span rest = r->at;

			rest.start = at->end + 1;
			resize(r, r->at.start, at->start - 1);
			put_before(t, h, r->link.next, &rest, s)->from =
				r->from;
			return;
		}
		if (r->at.start < at->start)
			resize(r, r->at.start, at->start - 1);
		else if (r->at.end > at->end)
			resize(r, at->end + 1, r->at.end);
		else
			take(t, h, r);
	}
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

/* Tells waiters that @h lets go of its bytes of @at: of the exclusive ones, or
 * of @all. */
static void tell_freed(const struct nlm_hold *h, const struct nlm_span *at,
		       bool all)
{
	const struct nlm_range *r;

	if (!h->file->asleep)
		return;
	for_each_within(r, h, at)
		if (all || r->at.exclusive) {
			const struct nlm_span freed = common(&r->at, at);

			nlm_freed(h->file, &freed);
		}
}

void nlm_range_clear(struct nlm_table *t, struct nlm_hold *h,
		     const struct nlm_span *at, struct nlm_spare *s)
{
	tell_freed(h, at, true);
	cut_out(t, h, at, s);
}

/* Joins @b to @a, the range before it, if they are one. */
static void join_ranges(struct nlm_table *t, struct nlm_hold *h,
			struct nlm_range *a, struct nlm_range *b)
{
	uint64_t end;

	if (&a->link == &h->ranges || &b->link == &h->ranges ||
	    a->at.exclusive != b->at.exclusive ||
	    a->from.state != b->from.state || a->from.older != b->from.older ||
	    a->at.end + 1 != b->at.start)
		return;
	end = b->at.end;
	a->from.since_ms = MIN(a->from.since_ms, b->from.since_ms);
	take(t, h, b);
	resize(a, a->at.start, end);
}

/*
 * @o is the origin of bytes that a LOCK locks.  Some were locked before, by
 * @old, of the @same kind or not.
 *
 * If these were locked in another state, the host has restarted; or that
 * LOCK or this one is late; or the state went backwards.  Nothing tells which.
 * So a restart in either of the two states keeps the bytes.
 */
static void add_origin(struct nlm_origin *o, const struct nlm_origin *old,
		       bool same)
{
	uint32_t other = old->state == o->state ? old->older : old->state;

	if (same)
		o->since_ms = MIN(o->since_ms, old->since_ms);
	if (nlm_is_newer(other, o->older))
		o->older = other;
}

static struct nlm_origin sorted(struct nlm_origin o)
{
	if (nlm_is_newer(o.older, o.state))
		return (struct nlm_origin){ o.since_ms, o.older, o.state };
	return o;
}

/* The origin of @at after a LOCK in @state: the owner has it since it got the
 * first of the bytes that it has as such, or now. */
static struct nlm_origin origin_of(const struct nlm_hold *h,
				   const struct nlm_span *at, uint32_t state)
{
	struct nlm_origin o = { .since_ms = clock_ms(), .state = state };
	const struct nlm_range *r;

	for_each_within(r, h, at)
		add_origin(&o, &r->from, r->at.exclusive == at->exclusive);
	return sorted(o);
}

/* The same, if the owner had only the bytes of w->before. */
static struct nlm_origin origin_before(const struct nlm_wait *w,
				       const struct nlm_span *at,
				       uint32_t state)
{
	struct nlm_origin o = { .since_ms = clock_ms(), .state = state };
	const struct nlm_part *b = w->before;

	for (unsigned i = 0; i < w->nbefore; i++)
		if (nlm_overlap(&b[i].at, at))
			add_origin(&o, &b[i].from,
				   b[i].at.exclusive == at->exclusive);
	return sorted(o);
}

static bool has_all(const struct nlm_range *r, const struct nlm_span *at,
		    const struct nlm_origin *from)
{
	return r->at.exclusive == at->exclusive && r->at.start <= at->start &&
	       r->at.end >= at->end && r->from.state == from->state &&
	       r->from.older == from->older;
}

void nlm_range_set(struct nlm_table *t, struct nlm_hold *h,
		   const struct nlm_span *at, uint32_t state,
		   struct nlm_spare *s)
{
	const struct nlm_part p = { *at, origin_of(h, at, state) };

	nlm_range_restore(t, h, &p, s);
}

void nlm_range_restore(struct nlm_table *t, struct nlm_hold *h,
		       const struct nlm_part *p, struct nlm_spare *s)
{
	const struct nlm_span *at = &p->at;
	const struct nlm_span behind = { at->end + 1, UINT64_MAX, true };
	struct cds_list_head *next;
	struct nlm_range *r = first_within(h, at);

	if (r && has_all(r, at, &p->from))
		return;
	if (!at->exclusive)
		tell_freed(h, at, false);
	cut_out(t, h, at, s);
	r = first_within(h, &behind);
	next = r ? &r->link : &h->ranges;
	r = put_before(t, h, next, at, s);
	r->from = p->from;
	join_ranges(t, h, r, cds_list_entry(next, struct nlm_range, link));
	next = r->link.prev;
	join_ranges(t, h, cds_list_entry(next, struct nlm_range, link), r);
}

void nlm_range_keep(struct nlm_table *t, struct nlm_hold *h,
		    struct nlm_range *r, uint32_t state)
{
	r->from.state = state;
	r->from.older = 0;
	join_ranges(t, h, cds_list_entry(r->link.prev, struct nlm_range, link),
		    r);
}

/* The ranges of @h that overlap @at. */
static unsigned count_ranges(const struct nlm_hold *h,
			     const struct nlm_span *at)
{
	const struct nlm_range *r;
	unsigned n = 0;

	for_each_within(r, h, at)
		n++;
	return n;
}

bool nlm_wait_trim(struct nlm_wait *w, const struct nlm_hold *h)
{
	/* Each of both lists has its spans in order, and apart. */
	struct nlm_part *left = calloc(w->nbefore + count_ranges(h, &w->at) + 1,
				       sizeof(*left));
	const struct nlm_part *b = w->before;
	const struct nlm_range *r;
	unsigned n = 0;

	if (!left)
		return false;
	for (unsigned i = 0; i < w->nbefore; i++)
		for_each_within(r, h, &b[i].at)
			left[n++] = (struct nlm_part){
				common(&r->at, &b[i].at), b[i].from };
	nlm_wait_forget(w);
	w->before = left;
	w->nbefore = n;
	return true;
}

/* Appends the bytes of @p from @start to @end, if any. */
static void put_part(struct nlm_part *list, unsigned *n,
		     const struct nlm_part *p, uint64_t start, uint64_t end)
{
	if (start > end)
		return;
	list[*n] = *p;
	list[*n].at.start = start;
	list[(*n)++].at.end = end;
}

bool nlm_wait_keep(struct nlm_wait *w, const struct nlm_span *at,
		   uint32_t state)
{
	const struct nlm_part p = { *at, origin_before(w, at, state) };
	const uint64_t start = MAX(at->start, w->at.start);
	const uint64_t end = MIN(at->end, w->at.end);
	struct nlm_part *list = calloc(w->nbefore + 2, sizeof(*list));
	const struct nlm_part *b = w->before;
	unsigned n = 0, i;

	if (!list)
		return false;
	for (i = 0; i < w->nbefore && b[i].at.start < start; i++)
		put_part(list, &n, &b[i], b[i].at.start,
			 MIN(b[i].at.end, start - 1));
	put_part(list, &n, &p, start, end);
	for (i = 0; i < w->nbefore; i++)
		put_part(list, &n, &b[i], MAX(b[i].at.start, end + 1),
			 b[i].at.end);
	nlm_wait_forget(w);
	w->before = list;
	w->nbefore = n;
	return true;
}

bool nlm_wait_has_left(const struct nlm_wait *w)
{
	const struct nlm_hold *h = nlm_hold_find(w->file, w->owner);

	return h && first_within(h, &w->at);
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
	for_each_within(r, h, &w->at)
		w->before[w->nbefore++] = (struct nlm_part){
			common(&r->at, &w->at), r->from };
	return true;
}

void nlm_wait_restarted(struct nlm_wait *w, uint32_t state)
{
	unsigned n = 0;

	for (unsigned i = 0; i < w->nbefore; i++) {
		struct nlm_part *p = &w->before[n];

		if (!nlm_is_kept(&w->before[i].from, state))
			continue;
		*p = w->before[i];
		p->from.state = state;
		p->from.older = 0;
		n++;
	}
	w->nbefore = n;
}
