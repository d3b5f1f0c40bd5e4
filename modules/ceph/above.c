/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * above - the directories above one.
 *
 * A client of the library remembers in which directory it saw another one, and
 * answers ".." with that, even after another client has moved it.  So a
 * separate client, the climber, goes up.  It looks up ".." and nothing else, so
 * it has nothing to remember, and asks the metadata server each time.
 */
#include "modules/ceph/ceph.h"

#include <errno.h>
#include <stdlib.h>

/* One directory up from @at, whose number is @ino and which is not the root.
 * @c is a call by the climber. */
static int step_up(struct cfs_call *c, struct Inode *at, uint64_t ino,
		   UserPerm *user, struct Inode **up, struct ceph_statx *sx)
{
	int err = ceph_ll_lookup(c->cm, at, "..", up, sx, CFS_WANT, 0, user);

	if (err < 0 || sx->stx_ino != ino)
		return err;
	/* The library returns the directory itself when the metadata server
	 * gives no other: it is gone, or outside the tree, or the client is
	 * shut out. */
	ceph_ll_put(c->cm, *up);
	err = ceph_ll_getattr(c->cm, at, sx, CFS_WANT, 0, c->root);
	if (err == -ENOENT || (err == 0 && sx->stx_nlink == 0))
		return -ESTALE;
	if (err < 0)
		return err;
	return cfs_client_has_session(c->client) ? -EACCES : -ETIMEDOUT;
}

bool cfs_way_has(const struct cfs_way *w, uint64_t ino)
{
	for (unsigned i = 0; i < w->n; i++)
		if (w->ino[i] == ino)
			return true;
	return false;
}

static int add_to_way(struct cfs_way *w, uint64_t ino)
{
	unsigned room = w->room ? 2 * w->room : 16;
	uint64_t *more;

	if (w->n == w->room) {
		more = realloc(w->ino, room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		w->ino = more;
		w->room = room;
	}
	w->ino[w->n++] = ino;
	return 0;
}

void cfs_way_fini(struct cfs_way *w)
{
	free(w->ino);
}

static int ascend(struct cfs_call *c, struct Inode *from, uint64_t ino,
		  struct cfs_way *w)
{
	const uint64_t root = c->client->fs->root.ino.val;
	struct Inode *at = from, *up;
	struct ceph_statx sx;
	int err = 0;

	while (err == 0 && !cfs_way_has(w, ino)) {
		err = add_to_way(w, ino);
		if (err < 0 || ino == root)
			break;
		err = step_up(c, at, ino, c->root, &up, &sx);
		if (err < 0)
			break;
		if (at != from)
			ceph_ll_put(c->cm, at);
		at = up;
		ino = sx.stx_ino;
	}
	if (at != from)
		ceph_ll_put(c->cm, at);
	return err;
}

/* Begins a call by the climber, at @n. */
static int begin_climb(struct cfs_call *c, struct cfs_node *n)
{
	struct cfs_fs *fs = cfs_fs_of(n);
	int err = cfs_begin_by(c, cfs_climber(fs));

	if (err < 0)
		return err;
	err = ceph_ll_lookup_vino(c->cm, n->vino, &c->in);
	return err < 0 ? cfs_end(c, err == -ENOENT ? -ESTALE : err) : 0;
}

static int end_climb(struct cfs_call *c, int err)
{
	ceph_ll_put(c->cm, c->in);
	return cfs_end(c, err);
}

int cfs_way_up(struct cfs_node *from, struct cfs_way *w)
{
	struct cfs_call c;
	int err = begin_climb(&c, from);

	return err < 0 ? err :
	       end_climb(&c, ascend(&c, c.in, from->vino.ino.val, w));
}

int cfs_find_above(struct cfs_call *c, struct ceph_statx *sx,
		   struct cfs_node **out)
{
	struct cfs_way w = { .n = 0 };
	struct cfs_call by;
	struct Inode *up;
	int err = begin_climb(&by, c->node);

	if (err < 0)
		return err;
	err = step_up(&by, by.in, c->node->vino.ino.val, c->user, &up, sx);
	if (err < 0)
		return end_climb(&by, err);
	/* No name leads out of the tree. */
	err = ascend(&by, up, sx->stx_ino, &w);
	cfs_way_fini(&w);
	if (err == 0)
		err = cfs_node_of(&by, up, sx, out);
	else
		ceph_ll_put(by.cm, up);
	return end_climb(&by, err);
}
