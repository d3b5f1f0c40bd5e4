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
		err = send_attributes(t, h, &made->fh, &as);
	if (err != TOOL_OK || !changed)
		return err;
	fputs("gannet-nfs: ", say_stream());
	here_put(say_stream(), h);
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
		here_leave_out(h, incomplete);
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
	here_leave_out(h, incomplete);
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
		return here_complain(h, -errno, 0);
	if (!S_ISREG(st.st_mode))
		return here_leave_out(h, here_no_copy);
	err = tool_lookup(t, dir, name, &at);
	if (err == TOOL_OK && at.fh.len > 0 && at.attr.attr.type != VFS_REG)
		err = here_complain(h, 0, at.attr.attr.type == VFS_DIR ?
				    NFS_ISDIR : NFS_EXIST);
	if (err == TOOL_OK && cp_file_here(&st, &source) &&
	    send_is_done(t, &at, &source)) {
		progress_skip(t, source.size);
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
		return here_complain(h, -errno, 0);
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
		return here_complain(h, n < 0 ? -errno : -ENAMETOOLONG, 0);
	target[n] = '\0';
	if (session_do(t->s, &op) == 0 && op.status == NFS_EXIST &&
	    link_is_sent(t, dir, name, target))
		return TOOL_OK;
	if (op.err < 0 || op.status != 0)
		return here_complain(h, op.err, op.status);
	return TOOL_OK;
}

