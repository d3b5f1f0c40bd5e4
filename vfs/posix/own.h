/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * own - the server's own files and directories, which no export shows.
 *
 * The key of all handles is in the state directory, and the exports files grant
 * all rights: a client that could read or change these through an export could
 * do anything.  An export can lie around them ("/" does), so they are refused
 *
 *  - by path: a name in the directory that now has the path of the thing,
 *    whether or not it exists, and whatever has replaced it;
 *  - by device and inode number: whatever name, mount or handle leads a client
 *    to the thing, or to a file in such a directory.
 *
 * Names that a path goes through (directories and symbolic links) can be looked
 * up, but not changed: afterwards the path would lead elsewhere.
 *
 * Any thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "lib/util.h"

struct posix_node;

/*
 * own.c: one directory and the files in it, by inode number.
 */
struct posix_own;

/* @dir as a counted object, the same for all exports.  0 or -errno. */
int  posix_own_get(const char *dir, struct posix_own **out);
/* NULL is allowed. */
void posix_own_put(struct posix_own *own);
void posix_own_id(const struct posix_own *own, dev_t *dev, ino_t *ino);
/* 1 if @st is the directory or a file in it, else 0; -ETIMEDOUT: that can't be
 * known now.  Can block. */
int  posix_own_has(struct posix_own *own, const struct stat *st);
/* True if the directory @fd lies in it, or is it, or that can't be known. */
bool posix_own_holds(struct posix_own *own, int fd);

/*
 * own_path.c: all of the server's own files, by path.
 */
struct posix_own_path;

/*
 * @path as a counted object, from now on refused in all trees; it need not
 * exist.  0 or -ENOMEM.  Can block.
 */
int  posix_own_path_get(const char *path, struct posix_own_path **out);
/* Counts it once more. */
void posix_own_path_hold(struct posix_own_path *p);
/* NULL is allowed. */
void posix_own_path_put(struct posix_own_path *p);
/* 0, or the -errno of opening it as a directory. */
int  posix_own_path_error(const struct posix_own_path *p);
/* The path of such a directory that the directory @fd is or lies in, malloced;
 * NULL: it lies in none of them.  Can block. */
char *posix_own_around(int fd);

/* Bits for devices and directories by number, for a short answer. */
extern _Atomic uint64_t posix_own_devs, posix_own_dirs;
/* False: the server has no file on the file system @dev. */
static inline bool posix_own_can_be_on(dev_t dev)
{
	return atomic_load_explicit(&posix_own_devs, memory_order_relaxed) >>
	       (dev & 63) & 1;
}

int  posix_own_look(dev_t dev, const struct stat *st);
/*
 * 1 if @st, in the tree whose directories are on @dev, is the server's; else 0:
 * an overlay's files can have other device numbers.  @by_name: a name led there
 * that posix_own_name() has let pass, so it matters only for a file of several
 * names.  -EAGAIN: this thread must not wait for the answer; -ETIMEDOUT: it
 * can't be known now.
 */
static inline int posix_own_is(dev_t dev, const struct stat *st, bool by_name)
{
	if (likely(!posix_own_can_be_on(dev)))
		return 0;
	if (by_name && (S_ISDIR(st->st_mode) ?
			!(posix_own_dirs >> (st->st_ino & 63) & 1) :
			st->st_nlink < 2))
		return 0;
	return posix_own_look(dev, st);
}

/* Bits for the last names of all paths, and for all names in them. */
#define POSIX_OWN_BITS	1024
extern _Atomic uint64_t posix_own_names[2][POSIX_OWN_BITS / 64];

/* Alike for names that only differ in case. */
static inline unsigned posix_own_bit(const char *name, size_t len)
{
	return (unsigned)(len * 37 + (name[0] | 0x20) * 7u +
			  (name[len - 1] | 0x20) * 11u) % POSIX_OWN_BITS;
}

static inline bool posix_own_may_be_named(const char *name, size_t len,
					  bool change)
{
	unsigned bit = posix_own_bit(name, len);

	return unlikely(atomic_load_explicit(&posix_own_names[change][bit / 64],
					     memory_order_relaxed) >>
			bit % 64 & 1);
}

int  posix_own_look_name(struct posix_node *dir, const char *name, bool change);
/*
 * 0; -EACCES: @name, of @len bytes, in @dir is the server's, or, if it is about
 * to be changed, one that a path of the server's goes through.  -EAGAIN: this
 * thread must not wait for the answer.
 */
static inline int posix_own_name(struct posix_node *dir, const char *name,
				 size_t len, bool change)
{
	return posix_own_may_be_named(name, len, change) ?
	       posix_own_look_name(dir, name, change) : 0;
}

int  posix_own_look_new(struct posix_node *dir, const char *name);
/* The same of a name that is to be made; -EEXIST: it is that of a directory. */
static inline int posix_own_new(struct posix_node *dir, const char *name,
				size_t len)
{
	return posix_own_may_be_named(name, len, true) ?
	       posix_own_look_new(dir, name) : 0;
}
