/* SPDX-License-Identifier: BSD-2-Clause */
/* handle - handles of nodes, and nodes by their handles. */
#include "modules/ceph/ceph.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* Numbers are little endian: servers with different byte orders can share
 * clients. */
struct wire_handle {
	uint64_t cluster;
	uint64_t ino;
	uint64_t snapid;
	uint32_t fscid;
} __attribute__((packed));

_Static_assert(sizeof(struct wire_handle) <= VFS_HANDLE_MAX, "it fits");

void cfs_handle_make(const struct cfs_fs *fs, vinodeno_t vino,
		     struct vfs_handle *h)
{
	const struct wire_handle w = {
		.cluster = htole64(fs->cluster),
		.ino = htole64(vino.ino.val),
		.snapid = htole64(vino.snapid.val),
		.fscid = htole32(fs->store.fscid),
	};

	h->len = sizeof(w);
	memcpy(h->data, &w, sizeof(w));
}

void cfs_handle(struct vfs_node *n, struct vfs_handle *h)
{
	cfs_handle_make(cfs_fs(n->fs), cfs_node(n)->vino, h);
}

/* The next operation checks whether the file still has a name; but a worker has
 * the time to check here. */
static int check_link(struct cfs_node *n, const struct vfs_op *op)
{
	struct vfs_op look = *op;
	struct ceph_statx sx;
	struct cfs_call c;
	int err;

	if (atomic_load(&n->gone))
		return -ESTALE;
	if (op->nonblock)
		return 0;
	look.node = &n->node;
	err = cfs_begin_stat(&c, &look, &sx);
	return err < 0 ? err : cfs_end(&c, 0);
}

int cfs_open_handle(struct vfs_op *op)
{
	struct cfs_fs *fs = cfs_fs(op->open.fs);
	struct wire_handle w;
	struct cfs_node *n;
	vinodeno_t vino;
	int err;

	if (op->open.handle->len != sizeof(w))
		return -EBADMSG;
	memcpy(&w, op->open.handle->data, sizeof(w));
	if (le64toh(w.cluster) != fs->cluster ||
	    le32toh(w.fscid) != fs->store.fscid)
		return -EBADMSG;
	vino.ino.val = le64toh(w.ino);
	vino.snapid.val = le64toh(w.snapid);
	err = cfs_node_find(fs, vino, op->nonblock, &n);
	if (err < 0)
		return err;
	err = check_link(n, op);
	if (err < 0)
		vfs_node_put(&n->node);
	else
		op->out = &n->node;
	return err;
}
