/* SPDX-License-Identifier: BSD-2-Clause */
/* Results of NFS version 3: RFC 1813 sections 2.5, 3.3.  Pure. */
#include "wire/nfs3.h"

/* RFC 1813 section 2.6, wcc_attr: a size and two times. */
#define WCC_ATTR_SIZE	24

XDR_BOTH void fattr3(struct xdr_both b, struct vfs_attr *a, uint64_t *fsid)
{
	struct xdr_out room;

	if (!both_room(&b, &room, NFS3_FATTR_SIZE))
		return;
	both_u32(b, a->type);
	both_u32(b, a->mode);
	both_u32(b, a->nlink);
	both_u32(b, a->uid);
	both_u32(b, a->gid);
	both_u64(b, a->size);
	both_u64(b, a->used);
	both_u32(b, a->rdev_major);
	both_u32(b, a->rdev_minor);
	both_u64(b, *fsid);
	both_u64(b, a->fileid);
	nfs3_time(b, &a->atime);
	nfs3_time(b, &a->mtime);
	nfs3_time(b, &a->ctime);
}

void nfs3_put_fattr(struct xdr_out *x, const struct vfs_attr *a, uint64_t fsid)
{
	fattr3((struct xdr_both){ .out = x }, xdr_output(a), &fsid);
}

static void get_fattr(struct xdr_in *x, struct vfs_attr *a, uint64_t *fsid)
{
	fattr3((struct xdr_both){ .in = x }, a, fsid);
}

XDR_BOTH void both_fattr(struct xdr_both b, struct vfs_attr *a, uint64_t *fsid)
{
	if (b.in)
		get_fattr(b.in, a, fsid);
	else
		nfs3_put_fattr(b.out, a, *fsid);
}

XDR_BOTH void post_op_attr(struct xdr_both b, struct nfs3_attr *a)
{
	if (b.in)
		*a = (struct nfs3_attr){ .has = false };
	both_bool(b, a->has);
	if (a->has)
		both_fattr(b, &a->attr, &a->fsid);
}

void nfs3_put_post_attr(struct xdr_out *x, const struct nfs3_attr *a)
{
	post_op_attr((struct xdr_both){ .out = x }, xdr_output(a));
}

XDR_BOTH void wcc_attr(struct xdr_both b, struct vfs_wcc *w)
{
	struct xdr_out room;

	if (!both_room(&b, &room, WCC_ATTR_SIZE))
		return;
	both_u64(b, w->before_size);
	nfs3_time(b, &w->before_mtime);
	nfs3_time(b, &w->before_ctime);
}

XDR_BOTH void wcc_data(struct xdr_both b, struct nfs3_wcc *w)
{
	if (b.in)
		*w = (struct nfs3_wcc){ .fsid = 0 };
	both_bool(b, w->wcc.has_before);
	if (w->wcc.has_before)
		wcc_attr(b, &w->wcc);
	both_bool(b, w->wcc.has_after);
	if (w->wcc.has_after)
		both_fattr(b, &w->wcc.after, &w->fsid);
}

static void put_wcc(struct xdr_out *x, struct nfs3_wcc *w)
{
	wcc_data((struct xdr_both){ .out = x }, w);
}

static void get_wcc(struct xdr_in *x, struct nfs3_wcc *w)
{
	wcc_data((struct xdr_both){ .in = x }, w);
}

XDR_BOTH void both_wcc(struct xdr_both b, struct nfs3_wcc *w)
{
	if (b.in)
		get_wcc(b.in, w);
	else
		put_wcc(b.out, w);
}

XDR_BOTH void both_handle(struct xdr_both b, struct nfs3_fh *fh)
{
	struct xdr_view v = { fh->data, fh->len };

	both_view(b, v, NFS3_FHSIZE);
	if (!b.in)
		return;
	fh->len = v.len;
	if (v.len > 0)
		memcpy(fh->data, v.data, v.len);
}

XDR_BOTH void post_op_fh3(struct xdr_both b, struct nfs3_fh *fh)
{
	bool has = !b.in && fh->len > 0;

	both_bool(b, has);
	if (has)
		both_handle(b, fh);
	else if (b.in)
		fh->len = 0;
}

