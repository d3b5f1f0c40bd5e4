/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resolve - from a handle to its file by way of the table.
 *
 * Up: from the handle to its parent's, and so on, to a directory that is in
 * the cache or the root.  Down again: each name is opened in the directory
 * before it and has to be the file that its handle names.  Where a local
 * process renamed it within its directory, the directory is searched; where
 * it moved it elsewhere, the tree (search.c).
 */
#include "vfs/posix/posix.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

STAT(posix_repaired, "files found again after a local process moved them");
STAT(posix_lost, "files not found where they were seen last");

#define PLACES		16
#define DEPTH_MAX	4096
#define SEARCH_MAX	1000000		/* entries */
#define SEARCH_BUF	32768

struct step {
	struct vfs_handle h;
	struct posix_name name;
};

static uint64_t place_hash(const struct posix_node *dir, const char *name)
{
	return (posix_hash(dir->handle.data, dir->handle.len) ^
		posix_hash(name, strlen(name)) * 3) | 1;
}

bool posix_seen_before(struct posix_node *n, struct posix_node *dir,
		       const char *name)
{
	return !posix_fs_of(n)->table ||
	       atomic_load(&n->place) == place_hash(dir, name);
}

void posix_seen(struct posix_node *n, struct posix_node *dir,
		const char *name)
{
	struct posix_fs *fs = posix_fs_of(n);

	if (n == fs->root || posix_seen_before(n, dir, name))
		return;
	if (posix_table_add(fs->table, &n->handle, &dir->handle, name,
			    n->type == VFS_DIR) == 0)
		atomic_store(&n->place, place_hash(dir, name));
}

void posix_seen_new(struct posix_node *n, struct posix_node *dir,
		    const char *name)
{
	struct posix_fs *fs = posix_fs_of(n);

	if (fs->table && posix_table_new(fs->table, &n->handle, &dir->handle,
					 name) == 0)
		atomic_store(&n->place, place_hash(dir, name));
}

/* An O_PATH descriptor of @name in @dir if that is @h's file. */
static int open_if_same(struct posix_fs *fs, struct posix_node *dir,
			const char *name, const struct vfs_handle *h)
{
	struct vfs_handle found;
	struct stat st;
	int fd, err;

	fd = posix_open_name(fs, dir->fd, name, false);
	if (fd < 0)
		return fd;
	err = posix_fstat(fd, &st);
	if (err == 0)
		err = posix_handle_make(fs, fd, &st, &found);
	if (err == 0 && !posix_handle_same(&found, h))
		err = -ENOENT;
	if (err == 0)
		return fd;
	close(fd);
	return err;
}

/* Looks for @h in what getdents64() returned; its name goes to @name. */
static int search_buf(struct posix_fs *fs, struct posix_node *dir,
		      const struct vfs_handle *h, const char *buf, long len,
		      struct posix_name *name)
{
	for (long pos = 0; pos < len;) {
		const struct dirent64 *d = (const void *)(buf + pos);
		int fd = -ENOENT;

		pos += d->d_reclen;
		if (d->d_ino == posix_handle_ino(h))
			fd = open_if_same(fs, dir, d->d_name, h);
		if (fd >= 0) {
			posix_name_set(name, (struct vfs_name){
				d->d_name, strlen(d->d_name) });
			return fd;
		}
	}
	return -ENOENT;
}

static int search(struct posix_fs *fs, struct posix_node *dir,
		  const struct vfs_handle *h, struct posix_name *name)
{
	long len, seen = 0;
	char *buf;
	int dir_fd, fd = -ENOENT;

	dir_fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return -errno;
	buf = malloc(SEARCH_BUF);
	if (!buf) {
		close(dir_fd);
		return -ENOMEM;
	}
	while (fd == -ENOENT && seen < SEARCH_MAX) {
		len = syscall(SYS_getdents64, dir_fd, buf, SEARCH_BUF);
		if (len <= 0)
			break;
		seen += len / 24;	/* no entry is smaller */
		fd = search_buf(fs, dir, h, buf, len, name);
	}
	free(buf);
	close(dir_fd);
	return fd;
}

/* @h's node, being @name in @dir or, with @repair, at least somewhere in it;
 * under fs->lost then. */
static int step_down(struct posix_fs *fs, struct posix_node *dir,
		     const struct step *s, bool repair,
		     struct posix_node **out)
{
	struct posix_name name = s->name;
	struct stat st;
	int fd, err;

