/* SPDX-License-Identifier: BSD-2-Clause */
/* Listing a directory. */
#include "vfs/mem/mem.h"

#define DOT_COOKIE	1
#define DOTDOT_COOKIE	2

struct listing {
	const struct vfs_op *op;
	struct mem_node	*dir;		/* its lock is held */
};

/*
 * Attributes of @n, if available: a child is locked after its directory, but
 * ".." comes before it, so its lock is only tried.
 */
static void fill_attr(const struct listing *l, struct mem_node *n,
		      bool may_wait, struct vfs_dirent *d)
{
	struct vfs_op op = { .nonblock = l->op->nonblock || !may_wait };

	if (n != l->dir && mem_rdlock(&op, n) < 0)
		return;
	mem_attr_fill(n, &d->attr);
	d->has_attr = true;
	if (n != l->dir)
		mem_unlock(n);
}

static bool put(const struct listing *l, struct mem_node *n,
		uint64_t cookie, struct vfs_name name)
{
	struct vfs_dirent d;

	d.fileid = n->slot + 1;
	d.cookie = cookie;
	d.name = name;
	d.has_attr = d.has_handle = false;
	if (l->op->readdir.plus) {
		fill_attr(l, n, cookie != DOTDOT_COOKIE, &d);
		mem_handle(&n->base, &d.handle);
		d.has_handle = true;
	}
	return l->op->readdir.emit(l->op->readdir.arg, &d);
}

/* True when the end was reached. */
static bool list(const struct listing *l)
{
	uint64_t cookie = l->op->readdir.cookie;
	const struct mem_dir *d = &l->dir->dir;

	if (cookie < DOT_COOKIE &&
	    !put(l, l->dir, DOT_COOKIE, (struct vfs_name){ ".", 1 }))
		return false;
	if (cookie < DOTDOT_COOKIE &&
	    !put(l, atomic_load_explicit(&l->dir->parent,
					 memory_order_relaxed),
		 DOTDOT_COOKIE, (struct vfs_name){ "..", 2 }))
		return false;
	for (uint32_t i = mem_dir_seek(d, cookie); i < d->norder; i++) {
		const struct mem_entry *e = d->order[i].entry;

		if (e && !put(l, e->node, e->cookie,
			      (struct vfs_name){ e->name, e->len }))
			return false;
	}
	return true;
}

int mem_readdir(struct vfs_op *op)
{
	struct listing l = { op, mem_node(op->node) };
	struct mem_node *dir = l.dir;
	int err = mem_rdlock(op, dir);

	if (err < 0)
		return err;
	if (dir->type != VFS_DIR)
		err = -ENOTDIR;
	else if (!atomic_load_explicit(&dir->parent, memory_order_relaxed))
		err = -ESTALE;
	else
		err = mem_permit(op->cred, dir, MEM_R);
	/* Cookies stay valid as long as the directory exists, so only check
	 * that it once gave them out. */
	op->readdir.verf = 0;
	if (err == 0 && op->readdir.cookie > DOTDOT_COOKIE &&
	    op->readdir.cookie >= dir->dir.next_cookie)
		err = -EBADE;
	if (err == 0)
		op->eof = list(&l);
	if (op->attr)
		mem_attr_fill(dir, op->attr);
	mem_unlock(dir);
	return err;
}
