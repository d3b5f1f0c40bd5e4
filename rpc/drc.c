/* SPDX-License-Identifier: BSD-2-Clause */
/* drc - the duplicate request cache: calls that run, and looking them up. */
#include "rpc/drc.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "rpc/drc_rule.h"
#include "rpc/drc_store.h"

STAT(drc_again_same, "calls sent again on the connection that they came on");
STAT(drc_again_silent, "calls sent again while their connection was silent");
STAT(drc_again_closed, "calls sent again whose client closed the connection");
STAT(drc_again_broken, "calls sent again whose connection broke");
STAT(drc_again_unread, "calls sent again whose reply arrived just before the "
     "connection broke");
STAT(drc_new_sibling, "calls like one that is in progress on another "
		      "connection");
STAT(drc_new_taken, "calls like one whose reply was acknowledged");
STAT(drc_new_closed, "calls like one of a connection that closed in order");
STAT(drc_new_broken, "calls like one that was answered long before its "
     "connection broke");
STAT(drc_left_over, "calls dropped with their connection, because the client "
     "seems to have sent them again on a newer one");
STAT(drc_displaced, "duplicates in progress displaced by a newer one");
STAT(drc_no_room, "replies not cached for lack of memory");

static bool same_key(const struct drc_key *a, const struct drc_key *b)
{
	return a->xid == b->xid && a->sum == b->sum && a->len == b->len &&
	       a->proc == b->proc && a->vers == b->vers &&
	       a->prog == b->prog && a->scope == b->scope &&
	       a->port == b->port && a->flavor == b->flavor &&
	       a->uid == b->uid && a->gid == b->gid &&
	       memcmp(a->addr, b->addr, 16) == 0;
}

/* ---- calls that run.  With the shard's lock. */

static struct drc_call **running_bucket(struct drc_shard *s, uint32_t hash)
{
	return &s->running[hash / DRC_SHARDS % DRC_RUNNING_BUCKETS];
}

static void drc_run(struct drc_shard *s, struct drc_call *call)
{
	struct drc_call **bucket = running_bucket(s, call->hash);

	call->chain = *bucket;
	*bucket = call;
	s->nrunning++;
}

static void end_run(struct drc_shard *s, struct drc_call *call)
{
	struct drc_call **p = running_bucket(s, call->hash);

	while (*p != call)
		p = &(*p)->chain;
	*p = call->chain;
	s->nrunning--;
}

/* ---- looking a call up */

/*
 * True if the answer to @w is no longer needed, now that @call is here: one
 * answer is enough for one connection.  Uses only facts already known of the
 * connection, since it can run for many calls.
 */
static bool is_given_up(const struct drc_call *w, const struct drc_call *call)
{
	struct xprt_view v;

	if (w->fate == call->fate)
		return true;
	if (!w->fate)
		return false;
	xprt_fate_known(w->fate, &v);
	return v.end != XPRT_ALIVE;
}

/* With the lock: lets @call wait for @first.  Returns a call that also waited
 * for @first, but whose client has given it up; or NULL. */
static struct drc_call *await(struct drc_call *first, struct drc_call *call)
{
	struct drc_call **p = &first->waiting, *older;

	while (*p && !is_given_up(*p, call))
		p = &(*p)->waiting;
	older = *p;
	if (older)
		*p = older->waiting;
	call->waiting = first->waiting;
	first->waiting = call;
	return older;
}

static void drc_count(enum drc_case c)
{
	switch (c) {
	case DRC_AGAIN_SAME:
		stat_inc(drc_again_same);
		break;
	case DRC_AGAIN_SILENT:
		stat_inc(drc_again_silent);
		break;
	case DRC_AGAIN_CLOSED:
		stat_inc(drc_again_closed);
		break;
	case DRC_AGAIN_BROKEN:
		stat_inc(drc_again_broken);
		break;
	case DRC_AGAIN_UNREAD:
		stat_inc(drc_again_unread);
		break;
	case DRC_NEW_SIBLING:
		stat_inc(drc_new_sibling);
		break;
	case DRC_NEW_TAKEN:
		stat_inc(drc_new_taken);
		break;
	case DRC_NEW_CLOSED:
		stat_inc(drc_new_closed);
		break;
	case DRC_NEW_BROKEN:
		stat_inc(drc_new_broken);
		break;
	case DRC_LEFT_OVER:
		stat_inc(drc_left_over);
		break;
	}
}

/* True if the connection of @call is older than @a, and its peer has left it
 * since, as far as is known: where nothing tells when a peer was heard, clients
 * do not use an xid again. */
