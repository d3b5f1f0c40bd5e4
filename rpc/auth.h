/* SPDX-License-Identifier: BSD-2-Clause */
/* auth - the flavors of authentication (RFC 5531 section 8), a row each. */
#ifndef GANNET_RPC_AUTH_H
#define GANNET_RPC_AUTH_H

#include "rpc/rpc.h"

/* A call's credential and verifier, as they arrived. */
struct rpc_auth {
	uint32_t	proc;
	uint32_t	flavor;
	struct xdr_view	body;
	uint32_t	verf;		/* the verifier's flavor */
	bool		verf_whole;	/* false: cut, or too long */
};

/* Pure.  Sets @cred; returns RPC_AUTH_OK, or the reason to deny the call. */
typedef enum rpc_auth_stat rpc_auth_fn(const struct rpc_auth *auth,
				       struct rpc_cred *cred);

/* Asks the flavor's row. */
rpc_auth_fn rpc_auth_verify;

#endif
