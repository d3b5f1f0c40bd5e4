/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cp_get - cp from a server.
 *
 * The server chooses names, and can list one twice: as a symbolic link to
 * anywhere, and as a directory.  So each local file is opened in the descriptor
 * of its directory, by a name that is not a path, and never through a link.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/nfs/cp.h"
#include "tools/nfs/jobs.h"
#include "tools/nfs/say.h"
#include "lib/util.h"

/* A tree's walk, and the directory that its top goes into. */
struct fetch {
	struct walk	 w;
	int		 into;
	const char	*name;		/* of the top, there */
	mode_t		 mask;		/* of this process */
	struct copied_dir *in;		/* that the walk is in, counted */
};

static const char no_copy[] = "left out: it is no file, directory or link";
static const char too_short[] = "the server ended it before its size; copy it "
				"again";

/*
 * A local directory, from the visit that enters it until all below it is there:
 * then it gets its mode and time.  The walk uses it until it leaves, and so do
 * its files and directories.
 */
struct copied_dir {
	struct walk_at	  at;		/* with the name below, and the */
	struct copied_dir *up;		/* counted; NULL: the walk's top */
	unsigned	  users;
	int		  fd;		/* -1: none, in a dry run */
	bool		  fresh;	/* made by this copy */
	bool		  left;		/* by the walk, which saw all of it */
	char		  name[];
};

/* A file or link. */
struct fetch_job {
	struct job	  job;
	struct fetch	  f;
	struct walk_at	  at;
	struct copied_dir *dir;		/* counted, or NULL */
	char		  name[];
};

/* The directory and the name of the copied object. */
static struct copied_dir *dir_above(const struct walk_at *at)
{
	return at->up ? at->up->own : NULL;
}

static int local_dir(const struct fetch *f, const struct walk_at *at)
{
	const struct copied_dir *up = dir_above(at);

	return up ? up->fd : f->into;
}

static const char *local_name(const struct fetch *f, const struct walk_at *at)
{
	return at->up ? at->name : f->name;
}

/* A copy that stays when the walk goes on. */
static void keep_at(const struct walk_at *at, struct walk_at *kept, char *name)
{
	struct copied_dir *up = dir_above(at);

	memcpy(name, at->name, at->len + 1);
	*kept = *at;
	kept->name = name;
	kept->up = up ? &up->at : NULL;
	if (up)
		up->users++;
}

static int complain_local(const struct walk_at *at, int err)
{
	fputs("gannet-nfs: the copy of ", say_stream());
	walk_put_path(say_stream(), at);
	return tool_reason_here(err);
}

/* The outcome of a local step, 0 or -errno, as an exit code. */
static int check_local(const struct walk_at *at, int err)
{
	return err < 0 ? complain_local(at, err) : TOOL_OK;
}

/* Set-user-ID and the like are for the server's users, not for this one. */
static mode_t copied_mode(const struct fetch *f, const struct walk_at *at)
{
	mode_t mode = at->attr.attr.mode & 0777;

	return f->w.t->o->preserve ? mode : mode & ~f->mask;
}

static int set_mtime(int fd, const struct timespec *mtime)
{
	const struct timespec times[2] = {
		{ .tv_nsec = UTIME_OMIT },
		{ mtime->tv_sec, mtime->tv_nsec % 1000000000 },
	};

	return futimens(fd, times) < 0 ? -errno : 0;
}

/* At the end: no files can be made in a directory that its owner may not write
 * to. */
static int set_attributes(const struct fetch *f, const struct walk_at *at,
			  int fd, mode_t mode)
{
	int err = 0;

	if (fchmod(fd, mode) < 0)
		err = -errno;
	if (err == 0 && f->w.t->o->preserve)
		err = set_mtime(fd, &at->attr.attr.mtime);
	return err < 0 ? complain_local(at, err) : TOOL_OK;
}

/* Of the directory, and of those above that nothing else uses. */
static int release_copied(const struct fetch *f, struct copied_dir *dir)
{
	int err = TOOL_OK;

	while (dir && --dir->users == 0) {
		struct copied_dir *up = dir->up;

		if (dir->left && (dir->fresh || f->w.t->o->preserve) &&
		    set_attributes(f, &dir->at, dir->fd,
				   copied_mode(f, &dir->at)) != TOOL_OK)
			err = TOOL_FAILED;
		if (dir->fd >= 0)
			close(dir->fd);
		free(dir);
		dir = up;
	}
	return err;
}

