/* SPDX-License-Identifier: BSD-2-Clause */
/* tune - applies a changed gannet.conf to a server that runs.  The changer's
 * thread. */
#ifndef GANNET_DAEMON_TUNE_H
#define GANNET_DAEMON_TUNE_H

#include "daemon/settings/settings.h"
#include "daemon/change/outcome.h"
#include "exports/export.h"
#include "transport/xprt.h"

/*
 * Sets the limits of connections in @env as @o has them.  Connections leave
 * half of the descriptors to files: a transport has a quarter at most, and a
 * peer a quarter of that.  Any thread.
 */
void tune_connections(struct xprt_env *env, const struct options *o);

/*
 * Reads gannet.conf and the exports again, and makes them the current ones:
 * both, or neither after a mistake, which is logged.  Logs what changed, at a
 * level that shows it; the caller sets the log's level.  *@now is what the
 * last reload made, or NULL before the first, when @start holds; it becomes
 * the new options, for tune_free().  0 or -errno; @out, or NULL, tells more.
 */
int tune_reload(const struct options *start, struct options **now,
		struct export_table *exports, struct outcome *out);
/* The options by which exports are read, and kept: those of @now, or if it is
 * NULL of @start; the state directory is that of @start, whose lock the server
 * has.  Borrowed from both. */
struct options tune_exports(const struct options *start,
			    const struct options *now);
/* NULL is fine. */
void tune_free(struct options *o);

#endif
