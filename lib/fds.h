/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fds - shares of the process's file descriptors.
 *
 * The limit of the process (RLIMIT_NOFILE) is divided at the first request: an
 * eighth is for what the process itself needs and for small users, such as
 * gannetctl; where that is less than both need, it is more.  Of the rest four
 * sevenths are for files, three for connections.  The users of a pool, exports
 * and listeners, share the free descriptors: a user may take another one while
 * it has less than twice the number of free ones.  So one alone gets two thirds
 * of the pool, and however many of them take all that they can, some is left
 * for the next one.
 *
 * Callers ask before they open, so threads that ask at the same time can exceed
 * the bound by their number.  Nothing here waits.  Any thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

enum fds_pool { FDS_FILES, FDS_CONNS, FDS_POOLS };

/* The number of descriptors that the process may open. */
long fds_limit(void);
/* The number that a small user may have, at most @most and at least 1: each of
 * the pipes, gannetctl's connections and those for metrics. */
long fds_small(long most);
/* The number that a user of @pool gets if there is no other: two thirds. */
long fds_alone(enum fds_pool pool);
/* True if a user of @pool that has @mine may take one more. */
bool fds_may(enum fds_pool pool, long mine);
/* Counts @n more, or fewer if that is negative. */
void fds_count(enum fds_pool pool, long n);
/* The rest of @pool that is not counted. */
long fds_free(enum fds_pool pool);
