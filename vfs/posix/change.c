/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * change - changes of one file, through all its exports and nodes.
 *
 * Two exports of one directory have two nodes for a file, and a node that was
 * forgotten lives on beside a new one.  So changes of a file find each other by
 * device and inode number, in one table of the process.
 *
 * Counts tell a change whether it was alone.  Files that share a count only
 * lose their "before" attributes now and then.
 *
 * A hold keeps other SETATTRs of the file out while one checks its guard and
 * acts on it, and on btrfs syncs of the file through other nodes while one is
 * under way.  Holds are compared exactly, since one on a disk that hangs may
 * last for ever and must not stop another file's.
 */
#include "vfs/posix/change.h"

#include <errno.h>

#define COUNTS_BITS	12
#define GROUPS_BITS	6

static struct posix_counts {
	atomic_uint begun;
	atomic_uint ended;
} counts[1 << COUNTS_BITS];

static struct posix_hold_group {
	pthread_mutex_t	   lock;
	pthread_cond_t	   freed;	/* one of the holds ended */
	struct posix_hold *holds;	/* under the lock */
} groups[1 << GROUPS_BITS] = {
	[0 ... (1 << GROUPS_BITS) - 1] = {
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.freed = PTHREAD_COND_INITIALIZER,
	},
};

static uint64_t file_hash(struct posix_node *n)
{
	return hash_mix(posix_fs_of(n)->dev, n->ino);
}

int posix_change_begin(struct posix_change *c, struct posix_node *n,
		       struct vfs_wcc *wcc)
{
	int err;

	c->node = n;
	c->wcc = wcc;
	c->counts = &counts[file_hash(n) >> (64 - COUNTS_BITS)];
	c->seq = atomic_fetch_add(&c->counts->begun, 1);
	c->alone = atomic_load(&c->counts->ended) == c->seq;
	c->mark = posix_node_mark(n);
	c->fixed = false;
	err = n->type == VFS_REG ?
	      posix_stat_flags(n, &c->before, &c->fixed) :
	      posix_stat(n, &c->before);
	if (!wcc)
		return err;
	memset(wcc, 0, sizeof(*wcc));
	if (err == 0) {
		wcc->has_before = true;
		wcc->before_size = c->before.st_size;
		wcc->before_mtime = c->before.st_mtim;
		wcc->before_ctime = c->before.st_ctim;
	}
	return err;
}

void posix_change_end(struct posix_change *c)
{
	struct posix_node *n = c->node;
	struct stat st;

	if (c->wcc && posix_fstat(n->fd, &st) == 0) {
		c->wcc->has_after = true;
		posix_attr(posix_fs_of(n), &st, &c->wcc->after);
	}
	if (c->wcc && (!c->alone ||
		       atomic_load(&c->counts->begun) != c->seq + 1))
		c->wcc->has_before = false;
	atomic_fetch_add(&c->counts->ended, 1);
}

static bool is_held(const struct posix_hold_group *g, dev_t dev, ino_t ino)
{
	for (const struct posix_hold *h = g->holds; h; h = h->next)
		if (h->ino == ino && h->dev == dev)
			return true;
	return false;
}

int posix_hold(struct posix_hold *h, struct posix_node *n, bool may_wait)
{
	struct posix_hold_group *g;
	bool held;

	g = &groups[file_hash(n) >> (64 - GROUPS_BITS)];
	h->dev = posix_fs_of(n)->dev;
	h->ino = n->ino;
	h->group = g;
	mutex_lock(&g->lock);
	while ((held = is_held(g, h->dev, h->ino)) && may_wait)
		pthread_cond_wait(&g->freed, &g->lock);
	if (!held) {
		h->next = g->holds;
		g->holds = h;
	}
	mutex_unlock(&g->lock);
	return held ? -EAGAIN : 0;
}

void posix_hold_end(struct posix_hold *h)
{
	struct posix_hold_group *g = h->group;
	struct posix_hold **link = &g->holds;

	mutex_lock(&g->lock);
	while (*link != h)
		link = &(*link)->next;
	*link = h->next;
	pthread_cond_broadcast(&g->freed);
	mutex_unlock(&g->lock);
}