static bool is_left_over(const struct drc_call *call, const struct xprt_fate *a)
{
	struct xprt_view v;

	if (a->turn <= call->fate->turn)
		return false;
	xprt_fate_look(call->fate, &v);
	return v.end != XPRT_ALIVE ||
	       v.heard + DRC_SLACK_MS < a->born;
}

/* Judges @call by an earlier one of an equal key, which came on @fate.  @e is
 * the earlier one's reply, or NULL while it runs. */
static enum drc_case judge(const struct drc_call *call,
			   struct xprt_fate *fate, const struct drc_entry *e)
{
	struct xprt_view v = { .end = XPRT_ALIVE };
	struct drc_facts f = { .running = true };
	enum drc_case c;

	if (fate && (e || fate != call->fate))
		xprt_fate_look(fate, &v);
	if (e && fate)
		f = drc_facts_of(e, &v, xprt_now_ms());
	f.running = !e;
	f.same = fate == call->fate;
	f.end = v.end;
	if (f.same && !call->may_resend)
		f.acked = fate;
	if (fate && call->fate) {
		f.heard = v.heard > call->fate->born + DRC_SLACK_MS;
		f.left_over = is_left_over(call, fate);
	}
	c = drc_rule(&f);
	drc_count(c);
	return c;
}

/* With the lock: returns the running call that @call repeats, or NULL.  If
 * @call is left over, returns NULL and sets *@left_over.  The call on the same
 * connection comes first: its answer is the one that is waited for there. */
static struct drc_call *find_running(struct drc_shard *s,
				     const struct drc_call *call,
				     bool *left_over)
{
	struct drc_call *r = *running_bucket(s, call->hash), *again = NULL;
	enum drc_case c;

	for (; r && !*left_over; r = r->chain) {
		if (r->hash != call->hash || !same_key(&r->key, &call->key))
			continue;
		c = judge(call, r->fate, NULL);
		if (drc_is_again(c) && (!again || r->fate == call->fate))
			again = r;
		*left_over = c == DRC_LEFT_OVER;
	}
	return *left_over ? NULL : again;
}

/*
 * With the lock: returns the reply to the call that @call repeats, or NULL.  If
 * @call is left over, returns NULL and sets *@left_over.  Drops the replies
 * that it finds out of use.
 *
 * A reply that went to several connections is there once for each.  If one of
 * them is @call's own, that one alone says what @call is.
 */
static struct drc_entry *find_done(struct drc *drc, struct drc_shard *s,
				   const struct drc_call *call,
				   bool *left_over)
{
	struct drc_entry *e = *drc_bucket(drc, s, call->hash), *next;
	struct drc_entry *again = NULL;
	enum drc_case c;
	bool own = false;

	for (; e && !*left_over && !own; e = next) {
		next = e->chain;
		if (e->hash != call->hash || !same_key(&e->key, &call->key))
			continue;
		if (!e->fate && drc_is_older(e, xprt_now_ms(), DRC_AGE_MS)) {
			drc_drop(drc, s, e);
			continue;
		}
		own = e->fate && e->fate == call->fate;
		c = judge(call, e->fate, e);
		if (own)
			again = NULL;
		if (drc_is_again(c) && !again)
			again = e;
		*left_over = c == DRC_LEFT_OVER;
		if (!drc_is_again(c) && c != DRC_NEW_SIBLING && !*left_over)
			drc_drop(drc, s, e);
	}
	return *left_over ? NULL : again;
}

/*
 * With the lock.  The reply goes to the connection of @call now; the fate of
 * that connection counts from here on.  If the first connection has yet to note
 * where the reply ended, the entry's memory stays for that, and a copy takes
 * over; without memory for the copy nothing changes.
 */
static void drc_replay(struct drc *drc, struct drc_shard *s,
		       struct drc_entry *e,
		       const struct drc_call *call, struct drc_ask *ask)
{
	uint64_t t = xprt_now_ms();
	struct drc_entry *copy;

	memcpy(ask->reply, e->reply, e->len);
	ask->len = e->len;
	if (drc_is_placed(e)) {
		ask->sent = drc_move(s, e, call, t);
		return;
	}
	copy = drc_make(call, e->reply, e->len);
	if (!copy)
		return;
	drc_unknow(drc, s, e);
	ask->sent = drc_insert(drc, s, copy, call, t);
}

static uint64_t *seen_place(struct drc_shard *s, uint32_t hash)
{
	return &s->seen[hash / DRC_SHARDS % DRC_SEEN];
}

/*
 * With the lock, which it lets go while it asks the transport: true if the peer
 * has ended the connection of @call, and calls have come on a newer one from
 * the same address.  Then @call lay unread there: its client might have sent it
 * again, had it answered, and gone on.  So it must not run, even if nothing is
 * remembered of it, like a WRITE.
 *
 * The second copy has the same hash.  If no call of that hash was seen since
 * the last question to the transport, its last answer will do.
 */
