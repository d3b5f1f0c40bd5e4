/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of backends. */
#include "vfs/backends.h"

#include <stdio.h>
#include <string.h>

#include "lib/util.h"

static const struct vfs_ops *const builtin[] = {
	&posix_vfs_ops, &mem_vfs_ops,
};

const struct vfs_ops *backend_find(const char *name, size_t len)
{
	for (unsigned i = 0; i < ARRAY_SIZE(builtin); i++)
		if (strlen(builtin[i]->name) == len &&
		    memcmp(builtin[i]->name, name, len) == 0)
			return builtin[i];
	return NULL;
}

void backend_names(char *buf, size_t size)
{
	size_t len = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(builtin) && len < size; i++)
		len += (size_t)snprintf(buf + len, size - len, "%s%s",
					i ? ", " : "", builtin[i]->name);
}
