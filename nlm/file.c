/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * file - one file's locks: its turn, the backend, and waiters.
 *
 * One thread at a time changes the locks of a file: the thread that has the
 * file's turn.  It asks the backend without nlm->lock, since that can take
 * long, and changes the table under that lock: so a thread that has either of
 * them sees the file's locks stand still.
 *
 * Threads that must not wait for a turn mark a thing: a hold is dropped, a
 * waiter's client has answered.  The next turn acts on the mark; a job on one
 * of the export's workers is such a turn.
 */
#include "nlm/proc.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/clock.h"
#include "lib/stats.h"
#include "rpc/share.h"

STAT(nlm_waits_granted, "locks granted to clients that waited for them");
STAT(nlm_waits_tried, "waiting locks tried again because bytes were freed");
STAT(nlm_foreign, "locks found to be held by local processes or other servers");

struct nlm_file *nlm_file_get(struct nlm *nlm, struct export_tree *exp,
			      const struct vfs_handle *h,
			      const uint64_t *fileid)
{
	struct nlm_file *f;

	mutex_lock(&nlm->lock);
	f = nlm_file_find(&nlm->table, exp->fs, h);
	if (!f && fileid) {
		f = nlm_file_add(&nlm->table, exp->fs, h);
		if (f) {
			f->nlm = nlm;
			f->fileid = *fileid;
			f->exp = exp;
			f->departures = atomic_load(&exp->departures);
			ref_get(&exp->ref);
			/* The thread sleeps until the first file or host. */
			if (nlm->table.files == 1 && nlm->table.hosts == 0)
				pthread_cond_signal(&nlm->wake);
		}
	}
	if (f)
		f->refs++;
	mutex_unlock(&nlm->lock);
	return f;
}

void nlm_file_put(struct nlm *nlm, struct nlm_file *f)
{
	struct vfs_node *node = NULL;
	struct export_tree *exp = NULL;

	mutex_lock(&nlm->lock);
	/* No thread has the turn, or can get it. */
	if (--f->refs == 0 && cds_list_empty(&f->holds) &&
	    cds_list_empty(&f->waits)) {
		node = f->node;
		f->node = NULL;
	}
	if (nlm_file_idle(f)) {
		exp = f->exp;
		nlm_file_free(&nlm->table, f);
	}
	mutex_unlock(&nlm->lock);
	vfs_node_put(node);
	if (exp)
		export_put(exp);
}

/* ---- the backend */

static int ask(struct nlm_file *f, struct vfs_node *node, struct vfs_lock *l)
{
	struct vfs_op op = { .node = node, .lock = l };

	if (!f->fs->ops->lock)
		return 0;
	return f->fs->ops->lock(&op);
}

static struct vfs_lock lock_of(enum vfs_lock_how how, struct nlm_hold *h,
			       const struct nlm_span *at)
{
	return (struct vfs_lock){
		.how = how, .locker = h ? &h->locker : NULL,
		.off = at->start, .exclusive = at->exclusive,
		.len = at->end == NLM_EOF ? 0 : at->end - at->start + 1,
	};
}

int nlm_foreign_test(struct nlm_file *f, struct vfs_node *node,
		     struct nlm_hold *own, const struct nlm_span *at,
		     struct vfs_lock *out)
{
	*out = lock_of(VFS_LOCK_TEST, own, at);
	return ask(f, node, out);
}

int nlm_hold_clear(struct nlm *nlm, struct nlm_hold *h,
		   const struct nlm_span *at)
{
	struct vfs_lock l = lock_of(VFS_LOCK_CLEAR, h, at);
	struct nlm_spare spare;
	int err;

	if (!nlm_spare_get(&nlm->table, h->owner->host, false, &spare))
		return -ENOLCK;
	err = ask(h->file, h->file->node, &l);
	if (err == 0) {
		mutex_lock(&nlm->lock);
		nlm_range_clear(&nlm->table, h, at, &spare);
		mutex_unlock(&nlm->lock);
	}
	nlm_spare_put(&spare);
	return err;
}

