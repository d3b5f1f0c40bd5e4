/* SPDX-License-Identifier: BSD-2-Clause */
/* MOUNT arguments and results: RFC 1813 section 5, RFC 1094 appendix A.
 * Pure. */
#include "mountd/mount.h"

#include <errno.h>

/* A path that is too long gets its status, not GARBAGE_ARGS. */
#define STRING_MAX	(64u << 10)

bool mount_get_path(struct xdr_in *x, void *args)
{
	struct mount_path_args *a = args;

	a->path = xdr_get_opaque(x, STRING_MAX);
	return xdr_ok(x);
}

void mount_put_mnt3(struct xdr_out *x, const void *res)
{
	const struct mount_mnt_res *r = res;

	xdr_put_u32(x, r->status);
	if (r->status != MNT3_OK)
		return;
	xdr_put_opaque(x, r->fh.data, r->fh.len);
	xdr_put_u32(x, r->nflavors);
	for (unsigned i = 0; i < r->nflavors; i++)
		xdr_put_u32(x, r->flavors[i]);
}

void mount_put_mnt1(struct xdr_out *x, const void *res)
{
	const struct mount_mnt_res *r = res;

	xdr_put_u32(x, r->status);
}

enum mountstat3 mount_status(int err)
{
	switch (-err) {
	case 0:
		return MNT3_OK;
	case EPERM:
		return MNT3ERR_PERM;
	case ENOENT:
	case ESTALE:			/* no such export, or just removed */
	case ENODEV:			/* nothing is mounted there */
		return MNT3ERR_NOENT;
	case EIO:
		return MNT3ERR_IO;
	case EACCES:
		return MNT3ERR_ACCES;
	case ENOTDIR:
	case ELOOP:			/* symbolic links without end */
		return MNT3ERR_NOTDIR;
	case EINVAL:
		return MNT3ERR_INVAL;
	case ENAMETOOLONG:
		return MNT3ERR_NAMETOOLONG;
	case EOPNOTSUPP:
		return MNT3ERR_NOTSUPP;
	default:
		return MNT3ERR_SERVERFAULT;
	}
}
