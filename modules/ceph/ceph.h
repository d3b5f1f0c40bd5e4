/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ceph - a backend over CephFS, by libcephfs' low-level calls: a loadable
 * module, ceph.so.
 *
 * The library keeps one client of the file system for each struct cfs_client.
 * The metadata servers grant such a client capabilities for the state it
 * caches, and take them back before another client changes it: so several
 * servers see one state, and no state here expires by the clock.  A client does
 * its work under its own lock; an export can have several clients to use more
 * processors.  A node belongs to one of them, so the clients of one server do
 * not take each other's capabilities.
 *
 * Nearly every call of the library can wait for a metadata server or a disk,
 * and none has a nonblocking form.  So with op->nonblock nearly every operation
 * answers -EAGAIN at once.
 *
 * Permissions: the library checks the caller for names (look-up, creation,
 * removal, listing).  For data and attributes perm.c does, since NFS lets the
 * owner of a file do more than open(2) would (RFC 1813 section 4.4); the
 * library then acts as user 0.
 *
 * Files, in order; each calls those before it: statx; perm; client (a client of
 * the library, and its loss); node (the table of nodes, open files); call (an
 * operation's use of a client); handle, sync; attr, acl, data, above, name,
 * make, readdir; store, record, identity, lease, notice; rename; grace; lock;
 * session (a client made, and made again); fs.
 */
#pragma once

#include <cephfs/libcephfs.h>
#include <pthread.h>
#include <rados/librados.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <time.h>

#include <gannet/vfs.h>

#include "lib/hash.h"
#include "lib/thread.h"
#include "lib/util.h"

#define CFS_HEAD	((uint64_t)-2)	/* the snapid of the live tree */
#define CFS_SNAPDIR	((uint64_t)-1)	/* that of ".snap" directories */

#define CFS_TEXT_MAX	255
#define CFS_CLIENTS_MAX	16		/* that have nodes */
#define CFS_NODELESS	2
#define CFS_CLIENTS_ALL	(CFS_CLIENTS_MAX + CFS_NODELESS)
#define CFS_SESSION_MAX	(CFS_TEXT_MAX + 4)	/* "UUID.SLOT" */
#define CFS_GRACE_S	60		/* gannetd: 50, but later */
#define CFS_GRACE_MAX	3600u
#define CFS_SESSION_S	60u		/* a metadata server's, as shipped */
#define CFS_NODES	20000		/* this many new ones wake the tidier */
#define CFS_SHARDS	64		/* of the table of nodes */
#define CFS_BUCKETS	512		/* of a shard */
#define CFS_NAME_LOCKS	4096
#define CFS_FIXED_READS	8		/* half of an export's workers, unless
					 * --threads says otherwise */

/* The parts that every attribute needs. */
#define CFS_WANT	CEPH_STATX_BASIC_STATS

/* The options of an export. */
struct cfs_options {
	char	 conf[CFS_TEXT_MAX + 1];
	char	 id[CFS_TEXT_MAX + 1];
	char	 fs[CFS_TEXT_MAX + 1];
	char	 uuid[CFS_TEXT_MAX + 1];
	uint64_t mounts;
	uint64_t timeout;		/* seconds */
	uint64_t grace;			/* likewise */
	uint64_t session;		/* likewise */
	bool	 async;			/* changes of names and attributes need
					 * not be durable when answered */
};

enum cfs_record_kind { CFS_LIVE, CFS_HELD, CFS_TAKEN, CFS_GRACE };

#define CFS_RECORD_MAX	64

/* The record of a session: record.c describes its parts. */
struct cfs_record {
	char			name[CFS_SESSION_MAX];
	enum cfs_record_kind	kind;
	uint64_t		process;
	unsigned		seconds;	/* of the last two kinds */
	uint64_t		since;		/* likewise */
	char			text[CFS_RECORD_MAX];	/* as read or written */
};

/*
 * A client of the library.  An operation holds @lock shared while it uses @cm.
 * When the cluster has shut the client out, the export's keeper replaces it,
 * with @lock held exclusively.
 */
struct cfs_client {
	struct cfs_fs		*fs;
	bool			 hung;	/* the keeper has said that a call
					 * does not end */
	bool			 nodeless;	/* rename.c's and above.c's */
	int			 slot;	/* -1: none */
	char			 name[CFS_SESSION_MAX];	/* of its session */
	struct cfs_client	*next_named;
	atomic_bool		 lost;	/* to be replaced */
	pthread_rwlock_t	 lock;	/* readers go first: node.c needs it */
	struct ceph_mount_info	*cm;	/* NULL: it could not be made */
	uint64_t		 generation;	/* counts the clients made */

	/* grace.c: */
	atomic_uint		 lockers;	/* owners that can have locks */
	atomic_bool		 held;	/* the session has had locks */
	_Atomic uint64_t	 grace_until;	/* its record's end; 0: none */
	bool			 left;	/* it ends, and the others know */
	bool			 doubtful;	/* lockers of a lost session are
						 * still there */
	atomic_bool		 succeeded;	/* by another server */
	pthread_mutex_t		 record_lock;
	struct cfs_record	 record;	/* last written by this
						 * process */
};

struct cfs_shard {
	pthread_mutex_t	  lock;
	struct cfs_node	 *bucket[CFS_BUCKETS];
	unsigned	  n;
};

/*
 * A file or directory, once for each export.  The table has a reference to each
 * node; the tidier removes nodes without other references that were not used
 * for a while.
 */
struct cfs_node {
	struct vfs_node		 node;
	struct cfs_node		*next;		/* in its bucket */
	struct cfs_node		*next_written;	/* in the tidier's list */
	vinodeno_t		 vino;
	enum vfs_type		 type;
	struct cfs_client	*client;
	atomic_bool		 used;		/* since the tidier looked */
	atomic_bool		 gone;		/* its last link was removed */
	pthread_mutex_t		 turn;		/* of changes of attributes */
	/* Shared while data is synced; exclusive while the witness is asked
	 * for losses. */
	pthread_rwlock_t	 syncs;
	/* Shared while a WRITE hands over its data; exclusive while a SETATTR
	 * sets the size, and has the data written before.  Taken after @turn,
	 * and before @syncs. */
	pthread_rwlock_t	 size;
	pthread_mutex_t		 lock;
	/* Of @generation of the client: don't touch older ones. */
	uint64_t		 generation;
	struct Inode		*in;		/* NULL: to be looked up */
	struct Fh		*rd, *wr;	/* open; NULL: not */
	struct Fh		*witness;	/* likewise: data.c */
	unsigned		 busy;		/* operations that use these */
	bool			 wrote;		/* since the tidier looked */
};

/* The objects that all servers of the file system share. */
struct cfs_store {
	bool		open;
	const char     *step;		/* of opening it: the last one */
	uint64_t	cluster_hash;	/* of its fsid */
	/* Of the file system.  ceph_get_fs_cid() is 0 for every one. */
	uint32_t	fscid;
	char		name[CFS_TEXT_MAX + 1];
	rados_t		cluster;
	rados_ioctx_t	io;
};

/* The grace periods of the other servers, as far as announced. */
struct cfs_grace {
	pthread_mutex_t	 store;		/* of calls of fs->store, but those
					 * with @sets */
	/* Shared while a lock is set; guards @usable, and fs->store stays as it
	 * is with it. */
	pthread_rwlock_t sets;
	bool		 usable;	/* others can tell us */
	atomic_bool	 lost;		/* others can't tell us any longer */
	_Atomic uint64_t until;		/* clock_ms() */
	_Atomic uint64_t reclaims;	/* this server's clients can reclaim
					 * until then */
	char		*object;	/* that is watched */
	uint64_t	 cookie;
	uint64_t	 tidy_at;	/* clock_ms() at which to look for
					 * obsolete records */
	uint64_t	 began;		/* time(2) of the mount */
};

#define CFS_LEASE_MAX	64

/* A server's right to move a directory. */
struct cfs_lease {
	char		text[CFS_LEASE_MAX];
	uint64_t	since;		/* clock_ms() */
};

/* A thread that has something to do now and then. */
struct cfs_chore {
	pthread_t	thread;
	pthread_cond_t	wake;
	bool		awake;		/* has something to do */
};

struct cfs_fs {
	struct vfs_fs		 fs;
	const struct vfs_config	*config;	/* of mount(), while it runs */
	const struct cfs_options *options;
	char			*path;
	bool			 check;		/* of vfs_config: it has no name
						 * among the servers */
	char			*uuid;		/* of this server */
	uint64_t		 cluster;	/* a hash of its fsid */
	uint64_t		 which;		/* fs, of any cluster */
	struct cfs_fs		*next_taking;	/* client.c */
	struct cfs_store	 store;
	struct cfs_grace	 grace;
	uint8_t			 key[VFS_HANDLE_KEY];
	vinodeno_t		 root;
	struct cfs_node		*root_node;	/* counted */
	UserPerm		*server;	/* user 0 */
	struct cfs_shard	 shard[CFS_SHARDS];
	atomic_uint		 nnodes;

	/* Locks of names, which have them by a hash: name.c. */
	pthread_rwlock_t	 names[CFS_NAME_LOCKS];
	pthread_mutex_t		 moves;	/* of directories between parents */
	/* @moves guards these: the last one that another server was seen with,
	 * and one of this server that could not be given back, or "". */
	struct cfs_lease	 lease, kept_lease;
	bool			 lease_missed;
	sem_t			 fixed_reads;	/* READs in snapshots that can
						 * begin */
	_Atomic uint64_t	 loss_said;	/* clock_ms(); 0: never */
	atomic_bool		 fixed_hung;	/* no such READ has ended of
						 * late */

	/* The keeper's grace periods and clients must not wait for data that
	 * the tidier's closes write. */
	struct cfs_chore	 keeper, tidier;
	pthread_mutex_t		 lock;
	bool			 ending;

	/* The last two have no nodes: one does the renames (rename.c), one
	 * looks ".." up (above.c). */
	unsigned		 nclients;
	struct cfs_client	 client[CFS_CLIENTS_ALL];
};

/* The cephx user, without "client.". */
static inline const char *cfs_id(const struct cfs_options *o)
{
	return *o->id ? o->id : "gannet";
}

#define CFS_TIMEOUT	30

static inline uint64_t cfs_timeout(const struct cfs_options *o)
{
	return o->timeout ? o->timeout : CFS_TIMEOUT;
}

static inline unsigned cfs_grace_s(const struct cfs_options *o)
{
	return o->grace ? (unsigned)o->grace : CFS_GRACE_S;
}

static inline struct cfs_fs *cfs_fs(struct vfs_fs *fs)
{
	return container_of(fs, struct cfs_fs, fs);
}

static inline struct cfs_node *cfs_node(struct vfs_node *n)
{
	return container_of(n, struct cfs_node, node);
}

static inline struct cfs_fs *cfs_fs_of(const struct cfs_node *n)
{
	return cfs_fs(n->node.fs);
}

static inline struct cfs_client *cfs_mover(struct cfs_fs *fs)
{
	return &fs->client[fs->nclients - 2];
}

static inline struct cfs_client *cfs_climber(struct cfs_fs *fs)
{
	return &fs->client[fs->nclients - 1];
}

/* The root, or the root of one of its snapshots, or their list. */
static inline bool cfs_is_top(const struct cfs_node *n)
{
	return n->vino.ino.val == cfs_fs_of(n)->root.ino.val;
}

/* Snapshots, and the directories that list them, can't be changed. */
static inline bool cfs_is_fixed(const struct cfs_node *n)
{
	return n->vino.snapid.val != CFS_HEAD;
}

/* ---- client.c */

/* Gives @c a name: the lowest free number. */
void cfs_client_take_name(struct cfs_client *c);
/* Takes it back, if it has one. */
void cfs_client_give_name(struct cfs_client *c);
/* True if a client of this process has the session @name. */
bool cfs_client_is_named(const char *name);
/* True if @err is the library's answer by a client that is shut out. */
bool cfs_is_lost(int err);
/* Asks the cluster whether @c still has its session. */
bool cfs_client_has_session(struct cfs_client *c);
/* The library has answered @err, below 0.  Notices that the cluster has shut
 * the client out.  Returns the error for the caller of the operation. */
int  cfs_client_error(struct cfs_client *c, int err);
/* Wakes @fs's keeper or its tidier. */
void cfs_wake(struct cfs_fs *fs, struct cfs_chore *chore);
/* Logs that data is lost, unless @err is 0 or this was logged recently. */
void cfs_note_loss(struct cfs_fs *fs, int err);
/* Changes the write verifier. */
void cfs_verf_change(struct cfs_fs *fs);
/* Initializes @lock so that readers wait for writers.  A thread must not take
 * it twice. */
void cfs_lock_init(pthread_rwlock_t *lock);
/* The time in @s seconds, on CLOCK_MONOTONIC. */
static inline struct timespec cfs_time_in(unsigned s)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += s;
	return t;
}

