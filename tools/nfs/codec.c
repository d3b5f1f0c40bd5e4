/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * codec - arguments and results of NFS version 3 (RFC 1813), as a client needs
 * them.  Pure, except the memory of directory entries.
 */
#include "tools/nfs/nfs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "lib/xdr.h"

enum { UNCHECKED = 0, GUARDED = 1, UNSTABLE = 0, FILE_SYNC = 2,
       TO_CLIENT_TIME = 2 };

static const uint32_t procedures[NFS_NOPS] = {
	[NFS_OP_NULL] = 0, [NFS_OP_GETATTR] = 1, [NFS_OP_LOOKUP] = 3,
	[NFS_OP_READLINK] = 5, [NFS_OP_READ] = 6, [NFS_OP_WRITE] = 7,
	[NFS_OP_CREATE] = 8, [NFS_OP_READDIRPLUS] = 17,
	[NFS_OP_FSINFO] = 19, [NFS_OP_COMMIT] = 21, [NFS_OP_EMPTY] = 2,
	[NFS_OP_SET] = 2, [NFS_OP_MKDIR] = 9, [NFS_OP_SYMLINK] = 10,
	[NFS_OP_REMOVE] = 12, [NFS_OP_RMDIR] = 13, [NFS_OP_FSSTAT] = 18,
	[NFS_OP_ACCESS] = 4, [NFS_OP_RENAME] = 14,
};

uint32_t nfsc_procedure(enum nfsc_kind kind)
{
	return procedures[kind];
}

static void put_fh(struct xdr_out *x, const struct nfsc_fh *fh)
{
	xdr_put_opaque(x, fh->data, fh->len);
}

/* A sattr3, of what the operation sets. */
static void put_sattr(struct xdr_out *x, const struct nfsc_op *op)
{
	bool mode = op->kind != NFS_OP_EMPTY && op->kind != NFS_OP_SYMLINK;
	bool size = op->kind == NFS_OP_EMPTY ||
		    (op->kind == NFS_OP_CREATE && !op->guarded);

	xdr_put_bool(x, mode);
	if (mode)
		xdr_put_u32(x, op->mode);
	xdr_put_bool(x, false);		/* uid */
	xdr_put_bool(x, false);		/* gid */
	xdr_put_bool(x, size);
	if (size)
		xdr_put_u64(x, 0);
	xdr_put_u32(x, 0);		/* atime */
	if (op->kind != NFS_OP_SET || op->no_mtime) {
		xdr_put_u32(x, 0);	/* mtime */
		return;
	}
	xdr_put_u32(x, TO_CLIENT_TIME);
	xdr_put_u32(x, op->mtime.sec);
	xdr_put_u32(x, op->mtime.nsec);
}

/* Of the operations on a name in a directory. */
static void put_named(struct xdr_out *x, const struct nfsc_op *op)
{
	xdr_put_string(x, op->name);
	if (op->kind == NFS_OP_CREATE)
		xdr_put_u32(x, op->guarded ? GUARDED : UNCHECKED);
	if (op->kind == NFS_OP_CREATE || op->kind == NFS_OP_MKDIR ||
	    op->kind == NFS_OP_SYMLINK)
		put_sattr(x, op);
	if (op->kind == NFS_OP_RENAME)
		put_fh(x, &op->into);
	if (op->kind == NFS_OP_SYMLINK || op->kind == NFS_OP_RENAME)
		xdr_put_string(x, op->target);
}

void nfsc_put_args(struct xdr_out *x, const struct nfsc_op *op)
{
	if (op->kind == NFS_OP_NULL)
		return;
	put_fh(x, &op->fh);
	switch (op->kind) {
	case NFS_OP_LOOKUP:
	case NFS_OP_CREATE:
	case NFS_OP_MKDIR:
	case NFS_OP_SYMLINK:
	case NFS_OP_REMOVE:
	case NFS_OP_RMDIR:
	case NFS_OP_RENAME:
		put_named(x, op);
		break;
	case NFS_OP_EMPTY:
	case NFS_OP_SET:
		put_sattr(x, op);
		xdr_put_bool(x, false);	/* whatever its ctime */
		break;
	case NFS_OP_READ:
	case NFS_OP_COMMIT:
		xdr_put_u64(x, op->offset);
		xdr_put_u32(x, op->count);
		break;
	case NFS_OP_WRITE:
		xdr_put_u64(x, op->offset);
		xdr_put_u32(x, op->count);
		xdr_put_u32(x, op->stable ? FILE_SYNC : UNSTABLE);
		xdr_put_u32(x, op->count);
		break;
	case NFS_OP_READDIRPLUS:
		xdr_put_u64(x, op->cookie);
		xdr_put_u64(x, op->cookieverf);
		xdr_put_u32(x, op->count);
		xdr_put_u32(x, op->count);
		break;
	case NFS_OP_ACCESS:
		xdr_put_u32(x, op->count);
		break;
	default:
		break;
	}
}

