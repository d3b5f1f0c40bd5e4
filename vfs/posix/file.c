/* SPDX-License-Identifier: BSD-2-Clause */
/* file - READ, WRITE, COMMIT, READLINK. */
#include "vfs/posix/change.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* For operations on a regular file. */
static int only_file(const struct posix_node *n)
{
	if (likely(n->type == VFS_REG))
		return 0;
	return n->type == VFS_DIR ? -EISDIR : -EINVAL;
}

/* Where in an iovec the next byte goes. */
struct cursor {
	const struct iovec *iov;
	int	 niov;
	size_t	 skip;			/* done of iov[0] */
	uint64_t left;
	off_t	 off;
	int	 err;			/* -errno that ended it, or 0 */
};

static void cursor_init(struct cursor *c, const struct iovec *iov, int niov,
			uint64_t off)
{
	*c = (struct cursor){ .iov = iov, .niov = niov, .off = off };
	for (int i = 0; i < niov; i++)
		c->left += iov[i].iov_len;
}

static void cursor_step(struct cursor *c, size_t n)
{
	c->left -= n;
	c->off += n;
	n += c->skip;
	while (c->niov > 0 && n >= c->iov->iov_len) {
		n -= c->iov->iov_len;
		c->iov++;
		c->niov--;
	}
	c->skip = n;
}

/* The iovecs of one system call: the rest of a piece, or many whole ones. */
static const struct iovec *cursor_front(const struct cursor *c,
					struct iovec *rest, int *niov)
{
	if (c->skip == 0) {
		*niov = MIN(c->niov, IOV_MAX);
		return c->iov;
	}
	rest->iov_base = (char *)c->iov->iov_base + c->skip;
	rest->iov_len = c->iov->iov_len - c->skip;
	*niov = 1;
	return rest;
}

/* By preadv2() or pwritev2().  Returns how much was moved; of a read, to the
 * end of the file at most. */
static int64_t move_all(int fd, struct cursor *c, int flags,
			ssize_t (*move)(int, const struct iovec *, int,
					off_t, int))
{
	const struct iovec *iov;
	struct iovec rest;
	int64_t total = 0;
	ssize_t n;
	int niov;

	while (c->left > 0) {
		iov = cursor_front(c, &rest, &niov);
		n = move(fd, iov, niov, c->off, flags);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			c->err = -errno;
		if (n < 0)
			return total ? total : c->err;
		if (n == 0)
			break;
		total += n;
		cursor_step(c, n);
	}
	return total;
}

static int check_read(const struct vfs_op *op, struct posix_node *n,
		      struct stat *st)
{
	int err = posix_stat(n, st);

	return err < 0 ? err : posix_check_io(op, n, st, POSIX_R);
}

static int open_to_read(const struct vfs_op *op, struct posix_node *n)
{
	int fd = atomic_load_explicit(&n->rd_fd, memory_order_acquire);
	struct stat st;
	int err;

	if (likely(fd >= 0))
		return fd;
	if (!posix_may_block(op, posix_fs_of(n)))
		return -EAGAIN;
	err = check_read(op, n, &st);
	if (err < 0)
		return err;
	fd = posix_node_rd(n);
	return fd == -EACCES ? posix_node_closed(n, &st, S_IRUSR) : fd;
}

/* Without waiting for storage: -EAGAIN when not all of it was in memory. */
static int64_t read_cached(struct posix_fs *fs, int fd, struct cursor *c)
{
	int64_t got;

	if (atomic_load_explicit(&fs->no_nowait_read, memory_order_relaxed))
		return -EAGAIN;
	got = move_all(fd, c, RWF_NOWAIT, preadv2);
	if (got == -EOPNOTSUPP) {
		atomic_store(&fs->no_nowait_read, true);
		return -EAGAIN;
	}
	return got;
}

static int64_t read_some(const struct vfs_op *op, struct posix_fs *fs,
			 int fd, struct cursor *c)
{
	return op->nonblock && !fs->ram ? read_cached(fs, fd, c) :
					   move_all(fd, c, 0, preadv2);
}

