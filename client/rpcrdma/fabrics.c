/* SPDX-License-Identifier: BSD-2-Clause */
/* fabrics - those that a client can ask for. */
#include "client/rpcrdma/client.h"

#include <errno.h>

#include "transport/fabric/iwarp/iwarp.h"
#include "transport/fabric/verbs/verbs.h"

int client_fabric(const struct gannet_rpcrdma_options *options,
		  struct fabric *out, void (**destroy)(struct fabric *f))
{
	const struct iwarp_options iwarp = {
		.handshake_ms = options->connect_ms,
		.reserved_port = options->flags & GANNET_RPCRDMA_RESERVED_PORT,
	};
	unsigned kind = options->fabric;
	int err;

	if (kind == GANNET_RPCRDMA_ANY)
		kind = verbs_available() ? GANNET_RPCRDMA_VERBS :
					   GANNET_RPCRDMA_IWARP;
	switch (kind) {
	case GANNET_RPCRDMA_VERBS:
		if (!verbs_available())
			return -ENODEV;
		*destroy = verbs_fabric_destroy;
		err = verbs_fabric_create(out);
		if (!err)
			verbs_fabric_set_connect_ms(out, options->connect_ms);
		return err;
	case GANNET_RPCRDMA_IWARP:
		*destroy = iwarp_fabric_destroy;
		return iwarp_fabric_create(&iwarp, out);
	default:
		return -EINVAL;
	}
}
