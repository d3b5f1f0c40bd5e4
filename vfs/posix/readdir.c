/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * readdir - READDIR and READDIRPLUS.
 *
 * A cookie is the d_off of the entry before: the file system's own position,
 * which survives changes of the directory and restarts.  The few streams
 * that a directory keeps open remember where they stopped and what they
 * read ahead; a call that goes on there needs no seek.  That also helps
 * where positions are mere counts (tmpfs before Linux 6.6): a stream that
 * goes on does not miss entries when earlier ones were removed.
 *
 * File systems whose d_off is no number below 2^63 get cookies that count
 * entries instead: COUNTED and the number of entries before.
 *
 * The cookie verifier is 0, since cookies don't expire (RFC 1813 section
 * 3.3.16).
 */
#include "vfs/posix/posix.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BUF_SIZE	32768
#define COUNTED		(1ull << 62)

struct stream {
	struct cds_list_head link;
	int	 fd;
	uint64_t cookie;		/* of the next entry's predecessor */
	uint64_t count;			/* entries before, if counted */
	long	 names;			/* and their bytes, at most */
	long	 pos, len;		/* of what is read ahead */
	unsigned filled;		/* and when: posix_node.fills */
	bool	 broken;		/* to be closed */
	bool	 whole;			/* it began at the start */
	struct posix_listing *made;	/* of what it went past, or NULL */
	char	 buf[BUF_SIZE] __attribute__((aligned(8)));
};

static void stream_close(struct posix_node *n, struct stream *s)
{
	posix_listing_drop(n, &s->made);
	close(s->fd);
	atomic_fetch_sub_explicit(&posix_fs_of(n)->cache.nfds, 1,
				  memory_order_relaxed);
	free(s);
}

void posix_streams_close(struct posix_node *n)
{
	struct stream *s, *next;

	cds_list_for_each_entry_safe(s, next, &n->streams, link)
		stream_close(n, s);
}

void posix_streams_age(struct posix_node *n)
{
	struct posix_listing *over;
	struct stream *s;

	do {
		over = NULL;
		mutex_lock(&n->lock);
		cds_list_for_each_entry(s, &n->streams, link)
			if (s->made && !posix_listing_is_young(s->made)) {
				over = s->made;
				s->made = NULL;
				break;
			}
		mutex_unlock(&n->lock);
		posix_listing_drop(n, &over);
	} while (over);
}

/* One that stopped at @cookie; else the longest unused, once there are
 * enough; else NULL.  It is the caller's until it is put back. */
static struct stream *take(struct posix_node *n, uint64_t cookie)
{
	struct stream *s, *found = NULL;

	mutex_lock(&n->lock);
	cds_list_for_each_entry(s, &n->streams, link)
		if (s->cookie == cookie && cookie != 0)
			found = s;
	if (!found && n->nstreams == POSIX_STREAMS)
		found = cds_list_first_entry(&n->streams, struct stream, link);
	if (found) {
		cds_list_del(&found->link);
		n->nstreams--;
	}
	mutex_unlock(&n->lock);
	return found;
}

/* Under the lock: the one to close now that there is @s, or NULL. */
static struct stream *superfluous(struct posix_node *n, struct stream *s)
{
	struct stream *o;

	/* A listing that began later has to see what came meanwhile: of two
	 * at one place the one that read ahead later stays. */
	cds_list_for_each_entry(o, &n->streams, link)
		if (o != s && o->cookie == s->cookie)
			return (int)(o->filled - s->filled) < 0 ? o : s;
	return n->nstreams > POSIX_STREAMS ?
	       cds_list_first_entry(&n->streams, struct stream, link) : NULL;
}

/* Does a stream at @cookie make the next listing?  Then who goes on there goes
 * on with it, and not with the last one. */
static bool is_making(struct posix_node *n, uint64_t cookie)
{
	struct stream *s;
	bool found = false;

	if (cookie == 0)
		return false;
	mutex_lock(&n->lock);
	cds_list_for_each_entry(s, &n->streams, link)
		if (s->cookie == cookie && posix_listing_is_young(s->made))
			found = true;
	mutex_unlock(&n->lock);
	return found;
}

static void give_back(struct posix_node *n, struct stream *s)
{
	struct stream *old;

	if (s->broken) {
		stream_close(n, s);
		return;
	}
	mutex_lock(&n->lock);
	cds_list_add_tail(&s->link, &n->streams);
	n->nstreams++;
	old = superfluous(n, s);
	if (old) {
		cds_list_del(&old->link);
		n->nstreams--;
	}
	mutex_unlock(&n->lock);
	if (old)
		stream_close(n, old);
}

