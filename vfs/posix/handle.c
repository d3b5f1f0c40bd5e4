/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * handle - the backend's part of a filehandle.
 *
 *	'r'						the root of the tree
 *	'k' type handle[...] ino[8]			the system's own
 *	'b' ino[8] seconds[8] nanoseconds[4]		birth time
 *	'g' ino[8] generation[4]
 *	'i' ino[8]					nothing better
 *
 * An overlay's layers can have the same inode numbers, and then differ in their
 * device numbers.  So the last two forms end with the difference[8] of the
 * file's device number and the tree's, if any: both change with each mount, but
 * the difference hardly ever.
 *
 * The inode number in a 'k' handle is a hint, for searches, and no part of the
 * identity.  Each form names one file for as long as that exists; only the last
 * can be inherited by a new file, with the inode number.  Numbers are in the
 * machine's byte order: only the machine that made a handle reads it.
 */
#include "vfs/posix/attr.h"
#include "vfs/posix/handle.h"
#include "vfs/posix/node.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define KERNEL_HEAD	2
#define AWAY		8
#define KERNEL_MAX	(VFS_HANDLE_MAX - KERNEL_HEAD - POSIX_HANDLE_HINT)

/* A struct file_handle with its room. */
union kernel_handle {
	struct file_handle h;
	uint8_t space[sizeof(struct file_handle) + MAX_HANDLE_SZ];
};

void posix_handle_root(struct vfs_handle *h)
{
	h->len = 1;
	h->data[0] = 'r';
}

static bool has_length(const struct vfs_handle *h, uint32_t len)
{
	return h->len == len || h->len == len + AWAY;
}

bool posix_handle_valid(const struct vfs_handle *h)
{
	if (h->len == 0 || h->len > VFS_HANDLE_MAX)
		return false;
	switch (h->data[0]) {
	case 'r':
		return h->len == 1;
	case 'k':
		return h->len > KERNEL_HEAD + POSIX_HANDLE_HINT;
	case 'b':
		return h->len == 21;
	case 'g':
		return has_length(h, 13);
	case 'i':
		return has_length(h, 9);
	}
	return false;
}

static void handle_put(struct vfs_handle *h, const void *data, size_t len)
{
	memcpy(h->data + h->len, data, len);
	h->len += len;
}

static void handle_start(struct vfs_handle *h, char form)
{
	h->data[0] = form;
	h->len = 1;
}

uint64_t posix_handle_ino(const struct vfs_handle *h)
{
	uint64_t ino = 0;

	if (h->data[0] == 'k')
		memcpy(&ino, h->data + h->len - POSIX_HANDLE_HINT, sizeof(ino));
	else if (h->data[0] != 'r')
		memcpy(&ino, h->data + 1, sizeof(ino));
	return ino;
}

/* name_to_handle_at(), with its result checked.  0 or -errno. */
static int ask_kernel(int fd, const char *name, union kernel_handle *k)
{
	int mount_id;

	k->h.handle_bytes = KERNEL_MAX;
	if (name_to_handle_at(fd, name, &k->h, &mount_id,
			      *name ? 0 : AT_EMPTY_PATH) < 0)
		return -errno;
	return k->h.handle_type < 0 || k->h.handle_type > 255 ||
	       k->h.handle_bytes == 0 ? -EOVERFLOW : 0;
}

/* Makes the handle of @name in @fd, or of @fd's own file. */
static int make_kernel(int fd, const char *name, uint64_t ino,
		       struct vfs_handle *h)
{
	union kernel_handle k;
	uint8_t type;
	int err;

	err = ask_kernel(fd, name, &k);
	if (err < 0)
		return err;
	type = k.h.handle_type;
	handle_start(h, 'k');
	handle_put(h, &type, 1);
	handle_put(h, k.h.f_handle, k.h.handle_bytes);
	handle_put(h, &ino, sizeof(ino));
	return 0;
}

