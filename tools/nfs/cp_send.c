/* SPDX-License-Identifier: BSD-2-Clause */
/* cp_send - a file or a link that is sent to a server. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/nfs/cp.h"
#include "tools/nfs/say.h"

static const char incomplete[] = "there is no complete copy of it";

/* The file that is written aside. */
struct sent_part {
	char		   aside[ASIDE_NAME];
	struct tool_object made;
	uint64_t	   from;	/* so many bytes are there already */
};

static int say_of(const struct here *h, const char *why)
{
	fputs("gannet-nfs: ", say_stream());
	here_put(say_stream(), h);
	fprintf(say_stream(), ": %s\n", why);
	return TOOL_FAILED;
}

int send_attributes(struct tool *t, const struct here *h,
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
		return here_complain(h, op.err, op.status);
	if (op.no_mtime) {
		fputs("gannet-nfs: ", say_stream());
		here_put(say_stream(), h);
		fputs(": its time of the last change is before 1970 or after "
		      "2106, and not kept\n", say_stream());
		return TOOL_FAILED;
	}
	return TOOL_OK;
}

bool send_is_done(const struct tool *t, const struct tool_object *at,
		  const struct cp_file *source)
{
	struct cp_file copy;

	if (!t->o->resume || at->fh.len == 0)
		return false;
	cp_file_there(&at->attr, &copy);
	return cp_is_done(source, &copy, t->o->preserve);
}

/* Another file in its place is also a change: it can be older than the copy,
 * which --continue would take for a copy of it. */
