/* SPDX-License-Identifier: BSD-2-Clause */
/* node - files in use, and their descriptors. */
#include "vfs/posix/covered.h"
#include "vfs/posix/handle.h"
#include "vfs/posix/opened.h"
#include "vfs/posix/own.h"
#include "vfs/posix/places.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/rcu.h"

STAT(posix_stale, "handles of files that are gone");
STAT(posix_closed, "files that could not be opened because of their mode");
STAT(posix_bad_handle, "handles that this backend did not make");

/* Counts as a descriptor, so that the cache knows of it. */
static int count_fd(struct posix_fs *fs, int fd)
{
	if (fd >= 0) {
		atomic_fetch_add_explicit(&fs->cache.nfds, 1,
					  memory_order_relaxed);
		fds_count(FDS_FILES, 1);
	}
	return fd;
}

/* Network file systems may write data at the last moment, and lose it. */
void posix_fd_close(struct posix_fs *fs, int fd)
{
	if (fd < 0)
		return;
	if (close(fd) < 0)
		posix_fs_failed(fs);
	atomic_fetch_sub_explicit(&fs->cache.nfds, 1, memory_order_relaxed);
	fds_count(FDS_FILES, -1);
}

int posix_fd_copy(struct posix_fs *fs, int fd)
{
	return count_fd(fs, fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

/* True if an open failed for want of descriptors and some were closed since. */
static bool node_try_again(struct posix_fs *fs, int err)
{
	return (err == -EMFILE || err == -ENFILE) &&
	       posix_cache_squeeze(&fs->cache);
}

/* Maps the errno of an open to one for the client. */
static int open_error(int err)
{
	switch (err) {
	case -EMFILE:
	case -ENFILE:
	case -EWOULDBLOCK:		/* a lease, which is broken now */
		return -ETIMEDOUT;
	case -ETXTBSY:
		return -EACCES;
	}
	return err;
}

/* A file renamed out of the directory at this moment gives -EXDEV, too, as a
 * mount point always does. */
static int open_beneath(int dir_fd, const char *name, struct open_how *how)
{
	int fd = -1;

	for (int i = 0; i < 3; i++) {
		fd = syscall(SYS_openat2, dir_fd, name, how, sizeof(*how));
		if (fd >= 0 || errno != EXDEV)
			break;
	}
	return fd;
}

static int open_name_once(struct posix_fs *fs, int dir_fd,
			  const char *name, bool nonblock)
{
	struct open_how how = {
		.flags = POSIX_OPEN_NAME,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
			   RESOLVE_NO_XDEV,
	};
	int fd;

	if (fs->no_openat2) {
		if (nonblock)
			return -EAGAIN;
		fd = openat(dir_fd, name, POSIX_OPEN_NAME);
		return fd < 0 ? -errno : fd;
	}
	if (nonblock)
		how.resolve |= RESOLVE_CACHED;
	fd = open_beneath(dir_fd, name, &how);
	if (fd >= 0)
		return fd;
	if (nonblock && errno == EINVAL)	/* Linux before 5.12 */
		return -EAGAIN;
	return -errno;
}

int posix_open_name(struct posix_fs *fs, int dir_fd, const char *name,
		    bool nonblock)
{
	int fd;

	/* Making room by closing another file may take long. */
	if (nonblock && posix_cache_full(&fs->cache))
		return -EAGAIN;
	fd = nonblock ? 0 : posix_cache_room(&fs->cache);
	if (fd < 0)
		return fd;
	fd = open_name_once(fs, dir_fd, name, nonblock);
	if (nonblock && (fd == -EMFILE || fd == -ENFILE))
		return -EAGAIN;
	if (unlikely(fd < 0) && node_try_again(fs, fd))
		fd = open_name_once(fs, dir_fd, name, nonblock);
	return fd == -EAGAIN ? fd : open_error(fd);
}

static int open_dir_once(struct posix_node *n)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	struct posix_fd_path path;

	if (likely(!posix_fs_of(n)->as_caller))
		return openat(n->fd, ".", flags);
	/* "." takes permission to search, which a caller need not have. */
	path = posix_fd_path(n->fd);
	return open(path.s, flags);
}

int posix_open_dir(struct posix_node *n)
{
	struct posix_fs *fs = posix_fs_of(n);
	int fd;

	posix_cred_server(fs);
	fd = posix_cache_room(&fs->cache);
	if (fd < 0)
		return fd;
	fd = open_dir_once(n);
	if (fd < 0 && node_try_again(fs, -errno))
		fd = open_dir_once(n);
	return fd < 0 ? open_error(-errno) : fd;
}

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
	n->fd = count_fd(fs, fd);
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

int posix_node_adopt(struct posix_fs *fs, int fd, bool rdwr, struct stat *st,
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
	err = posix_own_is(fs->own, st, true);
	if (err > 0)
		err = -EACCES;
	if (err < 0)
		goto fail;
	err = posix_handle_make(fs, fd, st, &h);
	if (err < 0)
		goto fail;
	if (posix_handle_is_root(&h)) {
		*out = fs->root;
		vfs_node_get(&fs->root->node);
		close(fd);
		return 0;
	}
	*out = posix_cache_find(&fs->cache, &h);
	if (*out) {
		if (rdwr)
			lend_rdwr(*out, fd);
		close(fd);
		return 0;
	}
	return make_node(fs, fd, rdwr, st, &h, out);
fail:
	close(fd);
	return err;
}

static void node_reclaim(struct rcu_head *head)
{
	struct posix_node *n = container_of(head, struct posix_node, rcu);

	free(n);
}

/* Closing a file may write it, or free its blocks if it was removed. */
static bool close_takes_time(struct posix_node *n)
{
	struct stat st;

	if (!posix_fs_of(n)->ram)
		return true;
	return n->type == VFS_REG && posix_fstat(n->fd, &st) == 0 &&
	       st.st_nlink == 0 && (uint64_t)st.st_blocks * 512 > VFS_LONG;
}

void posix_node_free(struct vfs_node *node)
{
	struct posix_node *n = to_posix(node);
	struct posix_fs *fs = posix_fs_of(n);

	/* It may have been written after the cache let go of it. */
	if ((thread_must_not_wait && close_takes_time(n)) ||
	    (n->dirty && posix_cache_makes_room())) {
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

int posix_root(struct vfs_fs *fs, struct vfs_node **out)
{
	*out = &to_posix_fs(fs)->root->node;
	vfs_node_get(*out);
	return 0;
}

void posix_handle(struct vfs_node *n, struct vfs_handle *h)
{
	*h = to_posix(n)->handle;
}

/* By the system's handle: as the server, whatever the thread is now. */
static int open_by_handle(struct posix_fs *fs, const struct vfs_handle *h,
			  struct posix_node **out)
{
	struct stat st;
	int fd, err;

	posix_cred_server(NULL);
	fd = posix_cache_room(&fs->cache);
	if (fd < 0)
		return fd;
	fd = posix_handle_open(fs, h);
	if (fd < 0 && node_try_again(fs, fd))
		fd = posix_handle_open(fs, h);
	if (fd < 0)
		return open_error(fd);
	err = posix_fstat(fd, &st);
	if (err == 0 && st.st_nlink == 0 && !fs->no_nlink)
		err = -ESTALE;
	if (err == 0)
		err = posix_own_is(fs->own, &st, false);
	if (err > 0)
		err = -ESTALE;
	if (err < 0) {
		close(fd);
		return err;
	}
	return make_node(fs, fd, false, &st, h, out);
}

int posix_open_handle(struct vfs_op *op)
{
	struct posix_fs *fs = to_posix_fs(op->fs);
	const struct vfs_handle *h = op->handle;
	struct posix_node *n;
	int err = 0;

	if (unlikely(posix_covered_is(h)))
		return posix_covered_open(op);
	if (unlikely(!posix_handle_valid(h))) {
		stat_inc(posix_bad_handle);
		return -EBADMSG;
	}
	err = posix_begin(fs, op);
	if (err < 0)
		return err;
	if (posix_handle_is_root(h))
		return posix_root(op->fs, &op->out);
	n = posix_cache_find(&fs->cache, h);
	if (!n) {
		if (!posix_may_record(op, fs))
			return -EAGAIN;
		if (fs->by_handle)
			err = open_by_handle(fs, h, &n);
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

struct posix_fd_path posix_fd_path(int fd)
{
	struct posix_fd_path path;

	snprintf(path.s, sizeof(path.s), "/proc/self/fd/%d", fd);
	return path;
}

int posix_node_reopen(struct posix_node *n, int flags)
{
	struct posix_fs *fs = posix_fs_of(n);
	struct posix_fd_path path = posix_fd_path(n->fd);
	int fd;

	posix_cred_server(fs);
	fd = posix_cache_room(&fs->cache);
	if (fd < 0)
		return fd;
	flags |= O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	fd = open(path.s, flags);
	if (fd < 0 && node_try_again(fs, -errno))
		fd = open(path.s, flags);
	if (fd < 0)
		fd = open_error(-errno);
	return count_fd(fs, fd);
}

/* Opens *@slot if it is not yet; the first of several threads wins. */
static int slot_fd(struct posix_node *n, atomic_int *slot, int flags)
{
	int fd = atomic_load_explicit(slot, memory_order_acquire);
	int none = -1;

	if (likely(fd >= 0))
		return fd;
	fd = posix_node_reopen(n, flags);
	if (fd < 0)
		return fd;
	if (atomic_compare_exchange_strong(slot, &none, fd))
		return fd;
	posix_fd_close(posix_fs_of(n), fd);
	return none;
}

int posix_node_rd(struct posix_node *n)
{
	return slot_fd(n, &n->rd_fd,
		       O_RDONLY | (n->type == VFS_DIR ? O_DIRECTORY : 0));
}

int posix_node_wr(struct posix_node *n)
{
	return slot_fd(n, &n->wr_fd, O_WRONLY);
}

int posix_node_closed(struct posix_node *n, const struct stat *st, uint32_t bit)
{
	struct posix_fs *fs = posix_fs_of(n);

	if (fs->privileged || st->st_uid != fs->uid || st->st_mode & bit ||
	    atomic_exchange(&n->told_closed, true))
		return -EACCES;
	stat_inc(posix_closed);
	log_limited(LOG_LEVEL_WARN, "file %llu of device %u:%u: user %u, as "
		    "whom this server runs, can't open it again to %s it, as "
		    "its mode is %04o, so clients that may do so are refused; "
		    "chmod u+%s would end this",
		    (unsigned long long)n->ino, major(fs->dev),
		    minor(fs->dev), fs->uid, bit == S_IWUSR ? "write" : "read",
		    st->st_mode & 07777, bit == S_IWUSR ? "w" : "r");
	return -EACCES;
}

/* A program that is open to be written can't be run. */
static bool may_be_program(uint32_t mode)
{
	return mode & 0111;
}

void posix_node_mode_comes(struct posix_node *n, uint32_t mode)
{
	if (posix_fs_of(n)->privileged || n->type != VFS_REG)
		return;
	if (!(mode & 0400))
		posix_node_rd(n);
	if (!(mode & 0200) && !may_be_program(mode))
		posix_node_wr(n);
}

void posix_node_mode_is(struct posix_node *n, uint32_t mode)
{
	if (!posix_fs_of(n)->privileged && n->type == VFS_REG)
		atomic_store(&n->closed_to_owner, (mode & 0600) != 0600);
}
