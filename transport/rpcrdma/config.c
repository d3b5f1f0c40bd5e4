/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config - the Connection Configuration Protocol (RFC 5666 section 6), as a
 * requester speaks it.  Pure.
 */
#include "transport/rpcrdma/proto.h"

#include "transport/rpcrdma/rpcrdma.h"
#include "wire/header.h"

void rpcrdma_config_call(uint8_t out[RPCRDMA_CONFIG_LEN], uint32_t xid,
			 const struct rpcrdma_limits *ours)
{
	const struct rpc_header h = {
		.xid = xid, .prog = RDMA_CONFIG_PROGRAM,
		.vers = RDMA_CONFIG_VERSION, .proc = CONF_RDMA,
	};
	struct xdr_out x;

	xdr_out_init(&x, out, RPCRDMA_CONFIG_LEN);
	rpc_header_call(&x, &h, NULL);
	xdr_put_u32(&x, ours->call);
	xdr_put_u32(&x, ours->reply);
	xdr_put_u32(&x, ours->reads);
}

bool rpcrdma_config_reply(const void *data, size_t len,
			  struct rpcrdma_limits *theirs)
{
	uint32_t xid, align;
	struct xdr_in x;

	xdr_in_init(&x, data, len);
	if (rpc_header_reply(&x, &xid, NULL) < 0)
		return false;
	theirs->reply = 0;
	xdr_get_three(&x, &theirs->call, &align, &theirs->reads);
	return xdr_ok(&x);
}
