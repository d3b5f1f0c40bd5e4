/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * covered - directories that something is mounted on.
 *
 * No path leads to the directory below a mount, but its handle does: it is a
 * node like any other.  The handle is found in a copy of the mount around,
 * which nothing is mounted on.  The helper makes this copy for a moment.  No
 * operation runs in it, so the flags of the tree's own mount hold.
 *
 * Pseudo file systems (procfs and its kin) are never entered: even with
 * crossmnt their mount points show the directory below.
 *
 * Without a helper or handles, a mount point that is not entered is shown as an
 * empty, read-only directory.  Where file systems below are entered, every
 * mount point is shown so, since a client must not mistake the directory below
 * for one of them.  It is a node with separate operations.  Its handle has the
 * id of the mount and a fileid:
 *
 *	'm' mount[8] fileid[8]
 *
 * It is stale as soon as that mount is gone, which makes clients look up the
 * name again.  Every operation needs a worker: the list of mounts can be long.
 */
#include "vfs/posix/attr.h"
#include "vfs/posix/cache.h"
#include "vfs/posix/covered.h"
#include "vfs/posix/cred.h"
#include "vfs/posix/handle.h"
#include "vfs/posix/kinds.h"
#include "vfs/posix/mounts.h"
#include "vfs/posix/node.h"
#include "vfs/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define HANDLE_LEN	(1 + 8 + 8)
#define MODE		0555

/* Cookies of the entries after "." and "..". */
enum { AFTER_DOT = 1, AFTER_DOTDOT };

struct covered {
	struct vfs_node node;
	uint64_t	mount;		/* 0: unknown, on old kernels */
	uint64_t	fileid;
};

static struct covered *to_covered(struct vfs_node *n)
{
	return container_of(n, struct covered, node);
}

static struct posix_fs *fs_around(const struct vfs_op *op)
{
	return container_of(op->node->fs, struct posix_fs, covered);
}

static int make_covered(struct posix_fs *fs, uint64_t mount, uint64_t fileid,
			struct vfs_node **out)
{
	struct covered *c = malloc(sizeof(*c));

	if (!c)
		return -ENOMEM;
	vfs_node_init(&c->node, &fs->covered);
	c->mount = mount;
	c->fileid = fileid;
	*out = &c->node;
	return 0;
}

/* The directory below can't be seen, so its owner and times come from the
 * export's root. */
static int covered_attr(struct posix_fs *fs, const struct covered *c,
			struct vfs_attr *attr)
{
	struct stat st;
	int err = posix_fstat(fs->root->fd, &st);

	if (err < 0)
		return err;
	posix_attr(fs, &st, attr);
	attr->mode = MODE;
	attr->nlink = 2;
	attr->fileid = c->fileid;
	return 0;
}

static bool is_part(struct posix_node *dir, const struct statx *sx)
{
	return posix_mount_id(sx) == posix_fs_of(dir)->mount;
}

static int describe(struct posix_node *dir, const char *name,
		    const struct statx *sx, struct vfs_child *out)
{
	const struct posix_fd_path link = posix_fd_path(dir->fd);
	char path[PATH_MAX];
	ssize_t len;

	len = readlink(link.s, path, sizeof(path) - 1);
	if (len < 0)
		return -errno;
	path[len] = '\0';
	if (asprintf(&out->path, "%s/%s", len > 1 ? path : "", name) < 0)
		return -ENOMEM;
	out->mark = posix_mark(sx);
	out->is_part = is_part(dir, sx);
	return 0;
}

/* ---- in a copy of the mount */

/* An O_PATH descriptor of the directory @fd there, or -errno. */
static int open_bare(const struct posix_fs *fs, int fd)
{
	struct helper_message m = { .task = HELPER_BARE };
	int bare, err;

	/* Without openat2(), ".." could not be kept in the mount. */
	if (!fs->by_handle || fs->no_openat2)
		return -EOPNOTSUPP;
	err = helper_ask(&m, fd, &bare);
	if (err < 0)
		return err;
	return bare < 0 ? -EMFILE : bare;
}

bool posix_covered_passes(int err)
{
	return err == -ETIMEDOUT || err == -EMFILE || err == -ENFILE ||
	       err == -ENOMEM;
}

