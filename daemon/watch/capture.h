/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capture - RPC messages for gannetctl(8) capture.
 *
 * Threads that serve calls copy what the filter takes into a ring, and never
 * wait: what finds no room is dropped and counted.  A thread of the capture's
 * own makes packets of the messages and sends them to gannetctl, as a pcapng
 * file (daemon/watch/stream.h).
 *
 * There is one capture at a time.
 */
#pragma once

#include <jansson.h>

#include "exports/export.h"
#include "rpc/rpc.h"

struct capture;

/* Both are borrowed.  NULL: no memory. */
struct capture *capture_create(struct rpc_server *rpc,
			       struct export_table *exports);
/* Ends a capture in progress: gannetctl gets what is there, for a few seconds.
 * Before rpc_server_destroy().  NULL is fine. */
void capture_destroy(struct capture *c);

/*
 * Readies a capture with gannetctl's @options, NULL for none of them:
 *
 *	client, proc, export	texts, see capture_filter.h
 *	snaplen			bytes of a message that are kept
 *	count			messages after which it ends
 *	duration		seconds, the same
 *	size			bytes of the file, the same
 *
 * Returns the answer; NULL and *@wrong: there is a mistake in the options, or
 * another capture.  The control thread.
 */
json_t *capture_open(struct capture *c, const json_t *options,
		     const char **wrong);
/* Starts it, with @fd, which it takes; -1: the client has gone. */
void capture_start(struct capture *c, int fd);