/*
 * One operation's use of a client: that of the node, whose inode is @in.
 * cfs_end() follows each cfs_begin() that returned 0.
 */
struct cfs_call {
	struct cfs_client	*client;
	struct ceph_mount_info	*cm;
	struct cfs_node		*node;
	struct Inode		*in;
	UserPerm		*user;	/* the caller; NULL: no caller */
	UserPerm		*root;	/* user 0, borrowed */
};

/* One of user 0 by @client, without a node. */
int  cfs_begin_by(struct cfs_call *c, struct cfs_client *client);
/* Ends it.  Returns @err as an error for the caller of the operation. */
int  cfs_end(struct cfs_call *c, int err);
/* ---- node.c */

/*
 * The node of @in, counted, with the attributes @sx.  Takes the reference to
 * @in, a result of @c's client.
 */
int  cfs_node_of(struct cfs_call *c, struct Inode *in,
		 const struct ceph_statx *sx, struct cfs_node **out);
/* -EAGAIN, with @nonblock: it is not in memory. */
int  cfs_node_find(struct cfs_fs *fs, vinodeno_t vino, bool nonblock,
		   struct cfs_node **out);
/* The node's inode, valid until the client is replaced. */
int  cfs_node_inode(struct cfs_node *n, struct ceph_mount_info *cm,
		    struct Inode **out);
