/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arguments of NFS version 3 off the wire: RFC 1813 section 3.3.  Pure.
 *
 * Values that XDR rules out (an unknown arm of a union, a bool of 2, a
 * filehandle of 65 bytes) fail here, and become GARBAGE_ARGS.  Values that only
 * NFS rules out (nanoseconds past a second, names with a slash) pass: the
 * procedure answers with their nfsstat3.
 */
#include "nfs3/proc.h"

static void get_time(struct xdr_in *x, struct timespec *t)
{
	t->tv_sec = xdr_get_u32(x);
	t->tv_nsec = xdr_get_u32(x);
}

/* set_atime and set_mtime. */
static uint32_t get_set_time(struct xdr_in *x, struct timespec *t,
			     uint32_t client, uint32_t server)
{
	switch (xdr_get_count(x, SET_TO_CLIENT_TIME)) {
	case SET_TO_CLIENT_TIME:
		get_time(x, t);
		return client;
	case SET_TO_SERVER_TIME:
		return server;
	default:
		return 0;
	}
}

/* sattr3, section 2.5. */
static void get_sattr(struct xdr_in *x, struct vfs_setattr *set)
{
	set->set = 0;
	set->guarded = false;
	if (xdr_get_bool(x)) {
		set->set |= VFS_SET_MODE;
		set->mode = xdr_get_u32(x) & 07777;
	}
	if (xdr_get_bool(x)) {
		set->set |= VFS_SET_UID;
		set->uid = xdr_get_u32(x);
	}
	if (xdr_get_bool(x)) {
		set->set |= VFS_SET_GID;
		set->gid = xdr_get_u32(x);
	}
	if (xdr_get_bool(x)) {
		set->set |= VFS_SET_SIZE;
		set->size = xdr_get_u64(x);
	}
	set->set |= get_set_time(x, &set->atime, VFS_SET_ATIME,
				 VFS_SET_ATIME_NOW);
	set->set |= get_set_time(x, &set->mtime, VFS_SET_MTIME,
				 VFS_SET_MTIME_NOW);
}

static struct xdr_view get_handle(struct xdr_in *x)
{
	return xdr_get_opaque(x, NFS3_FHSIZE);
}

static void get_where(struct xdr_in *x, struct nfs3_dirop_args *where)
{
	where->fh = get_handle(x);
	where->name = xdr_get_opaque(x, NFS3_STRING_MAX);
}

bool nfs3_get_void(struct xdr_in *x, void *args)
{
	return xdr_ok(x);
}

bool nfs3_get_fh(struct xdr_in *x, void *args)
{
	struct nfs3_fh_args *a = args;

	a->fh = get_handle(x);
	return xdr_ok(x);
}

bool nfs3_get_dirop(struct xdr_in *x, void *args)
{
	get_where(x, args);
	return xdr_ok(x);
}

bool nfs3_get_setattr(struct xdr_in *x, void *args)
{
	struct nfs3_setattr_args *a = args;

	a->fh = get_handle(x);
	get_sattr(x, &a->attr);
	a->attr.guarded = xdr_get_bool(x);
	if (a->attr.guarded)
		get_time(x, &a->attr.guard);
	return xdr_ok(x);
}

bool nfs3_get_access(struct xdr_in *x, void *args)
{
	struct nfs3_access_args *a = args;

	a->fh = get_handle(x);
	a->access = xdr_get_u32(x);
	return xdr_ok(x);
}

bool nfs3_get_read(struct xdr_in *x, void *args)
{
	struct nfs3_read_args *a = args;

	a->fh = get_handle(x);
	a->offset = xdr_get_u64(x);
	a->count = xdr_get_u32(x);
	return xdr_ok(x);
}

bool nfs3_get_write(struct xdr_in *x, void *args)
{
	struct nfs3_write_args *a = args;

	a->fh = get_handle(x);
	a->offset = xdr_get_u64(x);
	a->count = xdr_get_u32(x);
	a->stable = xdr_get_count(x, VFS_FILE_SYNC);
	a->niov = MSG_MAX_SEGS;
	/* Bytes beyond wtmax are neither written nor looked at. */
	a->len = xdr_get_iov(x, MSG_MAX_TAKEN, a->iov, &a->niov);
	return xdr_ok(x);
}

