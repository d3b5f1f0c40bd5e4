/* SPDX-License-Identifier: BSD-2-Clause */
/* sync - makes changes durable, or reports that they are not.  See sync.h. */
#include "vfs/posix/attr.h"
#include "vfs/posix/change.h"
#include "vfs/posix/cred.h"
#include "vfs/posix/mounts.h"
#include "vfs/posix/node.h"
#include "vfs/posix/opened.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/log.h"

STAT(posix_writeback_error, "errors in writing cached data to storage");
STAT(posix_whole_syncs, "syncs of whole file systems");

/*
 * Errors that don't mean that storage failed, but that this file can't be
 * synced by itself: then sync its whole file system.  All others are errors,
 * EROFS among them: ext4 and btrfs say so after they gave up on their disk,
 * while a file system that is merely mounted read-only answers 0.
 */
static const struct instead {
	int	err;
	bool	at_open;		/* by open(), not by fsync() */
} instead[] = {
	/* The file system has no fsync() for files of this kind: directories
	 * of 9p, anything on a file system that is only ever read. */
	{ EINVAL, false },
	/* The server has no permission to open the file, as its user. */
	{ EACCES, true },
	{ EPERM, true },
	/* No descriptor is left to open it by. */
	{ ETIMEDOUT, true },
	/* No memory to open it.  Before the change, posix_sync_ready() fails
	 * for lack of memory; now the change is done, and can't be put off. */
	{ ENOMEM, true },
};

static bool sync_whole_instead(int err, bool at_open)
{
	for (size_t i = 0; i < ARRAY_SIZE(instead); i++)
		if (instead[i].err == -err && instead[i].at_open == at_open)
			return true;
	return false;
}

/* The arguments of one sync, for its turn. */
struct job {
	struct posix_fs	  *fs;
	struct posix_node *n;
	int		   fd;
};

/* @fd, or one that another thread kept first.  Takes @fd. */
static int keep_whole_fd(struct posix_fs *fs, int fd)
{
	int none = -1;

	if (fd < 0)
		return fd;
	if (atomic_compare_exchange_strong(&fs->whole_fd, &none, fd)) {
		fds_count(FDS_FILES, 1);
		return fd;
	}
	close(fd);
	return none;
}

/*
 * A descriptor that syncfs() takes, or -1.  This can be the root's only if the
 * server can read the root.  If the server can write there, an unnamed file in
 * it serves as well.
 */
