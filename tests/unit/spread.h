/* SPDX-License-Identifier: BSD-2-Clause */
/* Directories for tests that make and remove thousands of files. */
#pragma once

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

/*
 * To find a free inode, ext4 passes over all inodes of the same group of blocks
 * that were removed in the last seconds.  It spreads the subdirectories of a
 * top directory, which this makes of @dir: each begins in a separate group.
 */
static inline void spread_subdirectories(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), flags;

	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0) {
		flags |= FS_TOPDIR_FL;
		ioctl(fd, FS_IOC_SETFLAGS, &flags);
	}
	close(fd);
}
