/* SPDX-License-Identifier: BSD-2-Clause */
/* file - READ, WRITE, COMMIT, READLINK. */
#include "vfs/posix/change.h"
#include "vfs/posix/node.h"
#include "vfs/posix/opened.h"
#include "vfs/posix/ops.h"

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

static int open_to_read(const struct vfs_op *op, struct posix_node *n,
			struct posix_use *u)
{
	struct stat st;
	int err;

	u->fd = atomic_load_explicit(&n->rd_fd, memory_order_acquire);
	u->opened = NULL;
	if (likely(u->fd >= 0))
		return 0;
	if (!posix_may_block(op, posix_fs_of(n)))
		return -EAGAIN;
	err = check_read(op, n, &st);
	if (err < 0)
		return err;
	err = posix_use_begin(u, op, n, O_RDONLY);
	return err == -EACCES ? posix_node_closed(n, &st, S_IRUSR) : err;
}

/* With op->nonblock, without waiting for storage: -EAGAIN when not all of it
 * was in memory. */
static int64_t read_some(const struct vfs_op *op, struct posix_fs *fs,
			 int fd, struct cursor *c)
{
	int64_t got;

	if (posix_may_block(op, fs))
		return move_all(fd, c, 0, preadv2);
	if (atomic_load_explicit(&fs->no_nowait_read, memory_order_relaxed))
		return -EAGAIN;
	got = move_all(fd, c, RWF_NOWAIT, preadv2);
	if (got == -EOPNOTSUPP) {
		atomic_store(&fs->no_nowait_read, true);
		return -EAGAIN;
	}
	return got;
}