static bool has_changed(const struct here *h, int fd, const struct stat *was)
{
	struct stat is, named;

	if (fstatat(h->dir, h->name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (named.st_dev != was->st_dev || named.st_ino != was->st_ino))
		return true;
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
	bool changed = has_changed(h, fd, st);
	struct stat as = *st;
	int err = TOOL_OK;

	if (!t->o->preserve)
		as.st_mode = made->attr.attr.mode;
	if (t->o->preserve || changed)
		err = send_attributes(t, h, &made->fh, &as);
	if (err != TOOL_OK || !changed)
		return err;
	return say_of(h, cp_changed);
}

static int verify_sent(struct tool *t, const struct here *h,
		       const struct tool_object *made, struct cp_hash *source)
{
	struct tool_object whole = *made;
	struct cp_hash copy;
	int err;

	/* Blocks within the size are asked for many at a time. */
	whole.attr.attr.size = source->end.from + source->bytes;
	err = hash_there(t, &whole, source->end.from, &copy);
	if (err != TOOL_OK || hash_is_same(source, &copy))
		return err;
	return say_of(h, cp_differs);
}

/* Continues the part that an earlier copy has left, as far as it is the same,
 * or makes one. */
static int begin_part(struct tool *t, const struct tool_object *at,
		      const struct cp_hash *source, uint32_t mode,
		      struct sent_part *p)
{
	struct nfsc_op op = { .kind = NFS_OP_SET, .mode = mode,
			      .no_mtime = true };
	int err = TOOL_OK;

	p->made.fh.len = 0;
	p->from = 0;
	if (t->o->resume)
		err = there_find(t, &at->parent, p->aside, source->end.size,
				 &p->made);
	if (err == TOOL_OK && p->made.fh.len > 0)
		err = cp_same_beginning(t, &p->made, source->end.fd, &p->from);
	if (err == TOOL_UNREACHABLE)
		return err;
	if (p->from == 0)
		return there_make(t, &at->parent, p->aside, mode, &p->made);
	op.fh = p->made.fh;
	if (session_do(t->s, &op) < 0 || op.status != 0)
		return tool_complain(t->text, op.err, op.status);
	p->made.attr.attr.mode = mode;
	return TOOL_OK;
}

/* All of it, aside. */
static int write_part(struct tool *t, const struct here *h,
		      struct cp_hash *source, const struct sent_part *p)
{
	int err;

	progress_skip(t, p->from);
	source->end.from = p->from;
	hash_begin(source, source->end);
	if (!t->o->checksum)
		source->end.take = NULL;
	err = copy_put(t, &p->made.fh, &source->end);
	return err == TOOL_OK && t->o->checksum ?
	       verify_sent(t, h, &p->made, source) : err;
}

/* Writes the file aside, and gives it the name that @at has. */
static int send_data(struct tool *t, const struct here *h, int fd,
		     const struct tool_object *at, const struct stat *st)
{
	bool kept = at->fh.len > 0 && !t->o->preserve;
	struct cp_hash hash = { .end = { .fd = fd, .name = h->name } };
	struct cp_file source;
	struct sent_part p;
	int err;

	cp_file_here(st, &source);
	cp_aside_name(&source, at->name, p.aside);
	hash.end.size = source.size;
	err = begin_part(t, at, &hash, (kept ? at->attr.attr.mode :
					st->st_mode) & 0777, &p);
	if (err != TOOL_OK) {
		here_leave_out(h, incomplete);
		return err;
	}
	err = write_part(t, h, &hash, &p);
	if (err == TOOL_OK) {
		int last = end_sent_file(t, h, fd, &p.made, st);

		err = last == TOOL_UNREACHABLE ? last :
		      there_place(t, &p.made, at->name);
		if (err == TOOL_OK)
			return last;
	}
	if (err != TOOL_UNREACHABLE)
		there_drop(t, &p.made);
	here_leave_out(h, incomplete);
	return err;
}

/* TOOL_OK, and *@done says whether nothing is to be sent. */
static int check_sent(struct tool *t, const struct here *h, int fd,
		      const struct tool_object *at, bool *done)
{
	struct cp_file source;
	struct stat st;
	int err;

	*done = fstat(fd, &st) == 0 && cp_file_here(&st, &source) &&
		send_is_done(t, at, &source);
	if (!*done || !t->o->checksum)
		return TOOL_OK;
	err = cp_compare(t, at, fd, done);
	if (err == TOOL_OK && !*done)
		say_of(h, cp_again);
	return err;
}

static int send_open(struct tool *t, const struct here *h, int fd,
		     const struct nfs3_fh *dir, const char *name)
{
	struct tool_object at;
	struct stat st;
	bool done;
	int err;

	if (fstat(fd, &st) < 0)
		return here_fail(h, -errno);
	if (!S_ISREG(st.st_mode))
		return here_leave_out(h, here_no_copy);
	err = tool_lookup(t, dir, name, &at);
	if (err == TOOL_OK && at.fh.len > 0 && at.attr.attr.type != VFS_REG)
		err = here_complain(h, 0, at.attr.attr.type == VFS_DIR ?
				    NFS_ISDIR : NFS_EXIST);
	if (err == TOOL_OK)
		err = check_sent(t, h, fd, &at, &done);
	if (err == TOOL_OK && done) {
		progress_skip(t, (uint64_t)st.st_size);
		return TOOL_OK;
	}
	if (err == TOOL_OK)
		return send_data(t, h, fd, &at, &st);
	here_leave_out(h, incomplete);
	return err;
}

int send_file(struct tool *t, const struct here *h,
	      const struct nfs3_fh *dir, const char *name)
{
	int fd = openat(h->dir, h->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
			O_CLOEXEC), err;

	if (fd < 0)
		return here_fail(h, -errno);
	err = send_open(t, h, fd, dir, name);
	close(fd);
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

int send_link(struct tool *t, const struct here *h,
	      const struct nfs3_fh *dir, const char *name)
{
	char target[NFS_PATH_MAX];
	ssize_t n = readlinkat(h->dir, h->name, target, sizeof(target));
	struct nfsc_op op = { .kind = NFS_OP_SYMLINK, .fh = *dir,
			      .name = name, .target = target };

	if (n < 0 || n == sizeof(target))
		return here_fail(h, n < 0 ? -errno : -ENAMETOOLONG);
	target[n] = '\0';
	if (session_do(t->s, &op) == 0 && op.status == NFS_EXIST &&
	    link_is_sent(t, dir, name, target))
		return TOOL_OK;
	if (op.err < 0 || op.status != 0)
		return here_complain(h, op.err, op.status);
	return TOOL_OK;
}

