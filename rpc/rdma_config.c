/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_config - the Connection Configuration Protocol.
 *
 * Its sizes are sizes of whole Sends, as the inline thresholds of RFC 8166
 * section 3.3.2 are: RFC 5666 does not say whether a message's size counts the
 * transport header, and a Receive has to take both.
 */
#include "rpc/rdma_config.h"

#include "lib/util.h"
#include "transport/rpcrdma/rpcrdma.h"

/* Data is used where it lies: more than XDR's own alignment gains nothing. */
enum { BEST_ALIGN = 4 };

static bool get_config_req(struct xdr_in *x, void *args)
{
	struct rpcrdma_limits *l = args;

	xdr_get_three(x, &l->call, &l->reply, &l->reads);
	return xdr_ok(x);
}

static void put_config_reply(struct xdr_out *x, const void *res)
{
	const struct rpcrdma_limits *l = res;

	xdr_put_u32(x, l->call);
	xdr_put_u32(x, BEST_ALIGN);
	xdr_put_u32(x, l->reads);
}

static int conf_rdma(struct rpc_call *call)
{
	const struct rpcrdma_limits *theirs = rpc_args(call);
	struct rpcrdma_limits *ours = rpc_res(call);

	/* The program is served over RDMA only. */
	rpcrdma_configure(call->msg->xprt, theirs, ours);
	return 0;
}

static const struct rpc_proc procs[] = {
	{ .name = "NULL" },
	[CONF_RDMA] = {
		.name = "CONF_RDMA", .decode = get_config_req,
		.steps = { conf_rdma }, .encode = put_config_reply,
		.args_size = sizeof(struct rpcrdma_limits),
		.res_size = sizeof(struct rpcrdma_limits),
	},
};

static const struct rpc_version versions[] = {
	{ .vers = RDMA_CONFIG_VERSION, .nproc = ARRAY_SIZE(procs),
	  .procs = procs },
};

struct rpc_program rdma_config_program = {
	.name = "rdmaconfig", .prog = RDMA_CONFIG_PROGRAM,
	.nversions = ARRAY_SIZE(versions), .versions = versions,
	.only_rdma = true, .announced = RPC_OVER_RDMA,
};

static int create_rdma_config(const struct program_env *env,
			      struct rpc_program **out)
{
	*out = &rdma_config_program;
	return 0;
}

const struct program_row rdma_config_row = { .create = create_rdma_config };