static struct nfsc_time get_nfstime(struct xdr_in *x)
{
	struct nfsc_time t;

	t.sec = xdr_get_u32(x);
	t.nsec = xdr_get_u32(x);
	return t;
}

static void get_fattr(struct xdr_in *x, struct nfsc_attr *a)
{
	a->type = xdr_get_u32(x);
	a->mode = xdr_get_u32(x);
	a->nlink = xdr_get_u32(x);
	a->uid = xdr_get_u32(x);
	a->gid = xdr_get_u32(x);
	a->size = xdr_get_u64(x);
	a->used = xdr_get_u64(x);
	a->major = xdr_get_u32(x);
	a->minor = xdr_get_u32(x);
	a->fsid = xdr_get_u64(x);
	a->fileid = xdr_get_u64(x);
	a->atime = get_nfstime(x);
	a->mtime = get_nfstime(x);
	a->ctime = get_nfstime(x);
	a->valid = xdr_ok(x);
}

static void get_post_attr(struct xdr_in *x, struct nfsc_attr *a)
{
	a->valid = false;
	if (xdr_get_bool(x))
		get_fattr(x, a);
}

static void skip_wcc(struct xdr_in *x, struct nfsc_attr *after)
{
	if (xdr_get_bool(x))
		xdr_get_fixed(x, 24);
	get_post_attr(x, after);
}

static void get_fh(struct xdr_in *x, struct nfsc_fh *fh)
{
	struct xdr_view v = xdr_get_opaque(x, NFS_FH_MAX);

	fh->len = v.len;
	if (v.len > 0)
		memcpy(fh->data, v.data, v.len);
}

static struct nfsc_entry *get_dirent(struct xdr_in *x)
{
	struct nfsc_entry *e;
	struct xdr_view name;
	uint64_t fileid;

	fileid = xdr_get_u64(x);
	/* Some servers have longer names than the system here. */
	name = xdr_get_opaque(x, UINT32_MAX);
	e = calloc(1, sizeof(*e) + name.len + 1);
	if (!e)
		return NULL;
	if (name.len > 0)
		memcpy(e->name, name.data, name.len);
	e->len = name.len;
	e->fileid = fileid;
	e->cookie = xdr_get_u64(x);
	get_post_attr(x, &e->attr);
	if (xdr_get_bool(x))
		get_fh(x, &e->fh);
	return e;
}

static int get_entries(struct xdr_in *x, struct nfsc_op *op)
{
	struct nfsc_entry **tail = &op->entries;

	op->entries = NULL;
	while (xdr_get_bool(x)) {
		*tail = get_dirent(x);
		if (!*tail)
			return -ENOMEM;
		tail = &(*tail)->next;
	}
	op->eof = xdr_get_bool(x);
	return 0;
}

static void get_limits(struct xdr_in *x, struct nfsc_limits *l)
{
	l->rtmax = xdr_get_u32(x);
	l->rtpref = xdr_get_u32(x);
	xdr_get_u32(x);
	l->wtmax = xdr_get_u32(x);
	l->wtpref = xdr_get_u32(x);
	xdr_get_u32(x);
	l->dtpref = xdr_get_u32(x);
	l->maxfilesize = xdr_get_u64(x);
	get_nfstime(x);
	l->properties = xdr_get_u32(x);
}

static void get_space(struct xdr_in *x, struct nfsc_space *s)
{
	s->total = xdr_get_u64(x);
	s->free = xdr_get_u64(x);
	s->available = xdr_get_u64(x);
	s->files = xdr_get_u64(x);
	s->files_free = xdr_get_u64(x);
	xdr_get_u64(x);			/* files available to this user */
	xdr_get_u32(x);			/* how long that holds */
}