/* Unlocks the bytes from @start to the one before @next, if any. */
static void clear_gap(struct nlm *nlm, struct nlm_hold *h, uint64_t start,
		      uint64_t next)
{
	if (start < next)
		nlm_hold_clear(nlm, h, &(struct nlm_span){
			       .start = start, .end = next - 1 });
}

/* Locks the bytes of @p by @l: again as they were, if that says so, else by a
 * LOCK in the state of @p. */
static int set_bytes(struct nlm *nlm, struct nlm_hold *h, struct vfs_lock *l,
		     const struct nlm_part *p)
{
	/* The limits are for more locks than an owner had before. */
	const bool limit = !l->back;
	struct nlm_table *t = &nlm->table;
	struct nlm_spare spare;
	bool room;
	int err;

	mutex_lock(&nlm->lock);
	room = (!limit || nlm_file_has_room(t, h->file)) &&
	       nlm_spare_get(t, h->owner->host, limit, &spare);
	l->client_held = nlm_client_count(t, &h->owner->host->addr, NLM_HELD);
	mutex_unlock(&nlm->lock);
	if (!room)
		return -ENOLCK;
	err = ask(h->file, h->file->node, l);
	if (err == 1)
		stat_inc(nlm_foreign);
	mutex_lock(&nlm->lock);
	nlm_hold_note(h);
	if (err == 0 && l->back)
		nlm_range_restore(t, h, p, &spare);
	else if (err == 0)
		nlm_range_set(t, h, &p->at, p->from.state, &spare);
	mutex_unlock(&nlm->lock);
	nlm_spare_put(&spare);
	return err;
}

/* Gives the owner its earlier locks back, which never conflict with others. */
static void put_back(struct nlm *nlm, struct nlm_hold *h,
		     const struct nlm_wait *w)
{
	uint64_t start = w->at.start;

	for (unsigned i = 0; i < w->nbefore; i++) {
		const struct nlm_part *p = &w->before[i];
		struct vfs_lock l = lock_of(VFS_LOCK_SET, h, &p->at);

		clear_gap(nlm, h, start, p->at.start);
		l.back = true;
		set_bytes(nlm, h, &l, p);
		start = p->at.end + 1;
	}
	clear_gap(nlm, h, start, w->at.end + 1);
}

/* Undoes @at, a LOCK that came too late. */
static int undo_late(struct nlm *nlm, struct nlm_hold *h,
		     const struct nlm_span *at)
{
	struct nlm_wait w = { .at = *at };

	/* Without memory the owner loses the whole range. */
	mutex_lock(&nlm->lock);
	nlm_wait_note(&w, h);
	mutex_unlock(&nlm->lock);
	put_back(nlm, h, &w);
	free(w.before);
	return -ETIMEDOUT;
}

int nlm_hold_set(struct nlm *nlm, struct nlm_hold *h,
		 const struct nlm_span *at, uint32_t state, bool reclaim)
{
	const struct nlm_part p = { *at, { .state = state } };
	struct vfs_lock l = lock_of(VFS_LOCK_SET, h, at);
	int err;

	l.reclaim = reclaim;
	err = set_bytes(nlm, h, &l, &p);
	return err == VFS_LOCK_LATE ? undo_late(nlm, h, at) : err;
}

void nlm_hold_tidy(struct nlm *nlm, struct nlm_hold *h)
{
	static const struct nlm_span all = { .end = NLM_EOF };
	struct vfs_lock l = lock_of(VFS_LOCK_RELEASE, h, &all);
	struct nlm_owner *o = h->owner;

	if (!cds_list_empty(&h->ranges))
		return;
	mutex_lock(&nlm->lock);
	l.reclaim = nlm->stops;
	mutex_unlock(&nlm->lock);
	ask(h->file, h->file->node, &l);
	mutex_lock(&nlm->lock);
	nlm_hold_free(h);
	nlm_owner_tidy(&nlm->table, o);
	mutex_unlock(&nlm->lock);
}

