/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fds - shares of the process's file descriptors.
 *
 * The limit of the process (RLIMIT_NOFILE) is divided at the first request: an
 * eighth is for the process itself and for small users, such as gannetctl, or
 * more if both need more.  Of the rest four sevenths are for files, three for
 * connections.  The users of a pool, exports and listeners, share the free
 * descriptors: a user can take another one while it has less than twice the
 * number of free ones.  So one alone gets two thirds of the pool, and however
 * many of them take all that they can, some is left for the next one.
 *
 * Callers ask before they open, so threads that ask at the same time can exceed
 * the bound by their number.  Nothing here waits.  Any thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

enum fds_pool { FDS_FILES, FDS_CONNS, FDS_POOLS };

/* The process's limit of descriptors. */
long fds_limit(void);
/* The limit of a small user, at most @most and at least 1: each of the pipes,
 * gannetctl's connections and those for metrics. */
long fds_small(long most);
/* The number that a lone user of @pool gets: two thirds. */
long fds_alone(enum fds_pool pool);
/* True if a user of @pool that has @mine can take another one. */
bool fds_may(enum fds_pool pool, long mine);
/* Counts @n more, or fewer if that is negative. */
void fds_count(enum fds_pool pool, long n);
/* The rest of @pool that is not counted. */
long fds_free(enum fds_pool pool);
