/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kept - the exports that gannetctl(8) was told to keep: an exports file in the
 * state directory, which is read after all others.
 *
 * The state directory is the one place that the server may always write to.
 */
#ifndef GANNET_DAEMON_KEPT_H
#define GANNET_DAEMON_KEPT_H

#include "daemon/settings/settings.h"
#include "exports/export.h"

/* The file's path, malloced; NULL: no memory.  Any thread. */
char *kept_name(const struct options *o);

/* Reads the file into *@set, which is NULL if there is none.  0 or -errno and
 * *@why, as export_set_parse().  The changer's thread. */
int kept_read(const struct options *o, struct export_table *t,
	      struct export_set **set, char **why);
/* *@text, malloced, becomes what the file says with the rules of @set (NULL:
 * none).  0 or -ENOMEM. */
int kept_text(const struct export_set *set, char **text, size_t *len);
/* Writes the file, all or nothing, and syncs it.  0 or -errno.  The thread that
 * reloads. */
int kept_write(const struct options *o, const char *text, size_t len);

#endif
