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
 * Checks the attributes of a new file.  A caller other than root owns the files
 * that it makes: an owner in the arguments is ignored, not refused.
 */
static int check_new_attr(const struct nfs3_op *op, struct vfs_setattr *attr)
{
	if (!nfs3_times_ok(attr))
		return -EINVAL;
	if ((attr->set & VFS_SET_SIZE) && attr->size > INT64_MAX)
		return -EINVAL;
	if (op->cred.uid != 0)
		attr->set &= ~(VFS_SET_UID | VFS_SET_GID);
	return 0;
}

/* Makes the new file, for all four procedures.  It has no node when it can't be
 * shown: the client looks it up (RFC 1813 section 3.3.8). */
static int make(struct nfs3_op *op, vfs_op_fn *fn, struct nfs3_create_res *r)
{
	int err;

	op->vfs.attr = &r->attr.attr;
	op->vfs.wcc = &r->dir_wcc.wcc;
	err = nfs3_do(op, fn);
	if (err < 0 || !op->vfs.out)
		return err;
	r->attr.has = true;
	r->attr.fsid = op->opts.fsid;
	nfs3_make_fh(op, op->vfs.out, &r->fh);
	vfs_node_put(op->vfs.out);
	return 0;
}

NFS3_STEP(create_file)
{
	struct nfs3_create_args *a = rpc_args(call);
	struct nfs3_op *op = nfs3_op(call);
	int err;

	err = check_new_name(a->where.name, &op->vfs.name);
	if (err == 0)
		err = check_new_attr(op, &a->how.attr);
	op->vfs.create = &a->how;
	return err < 0 ? err : make(op, op->ops->create, rpc_res(call));
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
		return vfs_target_check(what->target, what->target_len);
	default:
		return -EPROTOTYPE;
	}
}

NFS3_STEP(make)
{
	struct nfs3_make_args *a = rpc_args(call);
	struct nfs3_op *op = nfs3_op(call);
	int err;

	err = check_what(a);
	if (err == 0)
		err = check_new_name(a->where.name, &op->vfs.name);
	if (err == 0)
		err = check_new_attr(op, &a->what.attr);
	a->what.type = a->type;
	op->vfs.make = &a->what;
	return err < 0 ? err : make(op, op->ops->make, rpc_res(call));
}
