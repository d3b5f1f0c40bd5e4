/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by all backends. */
#include "vfs/backends.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "lib/util.h"

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

void vfs_log(enum vfs_log_level level, const char *fmt, ...)
{
	static const enum log_level ours[] = {
		[VFS_LOG_ERR] = LOG_LEVEL_ERR, [VFS_LOG_WARN] = LOG_LEVEL_WARN,
		[VFS_LOG_INFO] = LOG_LEVEL_INFO,
		[VFS_LOG_DEBUG] = LOG_LEVEL_DEBUG,
	};
	char *text;
	va_list ap;
	int n;

	if (level >= ARRAY_SIZE(ours) || !log_wanted(ours[level]))
		return;
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	log_print(ours[level], "%s", text);
	free(text);
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

int vfs_target_check(const char *s, uint32_t len)
{
	if (len > VFS_PATH_MAX)
		return -ENAMETOOLONG;
	return len == 0 || memchr(s, '\0', len) ? -EINVAL : 0;
}
