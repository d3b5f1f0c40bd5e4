/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READDIR and READDIRPLUS.
 *
 * The backend's entries are encoded as they come, straight into the reply's
 * body; each is taken whole or not at all.  The body ends where the last
 * entry that fitted does; the end of the list and eof are its tail.
 *
 * count and maxcount bound the whole of READDIR3resok or READDIRPLUS3resok
 * in XDR; dircount only what READDIR would have sent of the entries
 * (sections 3.3.16, 3.3.17).
 */
#include "nfs3/proc.h"

#include <errno.h>
#include <inttypes.h>

#include "lib/log.h"
#include "lib/stats.h"

/* All but the entries: dir_attributes, cookieverf, end of list, eof. */
#define FRAME_SIZE	(NFS3_POST_ATTR_SIZE + NFS3_COOKIEVERFSIZE + 4 + 4)

/* In the list's memory, without the additions of READDIRPLUS. */
static size_t entry_size(const struct vfs_dirent *d)
{
	return 4 + 8 + 4 + (size_t)d->name.len + xdr_pad(d->name.len) + 8;
}

static void put_plus(struct nfs3_list *l, const struct vfs_dirent *d)
{
	struct nfs3_op *op = container_of(l, struct nfs3_op, list);
	struct nfs3_fh fh;

	xdr_put_bool(&l->out, d->has_attr);
	if (d->has_attr)
		nfs3_put_fattr(&l->out, &d->attr, op->opts.fsid);
	xdr_put_bool(&l->out, d->has_handle);
	if (d->has_handle) {
		export_fh_make(op->nfs->exports, op->exp, &op->opts, &d->handle,
			       &fh);
		xdr_put_opaque(&l->out, fh.data, fh.len);
	}
}

STAT(nfs3_long_names, "names left out of listings because they exceed the 255 "
     "bytes that clients accept");

/* A client that gets such a name takes the whole reply for a broken one. */
static __attribute__((noinline)) bool leave_out(const struct nfs3_list *l,
						const struct vfs_dirent *d)
{
	const struct nfs3_op *op = container_of(l, const struct nfs3_op, list);

	stat_inc(nfs3_long_names);
	log_limited(LOG_LEVEL_WARN, "%s: names longer than %d bytes are left "
		    "out of listings, since clients can't list them: inode "
		    "%" PRIu64, op->exp->path, VFS_NAME_MAX,
		    d->fileid);
	return true;
}

static bool emit(void *arg, const struct vfs_dirent *d)
{
	struct nfs3_list *l = arg;
	struct xdr_out at = l->out;
	size_t size = entry_size(d);

	if (unlikely(d->name.len > VFS_NAME_MAX))
		return leave_out(l, d);
	/* dircount of less than an entry must not end the listing. */
	if (size > l->dirleft && l->entries > 0) {
		l->full = true;
		return false;
	}
	xdr_put_bool(&l->out, true);
	xdr_put_u64(&l->out, d->fileid);
	xdr_put_opaque(&l->out, d->name.s, d->name.len);
	xdr_put_u64(&l->out, d->cookie);
	if (l->plus)
		put_plus(l, d);
	if (l->out.bad) {
		l->out = at;
		l->full = true;
		return false;
	}
	l->dirleft -= MIN(size, (size_t)l->dirleft);
	l->entries++;
	return true;
}

static int fill(struct nfs3_op *op, const struct nfs3_readdir_args *a,
		struct nfs3_readdir_res *r)
{
	struct nfs3_list *l = &op->list;
	int err;

	if (a->cookie > INT64_MAX)
		return -EBADE;
	op->vfs.attr = &r->dir_attr.attr;
	op->vfs.readdir.cookie = a->cookie;
	op->vfs.readdir.plus = l->plus;
	op->vfs.readdir.emit = emit;
	op->vfs.readdir.arg = l;
	err = nfs3_do(op, op->ops->readdir);
	if (err < 0)
		return err;
	r->verf = op->vfs.readdir.verf;
	r->dir_attr.has = true;
	if (l->full)
		op->vfs.eof = false;
	return l->full && l->entries == 0 ? -EMSGSIZE : 0;
}

/* The entries get this many bytes of the body at most. */
static uint32_t room_of(const struct nfs3_readdir_args *a)
{
	return MIN(a->maxcount, (uint32_t)POOL_PAYLOAD_MAX) - FRAME_SIZE;
}

NFS3_STEP(readdir_room)
{
	const struct nfs3_readdir_args *a = rpc_args(call);

	if (a->maxcount < FRAME_SIZE)
		return -EMSGSIZE;
	return rpc_body_get(call, MAX(room_of(a), 4u));
}

static int list_entries(struct rpc_call *call, bool plus)
{
	const struct nfs3_readdir_args *a = rpc_args(call);
	struct nfs3_op *op = nfs3_op(call);
	struct nfs3_list *l = &op->list;
	uint32_t tail[2] = { 0, 0 };
	int err;

	if (!nfs3_has_ended(op)) {
		*l = (struct nfs3_list){ .dirleft = a->dircount, .plus = plus };
		xdr_out_init(&l->out, rpc_body(call)->data, room_of(a));
		op->vfs.readdir.verf = a->cookie ? a->verf : 0;
	}
	err = fill(op, a, rpc_res(call));
	if (err < 0)
		return err;
	tail[1] = op->vfs.eof;
	rpc_body_set(call, (uint32_t)xdr_out_len(&l->out), tail,
		     ARRAY_SIZE(tail));
	return 0;
}

NFS3_STEP(readdir)
{
	return list_entries(call, false);
}

NFS3_STEP(readdirplus)
{
	if (nfs3_op(call)->opts.no_readdirplus)
		return -EOPNOTSUPP;
	return list_entries(call, true);
}
