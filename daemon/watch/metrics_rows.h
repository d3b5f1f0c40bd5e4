/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metrics_rows - the counters (lib/stats.h) that are told as one family of
 * metrics with labels.  Each other counter is a family of its own.  Pure.
 */
#ifndef GANNET_DAEMON_METRICS_ROWS_H
#define GANNET_DAEMON_METRICS_ROWS_H

#include "daemon/watch/metrics_text.h"

#define METRICS_ROW_LABELS	2

/* Labels of a family, and the counters in it. */
struct metrics_row_family {
	const char *name;
	const char *unit;	/* or NULL */
	const char *help;
	const char *labels[METRICS_ROW_LABELS];	/* names; NULL: no more */
	const struct metrics_row {
		const char *counter;	/* ends in '_': all that begin so */
		/* NULL for those: the rest of the counter's name. */
		const char *values[METRICS_ROW_LABELS];
	} *rows;		/* the last has no counter */
};

/* The last has no name. */
extern const struct metrics_row_family metrics_row_families[];

/* True if the row is for the counter. */
bool metrics_row_has(const struct metrics_row *row, const char *counter);
/* True if some row is. */
bool metrics_rows_have(const char *counter);

#endif
