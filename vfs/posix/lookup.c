/* SPDX-License-Identifier: BSD-2-Clause */
/* lookup - names to nodes. */
#include "vfs/posix/posix.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

STAT(posix_escape, "look-ups of .. that led out of the tree");

#define DEPTH_MAX 4096

void posix_name_set(struct posix_name *out, struct vfs_name name)
{
	uint32_t len = MIN(name.len, (uint32_t)VFS_NAME_MAX);

	memcpy(out->s, name.s, len);
	out->s[len] = '\0';
}

/*
 * Is the directory @fd in the tree?  A local process may have moved one out
 * of it that a client has a handle of.  Takes @fd.
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
		up = openat(fd, "..", POSIX_OPEN_NAME | O_DIRECTORY);
		close(fd);
		fd = up;
		if (fd < 0)
			return false;
	}
	close(fd);
	return false;
}

static int open_parent(const struct vfs_ctx *ctx, struct posix_fs *fs,
		       struct posix_node *dir)
{
	int fd, check;

	if (!posix_may_block(ctx, fs))
		return -EAGAIN;
	fd = openat(dir->fd, "..", POSIX_OPEN_NAME | O_DIRECTORY);
	if (fd < 0)
		return -errno;
	check = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	posix_cred_server(fs);
	if (check >= 0 && beneath_root(fs, check))
		return fd;
	close(fd);
	stat_inc(posix_escape);
	return -EACCES;
}

static int find(const struct vfs_ctx *ctx, struct posix_fs *fs,
		struct posix_node *dir, const char *name,
		struct posix_node **out, struct stat *st)
{
	bool dotdot = strcmp(name, "..") == 0;
	int fd, err;

	err = posix_cred_set(fs, ctx->cred);
	if (err < 0)
		return err;
	if (strcmp(name, ".") == 0 || (dotdot && dir == fs->root)) {
		*out = dir;
		vfs_node_get(&dir->node);
		return posix_stat(dir, st);
	}
	if (dotdot)
		fd = open_parent(ctx, fs, dir);
	else
		fd = posix_open_name(fs, dir->fd, name,
				     !posix_may_block(ctx, fs));
	if (fd < 0)
		return fd;
	err = posix_node_adopt(fs, fd, false, st, out);
	if (err < 0 || dotdot || posix_seen_before(*out, dir, name))
		return err;
	if (posix_may_block(ctx, fs)) {
		posix_seen(*out, dir, name);
		return 0;
	}
	vfs_node_put(&(*out)->node);
	return -EAGAIN;
}

int posix_lookup(const struct vfs_ctx *ctx, struct vfs_node *vdir,
		 struct vfs_name name, struct vfs_node **out,
		 struct vfs_attr *attr, struct vfs_attr *dir_attr,
		 bool *has_dir_attr)
{
	struct posix_node *dir = to_posix(vdir), *n = NULL;
	struct posix_fs *fs = posix_fs_of(dir);
	struct posix_name s;
	struct stat st;
	int err, dir_err;

	if (has_dir_attr)
		*has_dir_attr = false;
	if (ctx->nonblock && fs->remote)
		return -EAGAIN;
	posix_name_set(&s, name);
	err = dir->type == VFS_DIR ? find(ctx, fs, dir, s.s, &n, &st) :
	      -ENOTDIR;
	if (err == -EAGAIN)
		return err;
	if (err == 0 && attr)
		posix_attr(fs, &st, attr);
	dir_err = posix_stat(dir, &st);
	if (dir_err == 0 && dir_attr && has_dir_attr) {
		posix_attr(fs, &st, dir_attr);
		*has_dir_attr = true;
	}
	if (err == -ENOENT && dir_err < 0)
		err = dir_err;		/* it is the directory that is gone */
	if (err == 0)
		*out = &n->node;
	return err;
}