/* Takes the bytes @at away, whole ranges of @h. */
static void drop_bytes(struct nlm *nlm, struct nlm_hold *h,
		       const struct nlm_span *at)
{
	struct nlm_spare none = { 0 };	/* nothing is split */

	mutex_lock(&nlm->lock);
	nlm_range_clear(&nlm->table, h, at, &none);
	mutex_unlock(&nlm->lock);
}

/* If the backend fails, it keeps the bytes until the last ones of @h go. */
static void drop_others(struct nlm *nlm, struct nlm_hold *h, uint32_t kept)
{
	struct nlm_range *r, *next;
	struct nlm_span at;
	struct vfs_lock l;

	cds_list_for_each_entry_safe(r, next, &h->ranges, link) {
		if (nlm_is_kept(&r->from, kept)) {
			/* If the host reaches the newer state again, it has
			 * restarted. */
			mutex_lock(&nlm->lock);
			nlm_range_keep(&nlm->table, h, r, kept);
			mutex_unlock(&nlm->lock);
			continue;
		}
		at = r->at;
		l = lock_of(VFS_LOCK_CLEAR, h, &at);
		ask(h->file, h->file->node, &l);
		drop_bytes(nlm, h, &at);
	}
}

/* Locks that a refused grant would give back to @h's owner have ended, too. */
static void drop_before(struct nlm *nlm, struct nlm_hold *h, uint32_t kept)
{
	const struct nlm_span all = { 0, NLM_EOF, true };
	struct nlm_wait *w = NULL;

	mutex_lock(&nlm->lock);
	while ((w = nlm_grant_next(h->file, h->owner, &all, w)))
		nlm_wait_restarted(w, kept);
	mutex_unlock(&nlm->lock);
}

/* Takes the hold's locks away, except locks in the state @kept, which is the
 * host's now; 0: all of them. */
static void drop_hold(struct nlm *nlm, struct nlm_hold *h, uint32_t kept)
{
	static const struct nlm_span all = { .end = NLM_EOF };
	const struct nlm_range *r;
	bool some = false;

	cds_list_for_each_entry(r, &h->ranges, link)
		some |= nlm_is_kept(&r->from, kept);
	drop_before(nlm, h, kept);
	if (some)
		drop_others(nlm, h, kept);
	else
		drop_bytes(nlm, h, &all);
	nlm_hold_tidy(nlm, h);
}

/* ---- waiters */

void nlm_wait_end(struct nlm *nlm, struct nlm_wait *w)
{
	struct nlm_owner *o = w->owner;

	mutex_lock(&nlm->lock);
	nlm_wait_free(&nlm->table, w);
	nlm_owner_tidy(&nlm->table, o);
	mutex_unlock(&nlm->lock);
}

void nlm_wait_undo(struct nlm *nlm, struct nlm_wait *w)
{
	struct nlm_hold *h;

	mutex_lock(&nlm->lock);
	h = w->granted || w->cut ? nlm_hold_find(w->file, w->owner) : NULL;
	/* Another owner can have locked bytes that this one has unlocked
	 * since. */
	if (h && !nlm_wait_trim(w, h))
		w->nbefore = 0;
	mutex_unlock(&nlm->lock);
	if (h)
		put_back(nlm, h, w);
	/* The owner goes with the last of the two. */
	nlm_wait_end(nlm, w);
	if (h)
		nlm_hold_tidy(nlm, h);
}

/*
 * Under nlm->lock.  True while the client's answer for bytes of @w is awaited:
 * we know which bytes it has after a refusal only if one grant at a time is
 * open.  The rest of a grant that was cut becomes the owner's.
 */
