/* SPDX-License-Identifier: BSD-2-Clause */
/* change - what gannetctl(8) has the server change, on the thread that
 * reloads. */
#ifndef GANNET_DAEMON_CHANGE_H
#define GANNET_DAEMON_CHANGE_H

#include "daemon/watch/report.h"

enum change_kind {
	CHANGE_RELOAD,
	CHANGE_REOPEN,		/* the audit stream's file */
	/* Of the exports. */
	CHANGE_ADD, CHANGE_REMOVE, CHANGE_SET,
};

/* Commands, as control_command.later: @report is a struct report, and @kind an
 * enum change_kind. */
void change_later(void *report, struct control_call *call, int kind);

/*
 * change_exports.c: changes the exports as the options of @call say, all or
 * nothing: "line", or "path" and "client", which may be missing to remove all;
 * "keep": in the state directory, too, else until a reload.  0, or -errno and
 * the error in @out.  The changer's thread.
 */
int change_rules(const struct report *r, const struct control_call *call,
		 enum change_kind kind, struct outcome *out);

#endif
