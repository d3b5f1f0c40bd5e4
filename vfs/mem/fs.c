/* SPDX-License-Identifier: BSD-2-Clause */
/* The file system: its bounds, its slots of nodes, its handles. */
#include "vfs/mem/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "lib/log.h"
#include "lib/machine.h"

#define DEFAULT_NODES	(4u << 20)
#define MAX_NODES	(64u << 20)
#define MIN_BYTES	(64u << 10)
/* On the wire of a handle: the slot, the generation. */
#define HANDLE_LEN	12

int mem_charge(struct mem_fs *fs, uint64_t bytes)
{
	uint64_t was = atomic_fetch_add_explicit(&fs->bytes, bytes,
						 memory_order_relaxed);

	if (was + bytes <= fs->max_bytes)
		return 0;
	mem_uncharge(fs, bytes);
	return -ENOSPC;
}

void mem_uncharge(struct mem_fs *fs, uint64_t bytes)
{
	atomic_fetch_sub_explicit(&fs->bytes, bytes, memory_order_relaxed);
}

static struct mem_node *slot_node(const struct mem_fs *fs, uint32_t slot)
{
	struct mem_chunk *chunk;

	if (slot >= fs->max_nodes)
		return NULL;
	chunk = atomic_load_explicit(&fs->chunks[slot / MEM_CHUNK],
				     memory_order_acquire);
	return chunk ? &chunk->node[slot % MEM_CHUNK] : NULL;
}

/* Makes the chunk of the next slot when there is none; under slots_lock. */
static int chunk_reserve(struct mem_fs *fs)
{
	struct mem_chunk *chunk;
	pthread_rwlockattr_t attr;

	if (slot_node(fs, fs->nslots))
		return 0;
	chunk = calloc(1, sizeof(*chunk));
	if (!chunk)
		return -ENOMEM;
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr,
			PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	for (uint32_t i = 0; i < MEM_CHUNK; i++) {
		struct mem_node *n = &chunk->node[i];

		n->base.fs = &fs->base;
		n->slot = fs->nslots + i;
		pthread_rwlock_init(&n->lock, &attr);
	}
	pthread_rwlockattr_destroy(&attr);
	/* Pairs with slot_node(). */
	atomic_store_explicit(&fs->chunks[fs->nslots / MEM_CHUNK], chunk,
			      memory_order_release);
	return 0;
}

static int slot_take(struct mem_fs *fs, struct mem_node **out)
{
	int err = 0;

	mutex_lock(&fs->slots_lock);
	if (fs->free != MEM_NO_SLOT) {
		*out = slot_node(fs, fs->free);
		fs->free = (*out)->next_free;
	} else if (fs->nslots == fs->max_nodes) {
		err = -ENOSPC;
	} else {
		err = chunk_reserve(fs);
		if (err == 0)
			*out = slot_node(fs, fs->nslots++);
	}
	if (err == 0)
		(*out)->gen = fs->next_gen++;
	mutex_unlock(&fs->slots_lock);
	return err;
}

static void slot_give(struct mem_fs *fs, struct mem_node *n)
{
	mutex_lock(&fs->slots_lock);
	n->next_free = fs->free;
	fs->free = n->slot;
	mutex_unlock(&fs->slots_lock);
}

int mem_node_alloc(struct mem_fs *fs, enum vfs_type type,
		   struct mem_node **out)
{
	struct mem_node *n;
	int err = mem_charge(fs, sizeof(*n));

	if (err < 0)
		return err;
	err = slot_take(fs, &n);
	if (err < 0) {
		mem_uncharge(fs, sizeof(*n));
		return err;
	}
	n->type = type;
	n->mode = n->uid = n->gid = n->rdev_major = n->rdev_minor = 0;
	n->exclusive = false;
	n->verf = n->size = 0;
	n->mtime = n->ctime = 0;
	memset(&n->dir, 0, sizeof(n->dir));
	memset(&n->data, 0, sizeof(n->data));
	atomic_store_explicit(&n->nlink, 0, memory_order_relaxed);
	atomic_store_explicit(&n->parent, NULL, memory_order_relaxed);
	atomic_fetch_add_explicit(&fs->nodes, 1, memory_order_relaxed);
	/* Pairs with vfs_node_get_unless_zero() in open_handle(). */
	vfs_node_init(&n->base, &fs->base);
	*out = n;
	return 0;
}

