/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_config - the Connection Configuration Protocol of RPC-over-RDMA
 * (RFC 5666 section 6).
 *
 * A client tells the limits of its end of a connection and learns ours.  The
 * transport keeps to them: rpcrdma_configure().
 */
#pragma once

#include "rpc/program.h"

/* For any number of servers; nothing to free. */
extern struct rpc_program rdma_config_program;
extern const struct program_row rdma_config_row;
