/* SPDX-License-Identifier: BSD-2-Clause */
/* nfs_ops - one call of every procedure, and what it should meet. */
#include "tests/server/nfs_ops.h"

#include <string.h>

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

static void of_dir(struct caller *c, const struct nfs_cell *cell)
{
	nfs_put_fh(c, &cell->dir);
}

static void of_link(struct caller *c, const struct nfs_cell *cell)
{
	nfs_put_fh(c, &cell->link);
}

static void access_args(struct caller *c, const struct nfs_cell *cell)
{
	nfs_put_fh(c, &cell->file);
	xdr_put_u32(&c->out, 0x3f);
}

static void lookup_args(struct caller *c, const struct nfs_cell *cell)
{
	nfs_put_name(c, &cell->dir, "file");
}

static void read_args(struct caller *c, const struct nfs_cell *cell)
{
	nfs_put_fh(c, &cell->file);
	xdr_put_u64(&c->out, 0);
	xdr_put_u32(&c->out, 100);
}

static void readdir_args(struct caller *c, const struct nfs_cell *cell)
{
	nfs_put_fh(c, &cell->dir);
	xdr_put_u64(&c->out, 0);
	xdr_put_u64(&c->out, 0);
	xdr_put_u32(&c->out, 512);
}

static void readdirplus_args(struct caller *c, const struct nfs_cell *cell)
{
	readdir_args(c, cell);
	xdr_put_u32(&c->out, 2048);
}

static void setattr_args(struct caller *c, const struct nfs_cell *cell)
{
	nfs_put_fh(c, &cell->file);
	nfs_put_attr(c, 0604, -1, -1);
	xdr_put_u32(&c->out, 0);
}

static void write_args(struct caller *c, const struct nfs_cell *cell)
{
	nfs_put_write(c, &cell->file, "WRITTEN");
}

static void commit_args(struct caller *c, const struct nfs_cell *cell)
{
	nfs_put_fh(c, &cell->file);
	xdr_put_u64(&c->out, 0);
	xdr_put_u32(&c->out, 0);
}

static void create_args(struct caller *c, const struct nfs_cell *cell)
{
	nfs_put_name(c, &cell->dir, "new");
	xdr_put_u32(&c->out, UNCHECKED);
	nfs_put_attr(c, -1, -1, -1);
}

static void mkdir_args(struct caller *c, const struct nfs_cell *cell)
{
	nfs_put_name(c, &cell->dir, "newdir");
	nfs_put_attr(c, -1, -1, -1);
}

static void symlink_args(struct caller *c, const struct nfs_cell *cell)
{
	nfs_put_name(c, &cell->dir, "newlink");
	nfs_put_attr(c, -1, -1, -1);
	xdr_put_opaque(&c->out, "file", 4);
}

static void mknod_args(struct caller *c, const struct nfs_cell *cell)
{
	nfs_put_name(c, &cell->dir, "newfifo");
	xdr_put_u32(&c->out, 7);		/* NF3FIFO */
	nfs_put_attr(c, -1, -1, -1);
}

static void link_args(struct caller *c, const struct nfs_cell *cell)
{
	nfs_put_fh(c, &cell->file);
	nfs_put_name(c, &cell->dir, "newname");
}

static void rename_args(struct caller *c, const struct nfs_cell *cell)
{
	nfs_put_name(c, &cell->dir, "from");
	nfs_put_name(c, &cell->dir, "to");
}

static void remove_args(struct caller *c, const struct nfs_cell *cell)
{
	nfs_put_name(c, &cell->dir, "gone");
}

static void rmdir_args(struct caller *c, const struct nfs_cell *cell)
{
	nfs_put_name(c, &cell->dir, "goner");
}

#define OK	NFS3_OK
#define NO	NFS3ERR_ACCES
#define PERM	NFS3ERR_PERM

const struct nfs_op nfs_ops[NFS_OPS] = {
	{ "GETATTR", NFSPROC3_GETATTR, of_dir, false, { OK, OK, OK, OK } },
	{ "ACCESS", NFSPROC3_ACCESS, access_args, false, { OK, OK, OK, OK } },
	{ "LOOKUP", NFSPROC3_LOOKUP, lookup_args, false, { OK, OK, OK, NO } },
	{ "READLINK", NFSPROC3_READLINK, of_link, false, { OK, OK, OK, OK } },
	{ "READ", NFSPROC3_READ, read_args, false, { OK, OK, OK, NO } },
	{ "READDIR", NFSPROC3_READDIR, readdir_args, false,
	  { OK, OK, OK, NO } },
	{ "READDIRPLUS", NFSPROC3_READDIRPLUS, readdirplus_args, false,
	  { OK, OK, OK, NO } },
	{ "FSSTAT", NFSPROC3_FSSTAT, of_dir, false, { OK, OK, OK, OK } },
	{ "FSINFO", NFSPROC3_FSINFO, of_dir, false, { OK, OK, OK, OK } },
	{ "PATHCONF", NFSPROC3_PATHCONF, of_dir, false, { OK, OK, OK, OK } },
	{ "WRITE", NFSPROC3_WRITE, write_args, true, { OK, OK, NO, NO } },
	{ "COMMIT", NFSPROC3_COMMIT, commit_args, false,
	  { OK, OK, OK, OK } },
	{ "CREATE", NFSPROC3_CREATE, create_args, true, { OK, OK, NO, NO } },
	{ "MKDIR", NFSPROC3_MKDIR, mkdir_args, true, { OK, OK, NO, NO } },
	{ "SYMLINK", NFSPROC3_SYMLINK, symlink_args, true,
	  { OK, OK, NO, NO } },
	{ "MKNOD", NFSPROC3_MKNOD, mknod_args, true, { OK, OK, NO, NO } },
	{ "LINK", NFSPROC3_LINK, link_args, true, { OK, OK, NO, NO } },
	{ "RENAME", NFSPROC3_RENAME, rename_args, true, { OK, OK, NO, NO } },
	{ "REMOVE", NFSPROC3_REMOVE, remove_args, true, { OK, OK, NO, NO } },
	{ "RMDIR", NFSPROC3_RMDIR, rmdir_args, true, { OK, OK, NO, NO } },
	{ "SETATTR", NFSPROC3_SETATTR, setattr_args, true,
	  { OK, OK, PERM, PERM } },
};

