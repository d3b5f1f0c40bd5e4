/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dentry - a cache of look-ups, each valid for one ctime of its directory.
 *
 * An entry says that a name in a directory is a certain file while the
 * directory's ctime is a certain time.  It is made only if that time was well
 * past before the look-up: then every later change of the directory, by any
 * process, gives it another ctime.  It names the file by handle and holds no
 * reference.
 *
 * A name has two slots.  The newest entry takes the first one, so a directory
 * with nearly as many names as the table has slots finds almost all of them.
 */
#include "vfs/posix/attr.h"
#include "vfs/posix/cache.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/rcu.h"

#define SLOTS		65536		/* a power of two */
#define NAME_SIZE	48		/* longer names are not kept */

struct posix_dentry {
	struct rcu_head	  rcu;
	struct timespec	  ctime;
	struct vfs_handle dir;
	struct vfs_handle file;
	char		  name[NAME_SIZE];
};

struct posix_dentries {
	struct posix_dentry *_Atomic slot[SLOTS];
};

/* The first of a name's two slots. */
static struct posix_dentry *_Atomic *slots_of(const struct posix_fs *fs,
					      const struct posix_node *dir,
					      const char *name, size_t len)
{
	return &fs->dentries->slot[hash_mix(hash_keyed(name, len), dir->ino) &
				   (SLOTS - 2)];
}

static bool same_name(const struct posix_dentry *e,
		      const struct posix_node *dir, const char *name)
{
	return strcmp(e->name, name) == 0 &&
	       posix_handle_same(&e->dir, &dir->handle);
}

bool posix_dentry_find(const struct posix_fs *fs, const struct posix_node *dir,
		       const struct stat *dir_st, const char *name,
		       struct vfs_handle *file)
{
	struct posix_dentry *_Atomic *slot;
	size_t len = strlen(name);
	bool found = false;

	if (len >= NAME_SIZE || fs->as_caller)
		return false;
	slot = slots_of(fs, dir, name, len);
	rcu_enter();
	for (int i = 0; i < 2 && !found; i++) {
		const struct posix_dentry *e =
			atomic_load_explicit(&slot[i], memory_order_acquire);

		if (e && posix_same_time(&e->ctime, &dir_st->st_ctim) &&
		    same_name(e, dir, name)) {
			*file = e->file;
			found = true;
		}
	}
	rcu_exit();
	return found;
}

static void dentry_reclaim(struct rcu_head *head)
{
	free(container_of(head, struct posix_dentry, rcu));
}

void posix_dentry_keep(struct posix_fs *fs, const struct posix_node *dir,
		       const struct stat *dir_st, const char *name,
		       const struct vfs_handle *file)
{
	struct posix_dentry *_Atomic *slot;
	size_t len = strlen(name);
	struct posix_dentry *e, *old;

	if (len >= NAME_SIZE || fs->as_caller)
		return;
	e = malloc(sizeof(*e));
	if (!e)
		return;
	e->ctime = dir_st->st_ctim;
	e->dir = dir->handle;
	e->file = *file;
	memcpy(e->name, name, len + 1);
	slot = slots_of(fs, dir, name, len);
	rcu_enter();
	old = atomic_exchange(&slot[0], e);
	if (old && !same_name(old, dir, name))
		old = atomic_exchange(&slot[1], old);
	rcu_exit();
	if (old) {
		rcu_later(&old->rcu, dentry_reclaim);
	}
}

int posix_dentries_create(struct posix_dentries **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void posix_dentries_destroy(struct posix_dentries *d)
{
	for (unsigned i = 0; i < SLOTS; i++)
		free(d->slot[i]);
	free(d);
}