bool nfs3_get_create(struct xdr_in *x, void *args)
{
	struct nfs3_create_args *a = args;

	get_where(x, &a->where);
	a->how.attr.set = 0;
	switch (xdr_get_count(x, EXCLUSIVE)) {
	case UNCHECKED:
		a->how.how = VFS_CREATE_UNCHECKED;
		get_sattr(x, &a->how.attr);
		break;
	case GUARDED:
		a->how.how = VFS_CREATE_GUARDED;
		get_sattr(x, &a->how.attr);
		break;
	default:
		a->how.how = VFS_CREATE_EXCLUSIVE;
		a->how.verf = xdr_get_u64(x);
	}
	return xdr_ok(x);
}

bool nfs3_get_mkdir(struct xdr_in *x, void *args)
{
	struct nfs3_make_args *a = args;

	get_where(x, &a->where);
	a->type = VFS_DIR;
	get_sattr(x, &a->what.attr);
	return xdr_ok(x);
}

bool nfs3_get_symlink(struct xdr_in *x, void *args)
{
	struct nfs3_make_args *a = args;
	struct xdr_view path;

	get_where(x, &a->where);
	a->type = VFS_LNK;
	get_sattr(x, &a->what.attr);
	path = xdr_get_opaque(x, NFS3_STRING_MAX);
	a->what.target = (const char *)path.data;
	a->what.target_len = path.len;
	return xdr_ok(x);
}

/* mknoddata3: the other types are void, and the answer is BADTYPE; 0 stands for
 * all of them. */
bool nfs3_get_mknod(struct xdr_in *x, void *args)
{
	struct nfs3_make_args *a = args;

	get_where(x, &a->where);
	a->type = xdr_get_u32(x);
	a->what.attr.set = 0;
	a->what.rdev_major = 0;
	a->what.rdev_minor = 0;
	switch (a->type) {
	case VFS_BLK:
	case VFS_CHR:
		get_sattr(x, &a->what.attr);
		a->what.rdev_major = xdr_get_u32(x);
		a->what.rdev_minor = xdr_get_u32(x);
		break;
	case VFS_SOCK:
	case VFS_FIFO:
		get_sattr(x, &a->what.attr);
		break;
	default:
		a->type = 0;
	}
	return xdr_ok(x);
}

bool nfs3_get_rename(struct xdr_in *x, void *args)
{
	struct nfs3_rename_args *a = args;

	get_where(x, &a->from);
	get_where(x, &a->to);
	return xdr_ok(x);
}

bool nfs3_get_link(struct xdr_in *x, void *args)
{
	struct nfs3_link_args *a = args;

	a->fh = get_handle(x);
	get_where(x, &a->link);
	return xdr_ok(x);
}

static void get_dir(struct xdr_in *x, struct nfs3_readdir_args *a)
{
	a->fh = get_handle(x);
	a->cookie = xdr_get_u64(x);
	a->verf = xdr_get_u64(x);
}

bool nfs3_get_readdir(struct xdr_in *x, void *args)
{
	struct nfs3_readdir_args *a = args;

	get_dir(x, a);
	a->dircount = UINT32_MAX;
	a->maxcount = xdr_get_u32(x);
	return xdr_ok(x);
}

bool nfs3_get_readdirplus(struct xdr_in *x, void *args)
{
	struct nfs3_readdir_args *a = args;

	get_dir(x, a);
	a->dircount = xdr_get_u32(x);
	a->maxcount = xdr_get_u32(x);
	return xdr_ok(x);
}

bool nfs3_get_commit(struct xdr_in *x, void *args)
{
	struct nfs3_commit_args *a = args;

	a->fh = get_handle(x);
	a->offset = xdr_get_u64(x);
	a->count = xdr_get_u32(x);
	return xdr_ok(x);
}
