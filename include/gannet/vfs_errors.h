/* SPDX-License-Identifier: BSD-2-Clause */
/* gannet/vfs_errors.h - the errors of storage backends. */
#ifndef GANNET_VFS_ERRORS_H
#define GANNET_VFS_ERRORS_H

#include <errno.h>

/*
 * The errors of operations.  Each row has an errno, the status that a client
 * gets for it (RFC 1813 section 2.6, without NFS3ERR_), and its meaning where
 * errno(3) does not say it.  Where a procedure does not list that status (RFC
 * 1813 section 3.3), the client gets the listed one that is nearest in meaning.
 * An errno without a row becomes SERVERFAULT, or IO where that is not listed.
 */
#define VFS_ERRORS(X) \
	X(ENOENT, NOENT) \
	X(EACCES, ACCES) \
	X(EEXIST, EXIST) \
	/* The node's file, or the one that a handle names, is gone. */ \
	X(ESTALE, STALE) \
	X(EPERM, PERM) \
	X(EIO, IO) \
	X(ENXIO, NXIO) \
	X(EXDEV, XDEV) \
	X(ENODEV, NODEV) \
	X(ENOTDIR, NOTDIR) \
	X(EISDIR, ISDIR) \
	X(EINVAL, INVAL) \
	X(EFBIG, FBIG) \
	X(ENOSPC, NOSPC) \
	X(EROFS, ROFS) \
	X(EMLINK, MLINK) \
	X(ENAMETOOLONG, NAMETOOLONG) \
	X(ENOTEMPTY, NOTEMPTY) \
	X(EDQUOT, DQUOT) \
	X(EREMOTE, REMOTE) \
	/* The bytes are not a handle of this backend. */ \
	X(EBADMSG, BADHANDLE) \
	/* setattr: the guard is not the file's ctime. */ \
	X(EDOM, NOT_SYNC) \
	/* readdir: the cookie is no longer valid. */ \
	X(EBADE, BAD_COOKIE) \
	/* The file system has no such thing: links, devices, ... */ \
	X(EOPNOTSUPP, NOTSUPP) \
	X(ENOSYS, NOTSUPP) \
	/* readdir: not even one entry fits. */ \
	X(EMSGSIZE, TOOSMALL) \
	/* make: the backend can't make this type. */ \
	X(EPROTOTYPE, BADTYPE) \
	/* Not now: the client retries by itself. */ \
	X(ETIMEDOUT, JUKEBOX) \
	/* With op->nonblock: it would block, and nothing was done.  Then the \
	 * operation is called again where it can block, and no client hears \
	 * of it. */ \
	X(EAGAIN, JUKEBOX) \
	X(EINTR, JUKEBOX) \
	/* Too little memory, or too few descriptors. */ \
	X(ENOMEM, JUKEBOX) \
	X(ENOBUFS, JUKEBOX) \
	X(EMFILE, JUKEBOX) \
	X(ENFILE, JUKEBOX) \
	/* The file is in use as a mount point or as a program. */ \
	X(EBUSY, ACCES) \
	X(ETXTBSY, ACCES) \
	/* The directory is encrypted and locked. */ \
	X(ENOKEY, PERM) \
	X(ELOOP, INVAL) \
	/* The file system can't have such a name: it is not text there. */ \
	X(EILSEQ, INVAL) \
	X(EOVERFLOW, FBIG) \
	X(EREMOTEIO, IO) \
	X(EUCLEAN, IO) \
	X(ENODATA, IO)

#endif