static int open_copied(const struct fetch *f, struct copied_dir *dir,
		       const struct walk_at *at)
{
	int in = local_dir(f, at);
	const char *name = local_name(f, at);

	/* If this copy is cut short, --continue finds the mode right. */
	if (!f->w.t->o->dry_run)
		dir->fresh = mkdirat(in, name,
				     copied_mode(f, at) | 0700) == 0;
	if (!f->w.t->o->dry_run && !dir->fresh && errno != EEXIST)
		return complain_local(at, -errno);
	dir->fd = openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
			 O_CLOEXEC);
	return dir->fd < 0 && !f->w.t->o->dry_run ?
	       complain_local(at, -errno) : TOOL_OK;
}

static int enter_dir(struct fetch *f, struct walk_at *at)
{
	struct copied_dir *dir;
	int err;

	if (!f->w.t->o->recursive)
		return walk_refuse(at, "a directory, which goes with -r only");
	dir = calloc(1, sizeof(*dir) + at->len + 1);
	if (!dir)
		return complain_local(at, -ENOMEM);
	err = open_copied(f, dir, at);
	if (err != TOOL_OK) {
		free(dir);
		return err;
	}
	dir->up = dir_above(at);
	keep_at(at, &dir->at, dir->name);
	dir->at.own = at->own = f->in = dir;
	dir->users = 1;
	return TOOL_OK;
}

static int leave_dir(struct fetch *f, struct walk_at *at)
{
	struct copied_dir *dir = at->own;

	f->in = dir->up;
	dir->left = !f->w.t->o->dry_run;
	return release_copied(f, dir);
}

