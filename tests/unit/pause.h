/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pause - waiting for another thread or process.
 *
 * Tests let no time pass in another way: lint holds that.
 */
#pragma once

#include <stdbool.h>
#include <time.h>

/* Lets time pass where time is the object: a slow client, disk or name service,
 * or a moment chosen by chance.  A comment at the call says so. */
static inline void pause_on_purpose(unsigned us)
{
	struct timespec t = { us / 1000000, us % 1000000 * 1000l };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

/* Evaluates @expr again each @us until it holds.  False if it does not in a
 * minute, or longer on a busy machine. */
#define AWAIT_EACH(us, expr) ({ \
		bool awaited_ = (expr); \
		for (unsigned i_ = 60000000 / (us); i_ && !awaited_; i_--) { \
			pause_on_purpose(us); \
			awaited_ = (expr); \
		} \
		awaited_; \
	})
#define AWAIT(expr) AWAIT_EACH(1000, expr)

/* As a call that hangs: waits, for as long as @expr holds. */
#define WAIT_WHILE(expr) do { \
		while (expr) \
			pause_on_purpose(200); \
	} while (0)

/* Whether @expr holds each time that it is evaluated in @ms: for an event that
 * must not come. */
#define HOLDS_FOR(ms, expr) ({ \
		bool held_ = (expr); \
		for (unsigned i_ = (ms); i_ && held_; i_--) { \
			pause_on_purpose(1000); \
			held_ = (expr); \
		} \
		held_; \
	})
