/* SPDX-License-Identifier: BSD-2-Clause */
/* fail - errors with a text for the operator.  Any thread. */
#pragma once

/* Returns -EINVAL, with *@err malloced text, or NULL: out of memory. */
int fail_with(char **err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Adds @line, which it takes over, to the text *@err; both can be NULL.
 * Returns -EINVAL. */
int fail_too(char **err, char *line);