int posix_read(struct vfs_op *op)
{
	struct posix_node *n = to_posix(op->node);
	struct posix_fs *fs = posix_fs_of(n);
	uint64_t off = op->off;
	struct cursor c;
	struct stat st;
	int64_t more, got = only_file(n);
	bool again = false;
	int fd, err;

	if (got < 0)
		return (int)got;
	fd = open_to_read(op, n);
	if (fd < 0)
		return fd;
	if (op->nonblock && !fs->ram && (fs->remote || posix_atime_due(n)))
		return -EAGAIN;
	cursor_init(&c, op->iov, op->niov, MIN(off, (uint64_t)INT64_MAX));
	if (off >= INT64_MAX)
		c.left = 0;
	do {
		more = read_some(op, fs, fd, &c);
		if (more < 0)
			return (int)more;
		got += more;
		/* Checked with the attributes of after, before anyone sees the
		 * data. */
		err = check_read(op, n, &st);
		if (err < 0)
			return err;
		op->eof = off + got >= (uint64_t)st.st_size || off >= INT64_MAX;
		if (c.left > 0 && !op->eof && op->nonblock)
			return -EAGAIN;	/* the rest is not in memory */
		/* It has grown since its end was found.  Just once: not all
		 * file systems have as many bytes as they say. */
		again = !again && c.left > 0 && !op->eof && !c.err;
	} while (again);
	if (op->attr)
		posix_attr(fs, &st, op->attr);
	return (int)got;
}

/* Returns how much went into the pipe, or -errno. */
static int64_t splice_all(int fd, uint64_t off, uint32_t len, int pipe)
{
	loff_t at = (loff_t)off;
	uint32_t left = len;
	ssize_t n = 1;

	while (left > 0 && n > 0) {
		n = splice(fd, &at, pipe, NULL, left, SPLICE_F_NONBLOCK);
		if (n > 0)
			left -= (uint32_t)n;
		else if (n < 0 && errno == EINTR)
			n = 1;
	}
	return n < 0 && left == len ? -errno : (int64_t)(len - left);
}

int posix_read_pipe(struct vfs_op *op)
{
	struct posix_node *n = to_posix(op->node);
	struct posix_fs *fs = posix_fs_of(n);
	struct stat st;
	int64_t got = only_file(n);
	int fd, err;

	if (got < 0)
		return (int)got;
	if (atomic_load_explicit(&fs->no_splice, memory_order_relaxed) ||
	    op->off > (uint64_t)INT64_MAX - op->count)
		return -EOPNOTSUPP;
	if (!posix_may_block(op, fs))
		return -EAGAIN;
	fd = open_to_read(op, n);
	if (fd < 0)
		return fd;
	got = splice_all(fd, op->off, op->count, op->pipe);
	if (got == -EINVAL) {
		atomic_store(&fs->no_splice, true);
		return -EOPNOTSUPP;
	}
	if (got < 0)
		return (int)got;
	/* As in posix_read(). */
	err = check_read(op, n, &st);
	if (err < 0)
		return err;
	op->eof = op->off + (uint64_t)got >= (uint64_t)st.st_size;
	if (got == 0 && !op->eof)		/* it has grown since */
		return -EOPNOTSUPP;
	if (op->attr)
		posix_attr(fs, &st, op->attr);
	return (int)got;
}

static int open_to_write(const struct vfs_op *op, struct posix_node *n)
{
	int fd = atomic_load_explicit(&n->wr_fd, memory_order_acquire);

	if (likely(fd >= 0))
		return fd;
	return posix_may_block(op, posix_fs_of(n)) ? posix_node_wr(n) :
	       -EAGAIN;
}

/*
 * True if the data has to be synced before the answer: then all of the file is,
 * which counts as FILE_SYNC.  Memory counts as stable, so the client need not
 * keep the data for a COMMIT.
 */
static bool must_sync(const struct posix_fs *fs, struct vfs_op *op)
{
	bool sync = !fs->ram && op->stable != VFS_UNSTABLE;

	if (fs->ram || sync)
		op->stable = VFS_FILE_SYNC;
	return sync;
}

/* Finds a descriptor to write by; on a poller, without waiting. */
static bool may_write(const struct vfs_op *op, const struct posix_fs *fs)
{
	return posix_may_block(op, fs) ||
	       !(fs->remote ||
		 atomic_load_explicit(&fs->no_nowait_write,
				      memory_order_relaxed));
}

static int nowait_flag(const struct vfs_op *op, struct posix_fs *fs,
		       bool sync)
{
	if (posix_may_block(op, fs))
		return 0;
	return sync ? -EAGAIN : RWF_NOWAIT;
}

