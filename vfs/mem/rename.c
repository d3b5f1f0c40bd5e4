/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Renaming.  While fs->rename is held no directory changes its parent, so the
 * ancestors of a directory in the tree stay.
 */
#include "vfs/mem/mem.h"

/* A rename, step by step. */
struct move {
	const struct vfs_op *op;
	struct mem_node	 *from;
	struct mem_node	 *to;
	struct mem_entry *from_entry;
	struct mem_entry *to_entry;	/* NULL: the name is free */
	struct mem_node	 *node;		/* that moves */
	struct mem_node	 *victim;	/* that it replaces, or NULL */
	struct mem_node	 *gone;		/* the victim, when that was its
					 * last link */
};

static struct mem_node *parent_of(const struct mem_node *dir)
{
	return atomic_load_explicit(&dir->parent, memory_order_relaxed);
}

/* True if @a is @n or an ancestor of it. fs->rename is held. */
static bool is_above(const struct mem_node *a, const struct mem_node *n)
{
	for (;;) {
		const struct mem_node *up;

		if (n == a)
			return true;
		up = parent_of(n);
		if (!up || up == n)
			return false;
		n = up;
	}
}

static void lock_dirs(struct mem_node *from, struct mem_node *to)
{
	if (from == to) {
		mem_wrlock(from);
		return;
	}
	mutex_lock(&mem_fs(from)->rename);
	if (is_above(from, to)) {
		mem_wrlock(from);
		mem_wrlock(to);
	} else if (is_above(to, from)) {
		mem_wrlock(to);
		mem_wrlock(from);
	} else {
		mem_wrlock2(from, to);
	}
}

static void unlock_dirs(struct mem_node *from, struct mem_node *to)
{
	mem_unlock2(from, to);
	if (from != to)
		mutex_unlock(&mem_fs(from)->rename);
}

/* Finds the nodes of the rename.  1: nothing is to be done. */
static int find_moved(struct move *m)
{
	struct mem_fs *fs = mem_fs(m->from);
	int err;

	if (m->from->type != VFS_DIR || m->to->type != VFS_DIR)
		return -ENOTDIR;
	if (!parent_of(m->from) || !parent_of(m->to))
		return -ESTALE;
	err = mem_permit(m->op->cred, m->from, MEM_X);
	if (err == 0)
		err = mem_permit(m->op->cred, m->to, MEM_X);
	if (err < 0)
		return err;
	m->from_entry = mem_dir_find(fs, &m->from->dir, m->op->name);
	if (!m->from_entry)
		return -ENOENT;
	m->node = m->from_entry->node;
	m->to_entry = mem_dir_find(fs, &m->to->dir, m->op->to.name);
	if (m->to_entry)
		m->victim = m->to_entry->node;
	/* POSIX and RFC 1813 section 3.3.14: links to one file stay. */
	return m->victim == m->node;
}

/* Makes the checks that need no lock on the two nodes, which can be locked
 * afterwards.  A directory's entry is not its ancestor, and fs->rename keeps
 * all ancestors as they are. */
static int check_shape(const struct move *m)
{
	bool moves_dir = m->node->type == VFS_DIR;
	bool within = m->from == m->to;

	if (moves_dir && !within && is_above(m->node, m->to))
		return -EINVAL;
	if (!m->victim)
		return 0;
	if (m->victim->type == VFS_DIR && !within &&
	    is_above(m->victim, m->from))
		return -ENOTEMPTY;
	if (moves_dir && m->victim->type != VFS_DIR)
		return -ENOTDIR;
	if (!moves_dir && m->victim->type == VFS_DIR)
		return -EISDIR;
	return 0;
}

static int check_permits(const struct move *m)
{
	const struct vfs_cred *cred = m->op->cred;
	int err = mem_permit_unlink(cred, m->from, m->node);

	if (err == 0 && m->victim)
		err = mem_permit_unlink(cred, m->to, m->victim);
	if (err == 0)
		err = mem_permit(cred, m->to, MEM_W | MEM_X);
	/* ".." of a directory is about to change. */
	if (err == 0 && m->node->type == VFS_DIR && m->from != m->to)
		err = mem_permit(cred, m->node, MEM_W);
	if (err == 0 && m->victim && m->victim->type == VFS_DIR &&
	    m->victim->dir.count > 0)
		err = -ENOTEMPTY;
	return err;
}

static void nlink_add(struct mem_node *dir, int n)
{
	atomic_fetch_add_explicit(&dir->nlink, (uint32_t)n,
				  memory_order_relaxed);
}

static int rename_over(struct move *m)
{
	struct mem_fs *fs = mem_fs(m->from);
	bool moves_dir = m->node->type == VFS_DIR;
	int err;

	if (m->victim) {
		m->to_entry->node = m->node;
		if (mem_drop_link(m->victim))
			m->gone = m->victim;
		if (moves_dir)
			nlink_add(m->to, -1);
	} else {
		err = mem_dir_add(fs, &m->to->dir, m->op->to.name, m->node);
		if (err < 0)
			return err;
	}
	mem_dir_del(fs, &m->from->dir, m->from_entry);
	if (moves_dir && m->from != m->to) {
		nlink_add(m->from, -1);
		nlink_add(m->to, 1);
		atomic_store_explicit(&m->node->parent, m->to,
				      memory_order_relaxed);
	}
	mem_touch_ctime(m->node);
	mem_touch_mtime(m->from);
	if (m->from != m->to)
		mem_touch_mtime(m->to);
	return 0;
}

static int move_locked(struct move *m)
{
	struct mem_node *victim;
	int err = find_moved(m);

	if (err == 0)
		err = check_shape(m);
	if (err != 0)
		return err < 0 ? err : 0;
	victim = m->victim ? m->victim : m->node;
	mem_wrlock2(m->node, victim);
	err = check_permits(m);
	if (err == 0)
		err = rename_over(m);
	mem_unlock2(m->node, victim);
	return err;
}

int mem_rename(struct vfs_op *op)
{
	struct move m = {
		.op = op,
		.from = mem_node(op->node),
		.to = mem_node(op->to.dir),
	};
	int err;

	if (op->nonblock)
		return -EAGAIN;
	lock_dirs(m.from, m.to);
	mem_wcc_before(m.from, op->wcc);
	mem_wcc_before(m.to, op->to.wcc);
	err = move_locked(&m);
	mem_wcc_after(m.from, op->wcc);
	mem_wcc_after(m.to, op->to.wcc);
	unlock_dirs(m.from, m.to);
	if (m.gone)
		vfs_node_put(&m.gone->base);
	return err;
}
