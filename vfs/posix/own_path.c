/* SPDX-License-Identifier: BSD-2-Clause */
/* own_path - the server's own paths, and every name that they go through. */
#include "vfs/posix/attr.h"
#include "vfs/posix/cred.h"
#include "vfs/posix/own.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/mounts.h"
#include "lib/thread.h"

#define LINKS_MAX	40

struct posix_own_path {
	/* Set once. */
	char	*path;			/* absolute */
	struct posix_own *dir;		/* counted; NULL: not found */
	int	 error;			/* then: why; -errno */
	dev_t	 dev;			/* of the directory that it is in */
	bool	 elsewhere;		/* another file system is mounted on
					 * it */
	dev_t	 dir_dev;		/* of @dir */
	ino_t	 dir_ino;
	struct place {
		char	*at;		/* the path of a directory, no links */
		char	*name;		/* in it */
		bool	 last;
	} *places;
	size_t	 n;
	/* Under the lock: */
	struct posix_own_path *next;
	unsigned refs;
};

_Atomic uint64_t posix_own_devs, posix_own_dirs;
_Atomic uint64_t posix_own_names[2][POSIX_OWN_BITS / 64];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct posix_own_path *all;

/* ---- the names that a path goes through */

static int place_add(struct posix_own_path *p, const char *at, const char *name,
		     bool last)
{
	struct place *more = reallocarray(p->places, p->n + 1, sizeof(*more));
	struct place new = { strdup(*at ? at : "/"), strdup(name), last };

	if (more)
		p->places = more;
	if (more && new.at && new.name) {
		p->places[p->n++] = new;
		return 0;
	}
	free(new.at);
	free(new.name);
	return -ENOMEM;
}

/* Where a walk along a path is: the directory @at ("": "/"), before @rest. */
struct path_walk {
	char	*at;
	char	*rest;
	unsigned links;
};

static int walk_set(char **text, char *new)
{
	if (!new)
		return -ENOMEM;
	free(*text);
	*text = new;
	return 0;
}

static char *joined(const char *a, const char *between, const char *b)
{
	char *text;

	return asprintf(&text, "%s%s%s", a, between, b) < 0 ? NULL : text;
}

/* Goes on to @name, or along the symbolic link that it is. */
static int walk_to(struct path_walk *w, const char *name)
{
	char *next = joined(w->at, "/", name), link[PATH_MAX];
	ssize_t len = next ? readlink(next, link, sizeof(link) - 1) : -1;
	int err = 0;

	if (!next || len < 0 || w->links++ == LINKS_MAX)
		return walk_set(&w->at, next);
	free(next);
	link[len] = '\0';
	if (link[0] == '/')
		err = walk_set(&w->at, strdup(""));
	return err ? err : walk_set(&w->rest, joined(link, "/", w->rest));
}

static int walk_up(struct path_walk *w)
{
	char *slash = strrchr(w->at, '/');

	if (slash)
		*slash = '\0';
	return 0;
}

/* Takes the first name off w->rest.  NULL: no name is left, or no memory. */
static char *path_first(struct path_walk *w)
{
	size_t skip = strspn(w->rest, "/");
	size_t len = strcspn(w->rest + skip, "/");
	char *name = len ? strndup(w->rest + skip, len) : NULL;

	if (name)
		memmove(w->rest, w->rest + skip + len,
			strlen(w->rest + skip + len) + 1);
	return name;
}

static int note_places(struct posix_own_path *p)
{
	struct path_walk w = { .at = strdup(""), .rest = strdup(p->path) };
	int err = w.at && w.rest ? 0 : -ENOMEM;
	char *name;

	while (err == 0 && (name = path_first(&w))) {
		if (strcmp(name, "..") == 0) {
			err = walk_up(&w);
		} else if (strcmp(name, ".") != 0) {
			err = place_add(p, w.at, name,
					!w.rest[strspn(w.rest, "/")]);
			if (err == 0)
				err = walk_to(&w, name);
		}
		free(name);
	}
	if (err == 0 && w.rest[strspn(w.rest, "/")])
		err = -ENOMEM;
	free(w.at);
	free(w.rest);
	return err;
}

/* ---- all of them */

static void own_path_free(struct posix_own_path *p)
{
	posix_own_put(p->dir);
	for (size_t i = 0; i < p->n; i++) {
		free(p->places[i].at);
		free(p->places[i].name);
	}
	free(p->places);
	free(p->path);
	free(p);
}

static void set_bit(_Atomic uint64_t *bits, unsigned bit)
{
	bits[bit / 64] |= UINT64_C(1) << bit % 64;
}

