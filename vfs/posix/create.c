/* SPDX-License-Identifier: BSD-2-Clause */
/* create - CREATE, MKDIR, SYMLINK, MKNOD. */
#include "vfs/posix/cache.h"
#include "vfs/posix/change.h"
#include "vfs/posix/node.h"
#include "vfs/posix/ops.h"
#include "vfs/posix/own.h"
#include "vfs/posix/table/places.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* The mode if the client gives none: for the owner alone. */
#define MODE_FILE	0600
#define MODE_DIR	0700
/* Tries at a name that other processes make and remove meanwhile. */
#define TRIES		100

/* One making of a name. */
struct making {
	struct vfs_op	*op;
	struct posix_fs	*fs;
	struct posix_node *dir;
	struct posix_name name;
	struct posix_change change;	/* of the directory */
	struct posix_node *node;	/* counted: the new or found file */
	struct stat	 st;
	bool		 made;
	bool		 touched;	/* its attributes, since */
	int		 tries;
};

/* -EAGAIN: it is over already; don't call making_end(). */
static int making_begin(struct making *m, struct vfs_op *op)
{
	int err, begun;

	m->op = op;
	m->dir = to_posix(op->node);
	m->fs = posix_fs_of(m->dir);
	m->node = NULL;
	m->made = m->touched = false;
	m->tries = 0;
	posix_name_set(&m->name, op->name);
	if (!posix_may_record(op, m->fs))
		return -EAGAIN;
	begun = posix_begin(m->fs, op);
	if (begun == -EAGAIN)
		return begun;
	posix_names_begin(m->dir);
	err = posix_change_begin(&m->change, m->dir, op->wcc);
	if (err == 0)
		err = begun;
	if (err == 0 && m->dir->type != VFS_DIR)
		err = -ENOTDIR;
	if (err == 0)
		err = posix_sync_ready(m->dir);
	if (err == 0)
		err = posix_cred_set(m->fs, op);
	if (err == 0)
		err = posix_own_new(m->dir, m->name.s, op->name.len);
	if (err == -EAGAIN) {
		posix_change_end(&m->change);
		posix_names_end(m->dir);
	}
	return err;
}

/*
 * True if @*err is a reason to try again: another process might have removed
 * the file in the way, or the new one.
 */
static bool again(struct making *m, int *err)
{
	if (*err != -ENOENT || m->node)
		return false;
	if (m->tries++ == TRIES) {
		*err = -EINVAL;		/* a name that can't be: "..." of FAT */
		return false;
	}
	*err = posix_stat(m->dir, &m->st);
	if (*err == 0)
		*err = posix_cred_set(m->fs, m->op);
	return *err == 0;
}

/*
 * Syncs a name that was made, even if @err came after that: later calls assume
 * that a name that they find is synced.  An existing name might not be synced
 * yet: another call can have made it and not synced the directory.
 */
static int sync_made(struct making *m, int err)
{
	bool sync = m->made && m->fs->sync_names;
	int dir_err;

	if (!m->made) {
		posix_names_end(m->dir);	/* this call makes none */
		sync = err == 0 && m->fs->sync_names &&
		       !posix_names_settled(m->dir);
	}
	if (err == 0 && m->touched)
		err = posix_node_sync(m->node);
	if (sync) {
		dir_err = posix_change_sync(&m->change);
		err = err ? err : dir_err;
	}
	if (m->made)
		posix_names_end(m->dir);
	return err;
}

/*
 * Maps @err, which came after the name was made: the client would not know its
 * own name if it sent the call again.  Lack of a descriptor or of memory to
 * open it is no error, unless parts of @set remain to be set.
 */
static int after_made(const struct making *m, const struct vfs_setattr *set,
		      int err)
{
	if (!m->made)
		return err;
	if (!m->node && (err == -ETIMEDOUT || err == -ENOMEM) &&
	    !(set->set & ~(VFS_SET_MODE | VFS_SET_SIZE)) &&
	    !(set->set & VFS_SET_MODE && set->mode & (S_ISUID | S_ISGID)))
		return 0;
	return posix_not_again(err);
}

