/* SPDX-License-Identifier: BSD-2-Clause */
/* fabrics - makes the one that a client asks for. */
#include "tools/rpcrdma/client.h"

#include <errno.h>

#include "transport/fabric/fabrics.h"

int client_fabric(const struct gannet_rpcrdma_options *options,
		  struct fabric *out, void (**destroy)(struct fabric *f))
{
	const struct fabric_options o = {
		.connect_ms = options->connect_ms,
		.reserved_port = options->flags & GANNET_RPCRDMA_RESERVED_PORT,
	};
	unsigned i = 0;

	if (options->fabric > fabrics_count())
		return -EINVAL;
	if (options->fabric != GANNET_RPCRDMA_ANY)
		i = options->fabric - 1;
	else
		while (i < fabrics_count() - 1 && !fabric_rows[i]->available())
			i++;
	if (!fabric_rows[i]->available())
		return -ENODEV;
	*destroy = fabric_rows[i]->destroy;
	return fabric_rows[i]->create(&o, out);
}
