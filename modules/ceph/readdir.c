/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * readdir - listings.
 *
 * The library's position of an entry is the hash of its name, of 24 bits, and a
 * count of the names of that hash, which changes when one of them is removed.
 * Of a ".snap" it is a count alone.  So a cookie is the hash, and a mark in the
 * place of the count, which is made of the name as well; names of one hash, or
 * all of a ".snap", are a group, read at once and given in the order of their
 * marks.  Cookies are the same for every server, and as long as the directory
 * exists, whatever comes and goes.  So the verifier is not needed.
 */
#include "modules/ceph/ceph.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MARKS		((uint64_t)0xfffffff)	/* of a cookie */
/* The library's first position of a group; before that are "." and "..". */
#define FIRST		2
#define LEAST_MARK	16u

struct entry {
	uint64_t	  cookie;
	struct ceph_statx sx;
	struct dirent	  de;
};

struct group {
	uint64_t	  at;		/* the hash; MARKS of it are 0 */
	unsigned	  n, room;
	struct entry	 *entry;
};

static bool is_parent(const char *name)
{
	return strcmp(name, "..") == 0;
}

/* The attributes of "..", which at the root is the root itself. */
static void own_parent(const struct vfs_op *op, const struct cfs_node *dir,
		       const struct ceph_statx *self, struct vfs_dirent *d)
{
	d->fileid = cfs_fileid(dir->vino);
	if (!op->readdir.plus)
		return;
	cfs_attr(self, &d->attr);
	d->has_attr = true;
	cfs_handle_make(cfs_fs_of(dir), dir->vino, &d->handle);
	d->has_handle = true;
}

/* The library gives a directory its own number as that of "..", where it does
 * not know the one above. */
static uint64_t parent_fileid(struct cfs_call *c, const struct ceph_statx *sx)
{
	uint64_t id = cfs_fileid(cfs_vino(sx));
	struct cfs_node *above;
	struct ceph_statx up;

	if (id != cfs_fileid(c->node->vino) || cfs_is_fixed(c->node) ||
	    cfs_find_above(c, &up, &above) < 0)
		return id;
	vfs_node_put(&above->node);
	return cfs_fileid(cfs_vino(&up));
}

/* Gives the caller one entry.  False: the room is used up. */
static bool give_entry(struct cfs_call *c, struct vfs_op *op,
		       const struct ceph_statx *self, const struct entry *e)
{
	const struct ceph_statx *sx = &e->sx;
	const char *name = e->de.d_name;
	struct vfs_dirent d = {
		.cookie = e->cookie,
		.name = { name, (uint32_t)strlen(name) },
	};

	if (is_parent(name) && cfs_is_top(c->node)) {
		own_parent(op, c->node, self, &d);
	} else {
		d.fileid = is_parent(name) ? parent_fileid(c, sx) :
					     cfs_fileid(cfs_vino(sx));
		/* LOOKUP checks whether ".." is in the tree. */
		if (op->readdir.plus && !is_parent(name)) {
			cfs_attr(sx, &d.attr);
			d.has_attr = true;
			cfs_handle_make(c->client->fs, cfs_vino(sx),
					&d.handle);
			d.has_handle = true;
		}
	}
	return op->readdir.emit(op->readdir.arg, &d);
}

static uint64_t mark_of(const char *name)
{
	return MAX(hash_text(0, name) & MARKS, LEAST_MARK);
}

static int by_cookie(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->cookie != y->cookie)
		return x->cookie < y->cookie ? -1 : 1;
	return strcmp(x->de.d_name, y->de.d_name);
}

/* Gives the entries behind the caller's cookie, and empties @g. */
static bool give_group(struct cfs_call *c, struct vfs_op *op,
		       const struct ceph_statx *self, struct group *g)
{
	bool room = true;

	if (g->n > 1)
		qsort(g->entry, g->n, sizeof(*g->entry), by_cookie);
	for (unsigned i = 0; i < g->n && room; i++)
		if (g->entry[i].cookie > op->readdir.cookie)
			room = give_entry(c, op, self, &g->entry[i]);
	g->n = 0;
	return room;
}

static int join_group(struct group *g, const struct entry *e)
{
	unsigned room = g->room ? 2 * g->room : 4;
	struct entry *more;

	if (g->n == g->room) {
		more = realloc(g->entry, room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		g->entry = more;
		g->room = room;
	}
	g->entry[g->n++] = *e;
	return 0;
}

/* Gives @e, or adds it to @g; first gives the entries of @g if they have
 * another hash.  Returns 1 if the room is used up. */
static int take_entry(struct cfs_call *c, struct vfs_op *op,
		      const struct ceph_statx *self, struct group *g,
		      struct entry *e)
{
	uint64_t at = (uint64_t)e->de.d_off & ~MARKS;

	e->cookie = (uint64_t)e->de.d_off;
	if (e->cookie <= FIRST)			/* "." or ".." */
		return !give_entry(c, op, self, e);
	if (g->n > 0 && g->at != at && !give_group(c, op, self, g))
		return 1;
	g->at = at;
	e->cookie = at | mark_of(e->de.d_name);
	return join_group(g, e);
}

static int give_entries(struct cfs_call *c, struct vfs_op *op,
			const struct ceph_statx *self,
			struct ceph_dir_result *dr)
{
	/* Without attributes the number of the inode is enough, which comes
	 * with the entry. */
	unsigned want = op->readdir.plus ? CFS_WANT : CEPH_STATX_INO;
	unsigned flags = op->readdir.plus ? 0 : AT_STATX_DONT_SYNC;
	struct group g = { .n = 0 };
	struct entry e;
	int r, err = 0;

	if (op->readdir.cookie)
		ceph_seekdir(c->cm, dr, (int64_t)
			     (op->readdir.cookie < FIRST ? op->readdir.cookie :
			      (op->readdir.cookie & ~MARKS) | FIRST));
	do {
		r = ceph_readdirplus_r(c->cm, dr, &e.de, &e.sx, want, flags,
				       NULL);
		if (r > 0)
			err = take_entry(c, op, self, &g, &e);
	} while (r > 0 && err == 0);
	op->eof = r == 0 && give_group(c, op, self, &g);
	free(g.entry);
	return r < 0 ? r : MIN(err, 0);
}

int cfs_readdir(struct vfs_op *op)
{
	struct ceph_dir_result *dr;
	struct ceph_statx self;
	struct cfs_call c;
	int err = cfs_begin_stat(&c, op, &self);

	if (err < 0)
		return err;
	op->readdir.verf = 0;
	if (!S_ISDIR(self.stx_mode))
		err = -ENOTDIR;
	if (err == 0 && op->readdir.cookie > INT64_MAX)
		err = -EBADE;
	if (err == 0)
		err = ceph_ll_opendir(c.cm, c.in, &dr, c.user);
	if (err == 0) {
		err = give_entries(&c, op, &self, dr);
		ceph_ll_releasedir(c.cm, dr);
		if (op->attr)
			cfs_attr(&self, op->attr);
	}
	return cfs_end(&c, err);
}
