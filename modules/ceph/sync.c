/* SPDX-License-Identifier: BSD-2-Clause */
/* sync - data, names and attributes made durable. */
#include "modules/ceph/ceph.h"

/*
 * The library reports data that it could not write only once: to the caller of
 * a sync, if the sync finds the failure.  A failure that it finds by itself, as
 * when a pool is full, it notes for each open file, and only closing that file
 * reports it.  So from a write on a second file is open, the witness: each sync
 * closes it, and opens another one.
 *
 * Clients send lost data again when the verifier has changed.  A sync that
 * heard of no loss waits for the other syncs of the file, which might have.
 */
static int sync_node(struct cfs_call *c, bool data_only)
{
	struct cfs_node *n = c->node;
	int err, lost;

	pthread_rwlock_rdlock(&n->syncs);
	err = ceph_ll_sync_inode(c->cm, c->in, data_only);
	if (err < 0)
		cfs_verf_change(c->client->fs);
	pthread_rwlock_unlock(&n->syncs);
	pthread_rwlock_wrlock(&n->syncs);
	lost = cfs_ask_witness(c);
	pthread_rwlock_unlock(&n->syncs);
	if (err == 0)
		err = lost;
	cfs_note_loss(c->client->fs, err);
	return err;
}

int cfs_sync(struct cfs_call *c)
{
	return sync_node(c, false);
}

int cfs_sync_data(struct cfs_call *c)
{
	return sync_node(c, true);
}

int cfs_sync_change(struct cfs_call *c, struct Inode *in)
{
	if (c->client->fs->options->async)
		return 0;
	/* The library then also discards data that it can't write. */
	return in == c->in && c->node->type == VFS_REG ?
	       cfs_sync(c) : ceph_ll_sync_inode(c->cm, in, 0);
}
