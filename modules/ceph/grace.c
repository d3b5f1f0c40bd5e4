/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * grace - the grace period of all servers.
 *
 * When a server starts again, it takes over its old session, which frees the
 * locks of its clients at every server.  These clients must be able to reclaim
 * them before any other client gets them.  So every session (a client of the
 * library) has a record (record.c) that all servers can read.
 *
 * A server that takes over a session that had locks, or that ends with locks,
 * writes that into the record and tells each other server (notice.c), which
 * then grants no new lock for SECONDS.  Only then is the session taken over.  A
 * server that starts reads the records.
 *
 * A client gets a lock back only if no other client can have held it meanwhile:
 * the cluster kept the session until it was taken over, or the other servers
 * still granted none.  This needs servers' clocks that agree to CLOCKS seconds,
 * which every cluster ensures.
 *
 * A server that can't be notified grants no locks, and after a while no server
 * waits for its answer; so a lock that took longer than LATE_MS is checked
 * again.
 *
 * A server that was cut off from the cluster learns from its record whether
 * another server has succeeded it.
 */
#include "modules/ceph/servers.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "lib/clock.h"

#define CLOCKS		2
#define RETIRED_S	(24 * 3600)
#define LATE_MS		5000
#define TAKE_TRIES	5u

/* ---- records */

static struct cfs_record new_record(const struct cfs_client *c,
				    enum cfs_record_kind kind, uint64_t since)
{
	struct cfs_record r = { .kind = kind, .process = cfs_process(),
				.seconds = cfs_grace_s(c->fs->options),
				.since = since };

	strcpy(r.name, c->name);
	return r;
}

/* Writes @r where c->record was.  -ESTALE: another server has the name. */
static int replace_record(struct cfs_client *c, struct cfs_record *r)
{
	struct cfs_record was = c->record;
	int err = cfs_record_put(c->fs, r, &was);

	if (err != -ECANCELED && err != -ENOENT)
		return err;
	/* An earlier call that seemed to fail can have written the record, or
	 * it was removed. */
	err = cfs_record_get(c->fs, c->name, &was);
	if (err == 0 && was.process != r->process)
		return -ESTALE;
	return err < 0 && err != -ENOENT ? err :
	       cfs_record_put(c->fs, r, err == 0 ? &was : NULL);
}

static int write_record(struct cfs_client *c, enum cfs_record_kind kind,
			uint64_t since)
{
	struct cfs_record r = new_record(c, kind, since);
	int err;

	mutex_lock(&c->record_lock);
	err = replace_record(c, &r);
	if (err == 0)
		c->record = r;
	mutex_unlock(&c->record_lock);
	return err;
}

/* The seconds for which servers still give no locks because of @r. */
static uint64_t seconds_left(const struct cfs_record *r)
{
	uint64_t now = (uint64_t)time(NULL);

	if (r->kind < CFS_TAKEN || now >= r->since + r->seconds)
		return 0;
	return now < r->since ? r->seconds : r->since + r->seconds - now;
}

/* The records, as they concern a server that starts. */
struct learnt {
	uint64_t began;			/* fs->grace.began */
	uint64_t left;			/* seconds for its clients to reclaim;
					 * 0: they are not to */
	bool	 lapsed;		/* others can have their locks */
};

static void learn_record(struct cfs_fs *fs, const struct cfs_record *r,
			 void *arg)
{
	struct learnt *l = arg;
	uint64_t left = seconds_left(r);

	if (r->kind < CFS_TAKEN)
		return;
	if (!cfs_record_is_own(fs, r->name)) {
		if (left)
			cfs_notice_begin(fs, left + CLOCKS);
		return;
	}
	/* It can belong to an export that ended in its grace period. */
	if (r->process != cfs_process() ||
	    (r->since && r->since + r->seconds < l->began))
		return;
	l->lapsed |= left == 0;
	l->left = l->left ? MIN(l->left, left) : left;
}

