/* SPDX-License-Identifier: BSD-2-Clause */
/* metrics_accounts - the accounts of procedures, exports and clients. */
#ifndef GANNET_DAEMON_METRICS_ACCOUNTS_H
#define GANNET_DAEMON_METRICS_ACCOUNTS_H

#include "daemon/metrics_text.h"
#include "lib/account.h"

/* Samples of a histogram in seconds: the times of an account's calls.  Each
 * bound is where buckets of lib/histogram.h meet, so none is split. */
void metrics_put_times(struct metrics_out *m,
		       const struct metrics_label *labels,
		       const struct account_sum *sum);

#endif
