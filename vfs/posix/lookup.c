/* SPDX-License-Identifier: BSD-2-Clause */
/* lookup - names and handles to nodes. */
#include "vfs/posix/cache.h"
#include "vfs/posix/covered.h"
#include "vfs/posix/handle.h"
#include "vfs/posix/node.h"
#include "vfs/posix/ops.h"
#include "vfs/posix/own.h"
#include "vfs/posix/table/places.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

STAT(posix_stale, "handles of files that are gone");
STAT(posix_bad_handle, "handles that this backend did not make");
STAT(posix_escape, "look-ups of .. that led out of the tree");

#define DEPTH_MAX 4096

/* Opens "..", an O_PATH descriptor, or -errno; -EXDEV: that is in another
 * mount. */
static int open_up(const struct posix_fs *fs, int fd)
{
	struct open_how how = {
		.flags = POSIX_OPEN_NAME | O_DIRECTORY,
		.resolve = RESOLVE_NO_XDEV,
	};
	int up = fs->no_openat2 ? openat(fd, "..", (int)how.flags) :
		 (int)syscall(SYS_openat2, fd, "..", &how, sizeof(how));

	return up < 0 ? -errno : up;
}

/*
 * Checks that the directory @fd is in the tree: a local process can move a
 * directory out of it that a client has a handle of.  Takes @fd.
 */
static bool beneath_root(const struct posix_fs *fs, int fd)
{
	struct stat st, below = { 0 };
	int up;

	for (int depth = 0; depth < DEPTH_MAX; depth++) {
		if (posix_fstat(fd, &st) < 0 || st.st_dev != fs->dev)
			break;
		if (st.st_ino == fs->ino) {
			close(fd);
			return true;
		}
		if (depth > 0 && st.st_ino == below.st_ino)
			break;		/* the root of the file system */
		below = st;
		up = open_up(fs, fd);
		close(fd);
		fd = up;
		if (fd < 0)
			return false;
	}
	close(fd);
	return false;
}

/* Returns @fd if it is in the tree, else closes it.  @fd can be -errno. */
static int keep_inside(const struct posix_fs *fs, int fd)
{
	int check, err;

	if (fd < 0)
		return fd;
	check = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (check >= 0 && beneath_root(fs, check))
		return fd;
	err = check < 0 ? -errno : -EXDEV;
	close(fd);
	return err;
}

/* Where something is mounted on a directory that @dir is in. */
static int open_covered_parent(struct posix_fs *fs, struct posix_node *dir)
{
	int at = posix_covered_bare(fs, dir), fd;

	if (at < 0)
		return at;
	fd = keep_inside(fs, open_up(fs, at));
	close(at);
	return fd < 0 ? fd : posix_covered_back(fs, fd);
}

static int open_parent(const struct vfs_op *op, struct posix_fs *fs,
		       struct posix_node *dir)
{
	int fd;

	if (!posix_may_block(op, fs))
		return -EAGAIN;
	fd = posix_cache_room(&fs->cache);
	if (fd < 0)
		return fd;
	fd = open_up(fs, dir->fd);
	posix_cred_server(fs);
	fd = keep_inside(fs, fd);
	if (fd != -EXDEV)
		return fd;
	fd = open_covered_parent(fs, dir);
	if (fd >= 0 || posix_covered_passes(fd))
		return fd;
	stat_inc(posix_escape);
	return -EACCES;
}

struct looking {
	const struct vfs_op *op;
	struct posix_fs	*fs;
	struct posix_node *dir;
	struct posix_name name;
	struct stat	 dir_st;
	struct posix_node *node;	/* counted */
	struct stat	 st;
};

/* Gets the found file's attributes.  Mounting on a directory changes neither it
 * nor its parent: only its name shows the mount. */
static int stat_kept(struct looking *l)
{
	int err;

	if (l->node->type != VFS_DIR)
		return posix_stat(l->node, &l->st);
	err = posix_stat_name(l->dir, l->name.s, &l->st, NULL);
	return err < 0 ? err : l->st.st_ino == l->node->ino ? 0 : -ESTALE;
}

/* By a cached entry that is still valid, if the caller may search the
 * directory. */
static bool find_kept(struct looking *l)
{
	struct vfs_handle h;

	if (!posix_dentry_find(l->fs, l->dir, &l->dir_st, l->name.s, &h) ||
	    posix_granted(l->op, l->dir, &l->dir_st, POSIX_X) != POSIX_X)
		return false;
	l->node = posix_cache_find(l->fs, &h);
	if (!l->node)
		return false;
	if (stat_kept(l) == 0)
		return true;
	vfs_node_put(&l->node->node);
	return false;
}

