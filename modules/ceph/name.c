/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * name - names: their locks, look-up, links and removals.
 *
 * A metadata server answers a change of names before the change is on disk, and
 * confirms that later.  The library keeps the unconfirmed changes with their
 * directory; its fsync of a directory makes the server write its journal, and
 * waits for the confirmations.  So each change here is one request and one such
 * sync.
 */
#include "modules/ceph/ceph.h"

#include <errno.h>
#include <string.h>

#define NAME_WAIT_S	2

void cfs_name_set(struct cfs_name *to, struct vfs_name name)
{
	memcpy(to->s, name.s, name.len);
	to->s[name.len] = '\0';
}

bool cfs_is_snapdir(const struct cfs_name *name)
{
	return strcmp(name->s, ".snap") == 0;
}

/*
 * The library expects its user, like a kernel, to change a name in one thread
 * at a time, and not to look it up meanwhile: two concurrent changes of one
 * name crash it.  Concurrent changes of different names are safe.
 */
static pthread_rwlock_t *name_lock(struct cfs_node *dir,
				   const struct cfs_name *name)
{
	uint64_t hash = hash_text(dir->vino.ino.val, name->s);

	return &cfs_fs_of(dir)->names[hash % CFS_NAME_LOCKS];
}

/*
 * A change can take as long as a disk is away.  Other changes of the name must
 * not keep all workers waiting for it.
 */
static int lock_name(pthread_rwlock_t *lock, bool changes)
{
	const struct timespec until = cfs_time_in(NAME_WAIT_S);

	return changes ?
	       -pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &until) :
	       -pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &until);
}

int cfs_name_change(struct cfs_node *dir, const struct cfs_name *name)
{
	return lock_name(name_lock(dir, name), true);
}

void cfs_name_done(struct cfs_node *dir, const struct cfs_name *name)
{
	pthread_rwlock_unlock(name_lock(dir, name));
}

int cfs_names_change(struct cfs_name_locks *l, struct cfs_node *dir,
		     const struct cfs_name *name, struct cfs_node *to,
		     const struct cfs_name *to_name)
{
	pthread_rwlock_t *a = name_lock(dir, name), *b = name_lock(to, to_name);
	int err;

	l->first = a < b ? a : b;
	l->second = a == b ? NULL : a < b ? b : a;
	err = lock_name(l->first, true);
	if (err < 0 || !l->second)
		return err;
	err = lock_name(l->second, true);
	if (err < 0)
		pthread_rwlock_unlock(l->first);
	return err;
}

void cfs_names_done(const struct cfs_name_locks *l)
{
	pthread_rwlock_unlock(l->first);
	if (l->second)
		pthread_rwlock_unlock(l->second);
}

static bool is_dots(struct vfs_name name, unsigned n)
{
	return name.len == n && memcmp(name.s, "..", n) == 0;
}

/* Above the root, and above its snapshots, is the root. */
static int find_root(struct cfs_call *c, struct ceph_statx *sx,
		     struct cfs_node **out)
{
	struct cfs_node *root = c->client->fs->root_node;
	struct cfs_call up;
	int err = cfs_begin_other(&up, c, &root->node);

	if (err < 0)
		return err;
	err = cfs_stat(&up, sx);
	cfs_end_other(&up);
	if (err < 0)
		return err;
	vfs_node_get(&root->node);
	*out = root;
	return 0;
}

static int find_self(struct cfs_call *c, struct ceph_statx *sx,
		     struct cfs_node **out)
{
	int err = cfs_stat(c, sx);

	if (err < 0)
		return err;
	vfs_node_get(&c->node->node);
	*out = c->node;
	return 0;
}

/* The entry of the call's directory, counted. */
static int find_entry(struct cfs_call *c, const struct vfs_op *op,
		      struct ceph_statx *sx, struct cfs_node **out)
{
	struct cfs_name name;
	struct Inode *in;
	int err;

