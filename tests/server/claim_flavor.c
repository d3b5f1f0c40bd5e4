/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/server/claim_flavor.h"

static enum rpc_auth_stat verify(const struct rpc_flavor *self,
				 const struct rpc_header *h,
				 struct rpc_call *call)
{
	struct rpc_cred *cred = &call->cred;

	cred->flavor = (enum rpc_auth_flavor)self->flavor;
	return rpc_auth_sys_get(&h->cred, &cred->uid, &cred->gid, &cred->ngids,
				cred->gids) ? RPC_AUTH_OK : RPC_AUTH_BADCRED;
}

const struct rpc_flavor claim_krb5 = {
	.flavor = RPC_AUTH_KRB5, .mnt = { RPC_AUTH_KRB5 }, .verify = verify,
};
const struct rpc_flavor claim_krb5i = {
	.flavor = RPC_AUTH_KRB5I, .mnt = { RPC_AUTH_KRB5I }, .verify = verify,
};
const struct rpc_flavor claim_krb5p = {
	.flavor = RPC_AUTH_KRB5P, .mnt = { RPC_AUTH_KRB5P }, .verify = verify,
};
