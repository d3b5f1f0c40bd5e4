/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * codec - operations as arguments and results of NFS version 3.  Pure, except
 * the memory of directory entries.
 */
#include "tools/nfs/nfs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"

static const enum nfs3_procnum procedures[NFS_NOPS] = {
	[NFS_OP_NULL] = NFSPROC3_NULL,
	[NFS_OP_GETATTR] = NFSPROC3_GETATTR,
	[NFS_OP_LOOKUP] = NFSPROC3_LOOKUP,
	[NFS_OP_READLINK] = NFSPROC3_READLINK,
	[NFS_OP_READ] = NFSPROC3_READ,
	[NFS_OP_WRITE] = NFSPROC3_WRITE,
	[NFS_OP_CREATE] = NFSPROC3_CREATE,
	[NFS_OP_READDIRPLUS] = NFSPROC3_READDIRPLUS,
	[NFS_OP_FSINFO] = NFSPROC3_FSINFO,
	[NFS_OP_COMMIT] = NFSPROC3_COMMIT,
	[NFS_OP_EMPTY] = NFSPROC3_SETATTR,
	[NFS_OP_SET] = NFSPROC3_SETATTR,
	[NFS_OP_MKDIR] = NFSPROC3_MKDIR,
	[NFS_OP_SYMLINK] = NFSPROC3_SYMLINK,
	[NFS_OP_REMOVE] = NFSPROC3_REMOVE,
	[NFS_OP_RMDIR] = NFSPROC3_RMDIR,
	[NFS_OP_FSSTAT] = NFSPROC3_FSSTAT,
	[NFS_OP_ACCESS] = NFSPROC3_ACCESS,
	[NFS_OP_RENAME] = NFSPROC3_RENAME,
	[NFS_OP_LINK] = NFSPROC3_LINK,
	[NFS_OP_TOUCH] = NFSPROC3_SETATTR,
};

uint32_t nfsc_procedure(enum nfsc_kind kind)
{
	return kind < NFS_NOPS ? procedures[kind] : NFSPROC3_NULL;
}

/* The attributes that the operation sets. */
static struct vfs_setattr attributes(const struct nfsc_op *op)
{
	bool now = op->kind == NFS_OP_TOUCH;
	bool mode = op->kind != NFS_OP_EMPTY && op->kind != NFS_OP_SYMLINK &&
		    !now;
	bool size = op->kind == NFS_OP_EMPTY ||
		    (op->kind == NFS_OP_CREATE && !op->guarded);
	bool mtime = op->kind == NFS_OP_SET && !op->no_mtime;

	return (struct vfs_setattr){
		.set = (mode ? VFS_SET_MODE : 0) | (size ? VFS_SET_SIZE : 0) |
		       (mtime ? VFS_SET_MTIME : 0) |
		       (now ? VFS_SET_ATIME_NOW | VFS_SET_MTIME_NOW : 0),
		.mode = op->mode, .mtime = op->mtime,
	};
}

static void set_make(union nfs3_args *a, const struct nfsc_op *op)
{
	a->make.what.attr = attributes(op);
	if (op->kind == NFS_OP_SYMLINK) {
		a->make.what.target = op->target;
		a->make.what.target_len = (uint32_t)strlen(op->target);
	}
}

void nfsc_put_args(struct xdr_out *x, const struct nfsc_op *op)
{
	union nfs3_args a = { .dirop = {
		.fh = { op->fh.data, op->fh.len },
		.name = xdr_text(op->name ? : ""),
	} };

	switch (op->kind) {
	case NFS_OP_CREATE:
		a.create.how.how = op->guarded ? VFS_CREATE_GUARDED :
						 VFS_CREATE_UNCHECKED;
		a.create.how.attr = attributes(op);
		break;
	case NFS_OP_MKDIR:
	case NFS_OP_SYMLINK:
		set_make(&a, op);
		break;
	case NFS_OP_RENAME:
		a.rename.to.fh = (struct xdr_view){ op->into.data,
						    op->into.len };
		a.rename.to.name = xdr_text(op->target);
		break;
	case NFS_OP_LINK:
		a.link.link.fh = (struct xdr_view){ op->into.data,
						    op->into.len };
		a.link.link.name = xdr_text(op->target);
		break;
	case NFS_OP_EMPTY:
	case NFS_OP_SET:
	case NFS_OP_TOUCH:
		a.setattr.attr = attributes(op);
		break;
	case NFS_OP_READ:
		a.read.offset = op->offset;
		a.read.count = op->count;
		break;
	case NFS_OP_COMMIT:
		a.commit.offset = op->offset;
		a.commit.count = op->count;
		break;
	case NFS_OP_WRITE:
		a.write.offset = op->offset;
		a.write.count = a.write.len = op->count;
		a.write.stable = op->stable ? VFS_FILE_SYNC : VFS_UNSTABLE;
		break;
	case NFS_OP_READDIRPLUS:
		a.readdir.cookie = op->cookie;
		a.readdir.verf = op->cookieverf;
		a.readdir.dircount = a.readdir.maxcount = op->count;
		break;
	case NFS_OP_ACCESS:
		a.access.access = op->count;
		break;
	default:
		break;
	}
	nfs3_put_args(x, procedures[op->kind], &a);
}

