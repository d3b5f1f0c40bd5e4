/* SPDX-License-Identifier: BSD-2-Clause */
/* who - the owner that a call names. */
#include "nlm/proc.h"

#include "lib/hash.h"

struct nlm_who nlm_who_of(struct rpc_call *call)
{
	const struct nlm_args *a = rpc_args(call);

	return (struct nlm_who){
		.addr = xprt_addr_host(rpc_call_peer(call)),
		.local = xprt_addr_host(rpc_call_local(call)),
		.name = a->name.data, .name_len = a->name.len,
		.oh = a->oh.data, .oh_len = a->oh.len, .svid = a->svid,
	};
}

uint64_t nlm_order(struct rpc_call *call)
{
	const struct nlm_who who = nlm_who_of(call);
	const struct {
		struct in6_addr addr;
		uint64_t name, oh, svid;
	} owner = {
		.addr = who.addr, .svid = who.svid,
		.name = hash_keyed(who.name, who.name_len),
		.oh = hash_keyed(who.oh, who.oh_len),
	};

	return hash_keyed(&owner, sizeof(owner));
}
