/* SPDX-License-Identifier: BSD-2-Clause */
/* gannet/vfs_lock.h - advisory locks of files; a part of gannet/vfs.h. */
#ifndef GANNET_VFS_LOCK_H
#define GANNET_VFS_LOCK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The owner of locks on one file, as a backend knows it.  In gannetd's memory
 * from its first lock to its VFS_LOCK_RELEASE.
 */
struct vfs_locker {
	uint64_t id;		/* of the owner on the file, in this process */
	intptr_t held;		/* the backend's; 0 at first */
};

enum vfs_lock_how { VFS_LOCK_TEST, VFS_LOCK_SET, VFS_LOCK_CLEAR,
		    VFS_LOCK_RELEASE };

/* A result of SET: the owner has the lock, and has to release it at once, since
 * clients of other servers can have had it: SET came too late.  The caller
 * restores the owner's earlier locks. */
#define VFS_LOCK_LATE	2

/*
 * An advisory lock of bytes, as in fcntl(2): shared locks exclude exclusive
 * ones of other owners; a new lock replaces its owner's locks in the range.
 */
struct vfs_lock {
	enum vfs_lock_how  how;
	struct vfs_locker *locker;	/* TEST: NULL of one without locks */
	uint64_t	   off;		/* TEST: also the result: the other
					 * lock */
	uint64_t	   len;		/* 0: to the end, however long it is */
	bool		   exclusive;	/* TEST: also the result */
	/* SET: this is a reclaim: the previous server recorded that the owner
	 * had the lock.  New locks can have to wait for reclaims.  RELEASE: the
	 * server ends, and the owner will reclaim its locks. */
	bool		   reclaim;
	/* SET: restores a lock that the owner had before another lock that it
	 * releases; it has at least this range now. */
	bool		   back;
	uint32_t	   pid;		/* TEST: out; 0: not known */
	/* SET: the lockers of the same client, an address or a network of IPv6
	 * (/64), on all files, in which a backend keeps something (held).  A
	 * backend that has room for few leaves some to other clients. */
	uint32_t	   client_held;
};

#endif
