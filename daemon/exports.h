/* SPDX-License-Identifier: BSD-2-Clause */
/* exports - reads the exports that the options name. */
#ifndef GANNET_DAEMON_EXPORTS_H
#define GANNET_DAEMON_EXPORTS_H

#include "daemon/options.h"
#include "vfs/export.h"

/*
 * Parses all exports files and --export arguments into a new *@set.  0, or
 * -errno and *@err (malloced, may be NULL) has the reason; then a *@set that is
 * not NULL has to be freed all the same.
 */
int exports_read(const struct options *o, struct export_table *t,
		 struct export_set **set, char **err);
/* The name of the first exports file, for messages. */
const char *exports_first_file(const struct options *o);

#endif
