/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lock - locks that local processes and other servers see: open file
 * description locks (fcntl(2)).
 *
 * A descriptor for each owner and file holds the owner's locks, from its first
 * to its last.  Nothing can close these descriptors earlier, so their number is
 * limited to a share of max_files, and for one client to half of that.
 *
 * They are opened as the server, also where a file system decides at each open:
 * no data moves through them.  There, VFS_ACCESS_OPEN is asked before, for
 * permission to lock.
 *
 * The server can fail to open a file in the mode that the lock needs: on a file
 * system without locks, and without privileges where the file's mode says no.
 * Then the lock is seen by the server's clients only, which is counted.
 */
#include "vfs/posix/node.h"
#include "vfs/posix/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* The share of the descriptors that locks can use, and its minimum; and the
 * share of these for one client. */
#define LOCK_SHARE	4
#define LOCK_LEAST	16
#define CLIENT_SHARE	2

STAT(posix_locks_unseen, "locks that local processes can't see");
STAT(posix_locks_client_full, "locks refused because their client has too many "
     "descriptors");
STAT(posix_locks_full, "locks refused because they have too many descriptors");

static bool is_unable(int err)
{
	switch (-err) {
	case EACCES:
	case EPERM:
	case EROFS:
	case EBADF:			/* open for the other kind only */
	case EINVAL:
	case ENOSYS:
	case EOPNOTSUPP:
		return true;
	default:
		return false;
	}
}

/* A program that is open for writing can't be run: open it for reading if that
 * suffices. */
static int flags_for(struct posix_node *n, bool exclusive)
{
	struct stat st;

	if (!exclusive && posix_fstat(n->fd, &st) == 0 && st.st_mode & 0111)
		return O_RDONLY;
	return O_RDWR;
}

static int open_to_lock(struct posix_node *n, bool exclusive)
{
	int fd;

	posix_cred_server(NULL);
	fd = posix_node_reopen(n, flags_for(n, exclusive));

	if (fd < 0 && is_unable(fd))
		fd = posix_node_reopen(n, exclusive ? O_WRONLY : O_RDONLY);
	return fd;
}

/* The locker's descriptor; negative: it has none. */
static int held_fd(const struct vfs_lock *l)
{
	return l->locker ? (int)l->locker->held - 1 : -1;
}

/* The locker's descriptor, opened if need be. */
static int locker_fd(struct posix_node *n, const struct vfs_lock *l)
{
	struct posix_fs *fs = posix_fs_of(n);
	long most = MAX(fs->cache.max_fds / LOCK_SHARE, (long)LOCK_LEAST);
	int fd = held_fd(l);

	if (fd >= 0)
		return fd;
	if (l->client_held >= most / CLIENT_SHARE) {
		stat_inc(posix_locks_client_full);
		return -ENOLCK;
	}
	if (atomic_fetch_add(&fs->lock_fds, 1) >= most) {
		atomic_fetch_sub(&fs->lock_fds, 1);
		stat_inc(posix_locks_full);
		return -ENOLCK;
	}
	fd = open_to_lock(n, l->exclusive);
	if (fd < 0)
		atomic_fetch_sub(&fs->lock_fds, 1);
	else
		l->locker->held = (intptr_t)fd + 1;
	return fd;
}

static int set_lock(int fd, const struct vfs_lock *l, short type)
{
	struct flock f = { .l_type = type, .l_whence = SEEK_SET,
			   .l_start = (off_t)l->off, .l_len = (off_t)l->len };

	return fcntl(fd, F_OFD_SETLK, &f) < 0 ? -errno : 0;
}

static int lock_file(struct posix_node *n, const struct vfs_lock *l)
{
	int fd = locker_fd(n, l), err = fd;

	if (fd >= 0)
		err = set_lock(fd, l, l->exclusive ? F_WRLCK : F_RDLCK);
	/* POSIX also allows EACCES; Linux does not use it. */
	if (fd >= 0 && err == -EAGAIN)
		return 1;
	if (!is_unable(err))
		return err;
	stat_inc(posix_locks_unseen);
	return 0;
}

static int unlock_file(const struct vfs_lock *l)
{
	int fd = held_fd(l);

	return fd < 0 ? 0 : set_lock(fd, l, F_UNLCK);
}

static int end_locker(struct posix_node *n, const struct vfs_lock *l)
{
	struct posix_fs *fs = posix_fs_of(n);
	int fd = held_fd(l);

	if (fd >= 0) {
		posix_fd_close(fs, fd);
		atomic_fetch_sub(&fs->lock_fds, 1);
		l->locker->held = 0;
	}
	return 0;
}

/* The node's, or another one to be closed: *@own. */
static int fd_to_test(struct posix_node *n, bool *own)
{
	int fd;

	*own = posix_fs_of(n)->as_caller;
	if (*own)
		return open_to_lock(n, false);
	fd = posix_node_rd(n);
	return fd < 0 && is_unable(fd) ? posix_node_wr(n) : fd;
}

static int ask_for_lock(int fd, const struct vfs_lock *l, struct flock *f)
{
	*f = (struct flock){ .l_type = l->exclusive ? F_WRLCK : F_RDLCK,
			     .l_whence = SEEK_SET, .l_start = (off_t)l->off,
			     .l_len = (off_t)l->len };
	return fcntl(fd, F_OFD_GETLK, f) < 0 ? -errno : 0;
}

static int test_lock(struct posix_node *n, struct vfs_lock *l)
{
	/* The owner's own locks are not in its way. */
	int err, fd = held_fd(l);
	bool own = false;
	struct flock f;

	if (fd < 0)
		fd = fd_to_test(n, &own);
	err = fd < 0 ? fd : ask_for_lock(fd, l, &f);
	if (own)
		posix_fd_close(posix_fs_of(n), fd);
	if (err < 0)
		return is_unable(err) ? 0 : err;
	if (f.l_type == F_UNLCK)
		return 0;
	l->exclusive = f.l_type == F_WRLCK;
	l->off = (uint64_t)f.l_start;
	l->len = (uint64_t)f.l_len;
	/* -1: another open file description's. */
	l->pid = f.l_pid > 0 ? (uint32_t)f.l_pid : 0;
	return 1;
}

int posix_lock(struct vfs_op *op)
{
	struct posix_node *n = to_posix(op->node);
	struct vfs_lock *l = op->lock;

	switch (l->how) {
	case VFS_LOCK_TEST:
		return test_lock(n, l);
	case VFS_LOCK_SET:
		return lock_file(n, l);
	case VFS_LOCK_CLEAR:
		return unlock_file(l);
	default:
		return end_locker(n, l);
	}
}