int posix_covered_bare(struct posix_fs *fs, struct posix_node *dir)
{
	int bare, root, fd;

	bare = open_bare(fs, fs->root->fd);
	if (bare < 0)
		return bare;
	root = openat(bare, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(bare);
	if (root < 0)
		return -errno;
	fd = posix_handle_open(root, &dir->handle);
	close(root);
	return fd;
}

int posix_covered_back(struct posix_fs *fs, int fd)
{
	struct vfs_handle h;
	struct stat st;
	int err = posix_fstat(fd, &st);

	if (err == 0)
		err = posix_handle_make(fs, fd, &st, &h);
	if (err == 0 && posix_handle_is_root(&h))
		return fd;
	close(fd);
	return err < 0 ? err : posix_handle_open(fs->mount_fd, &h);
}

static int handle_below(struct posix_node *dir, const char *name,
			struct vfs_handle *h)
{
	struct posix_fs *fs = posix_fs_of(dir);
	int fd, bare = open_bare(fs, dir->fd);
	struct stat st;
	int err;

	if (bare < 0)
		return bare;
	fd = posix_open_name(fs, bare, name, false);
	close(bare);
	if (fd < 0)
		return fd;
	err = posix_fstat(fd, &st);
	if (err == 0)
		err = st.st_dev == fs->dev ?
		      posix_handle_make(fs, fd, &st, h) : -EXDEV;
	close(fd);
	return err;
}

/* The node of the directory below the mount, if the server can reach it. */
static int find_below(const struct vfs_op *op, const char *name,
		      const struct stat *dir_st, struct vfs_node **out)
{
	struct posix_node *dir = to_posix(op->node);
	struct posix_fs *fs = posix_fs_of(dir);
	struct vfs_handle h;
	struct posix_node *n;
	bool keep = posix_settled(dir_st);
	struct stat now;
	int err = 0;

	if (posix_dentry_find(fs, dir, dir_st, name, &h))
		keep = false;
	else
		err = handle_below(dir, name, &h);
	if (err < 0)
		return err;
	n = posix_cache_find(fs, &h);
	if (!n)
		err = posix_node_open(fs, &h, &n);
	if (err < 0)
		return err;
	*out = &n->node;
	/* A cached name would hide a mount on a file. */
	if (keep && n->type == VFS_DIR &&
	    posix_stat(dir, &now) == 0 &&
	    posix_same_time(&now.st_ctim, &dir_st->st_ctim))
		posix_dentry_keep(fs, dir, dir_st, name, &h);
	return 0;
}

/* True if a pseudo file system is mounted there.  Those have no device, so for
 * most mounts the list need not be read. */
static bool is_hidden(const struct statx *sx)
{
	struct posix_mounted m;

	return sx->stx_dev_major == 0 &&
	       posix_mounted_by_id(posix_mount_id(sx), &m) &&
	       posix_kind_hides(m.type);
}

static int make_empty(struct posix_node *dir, const char *name,
		      const struct statx *sx, struct vfs_node **out)
{
	uint64_t id = hash_mix(dir->ino, hash_bytes(name, strlen(name)));

	if (!S_ISDIR(sx->stx_mode))
		return -EACCES;
	return make_covered(posix_fs_of(dir), posix_mount_id(sx), id, out);
}

int posix_covered_lookup(struct vfs_op *op, const char *name,
			 const struct stat *dir_st)
{
	struct posix_node *dir = to_posix(op->node);
	struct vfs_node *n = NULL;
	struct vfs_op get = { .cred = op->cred, .attr = op->attr };
	struct vfs_child *child = op->lookup.child;
	struct statx sx;
	bool hidden;
	int err;

	err = posix_stat_mount(dir->fd, name, &sx);
	if (err < 0)
		return err;
	hidden = S_ISDIR(sx.stx_mode) && is_hidden(&sx);
	/* A subvolume covers nothing. */
	err = child && (child->below || hidden) && !is_part(dir, &sx) ?
	      find_below(op, name, dir_st, &n) : -EOPNOTSUPP;
	/* Not after a passing error: it would be another directory for a
	 * moment. */
	if (err < 0 && !posix_covered_passes(err))
		err = make_empty(dir, name, &sx, &n);
	if (err < 0)
		return err;
	get.node = n;
	if (op->attr)
		err = n->fs->ops->getattr(&get);
	if (err == 0 && child && !hidden)
		err = describe(dir, name, &sx, child);
	if (err < 0)
		vfs_node_put(n);
	else
		op->out = n;
	return err;
}

bool posix_covered_is(const struct vfs_handle *h)
{
	return h->len == HANDLE_LEN && h->data[0] == 'm';
}

int posix_covered_open(struct vfs_op *op)
{
	struct posix_fs *fs = to_posix_fs(op->open.fs);
	uint64_t mount, fileid;

	if (op->nonblock)
		return -EAGAIN;
	memcpy(&mount, op->open.handle->data + 1, 8);
	memcpy(&fileid, op->open.handle->data + 9, 8);
	posix_cred_server(fs);
	if (!posix_mounted_is_there(mount))
		return -ESTALE;
	return make_covered(fs, mount, fileid, &op->out);
}

static void covered_handle(struct vfs_node *n, struct vfs_handle *h)
{
	const struct covered *c = to_covered(n);

	h->len = HANDLE_LEN;
	h->data[0] = 'm';
	memcpy(h->data + 1, &c->mount, 8);
	memcpy(h->data + 9, &c->fileid, 8);
}

static void covered_free(struct vfs_node *n)
{
	free(to_covered(n));
}

static int covered_getattr(struct vfs_op *op)
{
	return covered_attr(fs_around(op), to_covered(op->node), op->attr);
}

static int covered_access(struct vfs_op *op)
{
	op->access.granted = op->access.want &
			     (VFS_ACCESS_READ | VFS_ACCESS_LOOKUP);
	return op->attr ? covered_getattr(op) : 0;
}

/* The directory above is not known. */
static int covered_lookup(struct vfs_op *op)
{
	bool up = op->name.len == 2 && memcmp(op->name.s, "..", 2) == 0;

	if (op->lookup.dir_attr)
		op->lookup.has_dir_attr = covered_attr(fs_around(op),
						to_covered(op->node),
						op->lookup.dir_attr) == 0;
	return up ? -EACCES : -ENOENT;
}

static int covered_readdir(struct vfs_op *op)
{
	const uint64_t fileid = to_covered(op->node)->fileid;
	const struct vfs_dirent entries[] = {
		{ .fileid = fileid, .cookie = AFTER_DOT, .name = { ".", 1 } },
		{ .fileid = fileid, .cookie = AFTER_DOTDOT,
		  .name = { "..", 2 } },
	};
	uint64_t next = op->readdir.cookie;

	if (next > AFTER_DOTDOT)
		return -EBADE;
	while (next < AFTER_DOTDOT &&
	       op->readdir.emit(op->readdir.arg, &entries[next]))
		next++;
	op->eof = next == AFTER_DOTDOT;
	op->readdir.verf = 0;
	return op->attr ? covered_getattr(op) : 0;
}

/* Describes the file system that the mount point is in. */
static int covered_statfs(struct vfs_op *op)
{
	struct vfs_op around = *op;

	around.node = &fs_around(op)->root->node;
	return around.node->fs->ops->statfs(&around);
}

static int covered_limits(struct vfs_op *op)
{
	*op->limits = fs_around(op)->limits;
	return 0;
}

static int covered_refuse(struct vfs_op *op)
{
	return -EACCES;
}

const struct vfs_ops posix_covered_ops = {
	.version = GANNET_VFS_VERSION,
	.name = "covered",
	.handle = covered_handle,
	.node_free = covered_free,
	.getattr = covered_getattr,
	.setattr = covered_refuse,
	.access = covered_access,
	.lookup = covered_lookup,
	.readlink = covered_refuse,
	.read = covered_refuse,
	.write = covered_refuse,
	.commit = covered_refuse,
	.create = covered_refuse,
	.make = covered_refuse,
	.remove = covered_refuse,
	.rename = covered_refuse,
	.link = covered_refuse,
	.readdir = covered_readdir,
	.statfs = covered_statfs,
	.limits = covered_limits,
};