static struct nfsc_entry *get_dirent(const struct nfs3_entry *from)
{
	struct nfsc_entry *e = calloc(1, sizeof(*e) + from->name.len + 1);

	if (!e)
		return NULL;
	if (from->name.len > 0)
		memcpy(e->name, from->name.data, from->name.len);
	e->len = from->name.len;
	e->fileid = from->fileid;
	e->cookie = from->cookie;
	e->attr = from->attr;
	e->fh = from->fh;
	return e;
}

static int get_entries(struct xdr_in *x, struct nfsc_op *op)
{
	struct nfsc_entry **tail = &op->entries;
	struct nfs3_entry e;

	op->entries = NULL;
	while (nfs3_get_entry(x, true, &e)) {
		*tail = get_dirent(&e);
		if (!*tail)
			return -ENOMEM;
		tail = &(*tail)->next;
	}
	op->eof = xdr_get_bool(x);
	return 0;
}

static void get_link(struct xdr_in *x, struct nfsc_op *op, uint32_t len)
{
	struct xdr_view v = xdr_get_fixed(x, len);

	op->got = MIN(v.len, op->count);
	if (v.len > op->count)
		op->status = NFS_NAMETOOLONG;
	else if (v.len > 0)
		memcpy(op->data, v.data, v.len);
}

static void set_after(struct nfsc_op *op, const struct nfs3_wcc *w)
{
	op->attr = (struct nfs3_attr){ w->wcc.has_after, w->wcc.after,
				       w->fsid };
}

static int take_count(struct nfsc_op *op, uint32_t count)
{
	op->got = count;
	return count <= op->count ? 0 : -EBADMSG;
}

static int take_written(struct nfsc_op *op, const struct nfs3_write_res *r)
{
	set_after(op, &r->wcc);
	op->stored = r->committed == VFS_FILE_SYNC;
	op->verf = r->verf;
	return take_count(op, r->count);
}

/* Takes results that begin with the attributes of the file. */
static int take_of_file(struct xdr_in *x, struct nfsc_op *op,
			const union nfs3_res *r)
{
	op->attr = r->getattr.attr;
	switch (op->kind) {
	case NFS_OP_READLINK:
		get_link(x, op, r->readlink.len);
		return 0;
	case NFS_OP_READ:
		op->eof = r->read.eof;
		return take_count(op, r->read.count);
	case NFS_OP_FSINFO:
		op->limits = r->fsinfo;
		return 0;
	case NFS_OP_FSSTAT:
		op->space = r->fsstat.st;
		return 0;
	case NFS_OP_ACCESS:
		op->got = r->access.access;
		return 0;
	case NFS_OP_READDIRPLUS:
		op->cookieverf = r->readdir.verf;
		return get_entries(x, op);
	default:
		return 0;
	}
}

static int take_results(struct xdr_in *x, struct nfsc_op *op,
			const union nfs3_res *r)
{
	switch (op->kind) {
	case NFS_OP_LOOKUP:
		op->obj = r->lookup.fh;
		op->attr = r->lookup.attr;
		return 0;
	case NFS_OP_CREATE:
	case NFS_OP_MKDIR:
	case NFS_OP_SYMLINK:
		op->obj = r->create.fh;
		op->attr = r->create.attr;
		return 0;
	case NFS_OP_EMPTY:
	case NFS_OP_SET:
	case NFS_OP_TOUCH:
	case NFS_OP_REMOVE:
	case NFS_OP_RMDIR:
		set_after(op, &r->wcc.wcc);
		return 0;
	case NFS_OP_RENAME:
		set_after(op, &r->rename.to_wcc);
		return 0;
	case NFS_OP_WRITE:
		return take_written(op, &r->write);
	case NFS_OP_COMMIT:
		set_after(op, &r->commit.wcc);
		op->verf = r->commit.verf;
		return 0;
	default:
		return take_of_file(x, op, r);
	}
}

int nfsc_get_results(struct xdr_in *x, struct nfsc_op *op)
{
	union nfs3_res r;
	bool good;
	int err;

	op->status = 0;
	if (op->kind == NFS_OP_NULL)
		return 0;
	good = nfs3_get_res(x, procedures[op->kind], &r);
	op->status = r.status;
	/* The rest of a failed operation's results does not matter. */
	if (op->status != 0)
		return 0;
	err = good ? take_results(x, op, &r) : -EBADMSG;
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