int cfs_grace_learn(struct cfs_fs *fs)
{
	struct learnt l = { .began = fs->grace.began };
	int err = cfs_record_each(fs, learn_record, &l);

	/* A lock can be reclaimed by another session than the one that set
	 * it. */
	atomic_store(&fs->grace.reclaims, err == 0 && !l.lapsed ?
		     clock_ms() + l.left * 1000 : 0);
	if (l.lapsed)
		vfs_log(VFS_LOG_WARN, "%s: other clients can have held the "
			"locks of this server's clients while it was away: "
			"they can't be reclaimed", fs->path);
	return err;
}

/* ---- sessions that are taken over */

/* -ENOENT: no record, which counts as a session without locks. */
static int read_before(struct cfs_client *c, struct cfs_record *was)
{
	int err = c->fs->store.open ? cfs_record_get(c->fs, c->name, was) :
				      -ENOTCONN;

	if (err == 0 && *c->record.text && was->process != cfs_process()) {
		atomic_store(&c->succeeded, true);
		return -ESTALE;
	}
	return err;
}

/*
 * The record of @c's session, which replaces @was.  Shutting out the old
 * session shows whether it still had its locks.  In a grace period other
 * servers grant none; after it they can have granted any lock that was not
 * reclaimed.
 */
static struct cfs_record record_after(const struct cfs_client *c,
				      const struct cfs_record *was)
{
	uint64_t now = (uint64_t)time(NULL);

	switch (was->kind) {
	case CFS_LIVE:
		return new_record(c, CFS_LIVE, 0);
	case CFS_GRACE:
		return new_record(c, CFS_GRACE,
				  seconds_left(was) > CLOCKS ? now : 0);
	default:
		return new_record(c, CFS_TAKEN, now);
	}
}

/* -ECANCELED: with @compared, the stored record differs from @was. */
static int begin_record(struct cfs_client *c, const struct cfs_record *was,
			bool compared)
{
	struct cfs_record r = record_after(c, was);
	int err = cfs_record_put(c->fs, &r, compared ? was : NULL);

	if (err < 0)
		return err;
	c->record = r;
	atomic_store(&c->grace_until, r.kind == CFS_LIVE ? 0 :
		     clock_ms() + r.seconds * 1000ull);
	/* After the record, which a server that starts now reads. */
	err = r.since ? cfs_notice_tell(c->fs) : 0;
	/* Some servers might have been notified too late. */
	if (err == 0 && was->kind == CFS_GRACE && r.since &&
	    seconds_left(was) <= CLOCKS)
		err = write_record(c, CFS_GRACE, 0);
	return err;
}

int cfs_grace_take_over(struct cfs_client *c)
{
	bool again = *c->record.text != 0;
	unsigned tries = 0;
	int err;

	mutex_lock(&c->fs->grace.store);
	c->left = false;
	atomic_store(&c->held, false);
	/* The old server might still run, and record a lock.  But a server that
	 * starts takes the name, whatever the record says. */
	do {
		struct cfs_record was = { .kind = CFS_LIVE };

		err = read_before(c, &was);
		if (err == 0 || err == -ENOENT)
			err = begin_record(c, &was, *was.text &&
					   (again || tries < TAKE_TRIES));
	} while (err == -ECANCELED && tries++ < TAKE_TRIES);
	mutex_unlock(&c->fs->grace.store);
	return err;
}

/* Records the result.  No later check can show that the session has @lasted, so
 * retry as long as that is of use. */
static int end_taken(struct cfs_client *c, bool lasted)
{
	uint64_t since = lasted ? c->record.since : 0;
	int err;

	do
		err = write_record(c, CFS_GRACE, since);
	while (err == -ETIMEDOUT && seconds_left(&c->record) > 0);
	return err;
}

int cfs_grace_taken_over(struct cfs_client *c, bool lasted)
{
	int err = 0;

	mutex_lock(&c->fs->grace.store);
	c->doubtful |= atomic_load(&c->lockers) > 0;
	if (c->record.kind == CFS_TAKEN)
		err = c->fs->store.open ? end_taken(c, lasted) : -ENOTCONN;
	mutex_unlock(&c->fs->grace.store);
	return err;
}

