/* SPDX-License-Identifier: BSD-2-Clause */
/* audit_procs - the procedures that the audit can note, by their names.  Pure.
 */
#ifndef GANNET_DAEMON_AUDIT_PROCS_H
#define GANNET_DAEMON_AUDIT_PROCS_H

#include <stdbool.h>
#include <stdint.h>

/* Those that change names or attributes: bits of rpc/audit.h. */
uint64_t audit_procs_changes(void);
/* Sets *@procs to the bits of names with commas between; "changes" and "all"
 * stand for several.  False: a name is wrong. */
bool audit_procs_parse(const char *text, uint64_t *procs);

#endif
