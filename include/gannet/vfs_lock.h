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

/* A result of SET: the owner has the lock, and is to give it back at once: it
 * came so late that clients of other servers may have had it.  The caller sets
 * and clears what the owner had before. */
#define VFS_LOCK_LATE	2

/*
 * An advisory lock of bytes, as fcntl(2) knows it: shared ones exclude
 * exclusive ones of other owners; a new one replaces what its owner had there.
 */
struct vfs_lock {
	enum vfs_lock_how  how;
	struct vfs_locker *locker;	/* TEST: NULL of one without locks */
	uint64_t	   off;		/* TEST: out, too: of the other lock */
	uint64_t	   len;		/* 0: to the end, however long it is */
	bool		   exclusive;	/* TEST: out, too */
	/* SET: the owner had the lock before, at least as the server of before
	 * knew.  The others may have to wait for such owners.  RELEASE: the
	 * server ends, and the owner will reclaim what it had. */
	bool		   reclaim;
	/* SET: this is what the owner had before a lock that it gives back, and
	 * has at least that now. */
	bool		   back;
	uint32_t	   pid;		/* TEST: out; 0: not known */
	/* SET: the lockers of the same client, an address or a network of IPv6
	 * (/64), on all files, in which a backend keeps something (held).  A
	 * backend that has room for few leaves some to other clients. */
	uint32_t	   client_held;
};

#endif