static void note_left_over(struct cfs_fs *fs, const struct cfs_record *r,
			   void *arg)
{
	if (cfs_record_is_own(fs, r->name) && r->process != cfs_process())
		*(struct cfs_record *)arg = *r;
}

static void tidy_later(struct cfs_fs *fs)
{
	fs->grace.tidy_at = clock_ms() + cfs_grace_s(fs->options) * 1000ull;
}

int cfs_grace_left_over(struct cfs_fs *fs, struct cfs_record *r)
{
	int err;

	*r = (struct cfs_record){ .kind = CFS_LIVE };
	mutex_lock(&fs->grace.store);
	err = cfs_record_each(fs, note_left_over, r);
	/* Later, when no other server has to know. */
	tidy_later(fs);
	mutex_unlock(&fs->grace.store);
	return err < 0 || *r->name ? err : -ENOENT;
}

/* ---- sessions that end */

static int tell_leaving(struct cfs_client *c)
{
	/* A doubtful claim stays doubtful. */
	bool sound = !c->doubtful && !atomic_load(&c->lost) &&
		     (c->record.kind != CFS_GRACE || c->record.since);
	int err;

	if (!c->fs->store.open)
		return -ENOTCONN;
	if (!sound)
		return write_record(c, CFS_GRACE, 0);
	err = write_record(c, CFS_TAKEN, (uint64_t)time(NULL));
	if (err == 0)
		err = cfs_notice_tell(c->fs);
	/* A client without calls does not notice that the cluster has shut it
	 * out, and others can have its locks. */
	return err < 0 ? err : end_taken(c, cfs_client_has_session(c));
}

void cfs_grace_leave(struct cfs_client *c)
{
	int err = 0;

	mutex_lock(&c->fs->grace.store);
	if (!c->left) {
		c->left = true;
		err = tell_leaving(c);
	}
	mutex_unlock(&c->fs->grace.store);
	if (err < 0)
		vfs_log(VFS_LOG_WARN, "%s: can't notify the other servers that "
			"locks are being reclaimed: %s", c->fs->path,
			strerror(-err));
}

void cfs_grace_forget(struct cfs_client *c)
{
	mutex_lock(&c->fs->grace.store);
	/* With a name it has a record. */
	if (*c->record.text && c->fs->store.open && !c->left &&
	    !atomic_load(&c->grace_until))
		cfs_record_remove(c->fs, &c->record);
	mutex_unlock(&c->fs->grace.store);
}

/* ---- locks */

/* Notes that the session has locks, before it has the first. */
static int note_held(struct cfs_client *c)
{
	if (atomic_load(&c->held))
		return 0;
	if (!atomic_load(&c->grace_until) &&
	    write_record(c, CFS_HELD, 0) < 0)
		return -ETIMEDOUT;
	atomic_store(&c->held, true);
	return 0;
}

/* 0, or why a lock can't be set now. */
static int refuse(const struct cfs_client *c, bool reclaim)
{
	uint64_t now = clock_ms();

	if (!cfs_notice_is_heard(c->fs))
		return -ETIMEDOUT;
	if (!reclaim)
		return now < atomic_load(&c->fs->grace.until) ? -ETIMEDOUT : 0;
	return now < atomic_load(&c->fs->grace.reclaims) ? 0 : -ENOLCK;
}

int cfs_grace_set_begin(struct cfs_client *c, bool reclaim)
{
	int err;

	pthread_rwlock_rdlock(&c->fs->grace.sets);
	err = refuse(c, reclaim);
	if (err == 0)
		err = note_held(c);
	if (err < 0)
		pthread_rwlock_unlock(&c->fs->grace.sets);
	return err;
}

bool cfs_grace_set_late(struct cfs_client *c, bool reclaim, uint64_t began)
{
	/* The other servers grant locks as soon as the time for reclaims is
	 * over. */
	return (reclaim || clock_ms() - began > LATE_MS) &&
	       refuse(c, reclaim) < 0;
}