static void contents_free(struct mem_fs *fs, struct mem_node *n)
{
	switch (n->type) {
	case VFS_REG:
		mem_data_truncate(fs, &n->data, 0);
		break;
	case VFS_DIR:
		mem_dir_fini(fs, &n->dir);
		break;
	case VFS_LNK:
		free(n->target);
		mem_uncharge(fs, n->size);
		break;
	default:
		break;
	}
}

void mem_node_free(struct vfs_node *node)
{
	struct mem_node *n = mem_node(node);
	struct mem_fs *fs = mem_fs(n);

	contents_free(fs, n);
	mem_uncharge(fs, sizeof(*n));
	atomic_fetch_sub_explicit(&fs->nodes, 1, memory_order_relaxed);
	slot_give(fs, n);
}

static int make_root(struct mem_fs *fs)
{
	struct mem_node *n;
	int err = mem_node_alloc(fs, VFS_DIR, &n);

	if (err < 0)
		return err;
	n->mode = 0755;
	n->ctime = n->mtime = mem_now();
	atomic_store_explicit(&n->atime, n->ctime, memory_order_relaxed);
	atomic_store_explicit(&n->parent, n, memory_order_relaxed);
	atomic_store_explicit(&n->nlink, 2, memory_order_relaxed);
	fs->root = n;
	return 0;
}

static int mem_mount(const struct vfs_config *config, struct vfs_fs **out)
{
	static const uint8_t key[crypto_shorthash_KEYBYTES];
	const struct mem_options *o = config->options;
	struct mem_fs *fs;
	int err = -ENOMEM;

	if (sodium_init() < 0)
		return -EIO;
	fs = calloc(1, sizeof(*fs));
	if (!fs)
		return -ENOMEM;
	fs->max_bytes = o->size ? o->size : machine_share()->memory / 2;
	fs->max_nodes = o->files ? (uint32_t)o->files : DEFAULT_NODES;
	fs->chunks = calloc(fs->max_nodes / MEM_CHUNK + 1,
			    sizeof(*fs->chunks));
	if (!fs->chunks) {
		err = -ENOMEM;
		goto fail;
	}
	fs->base.ops = &mem_vfs_ops;
	crypto_shorthash((uint8_t *)&fs->base.fsid,
			 (const uint8_t *)config->path, strlen(config->path),
			 key);
	/* Nothing here outlives the process, so old handles and write verifiers
	 * must not match after a restart. */
	randombytes_buf(fs->hash_key, sizeof(fs->hash_key));
	randombytes_buf(&fs->next_gen, sizeof(fs->next_gen));
	fs->base.verf = ((uint64_t)randombytes_random() << 32) |
			randombytes_random();
	fs->free = MEM_NO_SLOT;
	pthread_mutex_init(&fs->rename, NULL);
	pthread_mutex_init(&fs->slots_lock, NULL);
	err = make_root(fs);
	if (err < 0)
		goto fail_locks;
	*out = &fs->base;
	return 0;

fail_locks:
	pthread_mutex_destroy(&fs->slots_lock);
	pthread_mutex_destroy(&fs->rename);
	free(fs->chunks);
fail:
	free(fs);
	return err;
}

static void mem_unmount(struct vfs_fs *base)
{
	struct mem_fs *fs = container_of(base, struct mem_fs, base);

	for (uint32_t slot = 0; slot < fs->nslots; slot++) {
		struct mem_node *n = slot_node(fs, slot);

		/* The tree's own reference is all that there can be. */
		if (atomic_load(&n->base.refs) != 0)
			contents_free(fs, n);
		pthread_rwlock_destroy(&n->lock);
	}
	for (uint32_t i = 0; i <= fs->max_nodes / MEM_CHUNK; i++)
		free(atomic_load(&fs->chunks[i]));
	free(fs->chunks);
	pthread_mutex_destroy(&fs->slots_lock);
	pthread_mutex_destroy(&fs->rename);
	free(fs);
}

