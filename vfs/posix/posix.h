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
 * Handles (handle.c) are the system's own where it has them.  Where the
 * process may not open by handle, a table (table.c) says where each file
 * that a handle was given out for was last seen, and resolve.c walks there.
 *
 * Operations on names run with the caller's credentials (cred.c), so the
 * kernel decides.  Descriptors are opened with the server's own, so what is
 * done through them is checked for each call (perm.c).
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

#include "lib/stats.h"
#include "lib/util.h"
#include "vfs/vfs.h"

/* What openat2() may be asked for beyond a plain name. */
#define POSIX_OPEN_NAME	(O_PATH | O_NOFOLLOW | O_CLOEXEC)

struct posix_dentries;
struct posix_listing;
struct posix_table;
struct posix_verdict;

struct posix_cache {
	struct cds_lfht	*hash;
	long		 max_fds;
	uint32_t	 idle_ms;
	_Atomic long	 nfds;		/* of all nodes, cached or not */
	_Atomic long	 nlisted;	/* likewise: that have listings */
	_Atomic uint32_t tick;		/* a quarter of the idle time */
	pthread_t	 sweeper;
	pthread_mutex_t	 lock;
	/* Under the lock: */
	struct cds_list_head nodes;	/* oldest first, as last looked at */
	long		 count;
	bool		 stop;
	bool		 pressed;	/* for descriptors */
	pthread_cond_t	 wake;
};

struct posix_fs {
	struct vfs_fs	 fs;
	struct posix_cache cache;
	struct posix_table *table;	/* NULL: handles open by themselves */
	struct posix_dentries *dentries;
	/* One thread at a time looks for files that are not where the table
	 * has them, and holds this while it reads directories. */
	pthread_mutex_t	 lost;
	int64_t		 search_again;	/* posix_now() */
	struct posix_node *root;	/* counted; not in the cache */
	int		 mount_fd;	/* of the root, for open_by_handle_at */
	dev_t		 dev;
	ino_t		 ino;		/* of the root */
	uint32_t	 uid;		/* the process's */
	struct vfs_limits limits;

	bool	privileged;		/* may act as its callers */
	bool	kernel_ids;		/* name_to_handle_at works */
	bool	by_handle;		/* and so does open_by_handle_at */
	bool	ram;			/* nothing blocks or needs a sync */
	bool	remote;			/* everything may block */
	bool	no_openat2;
	bool	no_nlink;		/* st_nlink means nothing here */
	bool	keeps_listings;		/* see listing.c */
	bool	sync_names;		/* changes of metadata are made durable */
	_Atomic bool ordinals;		/* d_off can't be a cookie */
	_Atomic bool no_nowait_read;
	_Atomic bool no_splice;
	_Atomic bool no_nowait_write;

	_Atomic long listed_bytes;	/* of all kept listings */
};

/* Of a whole listing. */
struct posix_listed {
	long		 entries;	/* 0: there was none */
	long		 names;		/* their bytes, at most */
};

/* Of a directory; in watch.c under a lock of its own, but @changes. */
struct posix_watch {
	struct cds_list_head link;
	int		 wd;		/* -1: none */
	int64_t		 again;		/* not before: posix_now() */
	atomic_uint	 changes;	/* reported ones */
};

#define POSIX_VERDICTS	2
#define POSIX_STREAMS	16

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

	/* Opened when needed, kept until the node goes; -1, or perhaps fd. */
	atomic_int	 rd_fd;
	atomic_int	 wr_fd;
	_Atomic uint32_t used;		/* tick of the last use */
	atomic_bool	 dirty;		/* written, not synced since */

	/* posix_place_hash() of where it was last recorded; 0: nowhere. */
	_Atomic uint64_t place;

	/* Changes that began and ended: see posix_change_begin(). */
	atomic_uint	 began;
	atomic_uint	 ended;

	/* What the kernel said of access, for the last callers: under RCU. */
	struct posix_verdict *_Atomic verdict[POSIX_VERDICTS];
	/* A symbolic link's text, which never changes. */
	struct posix_text *_Atomic text;

	/* A directory's open streams. */
	pthread_mutex_t	 lock;
	struct cds_list_head streams;	/* least recently used first */
	int		 nstreams;
	atomic_uint	 fills;		/* times that one read ahead */

	/* And what is kept of it; under the lock, counted. */
	struct posix_listing *_Atomic listing;
	int64_t		 listing_begun;	/* the next one, posix_now(); or 0 */
	int		 nmade;		/* those that streams have */
	atomic_bool	 has_listings;	/* any of these, or a watch */
	struct posix_listed listed;	/* the last time */
	struct posix_watch watch;
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

