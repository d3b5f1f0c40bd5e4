/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_fixture - the pool of a test. */
#pragma once

#include "transport/pool.h"

#define MIB	((size_t)1 << 20)

static struct pool *pool;

/* Of buffers in use. */
static inline size_t bytes_out(void)
{
	size_t taken, out;

	pool_usage(pool, &taken, &out);
	return out;
}