static int64_t write_checked(struct vfs_op *op, struct posix_node *n,
			     struct cursor *c, const struct stat *before)
{
	struct posix_fs *fs = posix_fs_of(n);
	bool sync = must_sync(fs, op);
	int nowait = nowait_flag(op, fs, sync);
	struct posix_mark mark;
	int64_t done;
	int fd, err;

	if (nowait < 0)
		return nowait;
	err = posix_check_io(op, n, before, POSIX_W);
	if (err < 0)
		return err;
	fd = open_to_write(op, n);
	if (fd == -EACCES)
		return posix_node_closed(n, before, S_IWUSR);
	if (fd < 0)
		return fd;
	/* As the caller: quotas, and set-id bits that a write takes away. */
	err = posix_cred_set(fs, op);
	if (err < 0)
		return err;
	mark = posix_node_mark(n);
	done = move_all(fd, c, nowait, pwritev2);
	/* After the data went in: a sync takes the mark away before it starts,
	 * and must not take it from data that it does not cover. */
	if (!fs->ram)
		atomic_store(&n->dirty, true);
	/* Also after some of it: that is lost, perhaps, or older data, and no
	 * sync from now on is told. */
	if (unlikely(c->err))
		err = posix_write_failed(n, fd, c->err);
	if (err < 0)
		return err;
	if (done == -EOPNOTSUPP && nowait) {
		atomic_store(&fs->no_nowait_write, true);
		return -EAGAIN;
	}
	if (sync && done > 0)
		err = posix_node_flush(n, &mark);
	return err < 0 ? err : done;
}

int posix_write(struct vfs_op *op)
{
	struct posix_node *n = to_posix(op->node);
	struct posix_change change;
	struct cursor c;
	int64_t done;

	if (!may_write(op, posix_fs_of(n)))
		return -EAGAIN;
	cursor_init(&c, op->iov, op->niov, op->off);
	done = posix_change_begin(&change, n, op->wcc);
	if (done == 0)
		done = only_file(n);
	if (done == 0 && change.fixed)
		done = -EPERM;
	if (done == 0 && (op->off > INT64_MAX || c.left > INT64_MAX - op->off))
		done = -EFBIG;
	if (done == 0)
		done = write_checked(op, n, &c, &change.before);
	posix_change_end(&change);
	return (int)done;
}

int posix_commit(struct vfs_op *op)
{
	struct posix_node *n = to_posix(op->node);
	struct posix_fs *fs = posix_fs_of(n);
	struct posix_change c;
	int err;

	if (!posix_may_block(op, fs))
		return -EAGAIN;
	err = posix_change_begin(&c, n, op->wcc);
	if (err == 0)
		err = only_file(n);
	/* Times, too: other clients know by them that data changed. */
	if (err == 0)
		err = posix_node_flush(n, NULL);
	posix_change_end(&c);
	return err;
}

/* The link's text, read once. */
static int get_text(struct posix_node *n, struct posix_text **out)
{
	struct posix_text *text, *other = NULL;
	char s[VFS_PATH_MAX + 1];
	ssize_t len = readlinkat(n->fd, "", s, sizeof(s));

	if (len < 0)
		return -errno;
	if (len > VFS_PATH_MAX)
		return -ENAMETOOLONG;
	text = malloc(sizeof(*text) + (size_t)len);
	if (!text)
		return -ENOMEM;
	text->len = (uint32_t)len;
	memcpy(text->s, s, (size_t)len);
	if (!atomic_compare_exchange_strong(&n->text, &other, text)) {
		free(text);
		text = other;
	}
	*out = text;
	return 0;
}

int posix_readlink(struct vfs_op *op)
{
	struct posix_node *n = to_posix(op->node);
	struct posix_text *text = atomic_load(&n->text);
	struct stat st;
	uint32_t len;
	int err = 0;

	if (n->type != VFS_LNK)
		return -EINVAL;
	if (op->nonblock && posix_fs_of(n)->remote)
		return -EAGAIN;
	if (!text) {
		if (!posix_may_block(op, posix_fs_of(n)))
			return -EAGAIN;
		err = get_text(n, &text);
	}
	if (err == 0)
		err = posix_stat(n, &st);
	if (err < 0)
		return err;
	if (op->attr)
		posix_attr(posix_fs_of(n), &st, op->attr);
	len = MIN(op->size, text->len);
	memcpy(op->text, text->s, len);
	return (int)len;
}
