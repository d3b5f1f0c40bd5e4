/* SPDX-License-Identifier: BSD-2-Clause */
/* Results of NFS version 3: RFC 1813 sections 2.5, 3.3.  Pure. */
#include "wire/nfs3.h"

/* RFC 1813 section 2.6, wcc_attr: a size and two times. */
#define WCC_ATTR_SIZE	24

/* Reserves room once, instead of a check for every word. */
void nfs3_put_fattr(struct xdr_out *out, const struct vfs_attr *a,
		    uint64_t fsid)
{
	uint8_t *room = xdr_reserve(out, NFS3_FATTR_SIZE);
	struct xdr_out in, *x = &in;

	if (unlikely(!room))
		return;
	xdr_out_init(x, room, NFS3_FATTR_SIZE);
	xdr_put_u32(x, a->type);
	xdr_put_u32(x, a->mode);
	xdr_put_u32(x, a->nlink);
	xdr_put_u32(x, a->uid);
	xdr_put_u32(x, a->gid);
	xdr_put_u64(x, a->size);
	xdr_put_u64(x, a->used);
	xdr_put_u32(x, a->rdev_major);
	xdr_put_u32(x, a->rdev_minor);
	xdr_put_u64(x, fsid);
	xdr_put_u64(x, a->fileid);
	nfs3_put_time(x, &a->atime);
	nfs3_put_time(x, &a->mtime);
	nfs3_put_time(x, &a->ctime);
}

void nfs3_put_post_attr(struct xdr_out *x, const struct nfs3_attr *a)
{
	xdr_put_bool(x, a->has);
	if (a->has)
		nfs3_put_fattr(x, &a->attr, a->fsid);
}

/* Reserves room once, like nfs3_put_fattr(). */
static void put_wcc_attr(struct xdr_out *out, const struct vfs_wcc *w)
{
	uint8_t *room = xdr_reserve(out, WCC_ATTR_SIZE);
	struct xdr_out in, *x = &in;

	if (unlikely(!room))
		return;
	xdr_out_init(x, room, WCC_ATTR_SIZE);
	xdr_put_u64(x, w->before_size);
	nfs3_put_time(x, &w->before_mtime);
	nfs3_put_time(x, &w->before_ctime);
}

static void put_wcc(struct xdr_out *x, const struct nfs3_wcc *w)
{
	xdr_put_bool(x, w->wcc.has_before);
	if (w->wcc.has_before)
		put_wcc_attr(x, &w->wcc);
	xdr_put_bool(x, w->wcc.has_after);
	if (w->wcc.has_after)
		nfs3_put_fattr(x, &w->wcc.after, w->fsid);
}

static void put_handle(struct xdr_out *x, const struct nfs3_fh *fh)
{
	xdr_put_opaque(x, fh->data, fh->len);
}

void nfs3_put_getattr(struct xdr_out *x, const void *res)
{
	const struct nfs3_attr_res *r = res;

	xdr_put_u32(x, r->status);
	if (r->status == NFS3_OK)
		nfs3_put_fattr(x, &r->attr.attr, r->attr.fsid);
}

void nfs3_put_wcc(struct xdr_out *x, const void *res)
{
	const struct nfs3_wcc_res *r = res;

	xdr_put_u32(x, r->status);
	put_wcc(x, &r->wcc);
}

void nfs3_put_lookup(struct xdr_out *x, const void *res)
{
	const struct nfs3_lookup_res *r = res;

	xdr_put_u32(x, r->status);
	if (r->status == NFS3_OK) {
		put_handle(x, &r->fh);
		nfs3_put_post_attr(x, &r->attr);
	}
	nfs3_put_post_attr(x, &r->dir_attr);
}

void nfs3_put_access(struct xdr_out *x, const void *res)
{
	const struct nfs3_access_res *r = res;

	xdr_put_u32(x, r->status);
	nfs3_put_post_attr(x, &r->attr);
	if (r->status == NFS3_OK)
		xdr_put_u32(x, r->access);
}

void nfs3_put_readlink(struct xdr_out *x, const void *res)
{
	const struct nfs3_readlink_res *r = res;

	xdr_put_u32(x, r->status);
	nfs3_put_post_attr(x, &r->attr);
	if (r->status == NFS3_OK)
		xdr_put_u32(x, r->len);
}

