/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * opened - descriptors that were opened as callers.
 *
 * A file system by open (kinds.h) can decide at each open, by the user who
 * opens.  There, data of a file moves through descriptors that were opened with
 * the caller's credentials, and a descriptor that was opened for one caller
 * never serves another.  It serves its caller for as long as an unused file
 * stays open (idle=), and is then opened again, which ends a right that was
 * revoked.  Only a descriptor that the file was made with stays as long as the
 * node and the file's owner: as with open(2), its maker can write the file
 * whatever mode it got.
 *
 * On other file systems the node has one descriptor for all callers, and perm.c
 * checks each call.
 */
#pragma once

#include "vfs/posix/posix.h"

/* A descriptor in use.  It is borrowed until posix_use_end(). */
struct posix_use {
	int fd;
	struct posix_opened *opened;	/* counted; NULL: the node's */
};

/*
 * Gets a descriptor of @n's file for op->cred, to read (O_RDONLY) or to write
 * (O_WRONLY).  Opens it if need be.  Can block.  0 or -errno; on errors, don't
 * call posix_use_end().
 */
int  posix_use_begin(struct posix_use *u, const struct vfs_op *op,
		     struct posix_node *n, int how);
void posix_use_end(struct posix_node *n, struct posix_use *u);
/* The same for fsync(): whoever opened it.  If none is open, opens one as
 * whoever the thread is. */
int  posix_use_to_sync(struct posix_use *u, struct posix_node *n);
/* Notes that the thread's caller made the file by @fd, which stays the
 * node's. */
void posix_opened_made(struct posix_node *n, int fd);
/* The last reference to @n is gone: a descriptor that data was perhaps written
 * through, or -1; closes all of them. */
int  posix_opened_writer(struct posix_node *n);
void posix_opened_close(struct posix_node *n);
