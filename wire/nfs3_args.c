/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arguments of NFS version 3: RFC 1813 section 3.3.  Pure.
 *
 * Values that XDR rules out (an unknown arm of a union, a bool of 2, a
 * filehandle of 65 bytes) fail here, and become GARBAGE_ARGS.  Values that only
 * NFS rules out (nanoseconds past a second, names with a slash) pass: the
 * procedure answers with their nfsstat3.
 */
#include "wire/nfs3.h"

_Static_assert(VFS_CREATE_UNCHECKED == 0 && VFS_CREATE_GUARDED == 1 &&
	       VFS_CREATE_EXCLUSIVE == 2, "createmode3");

/* set_mode3, set_uid3, set_gid3. */
XDR_BOTH void both_set(struct xdr_both b, struct vfs_setattr *set, uint32_t bit,
		       uint32_t *value)
{
	bool has = set->set & bit;

	both_bool(b, has);
	if (!has)
		return;
	if (b.in)
		set->set |= bit;
	both_u32(b, *value);
}

/* set_atime and set_mtime: @client and @server are the bits that ask for it. */
XDR_BOTH void both_set_time(struct xdr_both b, struct vfs_setattr *set,
			    struct timespec *t, uint32_t client,
			    uint32_t server)
{
	uint32_t how = set->set & client ? SET_TO_CLIENT_TIME :
		       set->set & server ? SET_TO_SERVER_TIME : DONT_CHANGE;

	both_count(b, how, SET_TO_CLIENT_TIME);
	if (how == SET_TO_CLIENT_TIME)
		nfs3_time(b, t);
	if (b.in)
		set->set |= how == SET_TO_CLIENT_TIME ? client :
			    how == SET_TO_SERVER_TIME ? server : 0;
}

/* Section 2.5. */
XDR_BOTH void sattr3(struct xdr_both b, struct vfs_setattr *set)
{
	bool size;

	if (b.in) {
		set->set = 0;
		set->guarded = false;
	}
	both_set(b, set, VFS_SET_MODE, &set->mode);
	if (b.in && set->set & VFS_SET_MODE)
		set->mode &= 07777;
	both_set(b, set, VFS_SET_UID, &set->uid);
	both_set(b, set, VFS_SET_GID, &set->gid);
	size = set->set & VFS_SET_SIZE;
	both_bool(b, size);
	if (size)
		both_u64(b, set->size);
	if (b.in && size)
		set->set |= VFS_SET_SIZE;
	both_set_time(b, set, &set->atime, VFS_SET_ATIME, VFS_SET_ATIME_NOW);
	both_set_time(b, set, &set->mtime, VFS_SET_MTIME, VFS_SET_MTIME_NOW);
}

static void get_sattr(struct xdr_in *x, struct vfs_setattr *set)
{
	sattr3((struct xdr_both){ .in = x }, set);
}

static void put_sattr(struct xdr_out *x, struct vfs_setattr *set)
{
	sattr3((struct xdr_both){ .out = x }, set);
}

XDR_BOTH void both_sattr(struct xdr_both b, struct vfs_setattr *set)
{
	if (b.in)
		get_sattr(b.in, set);
	else
		put_sattr(b.out, set);
}

XDR_BOTH void fh_args(struct xdr_both b, struct nfs3_fh_args *a)
{
	both_view(b, a->fh, NFS3_FHSIZE);
}

XDR_BOTH void dirop_args(struct xdr_both b, struct nfs3_dirop_args *a)
{
	both_view(b, a->fh, NFS3_FHSIZE);
	both_view(b, a->name, NFS3_STRING_MAX);
}

XDR_BOTH void setattr_args(struct xdr_both b, struct nfs3_setattr_args *a)
{
	both_view(b, a->fh, NFS3_FHSIZE);
	both_sattr(b, &a->attr);
	both_bool(b, a->attr.guarded);
	if (a->attr.guarded)
		nfs3_time(b, &a->attr.guard);
}

XDR_BOTH void access_args(struct xdr_both b, struct nfs3_access_args *a)
{
	both_view(b, a->fh, NFS3_FHSIZE);
	both_u32(b, a->access);
}

XDR_BOTH void read_args(struct xdr_both b, struct nfs3_read_args *a)
{
	both_view(b, a->fh, NFS3_FHSIZE);
	both_u64(b, a->offset);
	both_u32(b, a->count);
}

XDR_BOTH void write_args(struct xdr_both b, struct nfs3_write_args *a)
{
	both_view(b, a->fh, NFS3_FHSIZE);
	both_u64(b, a->offset);
	both_u32(b, a->count);
	both_count(b, a->stable, VFS_FILE_SYNC);
	if (!b.in) {
		xdr_put_u32(b.out, a->len);
		return;
	}
	a->niov = NFS3_MAX_PIECES;
	/* Bytes beyond wtmax are neither written nor looked at. */
	a->len = xdr_get_iov(b.in, NFS3_DATA_MAX, a->iov, &a->niov);
}