/* Under the lock. */
static void note_bits(const struct posix_own_path *p)
{
	set_bit(&posix_own_devs, p->dev & 63);
	if (p->dir) {
		set_bit(&posix_own_devs, p->dir_dev & 63);
		set_bit(&posix_own_dirs, p->dir_ino & 63);
	}
	for (size_t i = 0; i < p->n; i++) {
		const struct place *at = &p->places[i];
		unsigned bit = posix_own_bit(at->name, strlen(at->name));

		set_bit(posix_own_names[true], bit);
		if (at->last)
			set_bit(posix_own_names[false], bit);
	}
}

/* The bits of removed paths stay: they only cost a look. */
static void own_path_enter(struct posix_own_path *p)
{
	mutex_lock(&lock);
	p->next = all;
	all = p;
	note_bits(p);
	mutex_unlock(&lock);
}

/* True if the list of mounts has another file system at the place than around
 * it. */
static bool is_mounted_on(const struct place *at)
{
	char *path = joined(at->at, at->at[1] ? "/" : "", at->name);
	uint64_t dev = path ? mounts_device(path) : 0;
	uint64_t around = mounts_device(at->at);

	free(path);
	return dev && around && dev != around;
}

static struct posix_own_path *own_path_make(const char *path)
{
	struct posix_own_path *p = calloc(1, sizeof(*p));
	char *here = *path == '/' ? strdup("") : getcwd(NULL, 0);
	const struct place *last;
	struct stat st;

	if (p && here)
		p->path = joined(here, *here ? "/" : "", path);
	free(here);
	if (!p || !p->path || note_places(p) < 0) {
		if (p)
			own_path_free(p);
		return NULL;
	}
	p->refs = 1;
	p->error = posix_own_get(p->path, &p->dir);
	if (p->dir)
		posix_own_id(p->dir, &p->dir_dev, &p->dir_ino);
	last = p->n ? &p->places[p->n - 1] : NULL;
	p->dev = last && stat(last->at, &st) == 0 ? st.st_dev : p->dir_dev;
	p->elsewhere = last && is_mounted_on(last);
	return p;
}

/* A link on the way can lead elsewhere since. */
static bool same_places(const struct posix_own_path *p,
			const struct posix_own_path *like)
{
	bool same = p->n == like->n;

	for (size_t i = 0; i < p->n && same; i++)
		same = strcmp(p->places[i].at, like->places[i].at) == 0 &&
		       strcmp(p->places[i].name, like->places[i].name) == 0;
	return same;
}

/* Another one of its path, if the path has not been replaced since. */
static struct posix_own_path *own_path_find(const struct posix_own_path *like)
{
	struct posix_own_path *p;

	mutex_lock(&lock);
	p = all;
	while (p && (p->dir != like->dir || p->dev != like->dev ||
		     p->elsewhere != like->elsewhere ||
		     strcmp(p->path, like->path) != 0 || !same_places(p, like)))
		p = p->next;
	if (p)
		p->refs++;
	mutex_unlock(&lock);
	return p;
}

int posix_own_path_get(const char *path, struct posix_own_path **out)
{
	struct posix_own_path *p = own_path_make(path);

	if (!p)
		return -ENOMEM;
	*out = own_path_find(p);
	if (*out) {
		own_path_free(p);
	} else {
		own_path_enter(p);
		*out = p;
	}
	return 0;
}

void posix_own_path_hold(struct posix_own_path *p)
{
	mutex_lock(&lock);
	p->refs++;
	mutex_unlock(&lock);
}

void posix_own_path_put(struct posix_own_path *p)
{
	struct posix_own_path **at = &all;
	bool last;

	if (!p)
		return;
	mutex_lock(&lock);
	last = --p->refs == 0;
	if (last) {
		while (*at != p)
			at = &(*at)->next;
		*at = p->next;
	}
	mutex_unlock(&lock);
	if (last)
		own_path_free(p);
}

int posix_own_path_error(const struct posix_own_path *p)
{
	return p->dir ? 0 : p->error;
}

/* The one behind @p, or the first, counted in place of @p. */
static struct posix_own_path *next_path(struct posix_own_path *p)
{
	struct posix_own_path *next;

	mutex_lock(&lock);
	next = p ? p->next : all;
	if (next)
		next->refs++;
	mutex_unlock(&lock);
	posix_own_path_put(p);
	return next;
}

