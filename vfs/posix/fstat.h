/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fstat_fd - fstat(2) by its own system call.
 *
 * The C library goes through newfstatat with an empty path, which costs a
 * fifth more.  Where the kernel's struct stat is not the library's, it is
 * the library's call.
 */
#ifndef GANNET_VFS_POSIX_FSTAT_H
#define GANNET_VFS_POSIX_FSTAT_H

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int fstat_fd(int fd, struct stat *st)
{
#if defined(__x86_64__) && defined(__LP64__)
	return syscall(SYS_fstat, fd, st);
#else
	return fstat(fd, st);
#endif
}

#endif
