/* SPDX-License-Identifier: BSD-2-Clause */
/* metrics - the server's counters and state as metrics. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/watch/metrics_clients.h"
#include "daemon/watch/metrics_text.h"
#include "daemon/watch/report.h"
#include "lib/account.h"
#include "rpc/rpc.h"
#include "transport/clients.h"

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

/* ---- metrics_accounts.c: the accounts of procedures, exports and clients. */

/* Samples of a histogram in seconds: the times of an account's calls.  Each
 * bound is where buckets of lib/histogram.h meet, so none is split. */
void metrics_put_times(struct metrics_out *m,
		       const struct metrics_label *labels,
		       const struct account_sum *sum);

/* The accounts of exports, and of clients, of which @named has the names. */
void metrics_put_exports(struct metrics_out *m, struct account_book *calls,
			 struct account_book *backends);
void metrics_put_clients(struct metrics_out *m, struct xprt_clients *clients,
			 struct metrics_clients *named);

/* ---- metrics_waits.c: the shares of the workers, and what calls wait for. */

/* Any thread. */
void metrics_put_waits(struct metrics_out *m, struct rpc_server *rpc);
