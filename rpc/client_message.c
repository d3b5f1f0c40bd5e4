/* SPDX-License-Identifier: BSD-2-Clause */
/* client_message - the bytes of our calls. */
#include "rpc/client_message.h"

#include <unistd.h>

#include "wire/header.h"
#include "wire/record.h"

void client_identity_init(struct client_identity *id)
{
	if (gethostname(id->machine, RPC_MAX_MACHINE) < 0)
		id->machine[0] = '\0';
	id->machine[RPC_MAX_MACHINE] = '\0';
	id->uid = geteuid();
	id->gid = getegid();
}

size_t client_message_put(uint8_t *out, const struct client_identity *id,
			  const struct rpc_client_to *to, uint32_t xid,
			  const void *args, size_t len)
{
	const struct rpc_header h = { .xid = xid, .prog = to->prog,
				      .vers = to->vers, .proc = to->proc };
	const struct rpc_auth_sys sys = {
		.machine = id->machine, .uid = id->uid, .gid = id->gid,
	};
	struct xdr_out x;

	xdr_out_init(&x, out + RECORD_MARK_SIZE,
		     CLIENT_HEADER_MAX - RECORD_MARK_SIZE + len);
	rpc_header_call(&x, &h, &sys);
	xdr_put_fixed(&x, args, (uint32_t)len);
	record_put_mark(out, xdr_out_len(&x));
	return RECORD_MARK_SIZE + xdr_out_len(&x);
}
