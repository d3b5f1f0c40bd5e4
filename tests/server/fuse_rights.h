/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuse_rights - a FUSE file system that decides at each open, by who opens.
 *
 * It has the files that test_nfs3_rights makes elsewhere, with their modes and
 * owners, and lets only FUSE_RIGHTS_USER and root open them, whatever the modes
 * say.
 */
#pragma once

#include <sys/types.h>

#define FUSE_RIGHTS_USER	1001
#define FUSE_RIGHTS_GROUP	100
#define FUSE_RIGHTS_OTHER	1002

/* Mounts it at @path with @options, and serves it in a process that ends with
 * the mount.  -errno: it can't be mounted here. */
int fuse_rights_mount(const char *path, const char *options);
