/* SPDX-License-Identifier: BSD-2-Clause */
/* backends - the kinds of file systems that an exports file can name. */
#pragma once

#include <gannet/vfs.h>

/* A directory of this system.  vfs/posix/. */
extern const struct vfs_ops posix_vfs_ops;
/*
 * Keeps all trees of that backend from showing or changing the files at the @n
 * @paths, or in directories there, from now on; replaces the previous list.
 * Copies @paths.  0; -ENOMEM; or -ETIMEDOUT: the previous list lacks a path,
 * and its file system does not answer.  One thread at a time; can block.
 */
int posix_keep_out(const char *const *paths, size_t n);
/* The same, but the previous list stays too, until posix_keep_out().  Adds to
 * *@late, malloced or NULL, what it logs about paths whose file systems do not
 * answer, a line each. */
int posix_keep_out_too(const char *const *paths, size_t n, char **late);
/* Has the thread act as the server, if it acts as a caller of such a tree.  Not
 * on a poller. */
void posix_act_as_server(void);
/* Memory, empty at first and gone at exit.  vfs/mem/. */
extern const struct vfs_ops mem_vfs_ops;

/* The built-in backends and the loaded ones.  Where a function takes a list,
 * NULL means the built-in ones. */
struct backends;

int  backends_create(struct backends **out);
void backends_destroy(struct backends *b);
/*
 * Loads the module @name in @dir.  0; -ENOMEM; or -EINVAL and *@err (malloced,
 * NULL without memory) is the reason.  The file and @dir must belong to root or
 * to the user of this process, and only their owner may write to them: a module
 * is code of this process.  Not while another thread uses @b.
 */
int  backends_load(struct backends *b, const char *dir, const char *name,
		   char **err);
/* The same for a module of another kind: sets *@out to its @symbol. */
int  module_load(const char *dir, const char *name, const char *symbol,
		 const void **out, char **err);
/* Adds a backend or a filter, and its tables with the others.  0, or
 * -ENOMEM.  As backends_load(). */
int  backends_add(struct backends *b, const struct vfs_ops *ops);
/* The backend or the filter whose name is the @len bytes at @name, or NULL. */
const struct vfs_ops *backends_find(const struct backends *b,
				    const char *name, size_t len);
/* The table of @filter over @below; NULL if that is no backend of @b. */
const struct vfs_ops *backends_over(const struct backends *b,
				    const struct vfs_ops *filter,
				    const struct vfs_ops *below);
/* "posix, mem": for messages. */
void backends_names(const struct backends *b, char *buf, size_t size);

/* Checks a name off the wire. 0, -ENAMETOOLONG, -EINVAL (empty, NUL, '/'). */
int vfs_name_check(const char *s, uint32_t len);
/* Checks the text of a symbolic link, likewise; it can contain '/'. */
int vfs_target_check(const char *s, uint32_t len);

/*
 * Parses the @len bytes at @text, "a,b=1", by the rows of @ops, into @block:
 * ops->options_size bytes of zeros.  0; -ENOMEM; or -EINVAL and *@err
 * (malloced, NULL without memory) is the reason.
 */
int backend_options(const struct vfs_ops *ops, const char *text, size_t len,
		    void *block, char **err);
/* A decimal number, and k, m or g behind it for a multiple of 1024 to the
 * first, second or third.  False: another text, or one past 64 bits. */
bool backend_parse_size(const char *s, uint64_t *out);
/* In the shortest form that backend_parse_size() reads. */
const char *backend_size_text(char buf[24], uint64_t v);
/* Where a filter's part begins in the block of its table over @below, which
 * begins with the part of @below. */
size_t backend_filter_at(const struct vfs_ops *below);
/* True if both are one backend with equal blocks of options. */
bool backend_same(const struct vfs_ops *a, const void *a_options,
		  const struct vfs_ops *b, const void *b_options);
