/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/posix/attr.h"
#include "vfs/posix/cred.h"
#include "vfs/posix/node.h"
#include "vfs/posix/opened.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

/* Of a node.  A further one replaces an unused one. */
#define OPENED_MAX	16
/* Ticks of the cache that one serves: idle= has four of them. */
#define FRESH_TICKS	4

struct posix_opened {
	/* Set once. */
	struct posix_who who;
	int	 fd;
	int	 how;			/* O_RDONLY, O_WRONLY, O_RDWR */
	uint32_t tick;			/* when it was opened */
	bool	 made;			/* ... by making the file, ... */
	uid_t	 owner;			/* ... which was this user's then */
	/* Under fs->opened_lock: */
	struct posix_opened *next;	/* in its node's list, if listed */
	unsigned users;
	bool	 listed;
};

static void opened_free(struct posix_fs *fs, struct posix_opened *o)
{
	if (o)
		posix_fd_close(fs, o->fd);
	free(o);
}

/* Under the lock: takes @o out of the list.  Returns it if it is unused, to be
 * freed; else its last user frees it. */
static struct posix_opened *opened_unlist(struct posix_node *n,
					  struct posix_opened *o)
{
	struct posix_opened **at = &n->opened;

	while (*at != o)
		at = &(*at)->next;
	*at = o->next;
	o->listed = false;
	return o->users ? NULL : o;
}

static bool opened_is_fresh(const struct posix_fs *fs,
			    const struct posix_opened *o)
{
	return o->made ||
	       atomic_load(&fs->cache.tick) - o->tick < FRESH_TICKS;
}

static bool opened_serves(const struct posix_opened *o,
			  const struct posix_who *who, int how)
{
	return o->who.uid == who->uid && o->who.gid == who->gid &&
	       o->who.gids_id == who->gids_id &&
	       (o->how == how || o->how == O_RDWR);
}

/* Under the lock: the one that serves @who, counted; or NULL.  *@old: one that
 * did so for too long, to be freed. */
static struct posix_opened *opened_take(struct posix_node *n,
					const struct posix_who *who, int how,
					struct posix_opened **old)
{
	struct posix_opened *o = n->opened;

	while (o && !opened_serves(o, who, how))
		o = o->next;
	if (o && !opened_is_fresh(posix_fs_of(n), o)) {
		*old = opened_unlist(n, o);
		o = NULL;
	}
	if (o)
		o->users++;
	return o;
}

/* Under the lock: if the node has too many, unlists an unused one, to be
 * freed. */
static struct posix_opened *opened_surplus(struct posix_node *n)
{
	struct posix_opened *oldest = NULL;
	unsigned count = 0;

	for (struct posix_opened *o = n->opened; o; o = o->next) {
		count++;
		if (!o->users)
			oldest = o;	/* new ones come first */
	}
	return count > OPENED_MAX && oldest ? opened_unlist(n, oldest) : NULL;
}

/* Lists a new descriptor with one user.  Takes @fd. */
static int opened_list(struct posix_node *n, int fd, int how, bool made,
		struct posix_opened **out)
{
	struct posix_fs *fs = posix_fs_of(n);
	struct posix_opened *o = malloc(sizeof(*o)), *over;
	struct stat st;

	if (!o) {
		posix_fd_close(fs, fd);
		return -ENOMEM;
	}
	*o = (struct posix_opened){
		.who = posix_cred_now(), .fd = fd, .how = how, .users = 1,
		.tick = atomic_load(&fs->cache.tick), .made = made,
		.owner = made && posix_fstat(fd, &st) == 0 ? st.st_uid :
							     (uid_t)-1,
		.listed = true,
	};
	mutex_lock(&fs->opened_lock);
	o->next = n->opened;
	n->opened = o;
	over = opened_surplus(n);
	mutex_unlock(&fs->opened_lock);
	opened_free(fs, over);
	*out = o;
	return 0;
}

