/* SPDX-License-Identifier: BSD-2-Clause */
/* attr - attributes, and attributes around a change. */
#include "vfs/posix/attr.h"
#include "vfs/posix/cache.h"
#include "vfs/posix/cred.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

/* A day, as the kernel's relatime; less a little for its coarse clock. */
#define ATIME_KEEPS_S	(24 * 60 * 60 - 1)

/* By the system call: the C library goes through newfstatat with an empty path,
 * which costs a fifth more.  Where the kernel's struct stat is not the
 * library's, it is the library's call. */
int posix_fstat(int fd, struct stat *st)
{
#if defined(__x86_64__) && defined(__LP64__)
	return syscall(SYS_fstat, fd, st) < 0 ? -errno : 0;
#else
	return fstat(fd, st) < 0 ? -errno : 0;
#endif
}

static int check_links(struct posix_node *n, const struct stat *st)
{
	struct posix_fs *fs = posix_fs_of(n);

	if (likely(st->st_nlink > 0) || fs->no_nlink)
		return 0;
	posix_cache_forget(&fs->cache, n);
	return -ESTALE;
}

int posix_stat(struct posix_node *n, struct stat *st)
{
	int err = posix_fstat(n->fd, st);

	return err < 0 ? err : check_links(n, st);
}

static void from_statx(const struct statx *sx, struct stat *st)
{
	*st = (struct stat){
		.st_dev = makedev(sx->stx_dev_major, sx->stx_dev_minor),
		.st_ino = sx->stx_ino,
		.st_mode = sx->stx_mode,
		.st_nlink = sx->stx_nlink,
		.st_uid = sx->stx_uid,
		.st_gid = sx->stx_gid,
		.st_rdev = makedev(sx->stx_rdev_major, sx->stx_rdev_minor),
		.st_size = (off_t)sx->stx_size,
		.st_blocks = (blkcnt_t)sx->stx_blocks,
		.st_atim = { sx->stx_atime.tv_sec, sx->stx_atime.tv_nsec },
		.st_mtim = { sx->stx_mtime.tv_sec, sx->stx_mtime.tv_nsec },
		.st_ctim = { sx->stx_ctime.tv_sec, sx->stx_ctime.tv_nsec },
	};
}

int posix_stat_flags(struct posix_node *n, struct stat *st, bool *fixed)
{
	struct statx sx;

	if (statx(n->fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &sx) < 0)
		return -errno;
	from_statx(&sx, st);
	*fixed = sx.stx_attributes & (STATX_ATTR_APPEND | STATX_ATTR_IMMUTABLE);
	return check_links(n, st);
}

int posix_stat_name(struct posix_node *dir, const char *name,
		    struct stat *st, struct timespec *born)
{
	int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
	struct statx sx;

	/* The call enters a file system mounted at @name, which can hang.  With
	 * this flag, FUSE and network file systems answer from their cache. */
	if (!posix_fs_of(dir)->remote)
		flags |= AT_STATX_DONT_SYNC;
	if (statx(dir->fd, name, flags,
		  STATX_BASIC_STATS | (born ? STATX_BTIME : 0), &sx) < 0)
		return -errno;
	if (sx.stx_attributes & STATX_ATTR_MOUNT_ROOT)
		return -EXDEV;
	from_statx(&sx, st);
	if (born)
		*born = sx.stx_mask & STATX_BTIME ?
			(struct timespec){ sx.stx_btime.tv_sec,
					   sx.stx_btime.tv_nsec } :
			st->st_ctim;
	return 0;
}

void posix_flags_learn(struct posix_fs *fs)
{
	struct statvfs st;

	if (fstatvfs(fs->mount_fd, &st) < 0)
		return;
	if (!(st.f_flag & ST_RDONLY))
		posix_seen_writable(fs);
	if (fs->ram || st.f_flag & (ST_NOATIME | ST_RDONLY))
		fs->atime = POSIX_ATIME_NONE;
	else if (st.f_flag & ST_RELATIME)
		fs->atime = POSIX_ATIME_RELATIVE;
	else
		fs->atime = POSIX_ATIME_STRICT;
}

bool posix_is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec > b->tv_sec ||
	       (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

bool posix_atime_due(struct posix_node *n)
{
	enum posix_atime how = atomic_load_explicit(&posix_fs_of(n)->atime,
						    memory_order_relaxed);
	struct timespec now;
	struct stat st;

	if (how != POSIX_ATIME_RELATIVE)
		return how == POSIX_ATIME_STRICT;
	if (posix_fstat(n->fd, &st) < 0)
		return true;
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return !posix_is_later(&st.st_atim, &st.st_mtim) ||
	       !posix_is_later(&st.st_atim, &st.st_ctim) ||
	       now.tv_sec - st.st_atim.tv_sec >= ATIME_KEEPS_S;
}

enum vfs_type posix_type(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return VFS_DIR;
	case S_IFBLK:
		return VFS_BLK;
	case S_IFCHR:
		return VFS_CHR;
	case S_IFLNK:
		return VFS_LNK;
	case S_IFSOCK:
		return VFS_SOCK;
	case S_IFIFO:
		return VFS_FIFO;
	}
	return VFS_REG;
}

void posix_attr(const struct posix_fs *fs, const struct stat *st,
		struct vfs_attr *attr)
{
	attr->type = posix_type(st->st_mode);
	attr->mode = st->st_mode & 07777;
	attr->nlink = st->st_nlink;
	attr->uid = st->st_uid;
	attr->gid = st->st_gid;
	attr->size = st->st_size;
	attr->used = (uint64_t)st->st_blocks * 512;
	attr->rdev_major = major(st->st_rdev);
	attr->rdev_minor = minor(st->st_rdev);
	attr->fileid = st->st_ino;
	attr->atime = st->st_atim;
	attr->mtime = st->st_mtim;
	attr->ctime = st->st_ctim;
}

/* More than the slowest clock's tick (10 ms); and for file systems that keep
 * whole seconds, or pairs of them. */
#define SETTLED_NS	50000000ll
#define SETTLED_COARSE	3000000000ll

bool posix_settled(const struct stat *st)
{
	struct timespec now;
	int64_t age;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	age = (now.tv_sec - st->st_ctim.tv_sec) * 1000000000ll +
	      now.tv_nsec - st->st_ctim.tv_nsec;
	return age > (st->st_ctim.tv_nsec % 1000000 ? SETTLED_NS :
		      SETTLED_COARSE);
}

int posix_getattr(struct vfs_op *op)
{
	struct posix_node *node = to_posix(op->node);
	struct posix_fs *fs = posix_fs_of(node);
	struct stat st;
	int err;

	err = posix_begin(fs, op);
	if (err < 0)
		return err;
	err = posix_stat(node, &st);
	if (err < 0)
		return err;
	posix_attr(fs, &st, op->attr);
	return 0;
}
