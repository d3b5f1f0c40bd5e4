/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments of rquota, of any bytes.  The first byte says of which procedure
 * and version.  A path that is taken is a path. */
#include <stdlib.h>
#include <string.h>

#include "rquota/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool (*const decode[])(struct xdr_in *, void *) = {
	rquota_get1, rquota_get2, rquota_get_set1, rquota_get_set2,
};
#define OF_QUOTAS	2u		/* these fill struct rquota_args */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char path[WALK_PATH_MAX + 1];
	struct rquota_args args;
	struct xdr_in x;
	unsigned which;

	if (len < 1 || len > 1 << 16)
		return 0;
	which = data[0] % ARRAY_SIZE(decode);
	xdr_in_init(&x, data + 1, len - 1);
	if (!decode[which](&x, &args) || which >= OF_QUOTAS)
		return 0;
	if (walk_path(args.path, path) == 0 &&
	    (*path != '/' || strlen(path) > args.path.len))
		abort();
	return 0;
}
