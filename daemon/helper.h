/* SPDX-License-Identifier: BSD-2-Clause */
/* helper - the process that keeps CAP_SYS_ADMIN, to ask for users' quotas. */
#ifndef GANNET_DAEMON_HELPER_H
#define GANNET_DAEMON_HELPER_H

#include "daemon/confine.h"

/*
 * Starts the helper, if this process has the capability, and has quotas asked
 * of it (vfs/quotas.h).  It ends with this process.  Call it before confine(),
 * before modules are loaded, any thread is made and anything is opened, for it
 * has a copy of all that.  An error is logged: then clients see no quotas.
 */
void helper_start(enum confine_calls calls);

#endif
