/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cp_put - cp to a server.
 *
 * Local names can change meanwhile: each is opened in its directory's
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
	const char	     *name;	/* NULL: the directory is the copy */
	struct sent_dir	     *up;	/* the source's directory, or NULL */
	bool		      into;	/* the URL names the directory */
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

static void name_here(const struct tool *t, const struct here *h,
		      const char *end)
{
	here_put(t->o->out, h);
	fputs(end, t->o->out);
}

/* --dry-run: looks at the objects of an earlier copy, and makes none. */
static int name_file(struct tool *t, const struct here *h,
		     const struct nfs3_fh *dir, const char *name,
		     const struct stat *st)
{
	struct tool_object at = { .fh.len = 0 };
	struct cp_file source;
	int err = TOOL_OK;

	if (!S_ISREG(st->st_mode) && !S_ISLNK(st->st_mode))
		return here_leave_out(h, here_no_copy);
	if (S_ISREG(st->st_mode) && t->o->resume && dir->len > 0)
		err = tool_lookup(t, dir, name, &at);
	if (err == TOOL_OK && !(cp_file_here(st, &source) &&
				send_is_done(t, &at, &source)))
		name_here(t, h, "\n");
	return err;
}

/* The directory of this name on the server, which can already exist. */
static int make_there(struct tool *t, const struct here *h,
		      const struct place *to, struct tool_object *made)
{
	const struct nfs3_fh *dir = to->dir;
	const char *name = to->name;
	struct nfsc_op op;
	struct stat st;
	int err;

	if (t->o->dry_run) {
		name_here(t, h, "/\n");
		return dir->len > 0 ? tool_lookup(t, dir, name, made) : TOOL_OK;
	}
	if (fstatat(h->dir, h->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return here_fail(h, -errno);
	/* This user has to write to it, whoever may later. */
	if (tool_make_dir(t, dir, name, (st.st_mode & 0777) | 0700, &op) < 0 ||
	    (op.status != 0 && op.status != NFS_EXIST))
		return here_complain(h, op.err, op.status);
	if (op.status == 0 && to->into)
		cp_nothing_to_continue(t->o, name, t->text);
	err = tool_lookup(t, dir, name, made);
	if (err == TOOL_OK && made->fh.len == 0)
		return here_complain(h, 0, NFS_NOENT);
	if (err == TOOL_OK && made->attr.attr.type != VFS_DIR)
		return here_complain(h, 0, NFS_NOTDIR);
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
			err = MAX(err, send_attributes(t, &dir->h, &dir->fh,
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
		return here_fail(h, -ENOMEM);
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
		err = send_one(t, &below, &(struct place){
			.dir = &dir->fh, .name = e->d_name, .up = dir });
		worst = err > worst ? err : worst;
	}
	/* A file that failed, of any directory, does not explain this. */
	return errno && worst != TOOL_UNREACHABLE ?
	       here_fail(&dir->h, -errno) : worst;
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
		return here_leave_out(h, "a directory, which goes with -r "
				      "only");
	if (h->depth > HERE_LEVELS_MAX)
		return here_leave_out(h, "too many directories below another");
	err = open_sent(h, to->up, &dir);
	if (err < 0)
		return here_fail(h, err);
	if (to->name)
		err = make_there(t, h, to, &made);
	else
		made.fh = *to->dir;
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
		return here_fail(h, -errno);
	if (S_ISDIR(st.st_mode))
		return send_dir(t, h, to);
	if (t->o->dry_run)
		return name_file(t, h, to->dir, to->name, &st);
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return here_leave_out(h, here_no_copy);
	return start_send(t, h, to, &st);
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

/* The directory that the URL names is, or gets, the copy: it can be an export's
 * root, which has no name. */
static int send_as(struct tool *t, const struct here *h,
		   const struct tool_object *at)
{
	struct stat st;

	if (stat(h->name, &st) < 0)
		return here_fail(h, -errno);
	if (!S_ISDIR(st.st_mode))
		return here_complain(h, 0, NFS_ISDIR);
	return send_dir(t, h, &(struct place){ .dir = &at->fh });
}

/* Into a directory that is there, under its own name; else as the URL's
 * object. */
static int send_top(struct tool *t, const char *from,
		    const struct tool_object *at, void **names)
{
	char path[PATH_MAX], real[PATH_MAX];
	const struct here h = { .dir = AT_FDCWD, .name = real };
	const char *name = here_name(from, path);

	/* A link that is named is followed. */
	if (!realpath(from, real))
		return tool_complain_here(from, -errno);
	if (at->fh.len == 0 || at->attr.attr.type != VFS_DIR)
		return send_one(t, &h, &(struct place){ .dir = &at->parent,
							.name = at->name });
	if (t->o->as)
		return send_as(t, &h, at);
	if (!name)
		name = here_name(real, path);
	if (!name)
		return tool_complain(from, -EINVAL, 0);
	/* Of two sources with one name the last one is there in the end. */
	if (is_repeated(names, name))
		jobs_wait(t);
	return send_one(t, &h, &(struct place){ .dir = &at->fh, .name = name,
						.into = true });
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
		bytes += here_sum(o, AT_FDCWD, from[i], 0);
	progress_begin(&t, n == 1 ? from[0] : url, bytes);
	err = send_each(&t, n, from);
	progress_end(&t, err);
	tool_close(&t);
	return err;
}