/* An open file of the node, to read or to write; cfs_close() follows. */
int  cfs_open(struct cfs_call *c, bool to_write, struct Fh **out);
void cfs_close(struct cfs_call *c);
/* The error of data that the library failed to write since the last call, which
 * changes the verifier; or an error of the query itself.  0: no error. */
int  cfs_ask_witness(struct cfs_call *c);
/* Before a change of its attributes, and after it.  -ETIMEDOUT: another one
 * takes long. */
int  cfs_turn_take(struct cfs_node *n);
void cfs_turn_give(struct cfs_node *n);
/* Before a WRITE hands over its data or, @alone, before the size is set, and
 * after that.  -ETIMEDOUT: others take long. */
int  cfs_size_take(struct cfs_node *n, bool alone);
void cfs_size_give(struct cfs_node *n);
/* The node gets @fh, just opened, to keep. */
void cfs_keep_open(struct cfs_call *c, struct cfs_node *n, struct Fh *fh);
/* Removes nodes that were not used for a while; with @all, every free one. */
void cfs_nodes_tidy(struct cfs_fs *fs, bool all);
void cfs_node_free(struct vfs_node *n);

/* ---- statx.c */

vinodeno_t cfs_vino(const struct ceph_statx *sx);
uint64_t cfs_fileid(vinodeno_t vino);
enum vfs_type cfs_type(const struct ceph_statx *sx);
void cfs_attr(const struct ceph_statx *sx, struct vfs_attr *attr);