/* May an operation that can wait for storage go ahead? */
static inline bool posix_may_block(const struct vfs_ctx *ctx,
				   const struct posix_fs *fs)
{
	return !ctx->nonblock || fs->ram;
}

/* CLOCK_MONOTONIC in ns. */
static inline int64_t posix_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* A name off the wire, terminated. */
struct posix_name {
	char s[VFS_NAME_MAX + 1];
};
void posix_name_set(struct posix_name *out, struct vfs_name name);

/*
 * cred.c: who the thread is to the file system.
 */
static inline bool posix_cred_same(const struct vfs_cred *a,
				   const struct vfs_cred *b)
{
	return a->uid == b->uid && a->gid == b->gid && a->ngids == b->ngids &&
	       memcmp(a->gids, b->gids, a->ngids * sizeof(a->gids[0])) == 0;
}

/* May the process act as other users at all?  At mount. */
bool posix_cred_probe(void);
/*
 * Become the caller.  0; -EACCES when the system has no such user; -EAGAIN
 * with ctx->nonblock, when that would change the thread's credentials.
 */
int  posix_cred_set(const struct posix_fs *fs, const struct vfs_ctx *ctx);
/* Become the server again, for its own descriptors; @fs NULL: whichever. */
void posix_cred_server(const struct posix_fs *fs);

/*
 * perm.c: what a caller may do with a file that the server has open.
 */
#define POSIX_X	1
#define POSIX_W	2
#define POSIX_R	4
/* Which of @want (POSIX_*) the kernel grants, or -errno.  @st is fresh. */
int  posix_granted(const struct vfs_ctx *ctx, struct posix_node *n,
		   const struct stat *st, unsigned want);
/*
 * The kernel let the caller do @what just now, acting as itself.  @st is from
 * before, posix_settled() then, and no other ctime since.
 */
void posix_was_granted(const struct vfs_ctx *ctx, struct posix_node *n,
		       const struct stat *st, unsigned what);
/* 0 or -EACCES, -EAGAIN: the owner always may (RFC 1813 section 4.4), and
 * who may execute may read. */
int  posix_check_io(const struct vfs_ctx *ctx, struct posix_node *n,
		    const struct stat *st, unsigned want);
void posix_verdicts_free(struct posix_node *n);
int  posix_access(const struct vfs_ctx *ctx, struct vfs_node *n,
		  uint32_t want, uint32_t *granted, struct vfs_attr *attr);

/*
 * attr.c
 */
int  posix_fstat(int fd, struct stat *st);
/* Of what @name is itself; -EXDEV: the root of another mount. */
int  posix_stat_name(int dir_fd, const char *name, struct stat *st);
/* Of the node's file; -ESTALE when it has no name any more. */
int  posix_stat(struct posix_node *n, struct stat *st);
enum vfs_type posix_type(mode_t mode);
void posix_attr(const struct posix_fs *fs, const struct stat *st,
		struct vfs_attr *attr);

static inline bool posix_same_time(const struct timespec *a,
				   const struct timespec *b)
{
	return a->tv_nsec == b->tv_nsec && a->tv_sec == b->tv_sec;
}

/*
 * Will any later change of the file show in its ctime?  Not if that is so
 * recent that the clock may stamp the next change with the same time.
 */
bool posix_settled(const struct stat *st);

/*
 * A change of @n and the attributes around it.  When changes overlap the
 * "before" of neither is given, since the client would take the other's
 * change for its own (RFC 1813 section 2.6).
 */
