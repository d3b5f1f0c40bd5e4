/* SPDX-License-Identifier: BSD-2-Clause */
/* Nodes: their slots, and their handles. */
#include "vfs/mem/mem.h"

#include <stdlib.h>
#include <string.h>

/* On the wire of a handle: the slot, the generation. */
#define HANDLE_LEN	12

static struct mem_node *slot_node(const struct mem_fs *fs, uint32_t slot)
{
	struct mem_chunk *chunk;

	if (slot >= fs->max_nodes)
		return NULL;
	chunk = atomic_load_explicit(&fs->chunks[slot / MEM_CHUNK],
				     memory_order_acquire);
	return chunk ? &chunk->node[slot % MEM_CHUNK] : NULL;
}

/* Makes the chunk of the next slot if it is missing; under slots_lock. */
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

void mem_handle(struct vfs_node *node, struct vfs_handle *h)
{
	struct mem_node *n = mem_node(node);

	h->len = HANDLE_LEN;
	memcpy(h->data, &n->slot, 4);
	memcpy(h->data + 4, &n->gen, 8);
}

int mem_open_handle(struct vfs_op *op)
{
	struct mem_fs *fs = container_of(op->open.fs, struct mem_fs, base);
	const struct vfs_handle *h = op->open.handle;
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

void mem_nodes_free(struct mem_fs *fs)
{
	for (uint32_t slot = 0; slot < fs->nslots; slot++) {
		struct mem_node *n = slot_node(fs, slot);

		/* Only the tree's reference can be left. */
		if (atomic_load(&n->base.refs) != 0)
			contents_free(fs, n);
		pthread_rwlock_destroy(&n->lock);
	}
	for (uint32_t i = 0; i <= fs->max_nodes / MEM_CHUNK; i++)
		free(atomic_load(&fs->chunks[i]));
}
