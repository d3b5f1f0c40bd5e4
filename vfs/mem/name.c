/* SPDX-License-Identifier: BSD-2-Clause */
/* Names: look-up, creation, links and removal. */
#include "vfs/mem/mem.h"

#include <stdlib.h>
#include <string.h>

static bool name_is(struct vfs_name name, const char *s)
{
	return name.len == strlen(s) && memcmp(name.s, s, name.len) == 0;
}

/* 0 when @dir is a directory that is still in the tree. */
static int check_dir(const struct mem_node *dir)
{
	if (dir->type != VFS_DIR)
		return -ENOTDIR;
	return atomic_load_explicit(&dir->parent, memory_order_relaxed) ?
	       0 : -ESTALE;
}

/* The child, counted.  The directory's lock is held. */
static int look_child_up(const struct vfs_op *op, struct mem_node *dir,
			 struct vfs_name name, struct mem_node **out)
{
	struct mem_entry *e;
	int err = check_dir(dir);

	if (err == 0)
		err = mem_permit(op->cred, dir, MEM_X);
	if (err < 0)
		return err;
	if (name_is(name, ".")) {
		*out = dir;
	} else if (name_is(name, "..")) {
		*out = atomic_load_explicit(&dir->parent,
					    memory_order_relaxed);
	} else {
		e = mem_dir_find(mem_fs(dir), &dir->dir, name);
		if (!e)
			return -ENOENT;
		*out = e->node;
	}
	vfs_node_get(&(*out)->base);
	return 0;
}

int mem_lookup(struct vfs_op *op)
{
	struct mem_node *dir = mem_node(op->node), *child;
	int err;

	err = mem_rdlock(op, dir);
	if (err < 0)
		return err;
	if (op->lookup.dir_attr) {
		mem_attr_fill(dir, op->lookup.dir_attr);
		op->lookup.has_dir_attr = true;
	}
	err = look_child_up(op, dir, op->name, &child);
	mem_unlock(dir);
	if (err < 0)
		return err;
	if (op->attr) {
		err = mem_attr_get(op, child, op->attr);
		if (err < 0) {
			vfs_node_put(&child->base);
			return err;
		}
	}
	op->out = &child->base;
	return 0;
}

bool mem_drop_link(struct mem_node *n)
{
	uint32_t nlink = atomic_load_explicit(&n->nlink,
					      memory_order_relaxed);

	nlink = n->type == VFS_DIR ? 0 : nlink - 1;
	atomic_store_explicit(&n->nlink, nlink, memory_order_relaxed);
	if (n->type == VFS_DIR)
		atomic_store_explicit(&n->parent, NULL, memory_order_relaxed);
	mem_touch_ctime(n);
	return nlink == 0;
}

/*
 * Links @n, which no other thread can find yet, into @dir.  Frees it on
 * failure.  On success the caller has a reference in addition to the tree's.
 */
static int add_new(struct mem_node *dir, struct vfs_name name,
		   struct mem_node *n)
{
	int err = mem_dir_add(mem_fs(dir), &dir->dir, name, n);

	if (err < 0) {
		vfs_node_put(&n->base);
		return err;
	}
	if (n->type == VFS_DIR) {
		atomic_store_explicit(&n->parent, dir, memory_order_relaxed);
		atomic_store_explicit(&n->nlink, 2, memory_order_relaxed);
		atomic_fetch_add_explicit(&dir->nlink, 1,
					  memory_order_relaxed);
	} else {
		atomic_store_explicit(&n->nlink, 1, memory_order_relaxed);
	}
	mem_touch_mtime(dir);
	vfs_node_get(&n->base);
	return 0;
}

/* CREATE of a name that is taken. */
static int create_existing(const struct vfs_op *op, struct mem_node *n)
{
	const struct vfs_create *how = op->create;
	struct vfs_setattr set = how->attr;
	struct vfs_op resize = { .cred = op->cred, .node = &n->base,
				 .nonblock = op->nonblock, .set = &set };

	if (how->how == VFS_CREATE_GUARDED || n->type != VFS_REG)
		return -EEXIST;
	if (how->how == VFS_CREATE_EXCLUSIVE) {
		int err = mem_rdlock(op, n);

		if (err < 0)
			return err;
		err = n->exclusive && n->verf == how->verf ? 0 : -EEXIST;
		mem_unlock(n);
		return err;
	}
	/* As open(O_CREAT) does: only the size of an existing file changes. */
	set.set &= VFS_SET_SIZE;
	set.guarded = false;
	return set.set ? mem_setattr(&resize) : 0;
}

