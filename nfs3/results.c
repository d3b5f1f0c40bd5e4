/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results of NFS version 3 onto the wire: RFC 1813 sections 2.5, 3.3.  Pure.
 *
 * Where a reply has a body (READ, READLINK, READDIR, READDIRPLUS), the
 * encoder stops right before it: with the length word of the opaque, or
 * with the cookie verifier.
 */
#include "nfs3/proc.h"

/* RFC 1813 section 2.6, wcc_attr: a size and two times. */
#define WCC_ATTR_SIZE	24

static void put_time(struct xdr_out *x, const struct timespec *t)
{
	xdr_put_u32(x, (uint32_t)t->tv_sec);
	xdr_put_u32(x, (uint32_t)t->tv_nsec);
}

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
	put_time(x, &a->atime);
	put_time(x, &a->mtime);
	put_time(x, &a->ctime);
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
	put_time(x, &w->before_mtime);
	put_time(x, &w->before_ctime);
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

static void put_handle(struct xdr_out *x, const struct export_fh *fh)
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
	xdr_put_u32(x, r->rtmax);	/* rtpref */
	xdr_put_u32(x, 4096);		/* rtmult */
	xdr_put_u32(x, r->wtmax);
	xdr_put_u32(x, r->wtmax);	/* wtpref */
	xdr_put_u32(x, 4096);		/* wtmult */
	xdr_put_u32(x, r->dtpref);
	xdr_put_u64(x, r->limits.max_file_size);
	put_time(x, &r->limits.time_delta);
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
