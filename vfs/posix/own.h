/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * own - the server's state directory, which no export shows.
 *
 * The key of all handles is there, so whoever can read it can make handles.
 * An export can lie around the directory ("/" does), so it is recognized by
 * device and inode number, by whatever name, mount or handle a client comes to
 * it or to a file in it.
 *
 * Any thread.
 */
#ifndef GANNET_VFS_POSIX_OWN_H
#define GANNET_VFS_POSIX_OWN_H

#include <stdbool.h>
#include <sys/stat.h>

struct posix_own;

/* @dir as a counted object, the same for all exports.  0 or -errno. */
int  posix_own_get(const char *dir, struct posix_own **out);
/* NULL is allowed. */
void posix_own_put(struct posix_own *own);
/*
 * 1 if @st is the directory, or a file in it; else 0.  @by_name: a name led
 * there from a directory outside of it, so a file in it has several names.
 * -EAGAIN: the directory is to be read first, and this thread must not wait;
 * -ETIMEDOUT: it can't be read now.
 * @own may be NULL.
 */
int  posix_own_is(struct posix_own *own, const struct stat *st, bool by_name);
/* True if it is on the file system @dev. */
bool posix_own_is_on(const struct posix_own *own, dev_t dev);
/* True if the directory @fd lies in it, or is it, or that can't be known. */
bool posix_own_holds(struct posix_own *own, int fd);
/* 1 if it lies in the directory @dir, or is it; else 0.  -ETIMEDOUT: that can't
 * be known now.  @own may be NULL.  May block. */
int  posix_own_is_in(const struct posix_own *own, const struct stat *dir);

#endif
