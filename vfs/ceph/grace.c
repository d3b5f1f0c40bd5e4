/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * grace - the grace period of all servers.
 *
 * When a server starts again, the locks that its clients had are free: of the
 * session that it takes over, and so at every server.  Its clients are to get
 * them back, and nobody else before that.  So every session (a client of the
 * library) has a record in an object that all servers share:
 *
 *	live		it has no locks
 *	held		it has had locks since it began
 *	grace SECONDS	its server has ended or started, and the clients may
 *			still have to reclaim
 *
 * A server that takes over a session whose record is one of the last two, or
 * that ends with locks, makes it the last one and tells each other server,
 * which then gives nobody a new lock for SECONDS by its own clock, and answers
 * when those under way are given.  Only then is the session taken over.  Each
 * server watches an object of its own to be told; one that starts reads the
 * records.
 *
 * A server that can't be told must not give locks either: one whose watch is
 * not confirmed for LEASE seconds, which is less than the time for which an
 * answer is waited for.
 */
#include "vfs/ceph/ceph.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"

#define RECORDS		"servers"
#define LEASE		15
#define ANSWER_MS	20000
#define BATCH		100
#define RECORD_MAX	24

struct record {
	char name[CFS_SESSION_MAX];	/* of the session */
	char text[RECORD_MAX];
};

/* ---- records */

/* Fills in @r.  False: there are no more, or what can be none is next. */
static bool get_record(rados_omap_iter_t iter, struct record *r)
{
	char *key, *val;
	size_t key_len, val_len;

	if (rados_omap_get_next2(iter, &key, &val, &key_len, &val_len) < 0 ||
	    !key || key_len >= sizeof(r->name))
		return false;
	memcpy(r->name, key, key_len);
	r->name[key_len] = '\0';
	val_len = MIN(val_len, sizeof(r->text) - 1);
	memcpy(r->text, val, val_len);
	r->text[val_len] = '\0';
	return true;
}

typedef void record_fn(struct cfs_fs *fs, const struct record *r, void *arg);

/* Calls @fn for some records behind @last, which it moves on. */
static int some_records(struct cfs_fs *fs, struct record *last, bool *more,
			record_fn *fn, void *arg)
{
	rados_read_op_t op = rados_create_read_op();
	rados_omap_iter_t iter;
	unsigned char left = 0;
	int err, rval = 0;
	bool any = false;

	if (!op)
		return -ENOMEM;
	rados_read_op_omap_get_vals2(op, last->name, "", BATCH, &iter, &left,
				     &rval);
	err = rados_read_op_operate(op, fs->store.io, RECORDS, 0);
	rados_release_read_op(op);
	*more = false;
	if (err < 0 || rval < 0)
		return err < 0 ? err : rval;
	while (get_record(iter, last)) {
		fn(fs, last, arg);
		any = true;
	}
	rados_omap_get_end(iter);
	*more = left && any;
	return 0;
}

static int each_record(struct cfs_fs *fs, record_fn *fn, void *arg)
{
	struct record last = { .name = "" };
	bool more = true;
	int err = 0;

	while (err == 0 && more)
		err = some_records(fs, &last, &more, fn, arg);
	/* No server has made the object yet. */
	return err == -ENOENT ? 0 : err;
}

/* @text NULL: removes it. */
static int put_record(const struct cfs_client *c, const char *text)
{
	rados_write_op_t op = rados_create_write_op();
	size_t key_len = strlen(c->name), len = text ? strlen(text) : 0;
	const char *key = c->name;
	int err;

	if (!op)
		return -ENOMEM;
	if (text)
		rados_write_op_omap_set2(op, &key, &text, &key_len, &len, 1);
	else
		rados_write_op_omap_rm_keys2(op, &key, &key_len, 1);
	err = rados_write_op_operate(op, c->fs->store.io, RECORDS, NULL, 0);
	rados_release_write_op(op);
	return err;
}

/* ---- being told */

/* The seconds of a record or a message; 0: none. */
static unsigned seconds_of(const char *text)
{
	unsigned s;

	/* sscanf() would take a sign. */
	if (strncmp(text, "grace ", 6) != 0 || text[6] < '0' || text[6] > '9')
		return 0;
	return sscanf(text + 6, "%5u", &s) == 1 ? MIN(s, CFS_GRACE_MAX) : 0;
}

static void begin_grace(struct cfs_fs *fs, unsigned s)
{
	uint64_t until = clock_ms() + s * 1000ull;
	uint64_t old = atomic_load(&fs->grace.until);

	while (old < until &&
	       !atomic_compare_exchange_weak(&fs->grace.until, &old, until))
		;
}

