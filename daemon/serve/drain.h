/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drain - stops accepting calls, for the end or until gannetctl(8) resumes.
 *
 * The listeners are closed and unregistered from rpcbind; calls in progress are
 * answered, and each connection is closed when it has none.
 */
#pragma once

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct report;

struct drain {
	pthread_mutex_t lock;		/* listeners stop, start with it */
	atomic_bool	on;		/* changed with it */
	bool		ends;		/* with it: for good */
	char		error[200];	/* with it: for gannetctl */
};

/* No new connection, no new call.  For the end of the server: can't be undone.
 * Any thread; blocks for seconds if rpcbind does not answer. */
void drain_for_the_end(struct report *r);
/* True if no connection and no call is left.  Any thread. */
bool drain_is_empty(const struct report *r);
/* "serving", "draining", or "drained": nothing is left. */
const char *drain_state(const struct report *r);

/* For struct control_command, with a struct report: the first only asks. */
json_t *drain_tell(void *report, const char *argument, const char **wrong);
json_t *drain_begin(void *report, const char *argument, const char **wrong);
json_t *drain_resume(void *report, const char *argument, const char **wrong);
