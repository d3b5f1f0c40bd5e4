/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metrics_text - writes metrics as OpenMetrics 1.0 text, or in the older format
 * of Prometheus (0.0.4), of which the same scrape can ask for either.
 *
 * A family comes first, then its samples.  Pure; one thread per writer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum metrics_kind { METRICS_COUNTER, METRICS_GAUGE, METRICS_HISTOGRAM,
		    METRICS_INFO };

struct metrics_out {
	FILE		 *f;		/* borrowed */
	bool		  open;		/* OpenMetrics, else 0.0.4 */
	const char	 *name;		/* of the family; borrowed */
	enum metrics_kind kind;
};

/* The value is any text, escaped here. */
struct metrics_label {
	const char *name;
	const char *value;
};

/* Any number of them; the last has no name. */
#define METRICS_LABELS(...) \
	((const struct metrics_label[]){ __VA_ARGS__, { NULL, NULL } })
#define METRICS_NO_LABELS \
	((const struct metrics_label[]){ { NULL, NULL } })

/* Begins a family.  @name has neither "_total" nor "_info" at its end, and ends
 * in @unit if that is not NULL.  The name is borrowed until the next family. */
void metrics_family(struct metrics_out *m, const char *name,
		    enum metrics_kind kind, const char *unit, const char *help);
/* A sample of a counter, a gauge or (1) an info. */
void metrics_sample(struct metrics_out *m, const struct metrics_label *labels,
		    uint64_t value);
/* The same in seconds. */
void metrics_seconds(struct metrics_out *m, const struct metrics_label *labels,
		     uint64_t ns);

/* Times in ns: @counts[i] of them are at most @bounds[i] and longer than the
 * bound before, the last one of the @n + 1 counts has all others. */
struct metrics_times {
	const uint64_t *bounds;
	const uint64_t *counts;
	unsigned	n;
	uint64_t	sum;
};
/* A histogram in seconds. */
void metrics_histogram(struct metrics_out *m,
		       const struct metrics_label *labels,
		       const struct metrics_times *t);
/* Ends the text. */
void metrics_end(struct metrics_out *m);

/* ---- metrics_rows.c: the counters (lib/stats.h) that form one family of
 * metrics with labels.  Each other counter is a family by itself.  Pure. */

#define METRICS_ROW_LABELS	2

/* Labels of a family, and the counters in it. */
struct metrics_row_family {
	const char *name;
	const char *unit;	/* or NULL */
	const char *help;
	const char *labels[METRICS_ROW_LABELS];	/* names, then NULL */
	const struct metrics_row {
		const char *counter;	/* ends in '_': all that begin so */
		/* NULL in such a row: the rest of the counter's name. */
		const char *values[METRICS_ROW_LABELS];
	} *rows;		/* the last has no counter */
};

/* The last has no name. */
extern const struct metrics_row_family metrics_row_families[];

/* True if the row is for the counter. */
bool metrics_row_has(const struct metrics_row *row, const char *counter);
/* True if some row is. */
bool metrics_rows_have(const char *counter);
