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
 * Takes the header of a reply.  0: results follow; -EBADMSG: it is no reply
 * to @xid; else an error of rpc_header_reply().
 */
int rpc_get_reply(struct xdr_in *x, uint32_t xid);

/* A call of NFS, without the data of a WRITE. */
void rpc_put_op(struct xdr_out *x, uint32_t xid, const struct nfsc_op *op,
		const struct nfsc_config *c);
/* Its reply, into @op; the data of a READ stays in @x.  0, as above, or as of
 * nfsc_get_results(). */
int rpc_get_op(struct xdr_in *x, uint32_t xid, struct nfsc_op *op);
