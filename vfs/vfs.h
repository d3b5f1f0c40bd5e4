/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vfs - the contract of the storage backends.
 *
 * A backend turns a directory (or nothing, for mem) into a struct vfs_fs, and
 * that into nodes: counted objects, one for each file that is in use.
 * Operations name nodes, never paths, and carry the caller's credentials.  They
 * are shaped by NFSv3 (RFC 1813) but know nothing of RPC.
 *
 * Errors are -errno: VFS_ERRORS has all of them, and what each becomes.
 *
 * Any thread that lib/thread.h started may call, at the same time, with a
 * reference to each node it names.  A call may leave the thread with the
 * caller's file system credentials (setfsuid(2)): a thread that calls
 * opens files of its own only with that in mind.
 */
#ifndef GANNET_VFS_VFS_H
#define GANNET_VFS_VFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include <time.h>

#include "lib/thread.h"

#define VFS_NAME_MAX	255
#define VFS_PATH_MAX	4095
/* The backend's own part of a filehandle. */
#define VFS_HANDLE_MAX	40
#define VFS_MAX_GIDS	16

/*
 * The errors of operations.  Each row has an errno, the status that a client
 * gets for it (RFC 1813 section 2.6, without NFS3ERR_), and its meaning where
 * errno(3) does not say it.  Where a procedure does not list that status (RFC
 * 1813 section 3.3), the client gets the listed one that is nearest in meaning.
 * An errno without a row becomes SERVERFAULT, or IO where that is not listed.
 */
#define VFS_ERRORS(X) \
	X(ENOENT, NOENT) \
	X(EACCES, ACCES) \
	X(EEXIST, EXIST) \
	/* The node's file is gone, or a handle names none any more. */ \
	X(ESTALE, STALE) \
	X(EPERM, PERM) \
	X(EIO, IO) \
	X(ENXIO, NXIO) \
	X(EXDEV, XDEV) \
	X(ENODEV, NODEV) \
	X(ENOTDIR, NOTDIR) \
	X(EISDIR, ISDIR) \
	X(EINVAL, INVAL) \
	X(EFBIG, FBIG) \
	X(ENOSPC, NOSPC) \
	X(EROFS, ROFS) \
	X(EMLINK, MLINK) \
	X(ENAMETOOLONG, NAMETOOLONG) \
	X(ENOTEMPTY, NOTEMPTY) \
	X(EDQUOT, DQUOT) \
	X(EREMOTE, REMOTE) \
	/* The bytes are no handle of this backend. */ \
	X(EBADMSG, BADHANDLE) \
	/* setattr: the guard is not the file's ctime. */ \
	X(EDOM, NOT_SYNC) \
	/* readdir: the cookie means nothing any more. */ \
	X(EBADE, BAD_COOKIE) \
	/* The file system has no such thing: links, devices, ... */ \
	X(EOPNOTSUPP, NOTSUPP) \
	X(ENOSYS, NOTSUPP) \
	/* readdir: there is no room for one entry. */ \
	X(EMSGSIZE, TOOSMALL) \
	/* make: the backend can't make this type. */ \
	X(EPROTOTYPE, BADTYPE) \
	/* Not now: the client comes again by itself. */ \
	X(ETIMEDOUT, JUKEBOX) \
	/* With ctx->nonblock: it would block, and nothing was done.  Then the \
	 * operation is called again where it may block, and no client hears \
	 * of it. */ \
	X(EAGAIN, JUKEBOX) \
	X(EINTR, JUKEBOX) \
	/* Too little memory, or too few descriptors. */ \
	X(ENOMEM, JUKEBOX) \
	X(ENOBUFS, JUKEBOX) \
	X(EMFILE, JUKEBOX) \
	X(ENFILE, JUKEBOX) \
	/* The file is in use as a mount point or as a program. */ \
	X(EBUSY, ACCES) \
	X(ETXTBSY, ACCES) \
	/* The directory is encrypted and locked. */ \
	X(ENOKEY, PERM) \
	X(ELOOP, INVAL) \
	X(EOVERFLOW, FBIG) \
	X(EREMOTEIO, IO) \
	X(EUCLEAN, IO) \
	X(ENODATA, IO)

/* As ftype3 (RFC 1813 section 2.3.5). */
enum vfs_type {
	VFS_REG = 1, VFS_DIR = 2, VFS_BLK = 3, VFS_CHR = 4, VFS_LNK = 5,
	VFS_SOCK = 6, VFS_FIFO = 7,
};

