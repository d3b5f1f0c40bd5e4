/* SPDX-License-Identifier: BSD-2-Clause */
/* gannet/vfs_option.h - a backend's options in an exports file; a part of
 * gannet/vfs.h. */
#ifndef GANNET_VFS_OPTION_H
#define GANNET_VFS_OPTION_H

#include <stddef.h>
#include <stdint.h>

/* The type of an option, and that of its member of the block. */
enum vfs_option_type {
	VFS_FLAG,	/* "name"; bool: it was given */
	VFS_NUMBER,	/* "name=10"; uint64_t, min to max */
	VFS_SIZE,	/* "name=10m"; the same, in units of 1, 2^10 (k), 2^20
			 * (m) or 2^30 (g) */
	VFS_TEXT,	/* "name=text"; char[max + 1]: min to max bytes, no
			 * comma or colon, and zeros */
};

/*
 * A row for each option of a backend, as it stands in an exports file.  Its
 * value goes to @offset of a block that is all zeros else.
 */
struct vfs_option {
	const char	    *name;
	enum vfs_option_type type;
	size_t		     offset;
	uint64_t	     min, max;
};

#endif
