/* SPDX-License-Identifier: BSD-2-Clause */
/* list - shows the operator who holds and who waits for which locks. */
#include "nlm/proc.h"

#include <stdlib.h>

#include "lib/clock.h"

#define LIST_MAX	200u

/* ---- the walk */

struct lock_walk {
	lock_view_fn *fn;
	void	     *arg;
	unsigned      left;	/* to be shown at most */
	uint64_t      now;
};

static struct lock_party party(const struct nlm_owner *o,
			       const struct nlm_span *at)
{
	struct lock_party p = {
		.addr = &o->host->addr, .host = o->host->name,
		.svid = o->svid, .oh = o->oh, .oh_len = o->oh_len,
	};

	if (at) {
		p.first = at->start;
		p.last = at->end == NLM_EOF ? LOCK_TO_END : at->end;
		p.exclusive = at->exclusive;
	}
	return p;
}

/* @v has the rest. */
static void show_view(struct lock_walk *w, const struct nlm_file *f,
		      uint64_t since, struct lock_view *v)
{
	v->export = f->exp->path;
	v->fileid = f->fileid;
	v->ms = w->now - MIN(since, w->now);
	w->fn(w->arg, v);
	w->left--;
}

static void show_waits(struct lock_walk *w, const struct nlm_file *f)
{
	const struct nlm_range *r;
	const struct nlm_wait *e;

	cds_list_for_each_entry(e, &f->waits, on_file) {
		const bool told = e->granted || e->cut;
		struct lock_view v = {
			.kind = told ? LOCK_TOLD : LOCK_WAITS,
			.owner = party(e->owner, &e->at),
		};

		if (!w->left)
			return;
		r = told ? NULL : nlm_conflict(f, e->owner, &e->at);
		if (r) {
			v.is_blocked = true;
			v.blocker = party(r->hold->owner, &r->at);
		}
		show_view(w, f, e->since_ms, &v);
	}
}

static void show_holds(struct lock_walk *w, const struct nlm_file *f)
{
	const struct nlm_range *r;
	const struct nlm_hold *h;

	cds_list_for_each_entry(h, &f->holds, on_file)
		cds_list_for_each_entry(r, &h->ranges, link) {
			struct lock_view v = {
				.kind = LOCK_HELD,
				.owner = party(h->owner, &r->at),
			};

			if (!w->left)
				return;
			show_view(w, f, r->from.since_ms, &v);
		}
}

static void show_shares(struct lock_walk *w, const struct nlm_file *f)
{
	const struct nlm_share *s;

	cds_list_for_each_entry(s, &f->shares, on_file) {
		struct lock_view v = {
			.kind = LOCK_SHARE, .owner = party(s->owner, NULL),
			.access = s->access, .deny = s->mode,
		};

		if (!w->left)
			return;
		show_view(w, f, s->since_ms, &v);
	}
}

/* Shows the @n things of one kind, which lie in any files. */
static void walk_files(const struct nlm_table *t, struct lock_walk *w,
		       unsigned n,
		       void (*show)(struct lock_walk *w,
				    const struct nlm_file *f))
{
	const unsigned stop = w->left - MIN(n, w->left);
	const struct nlm_file *f;

	for (unsigned i = 0; i < NLM_BUCKETS && w->left > stop; i++)
		cds_list_for_each_entry(f, &t->file[i], link)
			if (w->left > stop)
				show(w, f);
}

void nlm_walk(struct rpc_program *prog, unsigned max, lock_view_fn *fn,
	      void *arg, struct lock_totals *totals)
{
	struct nlm *nlm = prog->ctx;
	const struct nlm_table *t = &nlm->table;
	struct lock_walk w = { .fn = fn, .arg = arg, .left = max };
	uint64_t grace = atomic_load(&nlm->grace_until);

	mutex_lock(&nlm->lock);
	w.now = clock_ms();
	*totals = (struct lock_totals){
		.locks = t->ranges, .waits = t->waits, .shares = t->shares,
		.hosts = t->hosts, .monitored = t->monitored,
		.grace_ms = grace - MIN(w.now, grace),
	};
	/* An operator looks for waits first. */
	walk_files(t, &w, t->waits, show_waits);
	walk_files(t, &w, t->ranges, show_holds);
	walk_files(t, &w, t->shares, show_shares);
	mutex_unlock(&nlm->lock);
}

/* ---- the log's list */

static const char *const kind_text[] = {
	[LOCK_HELD] = "lock of", [LOCK_WAITS] = "lock waited for by",
	[LOCK_TOLD] = "lock being told to", [LOCK_SHARE] = "share of",
};

static void list_view(void *arg, const struct lock_view *v)
{
	const struct lock_party *o = &v->owner;
	FILE *out = arg;

	fprintf(out, "%s %s, process %u: %s", kind_text[v->kind], o->host,
		o->svid, v->export);
	if (v->kind != LOCK_SHARE)
		fprintf(out, ", bytes %llu to ", (unsigned long long)o->first);
	if (v->kind != LOCK_SHARE && o->last == LOCK_TO_END)
		fprintf(out, "the end");
	else if (v->kind != LOCK_SHARE)
		fprintf(out, "%llu", (unsigned long long)o->last);
	fprintf(out, "%s\n", v->kind == LOCK_SHARE || o->exclusive ? "" :
		", shared");
}

void nlm_list(struct rpc_program *prog, FILE *out)
{
	struct lock_totals t;
	char *text = NULL;
	size_t len;
	FILE *views = open_memstream(&text, &len);

	if (!views)
		return;
	nlm_walk(prog, LIST_MAX, list_view, views, &t);
	if (t.grace_ms)
		fprintf(out, "locks: only reclaims for %llu s more\n",
			(unsigned long long)t.grace_ms / 1000 + 1);
	if (t.locks + t.waits + t.shares)
		fprintf(out, "locks: %u of %u clients, %u waiters, %u shares\n",
			t.locks, t.hosts, t.waits, t.shares);
	if (fclose(views) == 0)
		fputs(text, out);
	free(text);
}
