/* SPDX-License-Identifier: BSD-2-Clause */
/* places - where files were seen, for servers that may not open by handle. */
#ifndef GANNET_VFS_POSIX_PLACES_H
#define GANNET_VFS_POSIX_PLACES_H

#include "vfs/posix/posix.h"

/* table.c, database.c, journal.c, resolve.c */

struct posix_place {
	struct vfs_handle parent;
	struct posix_name name;
};
/* @dir NULL: a temporary one, gone at close. */
int  posix_table_open(const char *dir, uint64_t id, struct posix_table **out);
void posix_table_close(struct posix_table *t);
/* @h is @name in @parent. */
int  posix_table_add(struct posix_table *t, const struct vfs_handle *h,
		     const struct vfs_handle *parent, const char *name);
/* ... and nowhere else, being a directory.  It was there at a time when
 * posix_table_moves() had been @moves; -EAGAIN: a rename began since. */
int  posix_table_set(struct posix_table *t, const struct vfs_handle *h,
		     const struct vfs_handle *parent, const char *name,
		     unsigned moves);
/*
 * Around a rename and the telling of the table.  What was looked up after
 * posix_table_moves() was not moved by one unless posix_table_moved().
 */
void posix_table_move_begins(struct posix_table *t);
void posix_table_move_ends(struct posix_table *t);
unsigned posix_table_moves(struct posix_table *t);
bool posix_table_moved(struct posix_table *t, unsigned moves);
int  posix_table_del(struct posix_table *t, const struct vfs_handle *h,
		     const struct vfs_handle *parent, const char *name);
/* All places of @h: its file is gone. */
int  posix_table_forget(struct posix_table *t, const struct vfs_handle *h);
/* Up to @max places; returns how many, or -errno. */
int  posix_table_find(struct posix_table *t, const struct vfs_handle *h,
		      struct posix_place *places, int max);
/* Notes that @n was seen as @name in @dir.  Nothing without a table. */
void posix_seen(struct posix_node *n, struct posix_node *dir,
		const char *name);
/* A name of @n is gone, and the table has been told. */
void posix_unseen(struct posix_node *n);
/* True if that is recorded already, so that posix_seen() would do nothing. */
bool posix_seen_before(struct posix_node *n, struct posix_node *dir,
		       const char *name);
/* The node of @h by way of the table, counted; or -ESTALE. */
int  posix_resolve(struct posix_fs *fs, const struct vfs_handle *h,
		   struct posix_node **out);
/* The same as posix_seen(), by handle; @is_dir: of a directory. */
int  posix_record(struct posix_fs *fs, const struct vfs_handle *h,
		  struct posix_node *dir, const char *name, bool is_dir);
/* The table forgets that @h is @name in @dir, unless that is so. */
void posix_check_place(struct posix_fs *fs, const struct vfs_handle *h,
		       struct posix_node *dir, const char *name);
/* An O_PATH descriptor of @name in @dir if that is @h's file.  -ENOENT: it is
 * another one; -ESTALE: and that has its inode number, so @h's is gone. */
int  posix_open_same(struct posix_fs *fs, struct posix_node *dir,
		     const char *name, const struct vfs_handle *h);

/*
 * roll.c: files that are not where the table has them.
 */
/* Finds a name in @dir that leads to @h's file, sets @name, and tells the table
 * of all such names.  -ENOENT: the file has none there; -EACCES: the server may
 * not read the directory; -ETIMEDOUT: it can't be read now, come again. */
int  posix_roll_find(struct posix_fs *fs, struct posix_node *dir,
		     const struct vfs_handle *h, struct posix_name *name);
static inline bool posix_rolls_any(const struct posix_fs *fs)
{
	return atomic_load_explicit(&fs->rolls.count, memory_order_relaxed) > 0;
}
/* Frees the rolls that are unused. */
void posix_rolls_age(struct posix_fs *fs);
void posix_rolls_free(struct posix_fs *fs);

#endif
