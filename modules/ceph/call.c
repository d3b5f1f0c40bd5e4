/* SPDX-License-Identifier: BSD-2-Clause */
/* call - an operation's use of a client, and the attributes around it. */
#include "modules/ceph/ceph.h"

#include <errno.h>

static UserPerm *user_of(const struct vfs_cred *cred)
{
	return ceph_userperm_new(cred->uid, cred->gid, (int)cred->ngids,
				 (gid_t *)(uintptr_t)cred->gids);
}

int cfs_begin(struct cfs_call *c, const struct vfs_op *op)
{
	struct cfs_node *n = cfs_node(op->node);
	int err;

	if (op->nonblock)
		return -EAGAIN;
	if (atomic_load(&n->gone))
		return -ESTALE;
	err = cfs_begin_by(c, n->client);
	if (err < 0)
		return err;
	c->node = n;
	err = cfs_node_inode(n, c->cm, &c->in);
	if (err == 0 && op->cred) {
		c->user = user_of(op->cred);
		err = c->user ? 0 : -ENOMEM;
	}
	return err < 0 ? cfs_end(c, err) : 0;
}

int cfs_stat(struct cfs_call *c, struct ceph_statx *sx)
{
	int err = ceph_ll_getattr(c->cm, c->in, sx, CFS_WANT, 0, c->root);

	if (err == 0 && sx->stx_nlink == 0) {
		atomic_store(&c->node->gone, true);
		err = -ESTALE;
	}
	return err == -ENOENT ? -ESTALE : err;
}

int cfs_begin_stat(struct cfs_call *c, const struct vfs_op *op,
		   struct ceph_statx *sx)
{
	int err = cfs_begin(c, op);

	if (err < 0)
		return err;
	err = cfs_stat(c, sx);
	return err < 0 ? cfs_end(c, err) : 0;
}

int cfs_begin_other(struct cfs_call *other, const struct cfs_call *c,
		    struct vfs_node *node)
{
	struct cfs_node *n = cfs_node(node);

	*other = *c;
	other->node = n;
	other->in = NULL;
	if (atomic_load(&n->gone))
		return -ESTALE;
	if (n->client == c->client)
		return cfs_node_inode(n, c->cm, &other->in);
	return ceph_ll_lookup_vino(c->cm, n->vino, &other->in);
}

void cfs_end_other(struct cfs_call *other)
{
	if (other->in && other->node->client != other->client)
		ceph_ll_put(other->cm, other->in);
}

void cfs_wcc_before(const struct ceph_statx *sx, struct vfs_wcc *wcc)
{
	if (!wcc)
		return;
	wcc->has_before = true;
	wcc->before_size = sx->stx_size;
	wcc->before_mtime = sx->stx_mtime;
	wcc->before_ctime = sx->stx_ctime;
}

int cfs_before(struct cfs_call *c, struct vfs_wcc *wcc)
{
	struct ceph_statx sx;
	int err = cfs_stat(c, &sx);

	if (err < 0)
		return err;
	cfs_wcc_before(&sx, wcc);
	return S_ISDIR(sx.stx_mode) ? 0 : -ENOTDIR;
}

int cfs_after(struct cfs_call *c, struct vfs_wcc *wcc, int err)
{
	struct ceph_statx sx;
	int stat = cfs_stat(c, &sx);

	if (stat == 0 && wcc) {
		wcc->has_after = true;
		cfs_attr(&sx, &wcc->after);
	}
	return err == 0 && cfs_is_lost(stat) ? stat : err;
}
