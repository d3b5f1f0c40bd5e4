/* SPDX-License-Identifier: BSD-2-Clause */
/* attr - attributes, and permissions. */
#pragma once

#include "vfs/posix/posix.h"

/* Learns from the flags of the mount how reads change times, and whether it is
 * writable. */
void posix_flags_learn(struct posix_fs *fs);
/*
 * True if a read would change the file's time of last access.  Such a change
 * begins with the journal, which blocks while the disk hangs.
 */
bool posix_atime_due(struct posix_node *n);
int  posix_fstat(int fd, struct stat *st);
/* The stat of @name in @dir, not following a link; -EXDEV: the root of another
 * mount, which is not asked.  *@born, unless @born is NULL: when the file was
 * made, or later. */
int  posix_stat_name(struct posix_node *dir, const char *name,
		     struct stat *st, struct timespec *born);
/* Of the node's file; -ESTALE when its last name is gone. */
int  posix_stat(struct posix_node *n, struct stat *st);
/* The same; *@fixed: it can't be opened to write (chattr +a, +i). */
int  posix_stat_flags(struct posix_node *n, struct stat *st, bool *fixed);
enum vfs_type posix_type(mode_t mode);
void posix_attr(const struct posix_fs *fs, const struct stat *st,
		struct vfs_attr *attr);

static inline bool posix_same_time(const struct timespec *a,
				   const struct timespec *b)
{
	return a->tv_nsec == b->tv_nsec && a->tv_sec == b->tv_sec;
}

bool posix_is_later(const struct timespec *a, const struct timespec *b);

/*
 * True if every later change of the file will show in its ctime.  False if that
 * is so recent that the next change can get the same time.
 */
bool posix_settled(const struct stat *st);

vfs_op_fn posix_getattr;

/*
 * perm.c: a caller's permissions on a file that the server has open.
 */
#define POSIX_X	1
#define POSIX_W	2
#define POSIX_R	4
/* Returns the bits of @want (POSIX_*) that the kernel grants, or -errno.  @st
 * is fresh. */
int  posix_granted(const struct vfs_op *op, struct posix_node *n,
		   const struct stat *st, unsigned want);
/*
 * Notes that the kernel just allowed @what to the caller, with the caller's
 * credentials.  @st was read before and was posix_settled(); the ctime has not
 * changed since.
 */
void posix_was_granted(const struct vfs_op *op, struct posix_node *n,
		       const struct stat *st, unsigned what);
/* 0, -EACCES or -EAGAIN.  The owner may always read and write (RFC 1813 section
 * 4.4), and a caller that may execute may read. */
int  posix_check_io(const struct vfs_op *op, struct posix_node *n,
		    const struct stat *st, unsigned want);
vfs_op_fn posix_access;
