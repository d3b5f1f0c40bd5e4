/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cp_put - cp to a server.
 *
 * Local names may change meanwhile: each is opened in its directory's
 * descriptor, and not through a link.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/nfs/cp.h"

/* Directories in one another; each has a descriptor. */
enum { LEVELS_MAX = 256 };

static const char no_copy[] = "it is no file, directory or link";
static const char incomplete[] = "there is no complete copy of it";

/* A local object, by its directory. */
struct here {
	const struct here *up;
	int		 dir;
	const char	*name;
	unsigned	 depth;
};

static void put_here(FILE *f, const struct here *h)
{
	if (h->up) {
		put_here(f, h->up);
		putc('/', f);
	}
	tool_put_name(f, h->name);
}

static int complain_here(const struct here *h, int err, uint32_t status)
{
	fputs("gannet-nfs: ", stderr);
	put_here(stderr, h);
	return tool_reason(err, status);
}

static int leave_out_here(const struct here *h, const char *why)
{
	fputs("gannet-nfs: ", stderr);
	put_here(stderr, h);
	fprintf(stderr, ": left out: %s\n", why);
	return TOOL_FAILED;
}

/* The mode and the time of the last change. */
static int copy_attributes(struct tool *t, const struct here *h,
			   const struct nfs3_fh *fh, const struct stat *st)
{
	struct nfsc_op op = {
		.kind = NFS_OP_SET, .fh = *fh, .mode = st->st_mode & 0777,
		.mtime = { (uint32_t)st->st_mtim.tv_sec,
			   (uint32_t)st->st_mtim.tv_nsec },
	};

	op.no_mtime = st->st_mtim.tv_sec < 0 ||
		      st->st_mtim.tv_sec > UINT32_MAX;
	if (session_do(t->s, &op) < 0 || op.status != 0)
		return complain_here(h, op.err, op.status);
	if (op.no_mtime) {
		fputs("gannet-nfs: ", stderr);
		put_here(stderr, h);
		fputs(": its time of the last change is before 1970 or after "
		      "2106, and not kept\n", stderr);
		return TOOL_FAILED;
	}
	return TOOL_OK;
}

static bool is_sent(const struct tool *t, const struct tool_object *at,
		    const struct cp_file *source)
{
	struct cp_file copy;

	if (!t->o->resume || at->fh.len == 0)
		return false;
	cp_file_there(&at->attr, &copy);
	return cp_is_done(source, &copy, t->o->preserve);
}

static bool has_changed(int fd, const struct stat *was)
{
	struct stat is;

	return fstat(fd, &is) < 0 || is.st_size != was->st_size ||
	       is.st_mtim.tv_sec != was->st_mtim.tv_sec ||
	       is.st_mtim.tv_nsec != was->st_mtim.tv_nsec;
}

/* All is written.  A source that changed gives its copy the time that it had
 * itself: --continue finds that this one is old. */
static int end_sent_file(struct tool *t, const struct here *h, int fd,
			 const struct tool_object *made,
			 const struct stat *st)
{
	bool changed = has_changed(fd, st);
	struct stat as = *st;
	int err = TOOL_OK;

	if (!t->o->preserve)
		as.st_mode = made->attr.attr.mode;
	if (t->o->preserve || changed)
		err = copy_attributes(t, h, &made->fh, &as);
	if (err != TOOL_OK || !changed)
		return err;
	fputs("gannet-nfs: ", stderr);
	put_here(stderr, h);
	fprintf(stderr, ": %s\n", cp_changed);
	return TOOL_FAILED;
}

/* Writes the file aside, and gives it the name that @at has. */
static int send_data(struct tool *t, const struct here *h, int fd,
		     const struct tool_object *at, const struct stat *st)
{
	bool kept = at->fh.len > 0 && !t->o->preserve;
	struct tool_object made;
	char aside[ASIDE_NAME];
	struct cp_file source;
	int err;

	cp_file_here(st, &source);
	cp_aside_name(&source, at->name, aside);
	err = there_make(t, &at->parent, aside,
			 (kept ? at->attr.attr.mode : st->st_mode) & 0777,
			 &made);
	if (err != TOOL_OK) {
		leave_out_here(h, incomplete);
		return err;
	}
	err = copy_put(t, &made.fh, fd, h->name, source.size);
	if (err == TOOL_OK) {
		int last = end_sent_file(t, h, fd, &made, st);

		err = last == TOOL_UNREACHABLE ? last :
		      there_place(t, &made, at->name);
		if (err == TOOL_OK)
			return last;
	}
	if (err != TOOL_UNREACHABLE)
		there_drop(t, &made);
	leave_out_here(h, incomplete);
	return err;
}

