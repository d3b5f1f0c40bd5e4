/* SPDX-License-Identifier: BSD-2-Clause */
/* names - REMOVE, RMDIR, RENAME, LINK. */
#include "vfs/posix/cache.h"
#include "vfs/posix/change.h"
#include "vfs/posix/handle.h"
#include "vfs/posix/node.h"
#include "vfs/posix/ops.h"
#include "vfs/posix/own.h"
#include "vfs/posix/table/places.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* A name that is about to go, and the file that it names. */
struct going {
	struct posix_node *dir;
	const char	*name;
	bool		 known;		/* ... its handle */
	struct vfs_handle h;
	struct posix_node *node;	/* counted, if it is in use */
	struct stat	 st;		/* then: as it was before */
};

static void going(struct going *g, struct posix_fs *fs,
		  struct posix_node *dir, const char *name)
{
	g->dir = dir;
	g->name = name;
	g->known = posix_handle_peek(fs, dir->fd, name, &g->h) == 0;
	g->node = g->known ? posix_cache_find(fs, &g->h) : NULL;
	if (g->node && posix_fstat(g->node->fd, &g->st) < 0)
		g->st = (struct stat){ .st_nlink = 0 };
}

/* True if a poller can remove it: not if that frees much data. */
static bool goes_quickly(const struct going *g)
{
	return !g->known ||
	       (g->node && (uint64_t)g->st.st_blocks * 512 <= VFS_LONG);
}

/*
 * True if the removed file is the victim.  A wrong answer only harms a table,
 * which would forget the file.
 */
static bool was_last(struct going *g, const struct posix_fs *fs)
{
	if (fs->table && posix_fstat(g->node->fd, &g->st) == 0)
		return g->st.st_nlink == 0;
	return S_ISDIR(g->st.st_mode) || g->st.st_nlink <= 1;
}

/* The name is gone.  If it was the last one, the cache drops the file at once,
 * to free its space. */
static void name_gone(struct going *g, struct posix_fs *fs)
{
	struct posix_node *n = g->node;
	bool last = false;

	if (n) {
		last = was_last(g, fs);
		n->little = last &&
			    (uint64_t)g->st.st_blocks * 512 <= VFS_LONG;
		if (last)
			posix_cache_forget(&fs->cache, n);
	}
	if (!g->known || !fs->table)
		return;
	if (last)
		posix_table_forget(fs->table, &g->h);
	else
		posix_table_del(fs->table, &g->h, &g->dir->handle, g->name);
	if (n)
		posix_unseen(n);
}

static void going_end(struct going *g)
{
	if (g->node)
		vfs_node_put(&g->node->node);
}

static int remove_name(const struct vfs_op *op, struct posix_node *dir,
		       const char *name)
{
	struct posix_fs *fs = posix_fs_of(dir);
	struct going g;
	int err = 0;

	going(&g, fs, dir, name);
	if (op->nonblock && !op->is_dir && !goes_quickly(&g))
		err = -EAGAIN;
	else if (unlinkat(dir->fd, name, op->is_dir ? AT_REMOVEDIR : 0) < 0)
		err = -errno;
	else
		name_gone(&g, fs);
	going_end(&g);
	return err;
}

/* The name must not be one of the server's own. */
static int check_gone(const struct vfs_op *op, struct posix_node *dir,
		      const char *name)
{
	int err = posix_own_name(dir, name, op->name.len, true);

	/* The directory is not empty, or about to be used. */
	return err == -EACCES && op->is_dir ? -ENOTEMPTY : err;
}

int posix_remove(struct vfs_op *op)
{
	struct posix_node *dir = to_posix(op->node);
	struct posix_fs *fs = posix_fs_of(dir);
	struct posix_change c;
	struct posix_name s;
	int err;

	err = posix_may_record(op, fs) ? posix_begin(fs, op) : -EAGAIN;
	if (err < 0)
		return err;
	posix_name_set(&s, op->name);
	err = posix_change_begin(&c, dir, op->wcc);
	if (err == 0 && dir->type != VFS_DIR)
		err = -ENOTDIR;
	if (err == 0)
		err = posix_sync_ready(dir);
	if (err == 0)
		err = posix_cred_set(fs, op);
	if (err == 0)
		err = check_gone(op, dir, s.s);
	if (err == 0)
		err = remove_name(op, dir, s.s);
	posix_change_end(&c);
	return err < 0 ? err : posix_change_sync(&c);
}

/*
 * Records the file that is @name after the move.  Another rename can come in
 * between, so it need not be @g's file.
 */
static void moved(struct posix_fs *fs, struct going *g,
		  struct posix_node *to, const char *name)
{
	struct vfs_handle h;

	if (posix_handle_peek(fs, to->fd, name, &h) == 0) {
		posix_record(fs, &h, to, name, false);
		posix_check_place(fs, &h, to, name);
		/* Renaming one of a file's names to another does nothing. */
		posix_check_place(fs, &h, g->dir, g->name);
	}
	if (g->known)
		posix_check_place(fs, &g->h, g->dir, g->name);
	if (g->node)
		posix_unseen(g->node);
}

