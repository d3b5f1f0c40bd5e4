/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watchdog - finds peers that stand still.  Pure.
 *
 * Its owner asks it now and then, with a count of all that has moved so far
 * (bytes, replies) and the amount that is owed or held in the same measure.
 * Times are ns, limits ms.  Where nothing is owed, nothing can stand still.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/loop.h"

/* A peer that moves all it holds within so many limits is not slow. */
#define WATCHDOG_PACE	12

/* All zero: not asked yet. */
struct watchdog {
	uint64_t moved;		/* as of ... */
	uint64_t since;		/* the last time when enough had moved */
};

/* True if @enough has not moved for @ms. */
static inline bool watchdog_barks(struct watchdog *w, uint64_t now,
				  uint64_t moved, uint64_t enough, uint32_t ms)
{
	if (w->since == 0 || moved - w->moved >= enough) {
		w->moved = moved;
		w->since = now;
	}
	return loop_passed(now, w->since, ms);
}

/* True if no byte that is @owed has moved for @ms. */
static inline bool watchdog_stalled(struct watchdog *w, uint64_t now,
				    uint64_t moved, uint64_t owed, uint32_t ms)
{
	return watchdog_barks(w, now, moved, owed > 0, ms);
}

/* True if too little has moved for @ms: the @held bytes would stay for more
 * than a dozen times as long. */
static inline bool watchdog_slow(struct watchdog *w, uint64_t now,
				 uint64_t moved, uint64_t held, uint32_t ms)
{
	return watchdog_barks(w, now, moved,
			      held > 0 ? held / WATCHDOG_PACE + 1 : 0, ms);
}
