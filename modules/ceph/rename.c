/* SPDX-License-Identifier: BSD-2-Clause */
/* rename - renames, and moves to other directories. */
#include "modules/ceph/ceph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* 0: the caller may change the ".." of the directory @name, as for
 * rename(2). */
static int may_change_above(struct cfs_call *c, const struct cfs_name *name,
			    const struct vfs_cred *cred)
{
	struct cfs_call it = *c;
	struct ceph_statx sx;
	struct cfs_perm p;
	int err = ceph_ll_lookup(c->cm, c->in, name->s, &it.in, &sx, CFS_WANT,
				 0, c->user);

	if (err < 0)
		return err;
	err = cfs_perm_load(&it, cred, &sx, &p);
	if (err == 0 && !cfs_perm_has(&p, CFS_W))
		err = -EACCES;
	ceph_ll_put(c->cm, it.in);
	return err;
}

static int look_at_name(struct cfs_call *c, const struct cfs_name *name,
			struct ceph_statx *sx)
{
	struct Inode *in;
	int err = ceph_ll_lookup(c->cm, c->in, name->s, &in, sx, CFS_WANT, 0,
				 c->user);

	if (err == 0)
		ceph_ll_put(c->cm, in);
	return err;
}

/* A rename, when its names are locked. */
struct renaming {
	struct cfs_call		*c, *to;
	const struct cfs_name	*name, *to_name;
	const struct vfs_cred	*cred;
	struct ceph_statx	 sx;		/* of the file with the name */
	uint64_t		 over;		/* has the new one; 0: none, or
						 * it does not matter */
};

/* 1: both names are of one file, and rename(2) does nothing.  The library must
 * not be asked for that: it would find neither name afterwards. */
static int is_renamed(struct renaming *r)
{
	bool same = r->c->node == r->to->node &&
		    strcmp(r->name->s, r->to_name->s) == 0;
	struct ceph_statx old;
	int err = look_at_name(r->c, r->name, &r->sx);

	r->over = 0;
	if (err < 0 || same)
		return err < 0 ? err : 1;
	if (!S_ISDIR(r->sx.stx_mode) && r->sx.stx_nlink == 1)
		return 0;
	err = look_at_name(r->to, r->to_name, &old);
	if (err < 0)
		return err == -ENOENT ? 0 : err;
	r->over = old.stx_ino;
	return r->sx.stx_ino == old.stx_ino && r->sx.stx_dev == old.stx_dev;
}

static int sync_moved(struct cfs_call *c, struct cfs_call *to)
{
	int err = cfs_sync_change(c, to->in);

	return err < 0 || to->node == c->node ? err : cfs_sync_change(c, c->in);
}

/* Directories that stay in the mover's memory while listed here. */
struct held_dirs {
	struct Inode	**in;
	unsigned	  n;
};

static int hold_dirs(struct cfs_call *by, const struct cfs_way *w,
		     struct held_dirs *h)
{
	int err = 0;

	h->in = calloc(w->n, sizeof(struct Inode *));
	if (!h->in)
		return -ENOMEM;
	for (; err == 0 && h->n < w->n; h->n += err == 0)
		err = ceph_ll_lookup_vino(by->cm, (vinodeno_t){
			.ino.val = w->ino[h->n], .snapid.val = CFS_HEAD },
			&h->in[h->n]);
	return err == -ENOENT ? -ESTALE : err;
}

static void drop_dirs(struct cfs_call *by, struct held_dirs *h)
{
	while (h->n > 0)
		ceph_ll_put(by->cm, h->in[--h->n]);
	free(h->in);
}

static int begin_by_mover(struct cfs_call *by, struct cfs_call *there,
			  const struct cfs_call *c)
{
	int err = cfs_begin_by(by, cfs_mover(c->client->fs));

	if (err < 0)
		return err;
	err = cfs_begin_other(there, by, &c->node->node);
	return err < 0 ? cfs_end(by, err) : 0;
}

/*
 * The library makes mistakes when it renames entries that it caches (Ceph
 * 16.2).  If the rename replaces one of several names of a file, it hides the
 * other names.  If the file had the new name before another server moved it, it
 * shows the old name as well.  And it does not notice the change of the
 * directory that lost the name.  So a client that caches nothing does the
 * renames; the others learn of them from the metadata server, as if another
 * server had done them.
 *
 * It has to know the directories above, though: a name does not move between
 * quotas, and the library knows only the quotas of directories that it has in
 * memory.
 *
 * @w and @lease are NULL if not needed.
 */
