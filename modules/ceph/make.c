/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * make - CREATE, MKDIR, SYMLINK and MKNOD.
 *
 * An EXCLUSIVE CREATE has to know its own file when the client sends it again
 * (RFC 1813 section 3.3.8), perhaps to another server after its own has died.
 * The verifier must be there as soon as the file is.  MKNOD of a regular file
 * is one request, and its device number is kept, is visible to every client of
 * the file system, and means nothing else for a file.  So it stores 32 bits
 * derived from the verifier, which are never all 0.
 */
#include "modules/ceph/ceph.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>

/* The mode if the client gives none: for the owner alone. */
#define NEW_FILE	0600
#define NEW_DIR		0700

#define CREATE_TRIES	3

/* A making of a name in the call's directory. */
struct cfs_making {
	struct cfs_call		 c;
	struct vfs_op		*op;
	struct cfs_name		 name;
	struct Inode		*in;	/* new or found, counted */
	struct Fh		*fh;	/* open; NULL: not */
	bool			 was_there;
	struct ceph_statx	 sx;
};

/* Set-id bits come later: cfs_set_new() checks who may set them. */
static uint32_t mode_for(const struct vfs_setattr *set, uint32_t otherwise)
{
	return set->set & VFS_SET_MODE ? set->mode & 01777 : otherwise;
}

static int making_start(struct cfs_making *m, struct vfs_op *op)
{
	int err;

	m->op = op;
	m->in = NULL;
	m->fh = NULL;
	m->was_there = false;
	err = cfs_begin_change(&m->c, op, &m->name);
	return err == 0 && cfs_is_snapdir(&m->name) ?
	       cfs_end(&m->c, cfs_after(&m->c, op->wcc, -EEXIST)) : err;
}

/* Makes the name durable, and creates the node of the new file. */
static int making_done(struct cfs_making *m, int err)
{
	struct vfs_op *op = m->op;
	struct cfs_node *n;
	int sync = 0;

	/* It is there even if its attributes could not be set. */
	if (m->in)
		sync = cfs_sync_change(&m->c, m->c.in);
	err = cfs_after(&m->c, op->wcc, err == 0 ? sync : err);
	if (err == 0) {
		/* Takes m->in. */
		err = cfs_node_of(&m->c, m->in, &m->sx, &n);
		m->in = NULL;
	}
	if (err == 0) {
		if (m->fh)
			cfs_keep_open(&m->c, n, m->fh);
		m->fh = NULL;
		op->out = &n->node;
		if (op->attr)
			cfs_attr(&m->sx, op->attr);
	}
	if (m->fh)
		ceph_ll_close(m->c.cm, m->fh);
	if (m->in)
		ceph_ll_put(m->c.cm, m->in);
	return cfs_end(&m->c, err);
}

static int find_made(struct cfs_making *m)
{
	return ceph_ll_lookup(m->c.cm, m->c.in, m->name.s, &m->in, &m->sx,
			      CFS_WANT, 0, m->c.user);
}

static uint32_t verf_mark(uint64_t verf)
{
	uint32_t mark = (uint32_t)hash_mix(0, verf);

	return mark ? mark : 1;
}

static int create_exclusively(struct cfs_making *m, uint64_t verf)
{
	int err = ceph_ll_mknod(m->c.cm, m->c.in, m->name.s,
				S_IFREG | NEW_FILE, verf_mark(verf), &m->in,
				&m->sx, CFS_WANT, 0, m->c.user);

	if (err != -EEXIST)
		return err;
	err = find_made(m);
	if (err < 0)
		return err;
	/* True if an earlier run of this call made it. */
	return S_ISREG(m->sx.stx_mode) &&
	       (uint32_t)m->sx.stx_rdev == verf_mark(verf) ? 0 : -EEXIST;
}

static int take_existing(struct cfs_making *m)
{
	int err = find_made(m);

	m->was_there = true;
	return err == 0 && !S_ISREG(m->sx.stx_mode) ? -EEXIST : err;
}

/* For UNCHECKED with a taken name only the size of the attributes counts.  The
 * name can belong to another file before the resize is over. */