struct posix_change {
	struct posix_node *node;
	struct vfs_wcc	*wcc;		/* or NULL */
	struct stat	 before;
	unsigned	 seq;
	bool		 alone;
};
/* 0 or -errno of the stat; posix_change_end() is due in any case. */
int  posix_change_begin(struct posix_change *c, struct posix_node *n,
			struct vfs_wcc *wcc);
void posix_change_end(struct posix_change *c);

int  posix_getattr(const struct vfs_ctx *ctx, struct vfs_node *n,
		   struct vfs_attr *attr);

/*
 * setattr.c
 */
int  posix_setattr(const struct vfs_ctx *ctx, struct vfs_node *n,
		   const struct vfs_setattr *set, struct vfs_wcc *wcc);
/* Gives a new file what its creation, as the caller, could not; *@changed: it
 * did. */
int  posix_setattr_new(const struct vfs_ctx *ctx, struct posix_node *n,
		       const struct vfs_setattr *set, struct stat *st,
		       bool *changed);

/*
 * handle.c
 */
/* The handle of the file that @fd is open on, whose stat is @st. */
int  posix_handle_make(const struct posix_fs *fs, int fd,
		       const struct stat *st, struct vfs_handle *h);
/* The handle of @name in @dir_fd, to compare with; its ino may be lacking. */
int  posix_handle_peek(struct posix_fs *fs, int dir_fd,
		       const char *name, struct vfs_handle *h);
/* An O_PATH descriptor, or -errno. */
int  posix_handle_open(const struct posix_fs *fs, const struct vfs_handle *h);
bool posix_handle_valid(const struct vfs_handle *h);
/* The inode number in it; 0 for the root's. */
uint64_t posix_handle_ino(const struct vfs_handle *h);
void posix_handle_root(struct vfs_handle *h);
bool posix_handle_is_root(const struct vfs_handle *h);
/* How much of it, from the start, is what names the file. */
uint32_t posix_handle_key(const struct vfs_handle *h);
bool posix_handle_same(const struct vfs_handle *a, const struct vfs_handle *b);
uint64_t posix_hash(const void *data, size_t len);
/* Sets kernel_ids and by_handle. */
void posix_handle_probe(struct posix_fs *fs, bool may_open);

/*
 * node.c
 */
/* An unhashed node with one reference.  Takes @fd, on failure too. */
int  posix_node_create(struct posix_fs *fs, int fd, const struct stat *st,
		       const struct vfs_handle *h, struct posix_node **out);
/*
 * The cached node of the file that @fd is open on, made if need be.  Takes
 * @fd.  @rdwr: it is open for reading and writing.  -EACCES: a directory of
 * another file system.
 */
int  posix_node_adopt(struct posix_fs *fs, int fd, bool rdwr, struct stat *st,
		      struct posix_node **out);
void posix_node_free(struct vfs_node *n);
int  posix_root(struct vfs_fs *fs, struct vfs_node **out);
int  posix_open_handle(const struct vfs_ctx *ctx, struct vfs_fs *fs,
		       const struct vfs_handle *h, struct vfs_node **out);
void posix_handle(struct vfs_node *n, struct vfs_handle *h);
/* Descriptors to read, write or sync through; -errno.  Borrowed. */
int  posix_node_rd(struct posix_node *n);
int  posix_node_wr(struct posix_node *n);
/* Opens @name in @dir_fd (O_PATH, nothing followed or crossed) or -errno. */
int  posix_open_name(struct posix_fs *fs, int dir_fd, const char *name,
		     bool nonblock);
/* Makes what was done to @n durable, if the mount asks for that. */
int  posix_node_sync(struct posix_node *n);
/* fsync or fdatasync; an error changes the write verifier. */
int  posix_sync_fd(struct posix_fs *fs, int fd, bool data_only);

/*
 * cache.c
 */
