/* SPDX-License-Identifier: BSD-2-Clause */
/* fds - see fds.h. */
#include "lib/fds.h"

#include <sys/resource.h>

#include "lib/util.h"

/* Of the limit: eighths for each pool. */
static const long eighths[FDS_POOLS] = { [FDS_FILES] = 4, [FDS_CONNS] = 3 };

/* If the limit can't be read. */
#define LIMIT_UNKNOWN	1024
/* A limit is never larger than this; nor is a share of it. */
#define LIMIT_MOST	(1l << 30)

/* 0: not read yet. */
static _Atomic long limit;
static _Atomic long used[FDS_POOLS];

long fds_limit(void)
{
	long n = atomic_load_explicit(&limit, memory_order_relaxed);
	struct rlimit lim;

	if (likely(n > 0))
		return n;
	n = LIMIT_UNKNOWN;
	if (getrlimit(RLIMIT_NOFILE, &lim) == 0)
		n = (long)MIN(lim.rlim_cur, (rlim_t)LIMIT_MOST);
	/* The same for every thread that asks first. */
	atomic_store_explicit(&limit, n, memory_order_relaxed);
	return n;
}

long fds_free(enum fds_pool pool)
{
	return fds_limit() / 8 * eighths[pool] -
	       atomic_load_explicit(&used[pool], memory_order_relaxed);
}

bool fds_may(enum fds_pool pool, long mine)
{
	return mine < 2 * fds_free(pool);
}

void fds_count(enum fds_pool pool, long n)
{
	atomic_fetch_add_explicit(&used[pool], n, memory_order_relaxed);
}
