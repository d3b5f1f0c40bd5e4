/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * posix - the backend that exports a directory of the local system.
 *
 * A node is one file that is in use: its handle, and a descriptor that pins it.
 * Nodes are cached by handle (cache.c), so that the usual operation is the one
 * system call that does it.  The cache holds a reference to each of its nodes,
 * is bounded by descriptors, and drops nodes that were not used for a few
 * seconds: unused files must not keep a file system busy, nor the space of a
 * removed file.
 *
 * Handles (handle.h) are the system's own where it has them.  Where the process
 * can't open by handle, a table records where each file with a handle was last
 * seen (table/places.h).
 *
 * Operations on names run with the caller's credentials (cred.c), so the kernel
 * decides.  Descriptors are opened as the server, so perm.c checks the rights
 * of each call that uses one.  That requires a file system where only modes and
 * lists decide about rights (kinds.h).  On others each operation runs as its
 * caller from the start, descriptors are a caller's (opened.h), and no answer
 * about rights or names is kept.
 *
 * All single-component names are resolved without following symbolic links
 * and without crossing mount points; ".." is answered in lookup.c alone.
 */
#pragma once

#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <urcu.h>
#include <urcu/list.h>
#include <urcu/rculfhash.h>

#include "lib/crew.h"
#include "lib/fds.h"
#include "lib/hash.h"
#include "lib/stats.h"
#include "lib/thread.h"
#include "lib/util.h"
#include "vfs/backends.h"
#include "vfs/posix/sync.h"

/* Flags of openat2() for a plain name. */
#define POSIX_OPEN_NAME	(O_PATH | O_NOFOLLOW | O_CLOEXEC)

struct posix_dentries;
struct posix_opened;
struct posix_own_path;
struct posix_table;
struct posix_verdicts;

/* The block of vfs_config; gannet-exports(5). */
struct posix_options {
	bool	 async;		/* changes of names and attributes need not be
				 * durable when they are answered */
	bool	 table;		/* don't open by the system's file handles */
	uint64_t max_files;	/* descriptors kept open; 0: a share of the
				 * process's limit */
	uint64_t idle_ms;	/* ... and for how long unused; 0: 5 s */
};

struct posix_cache {
	struct cds_lfht	*hash;
	long		 max_fds;
	uint32_t	 idle_ms;
	_Atomic uint32_t tick;		/* a quarter of the idle time */
	/* Every call reads the fields above, and each new file changes those
	 * below: in other cache lines. */
	char		 apart[64];
	_Atomic long	 nfds;		/* of all nodes, cached or not */
	struct crew_job	 sweep;
	pthread_mutex_t	 lock;
	/* Under the lock: */
	struct cds_list_head nodes;	/* oldest first, as last looked at */
	long		 count;
	long		 buckets;	/* of hash */
	uint64_t	 next_tick;	/* 0: nothing to look at */
	bool		 pressed;	/* for descriptors */
	bool		 stuck;		/* waiting for them was in vain */
	pthread_cond_t	 closed;	/* the sweep closed some */
	struct cds_list_head dying;	/* nodes that a poller put last */
};

#define POSIX_VERFS	1024

/* See verf.c. */
struct posix_verfs {
	pthread_mutex_t	 lock;
	/* Under the lock: */
	unsigned	 next;		/* in turn */
	struct {
		struct vfs_handle file;
		uint64_t	  verf;
	} last[POSIX_VERFS];
};

/* The effect of a read on a file's time of last access; see mount(8). */
enum posix_atime { POSIX_ATIME_STRICT, POSIX_ATIME_RELATIVE, POSIX_ATIME_NONE };

struct posix_fs {
	struct vfs_fs	 fs;
	struct vfs_fs	 covered;	/* of mount points: covered.c */
	struct posix_cache cache;
	struct posix_table *table;	/* NULL: handles open by themselves */
	struct posix_dentries *dentries;
	struct posix_verfs verfs;
	pthread_mutex_t	 opened_lock;	/* opened.c */
	struct posix_node *root;	/* counted; not in the cache */
	int		 mount_fd;	/* the root's */
	long		 kept_fds;	/* besides the nodes' */
	bool		 mount_is_path;	/* O_PATH: the root can't be read */
	atomic_int	 whole_fd;	/* to sync all of it: see sync.c; -1 */
	struct posix_disk *disk;	/* counted */
	struct posix_own_path *state;	/* counted; or NULL */
	dev_t		 dev;
	ino_t		 ino;		/* of the root */
	uint64_t	 mount;		/* its id; 0: unknown */
	dev_t		 mount_dev;	/* in the list of mounts; 0: unknown */
	uint32_t	 uid;		/* the process's */
	struct vfs_limits limits;

