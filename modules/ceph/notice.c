/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * notice - servers tell each other that clients reclaim their locks.
 *
 * Each server watches its own object to be told.  It then grants no new lock
 * for the seconds of the notice, by its own clock, and answers when the locks
 * under way are granted.
 *
 * A server that can't be notified, because its watch was not confirmed for
 * FRESH_MS, must not grant locks either.  After LEASE seconds of silence the
 * cluster considers a server gone, and no server waits for its answer.
 */
#include "modules/ceph/servers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/clock.h"

#define LEASE		15
#define FRESH_MS	10000
#define ANSWER_MS	20000

/* ---- being told */

void cfs_notice_begin(struct cfs_fs *fs, uint64_t s)
{
	uint64_t until = clock_ms() + s * 1000;
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
	char text[CFS_RECORD_MAX];

	snprintf(text, sizeof(text), "%.*s", (int)MIN(len, sizeof(text)),
		 (const char *)data);
	cfs_notice_begin(fs, cfs_notice_read(text));
	/* An operation that looked before has its lock now, or none. */
	pthread_rwlock_wrlock(&fs->grace.sets);
	pthread_rwlock_unlock(&fs->grace.sets);
	rados_notify_ack(fs->store.io, fs->grace.object, id, cookie, NULL, 0);
}

static void watch_failed(void *arg, uint64_t cookie, int err)
{
	struct cfs_fs *fs = arg;

	atomic_store(&fs->grace.lost, true);
	cfs_wake(fs, &fs->keeper);
}

static int watch_own(struct cfs_fs *fs)
{
	rados_write_op_t op = rados_create_write_op();
	int err;

	if (!op)
		return -ENOMEM;
	rados_write_op_create(op, LIBRADOS_CREATE_IDEMPOTENT, NULL);
	err = rados_write_op_operate(op, fs->store.io, fs->grace.object, NULL,
				     CFS_WHEN_FULL);
	rados_release_write_op(op);
	return err < 0 ? err :
	       rados_watch3(fs->store.io, fs->grace.object, &fs->grace.cookie,
			    hear_notice, watch_failed, LEASE, fs);
}

/* ---- the watch's life */

int cfs_notice_open(struct cfs_fs *fs)
{
	int err;

	if (asprintf(&fs->grace.object, "server.%s", fs->uuid) < 0) {
		fs->grace.object = NULL;
		return -ENOMEM;
	}
	fs->grace.began = (uint64_t)time(NULL);
	err = watch_own(fs);
	fs->grace.usable = err == 0;
	return err;
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

static void find_own(struct cfs_fs *fs, const struct cfs_record *r, void *arg)
{
	*(bool *)arg |= cfs_record_is_own(fs, r->name);
}

void cfs_notice_close(struct cfs_fs *fs)
{
	bool any = false;

	/* No other export, now or later, needs the object. */
	if (fs->store.open && fs->grace.object &&
	    cfs_record_each(fs, find_own, &any) == 0 && !any)
		rados_remove(fs->store.io, fs->grace.object);
	leave_store(fs);
	free(fs->grace.object);
}

int cfs_notice_reopen(struct cfs_fs *fs)
{
	int err;

	leave_store(fs);
	atomic_store(&fs->grace.lost, false);
	err = cfs_store_open(fs->options, &fs->store);
	return err < 0 ? err : watch_own(fs);
}

bool cfs_notice_is_heard(const struct cfs_fs *fs)
{
	int age = fs->grace.usable && !atomic_load(&fs->grace.lost) ?
		  rados_watch_check(fs->store.io, fs->grace.cookie) : -1;

	return age >= 0 && age < FRESH_MS;
}

/* ---- telling */

/* The object of the server that has, or had, the session @name. */
struct object {
	char name[CFS_SESSION_MAX + 16];
};

static struct object object_of(const char *name)
{
	struct object o;

	snprintf(o.name, sizeof(o.name), "server.%s", name);
	*strrchr(o.name, '.') = '\0';
	return o;
}

void cfs_notice_forget(struct cfs_fs *fs, const char *name)
{
	rados_remove(fs->store.io, object_of(name).name);
}

struct telling {
	char	      text[CFS_RECORD_MAX];
	struct object last;		/* that was told */
	unsigned      silent;		/* servers that did not answer */
};

static void tell_server(struct cfs_fs *fs, const struct cfs_record *r,
			void *arg)
{
	struct telling *t = arg;
	struct object o = object_of(r->name);
	int err;

	/* It has a record for each session. */
	if (cfs_record_is_own(fs, r->name) ||
	    strcmp(o.name, t->last.name) == 0)
		return;
	t->last = o;
	/* An object without a watcher is of a server that has ended. */
	err = rados_notify2(fs->store.io, o.name, t->text,
			    (int)strlen(t->text), ANSWER_MS, NULL, NULL);
	if (err < 0 && err != -ENOENT)
		t->silent++;
}

int cfs_notice_tell(struct cfs_fs *fs)
{
	struct telling t = { .silent = 0 };
	int err;

	snprintf(t.text, sizeof(t.text), "grace %u", cfs_grace_s(fs->options));
	err = cfs_record_each(fs, tell_server, &t);
	if (t.silent)
		vfs_log(VFS_LOG_WARN, "%s: %u of the other servers did not "
			"answer; they grant no locks without the cluster",
			fs->path, t.silent);
	return err;
}
