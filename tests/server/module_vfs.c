/* SPDX-License-Identifier: BSD-2-Clause */
/* module_vfs - a loadable backend for tests of the whole server. */
#include "tests/server/module_vfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vfs/backends.h"

#define MODULE	"GANNET_TEST_MODULE"

const struct vfs_ops *module_vfs(void)
{
	static const struct vfs_ops *loaded;
	char *dir = getenv(MODULE), *name, *why = NULL;
	struct backends *b;

	if (!dir || loaded)
		return loaded;
	dir = strdup(dir);
	name = dir ? strrchr(dir, '/') : NULL;
	if (!name || backends_create(&b) < 0)
		abort();
	*name++ = '\0';
	if (backends_load(b, dir, name, &why) < 0) {
		fprintf(stderr, "%s: %s\n", name, why ? why : "no memory");
		abort();
	}
	loaded = backends_find(b, name, strlen(name));
	free(dir);
	return loaded;			/* @b stays with it */
}

static int make_dir(const struct vfs_ops *ops, struct vfs_fs *fs,
		    const char *name)
{
	static const struct vfs_cred root;
	struct vfs_make what = { .type = VFS_DIR, .attr = {
		.set = VFS_SET_MODE, .mode = 0755 } };
	struct vfs_op op = { .cred = &root, .name = { name,
		(uint32_t)strlen(name) }, .make = &what };
	int err = ops->root(fs, &op.node);

	if (err < 0)
		return err;
	err = ops->make(&op);
	if (err == 0)
		vfs_node_put(op.out);
	vfs_node_put(op.node);
	return err;
}

int module_vfs_dir(const struct vfs_ops *ops, struct vfs_config *config,
		   char path[MODULE_PATH_MAX])
{
	struct timespec now;
	struct vfs_fs *fs;
	int err;

	config->ops = ops;
	config->options = calloc(1, ops->options_size + 1);
	if (!config->options)
		return -ENOMEM;
	config->path = "/";
	err = ops->mount(config, &fs);
	if (err < 0)
		return err;
	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(path, MODULE_PATH_MAX, "/%lld-%ld", (long long)now.tv_sec,
		 now.tv_nsec);
	err = make_dir(ops, fs, path + 1);
	ops->unmount(fs);
	config->path = path;
	return err;
}
