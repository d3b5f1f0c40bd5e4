/* SPDX-License-Identifier: BSD-2-Clause */
/* fabrics - those that a client can ask for. */
#include "client/rpcrdma/client.h"

#include <errno.h>

#include "transport/fabric/verbs/verbs.h"

int client_fabric(unsigned kind, struct fabric *out,
		  void (**destroy)(struct fabric *f))
{
	switch (kind) {
	case 0:
	case GANNET_RPCRDMA_VERBS:
		if (!verbs_available())
			return -ENODEV;
		*destroy = verbs_fabric_destroy;
		return verbs_fabric_create(out);
	default:
		return -EINVAL;
	}
}
