/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mem - a file system in memory, for tests and for measuring the server.
 *
 * Nodes lie in slots of chunks that are never given back before unmount,
 * so a handle (slot, generation) is looked up without a lock: take a
 * reference unless it is zero, then compare the generation, which can't
 * change while a reference is held.  A node that has links holds one
 * reference to itself, the tree's; the last unlink drops it.
 *
 * Locks, outermost first: fs->rename, directories (ancestors first, else by
 * address), other nodes (by address), fs->slots_lock.  Only copying data takes
 * time under a node's lock; with op->nonblock the operations try the lock and
 * return -EAGAIN on failure; link and rename always return it.
 */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "lib/thread.h"
#include "lib/util.h"
#include "vfs/backends.h"

/* data.c: the contents of a file, pages in a radix tree. */
#define MEM_PAGE_BITS	14
#define MEM_PAGE	(1u << MEM_PAGE_BITS)
#define MEM_FAN_BITS	9
#define MEM_FAN		(1u << MEM_FAN_BITS)
#define MEM_MAX_FILE	((uint64_t)1 << 50)
#define MEM_MAX_LINKS	65000

struct mem_data {
	void	 *root;		/* a page when height is 0, else void *[FAN] */
	unsigned  height;
	uint64_t  npages;
};

/* dir.c: the entries of a directory. */
struct mem_entry {
	struct mem_entry *next;		/* in the bucket */
	struct mem_node	 *node;		/* borrowed: it has this link */
	uint64_t	  hash;
	uint64_t	  cookie;
	uint32_t	  len;
	char		  name[];
};

struct mem_order {
	uint64_t	  cookie;
	struct mem_entry *entry;	/* NULL: removed */
};

/*
 * A hash table by name, and a vector in the order of the cookies, which
 * only ever grow: an entry that stays is found again whatever else
 * changes.
 */
struct mem_dir {
	struct mem_entry **buckets;
	uint32_t	   nbuckets;	/* a power of two, or 0 */
	uint32_t	   count;
	struct mem_order  *order;
	uint32_t	   norder;
	uint32_t	   cap;
	uint64_t	   next_cookie;
};

struct mem_node {
	struct vfs_node	   base;
	uint32_t	   slot;	/* constant */
	uint32_t	   next_free;	/* while free; under slots_lock */
	uint64_t	   gen;		/* constant while referenced */
	enum vfs_type	   type;	/* the same */
	_Atomic uint32_t   nlink;	/* written under lock */
	_Atomic int64_t	   atime;	/* ns; written under lock or rdlock */
	/* DIR: borrowed, itself for the root, NULL once removed.  Written
	 * under lock, and fs->rename when it moves. */
	_Atomic(struct mem_node *) parent;

	pthread_rwlock_t   lock;	/* guards the rest */
	uint32_t	   mode;
	uint32_t	   uid;
	uint32_t	   gid;
	uint32_t	   rdev_major;
	uint32_t	   rdev_minor;
	bool		   exclusive;	/* verf is its creation's verifier */
	uint64_t	   verf;
	uint64_t	   size;
	int64_t		   mtime;
	int64_t		   ctime;
	union {
		struct mem_data	data;	/* REG */
		struct mem_dir	dir;	/* DIR */
		char	       *target;	/* LNK: size bytes */
	};
};

#define MEM_CHUNK	256
#define MEM_NO_SLOT	UINT32_MAX

struct mem_chunk {
	struct mem_node node[MEM_CHUNK];
};

/* The block of vfs_config; gannet-exports(5). */
struct mem_options {
	uint64_t size;		/* most bytes; 0: half of the machine's */
	uint64_t files;		/* most files; 0: DEFAULT_NODES */
};

struct mem_fs {
	struct vfs_fs	  base;
	uint64_t	  max_bytes;
	uint32_t	  max_nodes;
	_Atomic uint64_t  bytes;	/* in use */
	_Atomic uint32_t  nodes;	/* in use */
	uint8_t		  hash_key[16];
	struct mem_node	 *root;		/* the tree's reference */

	pthread_mutex_t	  rename;	/* directories change their parent */

	pthread_mutex_t	  slots_lock;	/* guards the four below */
	uint32_t	  nslots;
	uint32_t	  free;		/* first free slot */
	uint64_t	  next_gen;
	_Atomic(struct mem_chunk *) *chunks;	/* set once each */
};

static inline struct mem_node *mem_node(struct vfs_node *n)
{
	return container_of(n, struct mem_node, base);
}

static inline struct mem_fs *mem_fs(const struct mem_node *n)
{
	return container_of(n->base.fs, struct mem_fs, base);
}

static inline void mem_uncharge(struct mem_fs *fs, uint64_t bytes)
{
	atomic_fetch_sub_explicit(&fs->bytes, bytes, memory_order_relaxed);
}