XDR_BOTH void create_args(struct xdr_both b, struct nfs3_create_args *a)
{
	dirop_args(b, &a->where);
	both_count(b, a->how.how, EXCLUSIVE);
	if (a->how.how != VFS_CREATE_EXCLUSIVE) {
		both_sattr(b, &a->how.attr);
		return;
	}
	if (b.in)
		a->how.attr.set = 0;
	both_u64(b, a->how.verf);
}

XDR_BOTH void mkdir_args(struct xdr_both b, struct nfs3_make_args *a)
{
	dirop_args(b, &a->where);
	if (b.in)
		a->type = VFS_DIR;
	both_sattr(b, &a->what.attr);
}

XDR_BOTH void symlink_args(struct xdr_both b, struct nfs3_make_args *a)
{
	struct xdr_view path;

	dirop_args(b, &a->where);
	both_sattr(b, &a->what.attr);
	if (!b.in) {
		xdr_put_opaque(b.out, a->what.target, a->what.target_len);
		return;
	}
	a->type = VFS_LNK;
	path = xdr_get_opaque(b.in, NFS3_STRING_MAX);
	a->what.target = (const char *)path.data;
	a->what.target_len = path.len;
}

/* mknoddata3: the other types are void, and the answer is BADTYPE; 0 stands for
 * all of them. */
XDR_BOTH void mknod_args(struct xdr_both b, struct nfs3_make_args *a)
{
	bool device, special;

	dirop_args(b, &a->where);
	both_u32(b, a->type);
	device = a->type == VFS_BLK || a->type == VFS_CHR;
	special = device || a->type == VFS_SOCK || a->type == VFS_FIFO;
	if (b.in) {
		a->type = special ? a->type : 0;
		a->what.attr.set = 0;
		a->what.rdev_major = 0;
		a->what.rdev_minor = 0;
	}
	if (special)
		both_sattr(b, &a->what.attr);
	if (device) {
		both_u32(b, a->what.rdev_major);
		both_u32(b, a->what.rdev_minor);
	}
}

XDR_BOTH void rename_args(struct xdr_both b, struct nfs3_rename_args *a)
{
	dirop_args(b, &a->from);
	dirop_args(b, &a->to);
}

XDR_BOTH void link_args(struct xdr_both b, struct nfs3_link_args *a)
{
	both_view(b, a->fh, NFS3_FHSIZE);
	dirop_args(b, &a->link);
}

XDR_BOTH void list_args(struct xdr_both b, struct nfs3_readdir_args *a,
			bool plus)
{
	both_view(b, a->fh, NFS3_FHSIZE);
	both_u64(b, a->cookie);
	both_u64(b, a->verf);
	if (plus)
		both_u32(b, a->dircount);
	else if (b.in)
		a->dircount = UINT32_MAX;
	both_u32(b, a->maxcount);
}

XDR_BOTH void readdir_args(struct xdr_both b, struct nfs3_readdir_args *a)
{
	list_args(b, a, false);
}

XDR_BOTH void readdirplus_args(struct xdr_both b, struct nfs3_readdir_args *a)
{
	list_args(b, a, true);
}

XDR_BOTH void commit_args(struct xdr_both b, struct nfs3_commit_args *a)
{
	both_view(b, a->fh, NFS3_FHSIZE);
	both_u64(b, a->offset);
	both_u32(b, a->count);
}

#define GET(name) \
	bool nfs3_get_##name(struct xdr_in *x, void *args) \
	{ \
		name##_args((struct xdr_both){ .in = x }, args); \
		return xdr_ok(x); \
	}
GET(fh)
GET(dirop)
GET(setattr)
GET(access)
GET(read)
GET(write)
GET(create)
GET(mkdir)
GET(symlink)
GET(mknod)
GET(rename)
GET(link)
GET(readdir)
GET(readdirplus)
GET(commit)

bool nfs3_get_void(struct xdr_in *x, void *args)
{
	return xdr_ok(x);
}

#define PUT(proc, name) \
	case NFSPROC3_##proc: \
		name##_args(b, xdr_output(args)); \
		break

void nfs3_put_args(struct xdr_out *x, enum nfs3_procnum proc, const void *args)
{
	const struct xdr_both b = { .out = x };

	switch (proc) {
	PUT(SETATTR, setattr);
	PUT(LOOKUP, dirop);
	PUT(ACCESS, access);
	PUT(READ, read);
	PUT(WRITE, write);
	PUT(CREATE, create);
	PUT(MKDIR, mkdir);
	PUT(SYMLINK, symlink);
	PUT(MKNOD, mknod);
	PUT(REMOVE, dirop);
	PUT(RMDIR, dirop);
	PUT(RENAME, rename);
	PUT(LINK, link);
	PUT(READDIR, readdir);
	PUT(READDIRPLUS, readdirplus);
	PUT(COMMIT, commit);
	case NFSPROC3_NULL:
		break;
	default:	/* GETATTR, READLINK, FSSTAT, FSINFO, PATHCONF */
		fh_args(b, xdr_output(args));
	}
}
