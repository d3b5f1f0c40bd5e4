/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * search - a file that the table has lost, anywhere in the tree.
 *
 * A local process moved it to another directory, or removed it, which can't
 * be told apart without looking: the tree is walked for its inode number.
 * The way to it is recorded, so that what was moved with it is found, too.
 *
 * A walk sees so many entries and lasts so long, and no more.  After it there
 * is none for many times as long as it took: clients with handles of removed
 * files cost a twentieth of a processor at most.
 */
#include "vfs/posix/posix.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

STAT(posix_searches, "walks through a tree for a file that was moved");
STAT(posix_search_found, "files found again in another directory");
STAT(posix_search_ended, "walks that ended at their bound");

#define ENTRIES_MAX	200000
#define WALK_NS		1000000000ll
#define DEPTH_MAX	64
#define PAUSE_FACTOR	20
#define BUF_SIZE	32768

struct walk {
	struct posix_fs	*fs;
	const struct vfs_handle *h;
	long		 left;		/* entries to look at */
	int64_t		 until;		/* CLOCK_MONOTONIC, ns */
	int		 depth;		/* of the path */
	struct posix_name path[DEPTH_MAX];
};

static bool is_wanted(const struct walk *w, int dir_fd,
		      const struct dirent64 *d)
{
	struct vfs_handle found;

	return d->d_ino == posix_handle_ino(w->h) &&
	       posix_handle_peek(w->fs, dir_fd, d->d_name, &found) == 0 &&
	       posix_handle_same(&found, w->h);
}

/* To be read, or -errno: it is no directory, or of another file system. */
static int open_dir(const struct walk *w, int dir_fd, const char *name)
{
	int path = posix_open_name(w->fs, dir_fd, name, false);
	struct stat st;
	int fd;

	if (path < 0)
		return path;
	fd = posix_fstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
	     st.st_dev == w->fs->dev ?
	     openat(path, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	close(path);
	return fd;
}

static bool walk_dir(struct walk *w, int dir_fd);

/* True: found, and the path leads there. */
static bool walk_entry(struct walk *w, int dir_fd, const struct dirent64 *d)
{
	bool found;
	int fd;

	posix_name_set(&w->path[w->depth], (struct vfs_name){
		d->d_name, strlen(d->d_name) });
	w->depth++;
	if (is_wanted(w, dir_fd, d))
		return true;
	if ((d->d_type == DT_DIR || d->d_type == DT_UNKNOWN) &&
	    w->depth < DEPTH_MAX) {
		fd = open_dir(w, dir_fd, d->d_name);
		found = fd >= 0 && walk_dir(w, fd);
		if (fd >= 0)
			close(fd);
		if (found)
			return true;
	}
	w->depth--;
	return false;
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool walk_dir(struct walk *w, int dir_fd)
{
	char *buf = malloc(BUF_SIZE);
	bool found = false;
	long len, pos;

	while (buf && !found && w->left > 0) {
		len = syscall(SYS_getdents64, dir_fd, buf, BUF_SIZE);
		if (len <= 0)
			break;
		if (posix_now() > w->until)
			w->left = 0;
		for (pos = 0; pos < len && !found && w->left > 0;) {
			const struct dirent64 *d = (const void *)(buf + pos);

			pos += d->d_reclen;
			w->left--;
			found = !is_dots(d->d_name) &&
				walk_entry(w, dir_fd, d);
		}
	}
	free(buf);
	return found;
}

/* Down the path, node by node, each recorded. */
static int retrace(struct walk *w, struct posix_node **out)
{
	struct posix_node *n = w->fs->root, *next;
	struct stat st;
	int fd, err = 0;

	vfs_node_get(&n->node);
	for (int i = 0; i < w->depth && err == 0; i++) {
		fd = posix_open_name(w->fs, n->fd, w->path[i].s, false);
		err = fd < 0 ? fd : posix_node_adopt(w->fs, fd, false, &st,
						     &next);
		if (err == 0) {
			posix_seen(next, n, w->path[i].s);
			vfs_node_put(&n->node);
			n = next;
		}
	}
	if (err == 0 && posix_handle_same(&n->handle, w->h)) {
		*out = n;
		return 0;
	}
	vfs_node_put(&n->node);
	return -ESTALE;
}

static bool search_tree(struct walk *w)
{
	int fd = openat(w->fs->root->fd, ".", O_RDONLY | O_DIRECTORY |
			O_CLOEXEC);
	bool found = fd >= 0 && walk_dir(w, fd);

	if (fd >= 0)
		close(fd);
	return found;
}

int posix_search(struct posix_fs *fs, const struct vfs_handle *h,
		 struct posix_node **out)
{
	int64_t start = posix_now();
	struct walk *w;
	int err = -ESTALE;

	if (start < fs->search_again)
		return -ESTALE;
	w = malloc(sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->fs = fs;
	w->h = h;
	w->left = ENTRIES_MAX;
	w->until = start + WALK_NS;
	w->depth = 0;
	stat_inc(posix_searches);
	if (search_tree(w))
		err = retrace(w, out);
	if (err == 0)
		stat_inc(posix_search_found);
	else if (w->left <= 0)
		stat_inc(posix_search_ended);
	free(w);
	fs->search_again = posix_now() + (posix_now() - start) * PAUSE_FACTOR;
	return err;
}
