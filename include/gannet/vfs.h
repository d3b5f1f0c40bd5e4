/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gannet/vfs.h - storage backends of gannetd, and loadable modules with them.
 *
 * A backend turns a directory, or whatever it calls one, into a struct vfs_fs,
 * and that into nodes: counted objects, one for each file that is in use.
 * Operations name nodes, never paths, and carry the caller's credentials.  They
 * are shaped by NFSv3 (RFC 1813) but know nothing of RPC.
 *
 * A module is a shared object NAME.so that defines gannet_backend; gannetd
 * loads it for --backend NAME.  gannet-vfs(3) has the details.
 *
 * Errors are -errno: gannet/vfs_errors.h has all of them, and what each
 * becomes.
 *
 * Threads: operations run on threads of gannetd, many at the same time, also on
 * one node; the caller holds a reference to each node that it names.  The
 * threads are registered with liburcu's "memb" flavour and block all signals.
 * A call can leave the thread with the caller's file system credentials
 * (setfsuid(2)): a backend that opens other files on such a thread has to
 * consider that.
 */
#ifndef GANNET_VFS_H
#define GANNET_VFS_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <gannet/vfs_acl.h>
#include <gannet/vfs_errors.h>
#include <gannet/vfs_lock.h>
#include <gannet/vfs_option.h>
#include <gannet/vfs_quota.h>
#include <gannet/vfs_types.h>

/* Changes with every change of this file that requires a rebuild of modules.
 * gannetd loads only modules of its version. */
#define GANNET_VFS_VERSION	14

/* Arguments and results of single operations, members of struct vfs_op. */
struct vfs_open {
	struct vfs_fs		*fs;
	const struct vfs_handle	*handle;
};

struct vfs_access {
	uint32_t want;			/* VFS_ACCESS_* */
	uint32_t granted;		/* result */
};

struct vfs_lookup {
	struct vfs_attr	 *dir_attr;
	bool		  has_dir_attr;	/* result; false at first */
	struct vfs_child *child;	/* result; all zeros except @below.
					 * NULL: not wanted */
};

struct vfs_readlink {
	char	*text;
	uint32_t size;
};

struct vfs_read {
	uint64_t	    off;
	const struct iovec *iov;	/* read */
	int		    niov;
	int		    pipe;	/* read_pipe */
	uint32_t	    count;
};

struct vfs_write {
	uint64_t	    off;
	const struct iovec *iov;
	int		    niov;
	enum vfs_stable	    stable;	/* in and out */
};

struct vfs_commit {
	uint64_t off;
	uint32_t count;
};

/* Where the new name is. */
struct vfs_to {
	struct vfs_node *dir;
	struct vfs_name  name;
	struct vfs_wcc	*wcc;
};

struct vfs_readdir {
	uint64_t     cookie;
	uint64_t     verf;		/* in and out */
	vfs_emit_fn *emit;
	void	    *arg;
	bool	     plus;
};

/*
 * One operation: a head that all have, and in the union the arguments and
 * results of this one: read uses @read alone.
 *
 * It and all that it points to belong to the caller, and stay until the
 * operation is over.  A NULL pointer to attributes means that they are not
 * wanted, except in getattr.
 *
 * With @nonblock the operation must not wait for storage or for a peer, nor
 * change the thread's credentials: it does nothing and returns -EAGAIN instead,
 * and is called again without.  Freeing more than VFS_LONG bytes of a file
 * counts as blocking, on every backend.
 */
struct vfs_op {
	const struct vfs_cred	*cred;
	const struct vfs_later	*later;	/* may be NULL: see vfs_op_give() */
	struct vfs_node		*node;	/* the file, or the directory of name */
	struct vfs_name		 name;
	bool			 nonblock;

	/* Results.  Attributes are of the node after the operation, and are
	 * filled in on success only where nothing else is said. */
	struct vfs_attr		*attr;	/* of the node; of @out, if any */
	struct vfs_wcc		*wcc;	/* of the directory, or the node */
	struct vfs_node		*out;	/* found or made; counted, and the
					 * caller puts it */
	bool			 eof;	/* read, read_pipe, readdir: the end was
					 * reached */
	union {
		struct vfs_open		  open;		/* open_handle */
		const struct vfs_setattr *set;		/* setattr */
		struct vfs_access	  access;
		struct vfs_lookup	  lookup;
		struct vfs_readlink	  readlink;
		struct vfs_read		  read;		/* and read_pipe */
		struct vfs_write	  write;
		struct vfs_commit	  commit;
		const struct vfs_create	 *create;
		const struct vfs_make	 *make;		/* mkdir, symlink,
							 * mknod */
		bool			  is_dir;	/* remove */
		struct vfs_to		  to;		/* rename, link */
		struct vfs_readdir	  readdir;
		struct vfs_statfs	 *statfs;
		struct vfs_limits	 *limits;
		struct vfs_acls		 *acls;		/* getacl, setacl */
		struct vfs_lock		 *lock;
		struct vfs_quota	 *quota;
	};
};

