/* SPDX-License-Identifier: BSD-2-Clause */
/* metrics - the server's counters and state as metrics. */
#ifndef GANNET_DAEMON_METRICS_H
#define GANNET_DAEMON_METRICS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/watch/metrics_clients.h"
#include "daemon/watch/report.h"

/*
 * The text of a scrape: OpenMetrics with @open, else Prometheus' 0.0.4.
 * @named has the names of clients from scrape to scrape.  Malloced, @len bytes
 * and a zero; NULL: no memory.  A registered thread of RCU.  Takes no lock
 * around anything but copies of a few numbers.
 */
char *metrics_make(const struct report *r, struct metrics_clients *named,
		   bool open, size_t *len);
/* True if an HTTP client that accepts @accept (NULL: did not say) asks for
 * OpenMetrics.  Pure. */
bool metrics_wants_open(const char *accept);

#endif
