/* SPDX-License-Identifier: BSD-2-Clause */
/* counters - logs all counters, the shares of the workers, and the calls that
 * wait for something else. */
#ifndef GANNET_DAEMON_COUNTERS_H
#define GANNET_DAEMON_COUNTERS_H

#include <stdio.h>

#include "rpc/rpc.h"

/* Writes a line for each thing under way. */
typedef void counters_list_fn(void *arg, FILE *out);

/* @list(@arg) adds what else is under way. */
void counters_log(struct rpc_server *rpc, counters_list_fn *list, void *arg);

#endif
