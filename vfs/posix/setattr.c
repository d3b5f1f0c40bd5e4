/* SPDX-License-Identifier: BSD-2-Clause */
/* setattr - SETATTR, and the attributes of new files. */
#include "vfs/posix/change.h"
#include "vfs/posix/node.h"
#include "vfs/posix/opened.h"
#include "vfs/posix/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define SET_TIMES (VFS_SET_ATIME | VFS_SET_MTIME | VFS_SET_ATIME_NOW | \
		   VFS_SET_MTIME_NOW)

static int set_owner(struct posix_node *n, const struct vfs_setattr *set)
{
	uid_t uid = set->set & VFS_SET_UID ? set->uid : (uid_t)-1;
	gid_t gid = set->set & VFS_SET_GID ? set->gid : (gid_t)-1;

	/* -1 is no owner, but the system's "leave it". */
	if ((set->set & VFS_SET_UID && uid == (uid_t)-1) ||
	    (set->set & VFS_SET_GID && gid == (gid_t)-1))
		return -EINVAL;
	return fchownat(n->fd, "", uid, gid, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static int set_mode(struct posix_node *n, uint32_t mode)
{
	struct posix_fd_path path;
	int fd, rc;

	if (n->type == VFS_LNK)		/* a link's mode means nothing */
		return 0;
	posix_node_mode_comes(n, mode);
	fd = atomic_load(&n->rd_fd);
	/* The way to change it by an O_PATH descriptor. */
	path = posix_fd_path(n->fd);
	rc = fd >= 0 ? fchmod(fd, mode & 07777) : chmod(path.s, mode & 07777);
	if (rc < 0)
		return -errno;
	posix_node_mode_is(n, mode);
	return 0;
}

static struct timespec time_arg(const struct vfs_setattr *set, uint32_t given,
				uint32_t now, struct timespec t)
{
	if (set->set & now)
		t.tv_nsec = UTIME_NOW;
	else if (!(set->set & given))
		t.tv_nsec = UTIME_OMIT;
	return t;
}

static int setattr_set_times(struct posix_node *n,
			     const struct vfs_setattr *set)
{
	struct timespec t[2] = {
		time_arg(set, VFS_SET_ATIME, VFS_SET_ATIME_NOW, set->atime),
		time_arg(set, VFS_SET_MTIME, VFS_SET_MTIME_NOW, set->mtime),
	};

	/* These could be mistaken for the special values. */
	if ((set->set & VFS_SET_ATIME && set->atime.tv_nsec > 999999999) ||
	    (set->set & VFS_SET_MTIME && set->mtime.tv_nsec > 999999999))
		return -EINVAL;
	return utimensat(n->fd, "", t, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

/*
 * A caller that may write a file may set its times to now (RFC 1813 section
 * 3.3.2).  The system lets users other than the owner only set both times at
 * once, but clients set one: open(2) with O_TRUNC sends mtime.
 */
static int set_times_as(const struct vfs_op *op, struct posix_node *n,
			const struct vfs_setattr *set)
{
	const struct posix_fs *fs = posix_fs_of(n);
	struct vfs_setattr now = { .set = set->set };
	struct stat st;
	int err = setattr_set_times(n, set);

	if (err != -EPERM || set->set & (VFS_SET_ATIME | VFS_SET_MTIME))
		return err;
	err = posix_stat(n, &st);
	if (err == 0)
		err = posix_granted(op, n, &st, POSIX_W);
	if (err <= 0)
		return err < 0 ? err : -EACCES;
	posix_cred_server(fs);
	if (!fs->privileged || fs->as_caller)
		now.set = VFS_SET_ATIME_NOW | VFS_SET_MTIME_NOW;
	return setattr_set_times(n, &now);
}

/* The same check as for WRITE: the client's open(2) can be long ago. */
static int set_size(const struct vfs_op *op, struct posix_node *n,
		    const struct stat *st, uint64_t size)
{
	struct posix_use u;
	int err;

	if (n->type != VFS_REG)
		return n->type == VFS_DIR ? -EISDIR : -EINVAL;
	if (size > INT64_MAX)
		return -EFBIG;
	err = posix_check_io(op, n, st, POSIX_W);
	if (err < 0)
		return err;
	err = posix_use_begin(&u, op, n, O_WRONLY);
	if (err == -EACCES)
		return posix_node_closed(n, st, S_IWUSR);
	if (err < 0)
		return err;
	err = posix_cred_set(posix_fs_of(n), op);
	/* It can fail in its midst, with the size changed. */
	if (err == 0 && ftruncate(u.fd, (off_t)size) < 0)
		err = posix_not_again(-errno);
	posix_use_end(n, &u);
	return err;
}

/* Owner before mode, since a change of owner takes set-id bits away; times
 * last, since a change of size sets them: mtime to now, as asked.  Once a part
 * is done no error says "come again": a guard would meet that part. */
static int set_all(const struct vfs_op *op, struct posix_node *n,
		   const struct stat *st, const struct vfs_setattr *set)
{
	struct vfs_setattr times = { .set = set->set & SET_TIMES,
				     .atime = set->atime,
				     .mtime = set->mtime };
	bool done = false;
	int err = 0;

	if (set->set & VFS_SET_SIZE) {
		err = set_size(op, n, st, set->size);
		times.set &= ~VFS_SET_MTIME_NOW;
		done = err == 0;
	}
	if (err == 0)
		err = posix_cred_set(posix_fs_of(n), op);
	if (err == 0 && set->set & (VFS_SET_UID | VFS_SET_GID)) {
		err = set_owner(n, set);
		done |= err == 0;
	}
	if (err == 0 && set->set & VFS_SET_MODE) {
		err = set_mode(n, set->mode);
		done |= err == 0;
	}
	if (err == 0 && times.set)
		err = set_times_as(op, n, &times);
	return done ? posix_not_again(err) : err;
}

static bool guard_fits(const struct vfs_setattr *set, const struct stat *st)
{
	/* nfstime3 has 32 bits of seconds. */
	return !set->guarded ||
	       ((uint32_t)set->guard.tv_sec == (uint32_t)st->st_ctim.tv_sec &&
		set->guard.tv_nsec == st->st_ctim.tv_nsec);
}

static bool has_parts(const struct vfs_setattr *set)
{
	return !!(set->set & VFS_SET_SIZE) + !!(set->set & VFS_SET_MODE) +
	       !!(set->set & (VFS_SET_UID | VFS_SET_GID)) +
	       !!(set->set & SET_TIMES) > 1;
}

static bool frees_much(const struct vfs_setattr *set, const struct stat *st)
{
	return set->set & VFS_SET_SIZE && set->size < (uint64_t)st->st_size &&
	       (uint64_t)st->st_blocks * 512 > VFS_LONG;
}

int posix_setattr(struct vfs_op *op)
{
	struct posix_node *n = to_posix(op->node);
	const struct vfs_setattr *set = op->set;
	struct posix_change c;
	struct posix_hold hold;
	int err;

	if (!posix_may_block(op, posix_fs_of(n)))
		return -EAGAIN;
	/* A caller that must not block tries again from the start, and could
	 * meet a part that it has done.  So it does one part at a time. */
	if (op->nonblock && has_parts(set))
		return -EAGAIN;
	err = posix_begin(posix_fs_of(n), op);
	if (err < 0)
		return err;
	/* No other SETATTR comes between the guard's check and the change. */
	err = posix_hold(&hold, n, !op->nonblock);
	if (err < 0)
		return err;
	err = posix_change_begin(&c, n, op->wcc);
	if (err == 0 && op->nonblock && frees_much(set, &c.before))
		err = -EAGAIN;
	if (err == 0 && !guard_fits(set, &c.before))
		err = -EDOM;
	if (err == 0 && set->set & VFS_SET_SIZE && c.fixed)
		err = -EPERM;
	if (err == 0 && set->set)
		err = posix_sync_ready(n);
	if (err == 0)
		err = set_all(op, n, &c.before, set);
	posix_change_end(&c);
	posix_hold_end(&hold);
	if (err == 0 && set->set)
		err = posix_change_sync(&c);
	return err;
}

/*
 * The caller owns the file, by its credentials; only root can give it to
 * another user.  If that is refused, it stays the caller's, as when root is
 * squashed.
 */
static int setattr_give(struct posix_node *n, const struct vfs_cred *cred,
			const struct vfs_setattr *set, const struct stat *st)
{
	struct vfs_setattr own = { .set = set->set & (VFS_SET_UID |
						      VFS_SET_GID),
				   .uid = set->uid, .gid = set->gid };
	int err;

	if (cred->uid != 0)
		own.set &= ~VFS_SET_UID;
	if (own.set & VFS_SET_UID && own.uid == st->st_uid)
		own.set &= ~VFS_SET_UID;
	if (own.set & VFS_SET_GID && own.gid == st->st_gid)
		own.set &= ~VFS_SET_GID;
	if (!own.set)
		return 0;
	err = set_owner(n, &own);
	return err == -EPERM ? 0 : err < 0 ? err : 1;
}

/* A look-up might have made the node first, and then it is not open to
 * write. */
static int grow_new(const struct vfs_op *op, struct posix_node *n,
		    uint64_t size)
{
	struct posix_use u;
	int err;

	if (size > INT64_MAX)
		return -EFBIG;
	err = posix_use_begin(&u, op, n, O_WRONLY);
	if (err < 0)
		return err;
	err = posix_cred_set(posix_fs_of(n), op);
	if (err == 0 && ftruncate(u.fd, (off_t)size) < 0)
		err = -errno;
	posix_use_end(n, &u);
	return err;
}

static int set_new(const struct vfs_op *op, struct posix_node *n,
		   const struct vfs_setattr *set, struct stat *st,
		   bool *changed)
{
	bool grow = n->type == VFS_REG && set->set & VFS_SET_SIZE && set->size;
	int err = 0;

	if (grow)
		err = grow_new(op, n, set->size);
	if (err < 0)
		return err;
	*changed = grow;
	err = setattr_give(n, op->cred, set, st);
	*changed |= err > 0;
	/* Mode bits that the creation left out, or the change of owner took
	 * away.  The others are what a default ACL left of them. */
	if (err >= 0 && set->set & VFS_SET_MODE && n->type != VFS_LNK &&
	    (set->mode & 06000) & ~(err > 0 ? 0 : st->st_mode)) {
		err = set_mode(n, st->st_mode | (set->mode & 06000));
		*changed = true;
	}
	if (err >= 0 && set->set & SET_TIMES) {
		err = setattr_set_times(n, set);
		*changed = true;
	}
	if (err >= 0 && *changed)
		err = posix_fstat(n->fd, st);
	return MIN(err, 0);
}

int posix_setattr_new(const struct vfs_op *op, struct posix_node *n,
		      const struct vfs_setattr *set, struct stat *st,
		      bool *changed)
{
	*changed = false;
	return set->set ? set_new(op, n, set, st, changed) : 0;
}