static int read_checked(struct vfs_op *op, struct posix_node *n, int fd)
{
	struct posix_fs *fs = posix_fs_of(n);
	uint64_t off = op->read.off;
	struct cursor c;
	struct stat st;
	int64_t more, got = 0;
	bool again = false;
	int err;

	cursor_init(&c, op->read.iov, op->read.niov,
		    MIN(off, (uint64_t)INT64_MAX));
	if (off >= INT64_MAX)
		c.left = 0;
	do {
		more = read_some(op, fs, fd, &c);
		if (more < 0)
			return (int)more;
		got += more;
		/* Check access against the attributes read last, before the
		 * data leaves. */
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

int posix_read(struct vfs_op *op)
{
	struct posix_node *n = to_posix(op->node);
	struct posix_fs *fs = posix_fs_of(n);
	struct posix_use u;
	int err = only_file(n);

	if (err == 0)
		err = posix_begin(fs, op);
	if (err == 0)
		err = open_to_read(op, n, &u);
	if (err < 0)
		return err;
	if (op->nonblock && !fs->ram && posix_atime_due(n))
		err = -EAGAIN;
	else
		err = read_checked(op, n, u.fd);
	posix_use_end(n, &u);
	return err;
}

/* A splice can wait for the disk.  To copy less than this, if the page cache
 * has it, costs less than the way to a worker. */
#define WORTH_A_WORKER	(128u << 10)

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

static int splice_checked(struct vfs_op *op, struct posix_node *n, int fd)
{
	struct posix_fs *fs = posix_fs_of(n);
	int64_t got = splice_all(fd, op->read.off, op->read.count,
				 op->read.pipe);
	struct stat st;
	int err;

	if (got == -EINVAL) {
		atomic_store(&fs->no_splice, true);
		return -EOPNOTSUPP;
	}
	if (got < 0)
		return (int)got;
	/* As in read_checked(). */
	err = check_read(op, n, &st);
	if (err < 0)
		return err;
	op->eof = op->read.off + (uint64_t)got >= (uint64_t)st.st_size;
	if (got == 0 && !op->eof)		/* it has grown since */
		return -EOPNOTSUPP;
	if (op->attr)
		posix_attr(fs, &st, op->attr);
	return (int)got;
}

int posix_read_pipe(struct vfs_op *op)
{
	struct posix_node *n = to_posix(op->node);
	struct posix_fs *fs = posix_fs_of(n);
	struct posix_use u;
	int err = only_file(n);

	if (err < 0)
		return err;
	if (atomic_load_explicit(&fs->no_splice, memory_order_relaxed) ||
	    op->read.off > (uint64_t)INT64_MAX - op->read.count)
		return -EOPNOTSUPP;
	if (!posix_may_block(op, fs))
		return op->read.count < WORTH_A_WORKER ? -EOPNOTSUPP : -EAGAIN;
	err = posix_begin(fs, op);
	if (err == 0)
		err = open_to_read(op, n, &u);
	if (err < 0)
		return err;
	err = splice_checked(op, n, u.fd);
	posix_use_end(n, &u);
	return err;
}

static int open_to_write(const struct vfs_op *op, struct posix_node *n,
			 struct posix_use *u)
{
	u->fd = atomic_load_explicit(&n->wr_fd, memory_order_acquire);
	u->opened = NULL;
	if (likely(u->fd >= 0))
		return 0;
	return posix_may_block(op, posix_fs_of(n)) ?
	       posix_use_begin(u, op, n, O_WRONLY) : -EAGAIN;
}

/*
 * True if the data has to be synced before the answer: then all of the file is,
 * which counts as FILE_SYNC.  Memory counts as stable, so the client need not
 * keep the data for a COMMIT.
 */
static bool must_sync(const struct posix_fs *fs, struct vfs_op *op)
{
	bool sync = !fs->ram && op->write.stable != VFS_UNSTABLE;

	if (fs->ram || sync)
		op->write.stable = VFS_FILE_SYNC;
	return sync;
}

/* Finds a descriptor to write by; on a poller, without waiting. */
static bool may_write(const struct vfs_op *op, const struct posix_fs *fs)
{
	return posix_may_block(op, fs) ||
	       !atomic_load_explicit(&fs->no_nowait_write,
				     memory_order_relaxed);
}

/* By @fd, through which the caller is allowed to write. */
static int64_t write_by(struct vfs_op *op, struct posix_node *n, int fd,
			struct cursor *c)
{
	struct posix_fs *fs = posix_fs_of(n);
	bool sync = must_sync(fs, op);
	int nowait = posix_may_block(op, fs) ? 0 : RWF_NOWAIT;
	struct posix_mark mark;
	int64_t done;
	int err;

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
	/* Also after a partial write: this data, or older data, might be lost,
	 * and no later sync would report it. */
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

static int64_t write_checked(struct vfs_op *op, struct posix_node *n,
			     struct cursor *c, const struct stat *before)
{
	struct posix_use u;
	int64_t done;
	int err;

	/* A sync waits. */
	if (op->write.stable != VFS_UNSTABLE &&
	    !posix_may_block(op, posix_fs_of(n)))
		return -EAGAIN;
	err = posix_check_io(op, n, before, POSIX_W);
	if (err < 0)
		return err;
	err = open_to_write(op, n, &u);
	if (err == -EACCES)
		return posix_node_closed(n, before, S_IWUSR);
	if (err < 0)
		return err;
	done = write_by(op, n, u.fd, c);
	posix_use_end(n, &u);
	return done;
}

int posix_write(struct vfs_op *op)
{
	struct posix_node *n = to_posix(op->node);
	struct posix_change change;
	struct cursor c;
	int64_t done;

	if (!may_write(op, posix_fs_of(n)))
		return -EAGAIN;
	done = posix_begin(posix_fs_of(n), op);
	if (done < 0)
		return (int)done;
	cursor_init(&c, op->write.iov, op->write.niov, op->write.off);
	done = posix_change_begin(&change, n, op->wcc);
	if (done == 0)
		done = only_file(n);
	if (done == 0 && change.fixed)
		done = -EPERM;
	if (done == 0 && (op->write.off > INT64_MAX ||
			  c.left > INT64_MAX - op->write.off))
		done = -EFBIG;
	if (done == 0)
		done = write_checked(op, n, &c, &change.before);
	posix_change_end(&change);
	return (int)done;
}

/* Where only an open shows the rights, a caller may commit a file that it may
 * write.  The owner always may: it can have written by a descriptor that is
 * closed by now. */
static int may_commit(const struct vfs_op *op, struct posix_node *n,
		      const struct stat *st)
{
	struct posix_use u;
	int err;

	if (!posix_fs_of(n)->as_caller)
		return 0;
	err = posix_check_io(op, n, st, POSIX_W);
	if (err < 0)
		return err;
	err = posix_use_begin(&u, op, n, O_WRONLY);
	if (err == 0)
		posix_use_end(n, &u);
	if ((err == -EACCES || err == -EPERM) && op->cred->uid != st->st_uid)
		return -EACCES;
	return 0;
}

int posix_commit(struct vfs_op *op)
{
	struct posix_node *n = to_posix(op->node);
	struct posix_fs *fs = posix_fs_of(n);
	struct posix_change c;
	int err;

	err = posix_may_block(op, fs) ? posix_begin(fs, op) : -EAGAIN;
	if (err < 0)
		return err;
	err = posix_change_begin(&c, n, op->wcc);
	if (err == 0)
		err = only_file(n);
	if (err == 0)
		err = may_commit(op, n, &c.before);
	/* Also times: by them other clients know that data changed. */
	if (err == 0)
		err = posix_node_flush(n, NULL);
	posix_change_end(&c);
	return err;
}

/* The link's text now, to be freed. */
static int get_text_now(struct posix_node *n, struct posix_text **out)
{
	struct posix_text *text;
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
	*out = text;
	return 0;
}

/* The link's text, read once and kept for all callers. */
static int get_text(struct posix_node *n, struct posix_text **out)
{
	struct posix_text *other = NULL;
	int err = get_text_now(n, out);

	if (err == 0 && !atomic_compare_exchange_strong(&n->text, &other,
							*out)) {
		free(*out);
		*out = other;
	}
	return err;
}

static int give_text(const struct vfs_op *op, const struct posix_text *text)
{
	uint32_t len = MIN(op->readlink.size, text->len);

	memcpy(op->readlink.text, text->s, len);
	return (int)len;
}

int posix_readlink(struct vfs_op *op)
{
	struct posix_node *n = to_posix(op->node);
	struct posix_fs *fs = posix_fs_of(n);
	struct posix_text *text = atomic_load(&n->text), *own = NULL;
	struct stat st;
	int err;

	if (n->type != VFS_LNK)
		return -EINVAL;
	err = posix_begin(fs, op);
	if (err == 0 && !text) {
		if (!posix_may_block(op, fs))
			return -EAGAIN;
		err = fs->as_caller ? get_text_now(n, &own) :
				      get_text(n, &text);
	}
	if (err == 0)
		err = posix_stat(n, &st);
	if (err == 0 && op->attr)
		posix_attr(fs, &st, op->attr);
	if (err == 0)
		err = give_text(op, own ? own : text);
	free(own);
	return err;
}
