/* SPDX-License-Identifier: BSD-2-Clause */
/* node - files in use, and their descriptors. */
#include "vfs/posix/attr.h"
#include "vfs/posix/cache.h"
#include "vfs/posix/cred.h"
#include "vfs/posix/handle.h"
#include "vfs/posix/node.h"
#include "vfs/posix/opened.h"
#include "vfs/posix/own.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/rcu.h"

int posix_node_create(struct posix_fs *fs, int fd, const struct stat *st,
		      const struct vfs_handle *h, struct posix_node **out)
{
	struct posix_node *n = calloc(1, sizeof(*n));

	if (!n) {
		close(fd);
		return -ENOMEM;
	}
	vfs_node_init(&n->node, &fs->fs);
	n->handle = *h;
	n->type = posix_type(st->st_mode);
	n->ino = st->st_ino;
	n->fd = posix_fd_counted(fs, fd);
	atomic_init(&n->rd_fd, -1);
	atomic_init(&n->wr_fd, -1);
	*out = n;
	return 0;
}

/* Gives a node without a descriptor in *@slot a duplicate of @fd. */
static void lend(struct posix_node *n, atomic_int *slot, int fd)
{
	int none = -1;

	if (atomic_load(slot) >= 0)
		return;
	fd = posix_fd_copy(posix_fs_of(n), fd);
	if (fd >= 0 && !atomic_compare_exchange_strong(slot, &none, fd))
		posix_fd_close(posix_fs_of(n), fd);
}

/* The thread's caller has opened the file by @fd. */
static void lend_rdwr(struct posix_node *n, int fd)
{
	if (posix_fs_of(n)->as_caller) {
		posix_opened_made(n, fd);
		return;
	}
	lend(n, &n->rd_fd, fd);
	lend(n, &n->wr_fd, fd);
}

static int make_node(struct posix_fs *fs, int fd, bool rdwr, struct stat *st,
		     const struct vfs_handle *h, struct posix_node **out)
{
	struct posix_node *n;
	int err;

	err = posix_node_create(fs, fd, st, h, &n);
	if (err < 0)
		return err;
	if (rdwr && !fs->as_caller) {
		n->rd_fd = fd;
		n->wr_fd = fd;
	}
	vfs_node_get(&n->node);
	*out = posix_cache_enter(&fs->cache, n);
	if (rdwr && (*out != n || fs->as_caller))
		lend_rdwr(*out, fd);
	vfs_node_put(&n->node);
	return 0;
}

int posix_node_adopt(struct posix_fs *fs, int fd, bool made, struct stat *st,
		     struct posix_node **out)
{
	struct vfs_handle h;
	int err;

	err = posix_fstat(fd, st);
	if (err < 0)
		goto fail;
	/* A mount point that was not seen, or a btrfs subvolume. */
	err = -EXDEV;
	if (st->st_dev != fs->dev && (S_ISDIR(st->st_mode) || fs->no_openat2))
		goto fail;
	err = posix_own_is(fs->dev, st, true);
	if (err > 0)
		err = -EACCES;
	if (err < 0)
		goto fail;
	err = posix_handle_make(fs, fd, st, &h);
	if (err < 0)
		goto fail;
	/* A new file hardly ever has a node yet: make_node() looks, too. */
	*out = made ? NULL : posix_cache_find(fs, &h);
	if (!*out)
		return make_node(fs, fd, made, st, &h, out);
	close(fd);
	return 0;
fail:
	close(fd);
	return err;
}

static void node_reclaim(struct rcu_head *head)
{
	struct posix_node *n = container_of(head, struct posix_node, rcu);

	free(n);
}

/* Closing a file can write it, or free its blocks if it was removed. */
static bool close_takes_time(struct posix_node *n)
{
	struct stat st;

	if (!posix_fs_of(n)->ram)
		return true;
	if (n->little && !n->dirty)
		return false;
	return n->type == VFS_REG && posix_fstat(n->fd, &st) == 0 &&
	       st.st_nlink == 0 && (uint64_t)st.st_blocks * 512 > VFS_LONG;
}

void posix_node_free(struct vfs_node *node)
{
	struct posix_node *n = to_posix(node);
	struct posix_fs *fs = posix_fs_of(n);

	/* It might have been written after the cache dropped it. */
	if ((thread_must_not_wait && close_takes_time(n)) ||
	    (n->dirty && posix_makes_room)) {
		posix_cache_bury(&fs->cache, n);
		return;
	}
	/* An error would be reported to no one later. */
	posix_node_flush_last(n);
	posix_opened_close(n);
	if (n->wr_fd != n->fd)
		posix_fd_close(fs, n->wr_fd);
	if (n->rd_fd != n->fd)
		posix_fd_close(fs, n->rd_fd);
	posix_fd_close(fs, n->fd);
	free(n->verdicts);
	free(n->text);
	rcu_later(&n->rcu, node_reclaim);
}

void posix_handle(struct vfs_node *n, struct vfs_handle *h)
{
	*h = to_posix(n)->handle;
}

/* As the server, whatever the thread is now. */
int posix_node_open(struct posix_fs *fs, const struct vfs_handle *h,
		    struct posix_node **out)
{
	struct stat st;
	int fd, err;

	posix_cred_server(NULL);
	fd = posix_cache_room(&fs->cache);
	if (fd < 0)
		return fd;
	fd = posix_handle_open(fs->mount_fd, h);
	if (fd < 0 && posix_open_again(fs, fd))
		fd = posix_handle_open(fs->mount_fd, h);
	if (fd < 0)
		return posix_open_error(fd);
	err = posix_fstat(fd, &st);
	if (err == 0 && st.st_nlink == 0 && !fs->no_nlink)
		err = -ESTALE;
	if (err == 0)
		err = posix_own_is(fs->dev, &st, false);
	if (err > 0)
		err = -ESTALE;
	if (err < 0) {
		close(fd);
		return err;
	}
	return make_node(fs, fd, false, &st, h, out);
}
