/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kinds - the types of file systems: where the rights on a file come from, and
 * whether operations can block.
 *
 * The server holds files open for many callers.  The mode and the access
 * control list tell whether a caller may use such a file only if nothing else
 * decides about rights.  FUSE, network and unknown file systems can decide at
 * each open, by the user who opens.  Pseudo file systems store no files: they
 * are interfaces of the kernel, which looks at the process that reads or
 * writes, and that would be the server.
 *
 * Pure.  Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum posix_rights {
	POSIX_BY_MODE,		/* the mode and the list decide */
	POSIX_BY_OPEN,		/* only an open as the caller tells */
	POSIX_PSEUDO,		/* not served at all */
};

struct posix_kind {
	const char	 *name;		/* as /proc/self/mountinfo has it */
	uint32_t	  magic;	/* statfs(2)'s f_type */
	enum posix_rights rights;
	bool		  remote;	/* every operation can block */
	bool		  ram;		/* nothing does, nor needs a sync */
	bool		  fat;		/* no links, no case, times of 2 s */
};

/* The kind with @magic, or NULL.  @name tells kinds with the same @magic apart;
 * NULL: unknown. */
const struct posix_kind *posix_kind_find(uint32_t magic, const char *name);
/*
 * Of a file system that has @magic, and a @name unless that is NULL.
 * @on_device: it lies on a block device; @exportable: the kernel makes handles
 * of its files.  An unknown type that is neither is taken for a pseudo file
 * system.
 */
enum posix_rights posix_kind_rights(uint32_t magic, const char *name,
				    bool on_device, bool exportable);
/* True if a mount of the type @name is passed over, being a pseudo file system.
 * Not true of autofs: a look-up there makes it mount something. */
bool posix_kind_hides(const char *name);