/* On a thread of the library. */
static void hear_notice(void *arg, uint64_t id, uint64_t cookie, uint64_t from,
		 void *data, size_t len)
{
	struct cfs_fs *fs = arg;
	char text[RECORD_MAX];

	snprintf(text, sizeof(text), "%.*s", (int)MIN(len, sizeof(text)),
		 (const char *)data);
	begin_grace(fs, seconds_of(text));
	/* An operation that looked before has its lock now, or none. */
	pthread_rwlock_wrlock(&fs->grace.sets);
	pthread_rwlock_unlock(&fs->grace.sets);
	rados_notify_ack(fs->store.io, fs->grace.object, id, cookie, NULL, 0);
}

static void watch_failed(void *arg, uint64_t cookie, int err)
{
	struct cfs_fs *fs = arg;

	atomic_store(&fs->grace.lost, true);
	cfs_wake(fs);
}

static int watch_own(struct cfs_fs *fs)
{
	rados_write_op_t op = rados_create_write_op();
	int err;

	if (!op)
		return -ENOMEM;
	rados_write_op_create(op, LIBRADOS_CREATE_IDEMPOTENT, NULL);
	err = rados_write_op_operate(op, fs->store.io, fs->grace.object, NULL,
				     0);
	rados_release_write_op(op);
	return err < 0 ? err :
	       rados_watch3(fs->store.io, fs->grace.object, &fs->grace.cookie,
			    hear_notice, watch_failed, LEASE, fs);
}

/* True if the session @name is of this server. */
static bool is_own(const struct cfs_fs *fs, const char *name)
{
	size_t len = strlen(fs->uuid);

	return strncmp(name, fs->uuid, len) == 0 &&
	       strrchr(name, '.') == name + len;
}

static void learn_record(struct cfs_fs *fs, const struct record *r, void *arg)
{
	if (!is_own(fs, r->name))
		begin_grace(fs, seconds_of(r->text));
}

static void set_usable(struct cfs_fs *fs, bool usable)
{
	pthread_rwlock_wrlock(&fs->grace.sets);
	fs->grace.usable = usable;
	pthread_rwlock_unlock(&fs->grace.sets);
}

int cfs_grace_open(struct cfs_fs *fs)
{
	int err;

	if (asprintf(&fs->grace.object, "server.%s", fs->uuid) < 0) {
		fs->grace.object = NULL;
		return -ENOMEM;
	}
	err = watch_own(fs);
	fs->grace.usable = err == 0;
	return err;
}

int cfs_grace_learn(struct cfs_fs *fs)
{
	return each_record(fs, learn_record, NULL);
}

static void leave_store(struct cfs_fs *fs)
{
	if (!fs->store.open)
		return;
	if (fs->grace.cookie)
		rados_unwatch2(fs->store.io, fs->grace.cookie);
	rados_watch_flush(fs->store.cluster);
	fs->grace.cookie = 0;
	cfs_store_close(&fs->store);
}

void cfs_grace_close(struct cfs_fs *fs)
{
	leave_store(fs);
	free(fs->grace.object);
}

/* ---- telling */

struct telling {
	char	 text[RECORD_MAX];
	unsigned silent;		/* servers that did not answer */
};

static void tell_server(struct cfs_fs *fs, const struct record *r, void *arg)
{
	struct telling *t = arg;
	char object[CFS_SESSION_MAX + 16];
	int err;

	if (is_own(fs, r->name) || !strrchr(r->name, '.'))
		return;
	snprintf(object, sizeof(object), "server.%s", r->name);
	*strrchr(object, '.') = '\0';
	/* An object without a watcher is of a server that has ended. */
	err = rados_notify2(fs->store.io, object, t->text,
			    (int)strlen(t->text), ANSWER_MS, NULL, NULL);
	if (err < 0 && err != -ENOENT)
		t->silent++;
}

/* Makes @c's record one of grace, and tells the others. */
static int announce(struct cfs_client *c)
{
	struct cfs_fs *fs = c->fs;
	struct telling t = { .silent = 0 };
	int err;

	snprintf(t.text, sizeof(t.text), "grace %u", cfs_grace_s(fs->options));
	/* First, since a server that starts now reads it. */
	err = put_record(c, t.text);
	if (err == 0)
		err = each_record(fs, tell_server, &t);
	if (t.silent)
		vfs_log(VFS_LOG_WARN, "%s: %u of the other servers did not "
			"answer; they give no locks without the cluster",
			fs->path, t.silent);
	return err;
}

struct own {
	const char *name;
	bool	    locked;
};