#define VFS_LONG	((uint64_t)1 << 20)

/* Returns 0 or -errno where nothing else is said; VFS_PENDING after
 * vfs_op_give(). */
typedef int vfs_op_fn(struct vfs_op *op);

#define VFS_PENDING	INT_MIN

/* gannetd's part of operations that end later. */
struct vfs_later {
	bool (*give)(struct vfs_op *op);
	void (*end)(struct vfs_op *op, int result);
};

/*
 * An operation can end later than its function returns, and then occupies no
 * thread meanwhile: before the backend hands it to another thread, such as one
 * of a library, it calls vfs_op_give() on the thread that called the operation,
 * and without the locks that its cancel() takes.  True: the backend owns the
 * operation until vfs_op_end(), which it can call before the function returns.
 * The function returns VFS_PENDING and does not touch @op again; @nonblock is
 * false from then on.  False: the operation has to end here, or to answer
 * -EAGAIN with @nonblock.  Not in an RCU section of the backend's.
 */
static inline bool vfs_op_give(struct vfs_op *op)
{
	return op->later && op->later->give(op);
}

/* Once for each vfs_op_give() that said true, unless cancel() did: the
 * operation has ended with @result, which its function would have returned.
 * Any thread.  After that @op is gone, and its node and the tree can be as
 * well. */
static inline void vfs_op_end(struct vfs_op *op, int result)
{
	op->later->end(op, result);
}

struct vfs_ops;

/* One exported tree.  A backend's has this as a member, and fills it in. */
struct vfs_fs {
	const struct vfs_ops *ops;
	/* The write verifier: changes at start and with every write-back
	 * error (RFC 1813 section 3.3.7). */
	_Atomic uint64_t      verf;
	/* A number that is this tree's across restarts: FATTR3 fsid.  gannetd
	 * replaces it when the exports file has fsid=. */
	uint64_t	      fsid;
	/* A secret of VFS_HANDLE_KEY bytes that only the servers of this tree
	 * have: clients can then use a filehandle at any of them that exports
	 * the tree by the same path, or fsid=.  Stays as it is until unmount.
	 * NULL: the handles are this server's alone. */
	const uint8_t	     *handle_key;
	/* Of backends whose lookup tells of other file systems; else 0. */
	uint64_t	      volume;	/* names this one across restarts */
	uint64_t	      mark;	/* names its mount, while it lasts */
	/* Of a filter over the tree; before attach() its block of options. */
	void		     *filter;
};

/* The tree to mount; borrowed for the call of mount(). */
struct vfs_config {
	const char *path;	/* the directory, absolute; for mem a name */
	const struct vfs_ops *ops;	/* for gannetd's own use */
	const void *options;	/* a block of ops->options_size bytes; stays as
				 * long as the tree */
	const char *state_dir;	/* for files of the backend, or NULL */
	/* The rest may be NULL. */
	const char *where;	/* "FILE:LINE" that asks for it: for warnings */
	char	  **why;	/* a failed mount's message, malloced:
				 * vfs_fail() */
	/* Refuse a symbolic link in any part of @path: it had none when the
	 * server found it, but a link can have replaced a part since. */
	bool	    no_links;
	/* For gannetd --check: mount changes nothing, and takes nothing from a
	 * server that runs. */
	bool	    check;
};

/*
 * The backend.  All members from mount on are set, except members that say "may
 * be NULL"; a filter can leave out any.
 *
 * Names are checked already: 1 to VFS_NAME_MAX bytes without NUL and '/'.  Only
 * lookup gets "..", which is the root itself at the root; no operation gets
 * ".".  The backend checks the caller's permissions, by op->cred.
 */
struct vfs_ops {
	/* GANNET_VFS_VERSION.  The first member in every version. */
	uint32_t		 version;
	/* In exports files: 1 to 32 of a to z, 0 to 9, '-' and '_'.  A
	 * module's is that of its file. */
	const char		*name;
	const struct vfs_option	*options;	/* may be NULL: none */
	unsigned		 noptions;
	size_t			 options_size;	/* of the block they fill */

