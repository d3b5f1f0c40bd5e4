/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * module_vfs - a loadable backend for tests of the whole server: the module of
 * that name in the directory GANNET_TEST_MODULE, "modules/ceph/ceph" say.  Its
 * exports are new directories of the tree "/".
 */
#pragma once

#include <gannet/vfs.h>

#define MODULE_PATH_MAX	64

/* NULL: the environment names none.  Aborts if it can't be loaded. */
const struct vfs_ops *module_vfs(void);
/* Makes a new directory, and writes its path to @path; fills in the options
 * that @config lacks.  0 or -errno. */
int module_vfs_dir(const struct vfs_ops *ops, struct vfs_config *config,
		   char path[MODULE_PATH_MAX]);
