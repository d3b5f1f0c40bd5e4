/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resolve - from a handle to its file by way of the table.
 *
 * Up: from the handle to its parent's, and so on, to a directory that is in the
 * cache or the root.  Down again: each name is opened in the directory before
 * it and has to be the file that its handle names.  Where a local process
 * renamed it within its directory, that is searched (roll.c).  A file that one
 * moved elsewhere is lost until a client looks up its name there.
 *
 * overlayfs copies a directory of a lower layer when a file in it is first
 * changed.  The copy has the same inode number and another birth time, so the
 * directory's own handle is stale.  The files in it are not: the way to them
 * goes through the copy.
 */
#include "vfs/posix/attr.h"
#include "vfs/posix/cache.h"
#include "vfs/posix/cred.h"
#include "vfs/posix/node.h"
#include "vfs/posix/own.h"
#include "vfs/posix/table/table.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

STAT(posix_repaired, "files found again after a local process moved them");
STAT(posix_lost, "files not found where they were seen last");

#define PLACES		16
#define DEPTH_MAX	4096
#define TRIES		20
/* The most names of a file in one directory that are looked at. */
#define NAMES_MAX	16

struct step {
	struct vfs_handle h;
	struct posix_name name;
	bool through;		/* to something below it */
};

static uint64_t place_hash(const struct posix_node *dir, const char *name)
{
	return hash_values(hash_keyed(dir->handle.data, dir->handle.len),
			   hash_keyed(name, strlen(name))) | 1;
}

bool posix_seen_before(struct posix_node *n, struct posix_node *dir,
		       const char *name)
{
	return !posix_fs_of(n)->table ||
	       atomic_load(&n->place) == place_hash(dir, name);
}

/* Is @h's file @name in @dir?  True also if that can't be seen. */
static bool is_at(struct posix_fs *fs, const struct vfs_handle *h,
		  struct posix_node *dir, const char *name)
{
	struct vfs_handle found;
	int err = posix_handle_peek(fs, dir->fd, name, &found);

	if (err < 0)
		return err != -ENOENT && err != -ENOTDIR;
	return posix_handle_same(&found, h);
}

void posix_check_place(struct posix_fs *fs, const struct vfs_handle *h,
		       struct posix_node *dir, const char *name)
{
	while (!is_at(fs, h, dir, name)) {
		posix_table_del(fs->table, h, &dir->handle, name);
		/* A call that moved it back just now has told the table
		 * before. */
		if (!is_at(fs, h, dir, name))
			return;
		posix_table_add(fs->table, h, &dir->handle, name);
	}
}

/*
 * A directory has one place, so delete the others: the way to files below it
 * must be found.  But keep a place that a rename made since the look-up.
 */
static int record_dir(struct posix_fs *fs, const struct vfs_handle *h,
		      struct posix_node *dir, const char *name)
{
	struct posix_table *t = fs->table;
	int err = -EAGAIN;

	for (int i = 0; i < TRIES && err == -EAGAIN; i++) {
		unsigned moves = posix_table_moves(t);

		if (!is_at(fs, h, dir, name))
			return -ENOENT;
		err = posix_table_set(t, h, &dir->handle, name, moves);
	}
	if (err == -EAGAIN) {
		posix_table_add(t, h, &dir->handle, name);
		posix_check_place(fs, h, dir, name);
	}
	return err;
}

int posix_record(struct posix_fs *fs, const struct vfs_handle *h,
		 struct posix_node *dir, const char *name, bool is_dir)
{
	return is_dir ? record_dir(fs, h, dir, name) :
	       posix_table_add(fs->table, h, &dir->handle, name);
}

void posix_seen(struct posix_node *n, struct posix_node *dir,
		const char *name)
{
	struct posix_fs *fs = posix_fs_of(n);
	uint64_t place = atomic_load(&n->place);

	if (n == fs->root || posix_seen_before(n, dir, name))
		return;
	/* Unless it was taken from there meanwhile: posix_unseen(). */
	if (posix_record(fs, &n->handle, dir, name, n->type == VFS_DIR) == 0)
		atomic_compare_exchange_strong(&n->place, &place,
					       place_hash(dir, name));
}

/* Sets a number that @n never had.  So a posix_seen() that began earlier
 * notices that its record is outdated. */
void posix_unseen(struct posix_node *n)
{
	static _Atomic uint64_t last;

	atomic_store(&n->place, atomic_fetch_add(&last, 2) + 2);
}

/*
 * An O_PATH descriptor of @name in @dir if that is @h's file.  -ENOENT: it is
 * another one; -ESTALE: and that has its inode number, so @h's is gone.  But a
 * directory with that number will do if the way leads @through it to a file,
 * since that is compared itself.
 */
static int open_same(struct posix_fs *fs, struct posix_node *dir,
		     const char *name, const struct vfs_handle *h, bool through)
{
	struct vfs_handle found;
	struct stat st;
	int fd, err;

	fd = posix_open_name(fs, dir->fd, name, false);
	if (fd < 0)
		return fd == -EXDEV ? -EACCES : fd;
	err = posix_fstat(fd, &st);
	if (err == 0)
		err = posix_handle_make(fs, fd, &st, &found);
	if (err == 0 && !posix_handle_same(&found, h)) {
		if (st.st_ino != posix_handle_ino(h))
			err = -ENOENT;
		else if (!through || !S_ISDIR(st.st_mode))
			err = -ESTALE;
	}
	if (err == 0)
		return fd;
	close(fd);
	return err;
}

