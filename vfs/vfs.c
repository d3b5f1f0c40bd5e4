/* SPDX-License-Identifier: BSD-2-Clause */
/* What all backends share. */
#include "vfs/vfs.h"

#include <errno.h>
#include <string.h>

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