void nfs3_put_read(struct xdr_out *x, const void *res)
{
	const struct nfs3_read_res *r = res;

	xdr_put_u32(x, r->status);
	nfs3_put_post_attr(x, &r->attr);
	if (r->status == NFS3_OK) {
		xdr_put_u32(x, r->count);
		xdr_put_bool(x, r->eof);
		xdr_put_u32(x, r->count);	/* of data<> */
	}
}

void nfs3_put_write(struct xdr_out *x, const void *res)
{
	const struct nfs3_write_res *r = res;

	xdr_put_u32(x, r->status);
	put_wcc(x, &r->wcc);
	if (r->status == NFS3_OK) {
		xdr_put_u32(x, r->count);
		xdr_put_u32(x, r->committed);
		xdr_put_u64(x, r->verf);
	}
}

void nfs3_put_create(struct xdr_out *x, const void *res)
{
	const struct nfs3_create_res *r = res;

	xdr_put_u32(x, r->status);
	if (r->status == NFS3_OK) {
		xdr_put_bool(x, r->fh.len > 0);
		if (r->fh.len > 0)
			put_handle(x, &r->fh);
		nfs3_put_post_attr(x, &r->attr);
	}
	put_wcc(x, &r->dir_wcc);
}

void nfs3_put_rename(struct xdr_out *x, const void *res)
{
	const struct nfs3_rename_res *r = res;

	xdr_put_u32(x, r->status);
	put_wcc(x, &r->from_wcc);
	put_wcc(x, &r->to_wcc);
}

void nfs3_put_link(struct xdr_out *x, const void *res)
{
	const struct nfs3_link_res *r = res;

	xdr_put_u32(x, r->status);
	nfs3_put_post_attr(x, &r->attr);
	put_wcc(x, &r->dir_wcc);
}

void nfs3_put_readdir(struct xdr_out *x, const void *res)
{
	const struct nfs3_readdir_res *r = res;

	xdr_put_u32(x, r->status);
	nfs3_put_post_attr(x, &r->dir_attr);
	if (r->status == NFS3_OK)
		xdr_put_u64(x, r->verf);
}

void nfs3_put_fsstat(struct xdr_out *x, const void *res)
{
	const struct nfs3_fsstat_res *r = res;

	xdr_put_u32(x, r->status);
	nfs3_put_post_attr(x, &r->attr);
	if (r->status != NFS3_OK)
		return;
	xdr_put_u64(x, r->st.tbytes);
	xdr_put_u64(x, r->st.fbytes);
	xdr_put_u64(x, r->st.abytes);
	xdr_put_u64(x, r->st.tfiles);
	xdr_put_u64(x, r->st.ffiles);
	xdr_put_u64(x, r->st.afiles);
	xdr_put_u32(x, 0);		/* invarsec: it may change any time */
}

static uint32_t properties(const struct vfs_limits *l)
{
	return (l->hard_links ? FSF3_LINK : 0) |
	       (l->symlinks ? FSF3_SYMLINK : 0) |
	       (l->homogeneous ? FSF3_HOMOGENEOUS : 0) |
	       (l->can_set_time ? FSF3_CANSETTIME : 0);
}

void nfs3_put_fsinfo(struct xdr_out *x, const void *res)
{
	const struct nfs3_fsinfo_res *r = res;

	xdr_put_u32(x, r->status);
	nfs3_put_post_attr(x, &r->attr);
	if (r->status != NFS3_OK)
		return;
	xdr_put_u32(x, r->rtmax);
	xdr_put_u32(x, r->rtpref);
	xdr_put_u32(x, 4096);		/* rtmult */
	xdr_put_u32(x, r->wtmax);
	xdr_put_u32(x, r->wtpref);
	xdr_put_u32(x, 4096);		/* wtmult */
	xdr_put_u32(x, r->dtpref);
	xdr_put_u64(x, r->limits.max_file_size);
	nfs3_put_time(x, &r->limits.time_delta);
	xdr_put_u32(x, properties(&r->limits));
}

void nfs3_put_pathconf(struct xdr_out *x, const void *res)
{
	const struct nfs3_pathconf_res *r = res;

	xdr_put_u32(x, r->status);
	nfs3_put_post_attr(x, &r->attr);
	if (r->status != NFS3_OK)
		return;
	xdr_put_u32(x, r->limits.link_max);
	xdr_put_u32(x, r->limits.name_max);
	xdr_put_bool(x, r->limits.no_trunc);
	xdr_put_bool(x, r->limits.chown_restricted);
	xdr_put_bool(x, r->limits.case_insensitive);
	xdr_put_bool(x, r->limits.case_preserving);
}

