/* SPDX-License-Identifier: BSD-2-Clause */
/* The file system: its bounds, and the table of operations. */
#include "vfs/mem/mem.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "lib/log.h"
#include "lib/machine.h"

#define DEFAULT_NODES	(4u << 20)
#define MAX_NODES	(64u << 20)
#define MIN_BYTES	(64u << 10)

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

	mem_nodes_free(fs);
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

static int mem_statfs(struct vfs_op *op)
{
	struct mem_fs *fs = mem_fs(mem_node(op->node));
	struct vfs_statfs *st = op->statfs;
	uint64_t bytes = atomic_load(&fs->bytes);

	st->tbytes = fs->max_bytes;
	/* The count can include a charge that is about to be taken back. */
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
