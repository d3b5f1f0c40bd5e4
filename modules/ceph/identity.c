/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * identity - the key that all servers of a file system have: 16 random bytes,
 * made by the first server that asks for them.
 */
#include "modules/ceph/servers.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define OBJECT		"handle-key"

/* Makes the object.  -EEXIST: another server has made it. */
static int make_key(rados_ioctx_t io, uint8_t key[VFS_HANDLE_KEY])
{
	rados_write_op_t op;
	int err;

	if (getrandom(key, VFS_HANDLE_KEY, 0) != VFS_HANDLE_KEY)
		return -EIO;
	op = rados_create_write_op();
	if (!op)
		return -ENOMEM;
	/* Both happen, or neither. */
	rados_write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, NULL);
	rados_write_op_write_full(op, (const char *)key, VFS_HANDLE_KEY);
	err = rados_write_op_operate(op, io, OBJECT, NULL, CFS_WHEN_FULL);
	rados_release_write_op(op);
	return err;
}

static int read_key(rados_ioctx_t io, uint8_t key[VFS_HANDLE_KEY])
{
	char buf[VFS_HANDLE_KEY + 1];
	int n = rados_read(io, OBJECT, buf, sizeof(buf), 0);

	if (n < 0)
		return n;
	if (n != VFS_HANDLE_KEY)
		return -EUCLEAN;
	memcpy(key, buf, VFS_HANDLE_KEY);
	return 0;
}

int cfs_identity_key(struct cfs_store *s, bool make,
		     uint8_t key[VFS_HANDLE_KEY])
{
	int err = read_key(s->io, key);

	if (err == -ENOENT && make) {
		err = make_key(s->io, key);
		if (err == -EEXIST)
			err = read_key(s->io, key);
	}
	return err;
}