void nfs3_put_commit(struct xdr_out *x, const void *res)
{
	const struct nfs3_commit_res *r = res;

	xdr_put_u32(x, r->status);
	put_wcc(x, &r->wcc);
	if (r->status == NFS3_OK)
		xdr_put_u64(x, r->verf);
}

/* ---- the other way */

static void get_fattr(struct xdr_in *x, struct nfs3_attr *out)
{
	struct vfs_attr *a = &out->attr;

	a->type = xdr_get_u32(x);
	a->mode = xdr_get_u32(x);
	a->nlink = xdr_get_u32(x);
	a->uid = xdr_get_u32(x);
	a->gid = xdr_get_u32(x);
	a->size = xdr_get_u64(x);
	a->used = xdr_get_u64(x);
	a->rdev_major = xdr_get_u32(x);
	a->rdev_minor = xdr_get_u32(x);
	out->fsid = xdr_get_u64(x);
	a->fileid = xdr_get_u64(x);
	nfs3_get_time(x, &a->atime);
	nfs3_get_time(x, &a->mtime);
	nfs3_get_time(x, &a->ctime);
	out->has = xdr_ok(x);
}

static void get_post_attr(struct xdr_in *x, struct nfs3_attr *a)
{
	*a = (struct nfs3_attr){ .has = false };
	if (xdr_get_bool(x))
		get_fattr(x, a);
}

static void get_wcc(struct xdr_in *x, struct nfs3_wcc *w)
{
	struct nfs3_attr after;

	w->wcc.has_before = xdr_get_bool(x);
	if (w->wcc.has_before) {
		w->wcc.before_size = xdr_get_u64(x);
		nfs3_get_time(x, &w->wcc.before_mtime);
		nfs3_get_time(x, &w->wcc.before_ctime);
	}
	get_post_attr(x, &after);
	w->wcc.has_after = after.has;
	w->wcc.after = after.attr;
	w->fsid = after.fsid;
}

static void get_handle(struct xdr_in *x, struct nfs3_fh *fh)
{
	struct xdr_view v = xdr_get_opaque(x, NFS3_FHSIZE);

	fh->len = v.len;
	if (v.len > 0)
		memcpy(fh->data, v.data, v.len);
}

/* post_op_fh3. */
static void get_post_handle(struct xdr_in *x, struct nfs3_fh *fh)
{
	fh->len = 0;
	if (xdr_get_bool(x))
		get_handle(x, fh);
}

static void get_lookup(struct xdr_in *x, struct nfs3_lookup_res *r)
{
	if (r->status == NFS3_OK) {
		get_handle(x, &r->fh);
		get_post_attr(x, &r->attr);
	}
	get_post_attr(x, &r->dir_attr);
}

static void get_write(struct xdr_in *x, struct nfs3_write_res *r)
{
	get_wcc(x, &r->wcc);
	if (r->status != NFS3_OK)
		return;
	r->count = xdr_get_u32(x);
	r->committed = xdr_get_count(x, VFS_FILE_SYNC);
	r->verf = xdr_get_u64(x);
}

static void get_create(struct xdr_in *x, struct nfs3_create_res *r)
{
	if (r->status == NFS3_OK) {
		get_post_handle(x, &r->fh);
		get_post_attr(x, &r->attr);
	}
	get_wcc(x, &r->dir_wcc);
}

static void get_fsstat(struct xdr_in *x, struct vfs_statfs *st)
{
	st->tbytes = xdr_get_u64(x);
	st->fbytes = xdr_get_u64(x);
	st->abytes = xdr_get_u64(x);
	st->tfiles = xdr_get_u64(x);
	st->ffiles = xdr_get_u64(x);
	st->afiles = xdr_get_u64(x);
	xdr_get_u32(x);			/* invarsec */
}