static int resize_existing(struct cfs_making *m, const struct vfs_setattr *set)
{
	struct vfs_setattr size = { .set = set->set & VFS_SET_SIZE,
				    .size = set->size };
	struct vfs_op resize = { .cred = m->op->cred, .set = &size };
	struct cfs_node *n;
	int err;

	if (!size.set)
		return 0;
	err = cfs_node_of(&m->c, m->in, &m->sx, &n);
	m->in = NULL;
	if (err < 0)
		return err;
	resize.node = &n->node;
	err = cfs_setattr(&resize);
	vfs_node_put(&n->node);
	if (err == 0)
		err = ceph_ll_lookup_vino(m->c.cm, cfs_vino(&m->sx), &m->in);
	if (err < 0) {
		m->in = NULL;
		return err == -ENOENT ? -ESTALE : err;
	}
	return ceph_ll_getattr(m->c.cm, m->in, &m->sx, CFS_WANT, 0, m->c.root);
}

static int create_now(struct cfs_making *m, const struct vfs_create *how)
{
	const struct vfs_setattr *set = &how->attr;
	int err;

	if (how->how == VFS_CREATE_EXCLUSIVE)
		return create_exclusively(m, how->verf);
	if (set->set & VFS_SET_SIZE && set->size > INT64_MAX)
		return -EFBIG;
	err = ceph_ll_create(m->c.cm, m->c.in, m->name.s,
			     mode_for(set, NEW_FILE),
			     O_CREAT | O_EXCL | O_RDWR, &m->in, &m->fh, &m->sx,
			     CFS_WANT, 0, m->c.user);
	if (err == -EEXIST && how->how == VFS_CREATE_UNCHECKED)
		return take_existing(m);
	return err < 0 ? err :
	       cfs_set_new(&m->c, m->op, m->in, &m->sx, set);
}

/* An existing file can lose its name before it is resized. */
static int create_or_resize(struct cfs_making *m, const struct vfs_create *how)
{
	int err = cfs_name_change(m->c.node, &m->name);

	if (err < 0)
		return err;
	m->was_there = false;
	err = create_now(m, how);
	cfs_name_done(m->c.node, &m->name);
	/* A resize can wait for a disk, and other calls look the name up. */
	if (err < 0 || !m->was_there)
		return err;
	err = resize_existing(m, &how->attr);
	return err == -ESTALE ? -EAGAIN : err;
}

int cfs_create(struct vfs_op *op)
{
	struct cfs_making m;
	int err = making_start(&m, op);

	if (err < 0)
		return err;
	err = -EAGAIN;
	for (unsigned i = 0; err == -EAGAIN && i < CREATE_TRIES; i++)
		err = create_or_resize(&m, op->create);
	return making_done(&m, err);
}

static int make_symlink(struct cfs_making *m, const struct vfs_make *what)
{
	char target[VFS_PATH_MAX + 1];

	memcpy(target, what->target, what->target_len);
	target[what->target_len] = '\0';
	return ceph_ll_symlink(m->c.cm, m->c.in, m->name.s, target, &m->in,
			       &m->sx, CFS_WANT, 0, m->c.user);
}

static int make_special(struct cfs_making *m, uint32_t type, dev_t dev)
{
	const struct vfs_setattr *set = &m->op->make->attr;

	return ceph_ll_mknod(m->c.cm, m->c.in, m->name.s,
			     type | mode_for(set, NEW_FILE), dev, &m->in,
			     &m->sx, CFS_WANT, 0, m->c.user);
}

static int make_now(struct cfs_making *m, const struct vfs_make *what)
{
	dev_t dev = makedev(what->rdev_major, what->rdev_minor);

	switch (what->type) {
	case VFS_DIR:
		return ceph_ll_mkdir(m->c.cm, m->c.in, m->name.s,
				     mode_for(&what->attr, NEW_DIR), &m->in,
				     &m->sx, CFS_WANT, 0, m->c.user);
	case VFS_LNK:
		return make_symlink(m, what);
	case VFS_FIFO:
		return make_special(m, S_IFIFO, 0);
	case VFS_SOCK:
		return make_special(m, S_IFSOCK, 0);
	case VFS_BLK:
	case VFS_CHR:
		if (m->op->cred->uid != 0)
			return -EPERM;
		return make_special(m, what->type == VFS_BLK ? S_IFBLK :
							       S_IFCHR, dev);
	default:
		return -EPROTOTYPE;
	}
}

int cfs_make(struct vfs_op *op)
{
	struct cfs_making m;
	int err = making_start(&m, op);

	if (err < 0)
		return err;
	err = cfs_name_change(m.c.node, &m.name);
	if (err == 0) {
		err = make_now(&m, op->make);
		cfs_name_done(m.c.node, &m.name);
	}
	if (err == 0)
		err = cfs_set_new(&m.c, op, m.in, &m.sx, &op->make->attr);
	return making_done(&m, err);
}