static bool was_unread(struct drc_shard *s, const struct drc_call *call)
{
	struct xprt_fate *f = call->fate;
	uint64_t *seen = seen_place(s, call->hash);
	bool left = false;

	if (!f || xprt_fate_is_alone(f))
		return false;
	if (xprt_fate_called(f)) {
		while (!atomic_load(&f->left) &&
		       *seen >= atomic_load(&f->asked)) {
			mutex_unlock(&s->lock);
			xprt_fate_ask(f);
			mutex_lock(&s->lock);
		}
		left = atomic_load(&f->left);
	}
	*seen = xprt_fate_epoch();
	return left;
}

enum drc_verdict drc_lookup(struct drc *drc, struct drc_call *call,
			    struct drc_ask *ask)
{
	enum drc_verdict verdict = DRC_NEW;
	struct drc_entry *e = NULL;
	struct drc_call *first = NULL;
	struct drc_shard *s;
	bool left_over;

	drc_hash(call);
	s = drc_shard_of(drc, call->hash);
	ask->older = NULL;
	ask->sent = NULL;
	mutex_lock(&s->lock);
	left_over = was_unread(s, call);
	if (left_over)
		stat_inc(drc_left_over);
	if (call->keep && !left_over)
		e = find_done(drc, s, call, &left_over);
	if (!e && !left_over)
		first = find_running(s, call, &left_over);
	if (e) {
		drc_replay(drc, s, e, call, ask);
		verdict = DRC_REPLAY;
	} else if (first && first->waiting && call->fate &&
		   first->waiting->fate &&
		   is_left_over(call, first->waiting->fate)) {
		stat_inc(drc_left_over);
		verdict = DRC_DROP;
	} else if (first) {
		ask->older = await(first, call);
		verdict = DRC_IN_PROGRESS;
	} else if (left_over) {
		verdict = DRC_DROP;
	} else {
		call->waiting = NULL;
		drc_run(s, call);
	}
	mutex_unlock(&s->lock);
	if (ask->older)
		stat_inc(drc_displaced);
	return verdict;
}

/* Once a minute at most. */
static void warn_if_full(struct drc *drc, uint64_t t)
{
	uint64_t last = atomic_load(&drc->warned);

	if (last && t - last < 60000)
		return;
	if (atomic_compare_exchange_strong(&drc->warned, &last, t))
		log_warn("the reply cache is full: a call that is sent again "
			 "may run twice (see reply-memory)");
}

/*
 * True if the client of @w waits for the answer on its connection, although a
 * duplicate came on one that was accepted at @born.  By the same rule as for a
 * call that comes now: the client was heard since.
 */
static bool waits_itself(const struct drc_call *w, uint64_t born)
{
	struct xprt_view v;

	if (!w->fate)
		return false;
	xprt_fate_look(w->fate, &v);
	return v.end == XPRT_ALIVE && v.heard > born + DRC_SLACK_MS;
}

/* With the lock: makes room for one more reply of @size bytes, or returns
 * false.  Sets *@lost if a reply went that was needed. */
static bool drc_make_room(struct drc *drc, struct drc_shard *s, unsigned share,
			  size_t size, uint64_t t, bool *lost)
{
	while (s->bytes + size > drc->max)
		if (!drc_evict(drc, s, share, t, lost))
			return false;
	return true;
}

/*
 * With the lock: remembers @e for the connection of @newest, and a copy for
 * each other connection whose client waits there itself: an acknowledgement by
 * one says nothing of another.  @call ran; @newest is it, or waited for it.
 * The waiting calls are on different connections, but @call can share one of
 * theirs.  Returns true if a reply went that was needed.
 */
static bool keep_for_all(struct drc *drc, struct drc_shard *s,
			 struct drc_entry *e, struct drc_call *call,
			 struct drc_call *newest, uint64_t t)
{
	size_t size = drc_size_of(e->len);
	struct drc_call *w = newest, *next;
	uint64_t born = 0;
	bool lost = false, shared = false;
	struct drc_entry *copy;

	for (; w; w = next) {
		next = w == call ? NULL : w->waiting ? w->waiting : call;
		copy = e;
		if (w != newest)
			copy = !(w == call && shared) &&
			       waits_itself(w, born) &&
			       drc_make_room(drc, s, w->share, size, t, &lost) ?
			       drc_make(w, e->reply, e->len) : NULL;
		shared |= w->fate == call->fate;
		if (copy)
			w->sent = drc_insert(drc, s, copy, w, t);
		if (w->fate)
			born = MAX(born, w->fate->born);
	}
	return lost;
}

