/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lock - locks that other servers and clients of the file system see.
 *
 * The library keeps a lock with an open file and forgets it when that is
 * closed.  So each owner of locks on a file has its own open file, from
 * its first lock to its end.
 */
#include "modules/ceph/servers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "lib/clock.h"

struct held_locks {
	struct Fh	*fh;
	uint64_t	 generation;	/* of the node's client */
};

static struct held_locks *held_by(const struct vfs_lock *l)
{
	return l->locker ? (struct held_locks *)l->locker->held : NULL;
}

static void forget_held(struct cfs_client *c, const struct vfs_lock *l,
			struct held_locks *h)
{
	if (h)
		atomic_fetch_sub(&c->lockers, 1);
	l->locker->held = 0;
	free(h);
}

/* The file that holds the locker's locks, opened if need be. */
static int open_held(struct cfs_call *c, const struct vfs_lock *l,
		     struct held_locks **out)
{
	struct held_locks *h = held_by(l);
	int err;

	if (h && h->generation == c->client->generation) {
		*out = h;
		return 0;
	}
	if (!h) {
		h = calloc(1, sizeof(*h));
		if (!h)
			return -ENOMEM;
		atomic_fetch_add(&c->client->lockers, 1);
	}
	h->fh = NULL;
	err = ceph_ll_open(c->cm, c->in, cfs_is_fixed(c->node) ? O_RDONLY :
			   O_RDWR, &h->fh, c->root);
	if (err < 0) {
		forget_held(c->client, l, h);
		return err;
	}
	h->generation = c->client->generation;
	l->locker->held = (intptr_t)h;
	*out = h;
	return 0;
}

static struct flock flock_of(const struct vfs_lock *l, short type)
{
	return (struct flock){ .l_type = type, .l_whence = SEEK_SET,
			       .l_start = (off_t)l->off,
			       .l_len = (off_t)l->len };
}

static short flock_type(const struct vfs_lock *l)
{
	return l->exclusive ? F_WRLCK : F_RDLCK;
}

/* Locks of a client that was lost are gone with it. */
static bool holds_locks(const struct cfs_call *c, const struct held_locks *h)
{
	return h && h->generation == c->client->generation;
}

static int set_held(struct cfs_call *c, const struct vfs_lock *l)
{
	struct flock f = flock_of(l, flock_type(l));
	struct held_locks *h;
	int err = open_held(c, l, &h);

	return err == 0 ? ceph_ll_setlk(c->cm, h->fh, &f, l->locker->id, 0) :
			  err;
}

static int take_lock(struct cfs_call *c, const struct vfs_lock *l)
{
	uint64_t began = clock_ms();
	int err;

	/* No other client can have got it meanwhile. */
	if (l->back)
		return holds_locks(c, held_by(l)) ? set_held(c, l) :
						    -ETIMEDOUT;
	err = cfs_grace_set_begin(c->client, l->reclaim);
	if (err < 0)
		return err;
	err = set_held(c, l);
	if (err == 0 && cfs_grace_set_late(c->client, l->reclaim, began))
		err = VFS_LOCK_LATE;
	cfs_grace_set_end(c->client);
	return err == -EAGAIN || err == -EWOULDBLOCK ? 1 : err;
}

static int clear_lock(struct cfs_call *c, const struct vfs_lock *l)
{
	struct flock f = flock_of(l, F_UNLCK);
	struct held_locks *h = held_by(l);

	return holds_locks(c, h) ?
	       ceph_ll_setlk(c->cm, h->fh, &f, l->locker->id, 0) : 0;
}

static int ask_lock(struct cfs_call *c, struct vfs_lock *l)
{
	struct flock f = flock_of(l, flock_type(l));
	struct held_locks *h = held_by(l);
	bool own = holds_locks(c, h);
	/* No owner has this number. */
	uint64_t id = l->locker ? l->locker->id : UINT64_MAX;
	struct Fh *fh;
	int err = 0;

	if (own)
		fh = h->fh;
	else
		err = cfs_open(c, false, &fh);
	if (err < 0)
		return err;
	err = ceph_ll_getlk(c->cm, fh, &f, id);
	if (!own)
		cfs_close(c);
	if (err < 0 || f.l_type == F_UNLCK)
		return err;
	l->exclusive = f.l_type == F_WRLCK;
	l->off = (uint64_t)f.l_start;
	l->len = (uint64_t)f.l_len;
	l->pid = 0;			/* of another machine */
	return 1;
}

/* Closing the file unlocks all. */
static void end_locks(struct cfs_call *c, const struct vfs_lock *l)
{
	struct held_locks *h = held_by(l);

	if (holds_locks(c, h))
		ceph_ll_close(c->cm, h->fh);
}

/* Unlocking needs only the open file: the inode can be gone. */
static int begin_for_lock(struct cfs_call *c, const struct vfs_op *op)
{
	if (op->nonblock || op->lock->how == VFS_LOCK_TEST ||
	    op->lock->how == VFS_LOCK_SET)
		return cfs_begin(c, op);
	return cfs_begin_by(c, cfs_node(op->node)->client);
}

int cfs_lock(struct vfs_op *op)
{
	struct vfs_lock *l = op->lock;
	struct cfs_client *client = cfs_node(op->node)->client;
	struct cfs_call c;
	int err;

	if (l->how == VFS_LOCK_RELEASE && l->reclaim && held_by(l))
		cfs_grace_leave(client);
	err = begin_for_lock(&c, op);
	if (err == 0) {
		switch (l->how) {
		case VFS_LOCK_TEST:
			err = ask_lock(&c, l);
			break;
		case VFS_LOCK_SET:
			err = take_lock(&c, l);
			break;
		case VFS_LOCK_CLEAR:
			err = clear_lock(&c, l);
			break;
		default:
			end_locks(&c, l);
		}
		err = cfs_end(&c, err);
	}
	if (l->how != VFS_LOCK_RELEASE)
		return err;
	/* With a client that is lost, so are its locks. */
	forget_held(client, l, held_by(l));
	return 0;
}
