/* SPDX-License-Identifier: BSD-2-Clause */
/* nfs_ops - one call of every procedure, and the result that it should meet. */
#include "tests/server/nfs_ops.h"

#include <string.h>

#define WRITTEN "WRITTEN"

void nfs_put_fh(struct caller *c, const struct nfs3_fh *fh)
{
	xdr_put_opaque(&c->out, fh->data, fh->len);
}

void nfs_put_name(struct caller *c, const struct nfs3_fh *fh,
		     const char *name)
{
	nfs_put_fh(c, fh);
	xdr_put_opaque(&c->out, name, (uint32_t)strlen(name));
}

void nfs_put_attr(struct caller *c, int mode, int uid, int gid)
{
	const int set[] = { mode, uid, gid };

	for (int i = 0; i < 3; i++) {
		xdr_put_u32(&c->out, set[i] >= 0);
		if (set[i] >= 0)
			xdr_put_u32(&c->out, (uint32_t)set[i]);
	}
	for (int i = 0; i < 3; i++)		/* size, atime, mtime */
		xdr_put_u32(&c->out, 0);
}

void nfs_begin(struct caller *c, uint32_t proc,
		  const struct caller_cred *cred)
{
	caller_begin(c, NFS3_PROGRAM, NFS3_VERSION, proc, cred);
}

uint32_t nfs_status(struct caller *c)
{
	uint32_t stat = caller_send(c);

	return stat == RPC_SUCCESS ? xdr_get_u32(&c->in) : stat;
}

bool nfs_take_fh(struct caller *c, struct nfs3_fh *fh)
{
	if (!xdr_get_bool(&c->in))
		return false;
	*fh = harness_get_fh(&c->in);
	return true;
}

void nfs_put_write(struct caller *c, const struct nfs3_fh *fh,
		      const char *data)
{
	uint32_t len = (uint32_t)strlen(data);

	nfs_put_fh(c, fh);
	xdr_put_u64(&c->out, 0);
	xdr_put_u32(&c->out, len);
	xdr_put_u32(&c->out, 0);
	xdr_put_opaque(&c->out, data, len);
}

void nfs_put_op(struct caller *c, const struct nfs_op *op,
		const struct nfs_cell *cell)
{
	const struct nfs3_fh *fh = op->of == OF_DIR ? &cell->dir :
		op->of == OF_FILE ? &cell->file : &cell->link;
	const struct xdr_view dir = { cell->dir.data, cell->dir.len };
	union nfs3_args a = op->args;

	a.fh = (struct xdr_view){ fh->data, fh->len };
	if (op->proc == NFSPROC3_RENAME)
		a.rename.to.fh = dir;
	if (op->proc == NFSPROC3_LINK)
		a.link.link.fh = dir;
	nfs3_put_args(&c->out, op->proc, &a);
	if (op->proc == NFSPROC3_WRITE)
		xdr_put_fixed(&c->out, WRITTEN, a.write.len);
}

#define OK	NFS3_OK
#define NO	NFS3ERR_ACCES
#define PERM	NFS3ERR_PERM

#define TEXT(s) { (const uint8_t *)(s), sizeof(s) - 1 }

const struct nfs_op nfs_ops[NFS_OPS] = {
	{ "GETATTR", NFSPROC3_GETATTR, OF_DIR, false, { OK, OK, OK, OK },
	  { .fh = { 0 } } },
	{ "ACCESS", NFSPROC3_ACCESS, OF_FILE, false, { OK, OK, OK, OK },
	  { .access.access = 0x3f } },
	{ "LOOKUP", NFSPROC3_LOOKUP, OF_DIR, false, { OK, OK, OK, NO },
	  { .dirop.name = TEXT("file") } },
	{ "READLINK", NFSPROC3_READLINK, OF_LINK, false, { OK, OK, OK, OK },
	  { .fh = { 0 } } },
	{ "READ", NFSPROC3_READ, OF_FILE, false, { OK, OK, OK, NO },
	  { .read.count = 100 } },
	{ "READDIR", NFSPROC3_READDIR, OF_DIR, false, { OK, OK, OK, NO },
	  { .readdir.maxcount = 512 } },
	{ "READDIRPLUS", NFSPROC3_READDIRPLUS, OF_DIR, false,
	  { OK, OK, OK, NO },
	  { .readdir = { .dircount = 512, .maxcount = 2048 } } },
	{ "FSSTAT", NFSPROC3_FSSTAT, OF_DIR, false, { OK, OK, OK, OK },
	  { .fh = { 0 } } },
	{ "FSINFO", NFSPROC3_FSINFO, OF_DIR, false, { OK, OK, OK, OK },
	  { .fh = { 0 } } },
	{ "PATHCONF", NFSPROC3_PATHCONF, OF_DIR, false, { OK, OK, OK, OK },
	  { .fh = { 0 } } },
	{ "WRITE", NFSPROC3_WRITE, OF_FILE, true, { OK, OK, NO, NO },
	  { .write = { .count = sizeof(WRITTEN) - 1,
			  .len = sizeof(WRITTEN) - 1 } } },
	{ "COMMIT", NFSPROC3_COMMIT, OF_FILE, false, { OK, OK, OK, OK },
	  { .fh = { 0 } } },
	{ "CREATE", NFSPROC3_CREATE, OF_DIR, true, { OK, OK, NO, NO },
	  { .create.where.name = TEXT("new") } },
	{ "MKDIR", NFSPROC3_MKDIR, OF_DIR, true, { OK, OK, NO, NO },
	  { .make.where.name = TEXT("newdir") } },
	{ "SYMLINK", NFSPROC3_SYMLINK, OF_DIR, true, { OK, OK, NO, NO },
	  { .make = { .where.name = TEXT("newlink"),
			 .what = { .target = "file", .target_len = 4 } } } },
	{ "MKNOD", NFSPROC3_MKNOD, OF_DIR, true, { OK, OK, NO, NO },
	  { .make = { .where.name = TEXT("newfifo"), .type = VFS_FIFO } } },
	{ "LINK", NFSPROC3_LINK, OF_FILE, true, { OK, OK, NO, NO },
	  { .link.link.name = TEXT("newname") } },
	{ "RENAME", NFSPROC3_RENAME, OF_DIR, true, { OK, OK, NO, NO },
	  { .rename = { .from.name = TEXT("from"),
			   .to.name = TEXT("to") } } },
	{ "REMOVE", NFSPROC3_REMOVE, OF_DIR, true, { OK, OK, NO, NO },
	  { .dirop.name = TEXT("gone") } },
	{ "RMDIR", NFSPROC3_RMDIR, OF_DIR, true, { OK, OK, NO, NO },
	  { .dirop.name = TEXT("goner") } },
	{ "SETATTR", NFSPROC3_SETATTR, OF_FILE, true, { OK, OK, PERM, PERM },
	  { .setattr.attr = { .set = VFS_SET_MODE, .mode = 0604 } } },
};
