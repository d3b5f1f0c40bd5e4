/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mountpoint - holds the mount at a path, for exports that exist only while
 * something is mounted there.
 *
 * The descriptor pins the mount: its number is not reused, and umount(8) says
 * that it is busy.
 */
#include "exports/mountpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/fds.h"
#include "lib/hash.h"
#include "lib/mounts.h"

/* A descriptor of the root of the mount at @path, and its number. */
static int open_mount(const char *path, uint64_t *mount)
{
	const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = open(path, flags), err = -ENOENT;
	struct statx sx;

	if (fd < 0)
		return -errno;
	/* With an empty mask, FUSE answers users other than its owner. */
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &sx) < 0)
		err = -errno;
	else if (sx.stx_attributes & STATX_ATTR_MOUNT_ROOT &&
		 sx.stx_mask & STATX_MNT_ID)
		err = 0;
	if (err < 0) {
		close(fd);
		return err;
	}
	*mount = sx.stx_mnt_id;
	return fd;
}

int mountpoint_hold(const char *path, struct mountpoint *out)
{
	uint64_t mount;
	int fd = open_mount(path, &mount);

	if (fd < 0)
		return fd;
	fds_count(FDS_FILES, 1);
	out->fd = fd;
	out->mount = mount;
	return 0;
}

bool mountpoint_is_there(const struct mountpoint *m, const char *path)
{
	uint64_t mount;
	int fd = open_mount(path, &mount);

	if (fd < 0)
		return false;
	close(fd);
	return mount == m->mount;
}

/* The part of @path below the directory @top; NULL: @path is not below it. */
static const char *rest_of(const char *top, const char *path)
{
	size_t len = strlen(top);

	len -= top[len - 1] == '/';
	if (strncmp(top, path, len) != 0 || (path[len] && path[len] != '/'))
		return NULL;
	return path + len + (path[len] == '/');
}

/* An O_PATH descriptor of the directory @path below @top, or -errno.  -EINVAL:
 * it does not lie there.  Links below @top must not leave the mount. */
static int open_below(const struct mountpoint *m, const char *top,
		      const char *path)
{
	const char *rest = rest_of(top, path);
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH,
	};
	int fd;

	if (!rest)
		return -EINVAL;
	fd = (int)syscall(SYS_openat2, m->fd, *rest ? rest : ".", &how,
			  sizeof(how));
	return fd < 0 ? -errno : fd;
}

void mountpoint_release(struct mountpoint *m)
{
	close(m->fd);
	fds_count(FDS_FILES, -1);
}

bool mountpoint_has_root(const struct mountpoint *m, const char *top,
			 struct vfs_fs *fs, const char *path)
{
	int fd = open_below(m, top, path);
	char link[32];
	bool is;

	if (fd < 0)
		return fd == -EINVAL;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	is = fs->ops->is_at(fs, link);
	close(fd);
	return is;
}

uint64_t mount_place(const struct vfs_ops *backend, const char *path)
{
	return backend->is_at ? mounts_place(path) :
				hash_text(0, backend->name);
}

const char *mount_reason(const char *path, int err)
{
	switch (err) {
	case -ENOENT:
		if (path[strlen(path) - 1] == ')')
			return "there is no such directory; options stand "
			       "behind a client, as in '*(rw)'";
		return "there is no such directory";
	case -ENOTDIR:
		return "it is not a directory";
	case -EACCES:
		return "this server may not open it";
	case -EXDEV:
		return "its path leads out of what is mounted there";
	default:
		return strerror(-err);
	}
}