static bool is_fetched(const struct fetch *f, const struct walk_at *at,
		       const struct cp_file *source)
{
	struct cp_file copy;
	struct stat st;

	return f->w.t->o->resume &&
	       fstatat(local_dir(f, at), local_name(f, at), &st,
		       AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       cp_file_here(&st, &copy) &&
	       cp_is_done(source, &copy, f->w.t->o->preserve);
}

/* A copy that differs leaves no part to be continued. */
static int verify_copy(struct tool *t, const struct walk_at *at,
		       struct aside *a, struct cp_hash *source)
{
	struct cp_hash copy;
	int err = hash_here(t, &copy, a->fd, a->name);

	if (err == TOOL_OK && hash_is_same(source, &copy))
		return TOOL_OK;
	aside_drop(a);
	return err == TOOL_OK ? walk_refuse(at, cp_differs) : err;
}

/* Whether the copy that an earlier run has made is the file. */
static int compare_fetched(const struct fetch *f, const struct walk_at *at,
			   bool *same)
{
	struct tool_object obj = { .fh = at->fh, .attr = at->attr };
	int err, fd = openat(local_dir(f, at), local_name(f, at), O_RDONLY |
			     O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return complain_local(at, -errno);
	memcpy(obj.name, at->name, MIN(at->len, (uint32_t)NFS_NAME_MAX));
	err = cp_compare(f->w.t, &obj, fd, same);
	close(fd);
	if (err == TOOL_OK && !*same)
		walk_refuse(at, cp_again);
	return err;
}

/* Receives the file.  *@why says why it has to be copied again, or is NULL. */
static int fetch_bytes(struct fetch *f, struct walk_at *at, struct aside *a,
		       const char **why)
{
	struct tool_object obj = { .fh = at->fh, .attr = at->attr };
	struct cp_hash source;
	int err;

	hash_begin(&source, (struct copy_end){ .fd = a->fd, .name = a->name,
					      .from = a->have });
	if (!f->w.t->o->checksum)
		source.end.take = NULL;
	err = copy_get(f->w.t, &obj, &source.end);
	*why = obj.changed ? cp_changed :
	       source.end.reached < at->attr.attr.size ? too_short : NULL;
	if (err == TOOL_OK)
		err = check_local(at, aside_settle(a));
	return err == TOOL_OK && f->w.t->o->checksum && !*why ?
	       verify_copy(f->w.t, at, a, &source) : err;
}

/* The copy gets the time when the copying began, by the coarse clock that file
 * systems use: a source that changes later is newer.  A source that no longer
 * has its listed attributes can have changed earlier, even after an earlier
 * run received a part.  Its copy gets the listed time, so that --continue
 * copies it again. */
static int fetch_data(struct fetch *f, struct walk_at *at, struct aside *a)
{
	struct timespec begun;
	const char *why;
	int err;

	clock_gettime(CLOCK_REALTIME_COARSE, &begun);
	err = fetch_bytes(f, at, a, &why);
	if (err == TOOL_OK)
		err = check_local(at, set_mtime(a->fd, why ?
						&at->attr.attr.mtime : &begun));
	if (err == TOOL_OK)
		err = set_attributes(f, at, a->fd, a->there && !f->w.t->o->
				     preserve ? a->mode : copied_mode(f, at));
	if (err == TOOL_OK)
		err = check_local(at, aside_place(a));
	if (err != TOOL_OK) {
		fputs("gannet-nfs: the copy of ", say_stream());
		walk_put_path(say_stream(), at);
		fputs(" is not complete\n", say_stream());
	}
	return err == TOOL_OK && why ? walk_refuse(at, why) : err;
}

static int fetch_file(struct fetch *f, struct walk_at *at)
{
	const char *name = local_name(f, at);
	struct cp_file source;
	struct aside a;
	int err, last;

	cp_file_there(&at->attr, &source);
	if (f->w.t->o->checksum && is_fetched(f, at, &source)) {
		bool same = false;

		err = compare_fetched(f, at, &same);
		if (same)
			progress_skip(f->w.t, source.size);
		if (err != TOOL_OK || same)
			return err;
	}
	err = aside_open(&a, local_dir(f, at), name, &source,
			 f->w.t->o->resume && !f->w.t->o->checksum);
	if (err < 0)
		return complain_local(at, err);
	progress_skip(f->w.t, a.have);
	err = fetch_data(f, at, &a);
	/* --continue finds the part that a lost server has sent. */
	last = aside_close(&a, f->w.t->o->resume || err == TOOL_UNREACHABLE);
	return last < 0 && err == TOOL_OK ? complain_local(at, last) : err;
}

static int fetch_link(struct fetch *f, struct walk_at *at)
{
	char target[NFS_PATH_MAX];
	struct nfsc_op op = { .kind = NFS_OP_READLINK, .fh = at->fh,
			      .data = target, .count = sizeof(target) - 1 };
	int dir = local_dir(f, at);
	const char *name = local_name(f, at);
	struct stat st;

	if (session_do(f->w.t->s, &op) < 0 || op.status != 0)
		return walk_complain(at, op.err, op.status);
	target[op.got] = '\0';
	if (strlen(target) != op.got || op.got == 0)
		return walk_refuse(at, "the server has a link that leads "
				   "nowhere");
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISLNK(st.st_mode))
		unlinkat(dir, name, 0);
	return symlinkat(target, dir, name) < 0 ?
	       complain_local(at, -errno) : TOOL_OK;
}

static int run_fetch(struct job *job, struct tool *t)
{
	struct fetch_job *j = container_of(job, struct fetch_job, job);
	int err, last;

	j->f.w.t = t;
	err = j->at.attr.attr.type == VFS_REG ? fetch_file(&j->f, &j->at) :
	      fetch_link(&j->f, &j->at);
	last = release_copied(&j->f, j->dir);
	free(j);
	return MAX(err, last);
}

static int start_fetch(struct fetch *f, struct walk_at *at)
{
	struct fetch_job *j = calloc(1, sizeof(*j) + at->len + 1);

	if (!j)
		return complain_local(at, -ENOMEM);
	j->job.run = run_fetch;
	j->job.bytes = at->attr.attr.type == VFS_REG ?
		jobs_memory(f->w.t, at->attr.attr.size) : 0;
	j->f = *f;
	j->dir = dir_above(at);
	keep_at(at, &j->at, j->name);
	return jobs_start(f->w.t, &j->job);
}

/* --dry-run: nothing is made, but copies that an earlier run made are looked
 * at. */
static int name_one(const struct fetch *f, const struct walk_at *at,
		    const char *end)
{
	walk_put_path(f->w.t->o->out, at);
	fputs(end, f->w.t->o->out);
	return TOOL_OK;
}

static bool fetch_skip(struct walk *w, const struct walk_at *at)
{
	return cp_is_excluded(w->t->o, at->name);
}

/* A walk that adds sizes up, for the line of progress. */
struct sum {
	struct walk w;
	uint64_t    bytes;
};

static int sum_visit(struct walk *w, struct walk_at *at, enum walk_step step)
{
	struct sum *s = (struct sum *)w;

	if (step == WALK_FILE && at->attr.attr.type == VFS_REG)
		s->bytes += at->attr.attr.size;
	return TOOL_OK;
}

static uint64_t sum_there(struct tool *t, const struct tool_object *obj)
{
	struct sum s = { .w = { .t = t, .visit = sum_visit, .silent = true,
				.skip = fetch_skip } };

	if (!progress_is_shown(t->o) ||
	    (obj->attr.attr.type == VFS_DIR && !t->o->recursive))
		return 0;
	tool_walk(&s.w, obj, t->url.path);
	return s.bytes;
}

static int fetch_visit(struct walk *w, struct walk_at *at, enum walk_step step)
{
	struct fetch *f = (struct fetch *)w;
	uint32_t type = at->attr.attr.type;
	struct cp_file source;
	int err;

	if (step == WALK_LEAVE)
		return leave_dir(f, at);
	if (step == WALK_ENTER) {
		err = enter_dir(f, at);
		return err == TOOL_OK && w->t->o->dry_run ?
		       name_one(f, at, "/\n") : err;
	}
	if (type != VFS_REG && type != VFS_LNK)
		return walk_refuse(at, no_copy);
	cp_file_there(&at->attr, &source);
	if (type == VFS_REG && is_fetched(f, at, &source) &&
	    (!w->t->o->checksum || w->t->o->dry_run)) {
		progress_skip(w->t, source.size);
		return TOOL_OK;
	}
	return w->t->o->dry_run ? name_one(f, at, "\n") : start_fetch(f, at);
}

/* Where it goes: into a directory under its own name, else to that name. */
static int open_target(struct fetch *f, const char *to,
		       char path[PATH_MAX], const char *name)
{
	char *slash;
	size_t len;

	/* As a directory's own name this leads to it. */
	f->name = f->w.t->o->as ? "." : name;
	f->into = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->into >= 0)
		return TOOL_OK;
	if (f->w.t->o->into || (errno != ENOENT && errno != ENOTDIR))
		return tool_complain_here(to, -errno);
	len = strlen(to);
	if (len >= PATH_MAX)
		return tool_complain(to, -ENAMETOOLONG, 0);
	memcpy(path, to, len + 1);
	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	slash = strrchr(path, '/');
	f->name = slash ? slash + 1 : path;
	if (slash && slash == path)
		f->into = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	else if (slash)
		*slash = '\0';
	if (f->into < 0)
		f->into = open(slash ? path : ".", O_RDONLY | O_DIRECTORY |
			       O_CLOEXEC);
	return f->into < 0 ? tool_complain_here(to, -errno) : TOOL_OK;
}