int  posix_cache_init(struct posix_cache *c, const struct vfs_config *config);
/* Puts all nodes.  No operation is running. */
void posix_cache_fini(struct posix_cache *c);
/* Counted, or NULL. */
struct posix_node *posix_cache_find(struct posix_cache *c,
				    const struct vfs_handle *h);
/* Enters @n, or finds who came first: the node to use, counted.  Takes @n. */
struct posix_node *posix_cache_enter(struct posix_cache *c,
				     struct posix_node *n);
/* The file is gone, or changed its ways: no later look-up finds @n. */
void posix_cache_forget(struct posix_cache *c, struct posix_node *n);
/* Before opening one more.  Closes what is unused when there are too many. */
void posix_cache_room(struct posix_cache *c);
/* One directory more has listings, which are to be let go of in time. */
void posix_cache_listed(struct posix_cache *c);
/* An open failed for want of descriptors: true when some were closed. */
bool posix_cache_squeeze(struct posix_cache *c);

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
 * table.c, journal.c, resolve.c, search.c: where files were seen.
 */
struct posix_place {
	struct vfs_handle parent;
	struct posix_name name;
};
/* @dir NULL: a temporary one, gone at close. */
int  posix_table_open(const char *dir, uint64_t id, struct posix_table **out);
void posix_table_close(struct posix_table *t);
/* @h is @name in @parent; @only: and nowhere else, being a directory. */
int  posix_table_add(struct posix_table *t, const struct vfs_handle *h,
		     const struct vfs_handle *parent, const char *name,
		     bool only);
/* The same for a file that was just made, so that nothing is known of it. */
int  posix_table_new(struct posix_table *t, const struct vfs_handle *h,
		     const struct vfs_handle *parent, const char *name);
int  posix_table_del(struct posix_table *t, const struct vfs_handle *h,
		     const struct vfs_handle *parent, const char *name);
/* All places of @h: its file is gone. */
int  posix_table_forget(struct posix_table *t, const struct vfs_handle *h);
/* Up to @max places; returns how many, or -errno. */
int  posix_table_find(struct posix_table *t, const struct vfs_handle *h,
		      struct posix_place *places, int max);
/* Notes that @n was seen as @name in @dir.  Nothing without a table. */
void posix_seen(struct posix_node *n, struct posix_node *dir,
		const char *name);
void posix_seen_new(struct posix_node *n, struct posix_node *dir,
		    const char *name);
/* Is that known already, so that posix_seen() does nothing? */
bool posix_seen_before(struct posix_node *n, struct posix_node *dir,
		       const char *name);
/* The node of @h by way of the table, counted; or -ESTALE. */
int  posix_resolve(struct posix_fs *fs, const struct vfs_handle *h,
		   struct posix_node **out);
/* The same by a walk through the tree; under fs->lost. */
int  posix_search(struct posix_fs *fs, const struct vfs_handle *h,
		  struct posix_node **out);

/*
 * watch.c: reports of changes in a directory.
 */
/* Is @dir watched from now on?  *@changes differs after the next report. */
bool posix_watch_begin(struct posix_node *dir, unsigned *changes);
/* Takes in the reports of all changes that are over. */
void posix_watch_look(void);
/* Of a directory that was watched once. */
void posix_watch_end(struct posix_node *dir);

/*
 * listing.c: listings that are kept.  @st is the directory's, fresh.
 */
/* Around each change of a file's attributes, before its caller is told. */
void posix_changing(const struct posix_node *n);
void posix_changed(const struct posix_node *n);
/* What posix_changes() has to be for attributes of @ino that are asked for
 * from now on to hold.  It never is if a change is under way. */
unsigned posix_changes_awaited(uint64_t ino);
unsigned posix_changes(uint64_t ino);
/* A new one of @dir, for a stream at its start; NULL: not now. */
struct posix_listing *posix_listing_begin(const struct vfs_ctx *ctx,
					  struct posix_node *dir,
					  const struct stat *st);
/* The next entry; @changes, awaited since before its attributes were asked for.
 * *@l may be dropped, and NULL then. */
void posix_listing_add(struct posix_node *dir, struct posix_listing **l,
		       const struct vfs_dirent *e, unsigned changes);
