/* SPDX-License-Identifier: BSD-2-Clause */
/* fds - see fds.h. */
#include "lib/fds.h"

#include <sys/resource.h>

#include "lib/util.h"

/* Each pool's sevenths of all pools' descriptors. */
static const long sevenths[FDS_POOLS] = { [FDS_FILES] = 4, [FDS_CONNS] = 3 };

/* The process's own: listeners, pollers, files of its state. */
#define OWN		48
/* Of the limit: the part of each small user, and their number. */
#define SMALL_PART	48
#define SMALL_USERS	3

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

long fds_small(long most)
{
	long n = MIN(fds_limit() / SMALL_PART, most);

	return MAX(n, 1l);
}

/* Returns the descriptors of all pools together. */
static long pooled(void)
{
	long n = fds_limit(), small = MAX(n / SMALL_PART, 1l);
	long own = MAX(n / 8, OWN + SMALL_USERS * small);

	return MAX(n - own, (long)FDS_POOLS);
}

static long size_of(enum fds_pool pool)
{
	long n = pooled() * sevenths[pool] / 7;

	return MAX(n, 1l);
}

long fds_alone(enum fds_pool pool)
{
	long n = size_of(pool) / 3 * 2;

	return MAX(n, 1l);
}

long fds_free(enum fds_pool pool)
{
	return size_of(pool) -
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