static void look_for_own(struct cfs_fs *fs, const struct record *r, void *arg)
{
	struct own *own = arg;

	if (strcmp(r->name, own->name) == 0)
		own->locked = strcmp(r->text, "live") != 0;
}

int cfs_grace_take_over(struct cfs_client *c)
{
	struct own own = { .name = c->name };
	int err;

	mutex_lock(&c->fs->grace.store);
	err = c->fs->store.open ? each_record(c->fs, look_for_own, &own) :
				-ENOTCONN;
	c->left = false;
	atomic_store(&c->held, false);
	atomic_store(&c->grace_until, 0);
	if (err == 0 && own.locked) {
		err = announce(c);
		atomic_store(&c->grace_until, clock_ms() +
			     cfs_grace_s(c->fs->options) * 1000ull);
	} else if (err == 0) {
		err = put_record(c, "live");
	}
	mutex_unlock(&c->fs->grace.store);
	return err;
}

void cfs_grace_leave(struct cfs_client *c)
{
	mutex_lock(&c->fs->grace.store);
	if (!c->left && c->fs->store.open) {
		c->left = true;
		if (announce(c) < 0)
			vfs_log(VFS_LOG_WARN, "%s: the other servers can't be "
				"told that locks are to be reclaimed",
				c->fs->path);
	}
	mutex_unlock(&c->fs->grace.store);
}

void cfs_grace_forget(struct cfs_client *c)
{
	if (c->fs->store.open && !c->left && !atomic_load(&c->grace_until))
		put_record(c, NULL);
}

/* ---- locks */

/* Notes that the session has locks, before it has the first. */
static int note_held(struct cfs_client *c)
{
	if (atomic_load(&c->held))
		return 0;
	if (!atomic_load(&c->grace_until) && put_record(c, "held") < 0)
		return -ETIMEDOUT;
	atomic_store(&c->held, true);
	return 0;
}

static bool can_be_told(const struct cfs_fs *fs)
{
	int age = fs->grace.usable && !atomic_load(&fs->grace.lost) ?
		  rados_watch_check(fs->store.io, fs->grace.cookie) : -1;

	return age >= 0 && age < LEASE * 1000;
}

int cfs_grace_set_begin(struct cfs_client *c, bool reclaim)
{
	struct cfs_fs *fs = c->fs;
	int err = -ETIMEDOUT;

	pthread_rwlock_rdlock(&fs->grace.sets);
	if (can_be_told(fs) &&
	    (reclaim || clock_ms() >= atomic_load(&fs->grace.until)))
		err = note_held(c);
	if (err < 0)
		pthread_rwlock_unlock(&fs->grace.sets);
	return err;
}

void cfs_grace_set_end(struct cfs_client *c)
{
	pthread_rwlock_unlock(&c->fs->grace.sets);
}

/* ---- the keeper's part */

/* Changes the record when the grace period is over, or no lock is left. */
static void tidy_record(struct cfs_client *c)
{
	uint64_t until = atomic_load(&c->grace_until);
	bool locked = atomic_load(&c->lockers) > 0;

	if (c->left || (until ? clock_ms() < until :
				locked || !atomic_load(&c->held)))
		return;
	if (put_record(c, locked ? "held" : "live") < 0)
		return;
	atomic_store(&c->held, locked);
	atomic_store(&c->grace_until, 0);
}

/* Reaches the shared objects anew. */
static int rejoin(struct cfs_fs *fs)
{
	int err;

	leave_store(fs);
	atomic_store(&fs->grace.lost, false);
	err = cfs_store_open(fs->options, &fs->store);
	if (err == 0)
		err = watch_own(fs);
	return err < 0 ? err : cfs_grace_learn(fs);
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
		vfs_log(VFS_LOG_INFO, "%s: other servers can tell this one of "
			"their starts again", fs->path);
	else if (was)
		vfs_log(VFS_LOG_WARN, "%s: other servers can't tell this one "
			"of their starts, so it gives no new locks", fs->path);
}

void cfs_grace_tick(struct cfs_fs *fs)
{
	mutex_lock(&fs->grace.store);
	rejoin_lost(fs);
	/* No lock is given meanwhile.  One may be under way for long: the next
	 * tick tries again. */
	if (pthread_rwlock_trywrlock(&fs->grace.sets) == 0) {
		for (unsigned i = 0; i < fs->nclients && fs->grace.usable; i++)
			tidy_record(&fs->client[i]);
		pthread_rwlock_unlock(&fs->grace.sets);
	}
	mutex_unlock(&fs->grace.store);
}