	/*
	 * Makes this table a filter: in "NAME:posix:/path", one over the posix
	 * backend.  gannetd makes one table of both, as gannet-vfs(3) says,
	 * and calls this when the backend has mounted @fs, with the filter's
	 * part of the options.  After an error, as with mount, @fs is
	 * unmounted.
	 */
	int  (*attach)(const struct vfs_config *config, struct vfs_fs *fs);
	/* Set by gannetd in the table of both: the backend's. */
	const struct vfs_ops	*below;

	/* From here on all members are pointers to functions. */

	/*
	 * Makes the tree.  Runs on a thread that serves only this export, so it
	 * can take as long as the storage does.  After an error *@out is
	 * ignored, and the message is that of vfs_fail() or the errno's.  Then
	 * a reload is refused; at the server's start the export waits, and
	 * mount is called again every five seconds.
	 */
	int  (*mount)(const struct vfs_config *config, struct vfs_fs **out);
	/* Frees the tree.  The server has put all nodes, and no operation
	 * runs.  On the thread of mount; can block. */
	void (*unmount)(struct vfs_fs *fs);
	/* True if @path, of vfs_config or another one, leads to the tree now.
	 * Called at a reload, and for `mountpoint`, on the thread of mount; can
	 * block.  May be NULL. */
	bool (*is_at)(struct vfs_fs *fs, const char *path);

	/* The tree's root directory.  Doesn't block. */
	int  (*root)(struct vfs_fs *fs, struct vfs_node **out);
	/* Sets *@h to @n's handle, which names the file as long as it exists,
	 * and no other file ever.  Doesn't block. */
	void (*handle)(struct vfs_node *n, struct vfs_handle *h);
	/* The last reference is gone: frees @n.  Any thread; doesn't block. */
	void (*node_free)(struct vfs_node *n);

	/*
	 * Opens the node that a handle of @fs names; never one outside of the
	 * tree.  This server made the handle for this export: perhaps before a
	 * restart, for a file that is gone, or with another backend that served
	 * the path then.  Check all of it: -ESTALE, -EBADMSG.
	 */
	vfs_op_fn *open_handle;
	/* GETATTR. */
	vfs_op_fn *getattr;
	/* SETATTR.  -EDOM: @set is guarded, and the guard is not the ctime. */
	vfs_op_fn *setattr;
	/* ACCESS: @granted: the rights in @want that the caller has; other bits
	 * are ignored. */
	vfs_op_fn *access;
	/* LOOKUP.  @dir_attr: the directory's, also on failure; @has_dir_attr
	 * says whether.  @child: set if the name leads to another file system;
	 * @out is then the node to show if clients must not enter that. */
	vfs_op_fn *lookup;
	/* READLINK.  Returns the length, at most @size, or -errno. */
	vfs_op_fn *readlink;
	/* READ.  Returns the bytes read, or -errno.  Short only at the end of
	 * the file, which @eof says; @off plus the bytes fit in 63 bits, and
	 * the bytes in an int. */
	vfs_op_fn *read;
	/*
	 * READ into a pipe that is empty, takes @count bytes from the start of
	 * a page, and doesn't block.  May be short.  -EOPNOTSUPP: read it, the
	 * pipe is still empty.  May be NULL.
	 */
	vfs_op_fn *read_pipe;
	/*
	 * WRITE.  Returns the bytes written (perhaps fewer than given) or
	 * -errno; the bytes fit in an int.  @stable: in, how stable they have
	 * to be; out, how stable they are, at least as asked.  Unstable data
	 * that is lost, for whatever reason, changes fs->verf.
	 */
	vfs_op_fn *write;
	/* COMMIT: puts earlier writes on stable storage, at least @count bytes
	 * (0: all) from @off. */
	vfs_op_fn *commit;
	/* CREATE.  It is not an error if the new file can't be opened, for lack
	 * of memory or descriptors: then @out is NULL, and @attr is not set. */
	vfs_op_fn *create;
	/* MKDIR, SYMLINK, MKNOD; @out as for create. */
	vfs_op_fn *make;
	/* @is_dir: removes a directory (RMDIR), else anything else (REMOVE). */
	vfs_op_fn *remove;
	/* RENAME to @to, within the tree; replaces an existing file as
	 * rename(2) does. */
	vfs_op_fn *rename;
	/* LINK: @node gets the new name @to. */
	vfs_op_fn *link;
	/*
	 * READDIR, and READDIRPLUS with @plus.  Passes the entries after
	 * @cookie (0: from the start), "." and ".." included, to @emit(@arg)
	 * until that says stop.  @verf: in, the client's, which it got with
	 * @cookie; out, the verifier of this reply.
	 */
	vfs_op_fn *readdir;
	/* FSSTAT, for the caller: abytes and afiles are free for it. */
	vfs_op_fn *statfs;
	/* FSINFO and PATHCONF. */
	vfs_op_fn *limits;
	/*
	 * GETACL of NFSACL: fills in the lists that are @wanted, for every
	 * caller.  A list that the file can't have has no entries.  -EFBIG:
	 * more than VFS_ACL_MAX entries.  May be NULL: files have only their
	 * modes.
	 */
	vfs_op_fn *getacl;
	/*
	 * SETACL of NFSACL: replaces the lists that are @wanted, or removes
	 * them if they have no entries.  The mode follows the access ACL.
	 * -EPERM: neither the owner nor root.  -EACCES: a default ACL for no
	 * directory.  As durable as setattr.  May be NULL: -EOPNOTSUPP.
	 */
	vfs_op_fn *setacl;
	/*
	 * Locks bytes of a file for an owner, as the server: gannetd has
	 * checked the rights, and op->cred is NULL.  gannetd keeps its clients'
	 * locks apart itself.  This function makes them visible to local
	 * processes or other servers, and never waits for those.  On workers;
	 * can block; for one file on one thread at a time.
	 *
	 * TEST: would SET succeed?  SET locks, CLEAR unlocks; RELEASE unlocks
	 * all, ends the locker, and can't fail.  Returns 0; 1: another's lock
	 * is in the way, which TEST describes; or -errno, -ENOLCK: too many.
	 * May be NULL: only gannetd locks files there.
	 */
	vfs_op_fn *lock;
	/* Fills in @quota's results, as they are for the file system of the
	 * directory @node.  As the server: gannetd has checked the rights, and
	 * op->cred and op->later are NULL.  On workers; can block.  -EPERM: the
	 * server itself has no right to read them; another -errno: quotas are
	 * off there.  May be NULL: no quotas. */
	vfs_op_fn *quota;
	/* Requests that the backend drop @op, which it has from vfs_op_give(),
	 * since its client has stopped waiting.  True: the operation has had no
	 * effect and will have no effect, and vfs_op_end() is never called for
	 * it.  False: vfs_op_end() will be called, or is being called.  Called
	 * as soon as vfs_op_give() has said true, even before the operation's
	 * function returns, and perhaps again after False.  Doesn't block; the
	 * backend must not hold locks that it takes here around vfs_op_give()
	 * or vfs_op_end().  May be NULL. */
	bool (*cancel)(struct vfs_op *op);
	/* Writes a path of @n now, below the root, to @out as a string, for
	 * people to read; "": the root.  Returns its length or -errno; -ENOENT:
	 * none is known.  Any thread; doesn't block.  May be NULL. */
	int  (*path)(struct vfs_node *n, char *out, size_t size);
};