struct vfs_cred {
	uint32_t uid;
	uint32_t gid;
	uint32_t ngids;
	uint32_t gids[VFS_MAX_GIDS];
};

/*
 * The context of an operation.  Freeing more than VFS_LONG bytes of a file
 * counts as blocking, on every backend.
 */
struct vfs_ctx {
	const struct vfs_cred *cred;
	bool nonblock;
};

#define VFS_LONG	((uint64_t)1 << 20)

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
 * consistency).  Operations that take one fill it in on success *and* on
 * failure, as far as they know; @before as close to the change as they can.
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

struct vfs_config;

/* Sets *@config->why.  Returns -EINVAL. */
int vfs_fail(const struct vfs_config *config, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* 0, -ENAMETOOLONG, -EINVAL (empty, NUL, '/'). */
int vfs_name_check(const char *s, uint32_t len);

struct vfs_node {
	struct vfs_fs	*fs;		/* borrowed: outlives its nodes */
	struct ref	 ref;
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
	bool		case_insensitive;
	bool		case_preserving;
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
	const char	  *target;	/* LNK: bytes, not terminated */
	uint32_t	   target_len;
	uint32_t	   rdev_major, rdev_minor;
};

/* ACCESS3_* of RFC 1813 section 3.3.4. */
#define VFS_ACCESS_READ		0x01
#define VFS_ACCESS_LOOKUP	0x02
#define VFS_ACCESS_MODIFY	0x04
#define VFS_ACCESS_EXTEND	0x08
#define VFS_ACCESS_DELETE	0x10
#define VFS_ACCESS_EXECUTE	0x20

struct vfs_ops;

/* One exported tree. */
struct vfs_fs {
	const struct vfs_ops *ops;
	/* The write verifier: changes at start and with every write-back
	 * error (RFC 1813 section 3.3.7). */
	_Atomic uint64_t      verf;
	/* A number that is this tree's across restarts: FATTR3 fsid. */
	uint64_t	      fsid;
};

/* The type of an option, and that of its member of the block. */
enum vfs_option_type {
	VFS_FLAG,	/* "name"; bool: it was given */
	VFS_NUMBER,	/* "name=10"; uint64_t, min to max */
	VFS_SIZE,	/* "name=10m"; the same, in units of 1, 2^10 (k), 2^20
			 * (m) or 2^30 (g) */
	VFS_TEXT,	/* "name=text"; char[max + 1]: min to max bytes, no
			 * comma or colon, and zeros */
};

/*
 * A row for each option of a backend, as it stands in an exports file.  Its
 * value goes to @offset of a block that is all zeros else.
 */
struct vfs_option {
	const char	    *name;
	enum vfs_option_type type;
	size_t		     offset;
	uint64_t	     min, max;
};

struct vfs_config {
	const char *path;	/* the directory, absolute; for mem a name */
	const void *options;	/* a block of ops->options_size bytes */
	const char *state_dir;	/* where the backend may keep things, or NULL */
	/* The rest may be zero. */
	const char *where;	/* "FILE:LINE" that asks for it: for warnings */
	char	  **why;	/* a failed mount's message, malloced:
				 * vfs_fail() */
};

/*
 * The backend.  @out nodes are counted and the caller's.  @attr and @wcc
 * pointers may be NULL: not wanted.  Names are checked already; lookup alone
 * may be asked for "..", which is the root itself at the root, and nothing is
 * asked about ".".
 */
struct vfs_ops {
	const char		*name;
	const struct vfs_option	*options;
	unsigned		 noptions;
	size_t			 options_size;	/* of the block they fill */

	int  (*mount)(const struct vfs_config *config, struct vfs_fs **out);
	/* All nodes have been put. */
	void (*unmount)(struct vfs_fs *fs);
	/* Optional: true if @path, of vfs_config, still leads to the tree. */
	bool (*is_at)(struct vfs_fs *fs, const char *path);

	int  (*root)(struct vfs_fs *fs, struct vfs_node **out);
	/* Opens the node that a handle names; never one outside of the tree. */
	int  (*open_handle)(const struct vfs_ctx *ctx, struct vfs_fs *fs,
			    const struct vfs_handle *h, struct vfs_node **out);
	void (*handle)(struct vfs_node *n, struct vfs_handle *h);
	/* The last reference is gone. */
	void (*node_free)(struct vfs_node *n);

	int  (*getattr)(const struct vfs_ctx *ctx, struct vfs_node *n,
			struct vfs_attr *attr);
	int  (*setattr)(const struct vfs_ctx *ctx, struct vfs_node *n,
			const struct vfs_setattr *set, struct vfs_wcc *wcc);
	int  (*access)(const struct vfs_ctx *ctx, struct vfs_node *n,
		       uint32_t want, uint32_t *granted,
		       struct vfs_attr *attr);
	/* @attr: the found node's; @dir_attr: filled in on failure too,
	 * *@has_dir_attr says whether. */
	int  (*lookup)(const struct vfs_ctx *ctx, struct vfs_node *dir,
		       struct vfs_name name, struct vfs_node **out,
		       struct vfs_attr *attr, struct vfs_attr *dir_attr,
		       bool *has_dir_attr);
	/* Returns the length, at most @size, or -errno. */
	int  (*readlink)(const struct vfs_ctx *ctx, struct vfs_node *n,
			 char *buf, uint32_t size, struct vfs_attr *attr);
	/* Returns bytes read or -errno.  Short only at the end of the file. */
	int64_t (*read)(const struct vfs_ctx *ctx, struct vfs_node *n,
			uint64_t off, const struct iovec *iov, int niov,
			bool *eof, struct vfs_attr *attr);
	/*
	 * READ into a pipe that is empty, takes @len bytes from the start of
	 * a page, and doesn't block.  May be short.  -EOPNOTSUPP: read it.
	 * May be NULL.
	 */
	int64_t (*read_pipe)(const struct vfs_ctx *ctx, struct vfs_node *n,
			     uint64_t off, uint32_t len, int pipe, bool *eof,
			     struct vfs_attr *attr);
	/* Returns bytes written (perhaps fewer than given) or -errno.  With
	 * *@stable it says how stable it made them, at least as asked. */
	int64_t (*write)(const struct vfs_ctx *ctx, struct vfs_node *n,
			 uint64_t off, const struct iovec *iov, int niov,
			 enum vfs_stable *stable, struct vfs_wcc *wcc);
	int  (*commit)(const struct vfs_ctx *ctx, struct vfs_node *n,
		       uint64_t off, uint32_t count, struct vfs_wcc *wcc);
	/* A file that is made but can't be opened, for want of memory or
	 * descriptors, is no error: *@out is NULL then, and @attr is not
	 * set. */
	int  (*create)(const struct vfs_ctx *ctx, struct vfs_node *dir,
		       struct vfs_name name, const struct vfs_create *how,
		       struct vfs_node **out, struct vfs_attr *attr,
		       struct vfs_wcc *wcc);
	int  (*make)(const struct vfs_ctx *ctx, struct vfs_node *dir,
		     struct vfs_name name, const struct vfs_make *what,
		     struct vfs_node **out, struct vfs_attr *attr,
		     struct vfs_wcc *wcc);
	/* @dir: remove a directory (RMDIR), else anything else (REMOVE). */
	int  (*remove)(const struct vfs_ctx *ctx, struct vfs_node *dir,
		       struct vfs_name name, bool is_dir, struct vfs_wcc *wcc);
	int  (*rename)(const struct vfs_ctx *ctx, struct vfs_node *from,
		       struct vfs_name from_name, struct vfs_node *to,
		       struct vfs_name to_name, struct vfs_wcc *from_wcc,
		       struct vfs_wcc *to_wcc);
	int  (*link)(const struct vfs_ctx *ctx, struct vfs_node *n,
		     struct vfs_node *dir, struct vfs_name name,
		     struct vfs_attr *attr, struct vfs_wcc *dir_wcc);
	/*
	 * Entries after @cookie (0: from the start), "." and ".." included,
	 * until @emit says stop.  *@verf: in, what the client was given with
	 * @cookie; out, what goes with this reply.
	 */
	int  (*readdir)(const struct vfs_ctx *ctx, struct vfs_node *dir,
			uint64_t cookie, uint64_t *verf, bool plus,
			vfs_emit_fn *emit, void *arg, bool *eof,
			struct vfs_attr *attr);
	int  (*statfs)(const struct vfs_ctx *ctx, struct vfs_node *n,
		       struct vfs_statfs *st);
	int  (*limits)(const struct vfs_ctx *ctx, struct vfs_node *n,
		       struct vfs_limits *l);
};

static inline void vfs_node_get(struct vfs_node *n)
{
	ref_get(&n->ref);
}

static inline void vfs_node_put(struct vfs_node *n)
{
	if (n && ref_put(&n->ref))
		n->fs->ops->node_free(n);
}

#endif