/* With the lock: no duplicate of @call has its @sent yet. */
static void clear_sent(struct drc_call *call)
{
	for (struct drc_call *w = call->waiting; w; w = w->waiting)
		w->sent = NULL;
	call->sent = NULL;
}

struct drc_call *drc_done(struct drc *drc, struct drc_call *call,
			  const void *reply, uint32_t len)
{
	struct drc_shard *s = drc_shard_of(drc, call->hash);
	bool keep = call->keep && drc->max > 0, lost = false;
	struct drc_entry *e = keep ? drc_make(call, reply, len) : NULL;
	struct drc_call *waiting;
	uint64_t t = xprt_now_ms();

	assert(len <= MSG_HEAD_SIZE);
	mutex_lock(&s->lock);
	end_run(s, call);
	waiting = call->waiting;
	clear_sent(call);
	drc_trim(drc, s, t);
	if (e && !drc_make_room(drc, s, call->share, drc_size_of(len), t,
				&lost)) {
		free(e);
		e = NULL;
	}
	if (e)
		lost |= keep_for_all(drc, s, e, call, waiting ? waiting : call,
				     t);
	mutex_unlock(&s->lock);
	if (keep && !e)
		stat_inc(drc_no_room);
	if (lost || (keep && !e))
		warn_if_full(drc, t);
	return waiting;
}

struct drc_call *drc_forget(struct drc *drc, struct drc_call *call)
{
	struct drc_shard *s = drc_shard_of(drc, call->hash);
	struct drc_call *waiting;

	mutex_lock(&s->lock);
	end_run(s, call);
	waiting = call->waiting;
	if (waiting)
		drc_run(s, waiting);
	mutex_unlock(&s->lock);
	return waiting;
}

void drc_usage(struct drc *drc, size_t *entries, size_t *bytes)
{
	*entries = *bytes = 0;
	for (unsigned i = 0; i < DRC_SHARDS; i++) {
		struct drc_shard *s = &drc->shards[i];

		mutex_lock(&s->lock);
		*entries += s->nrunning + s->ndone;
		*bytes += s->bytes;
		mutex_unlock(&s->lock);
	}
}

static void init_shard(struct drc *drc, unsigned i)
{
	struct drc_shard *s = &drc->shards[i];

	pthread_mutex_init(&s->lock, NULL);
	CDS_INIT_LIST_HEAD(&s->due);
	CDS_INIT_LIST_HEAD(&s->kept);
	s->shares = drc->shares + (size_t)i * DRC_SHARES;
	s->done = drc->done + (size_t)i * (drc->mask + 1);
	s->running = drc->running + (size_t)i * DRC_RUNNING_BUCKETS;
}

int drc_create(size_t bytes, struct drc **out)
{
	struct drc *drc;

	drc = aligned_alloc(64, sizeof(*drc));
	if (!drc)
		goto fail;
	memset(drc, 0, sizeof(*drc));
	drc->max = bytes / DRC_SHARDS;
	while ((size_t)drc->mask + 1 < drc->max / drc_size_of(128))
		drc->mask = drc->mask * 2 + 1;
	drc->running = calloc((size_t)DRC_RUNNING_BUCKETS * DRC_SHARDS,
			      sizeof(*drc->running));
	if (!drc->running)
		goto fail_drc;
	drc->done = calloc((size_t)(drc->mask + 1) * DRC_SHARDS,
			   sizeof(*drc->done));
	if (!drc->done)
		goto fail_running;
	drc->shares = calloc((size_t)DRC_SHARES * DRC_SHARDS,
			     sizeof(*drc->shares));
	if (!drc->shares)
		goto fail_done;
	for (unsigned i = 0; i < DRC_SHARDS; i++)
		init_shard(drc, i);
	*out = drc;
	return 0;

fail_done:
	free(drc->done);
fail_running:
	free(drc->running);
fail_drc:
	free(drc);
fail:
	return -ENOMEM;
}

static void drc_free_all(struct drc *drc, struct drc_shard *s,
			 struct cds_list_head *list)
{
	while (!cds_list_empty(list))
		drc_release(drc, s, cds_list_first_entry(list, struct drc_entry,
						     order));
}

void drc_destroy(struct drc *drc)
{
	for (unsigned i = 0; i < DRC_SHARDS; i++) {
		struct drc_shard *s = &drc->shards[i];

		drc_free_all(drc, s, &s->due);
		drc_free_all(drc, s, &s->kept);
		pthread_mutex_destroy(&s->lock);
	}
	free(drc->shares);
	free(drc->done);
	free(drc->running);
	free(drc);
}
