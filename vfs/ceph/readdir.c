/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * readdir - listings.
 *
 * A cookie is the library's position behind an entry: the hash of its name, and
 * so the same for every server and as long as the directory exists.  Names of
 * one hash are counted from there; so a listing that goes on between two of
 * them may leave out the second one, if the first was removed.  There is
 * nothing for a verifier to tell.
 */
#include "vfs/ceph/ceph.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

static bool is_parent(const char *name)
{
	return strcmp(name, "..") == 0;
}

/* The attributes of "..", which at the root is the root itself. */
static void own_parent(const struct vfs_op *op, const struct cfs_node *dir,
		       const struct ceph_statx *self, struct vfs_dirent *d)
{
	d->fileid = cfs_fileid(dir->vino);
	if (!op->plus)
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

/* Gives the caller one entry.  False: there is no more room. */
static bool give_entry(struct cfs_call *c, struct vfs_op *op,
		       const struct ceph_statx *self, const struct dirent *de,
		       const struct ceph_statx *sx)
{
	struct vfs_dirent d = {
		.cookie = (uint64_t)de->d_off,
		.name = { de->d_name, (uint32_t)strlen(de->d_name) },
	};

	if (is_parent(de->d_name) && cfs_is_top(c->node)) {
		own_parent(op, c->node, self, &d);
	} else {
		d.fileid = is_parent(de->d_name) ? parent_fileid(c, sx) :
						   cfs_fileid(cfs_vino(sx));
		/* LOOKUP tells whether ".." is in the tree. */
		if (op->plus && !is_parent(de->d_name)) {
			cfs_attr(sx, &d.attr);
			d.has_attr = true;
			cfs_handle_make(c->client->fs, cfs_vino(sx),
					&d.handle);
			d.has_handle = true;
		}
	}
	return op->emit(op->arg, &d);
}

static int give_entries(struct cfs_call *c, struct vfs_op *op,
			const struct ceph_statx *self,
			struct ceph_dir_result *dr)
{
	/* Without attributes the number of the inode is enough, which comes
	 * with the entry. */
	unsigned want = op->plus ? CFS_WANT : CEPH_STATX_INO;
	unsigned flags = op->plus ? 0 : AT_STATX_DONT_SYNC;
	struct ceph_statx sx;
	struct dirent de;
	int r;

	if (op->cookie)
		ceph_seekdir(c->cm, dr, (int64_t)op->cookie);
	while ((r = ceph_readdirplus_r(c->cm, dr, &de, &sx, want, flags,
				       NULL)) > 0)
		if (!give_entry(c, op, self, &de, &sx))
			break;
	op->eof = r == 0;
	return MIN(r, 0);
}

int cfs_readdir(struct vfs_op *op)
{
	struct ceph_dir_result *dr;
	struct ceph_statx self;
	struct cfs_call c;
	int err = cfs_begin(&c, op);

	if (err < 0)
		return err;
	op->verf = 0;
	err = cfs_stat(&c, &self);
	if (err == 0 && !S_ISDIR(self.stx_mode))
		err = -ENOTDIR;
	if (err == 0 && op->cookie > INT64_MAX)
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
