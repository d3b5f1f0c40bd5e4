/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/posix/attr.h"
#include "vfs/posix/cred.h"
#include "vfs/posix/own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/thread.h"
#include "lib/util.h"

#define DEPTH_MAX	4096
/* It, and directories within it that are looked into, one in the other. */
#define LEVELS		4

struct posix_own {
	/* Set once. */
	int	 fd;
	dev_t	 dev;
	ino_t	 ino;
	/* Under the lock of all: */
	struct posix_own *next;
	unsigned refs;
	/* Under its own, which is held while its disk is read: */
	pthread_mutex_t lock;
	/* Its directories, itself first, each as of its ctime; and the files in
	 * them, sorted.  A later file changes the ctime of its directory. */
	struct own_dir {
		char *path;
		struct timespec ctime;
	} *dirs;
	size_t	 ndirs;
	struct own_file {
		dev_t dev;		/* an overlay can have several */
		ino_t ino;
	} *files;
	size_t	 n, room;
};

/* One for the process, as a rule. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct posix_own *all;

static void own_forget(struct posix_own *own)
{
	for (size_t i = 0; i < own->ndirs; i++)
		free(own->dirs[i].path);
	own->ndirs = own->n = 0;
}

static void own_free(struct posix_own *own)
{
	if (own->fd >= 0)
		close(own->fd);
	own_forget(own);
	free(own->dirs);
	free(own->files);
	pthread_mutex_destroy(&own->lock);
	free(own);
}

static struct posix_own *own_find(dev_t dev, ino_t ino)
{
	struct posix_own *own = all;

	while (own && (own->dev != dev || own->ino != ino))
		own = own->next;
	return own;
}

/* Under the lock.  Takes @new. */
static struct posix_own *own_enter(struct posix_own *new)
{
	struct posix_own *own = own_find(new->dev, new->ino);

	if (own) {
		own_free(new);
	} else {
		new->next = all;
		all = own = new;
	}
	own->refs++;
	return own;
}

int posix_own_get(const char *dir, struct posix_own **out)
{
	struct posix_own *own = calloc(1, sizeof(*own));
	struct stat st;
	int err;

	if (!own)
		return -ENOMEM;
	pthread_mutex_init(&own->lock, NULL);
	own->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (own->fd < 0 || fstat(own->fd, &st) < 0) {
		err = -errno;
		own_free(own);
		return err;
	}
	own->dev = st.st_dev;
	own->ino = st.st_ino;
	mutex_lock(&lock);
	*out = own_enter(own);
	mutex_unlock(&lock);
	return 0;
}

void posix_own_id(const struct posix_own *own, dev_t *dev, ino_t *ino)
{
	*dev = own->dev;
	*ino = own->ino;
}

void posix_own_put(struct posix_own *own)
{
	struct posix_own **at = &all;

	if (!own)
		return;
	mutex_lock(&lock);
	if (--own->refs == 0) {
		while (*at != own)
			at = &(*at)->next;
		*at = own->next;
		own_free(own);
	}
	mutex_unlock(&lock);
}

/* ---- the files in it, under its lock */

static bool note_file(struct posix_own *own, const struct stat *st)
{
	size_t room = own->room ? own->room * 2 : 64;
	struct own_file *more;

	if (own->n == own->room) {
		more = reallocarray(own->files, room, sizeof(*more));
		if (!more)
			return false;
		own->files = more;
		own->room = room;
	}
	own->files[own->n++] = (struct own_file){ st->st_dev, st->st_ino };
	return true;
}

/* @path, as it is before it is read. */
static bool note_dir(struct posix_own *own, const char *path,
		     const struct stat *st)
{
	struct own_dir *more = reallocarray(own->dirs, own->ndirs + 1,
					    sizeof(*more));
	char *copy = strdup(path);

	if (more)
		own->dirs = more;
	if (!more || !copy) {
		free(copy);
		return false;
	}
	/* The next change can get the same ctime, if that is new. */
	own->dirs[own->ndirs++] = (struct own_dir){
		copy, posix_settled(st) ? st->st_ctim :
					  (struct timespec){ .tv_nsec = -1 },
	};
	return true;
}

