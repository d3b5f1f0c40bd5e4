/* SPDX-License-Identifier: BSD-2-Clause */
/* CREATE, MKDIR, SYMLINK, MKNOD: new names. */
#include "nfs3/proc.h"

#include <errno.h>

/* "." and ".." are there already, everywhere: EXIST (section 3.3.9). */
static int check_new_name(struct xdr_view view, struct vfs_name *name)
{
	int err = nfs3_check_name(view, name);

	if (err == 0 && (nfs3_is_dot(*name) || nfs3_is_dotdot(*name)))
		err = -EEXIST;
	return err;
}

/*
 * Returns the attributes that the caller may give a new file.  A caller other
 * than root makes files of its own: an owner in the arguments is ignored, not
 * refused.
 */
static int check_new_attr(const struct nfs3_op *op,
			  const struct vfs_setattr *in,
			  struct vfs_setattr *out)
{
	if (!nfs3_times_ok(in))
		return -EINVAL;
	if ((in->set & VFS_SET_SIZE) && in->size > INT64_MAX)
		return -EINVAL;
	*out = *in;
	if (op->cred.uid != 0)
		out->set &= ~(VFS_SET_UID | VFS_SET_GID);
	return 0;
}

/* Makes the reply of all four procedures, once the file exists.  Takes @node,
 * which is NULL when the file can't be shown: the client looks it up (RFC 1813
 * section 3.3.8). */
static void made(struct nfs3_op *op, struct vfs_node *node,
		 struct nfs3_create_res *r)
{
	if (!node)
		return;
	r->attr.has = true;
	r->attr.fsid = op->exp->fs->fsid;
	nfs3_make_fh(op, node, &r->fh);
	vfs_node_put(node);
}

NFS3_STEP(create_file)
{
	const struct nfs3_create_args *a = rpc_args(call);
	struct nfs3_create_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);
	struct vfs_create how = a->how;
	struct vfs_node *node;
	struct vfs_name name;
	int err;

	err = check_new_name(a->where.name, &name);
	if (err == 0)
		err = check_new_attr(op, &a->how.attr, &how.attr);
	if (err == 0)
		err = op->ops->create(&op->ctx, op->node, name, &how, &node,
				      &r->attr.attr, &r->dir_wcc.wcc);
	if (err == 0)
		made(op, node, r);
	return err;
}

/* Checks the arguments that the type needs, beyond XDR's checks. */
static int check_what(const struct nfs3_make_args *a)
{
	const struct vfs_make *what = &a->what;

	switch (a->type) {
	case VFS_DIR:
	case VFS_BLK:
	case VFS_CHR:
	case VFS_SOCK:
	case VFS_FIFO:
		return 0;
	case VFS_LNK:
		if (what->target_len > VFS_PATH_MAX)
			return -ENAMETOOLONG;
		if (what->target_len == 0 ||
		    memchr(what->target, '\0', what->target_len))
			return -EINVAL;
		return 0;
	default:
		return -EPROTOTYPE;
	}
}

NFS3_STEP(make)
{
	const struct nfs3_make_args *a = rpc_args(call);
	struct nfs3_create_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);
	struct vfs_make what = a->what;
	struct vfs_node *node;
	struct vfs_name name;
	int err;

	err = check_what(a);
	if (err == 0)
		err = check_new_name(a->where.name, &name);
	if (err == 0)
		err = check_new_attr(op, &a->what.attr, &what.attr);
	if (err < 0)
		return err;
	what.type = a->type;
	err = op->ops->make(&op->ctx, op->node, name, &what, &node,
			    &r->attr.attr, &r->dir_wcc.wcc);
	if (err == 0)
		made(op, node, r);
	return err;
}