void cfs_grace_set_end(struct cfs_client *c)
{
	pthread_rwlock_unlock(&c->fs->grace.sets);
}

/* ---- the keeper's part */

/* The record stays that of a grace period while any locker has lost its locks
 * with a session: it must not reclaim locks that others can have by now. */
static void end_own_grace(struct cfs_client *c)
{
	uint64_t until = atomic_load(&c->grace_until);

	if (atomic_load(&c->lockers) == 0)
		c->doubtful = false;
	if (c->left || c->doubtful || !until || clock_ms() < until ||
	    write_record(c, CFS_HELD, 0) < 0)
		return;
	atomic_store(&c->held, true);
	atomic_store(&c->grace_until, 0);
}

/* While no lock is given. */
static void note_none(struct cfs_client *c)
{
	if (!c->left && !atomic_load(&c->grace_until) &&
	    atomic_load(&c->held) && atomic_load(&c->lockers) == 0 &&
	    write_record(c, CFS_LIVE, 0) == 0)
		atomic_store(&c->held, false);
}

/* True if @r is obsolete: its session belongs to this server but to no export,
 * or to a server that ended in order and did not come back. */
static bool is_needless(const struct cfs_fs *fs, const struct cfs_record *r)
{
	if (r->kind != CFS_GRACE || seconds_left(r) > 0)
		return false;
	return cfs_record_is_own(fs, r->name) ?
	       r->process == cfs_process() && !cfs_client_is_named(r->name) :
	       r->since && r->since + RETIRED_S < (uint64_t)time(NULL);
}

static void remove_needless(struct cfs_fs *fs, const struct cfs_record *r,
			    void *arg)
{
	if (is_needless(fs, r) && cfs_record_remove(fs, r) == 0 &&
	    !cfs_record_is_own(fs, r->name))
		cfs_notice_forget(fs, r->name);
}

static void tidy_others(struct cfs_fs *fs)
{
	if (clock_ms() >= fs->grace.tidy_at &&
	    cfs_record_each(fs, remove_needless, NULL) == 0)
		tidy_later(fs);
}

/* Reaches the shared objects again. */
static int rejoin(struct cfs_fs *fs)
{
	int err = cfs_notice_reopen(fs);

	return err < 0 ? err :
	       cfs_record_each(fs, learn_record, &(struct learnt){ 0 });
}

static void set_usable(struct cfs_fs *fs, bool usable)
{
	pthread_rwlock_wrlock(&fs->grace.sets);
	fs->grace.usable = usable;
	pthread_rwlock_unlock(&fs->grace.sets);
}

static void rejoin_lost(struct cfs_fs *fs)
{
	bool was = fs->grace.usable, is;

	if (was && !atomic_load(&fs->grace.lost))
		return;
	set_usable(fs, false);
	is = rejoin(fs) == 0;
	set_usable(fs, is);
	if (is)
		vfs_log(VFS_LOG_INFO, "%s: other servers can notify this one "
			"of their starts again", fs->path);
	else if (was)
		vfs_log(VFS_LOG_WARN, "%s: other servers can't notify this one "
			"of their starts, so it grants no new locks", fs->path);
}

static void tidy_records(struct cfs_fs *fs)
{
	for (unsigned i = 0; i < fs->nclients; i++)
		end_own_grace(&fs->client[i]);
	/* A lock can take long: the next tick tries again. */
	if (pthread_rwlock_trywrlock(&fs->grace.sets) == 0) {
		for (unsigned i = 0; i < fs->nclients; i++)
			note_none(&fs->client[i]);
		pthread_rwlock_unlock(&fs->grace.sets);
	}
	tidy_others(fs);
}

void cfs_grace_tick(struct cfs_fs *fs)
{
	mutex_lock(&fs->grace.store);
	rejoin_lost(fs);
	if (fs->grace.usable)
		tidy_records(fs);
	mutex_unlock(&fs->grace.store);
}