static DIR *open_own_dir(const struct posix_own *own, const char *path,
			 struct stat *st)
{
	int fd = openat(own->fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
			O_CLOEXEC);
	DIR *dir = fd < 0 || fstat(fd, st) < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static bool own_is_dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

static bool note_files(struct posix_own *own, const char *path, int levels);

/* Notes @name in @dir, whose path is @path.  False: that failed. */
static bool note_entry(struct posix_own *own, DIR *dir, const char *path,
		       const char *name, int levels)
{
	struct stat st;
	char *below;
	bool whole;

	if (fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (S_ISDIR(st.st_mode) && st.st_dev != own->dev))
		return true;		/* gone, or a mount */
	whole = note_file(own, &st);
	if (!whole || !S_ISDIR(st.st_mode) || levels == 1)
		return whole;
	if (asprintf(&below, "%s/%s", path, name) < 0)
		return false;
	whole = note_files(own, below, levels - 1);
	free(below);
	return whole;
}

/* False: not all could be noted. */
static bool note_files(struct posix_own *own, const char *path, int levels)
{
	struct stat st = { 0 };
	DIR *dir = open_own_dir(own, path, &st);
	/* It is gone, or another user's: the server made nothing there. */
	bool whole = dir ? note_dir(own, path, &st) :
		     errno == ENOENT || errno == EACCES;
	const struct dirent *d;

	while (dir && whole && (d = readdir(dir)))
		if (!own_is_dots(d->d_name))
			whole = note_entry(own, dir, path, d->d_name, levels);
	if (dir)
		closedir(dir);
	return whole;
}

static int by_number(const void *a, const void *b)
{
	const struct own_file *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return x->dev < y->dev ? -1 : x->dev > y->dev;
}

/* True if no directory has changed since it was read. */
static bool own_is_current(const struct posix_own *own)
{
	struct stat st;
	int err;

	for (size_t i = 0; i < own->ndirs; i++) {
		err = i == 0 ? fstat(own->fd, &st) :
		      fstatat(own->fd, own->dirs[i].path, &st,
			      AT_SYMLINK_NOFOLLOW);
		if (err < 0 ||
		    !posix_same_time(&own->dirs[i].ctime, &st.st_ctim))
			return false;
	}
	return own->ndirs > 0;
}

/* Reads the directories again if one has changed.  0 or -errno. */
static int know_files(struct posix_own *own)
{
	bool whole = true;
	uint32_t caller;

	/* No caller can look into the directories. */
	caller = posix_cred_lend_server();
	if (!own_is_current(own)) {
		own_forget(own);
		whole = note_files(own, ".", LEVELS);
		if (own->n)
			qsort(own->files, own->n, sizeof(*own->files),
			      by_number);
	}
	if (!whole)
		own_forget(own);
	posix_cred_take_back(caller);
	/* For want of descriptors or memory: that passes. */
	return whole ? 0 : -ETIMEDOUT;
}

static int own_has(struct posix_own *own, const struct stat *st)
{
	const struct own_file file = { st->st_dev, st->st_ino };
	int err = know_files(own);

	if (err < 0)
		return err;
	return own->n > 0 && bsearch(&file, own->files, own->n, sizeof(file),
				     by_number);
}

int posix_own_has(struct posix_own *own, const struct stat *st)
{
	int is;

	if (st->st_ino == own->ino && st->st_dev == own->dev)
		return 1;
	mutex_lock(&own->lock);
	is = own_has(own, st);
	mutex_unlock(&own->lock);
	return is;
}

/* 1 if the directory @fd, or one that it lies in, is that; else 0.
 * -ETIMEDOUT: it can't be known now. */
static int lies_in(int fd, dev_t dev, ino_t ino)
{
	struct stat st, below = { 0 };
	int up = fcntl(fd, F_DUPFD_CLOEXEC, 0), next, is = 0;

	for (int i = 0; up >= 0 && i < DEPTH_MAX && !is; i++) {
		if (fstat(up, &st) < 0 || (i > 0 && st.st_ino == below.st_ino &&
					   st.st_dev == below.st_dev))
			break;		/* the top */
		is = st.st_ino == ino && st.st_dev == dev;
		below = st;
		next = openat(up, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(up);
		up = next;
	}
	/* -ETIMEDOUT: a temporary lack of descriptors.  A directory that the
	 * server can't search has no export above it. */
	if (up < 0)
		return is || errno == EACCES ? is : -ETIMEDOUT;
	close(up);
	return is;
}

bool posix_own_holds(struct posix_own *own, int fd)
{
	struct stat st;

	/* A directory in it is on its disk: no other waits for that. */
	return (fstat(fd, &st) == 0 && st.st_dev == own->dev &&
		posix_own_has(own, &st) != 0) ||
	       lies_in(fd, own->dev, own->ino) != 0;
}