void posix_listing_drop(struct posix_node *dir, struct posix_listing **l);
/* Is there one, and may it still be kept when it is whole? */
bool posix_listing_is_young(const struct posix_listing *l);
/* @dir was listed whole, and had @listed; *@l, or NULL, is all of it. */
void posix_listing_end(struct posix_node *dir, struct posix_listing **l,
		       const struct posix_listed *listed);
/* One that holds and may be shown to the caller, counted; or NULL. */
struct posix_listing *posix_listing_get(const struct vfs_ctx *ctx,
					struct posix_node *dir,
					const struct stat *st, bool from_start);
void posix_listing_put(struct posix_listing *l);
/* Where the entry after @cookie is; -1: there is no such cookie. */
long posix_listing_find(const struct posix_listing *l, uint64_t cookie);
/* The @i-th entry, or NULL: the end.  *@holds: so do its attributes. */
const struct vfs_dirent *posix_listing_entry(const struct posix_listing *l,
					     long i, bool *holds);
void posix_listings_free(struct posix_node *dir);
/* Lets go of what is over. */
void posix_listings_age(struct posix_node *dir);

/*
 * lookup.c, create.c, names.c, file.c, readdir.c: the operations.
 */
int  posix_lookup(const struct vfs_ctx *ctx, struct vfs_node *dir,
		  struct vfs_name name, struct vfs_node **out,
		  struct vfs_attr *attr, struct vfs_attr *dir_attr,
		  bool *has_dir_attr);
int  posix_create(const struct vfs_ctx *ctx, struct vfs_node *dir,
		  struct vfs_name name, const struct vfs_create *how,
		  struct vfs_node **out, struct vfs_attr *attr,
		  struct vfs_wcc *wcc);
int  posix_make(const struct vfs_ctx *ctx, struct vfs_node *dir,
		struct vfs_name name, const struct vfs_make *what,
		struct vfs_node **out, struct vfs_attr *attr,
		struct vfs_wcc *wcc);
int  posix_remove(const struct vfs_ctx *ctx, struct vfs_node *dir,
		  struct vfs_name name, bool is_dir, struct vfs_wcc *wcc);
int  posix_rename(const struct vfs_ctx *ctx, struct vfs_node *from,
		  struct vfs_name from_name, struct vfs_node *to,
		  struct vfs_name to_name, struct vfs_wcc *from_wcc,
		  struct vfs_wcc *to_wcc);
int  posix_link(const struct vfs_ctx *ctx, struct vfs_node *n,
		struct vfs_node *dir, struct vfs_name name,
		struct vfs_attr *attr, struct vfs_wcc *dir_wcc);
int  posix_readlink(const struct vfs_ctx *ctx, struct vfs_node *n, char *buf,
		    uint32_t size, struct vfs_attr *attr);
int64_t posix_read(const struct vfs_ctx *ctx, struct vfs_node *n,
		   uint64_t off, const struct iovec *iov, int niov,
		   bool *eof, struct vfs_attr *attr);
int64_t posix_read_pipe(const struct vfs_ctx *ctx, struct vfs_node *n,
			uint64_t off, uint32_t len, int pipe, bool *eof,
			struct vfs_attr *attr);
int64_t posix_write(const struct vfs_ctx *ctx, struct vfs_node *n,
		    uint64_t off, const struct iovec *iov, int niov,
		    enum vfs_stable *stable, struct vfs_wcc *wcc);
int  posix_commit(const struct vfs_ctx *ctx, struct vfs_node *n,
		  uint64_t off, uint32_t count, struct vfs_wcc *wcc);
int  posix_readdir(const struct vfs_ctx *ctx, struct vfs_node *dir,
		   uint64_t cookie, uint64_t *verf, bool plus,
		   vfs_emit_fn *emit, void *arg, bool *eof,
		   struct vfs_attr *attr);
void posix_streams_close(struct posix_node *n);
/* Drops the listings that are too old to be kept when they are whole. */
void posix_streams_age(struct posix_node *n);

#endif
