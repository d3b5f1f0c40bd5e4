/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listing - a directory's entries with attributes, kept for a moment.
 *
 * Many clients list one directory, and one client lists it again and again.
 * The second time that a directory is listed from end to end, what was found
 * is kept, and whoever lists it next is answered from there.
 *
 * The names and handles of a listing hold while the directory's ctime is the
 * same (as for dentry.c).  The attributes of an entry hold until
 *  - the server changes the file: each file has a count of changes, shared
 *    with few others and by all trees, which differs then;
 *  - a local process does: the directory is watched (watch.c);
 *  - the listing is a second old (LISTING_NS), which bounds for how long goes
 *    unnoticed what no watch tells of.
 * An entry that could change in other ways, a directory or a file with more
 * than one link, is asked about each time.  Times of access alone may be as
 * old as the listing.
 *
 * Listings are not changed once they are published.  Past half their time the
 * next one is made by whoever begins to list, while others still use this.
 * Those that are over, and streams' that nobody goes on with, are let go of by
 * the next call or the sweeper (cache.c), and the watch with the last one.
 */
#include "vfs/posix/posix.h"

#include <stdlib.h>

STAT(posix_listings, "listings of directories that were kept");
STAT(posix_listing_used, "calls that were answered from a kept listing");
STAT(posix_listing_asked, "entries of kept listings that were asked about");

#define LISTING_NS	1000000000ll
#define ENTRIES_MIN	64		/* fewer are not worth a watch */
#define BYTES_MAX	(64l << 20)	/* of all listings of a tree */

#define CHANGES_BITS	12

/* Of a file, and of few others: changes through the server, by any export. */
static struct changes {
	atomic_uint begun;
	atomic_uint ended;
} counts[1 << CHANGES_BITS];

struct kept {
	struct vfs_dirent e;
	unsigned	  changes;	/* the number at which they hold */
	bool		  holds;	/* its attributes do, until it changes */
};

struct posix_listing {
	struct ref	 ref;
	struct posix_fs	*fs;		/* borrowed */
	struct timespec	 ctime;		/* the directory's */
	int64_t		 begun;		/* CLOCK_MONOTONIC, ns */
	unsigned	 changes;	/* posix_watch's, then */
	struct posix_listed room, used;
	char		*names;		/* each terminated */
	/* By cookie: the number of the entry after it, or 0. */
	uint32_t	*after;
	unsigned	 after_bits;
	struct kept	 entry[];
};

static struct changes *changes_of(uint64_t ino)
{
	return &counts[ino * 0x9e3779b97f4a7c15u >> (64 - CHANGES_BITS)];
}

void posix_changing(const struct posix_node *n)
{
	atomic_fetch_add(&changes_of(n->ino)->begun, 1);
}

void posix_changed(const struct posix_node *n)
{
	atomic_fetch_add(&changes_of(n->ino)->ended, 1);
}

unsigned posix_changes(uint64_t ino)
{
	return atomic_load(&changes_of(ino)->begun);
}

/* As many ended as have begun afterwards: none was under way between. */
unsigned posix_changes_awaited(uint64_t ino)
{
	unsigned ended = atomic_load(&changes_of(ino)->ended);
	unsigned begun = posix_changes(ino);

	return ended == begun ? begun : begun - 1;
}

/* As much as there was the last time, and some more. */
static struct posix_listed room_for(const struct posix_listed *last)
{
	return (struct posix_listed){ last->entries + last->entries / 8,
				      last->names + last->names / 8 };
}

static long bytes_of(const struct posix_listed *room)
{
	return room->entries * (long)(sizeof(struct kept) +
				      4 * sizeof(uint32_t)) + room->names;
}

void posix_listing_put(struct posix_listing *l)
{
	if (!l || !ref_put(&l->ref))
		return;
	atomic_fetch_sub(&l->fs->listed_bytes, bytes_of(&l->room));
	free(l->names);
	free(l->after);
	free(l);
}

bool posix_listing_is_young(const struct posix_listing *l)
{
	return l && posix_now() - l->begun < LISTING_NS;
}

static bool make_tables(struct posix_listing *l)
{
	l->names = malloc((size_t)l->room.names);
	while (1l << l->after_bits < l->room.entries * 2)
		l->after_bits++;
	l->after = calloc(1ul << l->after_bits, sizeof(*l->after));
	return l->names && l->after;
}

