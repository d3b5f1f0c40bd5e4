/* SPDX-License-Identifier: BSD-2-Clause */
/* open - the descriptors of files, counted and limited by the cache. */
#include "vfs/posix/cache.h"
#include "vfs/posix/cred.h"
#include "vfs/posix/node.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/log.h"

STAT(posix_closed, "files that could not be opened because of their mode");

int posix_fd_counted(struct posix_fs *fs, int fd)
{
	if (fd >= 0) {
		atomic_fetch_add_explicit(&fs->cache.nfds, 1,
					  memory_order_relaxed);
		fds_count(FDS_FILES, 1);
	}
	return fd;
}

/* Network file systems can write data at the last moment, and lose it. */
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
	return posix_fd_counted(fs, fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

bool posix_open_again(struct posix_fs *fs, int err)
{
	return (err == -EMFILE || err == -ENFILE) &&
	       posix_cache_squeeze(&fs->cache);
}

int posix_open_error(int err)
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

/* A mount point always gives -EXDEV.  So does a file that is renamed out of the
 * directory at this moment: try again. */
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
	/* No text in the file system's alphabet, so it names nothing there. */
	return errno == EILSEQ ? -ENOENT : -errno;
}

int posix_open_name(struct posix_fs *fs, int dir_fd, const char *name,
		    bool nonblock)
{
	int fd;

	/* Making room by closing another file can take long. */
	if (nonblock && posix_cache_full(&fs->cache))
		return -EAGAIN;
	fd = nonblock ? 0 : posix_cache_room(&fs->cache);
	if (fd < 0)
		return fd;
	fd = open_name_once(fs, dir_fd, name, nonblock);
	if (nonblock && (fd == -EMFILE || fd == -ENFILE))
		return -EAGAIN;
	if (unlikely(fd < 0) && posix_open_again(fs, fd))
		fd = open_name_once(fs, dir_fd, name, nonblock);
	return fd == -EAGAIN ? fd : posix_open_error(fd);
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
	if (fd < 0 && posix_open_again(fs, -errno))
		fd = open_dir_once(n);
	return fd < 0 ? posix_open_error(-errno) : fd;
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
	if (fd < 0 && posix_open_again(fs, -errno))
		fd = open(path.s, flags);
	if (fd < 0)
		fd = posix_open_error(-errno);
	return posix_fd_counted(fs, fd);
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

void posix_node_mode_comes(struct posix_node *n, uint32_t mode)
{
	if (posix_fs_of(n)->privileged || n->type != VFS_REG)
		return;
	if (!(mode & 0400))
		posix_node_rd(n);
	/* A program that is open to be written can't be run. */
	if (!(mode & 0200) && !(mode & 0111))
		posix_node_wr(n);
}

void posix_node_mode_is(struct posix_node *n, uint32_t mode)
{
	if (!posix_fs_of(n)->privileged && n->type == VFS_REG)
		atomic_store(&n->closed_to_owner, (mode & 0600) != 0600);
}