/* A RENAME must neither move nor replace the server's own files. */
static int check_moved(const struct vfs_op *op, const char *name,
		       const char *to_name)
{
	struct posix_node *from = to_posix(op->node);
	struct posix_node *to = to_posix(op->to.dir);
	dev_t dev = posix_fs_of(from)->dev;
	int err = posix_own_name(from, name, op->name.len, true);
	struct stat st;

	if (err == 0 && posix_own_can_be_on(dev) &&
	    posix_stat_name(from, name, &st, NULL) == 0)
		err = posix_own_is(dev, &st, true);
	if (err == 0)
		err = posix_own_new(to, to_name, op->to.name.len);
	return err > 0 ? -EACCES : err == -EEXIST ? -ENOTEMPTY : err;
}

static int rename_names(struct posix_fs *fs, struct posix_node *from,
			const char *from_name, struct posix_node *to,
			const char *to_name)
{
	struct going source = { 0 }, target;
	int err = 0;

	if (from->type != VFS_DIR || to->type != VFS_DIR)
		return -ENOTDIR;
	if (fs->table)
		going(&source, fs, from, from_name);
	going(&target, fs, to, to_name);
	source.dir = from;
	source.name = from_name;
	if (fs->table)
		posix_table_move_begins(fs->table);
	if (renameat(from->fd, from_name, to->fd, to_name) < 0)
		err = -errno;
	if (err == 0 && !(source.known && target.known &&
			  posix_handle_same(&source.h, &target.h)))
		name_gone(&target, fs);
	if (err == 0 && fs->table)
		moved(fs, &source, to, to_name);
	if (fs->table)
		posix_table_move_ends(fs->table);
	going_end(&source);
	going_end(&target);
	return err;
}

/* The first error, but both are tried: the name is at one of them now. */
static int sync_both(const struct posix_change *from,
		     const struct posix_change *to)
{
	int err = posix_change_sync(from);
	int to_err = to ? posix_change_sync(to) : 0;

	return err ? err : to_err;
}

int posix_rename(struct vfs_op *op)
{
	struct posix_node *from = to_posix(op->node);
	struct posix_node *to = to_posix(op->to.dir);
	struct posix_fs *fs = posix_fs_of(from);
	struct posix_name from_s, to_s;
	struct posix_change cf, ct;
	int err;

	if (op->nonblock)
		return -EAGAIN;		/* the replaced file can be large */
	err = posix_begin(fs, op);
	if (err < 0)
		return err;
	posix_name_set(&from_s, op->name);
	posix_name_set(&to_s, op->to.name);
	if (op->to.wcc)
		memset(op->to.wcc, 0, sizeof(*op->to.wcc));
	err = posix_change_begin(&cf, from, op->wcc);
	if (to != from && err == 0)
		err = posix_change_begin(&ct, to, op->to.wcc);
	else
		ct.node = NULL;
	posix_names_begin(to);
	if (err == 0)
		err = posix_sync_ready(from);
	if (err == 0)
		err = posix_sync_ready(to);
	if (err == 0)
		err = posix_cred_set(fs, op);
	if (err == 0)
		err = check_moved(op, from_s.s, to_s.s);
	if (err == 0)
		err = rename_names(fs, from, from_s.s, to, to_s.s);
	posix_change_end(&cf);
	if (ct.node)
		posix_change_end(&ct);
	if (to == from && op->wcc && op->to.wcc)
		*op->to.wcc = *op->wcc;
	if (err == 0)
		err = sync_both(&cf, ct.node ? &ct : NULL);
	posix_names_end(to);
	return err;
}

int posix_link(struct vfs_op *op)
{
	struct posix_node *n = to_posix(op->node), *dir = to_posix(op->to.dir);
	struct posix_fs *fs = posix_fs_of(n);
	struct posix_change c;
	struct posix_name s;
	struct stat st;
	struct posix_fd_path path;
	int err;

	err = posix_may_record(op, fs) ? posix_begin(fs, op) : -EAGAIN;
	if (err < 0)
		return err;
	posix_name_set(&s, op->to.name);
	path = posix_fd_path(n->fd);
	posix_names_begin(dir);
	err = posix_change_begin(&c, dir, op->to.wcc);
	if (err == 0 && dir->type != VFS_DIR)
		err = -ENOTDIR;
	if (err == 0)
		err = posix_stat(n, &st);
	if (err == 0)
		err = posix_sync_ready(dir);
	if (err == 0)
		err = posix_cred_set(fs, op);
	if (err == 0)
		err = posix_own_new(dir, s.s, op->to.name.len);
	if (err == 0 && linkat(AT_FDCWD, path.s, dir->fd, s.s,
			       AT_SYMLINK_FOLLOW) < 0)
		err = -errno;
	if (err == 0)
		posix_seen(n, dir, s.s);
	posix_change_end(&c);
	if (err == 0)
		err = posix_change_sync(&c);
	posix_names_end(dir);
	if (op->attr && posix_fstat(n->fd, &st) == 0)
		posix_attr(fs, &st, op->attr);
	return err;
}