static void get_fsinfo(struct xdr_in *x, struct nfs3_fsinfo_res *r)
{
	uint32_t bits;

	r->rtmax = xdr_get_u32(x);
	r->rtpref = xdr_get_u32(x);
	xdr_get_u32(x);			/* rtmult */
	r->wtmax = xdr_get_u32(x);
	r->wtpref = xdr_get_u32(x);
	xdr_get_u32(x);			/* wtmult */
	r->dtpref = xdr_get_u32(x);
	r->limits.max_file_size = xdr_get_u64(x);
	nfs3_get_time(x, &r->limits.time_delta);
	bits = xdr_get_u32(x);
	r->limits.hard_links = bits & FSF3_LINK;
	r->limits.symlinks = bits & FSF3_SYMLINK;
	r->limits.homogeneous = bits & FSF3_HOMOGENEOUS;
	r->limits.can_set_time = bits & FSF3_CANSETTIME;
}

static void get_pathconf(struct xdr_in *x, struct vfs_limits *l)
{
	l->link_max = xdr_get_u32(x);
	l->name_max = xdr_get_u32(x);
	l->no_trunc = xdr_get_bool(x);
	l->chown_restricted = xdr_get_bool(x);
	l->case_insensitive = xdr_get_bool(x);
	l->case_preserving = xdr_get_bool(x);
}

static void get_read(struct xdr_in *x, struct nfs3_read_res *r)
{
	r->count = xdr_get_u32(x);
	r->eof = xdr_get_bool(x);
	if (xdr_get_u32(x) != r->count)
		xdr_set_bad(x);
}

/* Results that begin with the attributes of a file: what follows them. */
static void get_of_file(struct xdr_in *x, enum nfs3_procnum proc,
			union nfs3_res *r)
{
	switch (proc) {
	case NFSPROC3_ACCESS:
		r->access.access = xdr_get_u32(x);
		break;
	case NFSPROC3_READLINK:
		r->readlink.len = xdr_get_u32(x);
		break;
	case NFSPROC3_READ:
		get_read(x, &r->read);
		break;
	case NFSPROC3_FSSTAT:
		get_fsstat(x, &r->fsstat.st);
		break;
	case NFSPROC3_FSINFO:
		get_fsinfo(x, &r->fsinfo);
		break;
	case NFSPROC3_PATHCONF:
		get_pathconf(x, &r->pathconf.limits);
		break;
	default:			/* READDIR, READDIRPLUS */
		r->readdir.verf = xdr_get_u64(x);
	}
}

bool nfs3_get_res(struct xdr_in *x, enum nfs3_procnum proc, void *res)
{
	union nfs3_res *r = res;

	r->status = xdr_get_u32(x);
	switch (proc) {
	case NFSPROC3_GETATTR:
		if (r->status == NFS3_OK)
			get_fattr(x, &r->getattr.attr);
		break;
	case NFSPROC3_LOOKUP:
		get_lookup(x, &r->lookup);
		break;
	case NFSPROC3_SETATTR:
	case NFSPROC3_REMOVE:
	case NFSPROC3_RMDIR:
		get_wcc(x, &r->wcc.wcc);
		break;
	case NFSPROC3_WRITE:
		get_write(x, &r->write);
		break;
	case NFSPROC3_CREATE:
	case NFSPROC3_MKDIR:
	case NFSPROC3_SYMLINK:
	case NFSPROC3_MKNOD:
		get_create(x, &r->create);
		break;
	case NFSPROC3_RENAME:
		get_wcc(x, &r->rename.from_wcc);
		get_wcc(x, &r->rename.to_wcc);
		break;
	case NFSPROC3_LINK:
		get_post_attr(x, &r->link.attr);
		get_wcc(x, &r->link.dir_wcc);
		break;
	case NFSPROC3_COMMIT:
		get_wcc(x, &r->commit.wcc);
		if (r->status == NFS3_OK)
			r->commit.verf = xdr_get_u64(x);
		break;
	default:
		/* They all have them at the same place. */
		get_post_attr(x, &r->getattr.attr);
		if (r->status == NFS3_OK)
			get_of_file(x, proc, r);
	}
	return xdr_ok(x);
}

bool nfs3_get_entry(struct xdr_in *x, bool plus, struct nfs3_entry *e)
{
	if (!xdr_get_bool(x))
		return false;
	e->fileid = xdr_get_u64(x);
	/* Some servers have longer names than the system here. */
	e->name = xdr_get_opaque(x, UINT32_MAX);
	e->cookie = xdr_get_u64(x);
	if (plus) {
		get_post_attr(x, &e->attr);
		get_post_handle(x, &e->fh);
	}
	return xdr_ok(x);
}
