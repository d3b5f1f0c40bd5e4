/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client - clients of the library: their names, their use, and their loss (more
 * in session.c).
 */
#include "modules/ceph/ceph.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "lib/clock.h"

#define LOSS_PAUSE_MS	10000

/* The clients of the process that have names: two of one name would shut each
 * other out. */
static struct {
	pthread_mutex_t	   lock;
	struct cfs_client *first;
} named = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- names */

static bool has_name(const struct cfs_client *c, const char *uuid, int slot)
{
	return c->slot == slot && strcmp(c->fs->uuid, uuid) == 0;
}

void cfs_client_take_name(struct cfs_client *c)
{
	struct cfs_client *o;

	mutex_lock(&named.lock);
	for (c->slot = 0;; c->slot++) {
		for (o = named.first; o; o = o->next_named)
			if (has_name(o, c->fs->uuid, c->slot))
				break;
		if (!o)
			break;
	}
	c->next_named = named.first;
	named.first = c;
	snprintf(c->name, sizeof(c->name), "%s.%d", c->fs->uuid, c->slot);
	mutex_unlock(&named.lock);
}

void cfs_client_give_name(struct cfs_client *c)
{
	struct cfs_client **p;

	if (c->slot < 0)
		return;
	mutex_lock(&named.lock);
	for (p = &named.first; *p != c; p = &(*p)->next_named)
		;
	*p = c->next_named;
	mutex_unlock(&named.lock);
	c->slot = -1;
}

bool cfs_client_is_named(const char *name)
{
	struct cfs_client *c;

	mutex_lock(&named.lock);
	for (c = named.first; c && strcmp(c->name, name) != 0;)
		c = c->next_named;
	mutex_unlock(&named.lock);
	return c;
}

/* ---- losing one */

void cfs_lock_init(pthread_rwlock_t *lock)
{
	pthread_rwlockattr_t a;

	pthread_rwlockattr_init(&a);
	pthread_rwlockattr_setkind_np(&a,
			PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(lock, &a);
	pthread_rwlockattr_destroy(&a);
}

void cfs_verf_change(struct cfs_fs *fs)
{
	uint64_t verf;

	if (getrandom(&verf, sizeof(verf), 0) != sizeof(verf))
		verf = atomic_load(&fs->fs.verf) + 1;
	atomic_store(&fs->fs.verf, verf);
}

void cfs_note_loss(struct cfs_fs *fs, int err)
{
	uint64_t now = clock_ms(), said = atomic_load(&fs->loss_said);

	if (err < 0 && (!said || now - said >= LOSS_PAUSE_MS) &&
	    atomic_compare_exchange_strong(&fs->loss_said, &said, now))
		vfs_log(VFS_LOG_ERR, "%s: data could not be written: %s",
			fs->path, strerror(-err));
}

void cfs_wake(struct cfs_fs *fs, struct cfs_chore *chore)
{
	mutex_lock(&fs->lock);
	chore->awake = true;
	pthread_cond_signal(&chore->wake);
	mutex_unlock(&fs->lock);
}

bool cfs_is_lost(int err)
{
	return err == -ESHUTDOWN || err == -ENOTCONN;
}

int cfs_client_error(struct cfs_client *c, int err)
{
	if (cfs_is_lost(err)) {
		if (!atomic_exchange(&c->lost, true))
			cfs_wake(c->fs, &c->fs->keeper);
		return -ETIMEDOUT;
	}
	/* Not the contract's "it would block". */
	return err == -EAGAIN || err == -ECANCELED ? -ETIMEDOUT : err;
}

bool cfs_client_has_session(struct cfs_client *c)
{
	struct Inode *in;
	char time[32];
	int err;

	if (atomic_load(&c->lost) || pthread_rwlock_tryrdlock(&c->lock) != 0)
		return false;
	err = c->cm ? ceph_ll_lookup_root(c->cm, &in) : -ENOTCONN;
	if (err == 0) {
		/* The library does not answer that itself. */
		err = ceph_ll_getxattr(c->cm, in, "ceph.dir.rctime", time,
				       sizeof(time), c->fs->server);
		ceph_ll_put(c->cm, in);
	}
	pthread_rwlock_unlock(&c->lock);
	if (err < 0)
		cfs_client_error(c, err);
	return err >= 0;
}

/* ---- an operation's use of it */

int cfs_begin_by(struct cfs_call *c, struct cfs_client *client)
{
	/* The keeper has the lock, or waits for it. */
	if (atomic_load(&client->lost) ||
	    pthread_rwlock_tryrdlock(&client->lock) != 0)
		return -ETIMEDOUT;
	*c = (struct cfs_call){ .client = client, .cm = client->cm,
				.root = client->fs->server };
	return c->cm ? 0 : cfs_end(c, -ENOTCONN);
}

int cfs_end(struct cfs_call *c, int err)
{
	if (c->user)
		ceph_userperm_destroy(c->user);
	pthread_rwlock_unlock(&c->client->lock);
	return err < 0 ? cfs_client_error(c->client, err) : err;
}

