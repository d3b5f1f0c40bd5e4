/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store - the objects that the servers of a file system share outside it, in a
 * RADOS namespace of its metadata pool.
 *
 * The handle key is there.  It lets its holder forge handles that every server
 * accepts.  So it does not lie in the file system, where an export or another
 * CephFS client could show it, nor in the data pools, which every CephFS client
 * can read.  Clients have no access to the metadata pool, and the servers'
 * cephx user needs none to the rest of it.
 */
#include "modules/ceph/servers.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define NAMESPACE	"gannet"

/* The number of the file system in @row of "fs dump", and its metadata pool.
 * False: it is not the one of @wanted, or, where that is empty, the cluster's
 * default. */
static bool read_row(json_t *all, json_t *row, const char *wanted,
		     struct cfs_store *s, int64_t *pool)
{
	json_t *map = json_object_get(row, "mdsmap");
	json_t *id = json_object_get(row, "id");
	const char *name = json_string_value(json_object_get(map, "fs_name"));

	if (!name || strlen(name) > CFS_TEXT_MAX)
		return false;
	if (*wanted ? strcmp(name, wanted) != 0 :
	    !json_equal(id, json_object_get(all, "default_fscid")))
		return false;
	strcpy(s->name, name);
	s->fscid = (uint32_t)json_integer_value(id);
	*pool = json_integer_value(json_object_get(map, "metadata_pool"));
	return true;
}

static int read_map(const char *text, size_t len, const char *wanted,
		    struct cfs_store *s, int64_t *pool)
{
	json_t *all = json_loadb(text, len, 0, NULL), *row;
	int err = -ENOENT;
	size_t i;

	json_array_foreach(json_object_get(all, "filesystems"), i, row)
		if (err < 0 && read_row(all, row, wanted, s, pool))
			err = 0;
	json_decref(all);
	return err;
}

/* Which file system it is, and the pool of its metadata. */
static int find_pool(const struct cfs_options *o, struct cfs_store *s,
		     int64_t *pool)
{
	const char *ask = "{\"prefix\": \"fs dump\", \"format\": \"json\"}";
	char *text = NULL, *status = NULL, wanted[CFS_TEXT_MAX + 1] = "";
	size_t len = 0, status_len = 0;
	int err;

	/* As libcephfs finds it. */
	if (*o->fs)
		strcpy(wanted, o->fs);
	else if (rados_conf_get(s->cluster, "client_fs", wanted,
				sizeof(wanted)) < 0)
		*wanted = '\0';
	err = rados_mon_command(s->cluster, &ask, 1, "", 0, &text, &len,
				&status, &status_len);
	if (err == 0)
		err = read_map(text, len, wanted, s, pool);
	rados_buffer_free(text);
	rados_buffer_free(status);
	return err;
}

/* Nothing here waits for longer than the timeout of a mount. */
static int set_timeouts(const struct cfs_options *o, rados_t cluster)
{
	char timeout[24];
	int err;

	snprintf(timeout, sizeof(timeout), "%llu",
		 (unsigned long long)cfs_timeout(o));
	err = rados_conf_set(cluster, "client_mount_timeout", timeout);
	if (err == 0)
		err = rados_conf_set(cluster, "rados_mon_op_timeout", timeout);
	if (err == 0)
		err = rados_conf_set(cluster, "rados_osd_op_timeout", timeout);
	return err;
}

static int find_cluster(struct cfs_store *s)
{
	char id[40];
	int err = rados_cluster_fsid(s->cluster, id, sizeof(id));

	s->cluster_hash = err < 0 ? 0 : hash_text(0, id);
	return MIN(err, 0);
}

int cfs_store_open(const struct cfs_options *o, struct cfs_store *s)
{
	int64_t pool;
	int err;

	s->step = "use id=, which is the name without 'client.'";
	if (strncmp(o->id, "client.", 7) == 0)
		return -EINVAL;
	s->step = "read ceph.conf";
	err = rados_create(&s->cluster, cfs_id(o));
	if (err < 0)
		return err;
	err = rados_conf_read_file(s->cluster, *o->conf ? o->conf : NULL);
	if (err == 0)
		err = set_timeouts(o, s->cluster);
	if (err == 0) {
		s->step = "log in to a monitor with a key of its keyring";
		err = rados_connect(s->cluster);
	}
	if (err == 0)
		err = find_cluster(s);
	if (err == 0) {
		s->step = "find the file system that fs= names, or the default";
		err = find_pool(o, s, &pool);
	}
	if (err == 0) {
		s->step = "use what its servers share, in the namespace '"
			  NAMESPACE "' of the metadata pool";
		err = rados_ioctx_create2(s->cluster, pool, &s->io);
	}
	if (err < 0) {
		rados_shutdown(s->cluster);
		return err;
	}
	rados_ioctx_set_namespace(s->io, NAMESPACE);
	/* These objects are small, and must be writable even in a full cluster,
	 * like the metadata servers' objects. */
	rados_set_pool_full_try(s->io);
	s->open = true;
	return 0;
}

void cfs_store_close(struct cfs_store *s)
{
	if (!s->open)
		return;
	rados_ioctx_destroy(s->io);
	rados_shutdown(s->cluster);
	s->open = false;
}
