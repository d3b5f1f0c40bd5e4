/* SPDX-License-Identifier: BSD-2-Clause */
/* child_record - a file that says where each file system below an export is. */
#pragma once

#include <gannet/vfs.h>

/* See struct child. */
struct child_line {
	uint32_t	 id, top, above;
	bool		 is_part;
	struct vfs_handle dir;
	const char	*path;		/* borrowed */
};

struct child_record;

/*
 * Calls @fn for the last @max lines of the file in @state_dir, the oldest
 * first, and keeps it open.  Without a @state_dir no file is kept or needed:
 * the key of the handles ends with the process.  0 or -errno, which was logged.
 */
int  child_record_open(const char *state_dir, unsigned max,
		       void (*fn)(void *arg, const struct child_line *line),
		       void *arg, struct child_record **out);
void child_record_close(struct child_record *r);
/* Any thread, with any credentials; can block.  A failed write is only logged:
 * the handles of this child are stale after a restart. */
void child_record_add(struct child_record *r, const struct child_line *line);
