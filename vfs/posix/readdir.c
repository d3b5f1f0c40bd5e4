/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * readdir - READDIR and READDIRPLUS.
 *
 * A cookie is the d_off of the entry before: the file system's own position,
 * which survives changes of the directory and restarts.  Each call opens the
 * directory, seeks there and reads on, as the kernel's server does.  Nothing is
 * carried from one call to the next: neither entries that were read ahead,
 * which can be older than the listing that asks, nor an open file, through
 * which some file systems (btrfs, overlayfs) show the directory as of when it
 * was opened.
 *
 * File systems whose d_off is no number below 2^63 get cookies that count
 * entries instead: COUNTED and the number of entries before.
 *
 * The cookie verifier is 0, since cookies don't expire (RFC 1813 section
 * 3.3.16).
 *
 * READDIRPLUS asks for each entry's attributes in any case, and by name, in one
 * system call.  They belong to the same file as the handle: either the name
 * can't have changed its meaning, or both come from one open file.
 */
#include "vfs/posix/cache.h"
#include "vfs/posix/handle.h"
#include "vfs/posix/node.h"
#include "vfs/posix/ops.h"
#include "vfs/posix/own.h"
#include "vfs/posix/table/places.h"

#include <dirent.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BUF_SIZE	32768
/* At a time: entries read beyond the call's last one are lost. */
#define READ_SIZE	4096
#define COUNTED		(1ull << 62)

/* One call's way through the directory. */
struct stream {
	int	 fd;
	uint64_t count;			/* entries before, if counted */
	long	 size;			/* of buf: how much to read at a time */
	long	 pos, len;		/* of the data read */
	char	 buf[BUF_SIZE] __attribute__((aligned(8)));
};

/* The next entry, not taken yet; NULL at the end (*@err 0) or on errors. */
static const struct dirent64 *peek(struct stream *s, int *err)
{
	*err = 0;
	if (s->pos == s->len) {
		s->pos = 0;
		s->len = syscall(SYS_getdents64, s->fd, s->buf, s->size);
		if (s->len < 0) {
			*err = -errno;
			s->len = 0;
		}
		if (s->len == 0)
			return NULL;
	}
	return (const void *)(s->buf + s->pos);
}

static void step(struct stream *s, const struct dirent64 *d)
{
	s->pos += d->d_reclen;
	s->count++;
}

static uint64_t cookie_of(struct posix_fs *fs, const struct stream *s,
			  const struct dirent64 *d)
{
	if (unlikely(fs->ordinals || d->d_off <= 0)) {
		fs->ordinals = true;
		return COUNTED | (s->count + 1);
	}
	return d->d_off;
}

/* By counting.  This is not exact if entries have come or gone, but such file
 * systems offer nothing better. */
static int skip_to(struct stream *s, uint64_t count)
{
	const struct dirent64 *d;
	int err = 0;

	s->size = BUF_SIZE;
	while (s->count < count) {
		d = peek(s, &err);
		if (!d)
			break;
		step(s, d);
	}
	return err;
}

static int seek(const struct posix_fs *fs, struct stream *s, uint64_t cookie)
{
	if (cookie & COUNTED && fs->ordinals)
		return skip_to(s, cookie & ~COUNTED);
	return cookie && lseek(s->fd, cookie, SEEK_SET) < 0 ? -EBADE : 0;
}

struct reading {
	struct vfs_op	*op;
	struct posix_node *dir;
	struct stat	 st;		/* read before the first entry */
	bool		 settled;	/* later changes show in its ctime */
};

/* True if no name of the directory was changed since @r->st. */
static bool is_unchanged(const struct reading *r)
{
	struct stat now;

	return r->settled && posix_fstat(r->dir->fd, &now) == 0 &&
	       posix_same_time(&now.st_ctim, &r->st.st_ctim);
}

/*
 * An entry whose handle is known takes one system call.  If the name was given
 * to another file since @r->st, that has another number, or it is so new that
 * it could get the number of the file that the handle names, which is gone.
 */
static bool fill_kept(const struct reading *r, const char *name,
		      struct stat *st, struct vfs_dirent *e)
{
	struct posix_fs *fs = posix_fs_of(r->dir);
	struct timespec born;

	return posix_dentry_find(fs, r->dir, &r->st, name, &e->handle) &&
	       posix_stat_name(r->dir, name, st, &born) == 0 &&
	       st->st_dev == fs->dev &&
	       st->st_ino == posix_handle_ino(&e->handle) &&
	       !posix_is_later(&born, &r->st.st_ctim);
}

/* In a directory that does not change meanwhile, name by name. */
static bool fill_named(const struct reading *r, const char *name,
		       struct stat *st, struct vfs_dirent *e)
{
	struct posix_fs *fs = posix_fs_of(r->dir);

