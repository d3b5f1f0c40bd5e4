/* SPDX-License-Identifier: BSD-2-Clause */
/* lockers - owners of locks, and the locks that a lock manager owes them.  A
 * model. */
#include "tests/crash/lockers.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/util.h"
#include "wire/nlm.h"

static unsigned index_of(const struct lockers *m, const struct lm_owner *o)
{
	return (unsigned)(o - m->owner);
}

void lm_init(struct lockers *m, uint64_t seed)
{
	*m = (struct lockers){ .seed = seed };
	for (unsigned i = 0; i < LM_OWNERS; i++)
		m->owner[i].host = i % LM_HOSTS;
}

void lm_step(struct lockers *m, const char *fmt, ...)
{
	char *line = m->step[m->nsteps++ % LM_STEPS];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(m->step[0]), fmt, ap);
	va_end(ap);
}

void lm_defect(struct lockers *m, const char *what)
{
	unsigned from = m->nsteps > LM_STEPS ? m->nsteps - LM_STEPS : 0;

	for (unsigned i = from; i < m->nsteps; i++)
		printf("# %u %s\n", i, m->step[i % LM_STEPS]);
	ck_abort_msg("%s, after %u steps, seed %llu", what, m->nsteps,
		     (unsigned long long)m->seed);
}

static void step_of(struct lockers *m, const struct lm_owner *o,
		    const struct lm_op *op, const char *what, uint32_t status)
{
	static const char *const kinds[] = { "LOCK", "NM_LOCK", "UNLOCK",
		"CANCEL", "TEST", "SHARE", "UNSHARE" };

	lm_step(m, "owner %u of %u: %s file %u, %u to %u%s%s%s: %s %u",
		index_of(m, o), o->host, kinds[op->kind], op->file, op->first,
		op->last, op->exclusive ? "" : ", shared",
		op->block ? ", block" : "", op->reclaim ? ", reclaim" : "",
		what, status);
}

static bool clash(uint8_t a, uint8_t b)
{
	return a && b && (a == LM_EXCLUSIVE || b == LM_EXCLUSIVE);
}

static uint8_t wanted(const struct lm_op *op)
{
	return op->exclusive ? LM_EXCLUSIVE : LM_SHARED;
}

static bool is_lock(const struct lm_op *op)
{
	return op->kind == LM_LOCK || op->kind == LM_NM_LOCK;
}

static bool is_share(const struct lm_op *op)
{
	return op->kind == LM_SHARE || op->kind == LM_UNSHARE;
}

static bool denies(const struct lm_deny *a, const struct lm_op *op)
{
	return (a->mode & op->access) || (a->access & op->mode);
}

/* True if @p is sure of a lock that is in the way of @op. */
static bool surely_clashes(const struct lm_owner *p, const struct lm_op *op)
{
	if (op->kind == LM_SHARE)
		return !p->reshares && denies(&p->share[op->file], op);
	for (unsigned b = op->first; b <= op->last; b++)
		if (clash(p->sure[op->file][b], wanted(op)))
			return true;
	return false;
}

static bool may_clash(const struct lm_owner *p, const struct lm_op *op)
{
	if (op->kind == LM_SHARE)
		return denies(&p->share[op->file], op) ||
		       denies(&p->share_next[op->file], op);
	for (unsigned b = op->first; b <= op->last; b++)
		if (clash(p->may[op->file][b], wanted(op)))
			return true;
	return false;
}

static int find_sure(const struct lockers *m, const struct lm_owner *o,
		     const struct lm_op *op)
{
	for (unsigned i = 0; i < LM_OWNERS; i++)
		if (&m->owner[i] != o && surely_clashes(&m->owner[i], op))
			return (int)i;
	return -1;
}

static bool may_be_in_the_way(const struct lockers *m,
			      const struct lm_owner *o, const struct lm_op *op)
{
	for (unsigned i = 0; i < LM_OWNERS; i++)
		if (&m->owner[i] != o && may_clash(&m->owner[i], op))
			return true;
	return false;
}

static bool asks(const struct lm_op *op)
{
	return is_lock(op) || op->kind == LM_TEST || op->kind == LM_SHARE;
}

/* Excuse refusals of other requests for the bytes that @o may have now. */
static void excuse_others(struct lockers *m, const struct lm_owner *o)
{
	for (unsigned i = 0; i < LM_OWNERS; i++) {
		struct lm_owner *p = &m->owner[i];

		if (p != o && p->busy && asks(&p->op) && may_clash(o, &p->op))
			p->excused = true;
	}
}

