/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * identity - the key that all servers of a file system have: 16 random bytes,
 * made by the first server that asks for them.
 *
 * Who knows the key can make handles that every server takes for its own.  So
 * it does not lie in the file system, where an export or another CephFS client
 * could show it, nor in the data pools, which every CephFS client may read.  It
 * is an object of the metadata pool, in a RADOS namespace of its own: clients
 * have no access to that pool, and the servers' cephx user needs none to the
 * rest of it.
 */
#include "vfs/ceph/ceph.h"

#include <errno.h>
#include <jansson.h>
#include <rados/librados.h>
#include <string.h>
#include <sys/random.h>

#define NAMESPACE	"gannet"
#define OBJECT		"handle-key"
#define POOL_MAX	256

/* True if @fs, a row of "fs ls", has the data pool @pool. */
static bool has_pool(json_t *fs, const char *pool)
{
	json_t *pools = json_object_get(fs, "data_pools"), *p;
	size_t i;

	json_array_foreach(pools, i, p)
		if (json_is_string(p) &&
		    strcmp(json_string_value(p), pool) == 0)
			return true;
	return false;
}

/* Of the file system that has the data pool @pool, the metadata pool. */
static int metadata_pool(const char *text, size_t len, const char *pool,
			 char *out)
{
	json_t *all = json_loadb(text, len, 0, NULL), *fs;
	const char *name;
	int err = -ENOENT;
	size_t i;

	json_array_foreach(all, i, fs) {
		name = json_string_value(json_object_get(fs,
							 "metadata_pool"));
		if (!name || !has_pool(fs, pool))
			continue;
		if (strlen(name) >= POOL_MAX) {
			err = -ENAMETOOLONG;
			break;
		}
		strcpy(out, name);
		err = 0;
		break;
	}
	json_decref(all);
	return err;
}

static int find_pool(const struct cfs_fs *fs, rados_t cluster, char *out)
{
	const char *ask = "{\"prefix\": \"fs ls\", \"format\": \"json\"}";
	char data[POOL_MAX], *text = NULL, *status = NULL;
	size_t len = 0, status_len = 0;
	int err = ceph_get_default_data_pool_name(fs->client[0].cm, data,
						  sizeof(data) - 1);

	if (err < 0)
		return err;
	data[MIN(err, (int)sizeof(data) - 1)] = '\0';
	err = rados_mon_command(cluster, &ask, 1, "", 0, &text, &len,
				&status, &status_len);
	if (err == 0)
		err = metadata_pool(text, len, data, out);
	rados_buffer_free(text);
	rados_buffer_free(status);
	return err;
}

/* Makes the object, unless somebody else has: -EEXIST. */
static int make_key(rados_ioctx_t io, uint8_t key[CFS_KEY_SIZE])
{
	rados_write_op_t op;
	int err;

	if (getrandom(key, CFS_KEY_SIZE, 0) != CFS_KEY_SIZE)
		return -EIO;
	op = rados_create_write_op();
	if (!op)
		return -ENOMEM;
	/* Both happen, or neither. */
	rados_write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, NULL);
	rados_write_op_write_full(op, (const char *)key, CFS_KEY_SIZE);
	err = rados_write_op_operate(op, io, OBJECT, NULL, 0);
	rados_release_write_op(op);
	return err;
}

static int read_key(rados_ioctx_t io, uint8_t key[CFS_KEY_SIZE])
{
	char buf[CFS_KEY_SIZE + 1];
	int n = rados_read(io, OBJECT, buf, sizeof(buf), 0);

	if (n < 0)
		return n;
	if (n != CFS_KEY_SIZE)
		return -EUCLEAN;
	memcpy(key, buf, CFS_KEY_SIZE);
	return 0;
}

static int get_key(const struct cfs_fs *fs, rados_t cluster,
		   uint8_t key[CFS_KEY_SIZE])
{
	char pool[POOL_MAX];
	rados_ioctx_t io;
	int err = find_pool(fs, cluster, pool);

	if (err == 0)
		err = rados_ioctx_create(cluster, pool, &io);
	if (err < 0)
		return err;
	rados_ioctx_set_namespace(io, NAMESPACE);
	err = read_key(io, key);
	if (err == -ENOENT) {
		err = make_key(io, key);
		if (err == -EEXIST)
			err = read_key(io, key);
	}
	rados_ioctx_destroy(io);
	return err;
}

int cfs_identity_key(const struct cfs_fs *fs, uint8_t key[CFS_KEY_SIZE])
{
	const struct cfs_options *o = fs->options;
	rados_t cluster;
	int err = rados_create(&cluster, cfs_id(o));

	if (err < 0)
		return err;
	err = rados_conf_read_file(cluster, *o->conf ? o->conf : NULL);
	if (err == 0)
		err = rados_connect(cluster);
	if (err == 0)
		err = get_key(fs, cluster, key);
	rados_shutdown(cluster);
	return err;
}
