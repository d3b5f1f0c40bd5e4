/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * roll - the entries of a directory when it was last read for a lost file.
 *
 * The table says in which directory a file was seen.  If the file has another
 * name there now, or none, only reading the whole directory shows it, which can
 * take a while.  So its inode numbers and names are kept, and answer for every
 * other file that is lost in it.
 *
 * A roll says "it is not here" for one ctime of its directory only.  That time
 * has to be well past before the reading begins, and the same after it: then
 * every later change, by any process, gives the directory another ctime, and it
 * is read again.  A name that the roll has is worth a look at any time.
 *
 * A directory that changes all the time has no such ctime.  After some readings
 * the call that reads believes its own: it is wrong about a file that a local
 * process renames in the very moment of reading, and a client that looks up the
 * new name finds that again.
 *
 * One thread at a time reads, for each tree, and each directory rests for
 * twenty times as long as its reading took.  Meanwhile clients are told to come
 * again (JUKEBOX): no thread waits here, and nothing is read on a poller.
 */
#include "vfs/posix/attr.h"
#include "vfs/posix/table/table.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/clock.h"

STAT(posix_rolls, "directories read in search of lost files");
STAT(posix_roll_later, "calls put off until a directory was read");
STAT(posix_roll_large, "directories too large to be searched for lost files");

#define BUF_SIZE	32768
#define ROLL_BYTES	((size_t)48 << 20)	/* a million names */
#define PAUSE_FACTOR	20
/* A directory that was changed just now is read again after it, ... */
#define CHANGED_PAUSE_NS	(60ull * NS_PER_MS)
/* ... but a reading is believed after so many in a row that found a change. */
#define CHANGED_MAX	8
#define UNUSED_NS	(60ull * NS_PER_S)

struct entry {
	uint64_t ino;
	uint32_t name;			/* in ->names */
};

struct posix_roll {
	struct vfs_handle dir;
	struct entry	*entry;		/* by inode number */
	size_t		 n, room;
	char		*names;
	size_t		 len, names_room;
	bool		 large;		/* it is not all here */
	uint64_t	 again;		/* not to be read before: clock_ns() */
	uint64_t	 used;
	struct timespec	 ctime;		/* of the directory, before reading */
	/* Readings in a row, with this one, during or right before which the
	 * directory changed.  0: the ctime stands for this roll. */
	unsigned	 changed;
};

static void roll_free(struct posix_roll *r)
{
	if (!r)
		return;
	free(r->entry);
	free(r->names);
	free(r);
}

static size_t bytes(const struct posix_roll *r)
{
	return r->room * sizeof(*r->entry) + r->names_room;
}

/* Room for one more: -ENOMEM, or -EFBIG when it is too many. */
static int roll_grow(struct posix_roll *r, size_t name_len)
{
	struct entry *entry;
	char *names;

	if (r->n == r->room) {
		r->room = r->room ? 2 * r->room : 64;
		entry = realloc(r->entry, r->room * sizeof(*entry));
		if (!entry)
			return -ENOMEM;
		r->entry = entry;
	}
	while (r->len + name_len > r->names_room) {
		r->names_room = r->names_room ? 2 * r->names_room : 1024;
		names = realloc(r->names, r->names_room);
		if (!names)
			return -ENOMEM;
		r->names = names;
	}
	return bytes(r) > ROLL_BYTES ? -EFBIG : 0;
}

static int add_all(struct posix_roll *r, const char *buf, long len)
{
	const struct dirent64 *d;
	int err = 0;

	for (long pos = 0; pos < len && err == 0; pos += d->d_reclen) {
		size_t size;

		d = (const void *)(buf + pos);
		size = strlen(d->d_name) + 1;
		err = roll_grow(r, size);
		if (err < 0)
			break;
		r->entry[r->n].ino = d->d_ino;
		r->entry[r->n++].name = (uint32_t)r->len;
		memcpy(r->names + r->len, d->d_name, size);
		r->len += size;
	}
	return err;
}

