/* SPDX-License-Identifier: BSD-2-Clause */
/* places - where files were seen, for servers that can't open by handle. */
#pragma once

#include "vfs/posix/posix.h"

/* @dir NULL: a temporary one, gone at close. */
int  posix_table_open(const char *dir, uint64_t id, struct posix_table **out);
void posix_table_close(struct posix_table *t);
/* Frees directories that were read for lost files and are unused.  True: others
 * remain. */
bool posix_table_age(struct posix_table *t);
/* Around a rename and its record in the table. */
void posix_table_move_begins(struct posix_table *t);
void posix_table_move_ends(struct posix_table *t);
/* @h is no longer @name in @parent. */
int  posix_table_del(struct posix_table *t, const struct vfs_handle *h,
		     const struct vfs_handle *parent, const char *name);
/* All places of @h: its file is gone. */
int  posix_table_forget(struct posix_table *t, const struct vfs_handle *h);
/* Notes that @n was seen as @name in @dir.  Nothing without a table. */
void posix_seen(struct posix_node *n, struct posix_node *dir,
		const char *name);
/* A name of @n is gone, and the table has been told. */
void posix_unseen(struct posix_node *n);
/* True if that is recorded already: posix_seen() would do nothing. */
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
