/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/posix/attr.h"
#include "vfs/posix/cred.h"
#include "vfs/posix/own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/thread.h"
#include "lib/util.h"

#define DEPTH_MAX	4096
/* Directories within it that are looked into, one in the other. */
#define LEVELS		4

struct posix_own {
	/* Set once. */
	int	 fd;
	dev_t	 dev;
	ino_t	 ino;
	/* Under the lock of all: */
	struct posix_own *next;
	unsigned refs;
	/* The files in it, as of this ctime, sorted. */
	struct timespec ctime;
	struct own_file {
		dev_t dev;		/* an overlay's may be others */
		ino_t ino;
	} *files;
	size_t	 n, room;
};

/* One for the process, as a rule. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct posix_own *all;

static void own_free(struct posix_own *own)
{
	if (own->fd >= 0)
		close(own->fd);
	free(own->files);
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

bool posix_own_is_on(const struct posix_own *own, dev_t dev)
{
	return own->dev == dev;
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

/* ---- the files in it, under the lock */

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

/* False: not all could be noted. */
static bool note_files(struct posix_own *own, int at, const char *name,
		       int levels)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
			O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *d;
	struct stat st;
	bool whole = dir || (fd < 0 && errno == ENOENT);	/* it is gone */

	if (!dir && fd >= 0)
		close(fd);
	while (dir && whole && (d = readdir(dir))) {
		if (d->d_name[0] == '.' && (!d->d_name[1] ||
		    (d->d_name[1] == '.' && !d->d_name[2])))
			continue;
		if (fstatat(fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    (S_ISDIR(st.st_mode) && st.st_dev != own->dev))
			continue;	/* gone, or a mount */
		whole = note_file(own, &st);
		if (whole && S_ISDIR(st.st_mode) && levels > 1)
			whole = note_files(own, fd, d->d_name, levels - 1);
	}
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

/* Reads the directory again if it has changed.  0 or -errno. */
static int know_files(struct posix_own *own)
{
	struct stat st;
	uint32_t caller;
	bool whole;

	if (fstat(own->fd, &st) < 0)
		return -errno;
	if (own->n && posix_same_time(&own->ctime, &st.st_ctim))
		return 0;
	if (thread_must_not_wait)
		return -EAGAIN;
	own->n = 0;
	/* No caller may look into the directory. */
	caller = posix_cred_lend_server();
	whole = note_files(own, own->fd, ".", LEVELS);
	posix_cred_take_back(caller);
	if (own->n)
		qsort(own->files, own->n, sizeof(*own->files), by_number);
	/* The next change may get the same ctime, if that is new. */
	own->ctime = whole && posix_settled(&st) ? st.st_ctim :
					 (struct timespec){ .tv_nsec = -1 };
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

int posix_own_is(struct posix_own *own, const struct stat *st, bool by_name)
{
	int is;

	if (likely(!own))
		return 0;
	if (st->st_ino == own->ino && st->st_dev == own->dev)
		return 1;
	if (by_name && (S_ISDIR(st->st_mode) || st->st_nlink < 2))
		return 0;
	if (!thread_must_not_wait)
		mutex_lock(&lock);
	else if (pthread_mutex_trylock(&lock) != 0)
		return -EAGAIN;
	is = own_has(own, st);
	mutex_unlock(&lock);
	return is;
}

bool posix_own_holds(struct posix_own *own, int fd)
{
	struct stat st, below = { 0 };
	int up = fcntl(fd, F_DUPFD_CLOEXEC, 0), next;
	bool holds = false;

	for (int i = 0; up >= 0 && i < DEPTH_MAX && !holds; i++) {
		if (fstat(up, &st) < 0 || (i > 0 && st.st_ino == below.st_ino &&
					   st.st_dev == below.st_dev))
			break;		/* the top */
		holds = posix_own_is(own, &st, i > 0) != 0;
		below = st;
		next = openat(up, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(up);
		up = next;
	}
	if (up >= 0)
		close(up);
	return holds;
}
