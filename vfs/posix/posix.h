/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * posix - the backend that exports a directory of the local system.
 *
 * A node is one file that is in use: its handle, and a descriptor that pins
 * it.  Nodes are cached by handle (cache.c), so that the usual operation is
 * the one system call that does it.  The cache holds a reference to each of
 * its nodes, is bounded by descriptors, and lets go of what was not used for
 * a few seconds, so that no file system is kept busy and no removed file
 * keeps its space.
 *
 * Handles (handle.h) are the system's own where it has them.  Where the
 * process may not open by handle, a table says where each file
 * that a handle was given out for was last seen (table/places.h).
 *
 * Operations on names run with the caller's credentials (cred.c), so the
 * kernel decides.  Descriptors are opened as the server, so what is done
 * through them is checked for each call (perm.c).  That takes a file system
 * whose modes and lists are all the rights there are (kinds.h).  On others each
 * operation runs as its caller from the start, descriptors are a caller's
 * (opened.h), and no answer about rights or names is kept.
 *
 * All single-component names are resolved without following symbolic links
 * and without crossing mount points; ".." is answered in lookup.c alone.
 */
#ifndef GANNET_VFS_POSIX_POSIX_H
#define GANNET_VFS_POSIX_POSIX_H

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
struct posix_own;
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
	_Atomic long	 nfds;		/* of all nodes, cached or not */
	_Atomic uint32_t tick;		/* a quarter of the idle time */
	struct crew_job	 sweep;
	pthread_mutex_t	 lock;
	/* Under the lock: */
	struct cds_list_head nodes;	/* oldest first, as last looked at */
	long		 count;
	long		 buckets;	/* of hash */
	uint64_t	 next_tick;	/* 0: there is nothing to look at */
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
	int		 mount_fd;	/* of the root, for open_by_handle_at */
	bool		 mount_is_path;	/* O_PATH: the root can't be read */
	atomic_int	 whole_fd;	/* to sync all of it: see sync.c; -1 */
	struct posix_disk *disk;	/* counted */
	struct posix_own *own;		/* counted; NULL: not in this tree */
	dev_t		 dev;
	ino_t		 ino;		/* of the root */
	uint64_t	 mount;		/* its id; 0: unknown */
	uint32_t	 uid;		/* the process's */
	struct vfs_limits limits;

	bool	privileged;		/* may act as its callers */
	bool	as_caller;		/* ... and does in all that it does */
	bool	has_user;		/* the only one whom FUSE serves: */
	uid_t	user;
	gid_t	group;
	bool	kernel_ids;		/* name_to_handle_at works */
	bool	by_handle;		/* and so does open_by_handle_at */
	bool	ram;			/* nothing blocks or needs a sync */
	bool	ext4;			/* or ext2, or ext3 */
	bool	btrfs;
	bool	remote;			/* everything may block */
	bool	no_openat2;
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
	 * With fs->as_caller both stay -1, and there is a list instead. */
	atomic_int	 rd_fd;
	atomic_int	 wr_fd;
	struct posix_opened *opened;	/* under fs->opened_lock */
	_Atomic uint32_t used;		/* tick of the last use */
	atomic_bool	 dirty;		/* written, not synced since */
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

/* From now on to be read-only means that it gave up on its disk. */
static inline void posix_seen_writable(struct posix_fs *fs)
{
	if (unlikely(fs->read_only))
		fs->read_only = false;
}

/* True if an operation that can wait for storage may go ahead. */
static inline bool posix_may_block(const struct vfs_op *op,
				   const struct posix_fs *fs)
{
	return !op->nonblock || fs->ram;
}

/* ... if it may write to the table of files as well, whose directory is on a
 * disk. */