/* Ends the creation, and makes it durable. */
static int making_end(struct making *m, int err)
{
	posix_change_end(&m->change);
	if (m->node && (m->made || err == 0))
		posix_seen(m->node, m->dir, m->name.s);
	err = sync_made(m, err);
	if (err == 0 && !m->node) {
		m->op->out = NULL;
	} else if (err == 0) {
		if (m->op->attr)
			posix_attr(m->fs, &m->st, m->op->attr);
		m->op->out = &m->node->node;
	} else if (m->node) {
		vfs_node_put(&m->node->node);
	}
	return err;
}

static uint32_t mode_of(const struct vfs_setattr *set, uint32_t otherwise)
{
	return set->set & VFS_SET_MODE ? set->mode & 07777 : otherwise;
}

/* Opens a new file for reading and writing; @flags say under which name. */
static int open_new(struct making *m, const char *name, int flags,
		    uint32_t mode)
{
	int fd;

	flags |= O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
	fd = posix_cache_room(&m->fs->cache);
	if (fd < 0)
		return fd;
	fd = openat(m->dir->fd, name, flags, mode);
	if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
		if (!posix_cache_squeeze(&m->fs->cache))
			return -ETIMEDOUT;
		fd = openat(m->dir->fd, name, flags, mode);
	}
	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? -ETIMEDOUT :
		       -errno;
	return fd;
}

/* @fd, made just now, gets its node. */
static int adopt_new(struct making *m, int fd)
{
	int err;

	m->made = true;
	err = posix_node_adopt(m->fs, fd, true, &m->st, &m->node);
	if (err == 0)
		posix_node_mode_is(m->node, m->st.st_mode);
	return err;
}

/* The name is new: a file. */
static int making_create_new(struct making *m, uint32_t mode)
{
	int fd = open_new(m, m->name.s, O_CREAT | O_EXCL, mode);

	return fd < 0 ? fd : adopt_new(m, fd);
}

static int find_existing(struct making *m)
{
	int fd = posix_open_name(m->fs, m->dir->fd, m->name.s, false), err = fd;

	if (fd >= 0)
		err = posix_node_adopt(m->fs, fd, false, &m->st, &m->node);
	return err == -EXDEV ? -EACCES : err;
}

/*
 * The file gets its verifier before its name: a server that ends between the
 * two leaves no file, and the repeated call makes it. -EOPNOTSUPP: the file
 * system can't make one without a name.
 */
