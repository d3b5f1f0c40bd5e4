/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An operation of gannet/vfs.h in one expression, with the credentials of @who,
 * itself an operation:
 *
 *	DO(ops->setattr, &alice, n, .set = &set)
 *
 * GET also takes a result out of it: GET(out, m, ops->lookup, &alice, ...)
 * sets m.
 */
#pragma once

#include <gannet/vfs.h>

#define VFS_OP(who, n, ...) { \
	.cred = (who)->cred, .nonblock = (who)->nonblock, .node = (n), \
	__VA_ARGS__ \
}

#define DO(fn, who, ...) \
	(fn)(&(struct vfs_op)VFS_OP(who, __VA_ARGS__))

#define GET(member, to, fn, who, ...) \
	({ \
		struct vfs_op do_ = VFS_OP(who, __VA_ARGS__); \
		int ret_ = (fn)(&do_); \
		\
		(to) = do_.member; \
		ret_; \
	})