static inline bool posix_may_record(const struct vfs_op *op,
				    const struct posix_fs *fs)
{
	return !op->nonblock || (fs->ram && !fs->table);
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

/* cred.c: the thread's file system credentials. */
/* A caller, to be remembered after its call. */
struct posix_who {
	uint32_t uid;
	uint32_t gid;
	uint64_t gids_id;
};

static inline struct posix_who posix_who(const struct vfs_cred *cred)
{
	return (struct posix_who){ cred->uid, cred->gid, cred->gids_id };
}

static inline bool posix_who_is(const struct posix_who *who,
				const struct vfs_cred *cred)
{
	return who->uid == cred->uid && who->gid == cred->gid &&
	       who->gids_id == cred->gids_id;
}

/* True if the process can act as other users at all.  At mount. */
bool posix_cred_probe(void);
/*
 * Become the caller.  0; -EACCES when the system has no such user; -EAGAIN
 * with op->nonblock, when that would change the thread's credentials.
 */
int  posix_cred_set(const struct posix_fs *fs, const struct vfs_op *op);
/* Become the server again, to open what serves all callers.  Changes nothing
 * with fs->as_caller; @fs NULL: in any case. */
void posix_cred_server(const struct posix_fs *fs);
/* Has a thread that acts as a caller act as the server, until it is taken back
 * with what this returns.  Not on a thread whose credentials must stay. */
uint32_t posix_cred_lend_server(void);
void posix_cred_take_back(uint32_t uid);
/* The caller that the thread is; the server is like none. */
struct posix_who posix_cred_now(void);
/*
 * What each operation does first.  0; -EAGAIN: it can't go on with
 * op->nonblock, since everything may block; -EACCES.
 */
int  posix_begin_remote(const struct posix_fs *fs, const struct vfs_op *op);
static inline int posix_begin(const struct posix_fs *fs,
			      const struct vfs_op *op)
{
	return unlikely(fs->remote) ? posix_begin_remote(fs, op) : 0;
}

/* perm.c: a caller's permissions on a file that the server has open. */
#define POSIX_X	1
#define POSIX_W	2
#define POSIX_R	4
/* Returns the bits of @want (POSIX_*) that the kernel grants, or -errno.  @st
 * is fresh. */
int  posix_granted(const struct vfs_op *op, struct posix_node *n,
		   const struct stat *st, unsigned want);
/*
 * Notes that the kernel let the caller do @what just now, as itself.  @st is
 * from before, posix_settled() then, and no other ctime since.
 */
void posix_was_granted(const struct vfs_op *op, struct posix_node *n,
		       const struct stat *st, unsigned what);
/* 0, -EACCES or -EAGAIN.  The owner may always read and write (RFC 1813 section
 * 4.4), and a caller that may execute may read. */
int  posix_check_io(const struct vfs_op *op, struct posix_node *n,
		    const struct stat *st, unsigned want);
vfs_op_fn posix_access;

/*
 * attr.c
 */
/* Learns from the flags of the mount what reads do to times, and that it may
 * be written. */
void posix_flags_learn(struct posix_fs *fs);
/*
 * True if a read would change the file's time of last access.  Such a change
 * begins with the journal, which blocks while the disk hangs.
 */
bool posix_atime_due(struct posix_node *n);
int  posix_fstat(int fd, struct stat *st);
/* Of what @name in @dir is itself; -EXDEV: the root of another mount, which is
 * asked nothing.  *@born, unless @born is NULL: when the file was made, or
 * later. */
int  posix_stat_name(struct posix_node *dir, const char *name,
		     struct stat *st, struct timespec *born);
/* Of the node's file; -ESTALE when it has no name any more. */
int  posix_stat(struct posix_node *n, struct stat *st);
/* The same; *@fixed: it may not be opened to write (chattr +a, +i). */
int  posix_stat_flags(struct posix_node *n, struct stat *st, bool *fixed);
enum vfs_type posix_type(mode_t mode);
void posix_attr(const struct posix_fs *fs, const struct stat *st,
		struct vfs_attr *attr);

static inline bool posix_same_time(const struct timespec *a,
				   const struct timespec *b)
{
	return a->tv_nsec == b->tv_nsec && a->tv_sec == b->tv_sec;
}

static inline bool posix_is_later(const struct timespec *a,
				  const struct timespec *b)
{
	return a->tv_sec > b->tv_sec ||
	       (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

/*
 * True if every later change of the file will show in its ctime.  False if that
 * is so recent that the next change may get the same time.
 */
bool posix_settled(const struct stat *st);

vfs_op_fn posix_getattr;

/*
 * volume.c
 */
/* Names the file system, across restarts, whose directory @fd (inode @ino, at
 * @path) is a root: struct vfs_fs. */
uint64_t posix_volume(int fd, ino_t ino, const char *path);
/* Gets the type, inode and mount of what is mounted at @name, or of @dir_fd
 * with an empty name, without asking its file system. */
int  posix_stat_mount(int dir_fd, const char *name, struct statx *sx);
static inline uint64_t posix_mount_id(const struct statx *sx)
{
	return sx->stx_mask & STATX_MNT_ID ? sx->stx_mnt_id : 0;
}
/* From posix_stat_mount(): struct vfs_fs. */
uint64_t posix_mark(const struct statx *sx);

/*
 * setattr.c
 */
vfs_op_fn posix_setattr;
/* Gives a new file what its creation, as the caller, could not; *@changed: it
 * did. */
int  posix_setattr_new(const struct vfs_op *op, struct posix_node *n,
		       const struct vfs_setattr *set, struct stat *st,
		       bool *changed);

/*
 * acl.c
 */
vfs_op_fn posix_getacl, posix_setacl;

/*
 * verf.c: verifiers of EXCLUSIVE CREATEs.
 */
/* The times of a new file, which say that it was made with @verf. */
void posix_verf_times(uint64_t verf, struct vfs_setattr *set);
bool posix_verf_is(const struct stat *st, uint64_t verf);
/* And in memory. */
void posix_verf_keep(struct posix_fs *fs, const struct vfs_handle *h,
		     uint64_t verf);
bool posix_verf_known(struct posix_fs *fs, const struct vfs_handle *h,
		      uint64_t verf);

/*
 * node.c
 */
/* An unhashed node with one reference.  Takes @fd, on failure too. */
int  posix_node_create(struct posix_fs *fs, int fd, const struct stat *st,
		       const struct vfs_handle *h, struct posix_node **out);
/*
 * The cached node of the file that @fd is open on, made if need be.  Takes
 * @fd.  @rdwr: it is open for reading and writing.  -EXDEV: a directory of
 * another file system.
 */
int  posix_node_adopt(struct posix_fs *fs, int fd, bool rdwr, struct stat *st,
		      struct posix_node **out);
void posix_node_free(struct vfs_node *n);
/* The node of @h, counted, if it is in use or the root; else NULL. */
struct posix_node *posix_node_known(struct posix_fs *fs,
				    const struct vfs_handle *h);
/* Opens @h by the system's handle, as the server.  @h is of no known node. */
int  posix_node_open(struct posix_fs *fs, const struct vfs_handle *h,
		     struct posix_node **out);
void posix_handle(struct vfs_node *n, struct vfs_handle *h);

/*
 * open.c: descriptors of files.
 */
/* Descriptors to read, write or sync through; -errno.  Borrowed. */
int  posix_node_rd(struct posix_node *n);
int  posix_node_wr(struct posix_node *n);
/* Opens @n's file again with @flags, as the server: a descriptor that is the
 * caller's to close, and is counted; or -errno. */
int  posix_node_reopen(struct posix_node *n, int flags);
void posix_fd_close(struct posix_fs *fs, int fd);
/* Counts @fd, unless it is -errno; returns it. */
int  posix_fd_counted(struct posix_fs *fs, int fd);
/* A duplicate that is counted likewise, or -1. */
int  posix_fd_copy(struct posix_fs *fs, int fd);
/* The path to the file that @fd is open on, for calls that take no O_PATH
 * descriptor. */
struct posix_fd_path {
	char s[32];
};
struct posix_fd_path posix_fd_path(int fd);
/*
 * The owner may read and write whatever the mode says (RFC 1813 section 4.4): a
 * file that it made read-only is written a while after.  A server that is no
 * more than the owner can do that only by descriptors from before.  So it opens
 * them before it sets @mode, and afterwards keeps them as long as it can.
 */
void posix_node_mode_comes(struct posix_node *n, uint32_t mode);
void posix_node_mode_is(struct posix_node *n, uint32_t mode);
/*
 * Opening @n failed with -EACCES, although the owner may write or read it
 * (@bit: S_IWUSR or S_IRUSR).  If its mode is the reason, says so in the log,
 * once for each use of the file.  Returns -EACCES.
 */
int  posix_node_closed(struct posix_node *n, const struct stat *st,
		       uint32_t bit);
/* True if an open that failed with @err (-errno) is worth another try: it was
 * for want of descriptors, and some were closed since. */
bool posix_open_again(struct posix_fs *fs, int err);
/* Maps the -errno of an open to one for the client. */
int  posix_open_error(int err);
/* The directory @n, open at its start, for the caller to close; or -errno.  As
 * the server. */
int  posix_open_dir(struct posix_node *n);
/* Opens @name in @dir_fd (O_PATH, nothing followed or crossed) or -errno;
 * -EXDEV: something is mounted there. */
int  posix_open_name(struct posix_fs *fs, int dir_fd, const char *name,
		     bool nonblock);

/*
 * cache.c
 */
/* Counted, or NULL. */
struct posix_node *posix_cache_find(struct posix_cache *c,
				    const struct vfs_handle *h);
/* Enters @n, unless another thread has entered a node of the file: returns the
 * node to use, counted.  Takes @n. */
struct posix_node *posix_cache_enter(struct posix_cache *c,
				     struct posix_node *n);
/* The file is gone or has changed its properties: no later look-up finds @n. */
void posix_cache_forget(struct posix_cache *c, struct posix_node *n);
/*
 * Before opening one more, as anyone: closes what is unused when there are too
 * many.  0, or -ETIMEDOUT when the export has all the descriptors that it may
 * have.  Then a worker waits a second at most for others to be closed, but not
 * while the export's disk has closed none since another worker waited.
 */
int  posix_cache_room(struct posix_cache *c);
/* Has the sweep free a node, for a thread that must not wait, or must not
 * become the server to sync it. */
void posix_cache_bury(struct posix_cache *c, struct posix_node *n);
/* This thread closes files of others, in the midst of an operation that it does
 * as a caller. */
extern _Thread_local bool posix_makes_room;
/* This thread sweeps: nothing else makes room for it. */
extern _Thread_local bool posix_sweeps;
bool posix_cache_full(struct posix_cache *c);
/* An open failed for want of descriptors: true when some were closed. */
bool posix_cache_squeeze(struct posix_cache *c);
#define POSIX_PASS	64
/* A look at some nodes. */
struct posix_pass {
	/* They go that nobody used for so many ticks; dirty ones for so many,
	 * UINT32_MAX: never. */
	uint32_t age, dirty_age;
	bool	 idle;			/* not to make room for others */
	long	 closed;		/* so far */
	/* Those whose time has come, but for a sync; counted. */
	struct posix_node *dirty[POSIX_PASS];
	long	 ndirty;
};
/* Looks at up to @max nodes, from the oldest, and closes those not used for
 * long, except dirty ones.  Returns how many it looked at. */
long posix_cache_pass(struct posix_cache *c, long max, struct posix_pass *p);
/* Closes a dirty one, which is synced now, if nobody used it meanwhile.  Puts
 * the caller's reference. */
bool posix_cache_drop(struct posix_cache *c, struct posix_node *n,
		      struct posix_pass *p);
/* Files were closed: lets those that wait for room go on. */
void posix_cache_tell_room(struct posix_cache *c);

/*
 * sweep.c
 */
int  posix_cache_init(struct posix_cache *c, const struct posix_options *o);
/* Puts all nodes.  No operation is running. */
void posix_cache_fini(struct posix_cache *c);

/*
 * dentry.c: names that were looked up.  @dir_st is the directory's from
 * before the look-up; posix_settled() then, and no other ctime since.
 */
int  posix_dentries_create(struct posix_dentries **out);
void posix_dentries_destroy(struct posix_dentries *d);
bool posix_dentry_find(const struct posix_fs *fs, const struct posix_node *dir,
		       const struct stat *dir_st, const char *name,
		       struct vfs_handle *file);
void posix_dentry_keep(struct posix_fs *fs, const struct posix_node *dir,
		       const struct stat *dir_st, const char *name,
		       const struct vfs_handle *file);

/*
 * lookup.c, create.c, names.c, file.c, readdir.c, lock.c: the operations.
 */
int  posix_root(struct vfs_fs *fs, struct vfs_node **out);
/* path.c: as vfs_ops.path. */
int posix_path(struct vfs_node *node, char *out, size_t size);
vfs_op_fn posix_open_handle, posix_lookup, posix_create, posix_make,
	  posix_remove, posix_rename, posix_link, posix_readlink, posix_read,
	  posix_read_pipe, posix_write, posix_commit, posix_readdir, posix_lock;

#endif
