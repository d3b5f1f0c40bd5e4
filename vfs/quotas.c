/* SPDX-License-Identifier: BSD-2-Clause */
/* quotas - asks the kernel, itself or by the helper. */
#include "vfs/quotas.h"
#include "vfs/helper.h"

#include <errno.h>
#include <stdio.h>
#include <sys/quota.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/stats.h"
#include "lib/util.h"

STAT(quota_late, "requests for a quota refused because the helper was busy");

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd	443		/* on every architecture */
#endif

static uint64_t from_blocks(uint64_t n)
{
	uint64_t bytes;

	return __builtin_mul_overflow(n, 1024u, &bytes) ? UINT64_MAX : bytes;
}

/* Kernels before 5.14 only take a path of the device.  udev makes one that is
 * named by its numbers. */
static long ask_by_device(int fd, int cmd, uint32_t id, struct dqblk *d)
{
	char path[64];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -1;
	snprintf(path, sizeof(path), "/dev/block/%u:%u", major(st.st_dev),
		 minor(st.st_dev));
	if (syscall(SYS_quotactl, cmd, path, id, d) == 0)
		return 0;
	if (errno == ENOENT)		/* perhaps the path's */
		errno = ESRCH;
	return -1;
}

int quota_from_kernel(int fd, struct vfs_quota *q)
{
	static const int commands[] = QUOTA_COMMANDS;
	/* The helper trusts no field of @q. */
	int cmd = commands[q->type == VFS_QUOTA_GROUP];
	struct dqblk d = { 0 };
	long err = syscall(SYS_quotactl_fd, fd, cmd, q->id, &d);

	if (err < 0 && errno == ENOSYS)
		err = ask_by_device(fd, cmd, q->id, &d);
	/* On XFS: the id never owned a file there. */
	if (err < 0 && errno != ENOENT)
		return -errno;
	q->bytes = (struct vfs_quota_use){
		.used = d.dqb_curspace, .soft = from_blocks(d.dqb_bsoftlimit),
		.hard = from_blocks(d.dqb_bhardlimit),
		.ends = (int64_t)d.dqb_btime,
	};
	q->files = (struct vfs_quota_use){
		.used = d.dqb_curinodes, .soft = d.dqb_isoftlimit,
		.hard = d.dqb_ihardlimit, .ends = (int64_t)d.dqb_itime,
	};
	return 0;
}

int quota_ask(int fd, struct vfs_quota *q)
{
	struct helper_message m = { .task = HELPER_QUOTA, .quota = *q };
	int err = helper_ask(&m, fd, NULL);

	if (err == -ENOTCONN)
		return quota_from_kernel(fd, q);
	if (err == -ETIMEDOUT)
		stat_inc(quota_late);
	if (err == 0)
		*q = m.quota;
	return err;
}
