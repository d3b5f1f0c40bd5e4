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

/* set_atime and set_mtime. */
static uint32_t get_set_time(struct xdr_in *x, struct timespec *t,
			     uint32_t client, uint32_t server)
{
	switch (xdr_get_count(x, SET_TO_CLIENT_TIME)) {
	case SET_TO_CLIENT_TIME:
		nfs3_get_time(x, t);
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

static void get_where(struct xdr_in *x, struct nfs3_dirop_args *where)
{
	where->fh = xdr_get_opaque(x, NFS3_FHSIZE);
	where->name = xdr_get_opaque(x, NFS3_STRING_MAX);
}

bool nfs3_get_void(struct xdr_in *x, void *args)
{
	return xdr_ok(x);
}

bool nfs3_get_fh(struct xdr_in *x, void *args)
{
	struct nfs3_fh_args *a = args;

	a->fh = xdr_get_opaque(x, NFS3_FHSIZE);
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

	a->fh = xdr_get_opaque(x, NFS3_FHSIZE);
	get_sattr(x, &a->attr);
	a->attr.guarded = xdr_get_bool(x);
	if (a->attr.guarded)
		nfs3_get_time(x, &a->attr.guard);
	return xdr_ok(x);
}

bool nfs3_get_access(struct xdr_in *x, void *args)
{
	struct nfs3_access_args *a = args;

	a->fh = xdr_get_opaque(x, NFS3_FHSIZE);
	a->access = xdr_get_u32(x);
	return xdr_ok(x);
}

bool nfs3_get_read(struct xdr_in *x, void *args)
{
	struct nfs3_read_args *a = args;

	a->fh = xdr_get_opaque(x, NFS3_FHSIZE);
	a->offset = xdr_get_u64(x);
	a->count = xdr_get_u32(x);
	return xdr_ok(x);
}

bool nfs3_get_write(struct xdr_in *x, void *args)
{
	struct nfs3_write_args *a = args;

	a->fh = xdr_get_opaque(x, NFS3_FHSIZE);
	a->offset = xdr_get_u64(x);
	a->count = xdr_get_u32(x);
	a->stable = xdr_get_count(x, VFS_FILE_SYNC);
	a->niov = NFS3_MAX_PIECES;
	/* Bytes beyond wtmax are neither written nor looked at. */
	a->len = xdr_get_iov(x, NFS3_DATA_MAX, a->iov, &a->niov);
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

	a->fh = xdr_get_opaque(x, NFS3_FHSIZE);
	get_where(x, &a->link);
	return xdr_ok(x);
}

static void get_dir(struct xdr_in *x, struct nfs3_readdir_args *a)
{
	a->fh = xdr_get_opaque(x, NFS3_FHSIZE);
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

	a->fh = xdr_get_opaque(x, NFS3_FHSIZE);
	a->offset = xdr_get_u64(x);
	a->count = xdr_get_u32(x);
	return xdr_ok(x);
}

/* set_atime and set_mtime: @client and @server are the bits that ask for it. */
static void put_set_time(struct xdr_out *x, const struct timespec *t,
			 bool client, bool server)
{
	if (client) {
		xdr_put_u32(x, SET_TO_CLIENT_TIME);
		nfs3_put_time(x, t);
	} else {
		xdr_put_u32(x, server ? SET_TO_SERVER_TIME : DONT_CHANGE);
	}
}

static void put_set(struct xdr_out *x, bool set, uint32_t value)
{
	xdr_put_bool(x, set);
	if (set)
		xdr_put_u32(x, value);
}

static void put_sattr(struct xdr_out *x, const struct vfs_setattr *set)
{
	put_set(x, set->set & VFS_SET_MODE, set->mode);
	put_set(x, set->set & VFS_SET_UID, set->uid);
	put_set(x, set->set & VFS_SET_GID, set->gid);
	xdr_put_bool(x, set->set & VFS_SET_SIZE);
	if (set->set & VFS_SET_SIZE)
		xdr_put_u64(x, set->size);
	put_set_time(x, &set->atime, set->set & VFS_SET_ATIME,
		     set->set & VFS_SET_ATIME_NOW);
	put_set_time(x, &set->mtime, set->set & VFS_SET_MTIME,
		     set->set & VFS_SET_MTIME_NOW);
}

static void put_view(struct xdr_out *x, struct xdr_view v)
{
	xdr_put_opaque(x, v.data, v.len);
}

static void put_where(struct xdr_out *x, const struct nfs3_dirop_args *where)
{
	put_view(x, where->fh);
	put_view(x, where->name);
}

static void put_offset_count(struct xdr_out *x, uint64_t offset, uint32_t count)
{
	xdr_put_u64(x, offset);
	xdr_put_u32(x, count);
}

static void put_create(struct xdr_out *x, const struct nfs3_create_args *a)
{
	static const uint32_t modes[] = {
		[VFS_CREATE_UNCHECKED] = UNCHECKED,
		[VFS_CREATE_GUARDED] = GUARDED,
		[VFS_CREATE_EXCLUSIVE] = EXCLUSIVE,
	};

	put_where(x, &a->where);
	xdr_put_u32(x, modes[a->how.how]);
	if (a->how.how == VFS_CREATE_EXCLUSIVE)
		xdr_put_u64(x, a->how.verf);
	else
		put_sattr(x, &a->how.attr);
}

static void put_mknod(struct xdr_out *x, const struct nfs3_make_args *a)
{
	bool device = a->type == VFS_BLK || a->type == VFS_CHR;

	put_where(x, &a->where);
	xdr_put_u32(x, a->type);
	if (device || a->type == VFS_SOCK || a->type == VFS_FIFO)
		put_sattr(x, &a->what.attr);
	if (device) {
		xdr_put_u32(x, a->what.rdev_major);
		xdr_put_u32(x, a->what.rdev_minor);
	}
}

static void put_setattr(struct xdr_out *x, const struct nfs3_setattr_args *a)
{
	put_view(x, a->fh);
	put_sattr(x, &a->attr);
	xdr_put_bool(x, a->attr.guarded);
	if (a->attr.guarded)
		nfs3_put_time(x, &a->attr.guard);
}

static void put_make(struct xdr_out *x, const struct nfs3_make_args *a,
		     bool link)
{
	put_where(x, &a->where);
	put_sattr(x, &a->what.attr);
	if (link)
		xdr_put_opaque(x, a->what.target, a->what.target_len);
}

static void put_readdir(struct xdr_out *x, const struct nfs3_readdir_args *a,
			bool plus)
{
	put_view(x, a->fh);
	xdr_put_u64(x, a->cookie);
	xdr_put_u64(x, a->verf);
	if (plus)
		xdr_put_u32(x, a->dircount);
	xdr_put_u32(x, a->maxcount);
}

/* Arguments that begin with the handle of a file. */
static void put_of_file(struct xdr_out *x, enum nfs3_procnum proc,
			const union nfs3_args *a)
{
	put_view(x, a->fh);
	switch (proc) {
	case NFSPROC3_ACCESS:
		xdr_put_u32(x, a->access.access);
		break;
	case NFSPROC3_READ:
		put_offset_count(x, a->read.offset, a->read.count);
		break;
	case NFSPROC3_WRITE:
		put_offset_count(x, a->write.offset, a->write.count);
		xdr_put_u32(x, a->write.stable);
		xdr_put_u32(x, a->write.len);
		break;
	case NFSPROC3_LINK:
		put_where(x, &a->link.link);
		break;
	case NFSPROC3_COMMIT:
		put_offset_count(x, a->commit.offset, a->commit.count);
		break;
	default:
		break;
	}
}

void nfs3_put_args(struct xdr_out *x, enum nfs3_procnum proc,
		   const void *args)
{
	const union nfs3_args *a = args;

	switch (proc) {
	case NFSPROC3_NULL:
		break;
	case NFSPROC3_LOOKUP:
	case NFSPROC3_REMOVE:
	case NFSPROC3_RMDIR:
		put_where(x, &a->dirop);
		break;
	case NFSPROC3_SETATTR:
		put_setattr(x, &a->setattr);
		break;
	case NFSPROC3_CREATE:
		put_create(x, &a->create);
		break;
	case NFSPROC3_MKDIR:
	case NFSPROC3_SYMLINK:
		put_make(x, &a->make, proc == NFSPROC3_SYMLINK);
		break;
	case NFSPROC3_MKNOD:
		put_mknod(x, &a->make);
		break;
	case NFSPROC3_RENAME:
		put_where(x, &a->rename.from);
		put_where(x, &a->rename.to);
		break;
	case NFSPROC3_READDIR:
	case NFSPROC3_READDIRPLUS:
		put_readdir(x, &a->readdir, proc == NFSPROC3_READDIRPLUS);
		break;
	default:
		put_of_file(x, proc, a);
	}
}