void posix_use_end(struct posix_node *n, struct posix_use *u)
{
	struct posix_opened *o = u->opened;
	struct posix_fs *fs;
	bool last;

	if (likely(!o))
		return;
	fs = posix_fs_of(n);
	mutex_lock(&fs->opened_lock);
	last = --o->users == 0 && !o->listed;
	mutex_unlock(&fs->opened_lock);
	if (last)
		opened_free(fs, o);
}

/* A maker's descriptor ends once the file is another user's.  0 or -errno:
 * whose it is can't be known, and nothing is used. */
static int end_if_given_away(struct posix_node *n, struct posix_use *u)
{
	struct posix_fs *fs = posix_fs_of(n);
	struct posix_opened *o = u->opened;
	struct stat st;
	int err;

	if (!o || !o->made ||
	    atomic_load(&fs->cache.tick) - o->tick < FRESH_TICKS)
		return 0;
	err = posix_fstat(n->fd, &st);
	if (err == 0 && st.st_uid == o->owner)
		return 0;
	mutex_lock(&fs->opened_lock);
	if (err == 0 && o->listed)
		opened_unlist(n, o);	/* its last user frees it */
	mutex_unlock(&fs->opened_lock);
	posix_use_end(n, u);
	u->opened = NULL;
	return err;
}

/* As whoever the thread is. */
static int open_now(struct posix_node *n, int how, struct posix_use *u)
{
	struct posix_fs *fs = posix_fs_of(n);
	const struct posix_who who = posix_cred_now();
	struct posix_opened *old = NULL;
	int fd, err = 0;

	mutex_lock(&fs->opened_lock);
	u->opened = opened_take(n, &who, how, &old);
	mutex_unlock(&fs->opened_lock);
	opened_free(fs, old);
	err = end_if_given_away(n, u);
	if (err == 0 && !u->opened) {
		fd = posix_node_reopen(n, how | (n->type == VFS_DIR ?
						 O_DIRECTORY : 0));
		err = fd < 0 ? fd : opened_list(n, fd, how, false, &u->opened);
	}
	if (err == 0)
		u->fd = u->opened->fd;
	return err;
}

int posix_use_begin(struct posix_use *u, const struct vfs_op *op,
		    struct posix_node *n, int how)
{
	struct posix_fs *fs = posix_fs_of(n);
	int err;

	u->opened = NULL;
	if (likely(!fs->as_caller)) {
		u->fd = how == O_RDONLY ? posix_node_rd(n) : posix_node_wr(n);
		return MIN(u->fd, 0);
	}
	err = posix_cred_set(fs, op);
	return err < 0 ? err : open_now(n, how, u);
}

/* Under the lock: one that can be written, if possible. */
static struct posix_opened *best_to_sync(struct posix_node *n)
{
	struct posix_opened *best = n->opened;

	for (struct posix_opened *o = best; o; o = o->next)
		if (o->how != O_RDONLY)
			return o;
	return best;
}

int posix_use_to_sync(struct posix_use *u, struct posix_node *n)
{
	struct posix_fs *fs = posix_fs_of(n);
	int err = 0;

	mutex_lock(&fs->opened_lock);
	u->opened = best_to_sync(n);
	if (u->opened)
		u->opened->users++;
	mutex_unlock(&fs->opened_lock);
	if (u->opened)
		u->fd = u->opened->fd;
	else
		err = open_now(n, O_RDONLY, u);
	if (err < 0 && n->type == VFS_REG)
		err = open_now(n, O_WRONLY, u);
	return err;
}

void posix_opened_made(struct posix_node *n, int fd)
{
	struct posix_use u;

	fd = posix_fd_copy(posix_fs_of(n), fd);
	if (fd < 0 || opened_list(n, fd, O_RDWR, true, &u.opened) < 0)
		return;			/* the maker opens it again */
	posix_use_end(n, &u);
}

int posix_opened_writer(struct posix_node *n)
{
	struct posix_opened *o = best_to_sync(n);

	return o && o->how != O_RDONLY ? o->fd : -1;
}

void posix_opened_close(struct posix_node *n)
{
	struct posix_opened *next;

	for (struct posix_opened *o = n->opened; o; o = next) {
		next = o->next;
		opened_free(posix_fs_of(n), o);
	}
	n->opened = NULL;
}