/* The client gets a handle, so the table has to know the place. */
static int record(struct looking *l)
{
	if (posix_seen_before(l->node, l->dir, l->name.s))
		return 0;
	if (!posix_may_record(l->op, l->fs)) {
		vfs_node_put(&l->node->node);
		return -EAGAIN;
	}
	posix_seen(l->node, l->dir, l->name.s);
	return 0;
}

static int find_name(struct looking *l)
{
	bool keep = posix_settled(&l->dir_st);
	struct timespec ctime = l->dir_st.st_ctim;
	int fd, err;

	fd = posix_open_name(l->fs, l->dir->fd, l->name.s,
			     !posix_may_block(l->op, l->fs));
	if (fd < 0)
		return fd;
	err = posix_node_adopt(l->fs, fd, false, &l->st, &l->node);
	if (err == 0)
		err = record(l);
	if (err < 0 || posix_stat(l->dir, &l->dir_st) < 0)
		return err;
	if (keep && posix_same_time(&ctime, &l->dir_st.st_ctim)) {
		posix_dentry_keep(l->fs, l->dir, &l->dir_st, l->name.s,
				  &l->node->handle);
		posix_was_granted(l->op, l->dir, &l->dir_st, POSIX_X);
	}
	return 0;
}

static int find_parent(struct looking *l)
{
	int fd = open_parent(l->op, l->fs, l->dir);

	return fd < 0 ? fd :
	       posix_node_adopt(l->fs, fd, false, &l->st, &l->node);
}

/*
 * A look-up with the caller's credentials lets the kernel check.  A thread that
 * can't change its credentials looks up as the server, after checking the only
 * permission that is needed.
 */
static int may_search(struct looking *l)
{
	int err = posix_cred_set(l->fs, l->op);

	if (err != -EAGAIN)
		return err;
	err = posix_granted(l->op, l->dir, &l->dir_st, POSIX_X);
	if (err < 0)
		return err;
	return err == POSIX_X ? 0 : -EACCES;
}

static int lookup_find(struct looking *l)
{
	bool dotdot = strcmp(l->name.s, "..") == 0;
	int err;

	if (l->dir->type != VFS_DIR)
		return -ENOTDIR;
	err = posix_own_name(l->dir, l->name.s, l->op->name.len, false);
	if (err < 0)
		return err;
	if (find_kept(l))
		return 0;
	err = may_search(l);
	if (err < 0)
		return err;
	if (strcmp(l->name.s, ".") == 0 ||
	    (dotdot && l->dir == l->fs->root)) {
		l->node = l->dir;
		l->st = l->dir_st;
		vfs_node_get(&l->dir->node);
		return 0;
	}
	return dotdot ? find_parent(l) : find_name(l);
}

int posix_lookup(struct vfs_op *op)
{
	struct looking l;
	int err;

	l.op = op;
	l.dir = to_posix(op->node);
	l.fs = posix_fs_of(l.dir);
	err = posix_begin(l.fs, op);
	if (err < 0)
		return err;
	posix_name_set(&l.name, op->name);
	err = posix_stat(l.dir, &l.dir_st);
	if (err < 0)
		return err;
	err = lookup_find(&l);
	if (err == -EXDEV && op->nonblock)
		err = -EAGAIN;
	if (err == -EAGAIN)
		return err;
	if (op->lookup.dir_attr) {
		posix_attr(l.fs, &l.dir_st, op->lookup.dir_attr);
		op->lookup.has_dir_attr = true;
	}
	if (err == -EXDEV)
		return posix_covered_lookup(op, l.name.s, &l.dir_st);
	if (err < 0)
		return err;
	if (op->attr)
		posix_attr(l.fs, &l.st, op->attr);
	op->out = &l.node->node;
	return 0;
}

int posix_root(struct vfs_fs *fs, struct vfs_node **out)
{
	*out = &to_posix_fs(fs)->root->node;
	vfs_node_get(*out);
	return 0;
}

int posix_open_handle(struct vfs_op *op)
{
	struct posix_fs *fs = to_posix_fs(op->open.fs);
	const struct vfs_handle *h = op->open.handle;
	struct posix_node *n;
	int err = 0;

	if (unlikely(!posix_handle_valid(h))) {
		if (posix_covered_is(h))
			return posix_covered_open(op);
		stat_inc(posix_bad_handle);
		return -EBADMSG;
	}
	err = posix_begin(fs, op);
	if (err < 0)
		return err;
	n = posix_cache_find(fs, h);
	if (!n) {
		if (!posix_may_record(op, fs))
			return -EAGAIN;
		if (fs->by_handle)
			err = posix_node_open(fs, h, &n);
		else
			err = posix_resolve(fs, h, &n);
	}
	if (err == -ESTALE)
		stat_inc(posix_stale);
	if (err < 0)
		return err;
	op->out = &n->node;
	return 0;
}