	fd = open_if_same(fs, dir, s->name.s, &s->h);
	if ((fd == -ENOENT || fd == -ENOTDIR) && !repair)
		return -ESTALE;
	if (fd == -ENOENT || fd == -ENOTDIR) {
		fd = search(fs, dir, &s->h, &name);
		if (fd >= 0) {
			stat_inc(posix_repaired);
			posix_table_add(fs->table, &s->h, &dir->handle,
					name.s, false);
		}
		if (fd >= 0 || fd == -ENOENT)
			posix_table_del(fs->table, &s->h, &dir->handle,
					s->name.s);
	}
	if (fd == -ENOENT) {
		stat_inc(posix_lost);
		return -ESTALE;
	}
	if (fd < 0)
		return fd;
	err = posix_node_adopt(fs, fd, false, &st, out);
	if (err == 0)
		posix_seen(*out, dir, name.s);
	return err;
}

/* The way from a directory that is in use down to another one. */
struct way {
	struct step *step;
	int n;
};

static int way_add(struct way *w, const struct vfs_handle *h,
		   const struct posix_name *name)
{
	struct step *step;

	if (w->n == DEPTH_MAX)
		return -ESTALE;		/* a ring of old entries */
	if ((w->n & (w->n - 1)) == 0) {
		step = realloc(w->step, (w->n ? w->n * 2 : 1) * sizeof(*step));
		if (!step)
			return -ENOMEM;
		w->step = step;
	}
	w->step[w->n].h = *h;
	w->step[w->n++].name = *name;
	return 0;
}

/* Climbs from @h to a node that is in use, counted. */
static int climb(struct posix_fs *fs, const struct vfs_handle *h,
		 struct way *w, struct posix_node **out)
{
	struct vfs_handle at = *h;
	struct posix_place place;
	int n;

	for (;;) {
		if (posix_handle_is_root(&at)) {
			*out = fs->root;
			vfs_node_get(&fs->root->node);
			return 0;
		}
		*out = posix_cache_find(&fs->cache, &at);
		if (*out)
			return 0;
		n = posix_table_find(fs->table, &at, &place, 1);
		if (n == 0)
			return -ESTALE;
		if (n > 0)
			n = way_add(w, &at, &place.name);
		if (n < 0)
			return n;
		at = place.parent;
	}
}

static int resolve_dir(struct posix_fs *fs, const struct vfs_handle *h,
		       bool repair, struct posix_node **out)
{
	struct way w = { NULL, 0 };
	struct posix_node *n = NULL, *next = NULL;
	int err;

	err = climb(fs, h, &w, &n);
	while (err == 0 && w.n > 0) {
		err = step_down(fs, n, &w.step[--w.n], repair, &next);
		vfs_node_put(&n->node);
		n = next;
	}
	free(w.step);
	if (err == 0)
		*out = n;
	return err;
}

/* By what the table has; *@known: it has something. */
static int by_table(struct posix_fs *fs, const struct vfs_handle *h,
		    bool repair, struct posix_node **out, bool *known)
{
	struct posix_place *places;
	struct posix_node *dir;
	int n, err = -ESTALE;

	places = calloc(PLACES, sizeof(*places));
	if (!places)
		return -ENOMEM;
	n = posix_table_find(fs->table, h, places, PLACES);
	*known = n > 0;
	if (n < 0)
		err = n;
	for (int i = 0; i < n && err == -ESTALE; i++) {
		struct step s = { *h, places[i].name };

		err = resolve_dir(fs, &places[i].parent, repair, &dir);
		if (err)
			continue;
		err = step_down(fs, dir, &s, repair, out);
		vfs_node_put(&dir->node);
	}
	free(places);
	return err;
}

/* Even what the table does not know waits here: someone may just be about to
 * find it. */
static int find_lost(struct posix_fs *fs, const struct vfs_handle *h,
		     struct posix_node **out)
{
	bool known;
	int err;

	mutex_lock(&fs->lost);
	err = by_table(fs, h, true, out, &known);
	if (err == -ESTALE && known)
		err = posix_search(fs, h, out);
	mutex_unlock(&fs->lost);
	return err;
}

int posix_resolve(struct posix_fs *fs, const struct vfs_handle *h,
		  struct posix_node **out)
{
	bool known;
	int err;

	posix_cred_server(fs);
	err = by_table(fs, h, false, out, &known);
	return err == -ESTALE ? find_lost(fs, h, out) : err;
}
