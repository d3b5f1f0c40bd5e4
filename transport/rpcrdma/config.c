/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config - the Connection Configuration Protocol (RFC 5666 section 6), as a
 * requester speaks it.  Pure.
 */
#include "transport/rpcrdma/proto.h"

#include <assert.h>

#include "lib/util.h"
#include "transport/rpcrdma/rpcrdma.h"

enum { CONFIG_PROGRAM = 100417, CONFIG_VERSION = 1, CONF_RDMA = 1,
       RPC_VERSION = 2 };

void rpcrdma_config_call(uint8_t out[RPCRDMA_CONFIG_LEN], uint32_t xid,
			 const struct rpcrdma_limits *ours)
{
	/* The four zeros are AUTH_NONE twice, with no bytes. */
	const uint32_t words[] = {
		xid, MSG_TYPE_CALL, RPC_VERSION, CONFIG_PROGRAM,
		CONFIG_VERSION, CONF_RDMA, 0, 0, 0, 0,
		ours->call, ours->reply, ours->reads,
	};

	static_assert(sizeof(words) == RPCRDMA_CONFIG_LEN, "a word each");
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		xdr_set_word(out + 4 * i, words[i]);
}

bool rpcrdma_config_reply(const void *data, size_t len,
			  struct rpcrdma_limits *theirs)
{
	struct xdr_in x;
	bool accepted;

	xdr_in_init(&x, data, len);
	xdr_get_u32(&x);			/* the xid */
	accepted = xdr_get_u32(&x) == MSG_TYPE_REPLY;
	accepted &= xdr_get_u32(&x) == 0;	/* MSG_ACCEPTED */
	xdr_get_u32(&x);			/* the verifier */
	xdr_get_opaque(&x, 400);
	accepted &= xdr_get_u32(&x) == 0;	/* SUCCESS */
	theirs->call = xdr_get_u32(&x);
	theirs->reply = 0;
	xdr_get_u32(&x);			/* align */
	theirs->reads = xdr_get_u32(&x);
	return accepted && xdr_ok(&x);
}