static int fetch_tree(struct fetch *f, const struct tool_object *obj)
{
	struct tool *t = f->w.t;
	int err, last;

	jobs_open(t, t->o->parallel ? t->o->parallel : jobs_for(t));
	err = tool_walk(&f->w, obj, t->url.path);
	last = jobs_close(t);
	/* A walk that has lost the server leaves no directory. */
	while (f->in) {
		struct copied_dir *dir = f->in;

		f->in = dir->up;
		release_copied(f, dir);
	}
	return MAX(err, last);
}

int cp_get(const char *url, const char *to, const struct tool_options *o)
{
	struct fetch f = { .w.visit = fetch_visit, .w.skip = fetch_skip };
	struct tool_object obj;
	char path[PATH_MAX];
	const char *slash;
	struct tool t;
	int err = tool_open(&t, url, o);

	if (err != TOOL_OK)
		return err;
	f.w.t = &t;
	f.mask = umask(0);
	umask(f.mask);
	/* A link that is named is followed, as those on the way to it. */
	err = tool_find(&t, &obj, true, false);
	slash = strrchr(t.url.path, '/');
	if (err == TOOL_OK && !nfsc_name_is_good(slash + 1,
						 (uint32_t)strlen(slash + 1)))
		slash = "/export";
	if (err == TOOL_OK)
		err = open_target(&f, to, path, slash + 1);
	if (err == TOOL_OK && f.name == slash + 1 &&
	    obj.attr.attr.type == VFS_DIR &&
	    faccessat(f.into, f.name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		cp_nothing_to_continue(o, f.name, to);
	if (err == TOOL_OK) {
		progress_begin(&t, url, sum_there(&t, &obj));
		err = fetch_tree(&f, &obj);
		progress_end(&t, err);
		close(f.into);
	}
	tool_close(&t);
	return err;
}
