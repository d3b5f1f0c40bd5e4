/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cp_aside - a local file that is written aside, and gets its name at the end.
 *
 * The directory can be one that others write to, who then can guess the name:
 * a part is only continued if it is this user's own file, with no second name.
 * A lock keeps two copies of one file from writing to one part.
 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "lib/hash.h"
#include "tools/nfs/cp.h"
#include "tools/nfs/say.h"

enum { TRIES = 10 };

const char cp_changed[] = "it changed while it was copied; copy it again";
const char cp_differs[] = "the copy differs from it";
const char cp_again[] = "its earlier copy differs, and is made again";

static bool nfs_time(const struct timespec *t, struct timespec *out)
{
	*out = (struct timespec){ (uint32_t)t->tv_sec, t->tv_nsec };
	return t->tv_sec >= 0 && t->tv_sec <= UINT32_MAX;
}

bool cp_file_here(const struct stat *st, struct cp_file *out)
{
	bool changed, data;

	*out = (struct cp_file){ .fsid = st->st_dev, .fileid = st->st_ino,
				 .size = (uint64_t)st->st_size };
	data = nfs_time(&st->st_mtim, &out->mtime);
	changed = nfs_time(&st->st_ctim, &out->ctime);
	return data && changed;
}

void cp_file_there(const struct nfs3_attr *a, struct cp_file *out)
{
	*out = (struct cp_file){ .fsid = a->fsid,
				 .fileid = a->attr.fileid,
				 .size = a->attr.size,
				 .mtime = a->attr.mtime,
				 .ctime = a->attr.ctime };
}

static int time_cmp(const struct timespec *a, const struct timespec *b)
{
	if (a->tv_sec != b->tv_sec)
		return a->tv_sec < b->tv_sec ? -1 : 1;
	return a->tv_nsec < b->tv_nsec ? -1 : a->tv_nsec > b->tv_nsec;
}

/* A file that was put in the source's place has an old mtime, and a new
 * ctime. */
bool cp_is_done(const struct cp_file *source, const struct cp_file *copy,
		bool preserve)
{
	if (source->size != copy->size ||
	    time_cmp(&copy->ctime, &source->ctime) <= 0)
		return false;
	if (time_cmp(&copy->mtime, &source->mtime) == 0)
		return true;
	return !preserve && time_cmp(&copy->mtime, &source->ctime) > 0;
}

void cp_aside_name(const struct cp_file *s, const char *name,
		   char out[ASIDE_NAME])
{
	const uint64_t words[] = {
		s->fsid, s->fileid, s->size,
		(uint64_t)s->mtime.tv_sec, (uint64_t)s->mtime.tv_nsec,
		(uint64_t)s->ctime.tv_sec, (uint64_t)s->ctime.tv_nsec,
		hash_bytes(name, strlen(name)),
	};

	snprintf(out, ASIDE_NAME, ".gannet-%016" PRIx64 ".part",
		 hash_bytes(words, sizeof(words)));
}

void cp_nothing_to_continue(const struct tool_options *o, const char *name,
			    const char *into)
{
	if (o->quiet || !o->resume)
		return;
	fputs("gannet-nfs: ", say_stream());
	tool_put_name(say_stream(), into);
	fputs(" has no ", say_stream());
	tool_put_name(say_stream(), name);
	fputs(" to continue, and gets one (if it is the earlier copy itself, "
	      "it goes on with -T)\n", say_stream());
}

bool cp_is_excluded(const struct tool_options *o, const char *name)
{
	for (size_t i = 0; i < EXCLUDES_MAX && o->exclude[i]; i++)
		if (fnmatch(o->exclude[i], name, 0) == 0)
			return true;
	return false;
}

/* Whether the open file still has the name aside, or got its final one
 * meanwhile. */
static bool part_has_name(const struct aside *a, const struct stat *st)
{
	struct stat now;

	return fstatat(a->dir, a->aside, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	       now.st_dev == st->st_dev && now.st_ino == st->st_ino;
}

/* Where the system gives files another owner (vfat, sshfs, a squashed NFS), a
 * part that is found is not known to be this user's: it is made again. */
static int check_found(const struct aside *a, const struct stat *st)
{
	if (!S_ISREG(st->st_mode) || st->st_nlink > 1)
		return -EPERM;
	if (st->st_uid == geteuid())
		return 0;
	return unlinkat(a->dir, a->aside, 0) < 0 ? -EPERM : -EAGAIN;
}

/* -EAGAIN: it was another's, and is over. */
static int open_part(struct aside *a)
{
	int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	bool found = false;
	struct stat st;
	int err = 0;

	a->fd = openat(a->dir, a->aside, flags | O_CREAT | O_EXCL, 0600);
	if (a->fd < 0 && errno == EEXIST) {
		found = true;
		a->fd = openat(a->dir, a->aside, flags);
	}
	if (a->fd < 0)
		return found && errno == ENOENT ? -EAGAIN : -errno;
	if (flock(a->fd, LOCK_EX | LOCK_NB) < 0)
		err = errno == EWOULDBLOCK ? -EBUSY : 0;
	if (err == 0 && fstat(a->fd, &st) < 0)
		err = -errno;
	else if (err == 0 && !part_has_name(a, &st))
		err = -EAGAIN;
	else if (err == 0 && found)
		err = check_found(a, &st);
	if (err < 0)
		close(a->fd);
	else
		a->have = (uint64_t)st.st_size;
	return err;
}

int aside_open(struct aside *a, int dir, const char *name,
	       const struct cp_file *source, bool resume)
{
	int err = -EAGAIN;
	struct stat st;

	*a = (struct aside){ .dir = dir, .name = name, .fd = -1 };
	a->there = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!a->there && errno != ENOENT)
		return -errno;
	if (a->there && !S_ISREG(st.st_mode))
		return S_ISLNK(st.st_mode) ? -ELOOP : -EEXIST;
	a->mode = a->there ? st.st_mode & 0777 : 0;
	cp_aside_name(source, name, a->aside);
	for (int i = 0; i < TRIES && err == -EAGAIN; i++)
		err = open_part(a);
	if (err < 0)
		return err;
	if (!resume || a->have > source->size) {
		a->have = 0;
		err = ftruncate(a->fd, 0) < 0 ? -errno : 0;
	}
	if (err == 0 && lseek(a->fd, (off_t)a->have, SEEK_SET) < 0)
		err = -errno;
	if (err < 0)
		close(a->fd);
	return err;
}

/* NFS, CIFS and FUSE can write when a file is closed, and report only then that
 * the disk is full, or gone.  Each descriptor's close does that. */
int aside_settle(struct aside *a)
{
	int other = fcntl(a->fd, F_DUPFD_CLOEXEC, 0);
	int err = other < 0 || close(other) < 0 ? -errno : 0;

	if (err < 0)
		aside_drop(a);
	return err;
}

int aside_place(struct aside *a)
{
	if (renameat(a->dir, a->aside, a->dir, a->name) < 0)
		return -errno;
	a->aside[0] = '\0';
	return 0;
}

void aside_drop(struct aside *a)
{
	unlinkat(a->dir, a->aside, 0);
	a->aside[0] = '\0';
}

int aside_close(struct aside *a, bool keep)
{
	if (a->aside[0] && !keep)
		aside_drop(a);
	return close(a->fd) < 0 ? -errno : 0;
}