/* ---- call.c */

/* -EAGAIN: it would block, and @op does not allow that.  -ETIMEDOUT: the client
 * is lost.  -ESTALE. */
int  cfs_begin(struct cfs_call *c, const struct vfs_op *op);
/* The same for another node, in @c's client, which need not be its own. */
int  cfs_begin_other(struct cfs_call *other, const struct cfs_call *c,
		     struct vfs_node *n);
void cfs_end_other(struct cfs_call *other);
/* The attributes of the call's node; -ESTALE if its last link is gone. */
int  cfs_stat(struct cfs_call *c, struct ceph_statx *sx);
int  cfs_before(struct cfs_call *c, struct vfs_wcc *wcc);
void cfs_wcc_before(const struct ceph_statx *sx, struct vfs_wcc *wcc);
/* Fills in @wcc, which can be NULL.  Returns @err; or, if that is 0, the error
 * of a client that the cluster has shut out: it has dropped its changes,
 * although its syncs answer 0. */
int  cfs_after(struct cfs_call *c, struct vfs_wcc *wcc, int err);
/* The same, with the attributes of its node. */
int  cfs_begin_stat(struct cfs_call *c, const struct vfs_op *op,
		    struct ceph_statx *sx);

/* ---- handle.c */

void cfs_handle(struct vfs_node *n, struct vfs_handle *h);
void cfs_handle_make(const struct cfs_fs *fs, vinodeno_t vino,
		     struct vfs_handle *h);
int  cfs_open_handle(struct vfs_op *op);

/* ---- sync.c */

/* Makes the call's file durable.  Data that can't be written is lost; fs->verf
 * then changes. */
int  cfs_sync(struct cfs_call *c);
/* The same without the attributes: waits for no metadata server. */
int  cfs_sync_data(struct cfs_call *c);
/* Makes changes of the attributes of @in, and of names in it, durable; not with
 * the option async. */
int  cfs_sync_change(struct cfs_call *c, struct Inode *in);

/* ---- attr.c */

/* Sets the attributes on @in that could not be set when the file was
 * created. */
int  cfs_set_new(struct cfs_call *c, const struct vfs_op *op,
		 struct Inode *in, struct ceph_statx *sx,
		 const struct vfs_setattr *set);

int  cfs_getattr(struct vfs_op *op);
int  cfs_setattr(struct vfs_op *op);
int  cfs_access(struct vfs_op *op);
int  cfs_statfs(struct vfs_op *op);
int  cfs_limits(struct vfs_op *op);

/* ---- perm.c: permissions of callers */

