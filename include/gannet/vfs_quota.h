/* SPDX-License-Identifier: BSD-2-Clause */
/* gannet/vfs_quota.h - quotas of users and groups; a part of gannet/vfs.h. */
#ifndef GANNET_VFS_QUOTA_H
#define GANNET_VFS_QUOTA_H

#include <stdint.h>

enum vfs_quota_type { VFS_QUOTA_USER, VFS_QUOTA_GROUP };

/* The use of one thing. */
struct vfs_quota_use {
	uint64_t used;
	uint64_t soft, hard;		/* limits; 0: none */
	/* The second (CLOCK_REALTIME) at which the time above the soft limit is
	 * over; 0: no time runs. */
	int64_t	 ends;
};

/* A user's or a group's share of a file system. */
struct vfs_quota {
	enum vfs_quota_type  type;
	uint32_t	     id;
	/* Results. */
	struct vfs_quota_use bytes, files;
};

#endif