/* Takes the room, which is reserved. */
static struct posix_listing *make(struct posix_fs *fs,
				  const struct posix_listed *room)
{
	struct posix_listing *l;

	l = malloc(sizeof(*l) + (size_t)room->entries * sizeof(l->entry[0]));
	if (!l) {
		atomic_fetch_sub(&fs->listed_bytes, bytes_of(room));
		return NULL;
	}
	*l = (struct posix_listing){ .fs = fs, .room = *room };
	ref_init(&l->ref);
	if (make_tables(l))
		return l;
	posix_listing_put(l);
	return NULL;
}

static bool reserve(struct posix_fs *fs, const struct posix_listed *room)
{
	long bytes = bytes_of(room);

	if (atomic_fetch_add(&fs->listed_bytes, bytes) + bytes <= BYTES_MAX)
		return true;
	atomic_fetch_sub(&fs->listed_bytes, bytes);
	return false;
}

/* Does somebody make one?  Not who went away half through.  Under the lock. */
static bool is_made(const struct posix_node *dir)
{
	return dir->listing_begun &&
	       posix_now() - dir->listing_begun < LISTING_NS;
}

/* Is this directory worth it, and what room does it want? */
static bool claim(struct posix_node *dir, struct posix_listed *room)
{
	bool first = false, mine = false;

	mutex_lock(&dir->lock);
	if (dir->listed.entries >= ENTRIES_MIN && !is_made(dir)) {
		dir->listing_begun = posix_now();
		dir->nmade++;
		*room = room_for(&dir->listed);
		first = !atomic_exchange(&dir->has_listings, true);
		mine = true;
	}
	mutex_unlock(&dir->lock);
	if (first)
		posix_cache_listed(&posix_fs_of(dir)->cache);
	return mine;
}

static void unclaim(struct posix_node *dir)
{
	mutex_lock(&dir->lock);
	dir->listing_begun = 0;
	dir->nmade--;
	mutex_unlock(&dir->lock);
}

/* Memory last: there is none for what is too large or not watched. */
static struct posix_listing *begin(struct posix_node *dir,
				   const struct posix_listed *room)
{
	struct posix_fs *fs = posix_fs_of(dir);
	struct posix_listing *l;
	unsigned reported;

	if (!reserve(fs, room))
		return NULL;
	if (!posix_watch_begin(dir, &reported)) {
		atomic_fetch_sub(&fs->listed_bytes, bytes_of(room));
		return NULL;
	}
	l = make(fs, room);
	if (l)
		l->changes = reported;
	return l;
}

struct posix_listing *posix_listing_begin(const struct vfs_ctx *ctx,
					  struct posix_node *dir,
					  const struct stat *st)
{
	struct posix_fs *fs = posix_fs_of(dir);
	int64_t begun = posix_now();
	struct posix_listed room;
	struct posix_listing *l;

	if (!fs->keeps_listings || fs->ordinals || !posix_settled(st) ||
	    posix_granted(ctx, dir, st, POSIX_X) != POSIX_X ||
	    !claim(dir, &room))
		return NULL;
	l = begin(dir, &room);
	if (l) {
		l->begun = begun;
		l->ctime = st->st_ctim;
	} else {
		unclaim(dir);
	}
	return l;
}

void posix_listing_drop(struct posix_node *dir, struct posix_listing **l)
{
	if (!*l)
		return;
	posix_listing_put(*l);
	*l = NULL;
	unclaim(dir);
}

/* Where the entry after @cookie is noted: 0, if none is. */
static uint32_t *after(const struct posix_listing *l, uint64_t cookie)
{
	uint64_t mask = (1ul << l->after_bits) - 1;
	uint64_t i = cookie * 0x9e3779b97f4a7c15u >> (64 - l->after_bits);

	while (l->after[i] && l->entry[l->after[i] - 1].e.cookie != cookie)
		i = (i + 1) & mask;
	return &l->after[i];
}

