/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory - that of the caller: structs of any version, the memory that calls
 * name, and the regions that outlive them.
 */
#include "client/rpcrdma/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/thread.h"
#include "lib/util.h"
#include "lib/xdr.h"

int client_check_size(const void *s, size_t size, size_t first, size_t known)
{
	const uint8_t *byte = s;

	if (size < first)
		return -EINVAL;
	for (size_t i = known; i < size; i++)
		if (byte[i] != 0)
			return -E2BIG;
	return 0;
}

