/* SPDX-License-Identifier: BSD-2-Clause */
/* transfer - get, put and cat: which file goes where. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/nfs/cp.h"

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int not_regular(const char *what)
{
	fprintf(stderr, "gannet-nfs: %s: not a regular file\n", what);
	return TOOL_FAILED;
}

/* Where a get goes: to the URL's last name, in a directory if that is given.
 * Where a symbolic link leads is for the server to say, a local name is not. */
static const char *get_target(const struct tool *t, const char *to,
			      char path[PATH_MAX])
{
	const char *name = last_part(t->url.path);
	struct stat st;

	if (!to)
		return name;
	if (stat(to, &st) < 0 || !S_ISDIR(st.st_mode))
		return to;
	return snprintf(path, PATH_MAX, "%s/%s", to, name) < PATH_MAX ?
		path : to;
}

/* Asked before a local file is emptied, in case the data can't be had. */
static int may_read(struct tool *t, const struct tool_object *obj)
{
	char byte;
	struct nfsc_op op = { .kind = NFS_OP_READ, .fh = obj->fh,
			      .data = &byte, .count = 1 };

	if (session_do(t->s, &op) < 0 ||
	    (op.status != 0 && op.status != NFS_JUKEBOX))
		return tool_complain(t->text, op.err, op.status);
	return TOOL_OK;
}

/* After copy_get(). */
static int check_source(const struct tool *t, const struct tool_object *obj,
			int err)
{
	if (err != TOOL_OK || !obj->changed)
		return err;
	fputs("gannet-nfs: ", stderr);
	tool_put_name(stderr, t->text);
	fprintf(stderr, ": %s\n", cp_changed);
	return TOOL_FAILED;
}

static int get_file(struct tool *t, struct tool_object *obj, const char *to)
{
	struct copy_end end = { .fd = STDOUT_FILENO,
				.name = "standard output" };
	char path[PATH_MAX];
	int err;

	if (to && strcmp(to, "-") == 0)
		return check_source(t, obj, copy_get(t, obj, &end));
	to = get_target(t, to, path);
	err = may_read(t, obj);
	if (err != TOOL_OK)
		return err;
	end.name = to;
	end.fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (end.fd < 0)
		return tool_complain_here(to, -errno);
	err = copy_get(t, obj, &end);
	/* Some file systems say only now that they are full. */
	if (close(end.fd) < 0 && err == TOOL_OK)
		err = tool_complain_here(to, -errno);
	if (err != TOOL_OK)
		fprintf(stderr, "gannet-nfs: %s is not complete\n", to);
	return check_source(t, obj, err);
}

int tool_get(const char *url, const char *to, const struct tool_options *o)
{
	struct tool_object obj;
	struct tool t;
	int err = tool_open(&t, url, o);

	if (err != TOOL_OK)
		return err;
	err = tool_find(&t, &obj, true, false);
	if (err == TOOL_OK && obj.attr.attr.type == VFS_DIR)
		err = tool_complain(url, 0, NFS_ISDIR);
	else if (err == TOOL_OK && obj.attr.attr.type != VFS_REG)
		err = not_regular(url);
	if (err == TOOL_OK)
		err = get_file(&t, &obj, to);
	tool_close(&t);
	return err;
}

/* By its own handle: its directory is not known where the server has let the
 * file itself be mounted, as the kernel's does. */
static int empty_file(struct tool *t, const struct tool_object *at)
{
	struct nfsc_op op = { .kind = NFS_OP_EMPTY, .fh = at->fh };

	if (session_do(t->s, &op) < 0 || op.status != 0)
		return tool_complain(t->text, op.err, op.status);
	return TOOL_OK;
}

static int make_file(struct tool *t, const struct tool_object *at,
		     uint32_t mode, struct nfs3_fh *fh)
{
	struct nfsc_op op = { .kind = NFS_OP_CREATE, .fh = at->parent,
			     .name = at->name, .mode = mode };
	struct tool_object made;
	int err;

	if (session_do(t->s, &op) < 0 || op.status != 0)
		return tool_complain(t->text, op.err, op.status);
	*fh = op.obj;
	if (fh->len > 0)
		return TOOL_OK;
	/* The handle is not obligatory (RFC 1813 section 3.3.8). */
	err = tool_lookup(t, &at->parent, at->name, &made);
	if (err == TOOL_OK && made.fh.len == 0)
		err = tool_complain(t->text, 0, NFS_NOENT);
	*fh = made.fh;
	return err;
}

/* Makes the file @at empty, or makes it, with @mode. */
static int empty_or_make(struct tool *t, const struct tool_object *at,
			 uint32_t mode, struct nfs3_fh *fh)
{
	if (at->fh.len == 0)
		return make_file(t, at, mode, fh);
	if (at->attr.attr.type != VFS_REG)
		return at->attr.attr.type == VFS_DIR ?
			tool_complain(t->text, 0, NFS_ISDIR) :
			not_regular(t->text);
	*fh = at->fh;
	return empty_file(t, at);
}

/* The copy can be of both states of the file, before and after a change. */
static int check_unchanged(int fd, const char *from, const struct stat *was)
{
	struct stat is;

	if (!S_ISREG(was->st_mode) ||
	    (fstat(fd, &is) == 0 && is.st_size == was->st_size &&
	     is.st_mtim.tv_sec == was->st_mtim.tv_sec &&
	     is.st_mtim.tv_nsec == was->st_mtim.tv_nsec))
		return TOOL_OK;
	fputs("gannet-nfs: ", stderr);
	tool_put_name(stderr, from);
	fprintf(stderr, ": %s\n", cp_changed);
	return TOOL_FAILED;
}

static int put_file(struct tool *t, int fd, const char *from)
{
	struct copy_end end = { .fd = fd, .name = from };
	struct tool_object at;
	struct nfs3_fh dir, fh;
	struct stat st;
	int err;

	if (fstat(fd, &st) < 0)
		return tool_complain_here(from, -errno);
	if (S_ISDIR(st.st_mode))
		return tool_complain(from, -EISDIR, 0);
	err = tool_find(t, &at, true, true);
	if (err == TOOL_OK && at.fh.len > 0 && at.attr.attr.type == VFS_DIR) {
		if (strcmp(from, "-") == 0)
			return tool_complain(t->text, 0, NFS_ISDIR);
		dir = at.fh;
		err = tool_lookup(t, &dir, last_part(from), &at);
	}
	if (err == TOOL_OK)
		err = empty_or_make(t, &at, S_ISREG(st.st_mode) ?
				    st.st_mode & 0777 : 0644, &fh);
	if (err != TOOL_OK)
		return err;
	end.size = (uint64_t)st.st_size;
	err = copy_put(t, &fh, &end);
	if (err != TOOL_OK) {
		fputs("gannet-nfs: ", stderr);
		tool_put_name(stderr, at.name);
		fputs(" is not complete on the server\n", stderr);
	}
	return err == TOOL_OK ? check_unchanged(fd, from, &st) : err;
}

int tool_put(const char *from, const char *url, const struct tool_options *o)
{
	int fd = STDIN_FILENO;
	struct tool t;
	int err;

	if (strcmp(from, "-") != 0) {
		fd = open(from, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return tool_complain_here(from, -errno);
	}
	err = tool_open(&t, url, o);
	if (err == TOOL_OK) {
		err = put_file(&t, fd, from);
		tool_close(&t);
	}
	if (fd != STDIN_FILENO)
		close(fd);
	return err;
}