enum { CFS_X = 1, CFS_W = 2, CFS_R = 4 };

/* A file's owner, and the grants of its mode and its access ACL. */
struct cfs_perm {
	const struct vfs_cred	*cred;
	uint32_t		 uid, gid, mode;
	bool			 is_dir;
	int			 nacl;
	struct vfs_acl_entry	 acl[VFS_ACL_MAX];
};

bool cfs_in_group(const struct vfs_cred *cred, uint32_t gid);
/* A list of the call's node, at most VFS_ACL_MAX entries.  Returns their
 * number, 0 if it has none, or -errno. */
int  cfs_acl_read(struct cfs_call *c, enum vfs_acl_kind kind,
		  struct vfs_acl_entry *out);
/* Fills in @p for a caller, and the call's node, whose attributes are @sx. */
int  cfs_perm_load(struct cfs_call *c, const struct vfs_cred *cred,
		   const struct ceph_statx *sx, struct cfs_perm *p);
/* True if the caller has all of @want. */
bool cfs_perm_has(const struct cfs_perm *p, int want);
/* Checks that the caller may read or write data, as in RFC 1813 section 4.4: 0;
 * -EACCES; or an error of reading the ACL. */
int  cfs_check_io(struct cfs_call *c, const struct vfs_cred *cred,
		  const struct ceph_statx *sx, int want);

/* ---- the other operations, by file */

int  cfs_read(struct vfs_op *op);		/* data.c */
int  cfs_write(struct vfs_op *op);
int  cfs_commit(struct vfs_op *op);
int  cfs_lookup(struct vfs_op *op);		/* name.c */
int  cfs_readlink(struct vfs_op *op);
int  cfs_remove(struct vfs_op *op);
int  cfs_link(struct vfs_op *op);
int  cfs_rename(struct vfs_op *op);		/* rename.c */
int  cfs_create(struct vfs_op *op);		/* make.c */
int  cfs_make(struct vfs_op *op);
int  cfs_readdir(struct vfs_op *op);		/* readdir.c */
int  cfs_getacl(struct vfs_op *op);		/* acl.c */
int  cfs_setacl(struct vfs_op *op);
int  cfs_lock(struct vfs_op *op);		/* lock.c */

/* A name off the wire, as the library wants it. */
struct cfs_name {
	char s[VFS_NAME_MAX + 1];
};

void cfs_name_set(struct cfs_name *to, struct vfs_name name);
/* True for the name of the snapshots that each directory has: the library would
 * still create and move it, and then hide it. */
bool cfs_is_snapdir(const struct cfs_name *name);
/* Before a change of @name in the directory @dir, and after it.  -ETIMEDOUT:
 * another one takes long. */
int  cfs_name_change(struct cfs_node *dir, const struct cfs_name *name);
void cfs_name_done(struct cfs_node *dir, const struct cfs_name *name);

/* Begins a change of op->name, @name, in the call's directory. */
int  cfs_begin_change(struct cfs_call *c, const struct vfs_op *op,
		      struct cfs_name *name);

/* The locks of two names, in the order of memory. */
struct cfs_name_locks {
	pthread_rwlock_t *first, *second;	/* NULL: both have the first */
};

/* The same for a change of two. */
int  cfs_names_change(struct cfs_name_locks *l, struct cfs_node *dir,
		      const struct cfs_name *name, struct cfs_node *to,
		      const struct cfs_name *to_name);
void cfs_names_done(const struct cfs_name_locks *l);
/* ---- above.c */

/* The numbers of a directory and of those above it, up to the root. */
struct cfs_way {
	uint64_t	*ino;
	unsigned	 n, room;
};

/* Adds the way from @from, up to a directory that @w already has.  -EACCES: it
 * does not lead to the root.  cfs_way_fini() follows in any case. */
int  cfs_way_up(struct cfs_node *from, struct cfs_way *w);
bool cfs_way_has(const struct cfs_way *w, uint64_t ino);
void cfs_way_fini(struct cfs_way *w);
/* The directory above the call's.  -EACCES: it is not in the tree. */
int  cfs_find_above(struct cfs_call *c, struct ceph_statx *sx,
		    struct cfs_node **out);

/* ---- lease.c */

/* Before a directory moves to another one, and after it; with fs->moves.
 * -ETIMEDOUT: others take long, or can't be notified. */
int  cfs_lease_take(struct cfs_fs *fs, struct cfs_lease *l);
/* False: it is too late for a rename to begin. */
bool cfs_lease_lasts(const struct cfs_lease *l);
void cfs_lease_give(struct cfs_fs *fs, const struct cfs_lease *l);