static int by_ino(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

static int roll_read_dir(struct posix_node *dir, struct posix_roll *r)
{
	int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char *buf = malloc(BUF_SIZE);
	int err = 0;
	long len;

	if (fd < 0)
		err = -errno;
	else if (!buf)
		err = -ENOMEM;
	while (err == 0) {
		len = syscall(SYS_getdents64, fd, buf, BUF_SIZE);
		if (len < 0)
			err = -errno;
		if (len <= 0)
			break;
		err = add_all(r, buf, len);
	}
	free(buf);
	if (fd >= 0)
		close(fd);
	if (err == 0 && r->n > 0)
		qsort(r->entry, r->n, sizeof(*r->entry), by_ino);
	return err;
}

/* The first one of @ino, or NULL. */
static const struct entry *first_of(const struct posix_roll *r, uint64_t ino)
{
	size_t low = 0, high = r->n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (r->entry[mid].ino < ino)
			low = mid + 1;
		else
			high = mid;
	}
	return low < r->n && r->entry[low].ino == ino ? &r->entry[low] : NULL;
}

/* Under the lock. */
static struct posix_roll **roll_slot_of(struct posix_rolls *rs,
					const struct vfs_handle *dir)
{
	for (unsigned i = 0; i < POSIX_ROLLS; i++)
		if (rs->roll[i] && posix_handle_same(&rs->roll[i]->dir, dir))
			return &rs->roll[i];
	return NULL;
}

/* Under the lock: a free place, with room for @fresh. */
static struct posix_roll **roll_make_room(struct posix_rolls *rs,
					  const struct posix_roll *fresh)
{
	struct posix_roll **oldest, **empty;
	size_t sum;

	do {
		oldest = empty = NULL;
		sum = bytes(fresh);
		for (unsigned i = 0; i < POSIX_ROLLS; i++) {
			struct posix_roll **r = &rs->roll[i];

			if (!*r)
				empty = r;
			else if (!oldest || (*r)->used < (*oldest)->used)
				oldest = r;
			sum += *r ? bytes(*r) : 0;
		}
		if (empty && sum <= POSIX_ROLLS_BYTES)
			return empty;
		roll_free(*oldest);
		*oldest = NULL;
		atomic_fetch_sub(&rs->count, 1);
	} while (true);
}

/* True if the directory, whose stat is @st now, holds what the roll says. */
static bool is_current(const struct posix_roll *r, const struct stat *st)
{
	return r->changed == 0 && posix_same_time(&st->st_ctim, &r->ctime);
}

/* Under the lock: looks @h up in the roll.  0: it is perhaps @name, the @i-th
 * of its names; -ENOENT: it is not here; -EAGAIN: it can't tell. */
static int consult(struct posix_roll *r, const struct vfs_handle *h,
		   const struct stat *st, unsigned i, struct posix_name *name)
{
	const struct entry *e = first_of(r, posix_handle_ino(h));
	const char *s;

	r->used = clock_ns();
	if (r->large)
		return r->used < r->again ? -ENOENT : -EAGAIN;
	if (e && e + i < r->entry + r->n && e[i].ino == e->ino) {
		s = r->names + e[i].name;
		posix_name_set(name, (struct vfs_name){ s, strlen(s) });
		return 0;
	}
	/* Its names there belong to other files now, or it came later. */
	return e || !is_current(r, st) ? -EAGAIN : -ENOENT;
}

int posix_roll_ask(struct posix_rolls *rs, const struct posix_node *dir,
		   const struct vfs_handle *h, unsigned i,
		   struct posix_name *name)
{
	struct posix_roll **r;
	struct stat st;
	int err;

	/* Before finding the roll, because another thread can replace it. */
	err = posix_fstat(dir->fd, &st);
	if (err < 0)
		return err;
	mutex_lock(&rs->lock);
	r = roll_slot_of(rs, &dir->handle);
	err = r ? consult(*r, h, &st, i, name) : -EAGAIN;
	mutex_unlock(&rs->lock);
	return err;
}

/* If this thread may read @dir now, a new roll: then it has to read.  Else
 * NULL. */