/* The owner has not more than @most of the bytes, for sure. */
static void less_sure(struct lm_owner *o, const struct lm_op *op, uint8_t most)
{
	for (unsigned b = op->first; b <= op->last; b++)
		if (o->sure[op->file][b] > most) {
			o->sure[op->file][b] = most;
			o->changes++;
		}
}

static void begin_lock(struct lm_owner *o)
{
	const struct lm_op *op = &o->op;
	uint8_t *may = o->may[op->file];

	memcpy(o->sure_before, o->sure[op->file], LM_BYTES);
	memcpy(o->may_before, may, LM_BYTES);
	less_sure(o, op, wanted(op));
	for (unsigned b = op->first; b <= op->last; b++)
		may[b] = MAX(may[b], wanted(op));
	o->early = false;
}

void lm_begin(struct lockers *m, struct lm_owner *o)
{
	const struct lm_op *op = &o->op;

	step_of(m, o, op, "asks", 0);
	o->busy = true;
	if (asks(op)) {
		o->excused = may_be_in_the_way(m, o, op);
		o->sure_other = find_sure(m, o, op);
		if (o->sure_other >= 0)
			o->sure_changes = m->owner[o->sure_other].changes;
	}
	if (is_lock(op)) {
		begin_lock(o);
	} else if (op->kind == LM_UNLOCK) {
		memcpy(o->sure_before, o->sure[op->file], LM_BYTES);
		less_sure(o, op, LM_NONE);
	} else if (op->kind == LM_CANCEL) {
		o->cancels = o->waits;
	} else if (is_share(op)) {
		o->changes++;
		o->reshares = true;
		o->share_next[op->file] = (struct lm_deny){ op->mode,
							    op->access };
	}
	excuse_others(m, o);
}

/* The owner has exactly @lock of the bytes, as it was told. */
static void is_given(struct lockers *m, struct lm_owner *o,
		     const struct lm_op *op, uint8_t lock)
{
	if (lock && find_sure(m, o, op) >= 0)
		lm_defect(m, "a lock is held twice");
	memset(&o->sure[op->file][op->first], lock, op->last - op->first + 1);
	memset(&o->may[op->file][op->first], lock, op->last - op->first + 1);
}

/* The request did nothing: restore the state before it. */
static void end_without(struct lockers *m, struct lm_owner *o)
{
	const struct lm_op *op = &o->op;
	struct lm_op held = *op;

	if (is_share(op)) {
		o->share_next[op->file] = o->share[op->file];
		return;
	}
	if (!is_lock(op) && op->kind != LM_UNLOCK)
		return;
	for (unsigned b = op->first; b <= op->last; b++) {
		held.first = held.last = b;
		held.kind = LM_LOCK;
		held.exclusive = o->sure_before[b] == LM_EXCLUSIVE;
		if (o->sure_before[b] && find_sure(m, o, &held) >= 0)
			lm_defect(m, "a lock was held twice");
		o->sure[op->file][b] = o->sure_before[b];
	}
	if (is_lock(op))
		memcpy(o->may[op->file], o->may_before, LM_BYTES);
}

/* True if the owner holds a byte of @op in @bytes, as that or as more. */
static bool has_any(const uint8_t *bytes, const struct lm_op *op)
{
	for (unsigned b = op->first; b <= op->last; b++)
		if (bytes[b] >= wanted(op))
			return true;
	return false;
}

static void end_granted(struct lockers *m, struct lm_owner *o)
{
	const struct lm_op *op = &o->op;

	m->granted++;
	if (asks(op) && o->sure_other >= 0 &&
	    m->owner[o->sure_other].changes == o->sure_changes)
		lm_defect(m, "a lock in the way was not seen");
	if (is_lock(op)) {
		m->reclaimed += op->reclaim;
		is_given(m, o, op, wanted(op));
	} else if (op->kind == LM_UNLOCK) {
		is_given(m, o, op, LM_NONE);
		o->waits = o->waits && !o->refused;
		o->refused = false;
	} else if (op->kind == LM_CANCEL && o->cancels) {
		/* The server might have given the lock and taken it back: then
		 * the owner holds only the bytes of its request. */
		o->waits = false;
		memcpy(o->may[op->file], o->may_before, LM_BYTES);
	} else if (op->kind == LM_CANCEL) {
		if (has_any(o->sure[op->file], op))
			lm_defect(m, "a lock that is held was cancelled");
	} else if (is_share(op)) {
		if (op->kind == LM_SHARE && find_sure(m, o, op) >= 0)
			lm_defect(m, "a file is shared twice");
		o->share[op->file] = o->share_next[op->file];
	}
}