/* -ENOSPC when @bytes more would pass the bound. */
static inline int mem_charge(struct mem_fs *fs, uint64_t bytes)
{
	uint64_t was = atomic_fetch_add_explicit(&fs->bytes, bytes,
						 memory_order_relaxed);

	if (was + bytes <= fs->max_bytes)
		return 0;
	mem_uncharge(fs, bytes);
	return -ENOSPC;
}

/* node.c */
/* Makes a node with one reference, the tree's; no other thread can find it. */
int  mem_node_alloc(struct mem_fs *fs, enum vfs_type type,
		    struct mem_node **out);
void mem_node_free(struct vfs_node *n);
/* At the end: all nodes, with their data and entries. */
void mem_nodes_free(struct mem_fs *fs);
void mem_handle(struct vfs_node *n, struct vfs_handle *h);
vfs_op_fn mem_open_handle;

/* lock.c */
void mem_wrlock(struct mem_node *n);
/* With op->nonblock -EAGAIN instead of waiting. */
int  mem_wrlock_op(const struct vfs_op *op, struct mem_node *n);
int  mem_rdlock(const struct vfs_op *op, struct mem_node *n);
void mem_unlock(struct mem_node *n);
/* Two nodes, perhaps the same, by address. */
void mem_wrlock2(struct mem_node *a, struct mem_node *b);
void mem_unlock2(struct mem_node *a, struct mem_node *b);

/* True if @n's data takes long to free. */
static inline bool mem_is_long(const struct mem_node *n)
{
	return n->type == VFS_REG && n->data.npages > VFS_LONG / MEM_PAGE;
}

/* data.c */
/* Copies out @len bytes from @off; holes are zeros. */
void mem_data_read(const struct mem_data *d, uint64_t off, uint8_t *to,
		   size_t len);
/* Returns bytes copied in, fewer than @len (perhaps 0) when memory is short. */
size_t mem_data_write(struct mem_fs *fs, struct mem_data *d, uint64_t off,
		      const uint8_t *from, size_t len);
/* Everything from @size on is a hole. */
void mem_data_truncate(struct mem_fs *fs, struct mem_data *d, uint64_t size);

/* dir.c */
struct mem_entry *mem_dir_find(const struct mem_fs *fs,
			       const struct mem_dir *d, struct vfs_name name);
int  mem_dir_add(struct mem_fs *fs, struct mem_dir *d, struct vfs_name name,
		 struct mem_node *node);
void mem_dir_del(struct mem_fs *fs, struct mem_dir *d, struct mem_entry *e);
/* Index in d->order of the first entry, removed or not, after @cookie. */
uint32_t mem_dir_seek(const struct mem_dir *d, uint64_t cookie);
void mem_dir_fini(struct mem_fs *fs, struct mem_dir *d);

/* attr.c; the caller holds the node's lock */
#define MEM_R	4u
#define MEM_W	2u
#define MEM_X	1u
/* 0 or -EACCES. */
int  mem_permit(const struct vfs_cred *cred, const struct mem_node *n,
		uint32_t want);
/* The same, but the owner may always read and write: NFS has no open, so
 * a client that opened a file and then changed its mode goes on. */
int  mem_permit_io(const struct vfs_cred *cred, const struct mem_node *n,
		   uint32_t want);
/* Checks that @cred may remove @child from @dir (write permission, sticky
 * bit). */
int  mem_permit_unlink(const struct vfs_cred *cred,
		       const struct mem_node *dir,
		       const struct mem_node *child);
void mem_attr_fill(const struct mem_node *n, struct vfs_attr *attr);
void mem_wcc_before(const struct mem_node *n, struct vfs_wcc *wcc);
void mem_wcc_after(const struct mem_node *n, struct vfs_wcc *wcc);
int64_t mem_now(void);
/* New times, later than the node's last ctime. */
void mem_touch_ctime(struct mem_node *n);
void mem_touch_mtime(struct mem_node *n);
/* Sets a new node's attributes from its maker, its directory and @set. */
void mem_attr_init(struct mem_node *n, const struct mem_node *dir,
		   const struct vfs_cred *cred,
		   const struct vfs_setattr *set);
/* @cred changes @n's data: takes its set-id bits away. */
void mem_clear_set_id(const struct vfs_cred *cred, struct mem_node *n);

/* The operations, by file. */
vfs_op_fn mem_getattr, mem_setattr, mem_access;
/* The attributes of @n; takes its lock. */
int mem_attr_get(const struct vfs_op *op, struct mem_node *n,
		 struct vfs_attr *attr);

/* file.c */
vfs_op_fn mem_readlink, mem_read, mem_write, mem_commit;

/* name.c */
vfs_op_fn mem_lookup, mem_create, mem_make, mem_remove, mem_link;
/* Removes a link of @n, whose lock is held.  True if it was the last: put the
 * tree's reference once no lock is held. */
bool mem_drop_link(struct mem_node *n);

/* rename.c */
vfs_op_fn mem_rename;

/* readdir.c */
vfs_op_fn mem_readdir;
