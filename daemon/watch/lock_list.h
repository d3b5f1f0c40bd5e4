/* SPDX-License-Identifier: BSD-2-Clause */
/* lock_list - who holds and waits for which bytes of which file, in JSON for
 * gannetctl(8), and the end of a client's locks.  The control thread, and that
 * of the pages. */
#ifndef GANNET_DAEMON_LOCK_LIST_H
#define GANNET_DAEMON_LOCK_LIST_H

#include <jansson.h>

/* For struct control_command, with a struct report. */
json_t *lock_list(void *report, const char *argument, const char **wrong);
/* @argument: "ADDRESS" or "ADDRESS NAME". */
json_t *lock_release(void *report, const char *argument, const char **wrong);

#endif