/* FS_IOC_GETVERSION needs the file open, which is safe only for these two. */
static int get_generation(int fd, mode_t mode, uint32_t *gen)
{
	struct posix_fd_path path;
	long version = 0;
	int rd, err = 0;

	if (!S_ISREG(mode) && !S_ISDIR(mode))
		return -ENOTTY;
	path = posix_fd_path(fd);
	rd = open(path.s, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (rd < 0)
		return -errno;
	if (ioctl(rd, FS_IOC_GETVERSION, &version) < 0)
		err = -errno;
	close(rd);
	*gen = version;
	return err;
}

static int make_other(const struct posix_fs *fs, int fd, const struct stat *st,
		      struct vfs_handle *h)
{
	uint64_t ino = st->st_ino, away = st->st_dev - fs->dev;
	struct statx sx;
	uint32_t gen = 0;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &sx) < 0)
		return -errno;
	if (sx.stx_mask & STATX_BTIME) {
		uint64_t sec = sx.stx_btime.tv_sec;
		uint32_t nsec = sx.stx_btime.tv_nsec;

		handle_start(h, 'b');
		handle_put(h, &ino, sizeof(ino));
		handle_put(h, &sec, sizeof(sec));
		handle_put(h, &nsec, sizeof(nsec));
		return 0;
	}
	if (!fs->as_caller &&	/* can depend on who opens */
	    get_generation(fd, st->st_mode, &gen) == 0) {
		handle_start(h, 'g');
		handle_put(h, &ino, sizeof(ino));
		handle_put(h, &gen, sizeof(gen));
	} else {
		handle_start(h, 'i');
		handle_put(h, &ino, sizeof(ino));
	}
	if (away)
		handle_put(h, &away, sizeof(away));
	return 0;
}

int posix_handle_make(const struct posix_fs *fs, int fd,
		      const struct stat *st, struct vfs_handle *h)
{
	if (st->st_ino == fs->ino && st->st_dev == fs->dev) {
		posix_handle_root(h);
		return 0;
	}
	return fs->kernel_ids ? make_kernel(fd, "", st->st_ino, h) :
	       make_other(fs, fd, st, h);
}

int posix_handle_of_name(const struct posix_fs *fs, int dir_fd,
			 const char *name, const struct stat *st,
			 struct vfs_handle *h)
{
	if (st->st_ino == fs->ino && st->st_dev == fs->dev) {
		posix_handle_root(h);
		return 0;
	}
	return make_kernel(dir_fd, name, st->st_ino, h);
}

int posix_handle_peek(struct posix_fs *fs, int dir_fd,
		      const char *name, struct vfs_handle *h)
{
	struct stat st;
	int fd, err;

	if (fs->kernel_ids)
		return make_kernel(dir_fd, name, 0, h);
	fd = posix_open_name(fs, dir_fd, name, false);
	if (fd < 0)
		return fd;
	err = posix_fstat(fd, &st);
	if (err == 0)
		err = posix_handle_make(fs, fd, &st, h);
	close(fd);
	return err;
}

int posix_handle_open(int mount_fd, const struct vfs_handle *h)
{
	union kernel_handle k;
	int fd;

	if (h->data[0] != 'k')
		return -ESTALE;
	k.h.handle_bytes = h->len - KERNEL_HEAD - POSIX_HANDLE_HINT;
	k.h.handle_type = h->data[1];
	memcpy(k.h.f_handle, h->data + KERNEL_HEAD, k.h.handle_bytes);
	fd = open_by_handle_at(mount_fd, &k.h,
			       O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	/* EINVAL, ENOENT: the file system no longer knows it. */
	return errno == EINVAL || errno == ENOENT ? -ESTALE : -errno;
}

bool posix_handle_can_be(int fd)
{
	union kernel_handle k;

	return ask_kernel(fd, "", &k) != -EOPNOTSUPP;
}

void posix_handle_probe(struct posix_fs *fs, bool may_open)
{
	union kernel_handle k;
	int fd;

	fs->kernel_ids = ask_kernel(fs->mount_fd, "", &k) == 0;
	fs->by_handle = false;
	if (!fs->kernel_ids || !may_open)
		return;
	fd = open_by_handle_at(fs->mount_fd, &k.h, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return;
	fs->by_handle = true;
	close(fd);
}