/* Before its request. */
static bool held_anything(const struct lm_owner *o)
{
	const uint8_t *may;

	for (unsigned f = 0; f < LM_FILES; f++) {
		may = f == o->op.file ? o->may_before : o->may[f];
		for (unsigned b = 0; b < LM_BYTES; b++)
			if (may[b])
				return true;
	}
	return false;
}

static void end_refused(struct lockers *m, struct lm_owner *o, uint32_t status)
{
	if (!asks(&o->op) || !o->excused)
		lm_defect(m, "nothing was in the way");
	if (status == NLM4_DEADLCK) {
		if (!o->op.block || !held_anything(o))
			lm_defect(m, "no circle was there");
		m->deadlocks++;
	}
	m->refused++;
	end_without(m, o);
}

/* The owner holds a part of the range that it wanted to cancel, by this or
 * another LOCK.  A waiting owner then unlocks the whole range, as clients
 * do. */
static void end_uncancelled(struct lockers *m, struct lm_owner *o)
{
	if (!has_any(o->may[o->op.file], &o->op))
		lm_defect(m, "nothing of it is held");
	o->refused |= o->cancels;
	m->refused++;
}

static void end_blocked(struct lockers *m, struct lm_owner *o)
{
	if (!is_lock(&o->op) || !o->op.block || !o->excused)
		lm_defect(m, "the request need not wait");
	m->blocked++;
	if (o->early)
		return;
	o->waits = true;
	o->wait = o->op;
}

/* The claim was answered: the owner has the bytes now, or never. */
static void end_claim(struct lm_owner *o)
{
	const struct lm_op *op = &o->op;

	memset(&o->had[op->file][op->first], LM_NONE,
	       op->last - op->first + 1);
}

void lm_end(struct lockers *m, struct lm_owner *o, uint32_t status,
	    enum lm_when when)
{
	bool fits = o->op.reclaim == (when == LM_GRACE) || when == LM_EITHER;

	step_of(m, o, &o->op, "is told", status);
	o->busy = o->reshares = false;
	if (status != NLM4_DENIED_GRACE_PERIOD && !fits)
		lm_defect(m, when == LM_GRACE ? "no grace period" :
			  "a reclaim after the grace period");
	if (status == NLM4_DENIED_GRACE_PERIOD) {
		if (fits && when != LM_EITHER)
			lm_defect(m, "refused because of a grace period");
		m->in_grace += !o->op.reclaim;
		m->late += o->op.reclaim;
		end_without(m, o);
	} else if (status == NLM4_GRANTED) {
		end_granted(m, o);
	} else if (status == NLM4_BLOCKED) {
		end_blocked(m, o);
	} else if (o->op.kind == LM_CANCEL && status == NLM4_DENIED) {
		end_uncancelled(m, o);
	} else if (status == NLM4_DENIED || status == NLM4_DEADLCK) {
		end_refused(m, o, status);
	} else {
		lm_defect(m, "a status that nothing explains");
	}
	o->cancels = false;
	if (o->op.reclaim)
		end_claim(o);
}

void lm_told_holder(struct lockers *m, struct lm_owner *o,
		    const struct lm_owner *holder)
{
	if (!holder || holder == o)
		lm_defect(m, "a holder that can't be one");
}

static bool same_lock(const struct lm_op *a, const struct lm_op *b)
{
	return a->file == b->file && a->first == b->first &&
	       a->last == b->last && a->exclusive == b->exclusive;
}

uint32_t lm_called_back(struct lockers *m, struct lm_owner *o,
			const struct lm_op *op, bool want)
{
	bool waits = o->waits && same_lock(op, &o->wait);
	bool asked = o->busy && is_lock(&o->op) && o->op.block && !o->early &&
		     same_lock(op, &o->op);

	m->called++;
	want = asked || (waits && want && !o->cancels && !o->refused &&
			 !m->host[o->host].restarts);
	step_of(m, o, op, "is called back and says", want);
	m->crossed += o->cancels;
	if (!want) {
		/* The server takes it back when it has heard of that. */
		o->refused |= waits && !o->cancels;
		return NLM4_DENIED;
	}
	is_given(m, o, op, wanted(op));
	o->waits = false;
	o->early = asked;
	return NLM4_GRANTED;
}