static int send_open(struct tool *t, const struct here *h, int fd,
		     const struct nfs3_fh *dir, const char *name)
{
	struct cp_file source;
	struct tool_object at;
	struct stat st;
	int err;

	if (fstat(fd, &st) < 0)
		return complain_here(h, -errno, 0);
	if (!S_ISREG(st.st_mode))
		return leave_out_here(h, no_copy);
	err = tool_lookup(t, dir, name, &at);
	if (err == TOOL_OK && at.fh.len > 0 && at.attr.attr.type != VFS_REG)
		err = complain_here(h, 0, at.attr.attr.type == VFS_DIR ?
				    NFS_ISDIR : NFS_EXIST);
	if (err == TOOL_OK && cp_file_here(&st, &source) &&
	    is_sent(t, &at, &source)) {
		progress_skip(t, source.size);
		return TOOL_OK;
	}
	if (err == TOOL_OK)
		return send_data(t, h, fd, &at, &st);
	leave_out_here(h, incomplete);
	return err;
}

static int send_file(struct tool *t, const struct here *h,
		     const struct nfs3_fh *dir, const char *name)
{
	int fd = openat(h->dir, h->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
			O_CLOEXEC), err;

	if (fd < 0)
		return complain_here(h, -errno, 0);
	err = send_open(t, h, fd, dir, name);
	close(fd);
	return err;
}

static void name_here(const struct tool *t, const struct here *h,
		      const char *end)
{
	put_here(t->o->out, h);
	fputs(end, t->o->out);
}

/* --dry-run: looks at what an earlier copy has made, and makes nothing. */
static int name_file(struct tool *t, const struct here *h,
		     const struct nfs3_fh *dir, const char *name,
		     const struct stat *st)
{
	struct tool_object at = { .fh.len = 0 };
	struct cp_file source;
	int err = TOOL_OK;

	if (!S_ISREG(st->st_mode) && !S_ISLNK(st->st_mode))
		return leave_out_here(h, no_copy);
	if (S_ISREG(st->st_mode) && t->o->resume && dir->len > 0)
		err = tool_lookup(t, dir, name, &at);
	if (err == TOOL_OK && !(cp_file_here(st, &source) &&
				is_sent(t, &at, &source)))
		name_here(t, h, "\n");
	return err;
}

/* An earlier copy has made the link. */
static bool link_is_sent(struct tool *t, const struct nfs3_fh *dir,
			 const char *name, const char *target)
{
	struct tool_object at = { .fh.len = 0 };
	char text[NFS_PATH_MAX];
	size_t len;

	if (!t->o->resume || tool_lookup(t, dir, name, &at) != TOOL_OK)
		return false;
	len = tool_read_link(t, &at.attr, &at.fh, text);
	return len == strlen(target) && memcmp(text, target, len) == 0;
}

static int send_link(struct tool *t, const struct here *h,
		     const struct nfs3_fh *dir, const char *name)
{
	char target[NFS_PATH_MAX];
	ssize_t n = readlinkat(h->dir, h->name, target, sizeof(target));
	struct nfsc_op op = { .kind = NFS_OP_SYMLINK, .fh = *dir,
			      .name = name, .target = target };

	if (n < 0 || n == sizeof(target))
		return complain_here(h, n < 0 ? -errno : -ENAMETOOLONG, 0);
	target[n] = '\0';
	if (session_do(t->s, &op) == 0 && op.status == NFS_EXIST &&
	    link_is_sent(t, dir, name, target))
		return TOOL_OK;
	if (op.err < 0 || op.status != 0)
		return complain_here(h, op.err, op.status);
	return TOOL_OK;
}

/* The directory of this name on the server, which may be there. */
static int make_there(struct tool *t, const struct here *h,
		      const struct nfs3_fh *dir, const char *name,
		      struct tool_object *made)
{
	struct nfsc_op op;
	struct stat st;
	int err;

