/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of fabrics. */
#include "transport/fabric/fabrics.h"

#include <string.h>
#include <strings.h>

#include "lib/log.h"

const struct fabric_row *const fabric_rows[FABRICS_MAX] = {
	&verbs_row,
	&iwarp_row,
};

unsigned fabrics_count(void)
{
	unsigned n = 0;

	while (n < FABRICS_MAX && fabric_rows[n])
		n++;
	return n;
}

unsigned fabrics_find(const char *name, size_t len)
{
	unsigned i = 0;

	while (i < fabrics_count() && (strlen(fabric_rows[i]->name) != len ||
				       strncasecmp(fabric_rows[i]->name, name,
						   len)))
		i++;
	return i;
}

unsigned fabrics_first(void)
{
	unsigned i = 0;

	while (i < fabrics_count() - 1 && !fabric_rows[i]->available()) {
		log_info("%s: NFS/RDMA is served by %s", fabric_rows[i]->absent,
			 fabric_rows[i + 1]->title);
		i++;
	}
	return i;
}