/* The beginning of most results.  True if more follows, for NFS3_OK alone. */
XDR_BOTH bool of_file(struct xdr_both b, enum nfsstat3 *status,
		      struct nfs3_attr *attr)
{
	both_u32(b, *status);
	post_op_attr(b, attr);
	return *status == NFS3_OK;
}

XDR_BOTH void getattr_res(struct xdr_both b, struct nfs3_attr_res *r)
{
	both_u32(b, r->status);
	if (r->status != NFS3_OK)
		return;
	both_fattr(b, &r->attr.attr, &r->attr.fsid);
	if (b.in)
		r->attr.has = true;
}

XDR_BOTH void wcc_res(struct xdr_both b, struct nfs3_wcc_res *r)
{
	both_u32(b, r->status);
	both_wcc(b, &r->wcc);
}

XDR_BOTH void lookup_res(struct xdr_both b, struct nfs3_lookup_res *r)
{
	both_u32(b, r->status);
	if (r->status == NFS3_OK) {
		both_handle(b, &r->fh);
		post_op_attr(b, &r->attr);
	}
	post_op_attr(b, &r->dir_attr);
}

XDR_BOTH void access_res(struct xdr_both b, struct nfs3_access_res *r)
{
	if (of_file(b, &r->status, &r->attr))
		both_u32(b, r->access);
}

XDR_BOTH void readlink_res(struct xdr_both b, struct nfs3_readlink_res *r)
{
	if (of_file(b, &r->status, &r->attr))
		both_u32(b, r->len);
}

XDR_BOTH void read_res(struct xdr_both b, struct nfs3_read_res *r)
{
	uint32_t len;

	if (!of_file(b, &r->status, &r->attr))
		return;
	both_u32(b, r->count);
	both_bool(b, r->eof);
	len = r->count;				/* of data<> */
	both_u32(b, len);
	if (b.in && len != r->count)
		xdr_set_bad(b.in);
}

XDR_BOTH void write_res(struct xdr_both b, struct nfs3_write_res *r)
{
	both_u32(b, r->status);
	both_wcc(b, &r->wcc);
	if (r->status != NFS3_OK)
		return;
	both_u32(b, r->count);
	both_count(b, r->committed, VFS_FILE_SYNC);
	both_u64(b, r->verf);
}

XDR_BOTH void create_res(struct xdr_both b, struct nfs3_create_res *r)
{
	both_u32(b, r->status);
	if (r->status == NFS3_OK) {
		post_op_fh3(b, &r->fh);
		post_op_attr(b, &r->attr);
	}
	both_wcc(b, &r->dir_wcc);
}

XDR_BOTH void rename_res(struct xdr_both b, struct nfs3_rename_res *r)
{
	both_u32(b, r->status);
	both_wcc(b, &r->from_wcc);
	both_wcc(b, &r->to_wcc);
}

XDR_BOTH void link_res(struct xdr_both b, struct nfs3_link_res *r)
{
	of_file(b, &r->status, &r->attr);
	both_wcc(b, &r->dir_wcc);
}

XDR_BOTH void readdir_res(struct xdr_both b, struct nfs3_readdir_res *r)
{
	if (of_file(b, &r->status, &r->dir_attr))
		both_u64(b, r->verf);
}

XDR_BOTH void fsstat_res(struct xdr_both b, struct nfs3_fsstat_res *r)
{
	uint32_t invarsec = 0;			/* it can change any time */

	if (!of_file(b, &r->status, &r->attr))
		return;
	both_u64(b, r->st.tbytes);
	both_u64(b, r->st.fbytes);
	both_u64(b, r->st.abytes);
	both_u64(b, r->st.tfiles);
	both_u64(b, r->st.ffiles);
	both_u64(b, r->st.afiles);
	both_u32(b, invarsec);
}