	if (t->o->dry_run) {
		name_here(t, h, "/\n");
		return dir->len > 0 ? tool_lookup(t, dir, name, made) : TOOL_OK;
	}
	if (fstatat(h->dir, h->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return complain_here(h, -errno, 0);
	/* This user has to write to it, whoever may later. */
	if (tool_make_dir(t, dir, name, (st.st_mode & 0777) | 0700, &op) < 0 ||
	    (op.status != 0 && op.status != NFS_EXIST))
		return complain_here(h, op.err, op.status);
	err = tool_lookup(t, dir, name, made);
	if (err == TOOL_OK && made->fh.len == 0)
		return complain_here(h, 0, NFS_NOENT);
	if (err == TOOL_OK && made->attr.attr.type != VFS_DIR)
		return complain_here(h, 0, NFS_NOTDIR);
	return err;
}

static int send_one(struct tool *t, const struct here *h,
		    const struct nfs3_fh *dir, const char *name);

static int send_children(struct tool *t, const struct here *h, DIR *d,
			 const struct nfs3_fh *dir)
{
	int err, worst = TOOL_OK;
	struct dirent *e;

	while (worst != TOOL_UNREACHABLE && (errno = 0, e = readdir(d))) {
		struct here below = { h, dirfd(d), e->d_name, h->depth + 1 };

		if (!nfsc_name_is_good(e->d_name,
				       (uint32_t)strlen(e->d_name)) ||
		    cp_is_excluded(t->o, e->d_name))
			continue;
		err = send_one(t, &below, dir, e->d_name);
		worst = err > worst ? err : worst;
	}
	return errno && worst == TOOL_OK ? complain_here(h, -errno, 0) : worst;
}

static int send_dir(struct tool *t, const struct here *h,
		    const struct nfs3_fh *dir, const char *name)
{
	struct tool_object made = { .fh.len = 0 };
	struct stat st;
	int fd, err;
	DIR *d;

	if (!t->o->recursive)
		return leave_out_here(h, "a directory, which goes with -r "
				      "only");
	if (h->depth > LEVELS_MAX)
		return leave_out_here(h, "too many directories below another");
	fd = openat(h->dir, h->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
		    O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !(d = fdopendir(fd))) {
		err = complain_here(h, -errno, 0);
		if (fd >= 0)
			close(fd);
		return err;
	}
	err = make_there(t, h, dir, name, &made);
	if (err == TOOL_OK)
		err = send_children(t, h, d, &made.fh);
	if (err != TOOL_UNREACHABLE && made.fh.len > 0 && !t->o->dry_run) {
		int last = t->o->preserve ?
			copy_attributes(t, h, &made.fh, &st) : TOOL_OK;

		err = err == TOOL_OK ? last : err;
	}
	closedir(d);
	return err;
}

static int send_one(struct tool *t, const struct here *h,
		    const struct nfs3_fh *dir, const char *name)
{
	struct stat st;

	if (fstatat(h->dir, h->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return complain_here(h, -errno, 0);
	if (S_ISDIR(st.st_mode))
		return send_dir(t, h, dir, name);
	if (t->o->dry_run)
		return name_file(t, h, dir, name, &st);
	return S_ISLNK(st.st_mode) ? send_link(t, h, dir, name) :
	       send_file(t, h, dir, name);
}

/* The last part of a path, without slashes behind it; "." has none. */
static const char *own_name(const char *from, char path[PATH_MAX])
{
	size_t len = strlen(from);
	const char *slash;

	if (len >= PATH_MAX)
		return NULL;
	memcpy(path, from, len + 1);
	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	slash = strrchr(path, '/');
	slash = slash ? slash + 1 : path;
	return nfsc_name_is_good(slash, (uint32_t)strlen(slash)) ? slash : NULL;
}

/* Into a directory that is there, under its own name; else as what the URL
 * names. */
static int send_top(struct tool *t, const char *from)
{
	char path[PATH_MAX], real[PATH_MAX];
	const struct here h = { .dir = AT_FDCWD, .name = real };
	struct tool_object at;
	const char *name = own_name(from, path);
	int err = tool_find(t, &at, true, true);

	if (err != TOOL_OK)
		return err;
	/* A link that is named is followed. */
	if (!realpath(from, real))
		return tool_complain(from, -errno, 0);
	if (t->o->into && (at.fh.len == 0 || at.attr.attr.type != VFS_DIR))
		return tool_complain(t->text, 0, NFS_NOTDIR);
	if (at.fh.len == 0)
		return send_one(t, &h, &at.parent, at.name);
	if (at.attr.attr.type == VFS_DIR) {
		if (!name)
			name = own_name(real, path);
		return name ? send_one(t, &h, &at.fh, name) :
		       tool_complain(from, -EINVAL, 0);
	}
	if (at.parent.len == 0)
		return tool_complain(t->text, 0, NFS_EXIST);
	return send_one(t, &h, &at.parent, at.name);
}

/* The bytes of a local tree, as far as it can be read. */
static uint64_t sum_here(const struct tool_options *o, int dir,
			 const char *name, unsigned depth)
{
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, fd;
	uint64_t bytes = 0;
	struct dirent *e;
	struct stat st;
	DIR *d;

	st.st_mode = 0;
	if (fstatat(dir, name, &st, depth ? AT_SYMLINK_NOFOLLOW : 0) < 0 ||
	    !S_ISDIR(st.st_mode) || !o->recursive || depth > LEVELS_MAX)
		return S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	fd = openat(dir, name, depth ? flags | O_NOFOLLOW : flags);
	d = fd < 0 ? NULL : fdopendir(fd);
	while (d && (e = readdir(d)))
		if (nfsc_name_is_good(e->d_name, (uint32_t)strlen(e->d_name)) &&
		    !cp_is_excluded(o, e->d_name))
			bytes += sum_here(o, fd, e->d_name, depth + 1);
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	return bytes;
}

int cp_put(const char *from, const char *url, const struct tool_options *o)
{
	struct tool t;
	int err = tool_parse(&t, url, o);

	if (err == TOOL_OK)
		err = tool_connect_above(&t);
	if (err != TOOL_OK)
		return err;
	progress_begin(&t, from, progress_is_shown(o) ?
		       sum_here(o, AT_FDCWD, from, 0) : 0);
	err = send_top(&t, from);
	progress_end(&t, err);
	tool_close(&t);
	return err;
}
