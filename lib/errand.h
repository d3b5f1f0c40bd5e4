/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * errand - a look at a path for a thread that must not wait for it forever.
 *
 * A disk that hangs can't be told from a slow one without asking it.  So a
 * thread of the crew asks, and the owner of the errand waits for a while.  An
 * errand that has not ended by then keeps its thread, and frees itself when it
 * ends.  Until then no errand like it begins, so repetitions don't add up.
 *
 * Any thread that acts as the server.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/crew.h"

struct errand {
	/* Set by the owner, as long as it is there: */
	const char	*path;
	int		(*run)(struct errand *e);	/* 0 or -errno */
	void		(*drop)(struct errand *e);	/* frees it after that,
							 * with the result, if
							 * the owner left it */
	/* The errand's: */
	struct crew_job	 job;
	bool		 ended, left;
	int		 err;
	struct errand	*next;
};

/* The wait of an owner in ms, 2,000; tests set it. */
extern _Atomic unsigned errand_wait_ms;

/*
 * Begins @e.  0; -ETIMEDOUT: one with its path and run() was left and still
 * runs; or another -errno of starting a thread.  After an error it stays the
 * caller's.
 */
int errand_begin(struct errand *e);
/*
 * Waits for @e until @until (clock_ns(); UINT64_MAX: for ever).  Returns what
 * run() did, but -EIO for its -ETIMEDOUT; or -ETIMEDOUT: it has not ended, and
 * is not the caller's any longer.
 */
int errand_await(struct errand *e, uint64_t until);
/* The time that is errand_wait_ms from now. */
uint64_t errand_deadline(void);
