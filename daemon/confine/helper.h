/* SPDX-License-Identifier: BSD-2-Clause */
/* helper - the process that keeps CAP_SYS_ADMIN, for the tasks of
 * vfs/helper.h. */
#ifndef GANNET_DAEMON_HELPER_H
#define GANNET_DAEMON_HELPER_H

#include "daemon/confine/confine.h"

/*
 * Starts the helper, if this process has the capability, for helper_ask()
 * (vfs/helper.h).  It ends with this process.  Call it before confine(),
 * before modules are loaded, any thread is made and anything is opened, for it
 * has a copy of all that.  An error is logged: then clients see no quotas.
 */
void helper_start(enum confine_calls calls);

#endif
