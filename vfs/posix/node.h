/* SPDX-License-Identifier: BSD-2-Clause */
/* node - files in use, and their descriptors. */
#pragma once

#include "vfs/posix/posix.h"

/*
 * node.c
 */
/* An unhashed node with one reference.  Takes @fd, on failure too. */
int  posix_node_create(struct posix_fs *fs, int fd, const struct stat *st,
		       const struct vfs_handle *h, struct posix_node **out);
/*
 * The cached node of the file that @fd is open on, made if need be.  Takes
 * @fd.  @made: the caller has just made the file and has it open for reading
 * and writing; else @fd is O_PATH.  -EXDEV: a directory of another file system.
 */
int  posix_node_adopt(struct posix_fs *fs, int fd, bool made, struct stat *st,
		      struct posix_node **out);
void posix_node_free(struct vfs_node *n);
/* Opens @h by the system's handle, as the server.  @h is of no known node. */
int  posix_node_open(struct posix_fs *fs, const struct vfs_handle *h,
		     struct posix_node **out);
void posix_handle(struct vfs_node *n, struct vfs_handle *h);

/*
 * open.c: descriptors of files.
 */
/* Descriptors to read, write or sync through; -errno.  Borrowed. */
int  posix_node_rd(struct posix_node *n);
int  posix_node_wr(struct posix_node *n);
/* Opens @n's file again with @flags, as the server: a descriptor that is the
 * caller's to close, and is counted; or -errno. */
int  posix_node_reopen(struct posix_node *n, int flags);
void posix_fd_close(struct posix_fs *fs, int fd);
/* Counts @fd, unless it is -errno; returns it. */
int  posix_fd_counted(struct posix_fs *fs, int fd);
/* A duplicate that is counted likewise, or -1. */
int  posix_fd_copy(struct posix_fs *fs, int fd);
/* The path to the file that @fd is open on, for calls that take no O_PATH
 * descriptor. */
struct posix_fd_path {
	char s[32];
};
struct posix_fd_path posix_fd_path(int fd);
/*
 * The owner may read and write whatever the mode says (RFC 1813 section 4.4):
 * clients still write a file after its owner made it read-only.  A server that
 * has only the owner's rights can do that only by descriptors opened earlier.
 * So it opens them before it sets @mode, and afterwards keeps them as long as
 * it can.
 */
void posix_node_mode_comes(struct posix_node *n, uint32_t mode);
void posix_node_mode_is(struct posix_node *n, uint32_t mode);
/*
 * Opening @n failed with -EACCES, although the owner may write or read it
 * (@bit: S_IWUSR or S_IRUSR).  If its mode is the reason, says so in the log,
 * once for each use of the file.  Returns -EACCES.
 */
int  posix_node_closed(struct posix_node *n, const struct stat *st,
		       uint32_t bit);
/* True if an open that failed with @err (-errno) is worth another try: it was
 * for lack of descriptors, and some were closed since. */
bool posix_open_again(struct posix_fs *fs, int err);
/* Maps the -errno of an open to one for the client. */
int  posix_open_error(int err);
/* The directory @n, open at its start, for the caller to close; or -errno.  As
 * the server. */
int  posix_open_dir(struct posix_node *n);
/* Opens @name in @dir_fd (O_PATH, nothing followed or crossed) or -errno;
 * -EXDEV: something is mounted there. */
int  posix_open_name(struct posix_fs *fs, int dir_fd, const char *name,
		     bool nonblock);