/*
 * By the existing roll.  A descriptor, -ENOENT, or -EAGAIN.  Records all of the
 * file's names there in the table: the name that it was found by can be known
 * already, and be removed later, while another one replaces the lost name.
 */
static int by_roll(struct posix_fs *fs, struct posix_node *dir,
		   const struct vfs_handle *h, struct posix_name *name)
{
	struct posix_name next;
	int fd, found = -EAGAIN;

	for (unsigned i = 0; i < NAMES_MAX; i++) {
		fd = posix_roll_ask(&fs->table->rolls, dir, h, i, &next);
		if (fd < 0)
			return found >= 0 ? found : fd;
		fd = open_same(fs, dir, next.s, h, false);
		if (fd == -ENOENT || fd == -ENOTDIR)
			continue;
		/* -ESTALE: the inode number is another file's now. */
		if (fd < 0)
			return found >= 0 ? found : fd == -ESTALE ? -ENOENT :
			       fd;
		posix_record(fs, h, dir, next.s, false);
		if (found >= 0) {
			close(fd);
			continue;
		}
		found = fd;
		*name = next;
	}
	return found;
}

/*
 * Finds a name in @dir that leads to @h's file, sets @name, and records all
 * such names in the table.  A descriptor; -ENOENT: the file has none there; or
 * as posix_roll_read().
 */
static int find_in(struct posix_fs *fs, struct posix_node *dir,
		   const struct vfs_handle *h, struct posix_name *name)
{
	int err = 0, fd = by_roll(fs, dir, h, name);

	if (fd == -EAGAIN) {
		err = posix_roll_read(fs, dir);
		fd = err < 0 ? err : by_roll(fs, dir, h, name);
	}
	if (fd == -EAGAIN)
		return err ? -ENOENT : -ETIMEDOUT;
	if (fd >= 0)
		stat_inc(posix_repaired);
	return fd;
}

/* @s's file is not at its name in @dir, but perhaps @fd.  If it came back just
 * now, the table had heard of that, and hears of it again.  Returns @fd. */
static int forget_place(struct posix_fs *fs, struct posix_node *dir,
			const struct step *s, int fd)
{
	int back;

	posix_table_del(fs->table, &s->h, &dir->handle, s->name.s);
	back = open_same(fs, dir, s->name.s, &s->h, s->through);
	if (back < 0)
		return fd;
	posix_record(fs, &s->h, dir, s->name.s, false);
	if (fd >= 0)
		close(fd);
	return back;
}

/* Finds @s's node under its name in @dir or, with @repair, anywhere in @dir.
 * If it is not there, forgets the place, which avoids a second search. */
static int step_down(struct posix_fs *fs, struct posix_node *dir,
		     const struct step *s, bool repair,
		     struct posix_node **out)
{
	struct posix_name name = s->name;
	struct stat st;
	bool lost;
	int fd, err;

	fd = open_same(fs, dir, s->name.s, &s->h, s->through);
	lost = fd == -ENOENT || fd == -ENOTDIR || fd == -ESTALE;
	if (lost && !repair)
		return -ESTALE;
	if (lost && fd != -ESTALE)
		fd = find_in(fs, dir, &s->h, &name);
	/* The file might still be there: keep the place until the directory can
	 * be read. */
	if (lost && fd == -EACCES)
		return -ESTALE;
	/* Another caller might see it where this one does not. */
	if (lost && (fd >= 0 || (!fs->as_caller &&
				 (fd == -ENOENT || fd == -ESTALE))))
		fd = forget_place(fs, dir, s, fd);
	if (fd == -ENOENT || fd == -ESTALE) {
		stat_inc(posix_lost);
		return -ESTALE;
	}
	if (fd < 0)
		return fd;
	err = posix_own_name(dir, name.s, strlen(name.s), false);
	if (err < 0) {
		close(fd);
		return -ESTALE;
	}
	err = posix_node_adopt(fs, fd, false, &st, out);
	if (err == 0)
		posix_seen(*out, dir, name.s);
	return err == -EXDEV ? -EACCES : err;
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
	w->step[w->n++] = (struct step){ *h, *name, true };
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
		*out = posix_cache_find(fs, &at);
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

/* Finds the file by the table; sets *@known if the table has a place. */
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
		struct step s = { *h, places[i].name, false };

		err = resolve_dir(fs, &places[i].parent, repair, &dir);
		if (err)
			continue;
		err = step_down(fs, dir, &s, repair, out);
		vfs_node_put(&dir->node);
	}
	free(places);
	return err;
}

static int resolve_once(struct posix_fs *fs, const struct vfs_handle *h,
			struct posix_node **out)
{
	bool known;
	int err;

	/* First without repair: one of a file's several names can be
	 * unchanged. */
	err = by_table(fs, h, false, out, &known);
	if (err == -ESTALE && known)
		err = by_table(fs, h, true, out, &known);
	return err;
}

/* The table learns of a rename after it happened; in between the file can't be
 * found.  So it is only gone if no rename was under way meanwhile. */
int posix_resolve(struct posix_fs *fs, const struct vfs_handle *h,
		  struct posix_node **out)
{
	unsigned moves;
	int err;

	posix_cred_server(fs);
	for (int i = 0; i < TRIES; i++) {
		moves = posix_table_moves(fs->table);
		err = resolve_once(fs, h, out);
		if (err != -ESTALE || !posix_table_moved(fs->table, moves))
			return err;
		/* The thread that renames might not be running. */
		nanosleep(&(struct timespec){ .tv_nsec = i * 1000000l }, NULL);
	}
	return -ETIMEDOUT;
}
