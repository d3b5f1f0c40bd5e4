/* SPDX-License-Identifier: BSD-2-Clause */
/* metrics_accounts - the accounts of procedures, exports and clients. */
#ifndef GANNET_DAEMON_METRICS_ACCOUNTS_H
#define GANNET_DAEMON_METRICS_ACCOUNTS_H

#include "daemon/watch/metrics_text.h"
#include "daemon/watch/metrics_clients.h"
#include "lib/account.h"
#include "transport/clients.h"

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

#endif