	bool	privileged;		/* can act as its callers */
	bool	as_caller;		/* ... and does in each operation */
	bool	has_user;		/* the only one whom FUSE serves: */
	uid_t	user;
	gid_t	group;
	bool	kernel_ids;		/* name_to_handle_at works */
	bool	by_handle;		/* and so does open_by_handle_at */
	bool	ram;			/* nothing blocks or needs a sync */
	bool	ext4;			/* or ext2, or ext3 */
	bool	btrfs;
	bool	fat;
	bool	remote;			/* every operation can block */
	bool	no_openat2;
	bool	no_faccessat2;		/* faccessat: not as another user */
	bool	no_nlink;		/* st_nlink means nothing here */
	bool	sync_names;		/* make changes of metadata durable */
	_Atomic long lock_fds;		/* descriptors that hold locks */
	_Atomic bool ordinals;		/* d_off can't be a cookie */
	_Atomic bool no_nowait_read;
	_Atomic bool no_splice;
	_Atomic bool no_nowait_write;
	_Atomic bool read_only;		/* at each look since we mounted it */
	_Atomic enum posix_atime atime;
};

struct posix_node {
	struct vfs_node	 node;
	struct cds_lfht_node hash;
	struct rcu_head	 rcu;
	struct cds_list_head link;	/* cache: under its lock */
	bool		 cached;	/* likewise */

	/* Set once. */
	struct vfs_handle handle;
	enum vfs_type	 type;
	ino_t		 ino;
	int		 fd;		/* O_PATH or more */

	/* Opened when needed, kept until the node goes; -1, or perhaps fd.
	 * With fs->as_caller both stay -1, and @opened is used instead. */
	atomic_int	 rd_fd;
	atomic_int	 wr_fd;
	struct posix_opened *opened;	/* under fs->opened_lock */
	_Atomic uint32_t used;		/* tick of the last use */
	atomic_bool	 dirty;		/* written, not synced since */
	atomic_bool	 little;	/* of data, when its last name went */
	/* Of an unprivileged server's file: it can't be opened again. */
	atomic_bool	 closed_to_owner;
	atomic_bool	 told_closed;	/* the log says so */
	struct posix_turns turns;	/* to sync it */

	/* Hash of where it was recorded last: odd.  Even: nowhere. */
	_Atomic uint64_t place;

	/* The kernel's answers about access: under RCU. */
	struct posix_verdicts *_Atomic verdicts;
	/* A symbolic link's text, which never changes. */
	struct posix_text *_Atomic text;
};

struct posix_text {
	uint32_t len;
	char	 s[];
};

static inline struct posix_fs *to_posix_fs(struct vfs_fs *fs)
{
	return container_of(fs, struct posix_fs, fs);
}

static inline struct posix_node *to_posix(struct vfs_node *n)
{
	return container_of(n, struct posix_node, node);
}

static inline struct posix_fs *posix_fs_of(struct posix_node *n)
{
	return to_posix_fs(n->node.fs);
}

/* Once seen writable, read-only means that it gave up on its disk. */
static inline void posix_seen_writable(struct posix_fs *fs)
{
	if (unlikely(fs->read_only))
		fs->read_only = false;
}

/*
 * Each operation calls this first.  0; -EAGAIN: every operation can block, and
 * op->nonblock forbids that; -EACCES.  cred.c
 */
int  posix_begin_remote(const struct posix_fs *fs, const struct vfs_op *op);
static inline int posix_begin(const struct posix_fs *fs,
			      const struct vfs_op *op)
{
	return unlikely(fs->remote) ? posix_begin_remote(fs, op) : 0;
}

/* True if an operation that can wait for storage may proceed. */
static inline bool posix_may_block(const struct vfs_op *op,
				   const struct posix_fs *fs)
{
	return !op->nonblock || fs->ram;
}

/* ... if it may also write to the table of files, whose directory is on a
 * disk. */
static inline bool posix_may_record(const struct vfs_op *op,
				    const struct posix_fs *fs)
{
	return !op->nonblock || (fs->ram && !fs->table);
}

/* ---- comparing handles (handle.h makes them) */

/* The length of the inode number at the end of a 'k' handle. */
#define POSIX_HANDLE_HINT	8

static inline bool posix_handle_is_root(const struct vfs_handle *h)
{
	return h->len == 1 && h->data[0] == 'r';
}

/* Returns the length of the first part of @h, which names the file. */
static inline uint32_t posix_handle_key(const struct vfs_handle *h)
{
	return h->data[0] == 'k' ? h->len - POSIX_HANDLE_HINT : h->len;
}

static inline uint64_t posix_handle_hash(const struct vfs_handle *h)
{
	return hash_bytes(h->data, posix_handle_key(h));
}

static inline bool posix_handle_same(const struct vfs_handle *a,
				     const struct vfs_handle *b)
{
	return a->len == b->len &&
	       memcmp(a->data, b->data, posix_handle_key(a)) == 0;
}

/* A name off the wire, terminated. */
struct posix_name {
	char s[VFS_NAME_MAX + 1];
};

static inline void posix_name_set(struct posix_name *out,
				  struct vfs_name name)
{
	uint32_t len = MIN(name.len, (uint32_t)VFS_NAME_MAX);

	memcpy(out->s, name.s, len);
	out->s[len] = '\0';
}
