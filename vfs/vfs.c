/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by all backends. */
#include "vfs/vfs.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int vfs_fail(const struct vfs_config *config, const char *fmt, ...)
{
	va_list ap;

	if (!config->why)
		return -EINVAL;
	va_start(ap, fmt);
	if (vasprintf(config->why, fmt, ap) < 0)
		*config->why = NULL;
	va_end(ap);
	return -EINVAL;
}

int vfs_name_check(const char *s, uint32_t len)
{
	if (len == 0)
		return -EINVAL;
	if (len > VFS_NAME_MAX)
		return -ENAMETOOLONG;
	if (memchr(s, '\0', len) || memchr(s, '/', len))
		return -EINVAL;
	return 0;
}