	return r->settled && fs->kernel_ids &&
	       posix_stat_name(r->dir, name, st, NULL) == 0 &&
	       st->st_dev == fs->dev &&
	       posix_handle_of_name(fs, r->dir->fd, name, st,
				    &e->handle) == 0 &&
	       is_unchanged(r);
}

static bool fill_opened(const struct reading *r, const char *name,
			struct stat *st, struct vfs_dirent *e)
{
	struct posix_fs *fs = posix_fs_of(r->dir);
	int fd = posix_open_name(fs, r->dir->fd, name, false);
	bool found;

	if (fd < 0)
		return false;
	found = posix_fstat(fd, st) == 0 &&
		(st->st_dev == fs->dev || !S_ISDIR(st->st_mode)) &&
		posix_handle_make(fs, fd, st, &e->handle) == 0;
	close(fd);
	return found;
}

static bool fill_found(const struct reading *r, const char *name,
		       struct stat *st, struct vfs_dirent *e)
{
	struct posix_fs *fs = posix_fs_of(r->dir);
	bool keep = fill_named(r, name, st, e);

	if (!keep) {
		if (!fill_opened(r, name, st, e))
			return false;
		keep = is_unchanged(r);
	}
	if (fs->table && posix_record(fs, &e->handle, r->dir, name,
				      S_ISDIR(st->st_mode)) < 0)
		keep = false;
	if (keep)
		posix_dentry_keep(fs, r->dir, &r->st, name, &e->handle);
	return true;
}

/* Attributes and handle of an entry, if the caller may see them. */
static void fill_plus(const struct reading *r, const char *name,
		      struct vfs_dirent *e)
{
	struct posix_fs *fs = posix_fs_of(r->dir);
	struct stat st = r->st;

	if (strcmp(name, ".") == 0 ||
	    (strcmp(name, "..") == 0 && r->dir == fs->root))
		e->handle = r->dir->handle;
	else if (strcmp(name, "..") == 0 ||
		 (!fill_kept(r, name, &st, e) && !fill_found(r, name, &st, e)))
		return;
	if (posix_own_name(r->dir, name, e->name.len, false) < 0 ||
	    posix_own_is(fs->dev, &st, true))
		return;
	e->has_attr = e->has_handle = true;
	e->fileid = st.st_ino;
	posix_attr(fs, &st, &e->attr);
}

/* Returns false if it did not fit. */
static bool emit_one(const struct reading *r, const struct dirent64 *d,
		     uint64_t cookie)
{
	struct vfs_dirent e = {
		.fileid = d->d_ino,
		.cookie = cookie,
		.name = { d->d_name, strlen(d->d_name) },
	};

	/* Clients must not see the directory above the root. */
	if (r->dir == posix_fs_of(r->dir)->root && strcmp(d->d_name, "..") == 0)
		e.fileid = r->dir->ino;
	/* A longer name is left out, and would be cut in the table. */
	if (r->op->readdir.plus && e.name.len <= VFS_NAME_MAX)
		fill_plus(r, d->d_name, &e);
	return r->op->readdir.emit(r->op->readdir.arg, &e);
}

static int emit_all(const struct reading *r, struct stream *s)
{
	struct posix_fs *fs = posix_fs_of(r->dir);
	const struct dirent64 *d;
	int err;

	r->op->eof = false;
	while ((d = peek(s, &err))) {
		if (!emit_one(r, d, cookie_of(fs, s, d)))
			return 0;
		step(s, d);
	}
	r->op->eof = err == 0;
	return err;
}

static int dir_read_all(const struct reading *r)
{
	struct posix_fs *fs = posix_fs_of(r->dir);
	struct stream s;
	int err;

	s.fd = posix_open_dir(r->dir);
	if (s.fd < 0)
		return s.fd;
	s.count = 0;
	s.size = READ_SIZE;
	s.pos = s.len = 0;
	err = seek(fs, &s, r->op->readdir.cookie);
	if (err == 0 && r->op->readdir.plus)
		err = posix_cred_set(fs, r->op);
	if (err == 0)
		err = emit_all(r, &s);
	close(s.fd);
	return err;
}

int posix_readdir(struct vfs_op *op)
{
	struct reading r = { .op = op, .dir = to_posix(op->node) };
	int err;

	if (r.dir->type != VFS_DIR)
		return -ENOTDIR;
	if (op->nonblock)
		return -EAGAIN;
	if (op->readdir.cookie > INT64_MAX)
		return -EBADE;
	err = posix_begin(posix_fs_of(r.dir), op);
	if (err == 0)
		err = posix_stat(r.dir, &r.st);
	if (err == 0)
		err = posix_check_io(op, r.dir, &r.st, POSIX_R);
	if (err < 0)
		return err;
	r.settled = posix_settled(&r.st);
	err = dir_read_all(&r);
	op->readdir.verf = 0;
	if (op->attr)
		posix_attr(posix_fs_of(r.dir), &r.st, op->attr);
	return err;
}