static int rename_by_mover(const struct renaming *r, const struct cfs_way *w,
			   const struct cfs_lease *lease)
{
	struct held_dirs above = { .n = 0 };
	struct cfs_call by, from, into;
	int err = begin_by_mover(&by, &from, r->c);

	if (err < 0)
		return err;
	err = cfs_begin_other(&into, &by, &r->to->node->node);
	if (err == 0) {
		if (w)
			err = hold_dirs(&by, w, &above);
		if (err == 0 && lease && !cfs_lease_lasts(lease))
			err = -ETIMEDOUT;
		if (err == 0)
			err = ceph_ll_rename(by.cm, from.in, r->name->s,
					     into.in, r->to_name->s,
					     r->c->user);
		if (err == 0)
			err = sync_moved(&from, &into);
		err = cfs_after(&into, NULL, err);
		drop_dirs(&by, &above);
		cfs_end_other(&into);
	}
	cfs_end_other(&from);
	return cfs_end(&by, err);
}

static int look_again(struct renaming *r)
{
	int err = is_renamed(r);

	return err == 0 && S_ISDIR(r->sx.stx_mode) ?
	       may_change_above(r->c, r->name, r->cred) : err;
}

/*
 * -EINVAL: a directory would be moved into itself.  -ENOTEMPTY: it would
 * replace a directory above it.  A metadata server can wait forever instead,
 * for a lock that it holds itself: in the second case if clients might just
 * have changed the upper directory, since it then needs the locks of that one
 * to see whether it is empty.
 */
static int move_now(struct renaming *r, const struct cfs_lease *lease)
{
	struct cfs_way w = { .n = 0 };
	int err = cfs_way_up(r->to->node, &w);

	if (err == 0 && S_ISDIR(r->sx.stx_mode) &&
	    cfs_way_has(&w, r->sx.stx_ino))
		err = -EINVAL;
	if (err == 0)
		err = cfs_way_up(r->c->node, &w);
	if (err == 0 && S_ISDIR(r->sx.stx_mode) && cfs_way_has(&w, r->over))
		err = -ENOTEMPTY;
	if (err == 0)
		err = rename_by_mover(r, &w, lease);
	cfs_way_fini(&w);
	return err;
}

/* Moves a directory to another one.  Another server might have renamed before
 * this one had the lease, so look at the name again.  Returns 1 if nothing was
 * to be done. */
static int move_dir(struct renaming *r)
{
	struct cfs_fs *fs = r->c->client->fs;
	struct cfs_lease lease;
	int err = cfs_lease_take(fs, &lease);

	if (err < 0)
		return err;
	err = look_again(r);
	if (err == 0)
		err = move_now(r, &lease);
	cfs_lease_give(fs, &lease);
	return err;
}

/* Returns 1 if nothing was to be done. */
static int rename_now(struct renaming *r)
{
	int err = is_renamed(r);

	if (err == 0 && r->c->node == r->to->node)
		err = rename_by_mover(r, NULL, NULL);
	else if (err == 0)
		err = S_ISDIR(r->sx.stx_mode) ? move_dir(r) : move_now(r, NULL);
	/* READDIR shows the ".." that the library knows. */
	if (err == 0 && S_ISDIR(r->sx.stx_mode))
		look_at_name(r->to, r->to_name, &r->sx);
	/* A directory is in the way: it need not be empty for that. */
	return err == -ENOTEMPTY && !S_ISDIR(r->sx.stx_mode) ? -EISDIR : err;
}

static int move_name(struct cfs_call *c, const struct cfs_name *name,
		     struct cfs_call *to, const struct cfs_name *to_name,
		     const struct vfs_cred *cred)
{
	struct renaming r = { .c = c, .to = to, .name = name,
			      .to_name = to_name, .cred = cred };
	struct cfs_name_locks locks;
	int err = cfs_names_change(&locks, c->node, name, to->node, to_name);

	if (err < 0)
		return err;
	/* Earlier changes have to be over, not only answered. */
	if (c->node != to->node)
		err = sync_moved(c, to);
	if (err == 0)
		err = rename_now(&r);
	cfs_names_done(&locks);
	return MIN(err, 0);
}

int cfs_rename(struct vfs_op *op)
{
	struct cfs_name name, to_name;
	struct cfs_call c, to;
	int err = cfs_begin(&c, op);

	if (err < 0)
		return err;
	cfs_name_set(&name, op->name);
	cfs_name_set(&to_name, op->to.name);
	err = cfs_begin_other(&to, &c, op->to.dir);
	if (err < 0)
		return cfs_end(&c, err);
	err = cfs_before(&c, op->wcc);
	if (err == 0)
		err = cfs_before(&to, op->to.wcc);
	if (err == 0 && (cfs_is_fixed(c.node) || cfs_is_fixed(to.node)))
		err = -EROFS;
	if (err == 0 && (cfs_is_snapdir(&name) || cfs_is_snapdir(&to_name)))
		err = -EEXIST;
	if (err == 0)
		err = move_name(&c, &name, &to, &to_name, op->cred);
	err = cfs_after(&c, op->wcc, err);
	err = cfs_after(&to, op->to.wcc, err);
	cfs_end_other(&to);
	return cfs_end(&c, err);
}

