/* SPDX-License-Identifier: BSD-2-Clause */
/* fail - errors with a text for the operator. */
#include "lib/fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int fail_with(char **err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(err, fmt, ap) < 0)
		*err = NULL;
	va_end(ap);
	return -EINVAL;
}

int fail_too(char **err, char *line)
{
	char *before = *err;

	if (!before) {
		*err = line;
	} else if (line) {
		fail_with(err, "%s\n%s", before, line);
		free(line);
		free(before);
	}
	return -EINVAL;
}
