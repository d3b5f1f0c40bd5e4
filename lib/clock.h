/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clock - the time since the machine started, which can't be set.  Measure
 * intervals and deadlines with it.  Any thread.
 */
#pragma once

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_MS	UINT64_C(1000000)
#define NS_PER_S	UINT64_C(1000000000)

static inline uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_ms(void)
{
	return clock_ns() / NS_PER_MS;
}

/* The time since 1970, which an administrator can set: show it, but don't
 * measure with it. */
static inline uint64_t clock_wall_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Seconds, from a clock that is a tick behind and costs less. */
static inline time_t clock_coarse_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return t.tv_sec;
}

/*
 * Waits for @cond, with @lock held, until the clock says @until (ns); false
 * when it has.  As with any condition, a waiter can wake up early.
 */
static inline bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock,
				   uint64_t until)
{
	const struct timespec t = {
		.tv_sec = (time_t)(until / NS_PER_S),
		.tv_nsec = (long)(until % NS_PER_S),
	};
	int err = pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, &t);

	assert(err == 0 || err == ETIMEDOUT);
	return err == 0;
}
