/* SPDX-License-Identifier: BSD-2-Clause */
/* file - the file of the list, replaced as a whole.  Any thread; waits. */
#pragma once

#include <stddef.h>

/* The text of the file, malloced; "" without a file.  0 or -errno. */
int nsm_file_read(const char *dir, char **out);
/* Durable when it returns 0: the file has these bytes, or after an error its
 * old ones. */
int nsm_file_replace(const char *dir, const char *text, size_t len);