static int create_new(const struct vfs_op *op, struct mem_node *dir,
		      struct mem_node **out)
{
	static const struct vfs_setattr none;
	const struct vfs_create *how = op->create;
	bool exclusive = how->how == VFS_CREATE_EXCLUSIVE;
	const struct vfs_setattr *set = exclusive ? &none : &how->attr;
	struct mem_node *n;
	int err = mem_permit(op->cred, dir, MEM_W | MEM_X);

	if (err < 0)
		return err;
	if (set->set & VFS_SET_SIZE && set->size > MEM_MAX_FILE)
		return -EFBIG;
	err = mem_node_alloc(mem_fs(dir), VFS_REG, &n);
	if (err < 0)
		return err;
	mem_attr_init(n, dir, op->cred, set);
	if (set->set & VFS_SET_SIZE)
		n->size = set->size;
	n->exclusive = exclusive;
	n->verf = how->verf;
	*out = n;
	return add_new(dir, op->name, n);
}

int mem_create(struct vfs_op *op)
{
	/* Once the file is made, -EAGAIN is no longer possible. */
	const struct vfs_op wait = { .cred = op->cred };
	struct mem_node *dir = mem_node(op->node), *n;
	int err = mem_wrlock_op(op, dir);

	if (err < 0)
		return err;
	mem_wcc_before(dir, op->wcc);
	err = look_child_up(op, dir, op->name, &n);
	if (err == -ENOENT) {
		err = create_new(op, dir, &n);
	} else if (err == 0) {
		err = create_existing(op, n);
		if (err < 0)
			vfs_node_put(&n->base);
	}
	mem_wcc_after(dir, op->wcc);
	mem_unlock(dir);
	if (err < 0)
		return err;
	if (op->attr)
		mem_attr_get(&wait, n, op->attr);
	op->out = &n->base;
	return 0;
}

/* Checks that @what can be made at all. */
static int check_make(const struct vfs_cred *cred,
		      const struct vfs_make *what)
{
	switch (what->type) {
	case VFS_DIR: case VFS_SOCK: case VFS_FIFO: case VFS_LNK:
		return 0;
	case VFS_BLK: case VFS_CHR:
		return cred->uid == 0 ? 0 : -EPERM;
	default:
		return -EPROTOTYPE;
	}
}

static int set_target(struct mem_node *n, const struct vfs_make *what)
{
	int err = mem_charge(mem_fs(n), what->target_len);

	if (err < 0)
		return err;
	n->target = malloc(what->target_len);
	if (!n->target) {
		mem_uncharge(mem_fs(n), what->target_len);
		return -ENOMEM;
	}
	memcpy(n->target, what->target, what->target_len);
	n->size = what->target_len;
	n->mode = 0777;
	return 0;
}

static int make_new(const struct vfs_op *op, struct mem_node *dir,
		    struct mem_node **out)
{
	const struct vfs_make *what = op->make;
	struct mem_node *n;
	int err = mem_permit(op->cred, dir, MEM_W | MEM_X);

	if (err == 0)
		err = check_make(op->cred, what);
	if (err == 0)
		err = mem_node_alloc(mem_fs(dir), what->type, &n);
	if (err < 0)
		return err;
	mem_attr_init(n, dir, op->cred, &what->attr);
	if (what->type == VFS_BLK || what->type == VFS_CHR) {
		n->rdev_major = what->rdev_major;
		n->rdev_minor = what->rdev_minor;
	}
	if (what->type == VFS_LNK) {
		err = set_target(n, what);
		if (err < 0) {
			vfs_node_put(&n->base);
			return err;
		}
	}
	*out = n;
	return add_new(dir, op->name, n);
}

