/* SPDX-License-Identifier: BSD-2-Clause */
/* change - what gannetctl(8) has the server change, on the thread that
 * reloads. */
#ifndef GANNET_DAEMON_CHANGE_H
#define GANNET_DAEMON_CHANGE_H

#include "daemon/report.h"

/* Commands, as control_command.later: @report is a struct report. */
void change_reload(void *report, struct control_call *call);
void change_reopen(void *report, struct control_call *call);
void change_add(void *report, struct control_call *call);
void change_remove(void *report, struct control_call *call);
void change_set(void *report, struct control_call *call);

enum change_kind { CHANGE_ADD, CHANGE_REMOVE, CHANGE_SET };

/*
 * change_exports.c: changes the exports as the options of @call say, all or
 * nothing: "line", or "path" and "client", which may be missing to remove all;
 * "keep": in the state directory, too, else until a reload.  0, or -errno and
 * the error in @out.  The thread that reloads.
 */
int change_rules(const struct report *r, const struct control_call *call,
		 enum change_kind kind, struct outcome *out);

#endif