	/* No name leads out of the tree. */
	if (is_dots(op->name, 2) && cfs_is_top(c->node))
		return find_root(c, sx, out);
	/* Snapshots stay where they are. */
	if (is_dots(op->name, 2) && !cfs_is_fixed(c->node))
		return cfs_find_above(c, sx, out);
	if (is_dots(op->name, 1))
		return find_self(c, sx, out);
	cfs_name_set(&name, op->name);
	err = lock_name(name_lock(c->node, &name), false);
	if (err < 0)
		return err;
	err = ceph_ll_lookup(c->cm, c->in, name.s, &in, sx, CFS_WANT, 0,
			     c->user);
	cfs_name_done(c->node, &name);
	return err < 0 ? err : cfs_node_of(c, in, sx, out);
}

int cfs_lookup(struct vfs_op *op)
{
	struct ceph_statx dir, sx;
	struct cfs_node *n;
	struct cfs_call c;
	int err = cfs_begin_stat(&c, op, &dir);

	if (err < 0)
		return err;
	if (op->lookup.dir_attr) {
		cfs_attr(&dir, op->lookup.dir_attr);
		op->lookup.has_dir_attr = true;
	}
	err = S_ISDIR(dir.stx_mode) ? find_entry(&c, op, &sx, &n) : -ENOTDIR;
	if (err == 0) {
		op->out = &n->node;
		if (op->attr)
			cfs_attr(&sx, op->attr);
	}
	return cfs_end(&c, err);
}

int cfs_readlink(struct vfs_op *op)
{
	char text[VFS_PATH_MAX + 1];
	struct ceph_statx sx;
	struct cfs_call c;
	int n = cfs_begin_stat(&c, op, &sx);

	if (n < 0)
		return n;
	n = S_ISLNK(sx.stx_mode) ? ceph_ll_readlink(c.cm, c.in, text,
						    sizeof(text), c.root) :
	    -EINVAL;
	if (n >= 0) {
		n = MIN(n, (int)op->readlink.size);
		memcpy(op->readlink.text, text, (size_t)n);
		if (op->attr)
			cfs_attr(&sx, op->attr);
	}
	return cfs_end(&c, n);
}

int cfs_begin_change(struct cfs_call *c, const struct vfs_op *op,
		     struct cfs_name *name)
{
	int err = cfs_begin(c, op);

	if (err < 0)
		return err;
	cfs_name_set(name, op->name);
	err = cfs_before(c, op->wcc);
	if (err == 0 && cfs_is_fixed(c->node))
		err = -EROFS;
	return err < 0 ? cfs_end(c, cfs_after(c, op->wcc, err)) : 0;
}

int cfs_remove(struct vfs_op *op)
{
	struct cfs_name name;
	struct cfs_call c;
	int err = cfs_begin_change(&c, op, &name);

	if (err < 0)
		return err;
	err = cfs_name_change(c.node, &name);
	if (err == 0) {
		err = op->is_dir ?
		      ceph_ll_rmdir(c.cm, c.in, name.s, c.user) :
		      ceph_ll_unlink(c.cm, c.in, name.s, c.user);
		cfs_name_done(c.node, &name);
	}
	if (err == 0)
		err = cfs_sync_change(&c, c.in);
	return cfs_end(&c, cfs_after(&c, op->wcc, err));
}

int cfs_link(struct vfs_op *op)
{
	struct ceph_statx sx;
	struct cfs_name name;
	struct cfs_call c, to;
	int err = cfs_begin(&c, op);

	if (err < 0)
		return err;
	cfs_name_set(&name, op->to.name);
	err = cfs_begin_other(&to, &c, op->to.dir);
	if (err < 0)
		return cfs_end(&c, err);
	err = cfs_before(&to, op->to.wcc);
	if (err == 0 && c.node->type == VFS_DIR)
		err = -EPERM;
	if (err == 0 && (cfs_is_fixed(c.node) || cfs_is_fixed(to.node)))
		err = -EROFS;
	if (err == 0 && cfs_is_snapdir(&name))
		err = -EEXIST;
	if (err == 0)
		err = cfs_name_change(to.node, &name);
	if (err == 0) {
		err = ceph_ll_link(c.cm, c.in, to.in, name.s, c.user);
		cfs_name_done(to.node, &name);
	}
	if (err == 0)
		err = cfs_sync_change(&c, to.in);
	if (cfs_stat(&c, &sx) == 0 && op->attr)
		cfs_attr(&sx, op->attr);
	err = cfs_after(&to, op->to.wcc, err);
	cfs_end_other(&to);
	return cfs_end(&c, err);
}
