/* SPDX-License-Identifier: BSD-2-Clause */
/* nlm_storm - a backend that remembers locks, and checks of the table. */
#include "tests/server/nlm_storm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/stats.h"
#include "lib/util.h"
#include "nlm/proc.h"
#include "tests/unit/runner.h"
#include "vfs/backends.h"

#define LOCKERS	128u

/* The locks of an owner on a file, as the backend knows them. */
struct ns_locker {
	uint64_t	       id;	/* 0: none */
	const struct vfs_node *node;
	uint8_t		       held[NS_BYTES];
};

static struct nlm *nlm;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock: */
static struct ns_locker lockers[LOCKERS];
static uint64_t chance[2];	/* of the test's thread, and of the backend */
static bool quiet, foreign;
static char defect[128];

static struct vfs_ops ops;

static unsigned roll(uint64_t *x, unsigned n)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return (unsigned)((*x >> 32) % n);
}

unsigned ns_roll(unsigned n)
{
	return roll(&chance[0], n);
}

/* ---- the backend */

/* The locker, made if need be. */
static struct ns_locker *locker_of(const struct vfs_op *op)
{
	struct ns_locker *l, *none = NULL;

	for (l = lockers; l < lockers + LOCKERS; l++) {
		if (l->id == op->lock->locker->id)
			return l;
		if (!l->id && !none)
			none = l;
	}
	if (!none) {
		snprintf(defect, sizeof(defect), "too many owners are left");
		return lockers;
	}
	*none = (struct ns_locker){ op->lock->locker->id, op->node, { 0 } };
	return none;
}

static void set(const struct vfs_op *op, uint8_t what)
{
	const struct vfs_lock *l = op->lock;
	uint64_t end = l->len ? l->off + l->len - 1 : NS_BYTES - 1;
	struct ns_locker *own = locker_of(op), *o;

	for (uint64_t b = l->off; b <= MIN(end, NS_BYTES - 1); b++) {
		for (o = lockers; o < lockers + LOCKERS; o++)
			if (what && o != own && o->id && o->node == op->node &&
			    o->held[b] && o->held[b] + what > 2)
				snprintf(defect, sizeof(defect),
					 "byte %d is given to two", (int)b);
		own->held[b] = what;
	}
}

/* The answer to SET, at random. */
static int answer(const struct vfs_lock *l)
{
	if (quiet || l->back)
		return 0;
	switch (roll(&chance[1], 50)) {
	case 0:
		foreign = true;
		return 1;
	case 1:
		foreign = true;
		return VFS_LOCK_LATE;
	case 2:
		foreign = true;
		return -ETIMEDOUT;
	default:
		return 0;
	}
}