XDR_BOTH void properties(struct xdr_both b, struct vfs_limits *l)
{
	uint32_t bits = b.in ? 0 : (l->hard_links ? FSF3_LINK : 0) |
				   (l->symlinks ? FSF3_SYMLINK : 0) |
				   (l->homogeneous ? FSF3_HOMOGENEOUS : 0) |
				   (l->can_set_time ? FSF3_CANSETTIME : 0);

	both_u32(b, bits);
	if (!b.in)
		return;
	l->hard_links = bits & FSF3_LINK;
	l->symlinks = bits & FSF3_SYMLINK;
	l->homogeneous = bits & FSF3_HOMOGENEOUS;
	l->can_set_time = bits & FSF3_CANSETTIME;
}

XDR_BOTH void fsinfo_res(struct xdr_both b, struct nfs3_fsinfo_res *r)
{
	uint32_t rtmult = 4096, wtmult = 4096;

	if (!of_file(b, &r->status, &r->attr))
		return;
	both_u32(b, r->rtmax);
	both_u32(b, r->rtpref);
	both_u32(b, rtmult);
	both_u32(b, r->wtmax);
	both_u32(b, r->wtpref);
	both_u32(b, wtmult);
	both_u32(b, r->dtpref);
	both_u64(b, r->limits.max_file_size);
	nfs3_time(b, &r->limits.time_delta);
	properties(b, &r->limits);
}

XDR_BOTH void pathconf_res(struct xdr_both b, struct nfs3_pathconf_res *r)
{
	if (!of_file(b, &r->status, &r->attr))
		return;
	both_u32(b, r->limits.link_max);
	both_u32(b, r->limits.name_max);
	both_bool(b, r->limits.no_trunc);
	both_bool(b, r->limits.chown_restricted);
	both_bool(b, r->limits.case_insensitive);
	both_bool(b, r->limits.case_preserving);
}

XDR_BOTH void commit_res(struct xdr_both b, struct nfs3_commit_res *r)
{
	both_u32(b, r->status);
	both_wcc(b, &r->wcc);
	if (r->status == NFS3_OK)
		both_u64(b, r->verf);
}

#define PUT(name) \
	void nfs3_put_##name(struct xdr_out *x, const void *res) \
	{ \
		name##_res((struct xdr_both){ .out = x }, xdr_output(res)); \
	}
PUT(getattr)
PUT(wcc)
PUT(lookup)
PUT(access)
PUT(readlink)
PUT(read)
PUT(write)
PUT(create)
PUT(rename)
PUT(link)
PUT(readdir)
PUT(fsstat)
PUT(fsinfo)
PUT(pathconf)
PUT(commit)

#define GET(proc, name) \
	case NFSPROC3_##proc: \
		name##_res(b, &r->name); \
		break

bool nfs3_get_res(struct xdr_in *x, enum nfs3_procnum proc, void *res)
{
	const struct xdr_both b = { .in = x };
	union nfs3_res *r = res;

	switch (proc) {
	GET(GETATTR, getattr);
	GET(SETATTR, wcc);
	GET(LOOKUP, lookup);
	GET(ACCESS, access);
	GET(READLINK, readlink);
	GET(READ, read);
	GET(WRITE, write);
	GET(CREATE, create);
	GET(MKDIR, create);
	GET(SYMLINK, create);
	GET(MKNOD, create);
	GET(REMOVE, wcc);
	GET(RMDIR, wcc);
	GET(RENAME, rename);
	GET(LINK, link);
	GET(FSSTAT, fsstat);
	GET(FSINFO, fsinfo);
	GET(PATHCONF, pathconf);
	GET(COMMIT, commit);
	default:			/* READDIR, READDIRPLUS */
		readdir_res(b, &r->readdir);
	}
	return xdr_ok(x);
}

bool nfs3_get_entry(struct xdr_in *x, bool plus, struct nfs3_entry *e)
{
	const struct xdr_both b = { .in = x };

	if (!xdr_get_bool(x))
		return false;
	e->fileid = xdr_get_u64(x);
	/* Some servers have longer names than the system here. */
	e->name = xdr_get_opaque(x, UINT32_MAX);
	e->cookie = xdr_get_u64(x);
	if (plus) {
		post_op_attr(b, &e->attr);
		post_op_fh3(b, &e->fh);
	}
	return xdr_ok(x);
}