static int stream_open(struct posix_node *n, struct stream **out)
{
	struct posix_fs *fs = posix_fs_of(n);
	struct stream *s = malloc(sizeof(*s));

	if (!s)
		return -ENOMEM;
	posix_cred_server(fs);
	posix_cache_room(&fs->cache);
	s->fd = openat(n->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->fd < 0) {
		int err = errno == EMFILE || errno == ENFILE ? -ETIMEDOUT :
			  -errno;

		free(s);
		return err;
	}
	atomic_fetch_add_explicit(&fs->cache.nfds, 1, memory_order_relaxed);
	s->cookie = 0;
	s->count = 0;
	s->names = 0;
	s->pos = s->len = 0;
	s->filled = 0;
	s->broken = s->whole = false;
	s->made = NULL;
	*out = s;
	return 0;
}

/* The next entry, not taken yet; NULL at the end (*@err 0) or on errors. */
static const struct dirent64 *peek(struct posix_node *n, struct stream *s,
				   int *err)
{
	*err = 0;
	if (s->pos == s->len) {
		s->pos = s->len = 0;
		s->filled = atomic_fetch_add(&n->fills, 1) + 1;
		s->len = syscall(SYS_getdents64, s->fd, s->buf, BUF_SIZE);
		if (s->len < 0) {
			*err = -errno;
			s->len = 0;
			s->broken = true;
		}
		if (s->len == 0)
			return NULL;
	}
	return (const void *)(s->buf + s->pos);
}

static void step(struct stream *s, const struct dirent64 *d, uint64_t cookie)
{
	s->pos += d->d_reclen;
	s->count++;
	s->names += d->d_reclen - (long)offsetof(struct dirent64, d_name);
	s->cookie = cookie;
}

static uint64_t cookie_of(const struct posix_fs *fs, const struct stream *s,
			  const struct dirent64 *d)
{
	if (fs->ordinals || d->d_off <= 0)
		return COUNTED | (s->count + 1);
	return d->d_off;
}

/* By counting: entries may have gone or come, it is as good as it gets. */
static int skip_to(struct posix_node *n, struct stream *s, uint64_t count)
{
	const struct dirent64 *d;
	int err = 0;

	while (s->count < count) {
		d = peek(n, s, &err);
		if (!d)
			break;
		step(s, d, COUNTED | (s->count + 1));
	}
	return err;
}

static int seek(struct posix_node *n, struct stream *s, uint64_t cookie)
{
	bool counted = cookie & COUNTED && posix_fs_of(n)->ordinals;

	posix_listing_drop(n, &s->made);
	s->whole = cookie == 0;
	s->pos = s->len = 0;
	s->count = 0;
	s->names = 0;
	if (lseek(s->fd, counted ? 0 : cookie, SEEK_SET) < 0) {
		s->broken = true;
		return -EBADE;
	}
	s->cookie = cookie;
	return counted ? skip_to(n, s, cookie & ~COUNTED) : 0;
}

static int get_stream(struct posix_node *n, uint64_t cookie,
		      struct stream **out)
{
	struct stream *s = take(n, cookie);
	int err = 0;

	if (!s)
		err = stream_open(n, &s);
	if (err < 0)
		return err;
	if (s->cookie != cookie || cookie == 0)
		err = seek(n, s, cookie);
	if (err < 0) {
		s->broken = true;
		give_back(n, s);
		return err;
	}
	*out = s;
	return 0;
}

struct reading {
	struct posix_node *dir;
	struct stat	 st;
	bool		 plus;
	bool		 keep;		/* names may be kept: see dentry.c */
	vfs_emit_fn	*emit;
	void		*arg;
};

/*
 * An entry whose handle is known takes one system call.  The name may be
 * another file's since a moment ago, which has another number then.
 */
static bool fill_kept(const struct reading *r, const char *name,
		      struct stat *st, struct vfs_dirent *e)
{
	struct posix_fs *fs = posix_fs_of(r->dir);

	return posix_dentry_find(fs, r->dir, &r->st, name, &e->handle) &&
	       posix_stat_name(r->dir->fd, name, st) == 0 &&
	       st->st_dev == fs->dev &&
	       st->st_ino == posix_handle_ino(&e->handle);
}

/* The directory has not changed: the name is kept for the next listing. */
static void keep(const struct reading *r, const char *name,
		 const struct vfs_dirent *e)
{
	struct stat now;

	if (r->keep && posix_fstat(r->dir->fd, &now) == 0 &&
	    posix_same_time(&now.st_ctim, &r->st.st_ctim))
		posix_dentry_keep(posix_fs_of(r->dir), r->dir, &r->st, name,
				  &e->handle);
}

static bool fill_found(const struct reading *r, const char *name,
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
	if (found && (!fs->table ||
		      posix_table_add(fs->table, &e->handle, &r->dir->handle,
				      name, S_ISDIR(st->st_mode)) == 0))
		keep(r, name, e);
	return found;
}