static int create_verified(struct making *m, const struct vfs_setattr *set)
{
	const struct timespec times[2] = {
		{ set->atime.tv_sec, set->atime.tv_nsec },
		{ set->mtime.tv_sec, set->mtime.tv_nsec },
	};
	struct posix_fd_path path;
	int fd = open_new(m, ".", O_TMPFILE, MODE_FILE), err;

	if (fd < 0)
		return fd == -EISDIR ? -EOPNOTSUPP : fd;
	path = posix_fd_path(fd);
	if (futimens(fd, times) < 0 ||
	    linkat(AT_FDCWD, path.s, m->dir->fd, m->name.s,
		   AT_SYMLINK_FOLLOW) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	m->touched = true;
	return adopt_new(m, fd);
}

/* The same where a file can't be made without a name. */
static int create_and_mark(struct making *m, const struct vfs_setattr *set)
{
	int err = making_create_new(m, MODE_FILE);

	return err ? err : posix_setattr_new(m->op, m->node, set, &m->st,
					     &m->touched);
}

static int create_exclusive(struct making *m, uint64_t verf)
{
	struct vfs_setattr set;
	int err = find_existing(m);

	if (err == -ENOENT) {
		posix_verf_times(verf, &set);
		err = create_verified(m, &set);
		if (err == -EOPNOTSUPP)
			err = create_and_mark(m, &set);
		if (err == 0)
			posix_verf_keep(m->fs, &m->node->handle, verf);
		if (err != -EEXIST)
			return err;
		err = find_existing(m);
	}
	if (err < 0)
		return err;
	/* True if an earlier run of this call made the file. */
	if (m->node->type != VFS_REG ||
	    (!posix_verf_known(m->fs, &m->node->handle, verf) &&
	     !posix_verf_is(&m->st, verf)))
		return -EEXIST;
	m->touched = true;		/* the first run might not have got this
					 * far */
	return 0;
}

/* For UNCHECKED with a taken name only the size of the attributes counts. */
static int reuse(struct making *m, const struct vfs_setattr *set)
{
	struct vfs_setattr size = { .set = set->set & VFS_SET_SIZE,
				    .size = set->size };
	struct vfs_op resize = { .cred = m->op->cred, .set = &size };
	int err = find_existing(m);

	if (err == 0 && m->node->type != VFS_REG)
		err = -EEXIST;
	if (err < 0 || !size.set)
		return err;
	resize.node = &m->node->node;
	resize.nonblock = m->op->nonblock;
	err = posix_setattr(&resize);
	if (err == 0)
		err = posix_stat(m->node, &m->st);
	if (err == -ESTALE) {		/* it was removed meanwhile */
		vfs_node_put(&m->node->node);
		m->node = NULL;
		err = -ENOENT;
	}
	return err;
}

/* -ENOENT: the name was taken, and is free now. */
static int create_once(struct making *m, const struct vfs_create *how)
{
	int err;

	if (how->how == VFS_CREATE_EXCLUSIVE)
		return create_exclusive(m, how->verf);
	err = making_create_new(m, mode_of(&how->attr, MODE_FILE));
	if (err == 0)
		return posix_setattr_new(m->op, m->node, &how->attr, &m->st,
					 &m->touched);
	return err == -EEXIST && how->how == VFS_CREATE_UNCHECKED ?
	       reuse(m, &how->attr) : err;
}

int posix_create(struct vfs_op *op)
{
	const struct vfs_create *how = op->create;
	struct making m;
	int err;

	err = making_begin(&m, op);
	if (err == -EAGAIN)
		return err;
	if (err == 0)
		do
			err = create_once(&m, how);
		while (again(&m, &err));
	if (how->how != VFS_CREATE_EXCLUSIVE)
		err = after_made(&m, &how->attr, err);
	return making_end(&m, err);
}

static int make_link(int dir_fd, const char *name, const struct vfs_make *what)
{
	char target[VFS_PATH_MAX + 1];

	memcpy(target, what->target, what->target_len);
	target[what->target_len] = '\0';
	return symlinkat(target, dir_fd, name) < 0 ? -errno : 0;
}

static int make_name(struct making *m, const struct vfs_make *what)
{
	uint32_t mode = mode_of(&what->attr, MODE_FILE);
	const char *name = m->name.s;
	int fd = m->dir->fd, rc;
	dev_t dev = 0;

	switch (what->type) {
	case VFS_DIR:
		rc = mkdirat(fd, name, mode_of(&what->attr, MODE_DIR));
		return rc < 0 ? -errno : 0;
	case VFS_LNK:
		return make_link(fd, name, what);
	case VFS_FIFO:
		mode |= S_IFIFO;
		break;
	case VFS_SOCK:
		mode |= S_IFSOCK;
		break;
	case VFS_BLK:
	case VFS_CHR:
		mode |= what->type == VFS_BLK ? S_IFBLK : S_IFCHR;
		dev = makedev(what->rdev_major, what->rdev_minor);
		break;
	default:
		return -EPROTOTYPE;
	}
	return mknodat(fd, name, mode, dev) < 0 ? -errno : 0;
}

static int make_once(struct making *m, const struct vfs_make *what)
{
	int err = make_name(m, what);

	if (err < 0)
		return err;
	m->made = true;
	err = find_existing(m);
	if (err == 0 && m->node->type != what->type) {
		m->made = false;	/* this is another's */
		err = -EEXIST;
	}
	return err;
}

int posix_make(struct vfs_op *op)
{
	const struct vfs_make *what = op->make;
	struct vfs_setattr set = what->attr;
	struct making m;
	int err;

	err = making_begin(&m, op);
	if (err == -EAGAIN)
		return err;
	if (err == 0)
		do
			err = make_once(&m, what);
		while (again(&m, &err));
	set.set &= ~VFS_SET_SIZE;
	if (err == 0)
		err = posix_setattr_new(op, m.node, &set, &m.st, &m.touched);
	err = after_made(&m, &set, err);
	return making_end(&m, err);
}
