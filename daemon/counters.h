/* SPDX-License-Identifier: BSD-2-Clause */
/* counters - logs all counters, the shares of the workers, and the calls that
 * wait for something else. */
#ifndef GANNET_DAEMON_COUNTERS_H
#define GANNET_DAEMON_COUNTERS_H

#include "rpc/rpc.h"

void counters_log(struct rpc_server *rpc);

#endif
