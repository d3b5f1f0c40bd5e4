/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * covered - directories that something is mounted on.
 *
 * No system call that gannetd may make leads to the directory below a mount, so
 * a mount point that is not entered is shown as an empty directory that nobody
 * may change.  It is a node with operations of its own.  Its handle has the id
 * of the mount and a fileid:
 *
 *	'm' mount[8] fileid[8]
 *
 * It is stale as soon as that mount is gone, so that clients look up the name
 * again.  Every operation needs a worker: the list of mounts may be long.
 */
#include "vfs/posix/covered.h"

#include <errno.h>
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

/* True if the mount @id is still there, or that can't be seen. */
static bool mount_is_there(uint64_t id)
{
	FILE *f = id ? fopen("/proc/self/mountinfo", "re") : NULL;
	bool found = false;
	char *line = NULL;
	size_t size = 0;

	if (!f)
		return true;
	while (!found && getline(&line, &size, f) > 0)
		found = strtoull(line, NULL, 10) == id;
	free(line);
	fclose(f);
	return found;
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

/* Owner and times are those of the export's root: the directory below has its
 * own, but nobody can see them. */
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
	out->is_part = posix_mount_id(sx) == posix_fs_of(dir)->mount;
	return 0;
}

int posix_covered_lookup(struct vfs_op *op, const char *name)
{
	struct posix_node *dir = to_posix(op->node);
	struct posix_fs *fs = posix_fs_of(dir);
	struct vfs_node *n = NULL;
	struct statx sx;
	int err;

	err = posix_stat_mount(dir->fd, name, &sx);
	if (err == 0 && !S_ISDIR(sx.stx_mode))
		err = -EACCES;
	if (err == 0)
		err = make_covered(fs, posix_mount_id(&sx),
				   hash_mix(dir->ino, hash_bytes(name,
							strlen(name))), &n);
	if (err < 0)
		return err;
	if (op->attr)
		err = covered_attr(fs, to_covered(n), op->attr);
	if (err == 0 && op->child)
		err = describe(dir, name, &sx, op->child);
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
	struct posix_fs *fs = to_posix_fs(op->fs);
	uint64_t mount, fileid;

	if (op->nonblock)
		return -EAGAIN;
	memcpy(&mount, op->handle->data + 1, 8);
	memcpy(&fileid, op->handle->data + 9, 8);
	posix_cred_server(fs);
	if (!mount_is_there(mount))
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
	op->granted = op->want & (VFS_ACCESS_READ | VFS_ACCESS_LOOKUP);
	return op->attr ? covered_getattr(op) : 0;
}

/* The directory above is not known. */
static int covered_lookup(struct vfs_op *op)
{
	bool up = op->name.len == 2 && memcmp(op->name.s, "..", 2) == 0;

	if (op->dir_attr)
		op->has_dir_attr = covered_attr(fs_around(op),
						to_covered(op->node),
						op->dir_attr) == 0;
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
	uint64_t next = op->cookie;

	if (next > AFTER_DOTDOT)
		return -EBADE;
	while (next < AFTER_DOTDOT && op->emit(op->arg, &entries[next]))
		next++;
	op->eof = next == AFTER_DOTDOT;
	op->verf = 0;
	return op->attr ? covered_getattr(op) : 0;
}

/* Describes the file system that the mount point is in. */
static int covered_statfs(struct vfs_op *op)
{
	struct vfs_op around = *op;

	around.node = &fs_around(op)->root->node;
	return posix_vfs_ops.statfs(&around);
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
