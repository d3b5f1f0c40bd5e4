/* SPDX-License-Identifier: BSD-2-Clause */
/* exports - reads the exports that the options name. */
#ifndef GANNET_DAEMON_EXPORTS_H
#define GANNET_DAEMON_EXPORTS_H

#include "daemon/settings/settings.h"
#include "daemon/change/outcome.h"
#include "exports/export.h"

/*
 * Makes what all exports files and --export arguments say the current exports
 * of @t.  Logs warnings, and the reason of an error: then the old exports stay.
 * 0 or -errno; @out, or NULL, tells more.
 */
int exports_publish(const struct options *o, struct export_table *t,
		    struct outcome *out);

/*
 * exports_publish() at the start of the server.  A disk that is missing keeps
 * no other export from its clients: what can't be mounted is logged and tried
 * until it can.  0, or -errno for a mistake in the texts.
 */
int exports_start(const struct options *o, struct export_table *t);

/*
 * Reads all exports that @o names, with the rules of @kept in the place of
 * those that gannetctl was told to keep, into *@out, and publishes nothing.  0;
 * or -errno and *@why, malloced, or NULL without memory.
 */
int exports_try(const struct options *o, struct export_table *t, FILE *kept,
		struct export_set **out, char **why);

/*
 * Does the same as exports_publish() with a table of its own, which keeps
 * nothing, and prints that; see gannetd(8).  Where an export does not answer,
 * prints the others and ends the process.  0, or -errno after the reason was
 * logged.
 */
int exports_check(const struct options *o, const struct backends *backends);

#endif
