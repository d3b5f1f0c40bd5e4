/* SPDX-License-Identifier: BSD-2-Clause */
/* perm - permission checks by a file's mode and access ACL. */
#include "modules/ceph/ceph.h"

#include <errno.h>

#include "vfs/acl_xattr.h"

bool cfs_in_group(const struct vfs_cred *cred, uint32_t gid)
{
	if (cred->gid == gid)
		return true;
	for (uint32_t i = 0; i < cred->ngids; i++)
		if (cred->gids[i] == gid)
			return true;
	return false;
}

int cfs_acl_read(struct cfs_call *c, enum vfs_acl_kind kind,
		 struct vfs_acl_entry *out)
{
	struct acl_xattr l;
	int size = ceph_ll_getxattr(c->cm, c->in, acl_xattr_names[kind], &l,
				    sizeof(l), c->root);

	if (size > 0)
		return acl_xattr_decode(&l, (size_t)size, out);
	if (size == -ERANGE)
		return -EFBIG;
	return size == -ENODATA || size == -EOPNOTSUPP ? 0 : size;
}

int cfs_perm_load(struct cfs_call *c, const struct vfs_cred *cred,
		  const struct ceph_statx *sx, struct cfs_perm *p)
{
	p->cred = cred;
	p->uid = sx->stx_uid;
	p->gid = sx->stx_gid;
	p->mode = sx->stx_mode & 07777;
	p->is_dir = S_ISDIR(sx->stx_mode);
	p->nacl = 0;
	/* The list does not apply to user 0, and gives the owner the mode's
	 * rights. */
	if (cred->uid == 0 || cred->uid == p->uid || S_ISLNK(sx->stx_mode))
		return 0;
	p->nacl = cfs_acl_read(c, VFS_ACL_ACCESS, p->acl);
	return MIN(p->nacl, 0);
}

/* True if @e is of a group that the caller is in. */
static bool is_of_group(const struct cfs_perm *p,
			const struct vfs_acl_entry *e)
{
	if (e->tag == VFS_ACL_GROUP_OBJ)
		return cfs_in_group(p->cred, p->gid);
	return e->tag == VFS_ACL_GROUP && cfs_in_group(p->cred, e->id);
}

/*
 * acl(5): an entry of the user decides; else one of the groups that has all of
 * @want; else, if no group is the caller's, the entry "other".  The mask bounds
 * all but the last.
 */
static bool acl_has(const struct cfs_perm *p, int want)
{
	const struct vfs_acl_entry *e;
	bool in_group = false, granted = false, named = false;
	int mask = 07, other = 0, user = 0;

	for (int i = 0; i < p->nacl; i++) {
		e = p->acl + i;
		if (e->tag == VFS_ACL_MASK)
			mask = e->perm;
		if (e->tag == VFS_ACL_OTHER)
			other = e->perm;
		if (e->tag == VFS_ACL_USER && e->id == p->cred->uid) {
			named = true;
			user = e->perm;
		}
		if (is_of_group(p, e)) {
			in_group = true;
			granted |= (e->perm & want) == want;
		}
	}
	if (named)
		return (user & mask & want) == want;
	if (in_group)
		return granted && (mask & want) == want;
	return (other & want) == want;
}

bool cfs_perm_has(const struct cfs_perm *p, int want)
{
	int have = (int)p->mode;

	if (p->cred->uid == 0) {
		have = CFS_R | CFS_W;
		if (p->is_dir || p->mode & 0111)
			have |= CFS_X;
	} else if (p->cred->uid == p->uid) {
		have >>= 6;
	} else if (p->nacl > 0) {
		return acl_has(p, want);
	} else if (cfs_in_group(p->cred, p->gid)) {
		have >>= 3;
	}
	return (have & want) == want;
}

int cfs_check_io(struct cfs_call *c, const struct vfs_cred *cred,
		 const struct ceph_statx *sx, int want)
{
	struct cfs_perm p;
	int err;

	/* A client that opened it goes on, whatever the mode is now. */
	if (cred->uid == 0 || cred->uid == sx->stx_uid)
		return 0;
	err = cfs_perm_load(c, cred, sx, &p);
	if (err < 0)
		return err;
	/* To execute a file, a client has to read it. */
	return cfs_perm_has(&p, want) ||
	       (want == CFS_R && cfs_perm_has(&p, CFS_X)) ? 0 : -EACCES;
}
