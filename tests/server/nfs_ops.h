/* SPDX-License-Identifier: BSD-2-Clause */
/* nfs_ops - one call of every procedure, and the result that it should meet. */
#pragma once

#include "wire/nfs3.h"
#include "tests/server/doors.h"

/*
 * A caller's relation to the files of a cell: they have an owner and a group,
 * directories the mode 0750 and files 0640.
 */
enum as { AS_ROOT, AS_OWNER, AS_GROUP, AS_OTHER, NAS };

/*
 * The objects of the calls: a directory with "file", "link", the files "gone"
 * and "from" and the directory "goner".  Calls that change make "new",
 * "newdir", "newlink", "newfifo" and "newname", moves "from" to "to", removes
 * "gone" and "goner", writes "WRITTEN" and sets the mode 0604.
 */
struct nfs_cell {
	struct nfs3_fh dir, file, link;
};

struct nfs_op {
	const char *name;
	enum nfs3_procnum proc;
	enum { OF_DIR, OF_FILE, OF_LINK } of;
	bool	    change;
	uint32_t    want[NAS];	/* the status for each enum as */
	union nfs3_args args;	/* without filehandles */
};

#define NFS_OPS	21
extern const struct nfs_op nfs_ops[NFS_OPS];

/* The arguments of @op on the objects of @cell. */
void nfs_put_op(struct caller *c, const struct nfs_op *op,
		const struct nfs_cell *cell);

void nfs_begin(struct caller *c, uint32_t proc,
	       const struct caller_cred *cred);
void nfs_put_fh(struct caller *c, const struct nfs3_fh *fh);
/* diropargs3 */
void nfs_put_name(struct caller *c, const struct nfs3_fh *fh,
		  const char *name);
/* sattr3; -1 is not set. */
void nfs_put_attr(struct caller *c, int mode, int uid, int gid);
/* The arguments of WRITE, at 0. */
void nfs_put_write(struct caller *c, const struct nfs3_fh *fh,
		   const char *data);
/* Sends it: the status, or caller_send()'s result for a call that was not
 * run. */
uint32_t nfs_status(struct caller *c);
/* post_op_fh3.  False: no handle. */
bool nfs_take_fh(struct caller *c, struct nfs3_fh *fh);