int mem_make(struct vfs_op *op)
{
	struct mem_node *dir = mem_node(op->node), *n;
	int err = mem_wrlock_op(op, dir);

	if (err < 0)
		return err;
	mem_wcc_before(dir, op->wcc);
	err = look_child_up(op, dir, op->name, &n);
	if (err == 0) {
		vfs_node_put(&n->base);
		err = -EEXIST;
	} else if (err == -ENOENT) {
		err = make_new(op, dir, &n);
	}
	if (err == 0 && op->attr)
		mem_attr_fill(n, op->attr); /* no look-up has found it yet */
	mem_wcc_after(dir, op->wcc);
	mem_unlock(dir);
	if (err == 0)
		op->out = &n->base;
	return err;
}

/* Both locks are held. */
static int check_remove(const struct vfs_cred *cred,
			const struct mem_node *dir,
			const struct mem_node *n, bool is_dir)
{
	int err = mem_permit_unlink(cred, dir, n);

	if (err < 0)
		return err;
	if (is_dir && n->type != VFS_DIR)
		return -ENOTDIR;
	if (!is_dir && n->type == VFS_DIR)
		return -EISDIR;
	return is_dir && n->dir.count > 0 ? -ENOTEMPTY : 0;
}

/* Returns the node whose last link went, for its reference to be put. */
static struct mem_node *unlink_entry(struct mem_node *dir,
				     struct mem_entry *e)
{
	struct mem_node *n = e->node;
	bool last = mem_drop_link(n);

	if (n->type == VFS_DIR)
		atomic_fetch_sub_explicit(&dir->nlink, 1,
					  memory_order_relaxed);
	mem_dir_del(mem_fs(dir), &dir->dir, e);
	mem_touch_mtime(dir);
	return last ? n : NULL;
}

int mem_remove(struct vfs_op *op)
{
	struct mem_node *dir = mem_node(op->node), *gone = NULL, *n;
	struct mem_entry *e = NULL;
	int err = mem_wrlock_op(op, dir);

	if (err < 0)
		return err;
	mem_wcc_before(dir, op->wcc);
	err = check_dir(dir);
	if (err == 0)
		err = mem_permit(op->cred, dir, MEM_X);
	if (err == 0) {
		e = mem_dir_find(mem_fs(dir), &dir->dir, op->name);
		err = e ? 0 : -ENOENT;
	}
	if (err == 0) {
		n = e->node;
		err = mem_wrlock_op(op, n);
	}
	if (err == 0) {
		if (op->nonblock && mem_is_long(n))
			err = -EAGAIN;
		else
			err = check_remove(op->cred, dir, n, op->is_dir);
		if (err == 0)
			gone = unlink_entry(dir, e);
		mem_unlock(n);
	}
	mem_wcc_after(dir, op->wcc);
	mem_unlock(dir);
	if (gone)
		vfs_node_put(&gone->base);
	return err;
}

/* The directory's lock is held; takes @n's. */
static int link_locked(const struct vfs_op *op, struct mem_node *n,
		       struct mem_node *dir)
{
	uint32_t nlink;
	int err;

	mem_wrlock(n);
	nlink = atomic_load_explicit(&n->nlink, memory_order_relaxed);
	if (nlink == 0)
		err = -ESTALE;
	else if (nlink >= MEM_MAX_LINKS)
		err = -EMLINK;
	else
		err = mem_dir_add(mem_fs(dir), &dir->dir, op->to.name, n);
	if (err == 0) {
		atomic_store_explicit(&n->nlink, nlink + 1,
				      memory_order_relaxed);
		mem_touch_ctime(n);
		mem_touch_mtime(dir);
	}
	if (op->attr)
		mem_attr_fill(n, op->attr);
	mem_unlock(n);
	return err;
}

int mem_link(struct vfs_op *op)
{
	struct mem_node *n = mem_node(op->node), *dir = mem_node(op->to.dir);
	int err;

	if (op->nonblock)
		return -EAGAIN;
	mem_wrlock(dir);
	mem_wcc_before(dir, op->to.wcc);
	err = check_dir(dir);
	if (err == 0)
		err = mem_permit(op->cred, dir, MEM_X);
	if (err == 0 && mem_dir_find(mem_fs(dir), &dir->dir, op->to.name))
		err = -EEXIST;
	if (err == 0)
		err = mem_permit(op->cred, dir, MEM_W | MEM_X);
	if (err == 0 && n->type == VFS_DIR)
		err = -EPERM;
	if (err == 0)
		err = link_locked(op, n, dir);
	mem_wcc_after(dir, op->to.wcc);
	mem_unlock(dir);
	return err;
}
