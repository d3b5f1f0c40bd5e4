/* SPDX-License-Identifier: BSD-2-Clause */
/* rpc - calls and replies, as the tool's user makes them.  Pure. */
#pragma once

#include "tools/nfs/nfs.h"

enum {
	RPC_NFS = 100003, RPC_MOUNT = 100005, RPC_NLM = 100021,
	/* Bytes of a header, AUTH_SYS with 16 groups in it. */
	RPC_HEADER_MAX = 128,
	/* Bytes of a call of NFS, without the data of a WRITE: a SYMLINK has a
	 * name and a path. */
	RPC_CALL_MAX = 1024 + NFS_PATH_MAX,
};

struct rpc_procedure {
	uint32_t program, version, number;
};

/* The header of a call, as the configuration's user; NULL: AUTH_NONE. */
void rpc_put_call(struct xdr_out *x, uint32_t xid,
		  const struct rpc_procedure *p, const struct nfsc_config *c);
/*
 * Takes the header of a reply.  0: results follow; -EBADMSG: it is not a reply
 * to @xid; else an error of rpc_header_reply().
 */
int rpc_get_reply(struct xdr_in *x, uint32_t xid);

/*
 * A flavor of credentials other than AUTH_SYS (config.flavor).  Any thread.
 */
struct nfsc_flavor {
	bool	 wraps;		/* arguments and results: then no chunk and no
				 * later bytes have data */
	uint32_t extra;		/* bytes of it in a call, but the token of
				 * PROVE, or in a reply, at most */
	/*
	 * All of a call, with the data of a WRITE only if it wraps.  0;
	 * -EKEYREVOKED, no context; or another -errno.
	 */
	int (*put)(struct nfsc_flavor *f, struct xdr_out *x, uint32_t xid,
		   struct nfsc_op *op);
	/* Checks a reply, and makes @x its results, perhaps decrypted where
	 * they are.  0; -EKEYREVOKED, the server has refused the context; or as
	 * of rpc_get_reply(). */
	int (*get)(struct nfsc_flavor *f, struct xdr_in *x, uint32_t xid,
		   struct nfsc_op *op);
};

/* Bytes of a call of NFS, at most. */
size_t rpc_op_room(const struct nfsc_op *op, const struct nfsc_config *c);
/* Bytes of data of a WRITE that go behind the call. */
static inline uint32_t rpc_op_data(const struct nfsc_op *op,
				   const struct nfsc_config *c)
{
	return op->kind == NFS_OP_WRITE && !(c->flavor && c->flavor->wraps) ?
	       op->count : 0;
}
/* A call of NFS, without that data.  0 or -errno. */
int rpc_put_op(struct xdr_out *x, uint32_t xid, struct nfsc_op *op,
	       const struct nfsc_config *c);
/* Its reply, into @op; the data of a READ stays in @x.  0, as above, or as of
 * nfsc_get_results(). */
int rpc_get_op(struct xdr_in *x, uint32_t xid, struct nfsc_op *op,
	       const struct nfsc_config *c);
/* That data, into op->data.  0 or -EBADMSG. */
int rpc_get_data(struct xdr_in *x, struct nfsc_op *op);