/* Attributes and handle of an entry, as far as the caller may see them. */
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
	e->has_attr = e->has_handle = true;
	posix_attr(fs, &st, &e->attr);
}

/* Returns false when there was no room. */
static bool emit_one(const struct reading *r, struct stream *s,
		     const struct dirent64 *d, uint64_t cookie)
{
	unsigned changes = posix_changes_awaited(d->d_ino);
	struct vfs_dirent e = {
		.fileid = d->d_ino,
		.cookie = cookie,
		.name = { d->d_name, strlen(d->d_name) },
	};

	/* What is above the root is no client's business. */
	if (r->dir == posix_fs_of(r->dir)->root && strcmp(d->d_name, "..") == 0)
		e.fileid = r->dir->ino;
	if (r->plus)
		fill_plus(r, d->d_name, &e);
	if (!r->emit(r->arg, &e))
		return false;
	posix_listing_add(r->dir, &s->made, &e, changes);
	return true;
}

static int emit_all(const struct reading *r, struct stream *s, bool *eof)
{
	struct posix_fs *fs = posix_fs_of(r->dir);
	const struct dirent64 *d;
	uint64_t cookie;
	int err;

	*eof = false;
	for (;;) {
		d = peek(r->dir, s, &err);
		if (!d)
			break;
		cookie = cookie_of(fs, s, d);
		if (unlikely(cookie & COUNTED) && !fs->ordinals &&
		    cookie != (uint64_t)d->d_off)
			fs->ordinals = true;
		if (!emit_one(r, s, d, cookie))
			return 0;
		step(s, d, cookie);
	}
	*eof = err == 0;
	if (*eof && s->whole)
		posix_listing_end(r->dir, &s->made, &(struct posix_listed){
			.entries = (long)s->count, .names = s->names });
	return err;
}

/* By a stream of the directory's. */
static int read_on(const struct vfs_ctx *ctx, const struct reading *r,
		   uint64_t cookie, bool *eof)
{
	struct stream *s;
	int err;

	err = get_stream(r->dir, cookie, &s);
	if (err < 0)
		return err;
	if (!r->plus || !posix_listing_is_young(s->made))
		posix_listing_drop(r->dir, &s->made);
	if (r->plus && cookie == 0)
		s->made = posix_listing_begin(ctx, r->dir, &r->st);
	if (r->plus)
		err = posix_cred_set(posix_fs_of(r->dir), ctx);
	if (err == 0)
		err = emit_all(r, s, eof);
	give_back(r->dir, s);
	return err;
}

static bool emit_kept(const struct reading *r, const struct vfs_dirent *kept,
		      bool holds)
{
	struct vfs_dirent e;

	if (holds)
		return r->emit(r->arg, kept);
	e = *kept;
	e.has_attr = e.has_handle = false;
	fill_plus(r, e.name.s, &e);
	return r->emit(r->arg, &e);
}

/* 0, or -ENOENT: there is no listing, or no @cookie in it. */
static int read_kept(const struct vfs_ctx *ctx, const struct reading *r,
		     uint64_t cookie, bool *eof)
{
	struct posix_listing *l;
	const struct vfs_dirent *e;
	int err = -ENOENT;
	bool holds;
	long at;

	l = posix_listing_get(ctx, r->dir, &r->st, cookie == 0);
	if (!l)
		return err;
	at = posix_listing_find(l, cookie);
	if (at >= 0)
		err = posix_cred_set(posix_fs_of(r->dir), ctx);
	if (err == 0) {
		while ((e = posix_listing_entry(l, at, &holds)) &&
		       emit_kept(r, e, holds))
			at++;
		*eof = !e;
	}
	posix_listing_put(l);
	return err;
}

int posix_readdir(const struct vfs_ctx *ctx, struct vfs_node *vdir,
		  uint64_t cookie, uint64_t *verf, bool plus,
		  vfs_emit_fn *emit, void *arg, bool *eof,
		  struct vfs_attr *attr)
{
	struct reading r = { .dir = to_posix(vdir), .plus = plus,
			     .emit = emit, .arg = arg };
	int err;

	if (r.dir->type != VFS_DIR)
		return -ENOTDIR;
	if (ctx->nonblock)
		return -EAGAIN;
	if (cookie > INT64_MAX)
		return -EBADE;
	err = posix_stat(r.dir, &r.st);
	if (err == 0)
		err = posix_check_io(ctx, r.dir, &r.st, POSIX_R);
	if (err < 0)
		return err;
	r.keep = posix_settled(&r.st);
	err = -ENOENT;
	if (plus && !is_making(r.dir, cookie))
		err = read_kept(ctx, &r, cookie, eof);
	if (err == -ENOENT)
		err = read_on(ctx, &r, cookie, eof);
	*verf = 0;
	if (attr)
		posix_attr(posix_fs_of(r.dir), &r.st, attr);
	return err;
}