static void get_link(struct xdr_in *x, struct nfsc_op *op)
{
	struct xdr_view v = xdr_get_opaque(x, UINT32_MAX);

	op->got = MIN(v.len, op->count);
	if (v.len > op->count)
		op->status = NFS_NAMETOOLONG;
	else if (v.len > 0)
		memcpy(op->data, v.data, v.len);
}

static void get_read(struct xdr_in *x, struct nfsc_op *op)
{
	op->got = xdr_get_count(x, op->count);
	op->eof = xdr_get_bool(x);
	if (xdr_get_u32(x) != op->got)
		x->bad = true;
}

static void get_written(struct xdr_in *x, struct nfsc_op *op)
{
	op->got = xdr_get_count(x, op->count);
	op->stored = xdr_get_count(x, FILE_SYNC) == FILE_SYNC;
	op->verf = xdr_get_u64(x);
}

static void get_created(struct xdr_in *x, struct nfsc_op *op)
{
	struct nfsc_attr dir;

	op->obj.len = 0;
	if (xdr_get_bool(x))
		get_fh(x, &op->obj);
	get_post_attr(x, &op->attr);
	skip_wcc(x, &dir);
}

/* Decodes the results behind the status NFS3_OK. */
static int get_ok(struct xdr_in *x, struct nfsc_op *op)
{
	switch (op->kind) {
	case NFS_OP_GETATTR:
		get_fattr(x, &op->attr);
		return 0;
	case NFS_OP_LOOKUP:
		get_fh(x, &op->obj);
		get_post_attr(x, &op->attr);
		return 0;
	case NFS_OP_CREATE:
	case NFS_OP_MKDIR:
	case NFS_OP_SYMLINK:
		get_created(x, op);
		return 0;
	case NFS_OP_EMPTY:
	case NFS_OP_SET:
	case NFS_OP_REMOVE:
	case NFS_OP_RMDIR:
		skip_wcc(x, &op->attr);
		return 0;
	case NFS_OP_RENAME:
		skip_wcc(x, &op->attr);
		skip_wcc(x, &op->attr);
		return 0;
	case NFS_OP_WRITE:
	case NFS_OP_COMMIT:
		skip_wcc(x, &op->attr);
		if (op->kind == NFS_OP_WRITE)
			get_written(x, op);
		else
			op->verf = xdr_get_u64(x);
		return 0;
	default:
		break;
	}
	get_post_attr(x, &op->attr);
	if (op->kind == NFS_OP_READLINK)
		get_link(x, op);
	else if (op->kind == NFS_OP_READ)
		get_read(x, op);
	else if (op->kind == NFS_OP_FSINFO)
		get_limits(x, &op->limits);
	else if (op->kind == NFS_OP_FSSTAT)
		get_space(x, &op->space);
	else if (op->kind == NFS_OP_ACCESS)
		op->got = xdr_get_u32(x);
	else {
		op->cookieverf = xdr_get_u64(x);
		return get_entries(x, op);
	}
	return 0;
}

int nfsc_get_results(struct xdr_in *x, struct nfsc_op *op)
{
	int err;

	op->status = 0;
	if (op->kind == NFS_OP_NULL)
		return 0;
	op->status = xdr_get_u32(x);
	if (op->status != 0)
		return xdr_ok(x) ? 0 : -EBADMSG;
	err = get_ok(x, op);
	if (err == 0 && !xdr_ok(x))
		err = -EBADMSG;
	if (err < 0 && op->kind == NFS_OP_READDIRPLUS) {
		nfsc_entries_free(op->entries);
		op->entries = NULL;
	}
	return err;
}

void nfsc_entries_free(struct nfsc_entry *e)
{
	struct nfsc_entry *next;

	for (; e; e = next) {
		next = e->next;
		free(e);
	}
}

bool nfsc_name_is_good(const char *name, uint32_t len)
{
	return len > 0 && !memchr(name, '/', len) && !memchr(name, '\0', len) &&
	       !(len <= 2 && memcmp(name, "..", len) == 0);
}
