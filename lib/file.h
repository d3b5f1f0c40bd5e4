/* SPDX-License-Identifier: BSD-2-Clause */
/* file - small files that are read or written as a whole. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/*
 * Makes @name, below the directory @dir, a file (mode 0600) of these bytes, by
 * "@name.new", which is synced before it is renamed: a reader of @name finds
 * all of these bytes, or all of the old ones.  The directory is not synced.  0
 * or -errno.  Any thread; waits for the disk.
 */
int file_replace(int dir, const char *name, const char *text, size_t len);

/*
 * Reads all of @in into *@out, malloced, of *@len bytes.  0; -EFBIG: @max bytes
 * or more; -EIO; -ENOMEM.  Any thread; waits for the disk.
 */
int file_read(FILE *in, size_t max, char **out, size_t *len);
