/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gannet/vfs_types.h - what operations of gannet/vfs.h speak of: files, their
 * attributes and names, callers, changes.  They are shaped by RFC 1813.
 */
#ifndef GANNET_VFS_TYPES_H
#define GANNET_VFS_TYPES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct vfs_fs;

#define VFS_NAME_MAX	255
#define VFS_PATH_MAX	4095
/* The backend's own part of a filehandle. */
#define VFS_HANDLE_MAX	40
#define VFS_HANDLE_KEY	16
/* As Linux's NGROUPS_MAX. */
#define VFS_MAX_GIDS	65536

/* As ftype3 (RFC 1813 section 2.3.5). */
enum vfs_type {
	VFS_REG = 1, VFS_DIR = 2, VFS_BLK = 3, VFS_CHR = 4, VFS_LNK = 5,
	VFS_SOCK = 6, VFS_FIFO = 7,
};

/* The caller.  Its other groups are a list that calls share. */
struct vfs_cred {
	uint32_t	uid;
	uint32_t	gid;
	uint32_t	ngids;		/* at most VFS_MAX_GIDS */
	/* The list's number, for backends that remember callers: no other list
	 * has it as long as the process lives.  0: the list is empty. */
	uint64_t	gids_id;
	const uint32_t *gids;		/* in no order */
};

struct vfs_attr {
	enum vfs_type	type;
	uint32_t	mode;		/* 07777 */
	uint32_t	nlink;
	uint32_t	uid;
	uint32_t	gid;
	uint64_t	size;
	uint64_t	used;
	uint32_t	rdev_major;
	uint32_t	rdev_minor;
	uint64_t	fileid;
	struct timespec	atime;
	struct timespec	mtime;
	struct timespec	ctime;
};

#define VFS_SET_MODE		0x01
#define VFS_SET_UID		0x02
#define VFS_SET_GID		0x04
#define VFS_SET_SIZE		0x08
#define VFS_SET_ATIME		0x10
#define VFS_SET_MTIME		0x20
#define VFS_SET_ATIME_NOW	0x40
#define VFS_SET_MTIME_NOW	0x80

struct vfs_setattr {
	uint32_t	set;
	uint32_t	mode;
	uint32_t	uid;
	uint32_t	gid;
	uint64_t	size;
	struct timespec	atime;
	struct timespec	mtime;
	bool		guarded;	/* only when ctime is guard: -EDOM */
	struct timespec	guard;
};

/*
 * Attributes around a change (RFC 1813 section 2.6, weak cache
 * consistency).  Operations fill it in on success *and* on failure, as far as
 * they know; @before as close to the change as they can.
 */
struct vfs_wcc {
	bool		has_before;
	bool		has_after;
	uint64_t	before_size;
	struct timespec	before_mtime;
	struct timespec	before_ctime;
	struct vfs_attr	after;
};

struct vfs_handle {
	uint32_t len;
	uint8_t	 data[VFS_HANDLE_MAX];
};

/* A name off the wire: bytes, checked by vfs_name_check(), not terminated. */
struct vfs_name {
	const char *s;
	uint32_t    len;
};

/* A backend's node has this as a member. */
struct vfs_node {
	/* Borrowed: outlives its nodes.  Another than the tree's one if the
	 * node has other operations, node->fs->ops. */
	struct vfs_fs	*fs;
	atomic_uint	 refs;		/* vfs_node_init(), _get(), _put() */
};

struct vfs_dirent {
	uint64_t	fileid;
	uint64_t	cookie;		/* of the entry after; 1 to 2^63 - 1 */
	struct vfs_name	name;
	/* With readdir's @plus, as far as they are known. */
	bool		has_attr;
	bool		has_handle;
	struct vfs_attr	attr;
	struct vfs_handle handle;
};

/* Returns false when it has no room: the entry was not taken. */
typedef bool vfs_emit_fn(void *arg, const struct vfs_dirent *d);

/* Another file system, which a name leads to. */
struct vfs_child {
	char	 *path;		/* malloced, for the caller; NULL: none */
	uint64_t  mark;		/* that of its vfs_fs, once mounted */
	bool	  is_part;	/* not mounted: a subvolume */
	bool	  below;	/* asked for: what the mount covers */
};

struct vfs_statfs {
	uint64_t tbytes, fbytes, abytes;
	uint64_t tfiles, ffiles, afiles;
};

struct vfs_limits {
	uint64_t	max_file_size;
	struct timespec	time_delta;
	uint32_t	name_max;
	uint32_t	link_max;
	bool		no_trunc;
	bool		case_insensitive, case_preserving;
	bool		symlinks, hard_links, homogeneous, can_set_time;
	bool		chown_restricted;
};

enum vfs_stable { VFS_UNSTABLE = 0, VFS_DATA_SYNC = 1, VFS_FILE_SYNC = 2 };

enum vfs_create_how { VFS_CREATE_UNCHECKED, VFS_CREATE_GUARDED,
		      VFS_CREATE_EXCLUSIVE };

struct vfs_create {
	enum vfs_create_how how;
	struct vfs_setattr  attr;	/* not with EXCLUSIVE */
	uint64_t	    verf;	/* with EXCLUSIVE, kept durably */
};

/* The object of MKDIR, SYMLINK and MKNOD. */
struct vfs_make {
	enum vfs_type	   type;	/* anything but REG */
	struct vfs_setattr attr;
	const char	  *target;	/* LNK: bytes, none of them NUL; not
					 * terminated */
	uint32_t	   target_len;	/* 1 to VFS_PATH_MAX */
	uint32_t	   rdev_major, rdev_minor;
};

/* ACCESS3_* of RFC 1813 section 3.3.4. */
#define VFS_ACCESS_READ		0x01
#define VFS_ACCESS_LOOKUP	0x02
#define VFS_ACCESS_MODIFY	0x04
#define VFS_ACCESS_EXTEND	0x08
#define VFS_ACCESS_DELETE	0x10
#define VFS_ACCESS_EXECUTE	0x20
/* Asked with READ: would open(2) succeed?  Granted where the file system can
 * decide that at each open, by more than the mode: READ is its answer then, and
 * the file's owner has no right beyond it. */
#define VFS_ACCESS_OPEN		0x40

#endif
