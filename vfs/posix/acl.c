/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * acl - access control lists, as the kernel shows them: extended attributes.
 *
 * The kernel checks who may change a list, keeps the mode in step with it, and
 * gives new files the default ACL of their directory.  Each change of a list
 * changes the ctime, which invalidates cached answers about access (perm.c).
 */
#include "vfs/posix/change.h"
#include "vfs/posix/node.h"
#include "vfs/posix/ops.h"

#include <errno.h>
#include <sys/xattr.h>

#include "vfs/acl_xattr.h"

/* True if the file has no list, or can't have one, or no file can. */
static bool is_none(int err)
{
	return err == ENODATA || err == EOPNOTSUPP;
}

static int get_one(const struct posix_fd_path *p, enum vfs_acl_kind kind,
		   struct vfs_acl_entry *out)
{
	struct acl_xattr l;
	ssize_t size = getxattr(p->s, acl_xattr_names[kind], &l, sizeof(l));

	if (size >= 0)
		return acl_xattr_decode(&l, (size_t)size, out);
	if (errno == ERANGE)
		return -EFBIG;
	return is_none(errno) ? 0 : -errno;
}

int posix_getacl(struct vfs_op *op)
{
	struct posix_node *n = to_posix(op->node);
	struct posix_fd_path p = posix_fd_path(n->fd);
	int err;

	/* The list might have to be read from the disk. */
	err = posix_may_block(op, posix_fs_of(n)) ?
	      posix_begin(posix_fs_of(n), op) : -EAGAIN;
	if (err < 0)
		return err;
	for (int kind = 0; kind < VFS_ACL_KINDS; kind++) {
		int got;

		if (!op->acls->wanted[kind])
			continue;
		got = get_one(&p, kind, op->acls->entry[kind]);
		if (got < 0)
			return got;
		op->acls->n[kind] = (uint32_t)got;
	}
	return 0;
}

static int set_one(const struct posix_node *node, enum vfs_acl_kind kind,
		   const struct vfs_acls *acls)
{
	struct posix_fd_path p = posix_fd_path(node->fd);
	uint32_t n = acls->n[kind];
	struct acl_xattr l;
	size_t size;

	if (n > 0) {
		size = acl_xattr_encode(acls->entry[kind], n, &l);
		return setxattr(p.s, acl_xattr_names[kind], &l, size, 0) < 0 ?
		       -errno : 0;
	}
	if (removexattr(p.s, acl_xattr_names[kind]) == 0 || errno == ENODATA)
		return 0;
	/* Only a directory has a default ACL: nothing is to be removed. */
	if (kind == VFS_ACL_DEFAULT && node->type != VFS_DIR &&
	    errno == EACCES)
		return 0;
	return -errno;
}

/* The mode that the access ACL gives. */
static uint32_t list_mode(const struct vfs_acls *acls)
{
	uint32_t mode = 0;

	for (uint32_t i = 0; i < acls->n[VFS_ACL_ACCESS]; i++) {
		const struct vfs_acl_entry *e = &acls->entry[VFS_ACL_ACCESS][i];

		if (e->tag == VFS_ACL_USER_OBJ)
			mode |= (uint32_t)e->perm << 6;
		if (e->tag & (VFS_ACL_GROUP_OBJ | VFS_ACL_MASK))
			mode = (mode & ~070u) | (uint32_t)e->perm << 3;
		if (e->tag == VFS_ACL_OTHER)
			mode |= e->perm;
	}
	return mode;
}

/* The access ACL first, as Linux's server does.  Once that is set, no error
 * says "come again". */
static int set_lists(struct posix_node *n, const struct vfs_acls *acls)
{
	bool has_mode = acls->n[VFS_ACL_ACCESS] > 0;
	uint32_t mode = list_mode(acls);
	bool done = false;
	int err = 0;

	if (acls->wanted[VFS_ACL_ACCESS]) {
		if (has_mode)
			posix_node_mode_comes(n, mode);
		err = set_one(n, VFS_ACL_ACCESS, acls);
		done = err == 0;
		if (done && has_mode)
			posix_node_mode_is(n, mode);
	}
	if (err == 0 && acls->wanted[VFS_ACL_DEFAULT])
		err = set_one(n, VFS_ACL_DEFAULT, acls);
	return done ? posix_not_again(err) : err;
}

int posix_setacl(struct vfs_op *op)
{
	struct posix_node *n = to_posix(op->node);
	struct posix_change c;
	int err;

	err = posix_may_block(op, posix_fs_of(n)) ?
	      posix_begin(posix_fs_of(n), op) : -EAGAIN;
	if (err < 0)
		return err;
	err = posix_change_begin(&c, n, NULL);
	if (err == 0)
		err = posix_sync_ready(n);
	if (err == 0)
		err = posix_cred_set(posix_fs_of(n), op);
	if (err == 0)
		err = set_lists(n, op->acls);
	posix_change_end(&c);
	return err < 0 ? err : posix_change_sync(&c);
}