static int whole_fd(struct posix_fs *fs)
{
	int fd = atomic_load(&fs->whole_fd);

	if (fd >= 0 || !fs->mount_is_path)
		return fd;
	posix_cred_server(NULL);
	fd = openat(fs->mount_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		fd = openat(fs->mount_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC,
			    0600);
	return keep_whole_fd(fs, fd);
}

/*
 * Why is the file system read-only?  False: it was mounted so, or a remount
 * made it so: the system writes everything before that.  True: it gave up on
 * its disk, or that can't be excluded.  Most syncs of a read-only file system
 * answer 0 in either case.  But ext4's fsync() fails after ext4 gave up, if the
 * whole file system is read-only and not just this mount of it; and so does
 * btrfs's own sync.
 */
static bool gave_up(struct posix_fs *fs, int fd)
{
	struct posix_mounted m;

	if (fs->read_only)
		return false;
	if (fs->ext4)
		/* ext2 can be served by its own driver, whose fsync() does not
		 * fail then. */
		return !posix_mounted_by_dev(fs->dev, &m) || !m.read_only ||
		       strcmp(m.type, "ext2") == 0 || fsync(fd) < 0;
	return !fs->btrfs || ioctl(fd, BTRFS_IOC_SYNC) < 0;
}

/*
 * ext4 notices that its journal was aborted when it begins a change, and not
 * in fsync(), which answers 0 when the transaction that it would wait for is
 * over, even if that failed.  So begin a change that changes nothing.
 */
static int ask_journal(struct posix_fs *fs)
{
	int fd = fs->ext4 ? whole_fd(fs) : -1;

	if (fd < 0)
		return 0;
	posix_cred_server(fs);
	if (fremovexattr(fd, "user.gannet.none") == 0)
		return 0;
	switch (errno) {
	case EROFS:			/* of a remount, or aborted */
		return gave_up(fs, fd) ? -EROFS : 0;
	case ENODATA:			/* as it should be */
		posix_seen_writable(fs);
		return 0;
	case EOPNOTSUPP:		/* mounted without such attributes */
	case EACCES: case EPERM:	/* a root that is another user's */
		return 0;
	}
	return -errno;
}

/* A file system becomes read-only when it gives up on its disk. */
static int ask_writable(struct posix_fs *fs, int fd)
{
	struct statvfs sv;

	if (fstatvfs(fd, &sv) < 0)
		return -errno;
	if (sv.f_flag & ST_RDONLY)
		return gave_up(fs, fd) ? -EROFS : 0;
	posix_seen_writable(fs);
	return 0;
}

/* Checks that fsync()'s answer of 0 can be believed. */
static int ask_alive(struct posix_fs *fs, int fd)
{
	struct stat st;
	int err = posix_fstat(fd, &st);

	if (err == 0 && fs->btrfs)
		err = ask_writable(fs, fd);
	return err < 0 ? err : ask_journal(fs);
}

/* Syncs the whole file system.  Success ends earlier doubts. */
static int whole_now(void *arg)
{
	struct job *j = arg;
	uint64_t errors = atomic_load(&j->fs->disk->errors);
	int err = syncfs(j->fd) < 0 ? -errno : ask_writable(j->fs, j->fd);

	if (err == 0)
		err = ask_alive(j->fs, j->fd);
	if (err == 0)
		atomic_store(&j->fs->disk->trusted, errors);
	else
		posix_fs_failed(j->fs);
	return err;
}

/* Uses @fd only as a last resort. */
static int sync_whole(struct posix_fs *fs, int fd,
		      const struct posix_mark *since)
{
	struct job j = { .fs = fs, .fd = whole_fd(fs) };

	if (j.fd < 0)
		j.fd = fd;
	if (j.fd < 0)
		return -EACCES;
	stat_inc(posix_whole_syncs);
	return posix_disk_turn(fs->disk, &fs->disk->whole,
			       since ? since->disk : POSIX_NOW, whole_now, &j);
}

static int file_now(void *arg)
{
	struct job *j = arg;
	struct posix_hold hold;
	int err = 0;

	/* btrfs answers 0 to an fsync() of an inode whose first one since a
	 * commit is under way, and this file can have another node. */
	if (j->fs->btrfs)
		posix_hold(&hold, j->n, true);
	/* Clear the mark before the sync: later writes are not in it. */
	atomic_store(&j->n->dirty, false);
	if (fsync(j->fd) < 0)
		err = -errno;
	else
		err = ask_alive(j->fs, j->fd);
	if (err < 0 && !sync_whole_instead(err, false))
		posix_fs_failed(j->fs);
	/* Only after the doubt is recorded: the next fsync() might report no
	 * error. */
	if (j->fs->btrfs)
		posix_hold_end(&hold);
	return err;
}

/* The error has had its effect, so a slow reader of the log does no harm
 * now. */
static int told(int err)
{
	if (err < 0) {
		stat_inc(posix_writeback_error);
		log_limited(LOG_LEVEL_ERR, "write-back failed: %s",
			    strerror(-err));
	}
	return err;
}

static int sync_file(struct posix_node *n, int fd,
		     const struct posix_mark *since)
{
	struct posix_fs *fs = posix_fs_of(n);
	struct job j = { .fs = fs, .n = n, .fd = fd };
	int err;

	err = posix_disk_turn(fs->disk, &n->turns,
			      since ? since->node : POSIX_NOW, file_now, &j);
	if (err < 0 && sync_whole_instead(err, false))
		return told(sync_whole(fs, fd, since));
	if (err == 0 && unlikely(posix_disk_doubtful(fs->disk))) {
		/* Each descriptor reports an error once: the first answer can
		 * be about the error that began the doubt. */
		err = sync_whole(fs, fd, NULL);
		if (err < 0)
			err = sync_whole(fs, fd, NULL);
	}
	return told(err);
}

/* True if it can only be synced with its whole file system. */
static bool has_no_fsync(const struct posix_node *n)
{
	return n->type != VFS_REG && n->type != VFS_DIR;
}

struct posix_mark posix_node_mark(struct posix_node *n)
{
	struct posix_disk *d = posix_fs_of(n)->disk;

	return (struct posix_mark){
		.node = atomic_load(&n->turns.failed),
		.disk = atomic_load(&d->whole.failed),
	};
}

/* The descriptor that fsync() gets, until posix_use_end(); or -errno. */
static int fd_to_sync(struct posix_node *n, struct posix_use *u)
{
	int err, fd = atomic_load(&n->wr_fd);

	u->opened = NULL;
	if (posix_fs_of(n)->as_caller) {
		err = posix_use_to_sync(u, n);
		return err < 0 ? err : u->fd;
	}
	if (fd < 0)
		fd = posix_node_rd(n);
	if (fd < 0 && n->type == VFS_REG)
		fd = posix_node_wr(n);
	return fd;
}

int posix_sync_ready(struct posix_node *n)
{
	struct posix_fs *fs = posix_fs_of(n);
	struct posix_use u = { .opened = NULL };
	int fd;

	if (!fs->sync_names)
		return 0;
	fd = has_no_fsync(n) ? -EACCES : fd_to_sync(n, &u);
	/* Not for a file: an open descriptor would keep its space after its
	 * removal, and, if writable, keep a program from running. */
	if (fd >= 0 && n->type == VFS_DIR &&
	    unlikely(atomic_load(&fs->whole_fd) < 0))
		keep_whole_fd(fs, fcntl(fd, F_DUPFD_CLOEXEC, 0));
	posix_use_end(n, &u);
	if (fd >= 0)
		return 0;
	if (fd == -ENOMEM || !sync_whole_instead(fd, true))
		return fd;
	return whole_fd(fs) < 0 ? -EACCES : 0;
}

int posix_node_flush(struct posix_node *n, const struct posix_mark *since)
{
	struct posix_fs *fs = posix_fs_of(n);
	struct posix_use u;
	int fd, err;

	if (fs->ram)
		return 0;
	if (has_no_fsync(n))
		return told(sync_whole(fs, -1, since));
	fd = fd_to_sync(n, &u);
	if (fd >= 0) {
		err = sync_file(n, fd, since);
		posix_use_end(n, &u);
		return err;
	}
	if (sync_whole_instead(fd, true))
		return told(sync_whole(fs, -1, since));
	posix_fs_failed(fs);
	return told(fd);
}

int posix_not_again(int err)
{
	switch (err) {
	case -EAGAIN: case -EINTR: case -ENOMEM: case -ENOBUFS:
	case -EMFILE: case -ENFILE: case -ETIMEDOUT:
		return -EIO;
	}
	return err;
}

int posix_change_sync(const struct posix_change *c)
{
	return posix_fs_of(c->node)->sync_names ?
	       posix_not_again(posix_node_flush(c->node, &c->mark)) : 0;
}

int posix_node_sync(struct posix_node *n)
{
	return posix_fs_of(n)->sync_names ?
	       posix_not_again(posix_node_flush(n, NULL)) : 0;
}

/*
 * Errors of a write that don't concern earlier data: the write was refused, or
 * no space is left.
 */
static const struct refusal {
	int	err;
	/* If the system syncs the file at each write, this can mean older
	 * data. */
	bool	unless_synced;
} refusals[] = {
	{ ENOSPC, true }, { EDQUOT, true },
	/* Larger than the maximum size of a file, or than the server's
	 * limit. */
	{ EFBIG, false },
	/* The file became immutable, or append-only; a lease, a swap file. */
	{ EPERM, false }, { EACCES, false }, { ETXTBSY, false },
	/* RWF_NOWAIT: not without waiting, not on this file system. */
	{ EAGAIN, false }, { EOPNOTSUPP, false }, { EINVAL, false },
	{ ENOMEM, false },
};

/* By chattr +S, or a mount with "sync". */
static bool synced_by_system(int fd)
{
	struct statvfs sv;
	int flags = 0;

	if (fstatvfs(fd, &sv) == 0 && sv.f_flag & ST_SYNCHRONOUS)
		return true;
	return ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && flags & FS_SYNC_FL;
}

int posix_write_failed(struct posix_node *n, int fd, int err)
{
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++)
		if (refusals[i].err == -err &&
		    !(refusals[i].unless_synced && synced_by_system(fd)))
			return 0;
	posix_fs_failed(posix_fs_of(n));
	return told(err);
}

static bool is_removed(struct posix_node *n)
{
	struct stat st;

	return !posix_fs_of(n)->no_nlink && posix_fstat(n->fd, &st) == 0 &&
	       st.st_nlink == 0;
}

void posix_node_flush_idle(struct posix_node *n)
{
	if (is_removed(n))
		atomic_store(&n->dirty, false);
	else
		/* An error has its effect there. */
		posix_node_flush(n, NULL);
}

/*
 * Another node can serve this file's COMMITs by now, and it would neither wait
 * for this sync nor get its error.  So change the verifier first: clients then
 * send uncommitted data again.
 */
void posix_node_flush_last(struct posix_node *n)
{
	int fd = posix_fs_of(n)->as_caller ? posix_opened_writer(n) : n->wr_fd;

	if (!n->dirty || fd < 0 || is_removed(n))
		return;
	posix_change_verf(posix_fs_of(n));
	sync_file(n, fd, NULL);
}
