/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace - where the time of calls went, for gannetctl(8) trace.
 *
 * The thread that ends a call copies what the tap (rpc/tap.h) tells of it into
 * a ring, and never waits: what finds no room is dropped and counted.  A stream
 * (daemon/watch/stream.h) sends an object of JSON for each call, a line each.
 * The first line is an empty object; the calls that were dropped so far are
 * told between calls, and the last line has the sums.
 *
 * There is one trace at a time, beside one capture.
 */
#pragma once

#include <jansson.h>

#include "exports/export.h"
#include "rpc/rpc.h"

struct trace;

/* Both are borrowed.  NULL: no memory. */
struct trace *trace_create(struct rpc_server *rpc,
			   struct export_table *exports);
/* Ends a trace in progress.  Before rpc_server_destroy().  NULL is fine. */
void trace_destroy(struct trace *t);

/*
 * Readies a trace with gannetctl's @options, NULL for none of them:
 *
 *	client, proc, export	texts, see capture_filter.h
 *	slower			us that a call takes at least
 *	count			calls after which it ends
 *	duration		seconds, the same
 *
 * Returns the answer; NULL and *@wrong: there is a mistake in the options, or
 * another trace.  The control thread.
 */
json_t *trace_open(struct trace *t, const json_t *options,
		   const char **wrong);
/* Starts it, with @fd, which it takes; -1: the client has gone. */
void trace_start(struct trace *t, int fd);