/* ---- ends */

static void forget_locks(struct lm_owner *o)
{
	memset(o->sure, LM_NONE, sizeof(o->sure));
	memset(o->may, LM_NONE, sizeof(o->may));
	memset(o->share, 0, sizeof(o->share));
	memset(o->share_next, 0, sizeof(o->share_next));
	o->busy = o->waits = o->cancels = o->refused = o->reshares = false;
}

void lm_host_restarts(struct lockers *m, unsigned host)
{
	lm_step(m, "host %u restarts", host);
	m->host[host].restarts = true;
	for (unsigned i = host; i < LM_OWNERS; i += LM_HOSTS) {
		memset(m->owner[i].sure, LM_NONE, sizeof(m->owner[i].sure));
		memset(m->owner[i].had, LM_NONE, sizeof(m->owner[i].had));
		m->owner[i].changes++;
		m->owner[i].reshares = true;
	}
}

void lm_host_restarted(struct lockers *m, unsigned host)
{
	m->restarts++;
	m->host[host].restarts = false;
	lm_step(m, "host %u has restarted", host);
	for (unsigned i = host; i < LM_OWNERS; i += LM_HOSTS)
		forget_locks(&m->owner[i]);
}

void lm_server_ended(struct lockers *m)
{
	lm_step(m, "the server has ended");
	for (unsigned i = 0; i < LM_OWNERS; i++) {
		struct lm_owner *o = &m->owner[i];

		for (unsigned f = 0; f < LM_FILES; f++)
			for (unsigned b = 0; b < LM_BYTES; b++)
				o->had[f][b] = MAX(o->had[f][b],
						   o->sure[f][b]);
		forget_locks(o);
	}
	for (unsigned i = 0; i < LM_HOSTS; i++)
		m->host[i].restarts = false;
}

bool lm_next_claim(const struct lm_owner *o, struct lm_op *op)
{
	for (unsigned f = 0; f < LM_FILES; f++)
		for (unsigned b = 0; b < LM_BYTES; b++) {
			uint8_t lock = o->had[f][b];

			if (!lock)
				continue;
			*op = (struct lm_op){
				.kind = LM_LOCK, .file = f, .first = b,
				.exclusive = lock == LM_EXCLUSIVE,
				.reclaim = true,
			};
			while (b < LM_BYTES && o->had[f][b] == lock)
				op->last = b++;
			return true;
		}
	return false;
}

bool lm_owes(const struct lockers *m)
{
	struct lm_op op;

	for (unsigned i = 0; i < LM_OWNERS; i++)
		if (lm_next_claim(&m->owner[i], &op))
			return true;
	return false;
}

void lm_grace_ended(struct lockers *m)
{
	lm_step(m, "the grace period is over");
	for (unsigned i = 0; i < LM_OWNERS; i++)
		memset(m->owner[i].had, LM_NONE, sizeof(m->owner[i].had));
}

/* ---- waiters */

bool lm_may_be_granted(const struct lockers *m, const struct lm_owner *o)
{
	return o->waits && !o->refused &&
	       !may_be_in_the_way(m, o, &o->wait);
}

/* Marks owners that a marked owner waits for; returns true if one is new. */
static bool mark_holders(const struct lockers *m, bool *marked)
{
	bool more = false;

	for (unsigned i = 0; i < LM_OWNERS; i++)
		for (unsigned j = 0; j < LM_OWNERS && m->owner[i].waits; j++)
			if (marked[i] && i != j && !marked[j] &&
			    surely_clashes(&m->owner[j], &m->owner[i].wait))
				more = marked[j] = true;
	return more;
}

void lm_check_circles(struct lockers *m)
{
	for (unsigned i = 0; i < LM_OWNERS; i++) {
		const struct lm_owner *o = &m->owner[i];
		bool marked[LM_OWNERS] = { false };

		for (unsigned j = 0; j < LM_OWNERS && o->waits; j++)
			marked[j] = j != i &&
				    surely_clashes(&m->owner[j], &o->wait);
		while (mark_holders(m, marked))
			;
		if (marked[i])
			lm_defect(m, "owners wait for each other");
	}
}

bool lm_is_held(const struct lm_owner *o, const struct lm_op *op)
{
	for (unsigned b = op->first; b <= op->last; b++)
		if (o->may[op->file][b])
			return true;
	return false;
}
