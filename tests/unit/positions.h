/* SPDX-License-Identifier: BSD-2-Clause */
/* The stability of positions in directories, and so of cookies. */
#pragma once

#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

/*
 * True if a position in a directory of @path's file system stays where it is
 * when other entries come and go.  A mere count does not: on tmpfs before Linux
 * 6.6 and on overlayfs.  A listing that the directory changes under then misses
 * names, or has them twice, by the kernel's server as well.
 */
static inline bool positions_last(const char *path)
{
	unsigned major = 0, minor = 0;
	struct utsname u;
	struct statfs sf;

	if (statfs(path, &sf) < 0 || uname(&u) < 0 ||
	    sscanf(u.release, "%u.%u", &major, &minor) != 2)
		return false;
	if (sf.f_type == TMPFS_MAGIC)
		return major * 1000 + minor >= 6006;
	return sf.f_type != OVERLAYFS_SUPER_MAGIC;
}
