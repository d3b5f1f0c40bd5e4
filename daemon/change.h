/* SPDX-License-Identifier: BSD-2-Clause */
/* change - what gannetctl(8) has the server change, on the thread that
 * reloads. */
#ifndef GANNET_DAEMON_CHANGE_H
#define GANNET_DAEMON_CHANGE_H

#include "daemon/control.h"

/* Commands, as control_command.later: @report is a struct report. */
void change_reload(void *report, struct control_call *call);

#endif