static struct posix_roll *roll_begin(struct posix_rolls *rs,
				     struct posix_node *dir)
{
	struct posix_roll **old, *fresh = calloc(1, sizeof(*fresh));

	if (!fresh)
		return NULL;
	fresh->dir = dir->handle;
	mutex_lock(&rs->lock);
	old = roll_slot_of(rs, &dir->handle);
	if (rs->fresh || (old && clock_ns() < (*old)->again)) {
		mutex_unlock(&rs->lock);
		free(fresh);
		return NULL;
	}
	fresh->changed = old ? (*old)->changed : 0;
	rs->fresh = fresh;
	atomic_fetch_add(&rs->count, 1);
	mutex_unlock(&rs->lock);
	return fresh;
}

static void roll_end(struct posix_fs *fs, struct posix_roll *fresh, bool keep)
{
	struct posix_rolls *rs = &fs->table->rolls;
	struct posix_roll **old;

	mutex_lock(&rs->lock);
	rs->fresh = NULL;
	old = roll_slot_of(rs, &fresh->dir);
	if (old) {
		roll_free(*old);
		*old = NULL;
		atomic_fetch_sub(&rs->count, 1);
	}
	if (keep) {
		*roll_make_room(rs, fresh) = fresh;
	} else {
		roll_free(fresh);
		atomic_fetch_sub(&rs->count, 1);
	}
	mutex_unlock(&rs->lock);
	if (keep)
		crew_run(&fs->cache.sweep);	/* which frees it */
}

/* Reads @dir, and notes whether its ctime identifies the state that was
 * read. */
static int read_current(struct posix_node *dir, struct posix_roll *r)
{
	struct stat before, after;
	int err = posix_fstat(dir->fd, &before);
	bool settled = err == 0 && posix_settled(&before);

	if (err == 0)
		err = roll_read_dir(dir, r);
	if (err < 0)
		return err;
	r->ctime = before.st_ctim;
	if (settled && posix_fstat(dir->fd, &after) == 0 &&
	    posix_same_time(&after.st_ctim, &before.st_ctim))
		r->changed = 0;
	else
		r->changed++;
	return 0;
}

int posix_roll_read(struct posix_fs *fs, struct posix_node *dir)
{
	struct posix_roll *fresh = roll_begin(&fs->table->rolls, dir);
	uint64_t start = clock_ns();
	bool believed;
	int err;

	if (!fresh) {
		stat_inc(posix_roll_later);
		return -ETIMEDOUT;
	}
	stat_inc(posix_rolls);
	err = read_current(dir, fresh);
	fresh->large = err == -EFBIG;
	if (fresh->large) {
		stat_inc(posix_roll_large);
		free(fresh->entry);
		free(fresh->names);
		fresh->entry = NULL;
		fresh->names = NULL;
		fresh->n = fresh->room = fresh->len = fresh->names_room = 0;
		err = 0;
	}
	fresh->used = clock_ns();
	believed = fresh->changed == 0 || fresh->changed > CHANGED_MAX;
	fresh->again = fresh->used + (fresh->used - start) * PAUSE_FACTOR;
	if (!believed)
		fresh->again = MAX(fresh->again,
				   fresh->used + CHANGED_PAUSE_NS);
	roll_end(fs, fresh, err == 0);
	return err < 0 ? err : believed;
}

void posix_rolls_age(struct posix_rolls *rs)
{
	uint64_t now;

	if (atomic_load(&rs->count) == 0)
		return;
	mutex_lock(&rs->lock);
	now = clock_ns();		/* after each ->used */
	for (unsigned i = 0; i < POSIX_ROLLS; i++)
		if (rs->roll[i] && now - rs->roll[i]->used > UNUSED_NS &&
		    now > rs->roll[i]->again) {
			roll_free(rs->roll[i]);
			rs->roll[i] = NULL;
			atomic_fetch_sub(&rs->count, 1);
		}
	mutex_unlock(&rs->lock);
}

void posix_rolls_free(struct posix_rolls *rs)
{
	for (unsigned i = 0; i < POSIX_ROLLS; i++)
		roll_free(rs->roll[i]);
}
