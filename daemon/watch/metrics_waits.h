/* SPDX-License-Identifier: BSD-2-Clause */
/* metrics_waits - the shares of the workers, and what calls wait for. */
#ifndef GANNET_DAEMON_METRICS_WAITS_H
#define GANNET_DAEMON_METRICS_WAITS_H

#include "daemon/watch/metrics_text.h"
#include "rpc/rpc.h"

/* Any thread. */
void metrics_put_waits(struct metrics_out *m, struct rpc_server *rpc);

#endif
