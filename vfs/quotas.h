/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quotas - quotas of the kernel, and a helper process that asks for them.
 *
 * The kernel tells a process its own quota, and with CAP_SYS_ADMIN those of
 * others.  gannetd gives that up, so where it had it another process keeps it,
 * which can do nothing but ask.
 */
#ifndef GANNET_VFS_QUOTAS_H
#define GANNET_VFS_QUOTAS_H

#include <gannet/vfs.h>

/* From quotactl(2), for users and for groups: the only commands that the helper
 * gives. */
#define QUOTA_COMMANDS { \
	[VFS_QUOTA_USER] = QCMD(Q_GETQUOTA, USRQUOTA), \
	[VFS_QUOTA_GROUP] = QCMD(Q_GETQUOTA, GRPQUOTA), \
}

/*
 * Fills in @q's results for the file system that @fd, O_PATH will do, is in.
 * Any thread; may block.  0; -EPERM: this server may not look; another -errno:
 * there is no quota, or the helper is gone or too busy.
 */
int quota_ask(int fd, struct vfs_quota *q);
/*
 * quota_ask() asks the helper behind @sock, which it takes over, instead of the
 * kernel.  A request may take @patience_ms with those that come before it; a
 * helper that is late is not asked again until it has answered.  -1: asks the
 * kernel.
 */
void quota_use_helper(int sock, int patience_ms);
/*
 * The helper's life: answers what comes from @sock, until the other end is
 * gone.  Makes no system calls but recvmsg, sendmsg, fstat (or newfstatat, or
 * statx), quotactl_fd, quotactl and close.
 */
void quota_serve(int sock);

#endif
