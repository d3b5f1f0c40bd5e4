/* SPDX-License-Identifier: BSD-2-Clause */
/* counters - what has been counted, and who has the workers, for the log. */
#ifndef GANNET_DAEMON_COUNTERS_H
#define GANNET_DAEMON_COUNTERS_H

#include "rpc/rpc.h"

void counters_log(struct rpc_server *rpc);

#endif