static int lock_and_note(struct vfs_op *op)
{
	struct vfs_lock *l = op->lock;
	int err = 0;

	pthread_mutex_lock(&lock);
	if (l->how == VFS_LOCK_SET) {
		err = answer(l);
		if (err == 0 || err == VFS_LOCK_LATE)
			set(op, 1 + l->exclusive);
	} else if (l->how == VFS_LOCK_CLEAR) {
		set(op, 0);
	} else if (l->how == VFS_LOCK_RELEASE) {
		*locker_of(op) = (struct ns_locker){ 0 };
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static int mount_noted(const struct vfs_config *config, struct vfs_fs **out)
{
	int err = mem_vfs_ops.mount(config, out);

	if (err == 0)
		(*out)->ops = &ops;
	return err;
}

const struct vfs_ops *ns_backend(void)
{
	ops = mem_vfs_ops;
	ops.mount = mount_noted;
	ops.lock = lock_and_note;
	return &ops;
}

void ns_begin(struct nlm *of, unsigned seed)
{
	nlm = of;
	for (unsigned i = 0; i < 2; i++)
		chance[i] = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + i;
}

void ns_trouble(bool on)
{
	pthread_mutex_lock(&lock);
	quiet = !on;
	pthread_mutex_unlock(&lock);
}

bool ns_is_foreign(void)
{
	bool is;

	pthread_mutex_lock(&lock);
	is = foreign;
	foreign = false;
	pthread_mutex_unlock(&lock);
	return is;
}

/* ---- the table */

#define for_each_file(f, i) \
	for (unsigned i = 0; i < NLM_BUCKETS; i++) \
		cds_list_for_each_entry(f, &nlm->table.file[i], link)
#define for_each_host(h, i) \
	for (unsigned i = 0; i < NLM_BUCKETS; i++) \
		cds_list_for_each_entry(h, &nlm->table.host[i], link)

static bool is_idle(void)
{
	struct nlm_file *f;
	struct nlm_host *h;

	if (nlm->jobs)
		return false;
	for_each_host(h, i)
		if (h->calling || h->locking)
			return false;
	for_each_file(f, i)
		if (f->refs || !cds_list_empty(&f->marked_holds) ||
		    !cds_list_empty(&f->marked_waits) || f->marked_shares)
			return false;
	return true;
}

bool ns_is_quiet(void)
{
	bool is = rpc_busy() == 0;

	mutex_lock(&nlm->lock);
	is = is && is_idle();
	mutex_unlock(&nlm->lock);
	return is;
}

static void note_range(const struct nlm_range *r, uint8_t held[NS_BYTES])
{
	for (uint64_t b = r->at.start; b <= MIN(r->at.end, NS_BYTES - 1); b++)
		held[b] = 1 + r->at.exclusive;
}

static void check_hold(struct nlm_hold *h)
{
	uint8_t held[NS_BYTES] = { 0 }, backend[NS_BYTES] = { 0 };
	const struct nlm_range *r, *last = NULL;

	ck_assert(!cds_list_empty(&h->ranges));
	cds_list_for_each_entry(r, &h->ranges, link) {
		ck_assert_ptr_null(nlm_conflict(h->file, h->owner, &r->at));
		ck_assert(!last || last->at.end < r->at.start);
		note_range(r, held);
		last = r;
	}
	for (unsigned i = 0; i < LOCKERS; i++)
		if (lockers[i].id == h->locker.id)
			memcpy(backend, lockers[i].held, sizeof(backend));
	for (unsigned b = 0; b < NS_BYTES; b++)
		if (held[b] != backend[b])
			ck_abort_msg("%s, process %u: byte %u is %u, and %u "
				     "in the backend", h->owner->host->name,
				     h->owner->svid, b, held[b], backend[b]);
}

/* A waiter sleeps though its lock could be granted, or is not called back. */
static bool is_forgotten(struct nlm_wait *w)
{
	if (w->cut)
		return false;
	if (w->granted)
		return !w->due_in && cds_list_empty(&w->behind);
	return w->in == &w->file->ready ||
	       (w->in == &w->file->asleep &&
		!nlm_conflict(w->file, w->owner, &w->at) &&
		!nlm_grant_next(w->file, w->owner, &w->at, NULL));
}

/* The backend gives no locker a lock without a hold. */
static void check_lockers(void)
{
	const struct nlm_hold *h;
	struct nlm_file *f;
	bool found;

	for (unsigned k = 0; k < LOCKERS; k++) {
		found = lockers[k].id == 0;
		for_each_file(f, i)
			cds_list_for_each_entry(h, &f->holds, on_file)
				found |= h->locker.id == lockers[k].id;
		ck_assert_msg(found, "the backend has a lock without a hold");
	}
}

static void check_counts(const struct nlm_host *h)
{
	unsigned ranges = 0, waits = 0, shares = 0;
	const struct cds_list_head *l;
	const struct nlm_owner *o;
	const struct nlm_hold *hold;

	cds_list_for_each_entry(o, &h->owners, on_host) {
		ck_assert_uint_eq(o->pins, 0);
		cds_list_for_each_entry(hold, &o->holds, on_owner)
			cds_list_for_each(l, &hold->ranges)
				ranges++;
		cds_list_for_each(l, &o->waits)
			waits++;
		cds_list_for_each(l, &o->shares)
			shares++;
	}
	ck_assert_uint_eq(ranges, h->n[NLM_RANGES]);
	ck_assert_uint_eq(waits, h->n[NLM_WAITS]);
	ck_assert_uint_eq(shares, h->n[NLM_SHARES]);
}

void ns_check(void)
{
	const struct nlm_host *host;
	const struct nlm_share *s;
	struct nlm_hold *h;
	struct nlm_wait *w;
	struct nlm_file *f;
	bool is;

	mutex_lock(&nlm->lock);
	is = is_idle();
	pthread_mutex_lock(&lock);
	ck_assert_msg(!*defect, "%s", defect);
	/* The sweep can have begun a job; then the next check looks. */
	for_each_file(f, i) {
		if (!is)
			break;
		cds_list_for_each_entry(h, &f->holds, on_file)
			check_hold(h);
		cds_list_for_each_entry(w, &f->waits, on_file)
			ck_assert(!is_forgotten(w));
		cds_list_for_each_entry(s, &f->shares, on_file)
			ck_assert_ptr_null(nlm_share_conflict(f, s->owner,
							      s->mode,
							      s->access));
	}
	if (is) {
		check_lockers();
		for_each_host(host, i)
			check_counts(host);
	}
	pthread_mutex_unlock(&lock);
	mutex_unlock(&nlm->lock);
}

void ns_held(const char *name, unsigned svid, uint8_t held[NS_BYTES])
{
	const struct nlm_range *r;
	const struct nlm_hold *h;
	struct nlm_file *f;

	mutex_lock(&nlm->lock);
	for_each_file(f, i)
		cds_list_for_each_entry(h, &f->holds, on_file)
			if (strcmp(h->owner->host->name, name) == 0 &&
			    h->owner->svid == svid)
				cds_list_for_each_entry(r, &h->ranges, link)
					note_range(r, held);
	mutex_unlock(&nlm->lock);
}

bool ns_is_empty(void)
{
	const struct nlm_table *t = &nlm->table;
	bool is;

	mutex_lock(&nlm->lock);
	is = !t->ranges && !t->waits && !t->shares && !t->owners &&
	     !t->files && !nlm->due && !nlm->grants;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < LOCKERS; i++)
		is &= lockers[i].id == 0;
	pthread_mutex_unlock(&lock);
	mutex_unlock(&nlm->lock);
	return is;
}

void ns_report(void)
{
	static const char *const names[] = {
		"nlm_blocked", "nlm_waits_granted", "nlm_call_backs",
		"nlm_refused", "nlm_cut", "nlm_awaits", "nlm_deadlocks",
		"nlm_restarts", "nlm_late_restarts", "rpc_order_waits",
	};

	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		printf("%s%s %" PRIu64, i ? ", " : "# ", names[i],
		       stats_sum_by_name(names[i]));
	printf("\n");
}
