/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * change - changes of one file, through all its exports and nodes.
 *
 * Two exports of one directory have two nodes for a file, and a node that was
 * forgotten while in use coexists with a new one.  So changes of a file find
 * each other by device and inode number, in one table of the process.
 *
 * Counts tell a change whether it was alone.  Files that share a count only
 * lose their "before" attributes now and then.
 */
#include "vfs/posix/attr.h"
#include "vfs/posix/change.h"

#define COUNTS_BITS	12

/* Aligned: several processors' changes must not share a cache line. */
static struct posix_counts {
	atomic_uint begun;
	atomic_uint ended;
} __attribute__((aligned(64))) counts[1 << COUNTS_BITS];

int posix_change_begin(struct posix_change *c, struct posix_node *n,
		       struct vfs_wcc *wcc)
{
	int err;

	c->node = n;
	c->wcc = wcc;
	c->counts = &counts[hash_mix(posix_fs_of(n)->dev, n->ino) >>
			    (64 - COUNTS_BITS)];
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