static int mem_root(struct vfs_fs *base, struct vfs_node **out)
{
	struct mem_fs *fs = container_of(base, struct mem_fs, base);

	vfs_node_get(&fs->root->base);
	*out = &fs->root->base;
	return 0;
}

void mem_handle(struct vfs_node *node, struct vfs_handle *h)
{
	struct mem_node *n = mem_node(node);

	h->len = HANDLE_LEN;
	memcpy(h->data, &n->slot, 4);
	memcpy(h->data + 4, &n->gen, 8);
}

static int mem_open_handle(struct vfs_op *op)
{
	struct mem_fs *fs = container_of(op->fs, struct mem_fs, base);
	const struct vfs_handle *h = op->handle;
	struct mem_node *n;
	uint32_t slot;
	uint64_t gen;

	if (h->len != HANDLE_LEN)
		return -EBADMSG;
	memcpy(&slot, h->data, 4);
	memcpy(&gen, h->data + 4, 8);
	n = slot_node(fs, slot);
	if (!n || !vfs_node_get_unless_zero(&n->base))
		return -ESTALE;
	if (n->gen != gen ||
	    atomic_load_explicit(&n->nlink, memory_order_relaxed) == 0) {
		vfs_node_put(&n->base);
		return -ESTALE;
	}
	op->out = &n->base;
	return 0;
}

static int mem_statfs(struct vfs_op *op)
{
	struct mem_fs *fs = mem_fs(mem_node(op->node));
	struct vfs_statfs *st = op->statfs;
	uint64_t bytes = atomic_load(&fs->bytes);

	st->tbytes = fs->max_bytes;
	/* A charge that is about to be taken back may be seen. */
	st->fbytes = fs->max_bytes - MIN(bytes, fs->max_bytes);
	st->abytes = st->fbytes;
	st->tfiles = fs->max_nodes;
	st->ffiles = fs->max_nodes - atomic_load(&fs->nodes);
	st->afiles = st->ffiles;
	return 0;
}

static int mem_limits(struct vfs_op *op)
{
	*op->limits = (struct vfs_limits){
		.max_file_size = MEM_MAX_FILE,
		.time_delta = { 0, 1 },
		.name_max = VFS_NAME_MAX,
		.link_max = MEM_MAX_LINKS,
		.no_trunc = true,
		.case_preserving = true,
		.symlinks = true,
		.hard_links = true,
		.homogeneous = true,
		.can_set_time = true,
		.chown_restricted = true,
	};
	return 0;
}

static const struct vfs_option options[] = {
	{ "size", VFS_SIZE, offsetof(struct mem_options, size), MIN_BYTES,
	  UINT64_MAX },
	{ "files", VFS_SIZE, offsetof(struct mem_options, files), 1,
	  MAX_NODES },
};

const struct vfs_ops mem_vfs_ops = {
	.version = GANNET_VFS_VERSION,
	.name = "mem",
	.options = options,
	.noptions = ARRAY_SIZE(options),
	.options_size = sizeof(struct mem_options),
	.mount = mem_mount,
	.unmount = mem_unmount,
	.root = mem_root,
	.open_handle = mem_open_handle,
	.handle = mem_handle,
	.node_free = mem_node_free,
	.getattr = mem_getattr,
	.setattr = mem_setattr,
	.access = mem_access,
	.lookup = mem_lookup,
	.readlink = mem_readlink,
	.read = mem_read,
	.write = mem_write,
	.commit = mem_commit,
	.create = mem_create,
	.make = mem_make,
	.remove = mem_remove,
	.rename = mem_rename,
	.link = mem_link,
	.readdir = mem_readdir,
	.statfs = mem_statfs,
	.limits = mem_limits,
};