/* A new node of @fs, with one reference.  Any thread. */
static inline void vfs_node_init(struct vfs_node *n, struct vfs_fs *fs)
{
	n->fs = fs;
	atomic_store_explicit(&n->refs, 1, memory_order_release);
}

/* Adds a reference; the caller has one.  Any thread. */
static inline void vfs_node_get(struct vfs_node *n)
{
	atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
}

/* For look-ups that hold no reference, in memory that is not freed meanwhile:
 * false when the last one is gone already. */
static inline bool vfs_node_get_unless_zero(struct vfs_node *n)
{
	unsigned was = atomic_load_explicit(&n->refs, memory_order_relaxed);

	do {
		if (was == 0)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&n->refs, &was,
			was + 1, memory_order_acquire, memory_order_relaxed));
	return true;
}

/* Drops a reference; the last one frees the node.  NULL is allowed. */
static inline void vfs_node_put(struct vfs_node *n)
{
	/* Pairs with itself: the last put sees the writes of other threads
	 * before theirs. */
	if (n && atomic_fetch_sub_explicit(&n->refs, 1,
					   memory_order_acq_rel) == 1)
		n->fs->ops->node_free(n);
}

#pragma GCC visibility push(default)

/* Defined by a module. */
extern const struct vfs_ops gannet_backend;

/* gannetd's functions for backends.  Any thread. */

/* Sets *@config->why, unless that is NULL.  Returns -EINVAL. */
int vfs_fail(const struct vfs_config *config, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

enum vfs_log_level { VFS_LOG_ERR, VFS_LOG_WARN, VFS_LOG_INFO, VFS_LOG_DEBUG };

/* Writes a line to gannetd's log, if its --log-level is at least @level. */
void vfs_log(enum vfs_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#pragma GCC visibility pop

#endif
