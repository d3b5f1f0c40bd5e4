/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quotas - quotas of the kernel.
 *
 * The kernel shows a process its own quota, and the quotas of other users only
 * with CAP_SYS_ADMIN: gannetd has the helper ask (vfs/helper.h), if one runs.
 */
#pragma once

#include <gannet/vfs.h>

/* From quotactl(2), for users and for groups: the only commands that the helper
 * gives. */
#define QUOTA_COMMANDS { \
	[VFS_QUOTA_USER] = QCMD(Q_GETQUOTA, USRQUOTA), \
	[VFS_QUOTA_GROUP] = QCMD(Q_GETQUOTA, GRPQUOTA), \
}

/*
 * Fills in @q's results for the file system that @fd, O_PATH will do, is in.
 * Any thread; can block.  0; -EPERM: this server is not allowed to look;
 * another -errno: no quota, or the helper is gone or too busy.
 */
int quota_ask(int fd, struct vfs_quota *q);
/* The same, by this process.  Its only system calls are fstat (or newfstatat,
 * or statx), quotactl_fd and quotactl. */
int quota_from_kernel(int fd, struct vfs_quota *q);