char *posix_own_around(int fd)
{
	struct posix_own_path *p = NULL;
	char *path = NULL;

	while ((p = next_path(p)))
		if (!path && p->dir && posix_own_holds(p->dir, fd))
			path = strdup(p->path);
	return path;
}

/* ---- files, by number */

static int path_has(const struct posix_own_path *p, dev_t dev,
		    const struct stat *st)
{
	struct stat now;
	int is = p->dir && p->dir_dev == dev ? posix_own_has(p->dir, st) : 0;

	/* A path elsewhere can hang, and is not @st. */
	if (is || p->dev != dev || p->elsewhere)
		return is;
	return stat(p->path, &now) == 0 && now.st_dev == st->st_dev &&
	       now.st_ino == st->st_ino;
}

int posix_own_look(dev_t dev, const struct stat *st)
{
	struct posix_own_path *p = NULL;
	uint32_t caller;
	int is = 0;

	if (thread_must_not_wait)
		return -EAGAIN;
	caller = posix_cred_lend_server();
	while ((p = next_path(p)))
		if (is == 0)
			is = path_has(p, dev, st);
	posix_cred_take_back(caller);
	return is;
}

/* ---- names */

static bool place_is_named(const struct place *at, const char *name,
			   bool change)
{
	return (change || at->last) && strcasecmp(at->name, name) == 0;
}

/* True if a name in one of the paths is alike. */
static bool some_place_is_named(const char *name, bool change)
{
	bool is = false;

	mutex_lock(&lock);
	for (const struct posix_own_path *p = all; p && !is; p = p->next)
		for (size_t i = 0; i < p->n && !is; i++)
			is = place_is_named(&p->places[i], name, change);
	mutex_unlock(&lock);
	return is;
}

/*
 * Sets @st to the attributes of @name in @dir.  Returns 0; -EXDEV if something
 * is mounted there, which is not accessed, because it can hang; or another
 * -errno.
 */
static int stat_beneath(int dir, const char *name, struct stat *st)
{
	const struct open_how how = {
		.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_NO_XDEV,
	};
	int fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
	int err;

	if (fd < 0 && errno != ENOSYS && errno != EPERM)
		return -errno;
	if (fd < 0)		/* this system refuses the call */
		return fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) < 0 ?
		       -errno : 0;
	err = fstat(fd, st) < 0 ? -errno : 0;
	close(fd);
	return err;
}

/*
 * In a case-insensitive directory two names can be one.  No system call shows
 * that while neither exists, or while the server's can't be looked at, or while
 * something is mounted on both.
 */
static bool can_be_same_file(const struct posix_node *dir, const char *name,
			     const struct place *at)
{
	struct stat a, b;
	int is = stat_beneath(dir->fd, name, &a);
	int own = stat_beneath(dir->fd, at->name, &b);

	if (is == 0 && own == 0)
		return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
	if (is == -EXDEV || own == -EXDEV)
		return is == own;
	return is < 0 && own < 0;
}

/* True if the list of mounts has the place on another file system than @fs.
 * That one can hang, and need not be asked then. */
static bool is_elsewhere(const struct place *at, const struct posix_fs *fs)
{
	dev_t dev = fs->mount_dev ? mounts_device(at->at) : 0;

	return dev && dev != fs->mount_dev;
}

static bool place_is_in(const struct place *at, struct posix_node *dir,
			const char *name)
{
	struct stat st;

	return !is_elsewhere(at, posix_fs_of(dir)) &&
	       stat(at->at, &st) == 0 && st.st_ino == dir->ino &&
	       st.st_dev == posix_fs_of(dir)->dev &&
	       (strcmp(at->name, name) == 0 || can_be_same_file(dir, name, at));
}

int posix_own_look_name(struct posix_node *dir, const char *name, bool change)
{
	struct posix_own_path *p = NULL;
	uint32_t caller;
	bool is = false;

	if (!some_place_is_named(name, change))
		return 0;
	if (thread_must_not_wait)
		return -EAGAIN;
	caller = posix_cred_lend_server();
	while ((p = next_path(p)))
		for (size_t i = 0; i < p->n && !is; i++)
			is = place_is_named(&p->places[i], name, change) &&
			     place_is_in(&p->places[i], dir, name);
	posix_cred_take_back(caller);
	return is ? -EACCES : 0;
}

int posix_own_look_new(struct posix_node *dir, const char *name)
{
	int err = posix_own_look_name(dir, name, true);
	struct stat st;

	return err == -EACCES && posix_stat_name(dir, name, &st, NULL) == 0 &&
	       S_ISDIR(st.st_mode) ? -EEXIST : err;
}