static bool is_behind_grant(struct nlm *nlm, const struct nlm_wait *w)
{
	struct nlm_wait *o;

	while ((o = nlm_grant_next(w->file, w->owner, &w->at, NULL)) && o->cut)
		nlm_wait_free(&nlm->table, o);
	return o != NULL;
}

/* Gives @w, which is ready, its lock if nothing is in the way. */
static void grant(struct nlm *nlm, struct nlm_file *f, struct nlm_wait *w)
{
	struct nlm_hold *h;
	bool noted = false;
	int err = -ENOMEM;

	mutex_lock(&nlm->lock);
	stat_inc(nlm_waits_tried);
	nlm_wait_put(w, NULL);
	/* Its mark ends one that was dropped. */
	if (w->dropped || nlm_conflict(f, w->owner, &w->at) ||
	    is_behind_grant(nlm, w)) {
		nlm_wait_put(w, &f->asleep);
		mutex_unlock(&nlm->lock);
		return;
	}
	h = nlm_hold_make(nlm, f, w->owner);
	noted = h && nlm_wait_note(w, h);
	mutex_unlock(&nlm->lock);
	if (noted)
		err = nlm_hold_set(nlm, h, &w->at, w->state, false);
	mutex_lock(&nlm->lock);
	if (err) {
		nlm_wait_put(w, &f->foreign);
		mutex_unlock(&nlm->lock);
		if (h)
			nlm_hold_tidy(nlm, h);
		return;
	}
	w->granted = true;
	w->id = nlm->next_grant += NLM_CALL_BACKS;
	nlm_wait_put(w, &nlm->grants);
	/* The mark of a waiter that was dropped meanwhile undoes the grant; its
	 * client gets no call. */
	if (!w->dropped) {
		stat_inc(nlm_waits_granted);
		nlm_due_put(w, &nlm->due);
		pthread_cond_signal(&nlm->wake);
	}
	mutex_unlock(&nlm->lock);
}

/* Gives ready waiters their locks, in order, as far as nothing is in the
 * way. */
static void grant_ready(struct nlm *nlm, struct nlm_file *f)
{
	struct nlm_wait *w;

	for (;;) {
		mutex_lock(&nlm->lock);
		w = nlm_next_ready(f);
		mutex_unlock(&nlm->lock);
		if (!w)
			break;
		grant(nlm, f, w);
	}
}

struct nlm_hold *nlm_hold_make(struct nlm *nlm, struct nlm_file *f,
			       struct nlm_owner *o)
{
	struct nlm_hold *h = nlm_hold_get(f, o);

	if (h && !h->locker.id)
		h->locker.id = ++nlm->next_id;
	return h;
}

/* ---- turns */

static struct nlm_wait *marked_wait(struct nlm *nlm, struct nlm_file *f,
				    bool *undone)
{
	struct cds_list_head *marked = &f->marked_waits;
	struct nlm_wait *w, *found = NULL;

	mutex_lock(&nlm->lock);
	if (f->gone && !cds_list_empty(&f->waits))
		found = cds_list_first_entry(&f->waits, struct nlm_wait,
					     on_file);
	while (!found && !cds_list_empty(marked)) {
		w = cds_list_first_entry(marked, struct nlm_wait, marked);
		cds_list_del_init(&w->marked);
		if (w->dropped || w->answer != NLM_WAIT_NONE)
			found = w;
	}
	*undone = found && (found->dropped ||
			    found->answer == NLM_WAIT_REFUSED);
	mutex_unlock(&nlm->lock);
	return found;
}

