/* SPDX-License-Identifier: BSD-2-Clause */
/* path - where a file is now, for people to read. */
#include "vfs/posix/handle.h"
#include "vfs/posix/node.h"
#include "vfs/posix/ops.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* The kernel appends this if the file's name is gone. */
#define GONE	" (deleted)"

/* Returns the length of the path of @fd's file, which the kernel knows without
 * asking the file system; or -errno. */
static int fd_path(int fd, char *out, size_t size)
{
	const size_t gone = sizeof(GONE) - 1;
	struct posix_fd_path link = posix_fd_path(fd);
	ssize_t n = readlink(link.s, out, size);

	if (n < 0)
		return -errno;
	if ((size_t)n == size)
		return -ENAMETOOLONG;
	out[n] = '\0';
	if (out[0] != '/' ||
	    ((size_t)n > gone && strcmp(out + n - gone, GONE) == 0))
		return -ENOENT;
	return (int)n;
}

/* A file that was opened by its handle can lack a path: then the kernel shows
 * "/", or a path outside the tree. */
int posix_path(struct vfs_node *node, char *out, size_t size)
{
	struct posix_node *n = to_posix(node);
	struct posix_node *top = posix_fs_of(n)->root;
	char root[PATH_MAX];
	int skip, len;

	skip = fd_path(top->fd, root, sizeof(root));
	if (skip < 0)
		return skip;
	if (skip == 1)
		skip = 0;	/* "/": its slash begins each path */
	len = fd_path(n->fd, out, size);
	if (len < 0)
		return len;
	if (len < skip || memcmp(out, root, (size_t)skip) != 0 ||
	    (len > skip && out[skip] != '/'))
		return -ENOENT;
	skip += len > skip;
	if (len == skip && n != top)
		return -ENOENT;
	memmove(out, out + skip, (size_t)(len - skip) + 1);
	return len - skip;
}