static bool add(struct posix_listing *l, const struct vfs_dirent *e,
		unsigned changes)
{
	struct kept *k = &l->entry[l->used.entries];
	uint32_t *next;

	if (l->used.entries == l->room.entries ||
	    l->room.names - l->used.names <= (long)e->name.len)
		return false;
	next = after(l, e->cookie);
	if (*next)
		return false;		/* a cookie that is not one */
	*next = (uint32_t)++l->used.entries;
	k->e = *e;
	k->e.name.s = memcpy(l->names + l->used.names, e->name.s, e->name.len);
	l->used.names += e->name.len;
	l->names[l->used.names++] = '\0';
	k->changes = changes;
	k->holds = e->has_attr && e->has_handle && e->attr.type != VFS_DIR &&
		   e->attr.nlink == 1 && e->attr.fileid == e->fileid;
	return true;
}

void posix_listing_add(struct posix_node *dir, struct posix_listing **l,
		       const struct vfs_dirent *e, unsigned changes)
{
	if (*l && !add(*l, e, changes))
		posix_listing_drop(dir, l);
}

/* Do names and handles hold, and what the watch has to say? */
static bool holds(const struct posix_listing *l, struct posix_node *dir,
		  const struct stat *st, int64_t age)
{
	return posix_same_time(&l->ctime, &st->st_ctim) &&
	       l->changes == atomic_load(&dir->watch.changes) &&
	       age < LISTING_NS;
}

void posix_listing_end(struct posix_node *dir, struct posix_listing **made,
		       const struct posix_listed *listed)
{
	struct posix_listing *l = *made, *old = l;
	bool good = false;
	struct stat st;

	*made = NULL;
	if (l) {
		posix_watch_look();
		good = posix_fstat(dir->fd, &st) == 0 &&
		       holds(l, dir, &st, posix_now() - l->begun);
	}
	mutex_lock(&dir->lock);
	dir->listed = *listed;
	if (l) {
		dir->listing_begun = 0;
		dir->nmade--;
	}
	if (good) {
		old = dir->listing;
		dir->listing = l;
	}
	mutex_unlock(&dir->lock);
	if (good)
		stat_inc(posix_listings);
	posix_listing_put(old);
}

struct posix_listing *posix_listing_get(const struct vfs_ctx *ctx,
					struct posix_node *dir,
					const struct stat *st, bool from_start)
{
	struct posix_listing *l, *over = NULL;
	int64_t age;

	if (!dir->listing)
		return NULL;
	if (posix_granted(ctx, dir, st, POSIX_X) != POSIX_X)
		return NULL;
	posix_watch_look();
	mutex_lock(&dir->lock);
	l = dir->listing;
	if (l) {
		age = posix_now() - l->begun;
		if (!holds(l, dir, st, age)) {
			dir->listing = NULL;
			over = l;
			l = NULL;
		} else if (from_start && age > LISTING_NS / 2 &&
			   !is_made(dir)) {
			l = NULL;	/* time to make the next */
		} else {
			ref_get(&l->ref);
		}
	}
	mutex_unlock(&dir->lock);
	posix_listing_put(over);
	if (l)
		stat_inc(posix_listing_used);
	return l;
}

long posix_listing_find(const struct posix_listing *l, uint64_t cookie)
{
	uint32_t next;

	if (cookie == 0)
		return 0;
	next = *after(l, cookie);
	return next ? (long)next : -1;
}

const struct vfs_dirent *posix_listing_entry(const struct posix_listing *l,
					     long i, bool *holds)
{
	const struct kept *k;

	if (i >= l->used.entries)
		return NULL;
	k = &l->entry[i];
	*holds = k->holds && k->changes == posix_changes(k->e.fileid);
	if (!*holds)
		stat_inc(posix_listing_asked);
	return &k->e;
}

void posix_listings_free(struct posix_node *dir)
{
	posix_listing_put(dir->listing);
	if (dir->has_listings)
		atomic_fetch_sub(&posix_fs_of(dir)->cache.nlisted, 1);
	if (dir->watch.again)
		posix_watch_end(dir);
}

void posix_listings_age(struct posix_node *dir)
{
	struct posix_listing *over = NULL;
	bool last;

	posix_streams_age(dir);
	mutex_lock(&dir->lock);
	if (dir->listing && !posix_listing_is_young(dir->listing)) {
		over = dir->listing;
		dir->listing = NULL;
	}
	last = !dir->listing && dir->nmade == 0 &&
	       atomic_exchange(&dir->has_listings, false);
	mutex_unlock(&dir->lock);
	posix_listing_put(over);
	if (last) {
		posix_watch_end(dir);
		atomic_fetch_sub(&posix_fs_of(dir)->cache.nlisted, 1);
	}
}