/* @kept: as of drop_hold(). */
static struct nlm_hold *marked_hold(struct nlm *nlm, struct nlm_file *f,
				    uint32_t *kept)
{
	struct cds_list_head *marked = &f->marked_holds;
	struct nlm_hold *h, *found = NULL;

	mutex_lock(&nlm->lock);
	if (f->gone && !cds_list_empty(&f->holds))
		found = cds_list_first_entry(&f->holds, struct nlm_hold,
					     on_file);
	while (!found && !cds_list_empty(marked)) {
		h = cds_list_first_entry(marked, struct nlm_hold, marked);
		cds_list_del_init(&h->marked);
		if (h->dropped)
			found = h;
	}
	if (found) {
		*kept = f->gone ? 0 : found->kept;
		found->dropped = false;
	}
	mutex_unlock(&nlm->lock);
	return found;
}

static void drop_shares(struct nlm *nlm, struct nlm_file *f)
{
	struct nlm_share *s, *next;

	mutex_lock(&nlm->lock);
	if (!f->marked_shares && !f->gone) {
		mutex_unlock(&nlm->lock);
		return;
	}
	f->marked_shares = false;
	cds_list_for_each_entry_safe(s, next, &f->shares, on_file) {
		struct nlm_owner *o = s->owner;

		if (s->dropped || f->gone) {
			nlm_share_free(&nlm->table, s);
			nlm_owner_tidy(&nlm->table, o);
		}
	}
	mutex_unlock(&nlm->lock);
}

static void act_on_marks(struct nlm *nlm, struct nlm_file *f)
{
	struct nlm_wait *w;
	struct nlm_hold *h;
	uint32_t kept;
	bool undone;

	while ((w = marked_wait(nlm, f, &undone))) {
		if (undone)
			nlm_wait_undo(nlm, w);
		else
			nlm_wait_end(nlm, w);
	}
	while ((h = marked_hold(nlm, f, &kept)))
		drop_hold(nlm, h, kept);
	drop_shares(nlm, f);
}

/*
 * Acts on marks.  An export that is taken out of the table ends its locks, also
 * if it is there again by now: compare the count of departures, since no turn
 * sees every change.
 */
static void tidy(struct nlm *nlm, struct nlm_file *f)
{
	unsigned departures = atomic_load(&f->exp->departures);
	bool gone;

	mutex_lock(&nlm->lock);
	f->gone |= f->departures != departures;
	gone = f->gone;
	mutex_unlock(&nlm->lock);
	act_on_marks(nlm, f);
	mutex_lock(&nlm->lock);
	if (gone) {
		/* All that was here has ended; new locks belong to the export
		 * as it is now. */
		f->gone = false;
		f->departures = departures;
	}
	if (f->again)
		nlm_foreign_ready(f);
	f->again = false;
	mutex_unlock(&nlm->lock);
}

void nlm_turn_begin(struct nlm *nlm, struct nlm_file *f)
{
	mutex_lock(&f->turn);
	tidy(nlm, f);
	grant_ready(nlm, f);
}

void nlm_turn_end(struct nlm_file *f)
{
	grant_ready(f->nlm, f);
	mutex_unlock(&f->turn);
}

static void run_job(struct work_item *item)
{
	struct nlm_file *f = container_of(item, struct nlm_file, job);
	struct nlm *nlm = f->nlm;
	bool again;

	do {
		nlm_turn_begin(nlm, f);
		nlm_turn_end(f);
		mutex_lock(&nlm->lock);
		again = f->due;
		f->due = false;
		f->queued = again;
		mutex_unlock(&nlm->lock);
	} while (again);
	nlm_file_put(nlm, f);
	mutex_lock(&nlm->lock);
	if (--nlm->jobs == 0)
		pthread_cond_broadcast(&nlm->wake);
	mutex_unlock(&nlm->lock);
}

void nlm_file_kick(struct nlm *nlm, struct nlm_file *f)
{
	if (f->queued) {
		f->due = true;
		return;
	}
	if (nlm->stops)
		return;
	f->queued = true;
	f->refs++;
	f->job.run = run_job;
	nlm->jobs++;
	rpc_server_submit(nlm->config.server, rpc_share_class(f->exp->user),
			  &f->job);
}
