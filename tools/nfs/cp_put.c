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
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/nfs/cp.h"
#include "tools/nfs/jobs.h"
#include "tools/nfs/say.h"
#include "lib/util.h"

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

/*
 * A directory, from its opening until all below it is sent: then its copy gets
 * its mode and time.
 */
struct sent_dir {
	struct here	  h;
	struct sent_dir	 *up;		/* counted; NULL: the top */
	unsigned	  users;
	DIR		 *d;
	struct nfs3_fh	  fh;		/* its copy; a dry run has none */
	struct stat	  st;
	bool		  left;		/* all of it was read */
	char		  name[];
};

/* Where a copy goes: its directory on the server, and its name there. */
struct place {
	const struct nfs3_fh *dir;
	const char	     *name;
	struct sent_dir	     *up;	/* the source's directory, or NULL */
};

/* A file or link. */
struct send_job {
	struct job	  job;
	struct here	  h;
	struct sent_dir	 *up;		/* counted, or NULL */
	struct nfs3_fh	  dir;		/* it goes into, under the name */
	const char	 *as;
	bool		  is_link;
	char		  names[];	/* both */
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
	fputs("gannet-nfs: ", say_stream());
	put_here(say_stream(), h);
	return tool_reason(err, status);
}

static int leave_out_here(const struct here *h, const char *why)
{
	fputs("gannet-nfs: ", say_stream());
	put_here(say_stream(), h);
	fprintf(say_stream(), ": left out: %s\n", why);
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
		fputs("gannet-nfs: ", say_stream());
		put_here(say_stream(), h);
		fputs(": its time of the last change is before 1970 or after "
		      "2106, and not kept\n", say_stream());
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
	fputs("gannet-nfs: ", say_stream());
	put_here(say_stream(), h);
	fprintf(say_stream(), ": %s\n", cp_changed);
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
	return tool_read_link(t, &at.attr, &at.fh, text, &len) == 0 &&
	       len == strlen(target) && memcmp(text, target, len) == 0;
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

/* Of the directory, and of those above that nothing else uses.  Returns the
 * worst exit code, of these and @err. */
static int release_sent(struct tool *t, struct sent_dir *dir, int err)
{
	while (dir && --dir->users == 0) {
		struct sent_dir *up = dir->up;

		if (dir->left && t->o->preserve && dir->fh.len > 0 &&
		    err != TOOL_UNREACHABLE)
			err = MAX(err, copy_attributes(t, &dir->h, &dir->fh,
						       &dir->st));
		closedir(dir->d);
		free(dir);
		dir = up;
	}
	return err;
}

static int run_send(struct job *job, struct tool *t)
{
	struct send_job *j = container_of(job, struct send_job, job);
	int err = j->is_link ? send_link(t, &j->h, &j->dir, j->as) :
			       send_file(t, &j->h, &j->dir, j->as);

	err = release_sent(t, j->up, err);
	free(j);
	return err;
}

static int start_send(struct tool *t, const struct here *h,
		      const struct place *to, const struct stat *st)
{
	size_t len = strlen(h->name) + 1, as = strlen(to->name) + 1;
	struct send_job *j = calloc(1, sizeof(*j) + len + as);

	if (!j)
		return complain_here(h, -ENOMEM, 0);
	j->job.run = run_send;
	j->is_link = S_ISLNK(st->st_mode);
	j->job.bytes = j->is_link ? 0 :
		       jobs_memory(t, (uint64_t)st->st_size);
	memcpy(j->names, h->name, len);
	memcpy(j->names + len, to->name, as);
	j->h = *h;
	j->h.name = j->names;
	j->as = j->names + len;
	j->dir = *to->dir;
	j->up = to->up;
	if (j->up)
		j->up->users++;
	return jobs_start(t, &j->job);
}

static int send_one(struct tool *t, const struct here *h,
		    const struct place *to);

static int send_children(struct tool *t, struct sent_dir *dir)
{
	int err, worst = TOOL_OK;
	struct dirent *e;

	while (worst != TOOL_UNREACHABLE && (errno = 0, e = readdir(dir->d))) {
		struct here below = { &dir->h, dirfd(dir->d), e->d_name,
				      dir->h.depth + 1 };

		if (!nfsc_name_is_good(e->d_name,
				       (uint32_t)strlen(e->d_name)) ||
		    cp_is_excluded(t->o, e->d_name))
			continue;
		err = send_one(t, &below, &(struct place){ &dir->fh, e->d_name,
							   dir });
		worst = err > worst ? err : worst;
	}
	return errno && worst == TOOL_OK ?
	       complain_here(&dir->h, -errno, 0) : worst;
}

/* 0 or -errno. */
static int open_sent(const struct here *h, struct sent_dir *up,
		     struct sent_dir **out)
{
	size_t len = strlen(h->name) + 1;
	struct sent_dir *dir = calloc(1, sizeof(*dir) + len);
	int err = 0, fd = openat(h->dir, h->name, O_RDONLY | O_DIRECTORY |
				 O_NOFOLLOW | O_CLOEXEC);

	if (!dir)
		err = -ENOMEM;
	else if (fd < 0 || fstat(fd, &dir->st) < 0 ||
		 !(dir->d = fdopendir(fd)))
		err = -errno;
	if (err < 0) {
		if (fd >= 0)
			close(fd);
		free(dir);
		return err;
	}
	memcpy(dir->name, h->name, len);
	dir->h = *h;
	dir->h.name = dir->name;
	dir->up = up;
	dir->users = 1;
	if (up)
		up->users++;
	*out = dir;
	return 0;
}

static int send_dir(struct tool *t, const struct here *h,
		    const struct place *to)
{
	struct tool_object made = { .fh.len = 0 };
	struct sent_dir *dir;
	int err;

	if (!t->o->recursive)
		return leave_out_here(h, "a directory, which goes with -r "
				      "only");
	if (h->depth > LEVELS_MAX)
		return leave_out_here(h, "too many directories below another");
	err = open_sent(h, to->up, &dir);
	if (err < 0)
		return complain_here(h, err, 0);
	err = make_there(t, h, to->dir, to->name, &made);
	if (err == TOOL_OK) {
		dir->fh = made.fh;
		err = send_children(t, dir);
		dir->left = err != TOOL_UNREACHABLE && !t->o->dry_run;
	}
	return release_sent(t, dir, err);
}

static int send_one(struct tool *t, const struct here *h,
		    const struct place *to)
{
	struct stat st;

	if (fstatat(h->dir, h->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return complain_here(h, -errno, 0);
	if (S_ISDIR(st.st_mode))
		return send_dir(t, h, to);
	if (t->o->dry_run)
		return name_file(t, h, to->dir, to->name, &st);
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return leave_out_here(h, no_copy);
	return start_send(t, h, to, &st);
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

/* True if the name was there before; it is from here on. */
static bool is_repeated(void **names, const char *name)
{
	char *own = strdup(name), *const *found = own ?
		tsearch(own, names, (int (*)(const void *, const void *))strcmp)
		: NULL;
	bool repeated = !found || *found != own;

	if (repeated)
		free(own);
	return repeated;
}

/* Into a directory that is there, under its own name; else as what the URL
 * names. */
static int send_top(struct tool *t, const char *from,
		    const struct tool_object *at, void **names)
{
	char path[PATH_MAX], real[PATH_MAX];
	const struct here h = { .dir = AT_FDCWD, .name = real };
	const char *name = own_name(from, path);

	/* A link that is named is followed. */
	if (!realpath(from, real))
		return tool_complain(from, -errno, 0);
	if (at->fh.len == 0 || at->attr.attr.type != VFS_DIR)
		return send_one(t, &h, &(struct place){ &at->parent, at->name,
							NULL });
	if (!name)
		name = own_name(real, path);
	if (!name)
		return tool_complain(from, -EINVAL, 0);
	/* Of two sources with one name the last one is there in the end. */
	if (is_repeated(names, name))
		jobs_wait(t);
	return send_one(t, &h, &(struct place){ &at->fh, name, NULL });
}

static int send_each(struct tool *t, int n, char *const from[])
{
	struct tool_object at;
	void *names = NULL;
	int err = tool_find(t, &at, true, true), worst = TOOL_OK;

	if (err != TOOL_OK)
		return err;
	if (t->o->into && (at.fh.len == 0 || at.attr.attr.type != VFS_DIR))
		return tool_complain(t->text, 0, NFS_NOTDIR);
	if (at.fh.len > 0 && at.attr.attr.type != VFS_DIR && at.parent.len == 0)
		return tool_complain(t->text, 0, NFS_EXIST);
	if (!t->o->dry_run)
		jobs_open(t, t->o->parallel ? t->o->parallel : jobs_for(t));
	for (int i = 0; i < n && worst != TOOL_UNREACHABLE; i++) {
		err = send_top(t, from[i], &at, &names);
		worst = MAX(worst, err);
	}
	err = jobs_close(t);
	tdestroy(names, free);
	return MAX(worst, err);
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

int cp_put(int n, char *const from[], const char *url,
	   const struct tool_options *o)
{
	uint64_t bytes = 0;
	struct tool t;
	int err = tool_parse(&t, url, o);

	if (err == TOOL_OK)
		err = tool_connect_above(&t);
	if (err != TOOL_OK)
		return err;
	for (int i = 0; i < n && progress_is_shown(o); i++)
		bytes += sum_here(o, AT_FDCWD, from[i], 0);
	progress_begin(&t, n == 1 ? from[0] : url, bytes);
	err = send_each(&t, n, from);
	progress_end(&t, err);
	tool_close(&t);
	return err;
}
