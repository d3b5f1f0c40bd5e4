/* SPDX-License-Identifier: BSD-2-Clause */
/* counters - logs all counters, the shares of the workers, and the calls that
 * wait for something else. */
#ifndef GANNET_DAEMON_COUNTERS_H
#define GANNET_DAEMON_COUNTERS_H

#include "daemon/watch/report.h"

/* @r is borrowed for the call. */
void counters_log(const struct report *r);

#endif
